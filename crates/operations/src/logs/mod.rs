//! Structured logs, as klog writes them or as JSON.
//!
//! | `--v` | what is written |
//! |---|---|
//! | 0 | `error!`, `warn!`, `info!` |
//! | 1, 2, 3 | also `info!` with the target [`V1`], [`V2`], [`V3`]: at 2 every bound pod |
//! | 4 | also `debug!` |
//! | 5 and more | also `trace!` |
//!
//! What went wrong stands in the field `err`, as kube-scheduler writes it, and not in the message: `error!(err = %error, pod = …, "Binding failed")`.
//! So a query for a message finds all of its lines, and the reason can be searched for by itself.
//!
//! Libraries are quieter: their `warn!` needs 1, `info!` 2, `debug!` 6 and `trace!` 8; and kube's client, which calls every request that
//! fails an error, needs 4 for that: whoever asked says so himself.

mod format;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use crate::clock::{Clock, time_of_day};
use crate::flags::LoggingFormat;

/// The target of what is written from `--v=1` on.
pub const V1: &str = "v1";
/// The target of what is written from `--v=2` on.
pub const V2: &str = "v2";
/// The target of what is written from `--v=3` on.
pub const V3: &str = "v3";

/// What our own crates' targets begin with.
const OURS: &str = "supercargo";

/// What kube's client says about each request begins with this.
const REQUESTS: &str = "kube_client::client::builder";

/// Logs are on already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process writes logs already")]
pub struct AlreadyOn;

/// How much is logged. A clone changes the same.
#[derive(Clone, Debug)]
pub struct Verbosity(Arc<AtomicU8>);

impl Verbosity {
    /// A level that nobody listens to yet; [`start`] returns the one of this process.
    pub(crate) fn new(verbosity: u8) -> Self {
        Verbosity(Arc::new(AtomicU8::new(verbosity)))
    }

    /// The level now.
    pub fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the level while the process runs.
    pub fn set(&self, verbosity: u8) {
        self.0.store(verbosity, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Turns logs on for the whole process, to standard error.
pub fn start(format: LoggingFormat, verbosity: u8) -> Result<Verbosity, AlreadyOn> {
    let layer = Lines::new(format, verbosity, time_of_day, Box::new(io::stderr()));
    let verbosity = layer.verbosity.clone();
    tracing::subscriber::set_global_default(Registry::default().with(layer)).map_err(|_| AlreadyOn)?;
    Ok(verbosity)
}

/// Writes a line for each event.
pub(crate) struct Lines {
    format: LoggingFormat,
    verbosity: Verbosity,
    clock: Clock,
    process: u32,
    output: Mutex<Box<dyn Write + Send>>,
}

impl Lines {
    pub(crate) fn new(
        format: LoggingFormat,
        verbosity: u8,
        clock: Clock,
        output: Box<dyn Write + Send>,
    ) -> Self {
        Lines {
            format,
            verbosity: Verbosity::new(verbosity),
            clock,
            process: std::process::id(),
            output: Mutex::new(output),
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Lines({:?}, v={})", self.format, self.verbosity.get())
    }
}

/// From which verbosity on something is written.
fn needed(metadata: &Metadata<'_>) -> u8 {
    let target = metadata.target();
    let ours = match target {
        V1 => return 1,
        V2 => return 2,
        V3 => return 3,
        target => target.starts_with(OURS),
    };
    match *metadata.level() {
        Level::ERROR | Level::WARN if target.starts_with(REQUESTS) => 4,
        // Some libraries warn at every connection.
        Level::WARN if !ours => 1,
        Level::ERROR | Level::WARN => 0,
        Level::INFO => {
            if ours {
                0
            } else {
                2
            }
        }
        Level::DEBUG => {
            if ours {
                4
            } else {
                6
            }
        }
        Level::TRACE => {
            if ours {
                5
            } else {
                8
            }
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Spans write nothing.
        metadata.is_event() && needed(metadata) <= self.verbosity.get()
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = String::with_capacity(256);
        match self.format {
            LoggingFormat::Text => format::text(&mut line, event, (self.clock)(), self.process),
            LoggingFormat::Json => {
                format::json(&mut line, event, (self.clock)(), needed(event.metadata()));
            }
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nobody left to tell if standard error is closed.
        let _ = output.write_all(line.as_bytes());
    }
}
