//! The clock on the wall was set: what waits goes on waiting for as long as it would have.

use supercargo_model::Timestamp;

use super::Scheduler;

impl Scheduler {
    /// The clock was set forward by so many seconds, or back if they are negative: waits at Permit, time-outs of steps,
    /// backoffs, look-ups, the ends of facts and what plugins remember move along, or a clock that is set back by an hour would hold pods back for an hour.
    ///
    /// Whole seconds only: backoffs end with whole seconds, and pods whose backoffs end together must go on doing so.
    pub fn clock_was_set(&mut self, seconds: i64) {
        let moved = |time: &mut Timestamp| *time = time.moved(seconds);
        self.bindings.change_all(|binding| binding.move_times(moved));
        self.queue.move_times(moved);
        self.observers.move_times(moved);
        self.engine.memories().clock_was_set(seconds);
        self.queries.move_times(moved);
        self.inquiries.move_times(moved);
        self.evictions.move_times(moved);
    }
}
