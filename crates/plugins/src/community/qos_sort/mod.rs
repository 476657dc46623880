//! QOSSort: the queue by priority, then by quality of service.

use supercargo_framework::{
    Context, Extensions, NoArgs, Plugin, PodField, QueueRank, QueueSort, QueuedPod, Reads,
};
use supercargo_model::pod::QosClass;

/// # What
/// Tries pods of higher priority first, and among equals those to whom more is promised: `Guaranteed` before `Burstable` before
/// `BestEffort`. Pods of one class go by the time at which they came into the queue.
///
/// # Why
/// Of two pods that matter alike, the one that has said exactly what it needs gets the room that is left.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// plugins:
///   queueSort: {enabled: [{name: QOSSort}], disabled: [{name: "*"}]}
/// ```
/// All profiles of a scheduler sort their queue by the same plugin.
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct QosSort;

impl Plugin for QosSort {
    const NAME: &'static str = "QOSSort";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        QosSort
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.queue_sort()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Priority, PodField::Requests, PodField::Status])
    }
}

impl QueueSort for QosSort {
    fn less(&self, _: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        rank(a) < rank(b)
    }

    fn rank(&self, _: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        Some(rank(pod))
    }
}

/// Priorities are numbers of 32 bits, so that the class fits below them.
fn rank(queued: &QueuedPod) -> QueueRank {
    let class = match queued.pod.qos_class() {
        QosClass::Guaranteed => 0,
        QosClass::Burstable => 1,
        QosClass::BestEffort => 2,
    };
    [class - 4 * i64::from(queued.pod.priority()), queued.queued_at.nanoseconds()]
}

#[cfg(test)]
mod tests;
