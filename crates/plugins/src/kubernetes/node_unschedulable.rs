//! NodeUnschedulable: pods keep off nodes that are cordoned.

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, Hint, NoArgs, NodeField,
    Plugin, PodField, Reads, Status,
};
use supercargo_model::taints::{Effect, Taint, UNSCHEDULABLE_TAINT};
use supercargo_model::{NodeRef, Pod};

const REASON: &str = "node(s) were unschedulable";

/// # What
/// Keeps pods off nodes with `spec.unschedulable`, unless they tolerate `node.kubernetes.io/unschedulable`.
///
/// # Why
/// `kubectl cordon` takes a node out of service for new pods.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// spec:
///   tolerations:
///   - key: node.kubernetes.io/unschedulable   # may run on cordoned nodes all the same
///     operator: Exists
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodeUnschedulable {
    taint: Taint,
}

impl Plugin for NodeUnschedulable {
    const NAME: &'static str = "NodeUnschedulable";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        let taint = Taint { key: UNSCHEDULABLE_TAINT.into(), value: "".into(), effect: Effect::NoSchedule };
        NodeUnschedulable { taint }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Tolerations]).node(&[NodeField::Unschedulable])
    }
}

impl Filter for NodeUnschedulable {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if node.is_unschedulable() && !self.taint.is_tolerated_by(&cycle.pod.spec.tolerations) {
            return Status::unresolvable(REASON);
        }
        Status::success()
    }
}

impl Enqueue for NodeUnschedulable {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_TAINT)),
            ClusterEvent::pod(Actions::UPDATE_POD_TOLERATION),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let helps = match change {
            Change::Node { old, new: Some(new) } => {
                !new.is_unschedulable() && old.is_none_or(|old| old.is_unschedulable())
            }
            Change::Pod { new: Some(new), .. } => {
                new.uid == pod.uid && self.taint.is_tolerated_by(&new.spec.tolerations)
            }
            _ => true,
        };
        Hint::queue_if(helps)
    }
}

#[cfg(test)]
mod tests;
