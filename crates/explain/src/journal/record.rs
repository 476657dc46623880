//! What a scheduler says about a pod, as it goes over the wire.
//!
//! Who asks may be of another version than who answers. So fields are added and never change their meaning, and what one
//! side does not know is passed over.

use serde::{Deserialize, Serialize};
use supercargo_engine::{PodPlace, Whereabouts};
use supercargo_model::Timestamp;

/// What a scheduler says about a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodReport {
    /// `namespace/name`
    pub pod: String,
    /// When it said so, by its own clock.
    pub time: Timestamp,
    /// Whether it schedules: of several replicas only one does, and the others have decided nothing.
    pub leads: bool,
    /// Why it schedules no pod at all now, whatever the queue says; empty if it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// What plugins go by and it does not know now: kinds that the API server does not have, queries without an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Where the pod is, if it waits or is on its way to a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<PlaceReport>,
    /// What was decided last, oldest first. There may be decisions for several pods, one after the other, of that name.
    #[serde(default)]
    pub decisions: Vec<PastDecision>,
}

impl PodReport {
    /// Whether the scheduler schedules nothing now.
    pub(super) fn is_idle(&self) -> bool {
        !self.leads || !self.holds.is_empty()
    }
}

/// Where a pod is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlaceReport {
    /// The pod's UID.
    pub uid: String,
    /// Where it is.
    pub queue: QueueName,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When something is done about it at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The node it is on its way to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The plugins that rejected it, hold it back or have not allowed it yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// Why it is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A place on the way of a pod to its node. See [`PodPlace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the places")]
pub enum QueueName {
    Active,
    Backoff,
    Unschedulable,
    Held,
    Tried,
    Permit,
    PreBind,
    Binding,
    Unresolved,
    /// One that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A decision for a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastDecision {
    /// The pod's UID.
    pub uid: String,
    /// When it was made.
    pub time: Timestamp,
    /// Which attempt it was for the pod.
    pub attempt: u32,
    /// The pod's `spec.schedulerName`.
    pub profile: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: PastOutcome,
}

/// What came of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PastOutcome {
    /// The pod was bound.
    Bound {
        /// To this node.
        node: String,
        /// The node's score; 0 if there was no choice.
        score: i64,
        /// How many nodes were feasible.
        feasible_nodes: u32,
        /// When that was done.
        bound_at: Timestamp,
    },
    /// It is on its way to a node.
    Binding {
        /// The node.
        node: String,
        /// The node's score; 0 if there was no choice.
        score: i64,
        /// How many nodes were feasible.
        feasible_nodes: u32,
    },
    /// It has a node, and waits to be permitted to go there.
    WaitingForPermit {
        /// The node.
        node: String,
        /// The node's score; 0 if there was no choice.
        score: i64,
        /// How many nodes were feasible.
        feasible_nodes: u32,
        /// The plugins that had not allowed it when it began to wait.
        plugins: Vec<String>,
    },
    /// It had a node, but did not get there.
    NotBound {
        /// The node.
        node: String,
        /// Whether a plugin rejected it; otherwise something broke.
        is_rejected: bool,
        /// Why.
        message: String,
    },
    /// It fits nowhere.
    Unschedulable {
        /// What the event says: how many nodes are in the way for which reason.
        message: String,
        /// The plugins that rejected it.
        plugins: Vec<String>,
        /// Where room is made for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nominated_node: Option<String>,
        /// Some of the pods that are evicted for that.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        victims: Vec<String>,
        /// How many there are.
        #[serde(default)]
        victim_count: usize,
    },
    /// Something broke.
    Error {
        /// What.
        message: String,
    },
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

impl From<Whereabouts> for PlaceReport {
    fn from(whereabouts: Whereabouts) -> Self {
        let names = |plugins: Vec<&'static str>| plugins.into_iter().map(str::to_owned).collect();
        let Whereabouts { uid, attempts, place: at } = whereabouts;
        let place = |queue, since: Option<Timestamp>, until: Option<Timestamp>| PlaceReport {
            uid: uid.to_string(),
            attempts,
            queue,
            since,
            until,
            ..PlaceReport::default()
        };
        match at {
            PodPlace::Active { since } => place(QueueName::Active, Some(since), None),
            PodPlace::Backoff { until } => place(QueueName::Backoff, None, Some(until)),
            PodPlace::Unschedulable { since, plugins, until } => PlaceReport {
                plugins: names(plugins),
                ..place(QueueName::Unschedulable, Some(since), Some(until))
            },
            PodPlace::Held { since, plugin, reason } => PlaceReport {
                plugins: names(plugin.into_iter().collect()),
                reason: Some(reason),
                ..place(QueueName::Held, Some(since), None)
            },
            PodPlace::Tried { since } => place(QueueName::Tried, Some(since), None),
            PodPlace::Permit { node, plugins, until } => PlaceReport {
                node: Some(node.to_string()),
                plugins: names(plugins),
                ..place(QueueName::Permit, None, Some(until))
            },
            PodPlace::PreBind { node, since } => {
                PlaceReport { node: Some(node.to_string()), ..place(QueueName::PreBind, Some(since), None) }
            }
            PodPlace::Binding { node, since } => {
                PlaceReport { node: Some(node.to_string()), ..place(QueueName::Binding, Some(since), None) }
            }
            PodPlace::Unresolved { node, since } => PlaceReport {
                node: Some(node.to_string()),
                ..place(QueueName::Unresolved, Some(since), None)
            },
        }
    }
}
