//! What is logged while a test runs.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Keeps the lines that are written without `--v`.
#[derive(Clone, Default)]
pub(crate) struct Logged(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl<S: Subscriber> Layer<S> for Logged {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // Lines of a level of verbosity have a target of that name.
        if *metadata.level() > Level::INFO || !metadata.target().starts_with("supercargo") {
            return;
        }
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().expect("no panic").push(fields.0);
    }
}

impl Logged {
    /// Keeps what this thread logs, as long as the guard is there.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        let logged = Logged::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(logged.clone()));
        (logged, guard)
    }

    /// The fields of all lines so far.
    pub(crate) fn text(&self) -> String {
        self.0.lock().expect("no panic").join("\n")
    }
}
