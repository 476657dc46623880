//! Which nodes a DaemonSet is meant for.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_model::taints::find_forbidding;
use supercargo_model::{NodeRef, Pod, Snapshot};

use super::Workload;
use super::seats::{Seat, Seats};

/// A seat for each node that the DaemonSet is meant for and has no pod on. `loose` is a pod of it without a node.
pub(super) fn seats(
    cluster: &Snapshot,
    workload: &Workload,
    loose: Option<&Pod>,
    members: &[&Arc<Pod>],
) -> Seats {
    let Some(loose) = loose else { return Seats::default() };
    let eligible: Vec<Arc<str>> =
        cluster.nodes().filter(|node| is_meant_for(loose, node)).map(|node| node.name().clone()).collect();
    let taken: BTreeSet<&str> = members.iter().filter_map(|pod| node_of(pod)).collect();
    let free = eligible.iter().filter(|node| !taken.contains(&***node));
    let name = &workload.words.metadata.name;
    let seats: Vec<Seat> = free
        .map(|node| Seat { node: Some(node.clone()), ..Seat::named(format!("{name}-new-{node}")) })
        .collect();
    let (wants, missing) = (eligible.len() as u64, seats.len() as u64);
    let exists = wants - missing;
    let mut remarks = Vec::new();
    let others = cluster.node_count() - eligible.len();
    if others > 0 {
        let nodes = if others == 1 { "1 node".to_owned() } else { format!("{others} nodes") };
        remarks.push(format!("it is not meant for {nodes}, by name, labels or taints"));
    }
    let by_status = u64::try_from(workload.words.status.current_number_scheduled).unwrap_or(0);
    if by_status > exists && missing > 0 {
        remarks.push(format!("{by_status} exist by its status, {exists} of them here: add its pods"));
    }
    Seats { wants, exists, missing, seats, remarks }
}

/// As the controller sees it: by the name of the node, its labels and its taints; what room there is does not count.
fn is_meant_for(pod: &Pod, node: &NodeRef<'_>) -> bool {
    pod.node_name.as_ref().is_none_or(|wanted| wanted == node.name())
        && pod.spec.admits_node(node)
        && find_forbidding(node.taints(), &pod.spec.tolerations).is_none()
}

/// The node that a daemon's pod runs on, or is for.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    let named = || pod.spec.node_affinity.required.as_ref()?.named_nodes()?.first();
    pod.node_name.as_deref().or_else(|| named().map(|name| &**name))
}
