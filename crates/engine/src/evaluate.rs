//! The whole decision for one pod, node by node and plugin by plugin.
//!
//! This is the plain way: every plugin is asked about every node. It is the referee for anything faster.

use std::sync::Arc;

use supercargo_framework::{
    Code, Context, Cycle, Diagnosis, Named, Nomination, Plan, PostFilterResult, PreBind, Profile, Rejections,
    Status,
};
use supercargo_model::{Pod, Row};

use crate::chance::Ties;
use crate::filtering::{Filters, PreFiltered, candidate_rows, pre_filter};
use crate::rehearsal::{RehearsalOf, Rehearsing, Stage};
use crate::sampling::feasible_nodes_wanted;
use crate::scoring;

/// Everything that was said about a pod, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// The rejection of the pod before any node was tried.
    pub pre_filter: Option<Status>,
    /// What was said about the nodes that are not feasible.
    pub diagnosis: Diagnosis,
    /// The nodes on which the pod can run, in the order in which they were examined.
    pub feasible: Vec<Row>,
    /// What every filter said about every examined node, if that was asked for.
    pub words: Vec<(Row, Vec<FilterWord>)>,
    /// How good the feasible nodes are, plugin by plugin.
    pub scores: Vec<PluginScores>,
    /// How good they are altogether, in the order of `feasible`.
    pub totals: Vec<i64>,
    /// The nodes with the highest total, by name.
    pub best: Vec<Row>,
    /// The one of them that was taken.
    pub chosen: Option<Row>,
    /// What has to be done before the pod can run there, such as binding volumes.
    pub plans: Vec<(&'static str, Plan)>,
    /// Why no node is feasible, in words for people; empty if one is.
    pub message: String,
    /// What becomes of the pod's nominated node.
    pub nomination: Nomination,
    /// The pods that have to go to make room, those that are leaving already among them.
    pub victims: Vec<Arc<Pod>>,
    /// What broke, if something did; nothing is chosen then.
    pub error: Option<String>,
}

impl Evaluation {
    /// The victims that have to be evicted. As upstream, those that are terminating already are left to go by themselves.
    pub fn evicted(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.victims.iter().filter(|victim| !victim.is_terminating())
    }
}

/// What one filter said about one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterWord {
    /// The plugin.
    pub plugin: &'static str,
    /// Its answer; `Skip` if it had nothing to say about the pod.
    pub status: Status,
}

impl FilterWord {
    /// Whether it keeps the pod from the node.
    pub fn stands_in_the_way(&self) -> bool {
        !self.status.is_success() && !self.status.is_skip()
    }
}

/// What one plugin thinks of the feasible nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginScores {
    /// The plugin.
    pub plugin: &'static str,
    /// The weight that its scores were multiplied by.
    pub weight: i64,
    /// Normalised scores × weight, in the order of the feasible nodes.
    pub scores: Vec<i64>,
}

/// Where deciding in a live cluster and deciding for conformance vectors differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A single feasible node is scored too, though there is no choice.
    pub score_single_node: bool,
    /// An error of a filter counts against its node; otherwise it ends the attempt.
    pub errors_reject_nodes: bool,
    /// A profile's `percentageOfNodesToScore` is followed.
    pub sample_nodes: bool,
    /// Nodes that were not looked at are said to fail all plugins that rejected the pod anywhere; otherwise only those
    /// that narrowed the nodes.
    pub blame_all_plugins: bool,
    /// The node that the pod is nominated to is tried first, and taken if the pod fits.
    pub prefer_nominated_node: bool,
    /// Whether PostFilter plugins, such as preemption, are asked when no node is feasible.
    pub run_post_filter: bool,
    /// Nominated nodes stay as the API server has them: nobody is nominated because victims go, and nobody loses a nomination.
    pub keep_nominations: bool,
    /// Which of several best nodes is taken.
    pub ties: Ties,
}

/// How much is asked of the plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thoroughness {
    /// A node's first rejection is enough.
    #[default]
    FirstRejection,
    /// Every filter is asked about every node, for whoever wants to know all that stands in the way.
    EveryWord,
}

impl Rules {
    /// A live cluster, as kube-scheduler decides there.
    pub const LIVE: Self = Rules {
        score_single_node: false,
        errors_reject_nodes: false,
        sample_nodes: true,
        blame_all_plugins: false,
        prefer_nominated_node: true,
        run_post_filter: true,
        keep_nominations: false,
        ties: Ties::Seeded,
    };

    /// Conformance vectors, as the oracle decides for them.
    pub const CONFORMANCE: Self = Rules {
        score_single_node: true,
        errors_reject_nodes: true,
        sample_nodes: false,
        blame_all_plugins: true,
        prefer_nominated_node: false,
        run_post_filter: true,
        keep_nominations: true,
        ties: Ties::SmallestName,
    };
}

