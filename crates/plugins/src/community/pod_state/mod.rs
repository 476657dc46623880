//! PodState: nodes that pods are leaving, and that no pods are nominated to.

use supercargo_framework::{
    Cycle, Extensions, NoArgs, NodeField, NodeScore, Normalization, Plugin, Reads, Score, Status,
};
use supercargo_model::NodeRef;

use super::normalize::by_range;

/// # What
/// Prefers nodes that many pods are leaving and few pods are nominated to: one point for each pod that is being deleted, one less for
/// each nominated pod, the pod itself among them. The points are stretched from 0 to 100; where all nodes have the same, they get 0.
///
/// # Why
/// A node that pods are leaving will have room; one that others are nominated to is promised already.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: PodState, weight: 1}]}
/// ```
/// With 2, -1 and 0 points: 100, 0 and 33.
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct PodState;

impl Plugin for PodState {
    const NAME: &'static str = "PodState";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        PodState
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Name, NodeField::Pods])
    }
}

impl Score for PodState {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let leaving = node.pods().iter().filter(|pod| pod.is_terminating()).count();
        let nominated = cycle.cluster().nominated_to(node.name()).len();
        Ok(leaving as i64 - nominated as i64)
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        by_range(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRange
    }
}

#[cfg(test)]
mod tests;
