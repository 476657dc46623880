//! `supercargo run`: schedules a real cluster.

pub(crate) mod decisions;
mod observer;
mod pages;
pub(crate) mod process;
mod reload;
mod settings;

use std::time::Duration;

use anyhow::Context as _;
use supercargo_cluster::{ApiServer, Clock, hostname};
use supercargo_framework::Registry;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::leader::new_identity;
use supercargo_operations::logs;
use supercargo_operations::reload::Files;
use supercargo_operations::signals::Signals;
use tracing::{error, warn};

use crate::outcome::Outcome;
use process::{Process, Surroundings};

/// Two threads keep the network and the scheduler busy; more only cost memory.
const THREADS: usize = 2;

pub(crate) fn run(flags: RunFlags, registry: &Registry) -> anyhow::Result<Outcome> {
    let process = Process::new(flags, registry.clone(), &Files::system())?;
    let flags = process.flags();
    if let Some(file) = &flags.write_config_to {
        std::fs::write(file, process.configuration())
            .with_context(|| format!("cannot write {}", file.display()))?;
        return Ok(Outcome::default());
    }
    logs::start(flags.logging_format, flags.verbosity).context("cannot start logging")?;
    log_panics();
    for warning in process.warnings() {
        warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        let signals = Signals::listen().context("cannot listen for signals")?;
        let server = ApiServer::connect(&process.connect_options()).await?;
        let surroundings = Surroundings {
            server,
            clock: Clock::system(),
            signals,
            identity: new_identity(),
            hostname: hostname(),
        };
        process.run(surroundings).await
    });
    // Whatever still waits for the network need not be waited for.
    runtime.shutdown_background();
    Ok(Outcome { code: ended?.exit_code(), ..Outcome::default() })
}

/// Lets panics be told as everything else is: as a line of the log, in its format. Which task it was, and that the process ends
/// with it, the process says.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("a panic without a message");
        error!(err = message, location, "Panicked: this is a bug in Supercargo or in a plugin");
    }));
}

/// How long a pod that fits nowhere waits at most, as the flag says.
fn duration(duration: supercargo_framework::GoDuration) -> Duration {
    Duration::from_nanos(duration.0.max(0).unsigned_abs())
}
