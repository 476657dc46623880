//! Affinity and anti-affinity between pods.

use std::collections::BTreeSet;

use super::words::{AffinityTermWords, PodAffinityWords, WeightedAffinityTermWords};
use crate::labels::{LabelSelector, Labels, SelectorError, aggregate};

/// A pod's affinity to other pods, and its aversion to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodAffinity {
    /// Whether the pod says anything on the matter, be it an empty list.
    pub is_declared: bool,
    /// Whether the pod writes required anti-affinity terms, be they unreadable.
    pub declares_required_anti_affinity: bool,
    /// Whether the pod writes preferred terms, be they unreadable.
    pub declares_preferred: bool,
    /// Pods that must be near.
    pub required: Box<[PodAffinityTerm]>,
    /// Pods that must not be near.
    pub required_anti: Box<[PodAffinityTerm]>,
    /// Pods that should be near.
    pub preferred: Box<[WeightedPodAffinityTerm]>,
    /// Pods that should not be near.
    pub preferred_anti: Box<[WeightedPodAffinityTerm]>,
    /// Why some of the lists could not be read; they are empty then.
    pub error: Option<SelectorError>,
}

/// Which pods are meant, and what "near" is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodAffinityTerm {
    /// Which pods, by their labels.
    pub selector: LabelSelector,
    /// In which namespaces, by name.
    pub namespaces: TermNamespaces,
    /// In which namespaces, by their labels.
    pub namespace_selector: LabelSelector,
    /// Two nodes are near each other if they have the same value under this label key.
    pub topology_key: Box<str>,
}

/// The namespaces that a term names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TermNamespaces {
    /// The namespace of the pod that carries the term: neither names nor a selector are given.
    Own,
    /// These.
    Named(BTreeSet<Box<str>>),
}

/// A term with what it is worth.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedPodAffinityTerm {
    /// The pods that are meant.
    pub term: PodAffinityTerm,
    /// What one such pod near by is worth.
    pub weight: i32,
}

impl PodAffinity {
    pub(super) fn parse(affinity: Option<&PodAffinityWords>, anti: Option<&PodAffinityWords>) -> Self {
        let (required, preferred) = lists(affinity);
        let (required_anti, preferred_anti) = lists(anti);
        let mut errors = Vec::new();
        let parsed = PodAffinity {
            is_declared: affinity.is_some() || anti.is_some(),
            declares_required_anti_affinity: !required_anti.is_empty(),
            declares_preferred: !preferred.is_empty() || !preferred_anti.is_empty(),
            required: read(required, "requiredAffinityTerms", &mut errors),
            required_anti: read(required_anti, "requiredAntiAffinityTerms", &mut errors),
            preferred: read(preferred, "preferredAffinityTerms", &mut errors),
            preferred_anti: read(preferred_anti, "preferredAntiAffinityTerms", &mut errors),
            error: None,
        };
        let error = (!errors.is_empty()).then(|| SelectorError(aggregate(errors)));
        PodAffinity { error, ..parsed }
    }
}

impl PodAffinityTerm {
    /// Whether a pod with these labels in this namespace is meant by a term that `owner_namespace` carries.
    pub fn matches(
        &self,
        owner_namespace: &str,
        namespace: &str,
        namespace_labels: &Labels,
        labels: &Labels,
    ) -> bool {
        (self.names(owner_namespace, namespace) || self.namespace_selector.matches(namespace_labels))
            && self.selector.matches(labels)
    }

    /// Whether the term names the namespace.
    pub fn names(&self, owner_namespace: &str, namespace: &str) -> bool {
        match &self.namespaces {
            TermNamespaces::Own => owner_namespace == namespace,
            TermNamespaces::Named(names) => names.contains(namespace),
        }
    }
}

fn lists(words: Option<&PodAffinityWords>) -> (&[AffinityTermWords], &[WeightedAffinityTermWords]) {
    words.map_or((&[], &[]), |words| (&words.required, &words.preferred))
}

/// What can be read from its words, or not.
trait Readable<Words>: Sized {
    fn read(words: &Words) -> Result<Self, SelectorError>;
}

impl Readable<AffinityTermWords> for PodAffinityTerm {
    fn read(words: &AffinityTermWords) -> Result<Self, SelectorError> {
        let own = words.namespaces.is_empty() && words.namespace_selector.is_none();
        Ok(PodAffinityTerm {
            selector: LabelSelector::parse(words.label_selector.as_ref())?,
            namespaces: if own {
                TermNamespaces::Own
            } else {
                TermNamespaces::Named(words.namespaces.iter().cloned().collect())
            },
            namespace_selector: LabelSelector::parse(words.namespace_selector.as_ref())?,
            topology_key: words.topology_key.clone(),
        })
    }
}

impl Readable<WeightedAffinityTermWords> for WeightedPodAffinityTerm {
    fn read(words: &WeightedAffinityTermWords) -> Result<Self, SelectorError> {
        Ok(WeightedPodAffinityTerm { term: Readable::read(&words.pod_affinity_term)?, weight: words.weight })
    }
}

/// Reads a list whole or, if one entry cannot be read, not at all.
fn read<W, T: Readable<W>>(words: &[W], list: &str, errors: &mut Vec<String>) -> Box<[T]> {
    match words.iter().map(T::read).collect() {
        Ok(terms) => terms,
        Err(SelectorError(text)) => {
            errors.push(format!("{list}: {text}"));
            Box::default()
        }
    }
}
