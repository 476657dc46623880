//! PodTopologySpread: pods of one application spread evenly over zones, racks and nodes.

mod args;
mod constraints;
mod counting;
mod filtering;
mod logarithm;
mod scoring;

use args::DefaultingType;
pub use args::PodTopologySpreadArgs;

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Enqueue, Extensions, Hint, NodeField, Plugin, PodField, Reads,
    Unread,
};
use supercargo_model::kinds::{ReplicaSet, ReplicationController, Service, StatefulSet};
use supercargo_model::pod::{InclusionPolicy, SpreadConstraint, WhenUnsatisfiable};
use supercargo_model::{Kind, KindId, LabelLookup, NodeRef, Pod, Snapshot};

use super::takes_room;
use constraints::Constraint;

/// # What
/// Keeps the number of matching pods in the domains of a topology (zones, racks, nodes) close to each other: a
/// constraint with `DoNotSchedule` rejects nodes, one with `ScheduleAnyway` lowers their score.
///
/// # Why
/// An application should survive the loss of a zone or a node.
///
/// # Arguments
/// - `defaultingType`: `System` (the default) spreads pods without constraints of their own softly over nodes and
///   zones; `List` uses `defaultConstraints` for them. Which pods count is taken from the services and the controller
///   that select the pod.
/// - `defaultConstraints`: see above; without selectors.
///
/// # Example
/// ```yaml
/// topologySpreadConstraints:
/// - maxSkew: 1
///   topologyKey: topology.kubernetes.io/zone
///   whenUnsatisfiable: DoNotSchedule
///   labelSelector: {matchLabels: {app: web}}
/// ```
///
/// # Difference from upstream
/// None. As upstream, an empty `labelSelector` counts no existing pods, though it matches the pod itself; the fix
/// `emptySpreadSelector` counts all pods of the namespace.
#[derive(Debug)]
pub struct PodTopologySpread {
    default_constraints: Vec<SpreadConstraint>,
    system_defaulted: bool,
}

impl Plugin for PodTopologySpread {
    const NAME: &'static str = "PodTopologySpread";
    type Args = PodTopologySpreadArgs;

    fn new(args: PodTopologySpreadArgs) -> Self {
        let system_defaulted = args.defaulting_type == DefaultingType::System;
        let default_constraints =
            if system_defaulted { args::system_defaults() } else { args.default_constraints() };
        PodTopologySpread { default_constraints, system_defaulted }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().pre_score().score().enqueue()
    }

    fn reads(&self) -> Reads {
        let own = Reads::nothing()
            .pod(&[
                PodField::Namespace,
                PodField::Labels,
                PodField::SpreadConstraints,
                PodField::NodeSelector,
                PodField::NodeAffinity,
                PodField::Tolerations,
                PodField::Controller,
            ])
            .node(&[NodeField::Name, NodeField::Labels, NodeField::Taints, NodeField::Pods])
            .topology()
            .feasible_set();
        if self.default_constraints.is_empty() {
            return own;
        }
        own.kind::<Service>().kind::<ReplicationController>().kind::<ReplicaSet>().kind::<StatefulSet>()
    }

    fn depends_on(&self, unread: &Unread, pod: &Pod, _: &Snapshot) -> bool {
        // Pods are counted, and what selects them is looked up, in the pod's own namespace.
        if unread.knows(&pod.namespace) {
            return false;
        }
        let has_own = !pod.spec.spread_constraints.is_empty();
        let may_be_selected = !pod.labels.is_empty();
        let is_owned_by = |kind: KindId| {
            pod.controller
                .as_ref()
                .is_some_and(|owner| *owner.kind == *kind.kind && *owner.api_version == *kind.api_version())
        };
        match unread.kind {
            KindId::POD => has_own || (!self.default_constraints.is_empty() && may_be_selected),
            Service::ID => !has_own && may_be_selected,
            kind => !has_own && is_owned_by(kind),
        }
    }

    fn subject(&self) -> &'static str {
        "spreading"
    }
}

impl Enqueue for PodTopologySpread {
    fn events(&self) -> Vec<ClusterEvent> {
        let pod =
            Actions::ADD.or(Actions::UPDATE_POD_LABEL).or(Actions::UPDATE_POD_TOLERATION).or(Actions::DELETE);
        let node =
            Actions::ADD.or(Actions::DELETE).or(Actions::UPDATE_NODE_LABEL).or(Actions::UPDATE_NODE_TAINT);
        vec![ClusterEvent::pod(pod), ClusterEvent::node(node)]
    }

    fn hint(&self, context: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        if let Change::Pod { old, new } = change
            && ![old, new].into_iter().flatten().all(|other| is_involved(pod, other))
        {
            return Hint::Skip;
        }
        let Ok(constraints) = self.constraints(context, pod, WhenUnsatisfiable::DoNotSchedule) else {
            return Hint::Queue;
        };
        Hint::queue_if(match change {
            Change::Pod { old, new } => pod_change_helps(pod, *old, *new, &constraints),
            Change::Node { old, new } => node_change_helps(old.as_ref(), new.as_ref(), &constraints),
            Change::Object { .. } => true,
        })
    }
}

/// Whether the other pod can count at all: it is the pod itself, or takes room in its namespace.
fn is_involved(pod: &Pod, other: &Pod) -> bool {
    other.uid == pod.uid || (takes_room(other) && other.namespace == pod.namespace)
}

fn pod_change_helps(pod: &Pod, old: Option<&Pod>, new: Option<&Pod>, constraints: &[Constraint]) -> bool {
    let matches_any = |other: &Pod| constraints.iter().any(|constraint| constraint.counts(other));
    match (old, new) {
        (Some(old), Some(new)) => {
            let honors_taints =
                constraints.iter().any(|constraint| constraint.node_taints_policy == InclusionPolicy::Honor);
            let tolerates_more = new.uid == pod.uid && old.spec.tolerations != new.spec.tolerations;
            (tolerates_more && honors_taints)
                || constraints.iter().any(|constraint| constraint.counts(old) != constraint.counts(new))
        }
        (Some(gone), None) => matches_any(gone),
        (None, Some(come)) => matches_any(come),
        (None, None) => true,
    }
}

fn node_change_helps(
    old: Option<&NodeRef<'_>>,
    new: Option<&NodeRef<'_>>,
    constraints: &[Constraint],
) -> bool {
    let has_all_keys = |node: &NodeRef<'_>| {
        constraints.iter().all(|constraint| node.label(&constraint.topology_key).is_some())
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            let moved = constraints
                .iter()
                .any(|constraint| old.label(&constraint.topology_key) != new.label(&constraint.topology_key));
            has_all_keys(old) != has_all_keys(new)
                || (has_all_keys(new) && (moved || old.taints() != new.taints()))
        }
        (old, new) => old.or(new).is_none_or(has_all_keys),
    }
}

#[cfg(test)]
mod tests;
