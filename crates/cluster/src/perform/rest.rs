//! Rests of the thread that schedules, after it has sent bindings.
//!
//! What comes of a binding comes twice within a few milliseconds: as the answer to the request, and as a change of the pod from the
//! watch. Neither is urgent, and a thread that is woken for each of them finds its caches cold twice. A thread that rests meanwhile
//! is woken once for both. That is a sixth of what a scheduler costs that is given 100 pods a second; a pod that comes just then
//! waits for a millisecond or two.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a thread rests: most API servers have answered by then.
const REST: Duration = Duration::from_millis(3);
/// How long a thread works at least between two rests, so that many pods do not wait longer than a few.
const REST_PAUSE: Duration = Duration::from_millis(5);

thread_local! {
    /// Whether this thread has sent a binding since its last rest.
    static HAS_SENT: Cell<bool> = const { Cell::new(false) };
    /// When the last rest of this thread ended.
    static RESTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// This thread sends a binding.
pub(super) fn binding_sent() {
    HAS_SENT.set(true);
}

/// Lets this thread rest if it has sent bindings. For a runtime to call when the thread has nothing to do but wait.
pub fn rest_after_bindings() {
    let is_rested = RESTED.get().is_some_and(|ended| ended.elapsed() < REST_PAUSE);
    if HAS_SENT.get() && !is_rested {
        sleep(REST);
        HAS_SENT.set(false);
        RESTED.set(Some(Instant::now()));
    }
}
