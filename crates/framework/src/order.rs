//! When the order of waiting pods becomes another one.

use std::time::Duration;

use supercargo_model::Timestamp;

use crate::events::{Change, ClusterEvent};

/// When the order that a [`QueueSort`](crate::QueueSort) puts pods into becomes another one, though the pods have not changed.
///
/// The queue keeps its pods in order and never sorts them all unless this says so: an order that depends on more than the two
/// pods has to declare it here, or pods are tried in an order that was right once.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OrderChanges {
    /// How fine the time is that the order depends on; none if it does not depend on time.
    pub every: Option<Duration>,
    /// The events that may change the order. Those of pods mean all pods: waiting, given a node, bound.
    pub events: Vec<ClusterEvent>,
    /// Whether a change of an object may change the order, if such an event may; none if any change may.
    pub concerns: Option<fn(&Change<'_>) -> bool>,
    /// Whether a pod keeps the rank that it had when it came to be ready.
    pub keeps_ranks: bool,
}

impl OrderChanges {
    /// The order of two pods depends on nothing but them.
    pub fn never() -> Self {
        OrderChanges::default()
    }

    /// The order depends on the time, and is made anew whenever so much of it has passed.
    ///
    /// [`QueueSort::less`](crate::QueueSort::less) finds that time in its context: `now` is a whole multiple of `every`, the last
    /// one that has passed. The finer it is, the more often all waiting pods are put in order: a second costs nothing, and 50,000
    /// waiting pods take a few milliseconds each time.
    pub fn with_time(every: Duration) -> Self {
        OrderChanges { every: Some(every), ..Self::never() }
    }

    /// The order depends on what is in the cluster, and may be another one after any of these events.
    pub fn with_events(events: impl IntoIterator<Item = ClusterEvent>) -> Self {
        OrderChanges { events: events.into_iter().collect(), ..Self::never() }
    }

    /// The same, where only those changes count of which this says so: others, such as those of a status that the order does not look at, do
    /// not put all pods in order again. What happens to waiting pods themselves always counts.
    pub fn with_changes(
        events: impl IntoIterator<Item = ClusterEvent>,
        concerns: fn(&Change<'_>) -> bool,
    ) -> Self {
        OrderChanges { concerns: Some(concerns), ..Self::with_events(events) }
    }

    /// The order depends on what is remembered, or in the cluster, when a pod comes to be ready to be tried. It keeps its place until it
    /// leaves, whatever happens to others: nothing is sorted again. Only for orders of which
    /// [`QueueSort::rank`](crate::QueueSort::rank) has a rank for every pod.
    pub fn on_entry() -> Self {
        OrderChanges { keeps_ranks: true, ..Self::never() }
    }

    /// The order depends on what either says.
    #[must_use]
    pub fn and(mut self, other: OrderChanges) -> Self {
        self.every = [self.every, other.every].into_iter().flatten().min();
        self.concerns = match (self.events.is_empty(), other.events.is_empty()) {
            (_, true) => self.concerns,
            (true, false) => other.concerns,
            // Each speaks for its own events only.
            (false, false) => None,
        };
        self.events.extend(other.events);
        self.keeps_ranks |= other.keeps_ranks;
        self
    }

    /// The moment whose order holds at a time: itself, if the order does not depend on time.
    pub fn moment(&self, now: Timestamp) -> Timestamp {
        let Some(every) = self.every else { return now };
        // Nothing is finer than the clock, and what is coarser than all times never passes.
        let every = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX).max(1);
        Timestamp::from_nanoseconds(now.nanoseconds().div_euclid(every).saturating_mul(every))
    }

    /// Whether an event may change the order.
    pub fn covers(&self, event: &ClusterEvent) -> bool {
        self.events.iter().any(|known| known.covers(event))
    }

    /// Whether a change may change the order, where such an event may.
    pub fn concern(&self, change: &Change<'_>) -> bool {
        self.concerns.is_none_or(|concerns| concerns(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Actions;

    #[test]
    fn time_passes_in_the_steps_that_were_declared() {
        let second = Duration::from_secs(1);
        for (changes, now, expected) in [
            (OrderChanges::never(), 1_999_999_999, 1_999_999_999),
            (OrderChanges::with_time(second), 1_999_999_999, 1_000_000_000),
            (OrderChanges::with_time(second), 2_000_000_000, 2_000_000_000),
            (OrderChanges::with_time(second), -1, -1_000_000_000),
            (OrderChanges::with_time(Duration::ZERO), 17, 17),
            (OrderChanges::with_time(Duration::MAX), 17, 0),
            (OrderChanges::with_time(Duration::MAX), i64::MIN, i64::MIN + 1),
            (OrderChanges::with_time(second).and(OrderChanges::with_time(second / 2)), 1_700, 0),
            (OrderChanges::with_time(second / 2).and(OrderChanges::never()), 700_000_000, 500_000_000),
        ] {
            let moment = changes.moment(Timestamp::from_nanoseconds(now));
            assert_eq!(moment, Timestamp::from_nanoseconds(expected), "{changes:?} at {now}");
        }
    }

    #[test]
    fn events_of_both_count() {
        let came =
            |resource: fn(Actions) -> ClusterEvent| OrderChanges::with_events([resource(Actions::ADD)]);
        let both = came(ClusterEvent::pod).and(came(ClusterEvent::node));
        assert!(
            both.covers(&ClusterEvent::pod(Actions::ADD)) && both.covers(&ClusterEvent::node(Actions::ADD))
        );
        assert!(!both.covers(&ClusterEvent::pod(Actions::DELETE)));
        assert!(!OrderChanges::never().covers(&ClusterEvent::pod(Actions::ADD)));
    }
}
