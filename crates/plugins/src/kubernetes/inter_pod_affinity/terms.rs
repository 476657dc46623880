//! The pending pod's terms, with their namespaces looked up.

use std::collections::BTreeSet;

use supercargo_framework::{Context, MatcherTerm};
use supercargo_model::kinds::Namespace;
use supercargo_model::pod::{PodAffinityTerm, TermNamespaces};
use supercargo_model::{LabelSelector, Labels, Pod};

/// A term of the pending pod.
#[derive(Clone, Debug)]
pub(super) struct IncomingTerm {
    selector: LabelSelector,
    pub(super) topology_key: Box<str>,
    namespaces: BTreeSet<Box<str>>,
    /// Set where the namespace selector is satisfied by a namespace without labels: upstream then takes it to pick
    /// every namespace, which is right only for the empty selector.
    all_namespaces: bool,
}

impl IncomingTerm {
    pub(super) fn resolve(term: &PodAffinityTerm, pod: &Pod, context: &Context<'_>) -> Self {
        let mut namespaces = match &term.namespaces {
            TermNamespaces::Own => BTreeSet::from([Box::from(&*pod.namespace)]),
            TermNamespaces::Named(names) => names.clone(),
        };
        let selector = &term.namespace_selector;
        if !selector.is_everything() {
            let all = context.cluster.objects().all::<Namespace>();
            let picked = all.filter(|(_, namespace)| selector.matches(&namespace.metadata.labels));
            namespaces.extend(picked.map(|(key, _)| key.name.clone()));
        }
        let matches_absence =
            !context.fixes.namespace_selector_absence && selector.matches(&Labels::default());
        IncomingTerm {
            selector: term.selector.clone(),
            topology_key: term.topology_key.clone(),
            namespaces,
            all_namespaces: selector.is_everything() || matches_absence,
        }
    }

    /// The term as the engine counts by it.
    pub(super) fn matcher_term(&self) -> MatcherTerm {
        let namespaces = (!self.all_namespaces).then(|| self.namespaces.clone());
        MatcherTerm { namespaces, selector: self.selector.clone() }
    }

    pub(super) fn resolve_all(terms: &[PodAffinityTerm], pod: &Pod, context: &Context<'_>) -> Vec<Self> {
        terms.iter().map(|term| Self::resolve(term, pod, context)).collect()
    }

    /// Whether the term means this pod.
    pub(super) fn matches(&self, pod: &Pod) -> bool {
        (self.all_namespaces || self.namespaces.contains(&*pod.namespace))
            && self.selector.matches(&*pod.labels)
    }
}

/// Whether all terms mean this pod; without terms, none does.
pub(super) fn match_all(terms: &[IncomingTerm], pod: &Pod) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod))
}

/// The labels of the pod's namespace; none if nobody knows the namespace.
pub(super) fn namespace_labels(pod: &Pod, context: &Context<'_>) -> Labels {
    let namespace = context.cluster.objects().get::<Namespace>("", &pod.namespace);
    namespace.map(|namespace| namespace.metadata.labels.clone()).unwrap_or_default()
}