/// Decides for a pod.
///
/// `start` is the position among the nodes at which the search begins; it matters only for samples, and is moved on by
/// the number of nodes examined, as upstream does.
pub fn evaluate(
    profile: &Profile,
    context: Context<'_>,
    pod: &Arc<Pod>,
    rules: Rules,
    thoroughness: Thoroughness,
    start: &mut usize,
) -> Evaluation {
    let mut cycle = Cycle::new(pod, context);
    let (mut evaluation, filters) = search(profile, &mut cycle, rules, thoroughness, start);
    finish(profile, &mut cycle, &filters, rules, &mut evaluation, &[]);
    evaluation
}

/// Looks for the nodes on which the pod can run.
pub(crate) fn search<'a>(
    profile: &'a Profile,
    cycle: &mut Cycle<'_>,
    rules: Rules,
    thoroughness: Thoroughness,
    start: &mut usize,
) -> (Evaluation, Filters<'a>) {
    let mut evaluation = Evaluation::default();
    let pre_filtered = pre_filter(profile, cycle);
    evaluation.diagnosis.unschedulable_plugins = pre_filtered.plugins.clone();
    if pre_filtered.status.is_success() {
        let search = Search { profile, cycle, rules, thoroughness, pre_filtered: &pre_filtered };
        search.run(&mut evaluation, start);
    } else {
        reject_outright(pre_filtered.status.clone(), &mut evaluation);
    }
    (evaluation, pre_filtered.filters)
}

/// Picks one of the nodes that were found, or finds out what could be done if there are none. `added` goes to the scores of
/// the feasible nodes on top of what plugins give them.
pub(crate) fn finish(
    profile: &Profile,
    cycle: &mut Cycle<'_>,
    filters: &Filters<'_>,
    rules: Rules,
    evaluation: &mut Evaluation,
    added: &[i64],
) {
    if evaluation.error.is_some() {
        return;
    }
    if evaluation.feasible.is_empty() && rules.run_post_filter {
        post_filter(profile, cycle, filters, evaluation);
    } else if !evaluation.feasible.is_empty() {
        choose(profile, cycle, rules, evaluation, added);
        evaluation.plans = plans(profile, cycle, evaluation.chosen);
    }
}

/// PreFilter has rejected the pod, or failed.
fn reject_outright(status: Status, evaluation: &mut Evaluation) {
    if status.is_rejected() {
        evaluation.diagnosis.pre_filter_message = Some(status.message());
        evaluation.diagnosis.note_plugin(&status);
        evaluation.diagnosis.others = status.clone();
    } else {
        evaluation.error = Some(status.message());
    }
    evaluation.pre_filter = Some(status);
}

/// Picks one of the feasible nodes.
fn choose(
    profile: &Profile,
    cycle: &mut Cycle<'_>,
    rules: Rules,
    evaluation: &mut Evaluation,
    added: &[i64],
) {
    if evaluation.feasible.len() == 1 && !rules.score_single_node {
        evaluation.best = evaluation.feasible.clone();
        evaluation.chosen = evaluation.best.first().copied();
        return;
    }
    match scoring::score(profile, cycle, &evaluation.feasible) {
        Err(error) => evaluation.error = Some(error),
        Ok(scores) => {
            evaluation.totals = scoring::totals(&scores, evaluation.feasible.len());
            for (total, added) in evaluation.totals.iter_mut().zip(added) {
                *total = total.wrapping_add(*added);
            }
            evaluation.scores = scores;
            evaluation.best = scoring::best(cycle.cluster(), &evaluation.feasible, &evaluation.totals);
            evaluation.chosen =
                scoring::choose(cycle.cluster(), &evaluation.best, rules.ties, cycle.context.seed);
        }
    }
}

/// What has to be done on the chosen node first.
pub(crate) fn plans(profile: &Profile, cycle: &Cycle<'_>, chosen: Option<Row>) -> Vec<(&'static str, Plan)> {
    let Some(node) = chosen.map(|row| cycle.cluster().node(row)) else { return Vec::new() };
    let of_plugin = |named: &Named<dyn PreBind>| {
        let name = named.name;
        named
            .run(|plugin| plugin.plan(cycle, node))
            .into_iter()
            .map(move |plan| (name, plan))
            .collect::<Vec<_>>()
    };
    profile.pre_bind.iter().flat_map(of_plugin).collect()
}

/// The search for feasible nodes.
struct Search<'a, 'c> {
    profile: &'a Profile,
    cycle: &'a Cycle<'c>,
    rules: Rules,
    thoroughness: Thoroughness,
    pre_filtered: &'a PreFiltered<'a>,
}

