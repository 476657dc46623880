//! NodeDeclaredFeatures: pods go where nodes declare what they need.

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, Hint, NoArgs, NodeField,
    Plugin, PodField, PreFilter, PreFilterResult, Reads, Status,
};
use supercargo_model::{NodeRef, Pod, PodSpec};

const REASON: &str = "node(s) didn't match Pod's required features";

/// # What
/// Keeps a pod that needs a certain ability of its node off nodes that do not declare it in
/// `status.declaredFeatures`.
///
/// # Why
/// During an upgrade some kubelets are older than the API; a pod that uses something new must not land on them.
///
/// # Arguments
/// None.
///
/// # Example
/// A pod with `hostNetwork: true` and `hostUsers: false` needs `UserNamespacesHostNetworkSupport`; one with a
/// restart rule `RestartAllContainers` needs `RestartAllContainersOnContainerExits`.
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodeDeclaredFeatures;

#[derive(Clone)]
struct RequiredFeatures(Vec<&'static str>);

impl Plugin for NodeDeclaredFeatures {
    const NAME: &'static str = "NodeDeclaredFeatures";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        NodeDeclaredFeatures
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Features]).node(&[NodeField::Features])
    }
}

impl PreFilter for NodeDeclaredFeatures {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let features = required_features(&cycle.pod.spec);
        if features.is_empty() {
            return PreFilterResult::Skip;
        }
        cycle.put(RequiredFeatures(features));
        PreFilterResult::AllNodes
    }
}

impl Filter for NodeDeclaredFeatures {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(RequiredFeatures(features)) = cycle.get() else {
            return Status::error(
                r#"error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found"#,
            );
        };
        let declares =
            |feature: &&str| node.declared_features().iter().any(|declared| **declared == **feature);
        if features.iter().all(declares) { Status::success() } else { Status::unresolvable(REASON) }
    }
}

impl Enqueue for NodeDeclaredFeatures {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_DECLARED_FEATURE)),
            ClusterEvent::pod(Actions::UPDATE),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        Hint::queue_if(match change {
            Change::Node { old: Some(old), new: Some(new) } => {
                old.declared_features() != new.declared_features()
            }
            Change::Pod { old: Some(old), new: Some(new) } => {
                new.uid == pod.uid && required_features(&old.spec) != required_features(&new.spec)
            }
            _ => true,
        })
    }
}

fn required_features(spec: &PodSpec) -> Vec<&'static str> {
    let restarts_all = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .any(|container| container.may_restart_all_containers);
    let maps_users_on_host_network = spec.host_network && !spec.host_users;
    [
        (restarts_all, "RestartAllContainersOnContainerExits"),
        (maps_users_on_host_network, "UserNamespacesHostNetworkSupport"),
    ]
    .into_iter()
    .filter_map(|(required, feature)| required.then_some(feature))
    .collect()
}

#[cfg(test)]
mod tests;
