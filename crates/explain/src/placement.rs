//! Where a pod would go, and why there.

use serde::Serialize;
use supercargo_engine::Evaluation;
use supercargo_model::{Row, Snapshot};

/// How many of the best nodes are kept.
const CANDIDATES_MAX: usize = 20;

/// Where a pod would go.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The node.
    pub node: String,
    /// How many nodes are feasible.
    pub feasible: usize,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many are as good as the chosen one, itself included.
    pub tied: usize,
    /// The best nodes, best first, the chosen one before others of its score.
    pub candidates: Vec<Candidate>,
    /// What has to be done there first, such as binding volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<String>,
    /// The best node that is worse than the chosen one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
}

/// A feasible node and its scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The node.
    pub node: String,
    /// The sum of its scores.
    pub total: i64,
    /// What each plugin gave it, weighted.
    pub scores: Vec<(String, i64)>,
}

/// The best node that is worse than the chosen one, and where it lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunnerUp {
    /// The node.
    pub node: String,
    /// By how much it is behind.
    pub behind: i64,
    /// Plugin by plugin, how it compares; what made the difference first.
    pub differences: Vec<(String, i64)>,
}

impl Placement {
    pub(crate) fn new(evaluation: &Evaluation, cluster: &Snapshot) -> Self {
        let name = |row: Row| cluster.node(row).name().to_string();
        let candidate = |place: usize| Candidate {
            node: name(evaluation.feasible[place]),
            total: evaluation.totals.get(place).copied().unwrap_or(0),
            scores: (evaluation.scores.iter())
                .map(|plugin| (plugin.plugin.to_owned(), plugin.scores[place]))
                .collect(),
        };
        let mut places: Vec<usize> = (0..evaluation.feasible.len()).collect();
        places.sort_by_key(|place| {
            let row = evaluation.feasible[*place];
            let total = evaluation.totals.get(*place).copied().unwrap_or(0);
            (std::cmp::Reverse(total), Some(row) != evaluation.chosen, cluster.node(row).name().clone())
        });
        let best = candidate(places[0]);
        let worse = places.iter().map(|place| candidate(*place)).find(|other| other.total < best.total);
        Placement {
            node: best.node.clone(),
            feasible: evaluation.feasible.len(),
            nodes: cluster.node_count(),
            tied: evaluation.best.len(),
            plans: evaluation.plans.iter().map(|(_, plan)| plan.text.clone()).collect(),
            runner_up: worse.map(|other| RunnerUp::new(&best, &other)),
            candidates: places.into_iter().take(CANDIDATES_MAX).map(candidate).collect(),
        }
    }
}

impl RunnerUp {
    fn new(best: &Candidate, other: &Candidate) -> Self {
        let pairs = best.scores.iter().zip(&other.scores);
        let mut differences: Vec<(String, i64)> = pairs
            .map(|((plugin, best), (_, other))| (plugin.clone(), other - best))
            .filter(|(_, difference)| *difference != 0)
            .collect();
        differences.sort_by_key(|(plugin, difference)| (*difference, plugin.clone()));
        RunnerUp { node: other.node.clone(), behind: best.total - other.total, differences }
    }
}
