//! Copies go where the scheduler would put them: the best node first, looked at anew after each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_engine::Evaluation;
use supercargo_framework::{Cycle, Named, NodeField, PreFilter, PreFilterResult, Profile};
use supercargo_model::{Row, Snapshot};

/// The feasible nodes, best first.
pub(super) struct Ranking {
    /// What each plugin gave each node.
    scores: BTreeMap<Row, Vec<i64>>,
    order: BTreeSet<(Reverse<i64>, Arc<str>, Row)>,
    /// The plugins, in the order of their scores.
    plugins: Vec<Standard>,
}

/// What a score is measured by.
struct Standard {
    plugin: &'static str,
    /// Whether it depends on which other nodes are feasible.
    is_relative: bool,
}

impl Ranking {
    /// The nodes as they are; none if a copy on one of them may change what others are worth, so that all have to be
    /// looked at again each time.
    pub(super) fn new(profile: &Profile, cluster: &Snapshot, evaluation: &Evaluation) -> Option<Self> {
        let mut plugins = Vec::new();
        for scores in &evaluation.scores {
            let reads = &profile.plugins().iter().find(|plugin| plugin.name == scores.plugin)?.reads;
            let changes = reads.node.contains(NodeField::Requested) || reads.node.contains(NodeField::Pods);
            let of_others = reads.feasible_set || reads.all_nodes;
            if reads.topology || (changes && of_others) {
                return None;
            }
            plugins.push(Standard { plugin: scores.plugin, is_relative: reads.feasible_set });
        }
        let mut ranking = Ranking { scores: BTreeMap::new(), order: BTreeSet::new(), plugins };
        for (position, row) in evaluation.feasible.iter().enumerate() {
            let scores = evaluation.scores.iter().map(|plugin| plugin.scores[position]).collect();
            ranking.put(cluster, *row, scores);
        }
        Some(ranking)
    }

    /// The node that the next copy goes to.
    pub(super) fn best(&self) -> Option<Row> {
        self.order.first().map(|(_, _, row)| *row)
    }

    /// Brings a node up to date after a copy went there, by an evaluation of it alone. False if that does not do.
    pub(super) fn update(&mut self, cluster: &Snapshot, row: Row, alone: &Evaluation) -> bool {
        let Some(old) = self.scores.remove(&row) else { return false };
        self.order.remove(&entry(cluster, row, &old));
        if alone.error.is_some() {
            return false;
        }
        if alone.feasible.is_empty() {
            return !self.plugins.iter().any(|plugin| plugin.is_relative);
        }
        if !alone
            .scores
            .iter()
            .map(|scores| scores.plugin)
            .eq(self.plugins.iter().map(|plugin| plugin.plugin))
        {
            return false;
        }
        let both = self.plugins.iter().zip(&alone.scores).zip(old);
        let scores =
            both.map(|((plugin, new), old)| if plugin.is_relative { old } else { new.scores[0] }).collect();
        self.put(cluster, row, scores);
        true
    }

    fn put(&mut self, cluster: &Snapshot, row: Row, scores: Vec<i64>) {
        self.order.insert(entry(cluster, row, &scores));
        self.scores.insert(row, scores);
    }
}

/// Ties go to the smaller name.
fn entry(cluster: &Snapshot, row: Row, scores: &[i64]) -> (Reverse<i64>, Arc<str>, Row) {
    let total = scores.iter().fold(0i64, |total, score| total.wrapping_add(*score));
    (Reverse(total), cluster.node(row).name().clone(), row)
}

/// The profile, for one node alone.
pub(super) fn on_one_node(profile: &Profile, node: &str) -> Profile {
    let mut narrowed = profile.clone();
    // One more than the plugins of the profile: it takes part at this one point, and only in plain evaluations.
    let number = profile.plugins().len();
    narrowed.pre_filter.push(Named { name: "Only", number, plugin: Arc::new(Only(node.into())) });
    narrowed
}

struct Only(Box<str>);

impl PreFilter for Only {
    fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult {
        PreFilterResult::OnlyNodes(BTreeSet::from([self.0.clone()]))
    }
}
