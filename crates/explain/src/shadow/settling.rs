//! In which order another scheduler has decided.
//!
//! A scheduler decides for one pod after the other, but binds many at a time, so bindings are seen in another order: a pod may
//! turn up on its node before another that was decided for earlier, and counted. Bindings are therefore held for a moment,
//! and those that were under way at the same time are put into the order in which pods leave a scheduler's queue.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use supercargo_model::{Pod, Timestamp};

/// How long a binding is held. Bindings of pods that were decided for one after the other overtake each other by
/// milliseconds; it is this long for servers that are slow.
pub(super) const HOLD: Duration = Duration::from_millis(500);
/// So many bindings are held at most.
const HELD_MAX: usize = 4096;

/// A pod that waits for a node.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) pod: Arc<Pod>,
    /// The number of the event since when it waits.
    pub(super) since: u64,
}

/// A pod that has got a node.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) waiting: Waiting,
    /// The pod as it is now.
    pub(super) bound: Arc<Pod>,
    /// The number of the event.
    pub(super) number: u64,
    pub(super) seen_at: Timestamp,
}

/// Bindings that are held, in the order in which they were seen.
#[derive(Debug, Default)]
pub(super) struct Settling(VecDeque<Binding>);

impl Settling {
    pub(super) fn hold(&mut self, binding: Binding) {
        self.0.push_back(binding);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The binding of a pod, if it is held.
    pub(super) fn find(&mut self, uid: &str) -> Option<&mut Binding> {
        self.0.iter_mut().find(|binding| *binding.bound.uid == *uid)
    }

    /// When the next binding has been held long enough.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.0.front().map(|oldest| oldest.seen_at.after(HOLD))
    }

    /// The next binding that has been held long enough.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Binding> {
        let is_due = self.0.len() > HELD_MAX || self.deadline().is_some_and(|deadline| deadline <= now);
        if is_due { self.next() } else { None }
    }

    /// The binding that was decided on first, as far as can be told: of those whose pods waited already when the oldest was
    /// seen, the one that leaves a queue first, which is the most important, and among equals the one that has waited longest.
    pub(super) fn next(&mut self) -> Option<Binding> {
        let oldest = self.0.front()?.number;
        let concurrent = self.0.iter().enumerate().filter(|(_, binding)| binding.waiting.since < oldest);
        let first = concurrent.min_by_key(|(_, binding)| {
            let Waiting { pod, since } = &binding.waiting;
            (Reverse(pod.priority()), *since)
        });
        let (place, _) = first?;
        self.0.remove(place)
    }
}
