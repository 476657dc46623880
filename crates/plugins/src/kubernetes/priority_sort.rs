//! PrioritySort: the queue by priority, then by time.

use supercargo_framework::{
    Context, Extensions, NoArgs, Plugin, PodField, QueueRank, QueueSort, QueuedPod, Reads,
};

/// # What
/// Tries pods of higher priority first, and among equals the one that has waited longest.
///
/// # Why
/// What matters more should not wait behind what matters less.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// spec:
///   priorityClassName: system-cluster-critical   # spec.priority 2000000000: goes first
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct PrioritySort;

impl Plugin for PrioritySort {
    const NAME: &'static str = "PrioritySort";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        PrioritySort
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.queue_sort()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Priority])
    }
}

impl QueueSort for PrioritySort {
    fn less(&self, _: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        let (priority_a, priority_b) = (a.pod.priority(), b.pod.priority());
        priority_a > priority_b || (priority_a == priority_b && a.queued_at < b.queued_at)
    }

    fn rank(&self, _: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        Some([-i64::from(pod.pod.priority()), pod.queued_at.nanoseconds()])
    }
}

#[cfg(test)]
mod tests;
