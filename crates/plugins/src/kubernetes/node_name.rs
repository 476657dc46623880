//! NodeName: a pod that names its node goes to no other.

use supercargo_framework::{
    Actions, ClusterEvent, Cycle, Enqueue, Extensions, Filter, NoArgs, NodeField, Plugin, PodField, Reads,
    Status,
};
use supercargo_model::{NodeRef, Pod};

const REASON: &str = "node(s) didn't match the requested node name";

/// # What
/// Lets a pod that names a node in `spec.nodeName` run on that node only.
///
/// # Why
/// Such a pod is bound already and never reaches the queue; the plugin matters where pods are tried out.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// spec:
///   nodeName: n1   # elsewhere: node(s) didn't match the requested node name
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodeName;

impl Plugin for NodeName {
    const NAME: &'static str = "NodeName";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        NodeName
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::NodeName]).node(&[NodeField::Name])
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.node_name.is_some()
    }
}

impl Filter for NodeName {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match &cycle.pod.node_name {
            Some(name) if name != node.name() => Status::unresolvable(REASON),
            _ => Status::success(),
        }
    }
}

impl Enqueue for NodeName {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD)]
    }
}

#[cfg(test)]
mod tests;
