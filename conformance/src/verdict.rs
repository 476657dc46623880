//! A verdict as it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_engine::Evaluation;
use supercargo_framework::{Nomination, Status};
use supercargo_model::{Pod, Row, Snapshot};

/// The verdicts on all pods of a case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseVerdict {
    /// What the case is called.
    pub name: String,
    /// Why the case could not be judged; there are no verdicts then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The pods as the queue has them, if another plugin than PrioritySort sorts them; none if it comes to no order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// A row for each pod, a column for each other one: `1` if the one of the row goes before the one of the column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub less: Vec<String>,
    /// As `order`, after all pods were tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_after: Vec<String>,
    /// The pods that wait at Permit at last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// One verdict a pod.
    pub verdicts: Option<Vec<Verdict>>,
}

/// Everything that was said about a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Verdict {
    /// `namespace/name`
    pub pod: String,
    /// The rejection before any node was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_filter: Option<NodeStatus>,
    /// What was said about the nodes that are not feasible.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, NodeStatus>,
    /// The names of the feasible nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feasible: Vec<String>,
    /// Plugin → node → normalised score × weight.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, BTreeMap<String, i64>>,
    /// Node → sum of its scores.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub total: BTreeMap<String, i64>,
    /// The nodes with the highest total.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<String>,
    /// The one that was taken.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chosen: String,
    /// Why there is none, as the event says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Where preemption makes room.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nominated: String,
    /// The pods that have to go for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
    /// What broke.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// What Permit plugins said, if the profile has any and a node was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit: Option<PermitVerdict>,
    /// The pods that plugins want to be tried next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub activated: Vec<String>,
    /// The pods that waited at Permit, and were let go meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<String>,
    /// The pods that waited at Permit, and were refused meanwhile; and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected_waiting: BTreeMap<String, String>,
    /// The pods that were refused because the time of one of them was over before this pod was tried; and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub expired: BTreeMap<String, String>,
}

/// What Permit plugins said about a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct PermitVerdict {
    /// Which status came of it.
    #[serde(flatten)]
    pub status: NodeStatus,
    /// How long a pod that has to wait shall wait, in seconds, as its plugin wants it.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What was said about a node, or about the pod as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeStatus {
    /// The status code.
    pub code: String,
    /// Who said it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plugin: String,
    /// Why, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl Verdict {
    /// An evaluation in the words of a verdict.
    pub fn new(pod: &Pod, evaluation: &Evaluation, cluster: &Snapshot) -> Self {
        let name = |row: &Row| cluster.node(*row).name().to_string();
        let sorted = |rows: &[Row]| -> Vec<String> {
            let mut names: Vec<String> = rows.iter().map(name).collect();
            names.sort();
            names
        };
        let by_node = |scores: &[i64]| -> BTreeMap<String, i64> {
            evaluation.feasible.iter().map(name).zip(scores.iter().copied()).collect()
        };
        let rejected = evaluation.diagnosis.nodes.iter();
        let scores = evaluation.scores.iter();
        let mut victims: Vec<String> = evaluation.evicted().map(|pod| pod.key()).collect();
        victims.sort();
        Verdict {
            pod: pod.key(),
            pre_filter: evaluation.pre_filter.as_ref().map(NodeStatus::from),
            rejected: rejected.map(|(row, status)| (name(row), NodeStatus::from(status))).collect(),
            feasible: sorted(&evaluation.feasible),
            scores: scores.map(|plugin| (plugin.plugin.to_owned(), by_node(&plugin.scores))).collect(),
            total: by_node(&evaluation.totals),
            best: sorted(&evaluation.best),
            chosen: evaluation.chosen.as_ref().map(name).unwrap_or_default(),
            message: evaluation.message.clone(),
            nominated: match &evaluation.nomination {
                Nomination::Node(name) => name.to_string(),
                Nomination::Keep | Nomination::Clear => String::new(),
            },
            victims,
            error: evaluation.error.clone().unwrap_or_default(),
            ..Verdict::default()
        }
    }
}

impl From<&Status> for NodeStatus {
    fn from(status: &Status) -> Self {
        let mut reasons: Vec<String> = status.reasons().iter().map(ToString::to_string).collect();
        reasons.sort();
        NodeStatus {
            code: status.code().name().to_owned(),
            plugin: status.plugin().unwrap_or_default().to_owned(),
            reasons,
        }
    }
}
