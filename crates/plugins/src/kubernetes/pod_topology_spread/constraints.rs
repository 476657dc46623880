//! Which constraints hold for a pod, and which pods and nodes they count.

use std::collections::BTreeSet;

use supercargo_framework::{Context, Cycle, MatcherTerm, PodMatcher, Status};
use supercargo_model::kinds::{ReplicaSet, ReplicationController, Service, StatefulSet};
use supercargo_model::labels::{LabelSelectorWords, Requirement};
use supercargo_model::pod::{InclusionPolicy, SpreadConstraint, WhenUnsatisfiable};
use supercargo_model::taints::find_forbidding;
use supercargo_model::{LabelLookup, LabelSelector, Labels, NodeRef, Pod, Snapshot};

use super::PodTopologySpread;

/// A constraint as it holds for one pod.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) max_skew: i32,
    pub(super) topology_key: Box<str>,
    pub(super) min_domains: i32,
    pub(super) node_affinity_policy: InclusionPolicy,
    pub(super) node_taints_policy: InclusionPolicy,
    selector: LabelSelector,
    counts_with_empty_selector: bool,
}

impl PodTopologySpread {
    /// The constraints of one kind that hold for the pod: its own, or else the defaults.
    pub(super) fn constraints(
        &self,
        context: &Context<'_>,
        pod: &Pod,
        kind: WhenUnsatisfiable,
    ) -> Result<Vec<Constraint>, Status> {
        let empty_selector = context.fixes.empty_spread_selector;
        let of_kind = |constraint: &&SpreadConstraint| constraint.when_unsatisfiable == kind;
        let own = &pod.spec.spread_constraints;
        if !own.is_empty() {
            return own
                .iter()
                .filter(of_kind)
                .map(|constraint| match &constraint.selector {
                    Ok(selector) => {
                        let selector = with_label_keys(selector, &constraint.match_label_keys, &pod.labels);
                        Ok(Constraint::new(constraint, selector, empty_selector))
                    }
                    Err(error) => Err(Status::error(error.to_string())),
                })
                .collect();
        }
        let defaults: Vec<&SpreadConstraint> = self.default_constraints.iter().filter(of_kind).collect();
        if defaults.is_empty() {
            return Ok(Vec::new());
        }
        let selector = deduced_selector(context.cluster, pod);
        if selector.is_everything() {
            return Ok(Vec::new());
        }
        Ok(defaults
            .into_iter()
            .map(|constraint| Constraint::new(constraint, selector.clone(), empty_selector))
            .collect())
    }
}

impl Constraint {
    fn new(constraint: &SpreadConstraint, selector: LabelSelector, counts_with_empty_selector: bool) -> Self {
        Constraint {
            max_skew: constraint.max_skew,
            topology_key: constraint.topology_key.clone(),
            min_domains: constraint.min_domains,
            node_affinity_policy: constraint.node_affinity_policy,
            node_taints_policy: constraint.node_taints_policy,
            selector,
            counts_with_empty_selector,
        }
    }

    /// Whether a pod with the other's labels is counted.
    pub(super) fn counts(&self, other: &Pod) -> bool {
        self.selector.matches(&*other.labels)
    }

    /// How many pods on the node are counted.
    pub(super) fn count_on(&self, node: NodeRef<'_>, namespace: &str) -> i64 {
        if self.selector.is_everything() && !self.counts_with_empty_selector {
            return 0;
        }
        let counted = |pod: &&std::sync::Arc<Pod>| {
            !pod.is_terminating() && *pod.namespace == *namespace && self.counts(pod)
        };
        node.pods().iter().filter(counted).count() as i64
    }

    /// The pods that are counted, as the engine counts them.
    pub(super) fn matcher(&self, namespace: &str) -> PodMatcher {
        let counts_nothing = self.selector.is_everything() && !self.counts_with_empty_selector;
        let term = MatcherTerm {
            namespaces: Some(BTreeSet::from([namespace.into()])),
            selector: self.selector.clone(),
        };
        PodMatcher { terms: if counts_nothing { Vec::new() } else { vec![term] }, counts_terminating: false }
    }

    /// Whether there are nodes that may not take part though they have the topology keys.
    pub(super) fn chooses_nodes(&self, pod: &Pod) -> bool {
        let spec = &pod.spec;
        let is_selective = spec.node_selector.is_some() || spec.node_affinity.required.is_some();
        self.node_taints_policy == InclusionPolicy::Honor
            || (self.node_affinity_policy == InclusionPolicy::Honor && is_selective)
    }

    /// Whether the node takes part.
    pub(super) fn includes(&self, pod: &Pod, node: NodeRef<'_>) -> bool {
        (self.node_affinity_policy == InclusionPolicy::Ignore || pod.spec.admits_node(&node))
            && (self.node_taints_policy == InclusionPolicy::Ignore
                || find_forbidding(node.taints(), &pod.spec.tolerations).is_none())
    }
}

/// Whether the node has a value under the topology key of every constraint.
pub(super) fn has_all_keys(node: NodeRef<'_>, constraints: &[Constraint]) -> bool {
    constraints.iter().all(|constraint| node.domain_named(&constraint.topology_key).is_some())
}

/// What the namespace of a cycle's pod is called.
pub(super) fn namespace<'a>(cycle: &Cycle<'a>) -> &'a str {
    &cycle.pod.namespace
}

fn with_label_keys(selector: &LabelSelector, keys: &[Box<str>], labels: &Labels) -> LabelSelector {
    selector.and(keys.iter().filter_map(|key| Some(Requirement::equals(key, labels.label(key)?))))
}

/// The pods that belong together with this one: those its services and its controller select.
fn deduced_selector(cluster: &Snapshot, pod: &Pod) -> LabelSelector {
    let (objects, namespace) = (cluster.objects(), &*pod.namespace);
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for (_, service) in objects.in_namespace::<Service>(namespace) {
        if let Some(selector) = &service.spec.selector
            && LabelSelector::from_labels(selector).matches(&*pod.labels)
        {
            labels.extend(selector.iter());
        }
    }
    let requirements = |words: Option<&LabelSelectorWords>| -> Vec<Requirement> {
        let selector = LabelSelector::parse(words).ok();
        selector.as_ref().and_then(LabelSelector::requirements).unwrap_or_default().to_vec()
    };
    let mut further = Vec::new();
    if let Some(owner) = &pod.controller {
        match (&*owner.api_version, &*owner.kind) {
            ("v1", "ReplicationController") => {
                let owner = objects.get::<ReplicationController>(namespace, &owner.name);
                labels.extend(
                    owner.and_then(|owner| owner.spec.selector.as_ref()).into_iter().flat_map(Labels::iter),
                );
            }
            ("apps/v1", "ReplicaSet") => {
                if let Some(owner) = objects.get::<ReplicaSet>(namespace, &owner.name) {
                    further = requirements(owner.spec.selector.as_ref());
                }
            }
            ("apps/v1", "StatefulSet") => {
                if let Some(owner) = objects.get::<StatefulSet>(namespace, &owner.name) {
                    further = requirements(owner.spec.selector.as_ref());
                }
            }
            _ => {}
        }
    }
    LabelSelector::from_labels(&labels.into_iter().collect()).and(further)
}
