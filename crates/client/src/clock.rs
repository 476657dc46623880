//! What time it is: the one place where the clock of the machine is read.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use supercargo_model::Timestamp;

/// Tells the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Self {
        Clock(Arc::new(|| {
            #[expect(clippy::disallowed_methods, reason = "whoever drives a cluster lives in its time")]
            let now = SystemTime::now();
            let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            Timestamp::default().after(since_epoch)
        }))
    }

    /// A clock that tells what `now` says, as tests need it.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
