//! PreScore, Score and the choice: which feasible node is best.

use std::collections::BTreeSet;

use supercargo_framework::{Cycle, MAX_NODE_SCORE, Named, NodeScore, Profile, Score};
use supercargo_model::{Row, Snapshot};

use crate::chance::{Ties, drawn_row};
use crate::evaluate::PluginScores;

/// The scores of the feasible nodes, plugin by plugin, weighted; or what broke.
pub(crate) fn score(
    profile: &Profile,
    cycle: &mut Cycle<'_>,
    feasible: &[Row],
) -> Result<Vec<PluginScores>, String> {
    let mut skipped: BTreeSet<&'static str> = BTreeSet::new();
    for named in &profile.pre_score {
        let status = named.run(|plugin| plugin.pre_score(cycle, feasible));
        if status.is_skip() {
            skipped.insert(named.name);
        } else if !status.is_success() {
            return Err(format!("running PreScore plugin {:?}: {}", named.name, status.message()));
        }
    }
    let active = || profile.score.iter().filter(|(named, _)| !skipped.contains(named.name));
    let mut all = Vec::with_capacity(profile.score.len());
    for (named, weight) in active() {
        let scores = raw_scores(named, cycle, feasible)
            .map_err(|text| format!("running Score plugins: plugin {:?} failed with: {text}", named.name))?;
        all.push((named, *weight, scores));
    }
    let mut weighted = Vec::with_capacity(all.len());
    for (named, weight, mut scores) in all {
        let status = named.run(|plugin| plugin.normalize(cycle, &mut scores));
        if !status.is_success() {
            let (name, message) = (named.name, status.message());
            return Err(format!(
                "running Normalize on Score plugins: plugin {name:?} failed with: {message}"
            ));
        }
        if let Some(invalid) = scores.iter().find(|score| !(0..=MAX_NODE_SCORE).contains(&score.score)) {
            return Err(format!(
                "applying score defaultWeights on Score plugins: plugin {:?} returns an invalid score {}, it should in \
                 the range of [0, {MAX_NODE_SCORE}] after normalizing",
                named.name, invalid.score
            ));
        }
        let scores = scores.iter().map(|score| score.score.wrapping_mul(weight)).collect();
        weighted.push(PluginScores { plugin: named.name, weight, scores });
    }
    Ok(weighted)
}

fn raw_scores(
    named: &Named<dyn Score>,
    cycle: &Cycle<'_>,
    feasible: &[Row],
) -> Result<Vec<NodeScore>, String> {
    let mut scores = Vec::with_capacity(feasible.len());
    for row in feasible {
        let node = cycle.cluster().node(*row);
        let score = named.run(|plugin| plugin.score(cycle, node)).map_err(|status| status.message())?;
        scores.push(NodeScore { row: *row, score });
    }
    Ok(scores)
}

/// The sums over all plugins, one a feasible node.
pub(crate) fn totals(scores: &[PluginScores], node_count: usize) -> Vec<i64> {
    let mut totals = vec![0i64; node_count];
    for plugin in scores {
        for (total, score) in totals.iter_mut().zip(&plugin.scores) {
            *total = total.wrapping_add(*score);
        }
    }
    totals
}

/// The nodes with the highest total, by name.
pub(crate) fn best(cluster: &Snapshot, feasible: &[Row], totals: &[i64]) -> Vec<Row> {
    let Some(highest) = totals.iter().max() else { return Vec::new() };
    let ties = feasible.iter().zip(totals).filter(|(_, total)| *total == highest);
    let mut rows: Vec<Row> = ties.map(|(row, _)| *row).collect();
    rows.sort_by(|a, b| cluster.node(*a).name().cmp(cluster.node(*b).name()));
    rows
}

/// One of the best nodes, which come sorted by name.
pub(crate) fn choose(cluster: &Snapshot, best: &[Row], ties: Ties, seed: u64) -> Option<Row> {
    match ties {
        Ties::SmallestName => best.first().copied(),
        Ties::Seeded => {
            let start = drawn_row(cluster, seed);
            best.iter().copied().min_by_key(|row| (*row < start, *row))
        }
    }
}
