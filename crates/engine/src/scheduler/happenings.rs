//! What happened in the cluster, in the words that plugins wait for.

use std::sync::Arc;

use supercargo_framework::{Actions, Change, ClusterEvent};
use supercargo_model::pod::GeneratedClaim;
use supercargo_model::{NodeRef, Object, ObjectKey, Pod, Row, Snapshot};

/// Something that happened, kept with what it happened to.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    pub(super) event: ClusterEvent,
    pub(super) what: What,
}

/// What something happened to, before and after.
#[derive(Clone, Debug)]
pub(super) enum What {
    Pod { old: Option<Arc<Pod>>, new: Option<Arc<Pod>> },
    Node { old: Option<(Snapshot, Row)>, new: Option<(Snapshot, Row)> },
    Object { old: Option<Object>, new: Option<Object> },
}

impl What {
    /// The name of what it happened to.
    pub(super) fn key(&self) -> ObjectKey {
        let found = match self {
            What::Pod { old, new } => new
                .as_ref()
                .or(old.as_ref())
                .map(|pod| ObjectKey { namespace: (*pod.namespace).into(), name: (*pod.name).into() }),
            What::Node { old, new } => new.as_ref().or(old.as_ref()).map(|(cluster, row)| ObjectKey {
                namespace: Box::default(),
                name: (**cluster.node(*row).name()).into(),
            }),
            What::Object { old, new } => new.as_ref().or(old.as_ref()).map(|object| object.key.clone()),
        };
        found.unwrap_or_else(|| ObjectKey { namespace: Box::default(), name: Box::default() })
    }

    pub(super) fn change(&self) -> Change<'_> {
        fn node(state: &Option<(Snapshot, Row)>) -> Option<NodeRef<'_>> {
            state.as_ref().map(|(cluster, row)| cluster.node(*row))
        }
        match self {
            What::Pod { old, new } => Change::Pod { old: old.as_deref(), new: new.as_deref() },
            What::Node { old, new } => Change::Node { old: node(old), new: node(new) },
            What::Object { old, new } => Change::Object { old: old.as_ref(), new: new.as_ref() },
        }
    }
}

/// What it means that a pod changed; an update of no particular kind if nothing that anybody waits for did.
pub(super) fn pod_update(old: &Pod, new: &Pod) -> Vec<ClusterEvent> {
    let mut actions = Vec::new();
    if old.labels != new.labels {
        actions.push(Actions::UPDATE_POD_LABEL);
    }
    if asks_for_less(old, new) {
        actions.push(Actions::UPDATE_POD_SCALE_DOWN);
    }
    if !old.spec.scheduling_gates.is_empty() && new.spec.scheduling_gates.is_empty() {
        actions.push(Actions::UPDATE_POD_GATES_ELIMINATED);
    }
    // As upstream: tolerations can only be added.
    if old.spec.tolerations.len() != new.spec.tolerations.len() {
        actions.push(Actions::UPDATE_POD_TOLERATION);
    }
    if generated_claims(old) != generated_claims(new) {
        actions.push(Actions::UPDATE_POD_GENERATED_CLAIM);
    }
    if actions.is_empty() {
        actions.push(Actions::UPDATE);
    }
    actions.into_iter().map(ClusterEvent::pod).collect()
}

fn generated_claims(pod: &Pod) -> &[GeneratedClaim] {
    pod.status.as_ref().map_or(&[], |status| &status.generated_claims)
}

/// Whether a pod takes less of any resource than it did, or nothing any more.
fn asks_for_less(old: &Pod, new: &Pod) -> bool {
    let (old, new) = (&old.requests().resources, &new.requests().resources);
    new.milli_cpu < old.milli_cpu
        || new.memory < old.memory
        || new.ephemeral_storage < old.ephemeral_storage
        || old.scalars().any(|(name, amount)| new.scalar(name).unwrap_or(0) < amount)
}

/// What it means that a node changed, in the order in which upstream tells of it. Nothing, if nothing that matters did.
pub(super) fn node_update(old: NodeRef<'_>, new: NodeRef<'_>) -> Vec<ClusterEvent> {
    let (before, after) = (old.facts(), new.facts());
    let changes = [
        (before.unschedulable && !after.unschedulable, Actions::UPDATE_NODE_TAINT),
        (
            before.allocatable != after.allocatable || before.allowed_pods != after.allowed_pods,
            Actions::UPDATE_NODE_ALLOCATABLE,
        ),
        (old.label_pairs() != new.label_pairs(), Actions::UPDATE_NODE_LABEL),
        (before.taints != after.taints, Actions::UPDATE_NODE_TAINT),
        (before.conditions != after.conditions, Actions::UPDATE_NODE_CONDITION),
        (before.annotations != after.annotations, Actions::UPDATE_NODE_ANNOTATION),
        (before.declared_features != after.declared_features, Actions::UPDATE_NODE_DECLARED_FEATURE),
    ];
    let happened = changes.into_iter().filter(|(happened, _)| *happened);
    happened.map(|(_, actions)| ClusterEvent::node(actions)).collect()
}
