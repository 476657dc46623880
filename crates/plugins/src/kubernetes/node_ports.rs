//! NodePorts: a pod's host ports are free on its node.

use std::sync::Arc;

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, Hint, NoArgs, NodeField,
    Plugin, PodField, PreFilter, PreFilterResult, Reads, Status,
};
use supercargo_model::pod::HostPort;
use supercargo_model::{NodeRef, Pod};

use super::takes_room;

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

/// # What
/// Keeps a pod off nodes where one of its host ports is taken. Ports of containers and sidecars count; the address
/// `0.0.0.0` stands for all addresses of the host.
///
/// # Why
/// Two processes cannot listen on one port.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// ports:
/// - {containerPort: 80, hostPort: 8080}   # one such pod a node
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodePorts;

#[derive(Clone)]
struct WantedPorts(Arc<[HostPort]>);

impl Plugin for NodePorts {
    const NAME: &'static str = "NodePorts";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        NodePorts
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::HostPorts]).node(&[NodeField::Pods])
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.spec.host_ports().next().is_some()
    }

    fn subject(&self) -> &'static str {
        "host ports"
    }
}

impl PreFilter for NodePorts {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let ports: Arc<[HostPort]> = cycle.pod.spec.host_ports().cloned().collect();
        if ports.is_empty() {
            return PreFilterResult::Skip;
        }
        cycle.put(WantedPorts(ports));
        PreFilterResult::AllNodes
    }
}

impl Filter for NodePorts {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(WantedPorts(wanted)) = cycle.get() else {
            return Status::error(r#"reading "PreFilterNodePorts" from cycleState: not found"#);
        };
        let mut taken = node.usage().host_ports().iter();
        if taken.any(|taken| conflicts(wanted, taken)) {
            Status::unschedulable(REASON)
        } else {
            Status::success()
        }
    }
}

impl Enqueue for NodePorts {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::DELETE), ClusterEvent::node(Actions::ADD)]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        Hint::queue_if(match change {
            Change::Pod { old: Some(deleted), new: None } => {
                let wanted: Vec<HostPort> = pod.spec.host_ports().cloned().collect();
                takes_room(deleted) && deleted.spec.host_ports().any(|freed| conflicts(&wanted, freed))
            }
            _ => true,
        })
    }
}

fn conflicts(wanted: &[HostPort], taken: &HostPort) -> bool {
    wanted.iter().any(|wanted| wanted.conflicts_with(taken))
}

#[cfg(test)]
mod tests;
