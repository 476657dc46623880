//! What is logged while a test runs.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

/// Keeps what is logged.
#[derive(Clone, Default)]
pub(crate) struct Logged(Arc<Mutex<String>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Logged {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        struct Visitor<'a>(&'a mut String);
        impl tracing::field::Visit for Visitor<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, "{field}={value:?} ");
            }
        }
        event.record(&mut Visitor(&mut self.0.lock().expect("free")));
    }
}

impl Logged {
    /// Keeps what this thread logs, as long as the guard is there.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        let logged = Logged::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(logged.clone()));
        (logged, guard)
    }

    /// The fields of all events so far.
    pub(crate) fn text(&self) -> String {
        self.0.lock().expect("free").clone()
    }
}
