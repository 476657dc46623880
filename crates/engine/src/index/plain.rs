//! Why pods are decided the plain way, by asking every plugin about every node.

use std::collections::BTreeMap;

/// Why pods are decided the plain way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlainReason {
    /// The plugin because of which it is so; empty if it is not because of one.
    pub plugin: &'static str,
    /// Why.
    pub why: &'static str,
}

/// How many decisions were made the plain way, and why.
pub type PlainDecisions = BTreeMap<PlainReason, u64>;

impl PlainReason {
    pub(super) const fn of(plugin: &'static str, why: &'static str) -> Self {
        PlainReason { plugin, why }
    }

    /// It is not because of a plugin.
    pub(super) const fn general(why: &'static str) -> Self {
        PlainReason { plugin: "", why }
    }
}

/// The pod is nominated to a node, or others are, and filters that count pods have a say.
pub(super) const NOMINATIONS: PlainReason =
    PlainReason::general("pods are nominated to nodes, and filters count pods");
/// A plugin failed, scored out of range, or there are too many different answers about nodes.
pub(super) const UNKEPT_ANSWERS: PlainReason =
    PlainReason::general("a plugin failed or scored out of range, or nodes have too many different scores");
/// The reasons why the pod fits nowhere cannot be told from what is kept.
pub(super) const UNKEPT_REASONS: PlainReason =
    PlainReason::general("the pod fits nowhere, and the reasons are not kept");
/// A PreFilter plugin that is asked about each pod rejects this one, or names nodes.
pub(super) const VERDICT: &str = "its PreFilter rejects the pod, or names the nodes it may go to";
/// The profile has too many plugins.
pub(super) const TOO_MANY_PLUGINS: PlainReason = PlainReason::general("the profile has too many plugins");
/// The pod has its node, or only a sample of the nodes is looked at.
pub(super) const NO_SEARCH: PlainReason =
    PlainReason::general("the pod has a node already, or percentageOfNodesToScore is set");
