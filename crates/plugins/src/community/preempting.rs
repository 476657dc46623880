//! What plugins of the community say where preemption finds no victims.

use supercargo_framework::{Cycle, Status};
use supercargo_model::NodeRef;

/// Up to so many nodes, each of them is named, as upstream does with any number: a message with thousands of names helps nobody, and
/// the API server takes none that is so long.
const NODES_NAMED_MAX: usize = 100;

/// The word on a node where nobody may go.
pub(super) fn no_victims(cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
    no_victims_anywhere(cycle).unwrap_or_else(|| {
        let (node, pod) = (node.name(), &cycle.pod.name);
        Status::unresolvable(format!("No victims found on node {node} for preemptor pod {pod}"))
    })
}

/// The same, where it is one for all nodes.
pub(super) fn no_victims_anywhere(cycle: &Cycle<'_>) -> Option<Status> {
    let are_many = cycle.cluster().node_count() > NODES_NAMED_MAX;
    are_many.then(|| Status::unresolvable(format!("No victims found for preemptor pod {}", cycle.pod.name)))
}
