//! Why a pod fits nowhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use supercargo_engine::Evaluation;
use supercargo_framework::Nomination;
use supercargo_model::{Pod, Snapshot};

use crate::explanation::is_false;
use crate::remedy::Hint;

/// How many nodes are named as examples of one obstacle.
pub(crate) const EXAMPLES_MAX: usize = 20;

/// Who rejected nodes, where that is several plugins at once.
pub(crate) const UNATTRIBUTED: &str = "PreFilter";

/// Why a pod fits nowhere, and what would help.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstacles {
    /// What the event says.
    pub message: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// What stands in the way, on most nodes first.
    pub obstacles: Vec<Obstacle>,
    /// What would help, as tried.
    pub hints: Vec<Hint>,
    /// Where the scheduler itself will make room, if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<Preemption>,
}

/// One reason, and where it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// Who gives it.
    pub plugin: String,
    /// What it is.
    pub reason: String,
    /// On how many nodes it holds.
    pub nodes: usize,
    /// Some of them.
    pub examples: Vec<String>,
    /// Whether it may be wrong, because something that counts could not be read.
    #[serde(rename = "uncertain", skip_serializing_if = "is_false")]
    pub is_uncertain: bool,
}

/// Where the scheduler will make room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// The node.
    pub node: String,
    /// The pods that will be evicted, with their priorities.
    pub victims: Vec<(String, i32)>,
    /// The pods that have to go as well, but are terminating already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<(String, i32)>,
    /// Whether it may be wrong, because something that counts could not be read.
    #[serde(rename = "uncertain", skip_serializing_if = "is_false")]
    pub is_uncertain: bool,
}

impl Obstacles {
    pub(crate) fn new(evaluation: &Evaluation, cluster: &Snapshot, hints: Vec<Hint>) -> Self {
        let mut groups: BTreeMap<(&str, &str), Obstacle> = BTreeMap::new();
        let diagnosis = &evaluation.diagnosis;
        let mut count = |plugin, reason, node: Option<&str>, nodes: usize| {
            let group = groups.entry((plugin, reason)).or_insert_with(|| Obstacle {
                plugin: plugin.to_owned(),
                reason: reason.to_owned(),
                nodes: 0,
                examples: Vec::new(),
                is_uncertain: false,
            });
            group.nodes += nodes;
            if let Some(node) = node.filter(|_| group.examples.len() < EXAMPLES_MAX) {
                group.examples.push(node.to_owned());
            }
        };
        for row in cluster.rows() {
            if let Some(status) = diagnosis.nodes.get(row) {
                for reason in status.reasons() {
                    count(status.plugin().unwrap_or_default(), reason, Some(cluster.node(*row).name()), 1);
                }
            }
        }
        let not_looked_at = cluster.node_count() - diagnosis.nodes.len();
        if not_looked_at > 0 {
            for reason in diagnosis.others.reasons() {
                count(diagnosis.others.plugin().unwrap_or(UNATTRIBUTED), reason, None, not_looked_at);
            }
        }
        let mut obstacles: Vec<Obstacle> = groups.into_values().collect();
        obstacles.sort_by_key(|obstacle| std::cmp::Reverse(obstacle.nodes));
        Obstacles {
            message: evaluation.message.clone(),
            nodes: cluster.node_count(),
            obstacles,
            hints,
            preemption: Preemption::of(evaluation),
        }
    }
}

impl Preemption {
    fn of(evaluation: &Evaluation) -> Option<Self> {
        let Nomination::Node(node) = &evaluation.nomination else { return None };
        let describe = |pod: &Arc<Pod>| (pod.key(), pod.priority());
        let leaving = evaluation.victims.iter().filter(|victim| victim.is_terminating());
        Some(Preemption {
            node: node.to_string(),
            victims: evaluation.evicted().map(describe).collect(),
            leaving: leaving.map(describe).collect(),
            is_uncertain: false,
        })
    }
}
