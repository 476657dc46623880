//! Pods that do not say yet why they wait.

use super::{Queue, Waiting};
use crate::scheduler::heap::Slot;

/// Of so many pods is written again at a time what could not be written, the others later: bindings share what requests may be made, and
/// may be all that can be written.
const WRITTEN_AGAIN_MAX: usize = 256;

impl Queue {
    /// A pod that is in the queue, or being tried, to be changed.
    pub(in crate::scheduler) fn find_mut(&mut self, uid: &str) -> Option<&mut Waiting> {
        let slot = *self.by_uid.get(uid)?;
        Some(self.get_mut(slot))
    }

    /// Somebody else says from now on what pods say about why they are not scheduled.
    pub(in crate::scheduler) fn leave_conditions(&mut self) {
        self.pods.iter_mut().flatten().for_each(|waiting| waiting.said.leave());
    }

    /// Some of the pods that wait and could not be written about, others each time.
    pub(super) fn take_unwritten(&mut self) -> Vec<Slot> {
        let unwritten = self.idle_slots().filter(|slot| self.get(*slot).said.is_unwritten());
        let (before, after): (Vec<Slot>, Vec<Slot>) = unwritten.partition(|slot| *slot < self.next_unwritten);
        let taken: Vec<Slot> = after.into_iter().chain(before).take(WRITTEN_AGAIN_MAX).collect();
        self.next_unwritten = taken.last().map_or(0, |last| last + 1);
        taken
    }
}
