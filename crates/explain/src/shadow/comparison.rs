//! Another scheduler's choice beside ours.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use supercargo_engine::{Evaluation, Rules, Seed, Thoroughness, Ties, evaluate};
use supercargo_framework::{Context, Profile, Rejections};
use supercargo_model::{Pod, Row};

/// How nodes are compared: all of them are looked at and scored, whatever the profile would do to save time.
const FULL: Rules = Rules {
    score_single_node: true,
    errors_reject_nodes: true,
    sample_nodes: false,
    blame_all_plugins: false,
    prefer_nominated_node: false,
    keep_nominations: false,
    run_post_filter: false,
    ties: Ties::Seeded,
};
/// How our own choice is made: as in a live cluster, except that nobody is evicted.
const OWN: Rules = Rules { run_post_filter: false, ..Rules::LIVE };

/// What we make of a pod that another scheduler has bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// `namespace/name`
    pub pod: String,
    /// The node that the other scheduler chose.
    pub theirs: String,
    /// The node that we would have chosen; none if we found none.
    pub ours: Option<String>,
    /// How many nodes we found feasible.
    pub feasible: usize,
    /// How their node compares.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// How long the binding was held before it was compared.
    #[serde(skip)]
    pub held: Duration,
}

/// How their node compares with ours, by our scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "camelCase")]
pub enum Judgement {
    /// It is ours.
    Same,
    /// It is another one, as good as ours.
    Tied,
    /// It is better than ours: we did not look at all nodes, or ours was promised to the pod.
    Better(Difference),
    /// It is worse than ours.
    Worse(Difference),
    /// We would not have put the pod there.
    Rejected {
        /// The plugin that says no; none if the node, or the scheduler's answer, is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        plugin: Option<String>,
        /// Why.
        reason: String,
    },
}

impl Judgement {
    /// Its name, as JSON and metrics have it.
    pub fn label(&self) -> &'static str {
        match self {
            Judgement::Same => "same",
            Judgement::Tied => "tied",
            Judgement::Better(_) => "better",
            Judgement::Worse(_) => "worse",
            Judgement::Rejected { .. } => "rejected",
        }
    }
}

/// By how much two nodes differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// How many points there are between them; never negative.
    pub by: i64,
    /// What each plugin gives their node more than ours, weighted, where that is anything.
    pub plugins: BTreeMap<String, i64>,
}

/// Decides for a pod that another scheduler has bound, on a cluster in which it is not bound yet.
///
/// `start` is where our search for nodes begins, as in [`evaluate`].
pub fn compare(
    profile: &Profile,
    context: &Context<'_>,
    pod: &Arc<Pod>,
    theirs: &str,
    start: &mut usize,
) -> Comparison {
    let full = evaluate(profile, context.clone(), pod, FULL, Thoroughness::FirstRejection, &mut 0);
    let chosen = if chooses_among_few(profile, pod) {
        evaluate(profile, context.clone(), pod, OWN, Thoroughness::FirstRejection, start)
            .chosen
            .or(full.chosen)
    } else {
        full.chosen
    };
    let name = |row: Row| context.cluster.node(row).name().to_string();
    Comparison {
        pod: pod.key(),
        theirs: theirs.to_owned(),
        ours: chosen.map(name),
        feasible: full.feasible.len(),
        judgement: judge(&full, context.cluster.row_of(theirs), chosen, theirs),
        held: Duration::ZERO,
    }
}

/// Whether our choice need not be the best of all nodes.
fn chooses_among_few(profile: &Profile, pod: &Pod) -> bool {
    matches!(profile.percentage_of_nodes_to_score, Some(1..100)) || pod.nominated_node_name().is_some()
}

fn judge(full: &Evaluation, theirs: Option<Row>, ours: Option<Row>, name: &str) -> Judgement {
    if let Some(error) = &full.error {
        return Judgement::Rejected { plugin: None, reason: format!("cannot be decided: {error}") };
    }
    let Some(theirs) = theirs else {
        return Judgement::Rejected { plugin: None, reason: format!("node {name} is not known here") };
    };
    let place = |row: Row| full.feasible.iter().position(|feasible| *feasible == row);
    let (Some(their_place), Some(our_place)) = (place(theirs), ours.and_then(place)) else {
        return rejection(full, theirs);
    };
    if their_place == our_place {
        return Judgement::Same;
    }
    let by = full.totals[their_place] - full.totals[our_place];
    let plugins = full
        .scores
        .iter()
        .map(|plugin| (plugin.plugin.to_owned(), plugin.scores[their_place] - plugin.scores[our_place]));
    let difference = Difference { by: by.abs(), plugins: plugins.filter(|(_, more)| *more != 0).collect() };
    match by {
        0 => Judgement::Tied,
        1.. => Judgement::Better(difference),
        _ => Judgement::Worse(difference),
    }
}

/// Why we would not have put a pod on a node.
fn rejection(full: &Evaluation, row: Row) -> Judgement {
    let status = full.pre_filter.as_ref().unwrap_or_else(|| full.diagnosis.status(row));
    let reason = match status.message() {
        message if message.is_empty() => "no reason was given".to_owned(),
        message => message,
    };
    Judgement::Rejected { plugin: status.plugin().map(str::to_owned), reason }
}

/// The seed of the `n`th comparison.
pub(super) fn seed(n: u64) -> u64 {
    Seed(0).attempt(n)
}
