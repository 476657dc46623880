//! Answers that depend only on how many pods are where.
//!
//! Spreading and affinity between pods look at the whole cluster, but all they want from it are counts: so many pods
//! that match a selector in this zone, so many that carry a term on that node. A plugin that says which counts those
//! are lets the engine keep them, and is then asked once for all nodes that are alike instead of once a node.

use std::collections::BTreeSet;
use std::fmt;

use supercargo_model::{LabelSelector, NodeRef, Pod};

use crate::status::Status;

/// Which pods are counted: those that all terms mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodMatcher {
    /// The terms; without any, no pod is counted.
    pub terms: Vec<MatcherTerm>,
    /// Whether pods that are being deleted count as well.
    pub counts_terminating: bool,
}

/// Pods by namespace and labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatcherTerm {
    /// The namespaces; all of them if none are given.
    pub namespaces: Option<BTreeSet<Box<str>>>,
    /// The labels.
    pub selector: LabelSelector,
}

/// Pods to be counted, and what counts as one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    /// Which pods.
    pub pods: PodMatcher,
    /// Nodes with the same value under this label key are one place.
    pub topology_key: Box<str>,
    /// A second key: nodes with the same values under both are one place then, and so are those that lack the same of them.
    pub second_key: Option<Box<str>>,
    /// Which nodes' pods count.
    pub scope: Scope,
    /// Whether [`Tally::of_domains`] is wanted: what the counts of all domains are, whether or not a node there is feasible.
    pub wants_counts: bool,
    /// Whether [`Groups::domains`] is wanted: how many domains the feasible nodes are in.
    pub wants_domains: bool,
    /// Whether [`Groups::weight`] is wanted: pods in other places count too, each as much as [`Counts::weight`] says. Only with a
    /// second key.
    pub wants_weights: bool,
}

/// Which nodes' pods a [`Counter`] counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Those of the node itself, whatever else is in its domain.
    Node,
    /// Those of all nodes of the domain that have all of these label keys.
    NodesWithKeys(Vec<Box<str>>),
    /// Those of the nodes of the domain for which [`Counts::includes`] holds.
    Chosen,
}

/// What a running pod's term on other pods is: a pending pod that it means is held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TermRole {
    /// Required affinity.
    Required,
    /// Required anti-affinity.
    RequiredAnti,
    /// Preferred affinity, by weight.
    Preferred,
    /// Preferred anti-affinity, by weight.
    PreferredAnti,
}

impl TermRole {
    /// All of them.
    pub const ALL: [TermRole; 4] =
        [TermRole::Required, TermRole::RequiredAnti, TermRole::Preferred, TermRole::PreferredAnti];
}

/// What a plugin counts, for all pods of one class.
pub trait Counts: Send + Sync {
    /// What is counted.
    fn counters(&self) -> &[Counter];

    /// Which terms of running pods are counted that mean the pending pod.
    fn roles(&self) -> &[TermRole] {
        &[]
    }

    /// Whether the pods of this node count for the counter with that number, where it says [`Scope::Chosen`].
    fn includes(&self, counter: usize, node: NodeRef<'_>) -> bool {
        let _ = (counter, node);
        true
    }

    /// What a pod at the place `to` is worth for nodes at the place `from`, for the counter with that number, where it
    /// [wants weights](Counter::wants_weights). A place is the values under the two keys, empty where the nodes lack one. The answer
    /// depends on nothing else.
    fn weight(&self, counter: usize, from: [&str; 2], to: [&str; 2]) -> i64 {
        let _ = (counter, from, to);
        0
    }
}

/// A filter by counts. It must say of every node what the plugin's own filter says.
pub trait CountedFilter: Counts {
    /// What it can say against a node; nothing if it says something else of every node. Then all plugins are asked about every node
    /// where a pod fits nowhere.
    fn rejections(&self) -> &[Status];

