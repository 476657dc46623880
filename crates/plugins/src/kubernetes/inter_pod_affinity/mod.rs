//! InterPodAffinity: pods near other pods, or far from them.

mod counting;
mod filtering;
mod scoring;
mod terms;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Args, Change, ClusterEvent, Context, Enqueue, Extensions, FieldProblems, Hint, NodeField,
    Plugin, PodField, Reads, Unread,
};
use supercargo_model::kinds::Namespace;
use supercargo_model::pod::{PodAffinity, PodAffinityTerm};
use supercargo_model::wire::null_default;
use supercargo_model::{KindId, LabelLookup, Labels, NodeRef, Pod, Snapshot};

use super::takes_room;

/// # What
/// Lets a pod run only near certain other pods (affinity) or only far from them (anti-affinity), where "near" is the
/// same value of a node label; and prefers nodes by the same kind of terms with weights. Anti-affinity works both ways:
/// a pod already running keeps those away that it does not want near it.
///
/// # Why
/// A web server belongs next to its cache; two replicas do not belong on one node.
///
/// # Arguments
/// - `hardPodAffinityWeight` (1): what a running pod's required affinity to the pending pod is worth, 0 to 100.
/// - `ignorePreferredTermsOfExistingPods` (false): saves time where only the pending pod's own wishes matter.
///
/// # Example
/// ```yaml
/// affinity:
///   podAntiAffinity:
///     requiredDuringSchedulingIgnoredDuringExecution:
///     - labelSelector: {matchLabels: {app: db}}
///       topologyKey: kubernetes.io/hostname   # one such pod a node
/// ```
///
/// # Difference from upstream
/// None. As upstream, a pending pod's `namespaceSelector` that an empty label set satisfies, such as `NotIn` alone,
/// picks every namespace; the fix `namespaceSelectorAbsence` picks by labels only.
#[derive(Debug)]
pub struct InterPodAffinity {
    hard_pod_affinity_weight: i32,
    ignore_preferred_terms_of_existing_pods: bool,
}

/// Arguments of [`InterPodAffinity`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct InterPodAffinityArgs {
    /// What a running pod's required affinity to the pending pod is worth.
    pub hard_pod_affinity_weight: Option<i32>,
    /// Whether the preferences of running pods count only for pods that have preferences of their own.
    #[serde(deserialize_with = "null_default")]
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Args for InterPodAffinityArgs {
    fn complete(&mut self) {
        self.hard_pod_affinity_weight.get_or_insert(1);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        if let Some(weight) = self.hard_pod_affinity_weight.filter(|weight| !(0..=100).contains(weight)) {
            problems.invalid("hardPodAffinityWeight", weight, "not in valid range [0, 100]");
        }
    }
}

impl Plugin for InterPodAffinity {
    const NAME: &'static str = "InterPodAffinity";
    type Args = InterPodAffinityArgs;

    fn new(args: InterPodAffinityArgs) -> Self {
        InterPodAffinity {
            hard_pod_affinity_weight: args.hard_pod_affinity_weight.expect("a missing weight was filled in"),
            ignore_preferred_terms_of_existing_pods: args.ignore_preferred_terms_of_existing_pods,
        }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().pre_score().score().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Namespace, PodField::Labels, PodField::PodAffinity])
            .node(&[NodeField::Labels, NodeField::Pods])
            .topology()
            .feasible_set()
            .kind::<Namespace>()
    }

    fn depends_on(&self, unread: &Unread, pod: &Pod, cluster: &Snapshot) -> bool {
        // Any pod may mind this one; labels of namespaces count only where a term selects by them.
        unread.kind == KindId::POD
            || selects_namespaces(pod)
            || cluster
                .nodes()
                .any(|node| node.usage().pods_with_affinity().any(|other| selects_namespaces(other)))
    }

    fn subject(&self) -> &'static str {
        "affinity to other pods"
    }
}

/// Whether a term of the pod selects namespaces by their labels.
fn selects_namespaces(pod: &Pod) -> bool {
    let PodAffinity { required, required_anti, preferred, preferred_anti, .. } = &pod.spec.pod_affinity;
    let weighted = preferred.iter().chain(preferred_anti).map(|weighted| &weighted.term);
    { required.iter().chain(required_anti).chain(weighted) }
        .any(|term| term.namespace_selector.requirements().is_some_and(|list| !list.is_empty()))
}

impl Enqueue for InterPodAffinity {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::ADD.or(Actions::UPDATE_POD_LABEL).or(Actions::DELETE)),
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_LABEL)),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let unreadable = pod.spec.pod_affinity.error.is_some();
        Hint::queue_if(match change {
            Change::Pod { old, new } if is_own_update(pod, *old, *new) => true,
            Change::Pod { old, new } if ![old, new].into_iter().flatten().all(|other| takes_room(other)) => {
                false
            }
            Change::Pod { old, new } => unreadable || pod_change_helps(pod, *old, *new),
            Change::Node { old, new: Some(new) } => unreadable || node_change_helps(pod, old.as_ref(), new),
            _ => true,
        })
    }
}

fn is_own_update(pod: &Pod, old: Option<&Pod>, new: Option<&Pod>) -> bool {
    old.is_some() && new.is_some_and(|new| new.uid == pod.uid)
}

fn pod_change_helps(pod: &Pod, old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let affinity = &pod.spec.pod_affinity;
    match (old, new) {
        (Some(old), Some(new)) => {
            let came =
                !matches_all(&affinity.required, pod, old) && matches_all(&affinity.required, pod, new);
            let went = matches_all(&affinity.required_anti, pod, old)
                && !matches_all(&affinity.required_anti, pod, new);
            came || went
        }
        (None, Some(new)) => matches_all(&affinity.required, pod, new),
        (Some(old), None) => {
            let theirs = &old.spec.pod_affinity;
            let unreadable = theirs.declares_required_anti_affinity && theirs.required_anti.is_empty();
            matches_all(&affinity.required_anti, pod, old)
                || unreadable
                || matches_all(&theirs.required_anti, old, pod)
        }
        (None, None) => true,
    }
}

/// As upstream, hints do not look up namespace labels.
fn matches_all(terms: &[PodAffinityTerm], owner: &Pod, pod: &Pod) -> bool {
    let no_labels = Labels::default();
    let matches =
        |term: &PodAffinityTerm| term.matches(&owner.namespace, &pod.namespace, &no_labels, &pod.labels);
    !terms.is_empty() && terms.iter().all(matches)
}

fn node_change_helps(pod: &Pod, old: Option<&NodeRef<'_>>, new: &NodeRef<'_>) -> bool {
    let affinity = &pod.spec.pod_affinity;
    let values = |term: &PodAffinityTerm| {
        (old.and_then(|old| old.label(&term.topology_key)), new.label(&term.topology_key))
    };
    let joins = affinity.required.iter().any(|term| {
        let (before, after) = values(term);
        after.is_some() && before != after
    });
    let leaves = affinity.required_anti.iter().any(|term| {
        let (before, after) = values(term);
        old.is_none() || (before.is_some() && before != after)
    });
    joins || leaves
}

#[cfg(test)]
mod tests;
