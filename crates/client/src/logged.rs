//! What is logged while a test runs.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Keeps the fields of what is logged, a line for each event.
#[derive(Clone, Debug, Default)]
pub struct Logged {
    lines: Arc<Mutex<Vec<String>>>,
    /// Whether lines are left out that are written with `--v` only.
    is_brief: bool,
}

impl Logged {
    /// Keeps everything that this thread logs, as long as the guard is there.
    pub fn begin() -> (Self, DefaultGuard) {
        Logged::default().listen()
    }

    /// Keeps the lines that this thread writes without `--v`, as long as the guard is there.
    pub fn without_verbosity() -> (Self, DefaultGuard) {
        Logged { is_brief: true, ..Logged::default() }.listen()
    }

    /// All lines so far.
    pub fn text(&self) -> String {
        self.lines.lock().expect("no panic").join("\n")
    }

    fn listen(self) -> (Self, DefaultGuard) {
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()));
        (self, guard)
    }
}

impl<S: Subscriber> Layer<S> for Logged {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // Lines of a level of verbosity have a target of that name.
        let is_verbose = *metadata.level() > Level::INFO || !metadata.target().starts_with("supercargo");
        if self.is_brief && is_verbose {
            return;
        }
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.lines.lock().expect("no panic").push(fields.0);
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
