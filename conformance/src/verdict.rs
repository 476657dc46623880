//! A verdict as it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_engine::Evaluation;
use supercargo_framework::{Nomination, Status};
use supercargo_model::{Pod, Row, Snapshot};

/// The verdicts on all pods of a case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct CaseVerdict {
    /// What the case is called.
    pub name: String,
    /// Why the case could not be judged; there are no verdicts then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
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
