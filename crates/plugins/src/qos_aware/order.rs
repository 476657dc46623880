//! Which pod goes first.

use supercargo_framework::{Context, OrderChanges, QueueRank, QueueSort, QueuedPod};
use supercargo_model::{Pod, Timestamp};

use super::QosAware;
use super::books::{Books, ORDER_STEP, State};
use super::terms::{Terms, is_system};

/// Before all others.
const SYSTEM: QueueRank = [i64::MIN, 0];
/// Behind all that are about to violate their SLO.
const FAR_FROM_VIOLATION: i64 = i64::MAX;

impl QueueSort for QosAware {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        self.rank(context, a) < self.rank(context, b)
    }

    fn rank(&self, context: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        let pod = &*pod.pod;
        if is_system(pod) {
            return Some(SYSTEM);
        }
        let nothing = State::default();
        let state = context.memories.get::<Books>().map_or(&nothing, |books| books.at(context.now));
        let terms = Terms::of(pod);
        let metric = state.waiting_metric(pod, &terms, context.now);
        Some(rank(metric, terms.slo, self.safety_margin))
    }

    /// With time alone: what happens in the cluster counts from the next moment on, and what is remembered of the last one stays.
    fn changes(&self) -> OrderChanges {
        OrderChanges::with_time(ORDER_STEP)
    }
}

impl QosAware {
    /// The rank of any pod, as things are now.
    pub(super) fn rank_now(&self, state: &State, pod: &Pod, now: Timestamp) -> QueueRank {
        if is_system(pod) {
            return SYSTEM;
        }
        let slo = state.pods.get(&pod.uid).map_or_else(|| Terms::of(pod).slo, |known| known.slo);
        rank(state.metric(pod, now), slo, self.safety_margin)
    }
}

/// Those about to violate their SLO go first: the more important, and then the nearer ones. Then the others, the nearer ones first.
fn rank(metric: f64, importance: f64, safety_margin: f64) -> QueueRank {
    if metric < safety_margin {
        [-in_order(importance), in_order(metric)]
    } else {
        [FAR_FROM_VIOLATION, in_order(metric)]
    }
}

/// A number as an integer of the same order.
fn in_order(number: f64) -> i64 {
    // There is one zero.
    let bits = (number + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_two_comparisons() {
        const MARGIN: f64 = 20.0;
        let metrics =
            [f64::NEG_INFINITY, -1e9, -2.4, -0.0, 0.0, 1e-9, 19.99, 20.0, 20.01, 1e12, f64::INFINITY];
        let all: Vec<(f64, f64)> =
            metrics.iter().flat_map(|metric| [0.0, 0.5, 0.8, 1.0].map(|slo| (*metric, slo))).collect();
        // As the original compares: pairs that differ in importance while both are in danger go by that, and all others by the metric.
        let less = |a: &(f64, f64), b: &(f64, f64)| {
            if a.0 < MARGIN && b.0 < MARGIN && a.1 != b.1 { a.1 > b.1 } else { a.0 < b.0 }
        };
        for a in &all {
            for b in &all {
                let by_rank = rank(a.0, a.1, MARGIN) < rank(b.0, b.1, MARGIN);
                assert_eq!(by_rank, less(a, b), "{a:?} and {b:?}");
            }
        }
        assert!(all.iter().all(|pod| SYSTEM < rank(pod.0, pod.1, MARGIN)));
    }
}
