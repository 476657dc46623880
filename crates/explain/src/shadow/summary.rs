//! What many comparisons come to.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::comparison::{Comparison, Judgement};

/// How many comparisons came out how. Its size depends on the number of plugins, not on that of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// How many pods were compared.
    pub pods: u64,
    /// Their node is ours.
    pub same: u64,
    /// Their node is as good as ours.
    pub tied: u64,
    /// Their node is better than ours.
    pub better: u64,
    /// Their node is worse than ours.
    pub worse: u64,
    /// We would not have put the pod there.
    pub rejected: u64,
    /// Pods that were bound while the cluster was not known, because a watch was broken: nothing is said about them.
    pub missed: u64,
    /// How many in a hundred are the same or tied; none without pods.
    pub agreement_percent: Option<f64>,
    /// The plugins that speak for or against their nodes where those are better or worse, most often first.
    pub differences: Vec<PluginDifference>,
    /// The plugins that reject their nodes, most often first.
    pub rejections: Vec<PluginRejections>,
}

/// How often a plugin made a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginDifference {
    /// The plugin.
    pub plugin: String,
    /// For how many pods it gave the two nodes different scores.
    pub pods: u64,
    /// How much more it gave their nodes than ours, altogether.
    pub points: i64,
}

/// How often a plugin rejected a node that the other scheduler chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginRejections {
    /// The plugin; empty where there was none to ask.
    pub plugin: String,
    /// For how many pods.
    pub pods: u64,
}

/// Adds comparisons up.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: Summary,
    differences: BTreeMap<String, (u64, i64)>,
    rejections: BTreeMap<String, u64>,
}

impl Tally {
    /// Takes a comparison into account.
    pub fn add(&mut self, comparison: &Comparison) {
        let counts = &mut self.counts;
        counts.pods += 1;
        match &comparison.judgement {
            Judgement::Same => counts.same += 1,
            Judgement::Tied => counts.tied += 1,
            Judgement::Better(difference) | Judgement::Worse(difference) => {
                match comparison.judgement {
                    Judgement::Better(_) => counts.better += 1,
                    _ => counts.worse += 1,
                }
                for (plugin, points) in &difference.plugins {
                    let sum = self.differences.entry(plugin.clone()).or_default();
                    *sum = (sum.0 + 1, sum.1.saturating_add(*points));
                }
            }
            Judgement::Rejected { plugin, .. } => {
                counts.rejected += 1;
                *self.rejections.entry(plugin.clone().unwrap_or_default()).or_default() += 1;
            }
        }
    }

    /// Everything so far; `missed` pods could not be compared.
    pub fn summary(&self, missed: u64) -> Summary {
        let counts = &self.counts;
        let mut differences: Vec<PluginDifference> = (self.differences.iter())
            .map(|(plugin, (pods, points))| PluginDifference {
                plugin: plugin.clone(),
                pods: *pods,
                points: *points,
            })
            .collect();
        differences.sort_by_key(|difference| (Reverse(difference.pods), difference.points));
        let mut rejections: Vec<PluginRejections> = (self.rejections.iter())
            .map(|(plugin, pods)| PluginRejections { plugin: plugin.clone(), pods: *pods })
            .collect();
        rejections.sort_by_key(|rejections| Reverse(rejections.pods));
        let agreement_percent = (counts.pods > 0).then(|| counts.percent(counts.same + counts.tied));
        Summary { missed, agreement_percent, differences, rejections, ..counts.clone() }
    }
}

impl Summary {
    /// How many in a hundred pods those are, to a tenth.
    pub fn percent(&self, pods: u64) -> f64 {
        if self.pods == 0 { 0.0 } else { (pods as f64 * 1000.0 / self.pods as f64).round() / 10.0 }
    }
}