    /// Whether the nodes of a group pass; if not, the number of the rejection.
    fn filter(&self, groups: &Groups<'_>, group: usize) -> Result<(), usize>;
}

/// A score by counts. It must give every node what the plugin's own score and normalisation give it.
pub trait CountedScore: Counts {
    /// The final scores of all groups, all of which are feasible, from 0 to [`crate::MAX_NODE_SCORE`].
    fn score(&self, groups: &Groups<'_>, scratch: &mut Vec<u32>, scores: &mut [i64]);
}

/// Nodes that are alike in all counts, as one plugin sees them.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// The number of feasible nodes in each group.
    pub nodes: &'a [u32],
    /// Each counter's sum over all nodes.
    pub tallies: &'a [Tally],
    /// What the counters of all plugins count in the first group, then in the second, and so on.
    pub cells: &'a [Cell],
    /// How many cells each group has.
    pub cells_per_group: usize,
    /// The first of this plugin's cells in each group.
    pub first_cell: usize,
    /// What the pods of all places are worth, counter by counter as in `cells`; empty if nobody wants to know.
    pub weights: &'a [i64],
    /// The terms that mean the pod: for each group the sums of weights, in the order of [`TermRole::ALL`].
    pub terms: &'a [[i64; TermRole::ALL.len()]],
    /// Which domains the nodes are in; none while it is not known yet which nodes are feasible.
    pub domains: Option<&'a dyn GroupDomains>,
}

/// Knows which domains the nodes of groups are in. The engine does.
pub trait GroupDomains: fmt::Debug {
    /// How many domains have a node in one of the groups that are meant. The counter's number is the one among all plugins' cells.
    fn domains(
        &self,
        counter: usize,
        is_meant: &mut dyn FnMut(usize) -> bool,
        scratch: &mut Vec<u32>,
    ) -> usize;
}

/// A counter in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// [`Cell::NO_DOMAIN`] if the nodes lack the topology key. Other numbers say nothing: the nodes of a group may be in many domains
    /// with equal counts. [`Groups::domains`] knows in how many.
    pub domain: u32,
    /// The number of pods.
    pub pods: u32,
}

/// A counter over all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The number of pods in all domains together.
    pub total: u64,
    /// The counts of all domains that have a node which counts. Only if [`Counter::wants_counts`] says so; no domains otherwise.
    pub of_domains: DomainCounts,
}

/// The counts of all domains of a topology key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainCounts {
    /// How many domains there are.
    pub domains: usize,
    /// How many of them have a pod that is counted.
    pub occupied: usize,
    /// The smallest number of pods in one of them; 0 if there are none.
    pub minimum: u32,
    /// The largest number of pods in one of them; 0 if there are none.
    pub maximum: u32,
}

impl Counter {
    /// Counts pods by the domains of a topology key, on all nodes that have it; nothing else is wanted.
    pub fn new(pods: PodMatcher, topology_key: impl Into<Box<str>>) -> Self {
        Counter {
            pods,
            topology_key: topology_key.into(),
            second_key: None,
            scope: Scope::NodesWithKeys(Vec::new()),
            wants_counts: false,
            wants_domains: false,
            wants_weights: false,
        }
    }

    /// Counts pods by the places that two keys make together.
    #[must_use]
    pub fn and_by(self, second_key: impl Into<Box<str>>) -> Self {
        Counter { second_key: Some(second_key.into()), ..self }
    }
}

impl Cell {
    /// The nodes do not have the topology key.
    pub const NO_DOMAIN: u32 = u32::MAX;

    /// Whether the nodes have the topology key.
    pub fn has_domain(&self) -> bool {
        self.domain != Self::NO_DOMAIN
    }
}

impl Groups<'_> {
    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What one of the plugin's counters counts in a group.
    pub fn cell(&self, group: usize, counter: usize) -> Cell {
        self.cells[group * self.cells_per_group + self.first_cell + counter]
    }

    /// What the pods that one of the plugin's counters counts are worth for a group, those of all places taken together. Only if
    /// [`Counter::wants_weights`] says so; 0 otherwise.
    pub fn weight(&self, group: usize, counter: usize) -> i64 {
        let place = group * self.cells_per_group + self.first_cell + counter;
        self.weights.get(place).copied().unwrap_or(0)
    }

    /// How many domains of one of the plugin's counters have a feasible node in one of the groups that are meant; a group whose nodes
    /// lack the topology key adds none. Only for scores, and only if [`Counter::wants_domains`] says so; 0 otherwise.
    pub fn domains(
        &self,
        counter: usize,
        mut is_meant: impl FnMut(usize) -> bool,
        scratch: &mut Vec<u32>,
    ) -> usize {
        let counter = self.first_cell + counter;
        self.domains.map_or(0, |domains| domains.domains(counter, &mut is_meant, scratch))
    }

    /// The weight of all terms of a role in a group.
    pub fn terms(&self, group: usize, role: TermRole) -> i64 {
        self.terms[group][role as usize]
    }
}

impl PodMatcher {
    /// A label that every counted pod has, if there is one.
    pub fn common_label(&self) -> Option<(&str, &str)> {
        let requirements = self.terms.iter().filter_map(|term| term.selector.requirements());
        requirements.flatten().find_map(|requirement| requirement.only_value())
    }

    /// Whether the pod is counted.
    pub fn matches(&self, pod: &Pod) -> bool {
        (self.counts_terminating || !pod.is_terminating()) && self.matches_labels(pod)
    }

    /// Whether pods of this namespace with these labels are counted, unless they are being deleted.
    pub fn matches_labels(&self, pod: &Pod) -> bool {
        !self.terms.is_empty() && self.terms.iter().all(|term| term.matches(pod))
    }
}

impl MatcherTerm {
    fn matches(&self, pod: &Pod) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.contains(&*pod.namespace))
            && self.selector.matches(&*pod.labels)
    }
}
