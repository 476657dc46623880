//! In which order another scheduler has decided.
//!
//! A scheduler decides for one pod after the other, but binds many at a time, so bindings are seen in another order: a pod may
//! turn up on its node before another that was decided for earlier, and counted. Bindings are therefore held for a moment,
//! longer while a pod that leaves the queue before them has no node yet, and those that were under way at the same time are
//! put into the order in which pods leave a scheduler's queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use supercargo_model::{Pod, Timestamp};

/// How long a binding is held: bindings of pods that were decided for one after the other overtake each other by milliseconds.
pub(super) const HOLD: Duration = Duration::from_millis(500);
/// How long a binding is held while a pod that leaves the queue before it has neither a node nor been tried in vain, as on a
/// machine that is too busy: its scheduler may be about to bind that pod, or be about to say why it cannot.
pub(super) const HOLD_FOR_EARLIER: Duration = Duration::from_secs(5);
/// So many bindings are held at most.
const HELD_MAX: usize = 4096;

/// A pod that waits for a node.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) pod: Arc<Pod>,
    /// The number of the event since when it waits.
    pub(super) since: u64,
}

/// Where a pod stands in a scheduler's queue: the most important first, and among equals the one that has waited longest.
type Place = (Reverse<i32>, u64);

impl Waiting {
    fn place(&self) -> Place {
        (Reverse(self.pod.priority()), self.since)
    }
}

/// The pods that wait for a node, by UID.
#[derive(Debug, Default)]
pub(super) struct WaitingPods {
    pods: BTreeMap<Arc<str>, Waiting>,
    /// The places of those that a scheduler has not tried since they came: no gate holds them back.
    untried: BTreeSet<Place>,
}

impl WaitingPods {
    /// A pod waits, with the number of the event that says so. A pod that was tried in vain queues up again.
    pub(super) fn put(&mut self, pod: Arc<Pod>, was_tried: bool, event: u64) {
        let known = self.remove(&pod.uid).filter(|_| !was_tried);
        let since = known.map_or(event, |known| known.since);
        let is_gated = !pod.spec.scheduling_gates.is_empty();
        let waiting = Waiting { pod, since };
        if !was_tried && !is_gated {
            self.untried.insert(waiting.place());
        }
        self.pods.insert(waiting.pod.uid.clone(), waiting);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Waiting> {
        let waiting = self.pods.remove(uid)?;
        self.untried.remove(&waiting.place());
        Some(waiting)
    }

    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    pub(super) fn uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pods.keys()
    }

    /// Whether a pod that waited already at that event, and that no scheduler has tried since, leaves the queue before this place.
    fn has_earlier(&self, place: Place, event: u64) -> bool {
        self.untried.range(..place).any(|(_, since)| *since < event)
    }
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

    /// When the next binding has been held long enough, as far as these pods that wait let one say.
    pub(super) fn deadline(&self, waiting: &WaitingPods) -> Option<Timestamp> {
        let oldest = self.0.front()?;
        let first = &self.0[self.first()?];
        let is_early = waiting.has_earlier(first.waiting.place(), oldest.number);
        Some(oldest.seen_at.after(if is_early { HOLD_FOR_EARLIER } else { HOLD }))
    }

    /// The next binding that has been held long enough.
    pub(super) fn due(&mut self, waiting: &WaitingPods, now: Timestamp) -> Option<Binding> {
        let is_due =
            self.0.len() > HELD_MAX || self.deadline(waiting).is_some_and(|deadline| deadline <= now);
        if is_due { self.next() } else { None }
    }

    /// The binding that was decided on first, as far as can be told.
    pub(super) fn next(&mut self) -> Option<Binding> {
        let first = self.first()?;
        self.0.remove(first)
    }

    /// Of the bindings whose pods waited already when the oldest was seen, the one whose pod leaves a queue first.
    fn first(&self) -> Option<usize> {
        let oldest = self.0.front()?.number;
        let concurrent = self.0.iter().enumerate().filter(|(_, binding)| binding.waiting.since < oldest);
        concurrent.min_by_key(|(_, binding)| binding.waiting.place()).map(|(place, _)| place)
    }
}
