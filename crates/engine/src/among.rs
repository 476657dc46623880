//! What the plugins of a profile say about some nodes only, for whoever has narrowed them down already: an extender that is asked by another
//! scheduler, or somebody who tries out what would help.
//!
//! Each answer is the one that [`evaluate`](crate::evaluate()) comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::{Code, Context, Cycle, Diagnosis, MAX_NODE_SCORE, NodeVictims, Profile, Status};
use supercargo_model::{Pod, Row};

use crate::filtering::{PreFiltered, pre_filter};
use crate::rehearsal::{RehearsalOf, Stage};
use crate::scoring;

/// How good some nodes are for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoresAmong {
    /// The sums over all plugins, weighted, in the order in which the nodes were given.
    pub totals: Vec<i64>,
    /// The highest sum that the plugins could have come to.
    pub highest_possible: i64,
}

/// What the filters say about each of some nodes, in the order given: success, the first rejection, or what broke.
pub fn filter_among(profile: &Profile, context: Context<'_>, pod: &Arc<Pod>, rows: &[Row]) -> Vec<Status> {
    let mut cycle = Cycle::new(pod, context);
    let pre_filtered = pre_filter(profile, &mut cycle);
    if !pre_filtered.status.is_success() {
        return vec![pre_filtered.status; rows.len()];
    }
    let word = |row: &Row| match left_out(&pre_filtered, &cycle, *row) {
        Some(status) => status,
        None if pre_filtered.filters.is_empty() => Status::success(),
        None => pre_filtered.filters.run(&cycle, cycle.cluster().node(*row)),
    };
    rows.iter().map(word).collect()
}

/// Those of some nodes on which a pod can run, in the order given. Nothing is scored, and nobody is evicted.
pub fn feasible_among(profile: &Profile, context: Context<'_>, pod: &Arc<Pod>, rows: &[Row]) -> Vec<Row> {
    let words = filter_among(profile, context, pod, rows);
    rows.iter().zip(words).filter(|(_, word)| word.is_success()).map(|(row, _)| *row).collect()
}

/// How good some nodes are for a pod, compared with each other; or what broke. It is not asked whether the pod can run on them.
pub fn score_among(
    profile: &Profile,
    context: Context<'_>,
    pod: &Arc<Pod>,
    rows: &[Row],
) -> Result<ScoresAmong, String> {
    let mut cycle = Cycle::new(pod, context);
    // Plugins that score may rely on what they left there. A rejection is for whoever filters.
    let pre_filtered = pre_filter(profile, &mut cycle);
    if pre_filtered.status.code() == Code::Error {
        return Err(pre_filtered.status.message());
    }
    let scores = scoring::score(profile, &mut cycle, rows)?;
    let weights = scores.iter().fold(0i64, |sum, plugin| sum.saturating_add(plugin.weight));
    Ok(ScoresAmong {
        totals: scoring::totals(&scores, rows.len()),
        highest_possible: weights.saturating_mul(MAX_NODE_SCORE),
    })
}

/// Of some nodes, each with pods that are to leave it, those on which the pod could run then, each with the pods that have to go as well:
/// none if it is enough that those leave, or those that the profile's own preemption adds.
///
/// Pods that leave are named by UID; those that are not on the node are gone already.
pub fn preempt_among(
    profile: &Profile,
    context: &Context<'_>,
    pod: &Arc<Pod>,
    leaving: &BTreeMap<Row, Vec<Box<str>>>,
) -> BTreeMap<Row, NodeVictims> {
    let more = |(row, uids): (&Row, &Vec<Box<str>>)| {
        // The other nodes keep their pods: victims leave one node only.
        let left = context.cluster.without_pods(uids.iter().map(|uid| (*row, &**uid)));
        let context = Context { cluster: &left, ..context.clone() };
        Some((*row, more_victims(profile, context, pod, *row)?))
    };
    leaving.iter().filter_map(more).collect()
}

/// Whom the pod needs gone from a node; none if nothing helps there.
fn more_victims(profile: &Profile, context: Context<'_>, pod: &Arc<Pod>, row: Row) -> Option<NodeVictims> {
    let mut cycle = Cycle::new(pod, context);
    let pre_filtered = pre_filter(profile, &mut cycle);
    let node = cycle.cluster().node(row);
    let status = match left_out(&pre_filtered, &cycle, row) {
        Some(status) => status,
        None if !pre_filtered.status.is_success() => pre_filtered.status,
        None => pre_filtered.filters.run(&cycle, node),
    };
    if status.is_success() {
        return Some(NodeVictims { pods: Vec::new(), budget_violations: 0 });
    }
    // Only this node comes into question, so that a search that is content with some nodes does not pass it over.
    let others = Status::unresolvable("node(s) that are not asked about");
    let rejections = Diagnosis { nodes: BTreeMap::from([(row, status)]), others, ..Diagnosis::default() };
    let stage = Stage::new(&pre_filtered.filters, &cycle);
    profile.post_filter.iter().find_map(|named| {
        let rehearsal = RehearsalOf::new(&stage, named.number);
        named.run(|plugin| plugin.candidates(&cycle, &rejections, &rehearsal)).remove(node.name())
    })
}

/// What is said about a node that PreFilter plugins have left out.
fn left_out(pre_filtered: &PreFiltered<'_>, cycle: &Cycle<'_>, row: Row) -> Option<Status> {
    let only = pre_filtered.only.as_ref()?;
    if only.contains(&**cycle.cluster().node(row).name()) {
        return None;
    }
    let names: Vec<&str> = pre_filtered.plugins.iter().copied().collect();
    Some(Status::unresolvable(format!("node(s) didn't satisfy plugin(s) [{}]", names.join(" "))))
}