impl Search<'_, '_> {
    fn run(&self, evaluation: &mut Evaluation, start: &mut usize) {
        if self.rules.prefer_nominated_node && self.try_nominated_node(evaluation) {
            return;
        }
        let rows = candidate_rows(self.cycle, self.pre_filtered.only.as_ref());
        let percentage = self.profile.percentage_of_nodes_to_score.filter(|_| self.rules.sample_nodes);
        let wanted = match percentage {
            // Where nothing tells nodes apart, the first that fits will do.
            Some(1..100) if self.profile.score.is_empty() => rows.len().min(1),
            percentage => feasible_nodes_wanted(percentage, rows.len()),
        };
        let blamed_before = evaluation.diagnosis.unschedulable_plugins.clone();
        for index in 0..rows.len() {
            let row = rows[(*start + index) % rows.len()];
            let status = self.filter(evaluation, row);
            if !status.is_success() {
                if status.code() == Code::Error && !self.rules.errors_reject_nodes {
                    evaluation.error = Some(status.message());
                    break;
                }
                evaluation.diagnosis.note_plugin(&status);
                evaluation.diagnosis.nodes.insert(row, status);
            } else if evaluation.feasible.len() == wanted {
                // Enough: this one, the first too many, only showed that the search can stop.
                break;
            } else {
                evaluation.feasible.push(row);
            }
        }
        let examined = evaluation.feasible.len() + evaluation.diagnosis.nodes.len();
        *start = (*start + examined).checked_rem(self.cycle.cluster().node_count()).unwrap_or(0);
        if self.pre_filtered.only.is_some() {
            let blamed = if self.rules.blame_all_plugins {
                &evaluation.diagnosis.unschedulable_plugins
            } else {
                &blamed_before
            };
            let names: Vec<&str> = blamed.iter().copied().collect();
            let reason = format!("node(s) didn't satisfy plugin(s) [{}]", names.join(" "));
            evaluation.diagnosis.others = Status::unresolvable(reason);
        }
    }

    fn try_nominated_node(&self, evaluation: &mut Evaluation) -> bool {
        let name = self.cycle.pod.nominated_node_name();
        let Some(row) = name.and_then(|name| self.cycle.cluster().row_of(name)) else { return false };
        let status = self.filter(evaluation, row);
        if status.is_success() {
            evaluation.feasible.push(row);
            return true;
        }
        // The search that follows may come to this node again. If not, what was said about it holds.
        evaluation.words.clear();
        if status.is_rejected() {
            if self.pre_filtered.only.is_some() {
                // As upstream, where the set of plugins is shared by then only if the nodes were narrowed.
                evaluation.diagnosis.note_plugin(&status);
            }
            evaluation.diagnosis.nodes.insert(row, status);
        }
        false
    }

    fn filter(&self, evaluation: &mut Evaluation, row: Row) -> Status {
        let (filters, node) = (&self.pre_filtered.filters, self.cycle.cluster().node(row));
        match self.thoroughness {
            Thoroughness::FirstRejection if filters.is_empty() => Status::success(),
            Thoroughness::FirstRejection => filters.run(self.cycle, node),
            Thoroughness::EveryWord => {
                let none = || (Vec::new(), Status::success());
                let (words, status) =
                    if filters.is_empty() { none() } else { filters.words(self.cycle, node) };
                evaluation.words.push((row, words));
                status
            }
        }
    }
}

fn post_filter(profile: &Profile, cycle: &Cycle<'_>, filters: &Filters<'_>, evaluation: &mut Evaluation) {
    let result = run_post_filters(profile, cycle, &evaluation.diagnosis, &Stage::new(filters, cycle));
    let message = result.status.message();
    evaluation.message = evaluation.diagnosis.message(cycle.cluster().node_count(), &message);
    evaluation.nomination = result.nomination;
    evaluation.victims = result.victims;
}

/// Asks the PostFilter plugins one after the other, until one has an answer.
pub(crate) fn run_post_filters(
    profile: &Profile,
    cycle: &Cycle<'_>,
    rejections: &dyn Rejections,
    rehearsing: &dyn Rehearsing,
) -> PostFilterResult {
    if profile.post_filter.is_empty() {
        return PostFilterResult { nomination: Nomination::Clear, ..PostFilterResult::default() };
    }
    let mut reasons = Vec::new();
    let mut nomination = Nomination::Keep;
    for named in &profile.post_filter {
        let rehearsal = RehearsalOf::new(rehearsing, named.number);
        let result = named.run(|plugin| plugin.post_filter(cycle, rejections, &rehearsal));
        match result.status.code() {
            Code::Success | Code::UnschedulableAndUnresolvable => return result,
            Code::Unschedulable | Code::Pending => {
                reasons.extend(result.status.reasons().iter().cloned());
                if result.nomination != Nomination::Keep {
                    nomination = result.nomination;
                }
            }
            _ => {
                let status = Status::error(result.status.message()).from_plugin(named.name);
                return PostFilterResult { status, ..PostFilterResult::default() };
            }
        }
    }
    let status = Status::new(Code::Unschedulable, reasons);
    PostFilterResult { status, nomination, victims: Vec::new() }
}
