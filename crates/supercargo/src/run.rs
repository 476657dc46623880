//! `supercargo run`: schedules a real cluster.

pub(crate) mod decisions;
mod observer;
mod pages;
pub(crate) mod plugin_pages;
pub(crate) mod process;
mod programs;
mod reload;
mod settings;

use std::time::Duration;

use anyhow::Context as _;
use supercargo_client::{ApiServer, Clock, hostname};
use supercargo_cluster::{end_rest, rest_after_bindings};
use supercargo_framework::Registry;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::leader::new_identity;
use supercargo_operations::logs;
use supercargo_operations::reload::Files;
use supercargo_operations::signals::Signals;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tracing::{error, warn};

pub(crate) use pages::EMULATED_VERSION;
pub(crate) use process::{COMMIT, VERSION};

use crate::outcome::Outcome;
use process::{Process, Surroundings};

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
    // The lease, signals and served pages have this thread, and scheduling has another. Neither runtime has a second thread:
    // everything that is done for a pod is little, and a runtime with an idle thread wakes that thread for each little thing.
    let runtime = Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let scheduling = SchedulingThread::start().context("cannot start the thread of the scheduler")?;
    let ended = runtime.block_on(async {
        let signals = Signals::listen().context("cannot listen for signals")?;
        let server = ApiServer::connect(&process.connect_options()).await?;
        let surroundings = Surroundings {
            server,
            clock: Clock::system(),
            signals,
            identity: new_identity(),
            hostname: hostname(),
            scheduling: scheduling.runtime.clone(),
        };
        process.run(surroundings).await
    });
    // Whatever still waits for the network need not be waited for.
    drop(scheduling);
    runtime.shutdown_background();
    Ok(Outcome { code: ended?.exit_code(), ..Outcome::default() })
}

/// A thread that runs the tasks of scheduling until this is dropped. Nobody waits for its end: a decision that does not come to an
/// end must not keep the process.
struct SchedulingThread {
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl SchedulingThread {
    fn start() -> std::io::Result<Self> {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().on_thread_park(rest_after_bindings).on_thread_unpark(end_rest);
        let runtime = builder.build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("scheduling".to_owned()).spawn(move || {
            // That the sender is dropped is how it is told to stop.
            _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(SchedulingThread { runtime: handle, _stop: stop })
    }
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
fn duration(duration: supercargo_model::GoDuration) -> Duration {
    Duration::from_nanos(duration.0.max(0).unsigned_abs())
}
