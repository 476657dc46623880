//! Points in time that move along when the clock is set.

use supercargo_model::Timestamp;

use super::{Queue, Waiting};

impl Waiting {
    /// The clock was set: moves all points in time along.
    pub(in crate::scheduler) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        moved(&mut self.queued.queued_at);
        for time in [&mut self.queued.first_attempt_at, &mut self.tried_at, &mut self.flushed_at] {
            time.iter_mut().for_each(&moved);
        }
    }
}

impl Queue {
    /// The clock was set: moves all points in time along.
    pub(in crate::scheduler) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        self.pods.iter_mut().flatten().for_each(|waiting| waiting.move_times(&moved));
        self.next_flush.iter_mut().for_each(moved);
        // All by as much, so that the order stays; but ranks are of times before.
        self.order.set_stale();
    }
}
