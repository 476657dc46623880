//! What there is to say about a pod.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use supercargo_engine::{Evaluation, Rules, Thoroughness, Ties, evaluate};
use supercargo_framework::{Context, Profile, Status};
use supercargo_model::Pod;

use crate::doubt::{Doubt, MissingReport};
use crate::facts::{Unknown, unknown_facts};
use crate::hints::find_hints;
use crate::journal::Asked;
use crate::obstacles::Obstacles;
use crate::per_node::PerNode;
use crate::placement::Placement;
use crate::workloads::WorkloadSummary;

/// How pods are explained: all nodes are looked at and scored, and nothing depends on chance.
pub(crate) const RULES: Rules = Rules {
    score_single_node: true,
    errors_reject_nodes: true,
    sample_nodes: false,
    blame_all_plugins: false,
    prefer_nominated_node: false,
    keep_nominations: false,
    run_post_filter: true,
    ties: Ties::SmallestName,
};

/// Explains pods, as things are in one snapshot of a cluster.
#[derive(Clone, Debug)]
pub struct Explainer<'a> {
    /// The plugins that decide.
    pub profile: &'a Profile,
    /// The cluster, and the time.
    pub context: Context<'a>,
    /// Looked up once for all pods that are explained.
    highest_priority: OnceLock<Option<i32>>,
    /// What plugins want to know from outside and is not known, looked up once as well.
    unknown_facts: OnceLock<Vec<Unknown>>,
}

/// What there is to say about a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `namespace/name`
    pub pod: String,
    /// Other pods for which the same holds: those that differ in nothing the plugins read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// The workload that would create the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadSummary>,
    /// What the scheduler says that runs, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Asked>,
    /// What to know before the rest, such as that nobody schedules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether it may become of it something else than is said: something that counts could not be read.
    #[serde(rename = "uncertain", skip_serializing_if = "is_false")]
    pub is_uncertain: bool,
    /// The plugins that may be wrong about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// What could not be read, whether it matters for this pod or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingReport>,
    /// What would become of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What would become of a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It is not even tried.
    Held {
        /// The plugin that holds it back.
        plugin: String,
        /// Why.
        reason: String,
    },
    /// It would go to a node.
    Placed(Placement),
    /// It fits nowhere.
    Pending(Obstacles),
    /// There is one for each of many nodes.
    PerNode(PerNode),
    /// Something broke.
    Failed {
        /// What.
        error: String,
    },
}

impl Explanation {
    /// What becomes of a pod, and nothing else yet.
    pub(crate) fn new(pod: String, verdict: Verdict) -> Self {
        Explanation {
            pod,
            alike: Vec::new(),
            workload: None,
            scheduler: None,
            notes: Vec::new(),
            is_uncertain: false,
            doubts: Vec::new(),
            missing: Vec::new(),
            verdict,
        }
    }
}

impl<'a> Explainer<'a> {
    /// Explains pods with these plugins, on this cluster.
    pub fn new(profile: &'a Profile, context: Context<'a>) -> Self {
        Explainer { profile, context, highest_priority: OnceLock::new(), unknown_facts: OnceLock::new() }
    }

    /// Explains one pod.
    pub fn explain(&self, pod: &Arc<Pod>) -> Explanation {
        let mut notes = Vec::new();
        let verdict = self.verdict(pod, &mut notes);
        Explanation { notes, ..Explanation::new(pod.key(), verdict) }
    }

    /// What becomes of a pod. What plugins want people to know is added to the notes: the one that rejects it as a whole, or all that have
    /// a say on it as a whole and may let it wait later.
    fn verdict(&self, pod: &Arc<Pod>, notes: &mut Vec<String>) -> Verdict {
        if let Some((plugin, reason)) = self.held(pod) {
            return Verdict::Held { plugin, reason };
        }
        let evaluation = self.evaluate(pod, Thoroughness::EveryWord);
        let rejector = evaluation.pre_filter.as_ref().and_then(Status::plugin);
        let speakers = self.profile.pre_filter.iter();
        let speakers = speakers.filter(|named| rejector.is_none_or(|rejector| named.name == rejector));
        let said = speakers.filter_map(|named| named.plugin.background(&self.context, pod));
        notes.extend(said.map(|said| format!("note: {said}")));
        let is_placed = evaluation.error.is_none() && !evaluation.feasible.is_empty();
        let unknown = self.unknown_facts().iter().filter(|unknown| is_placed || !unknown.is_score);
        notes.extend(unknown.map(|unknown| format!("note: {}", unknown.sentence)));
        if let Some(error) = evaluation.error {
            return Verdict::Failed { error };
        }
        if !evaluation.feasible.is_empty() {
            return Verdict::Placed(Placement::new(&evaluation, self.context.cluster));
        }
        let hints = find_hints(self, pod, &evaluation);
        Verdict::Pending(Obstacles::new(&evaluation, self.context.cluster, hints))
    }

    /// The plugin that holds a pod back before it is tried, and why.
    pub(crate) fn held(&self, pod: &Arc<Pod>) -> Option<(String, String)> {
        self.profile.pre_enqueue.iter().find_map(|named| {
            let status = named.plugin.pre_enqueue(&self.context, pod);
            (!status.is_success()).then(|| (named.name.to_owned(), status.message()))
        })
    }

    fn unknown_facts(&self) -> &[Unknown] {
        self.unknown_facts.get_or_init(|| unknown_facts(self.profile, self.context.cluster))
    }

    /// The priority of the most important pod that runs anywhere.
    pub(crate) fn highest_priority(&self) -> Option<i32> {
        let pods = || self.context.cluster.nodes().flat_map(|node| node.pods());
        *self.highest_priority.get_or_init(|| pods().map(|pod| pod.priority()).max())
    }

    pub(crate) fn evaluate(&self, pod: &Arc<Pod>, thoroughness: Thoroughness) -> Evaluation {
        evaluate(self.profile, self.context.clone(), pod, RULES, thoroughness, &mut 0)
    }
}

/// What is certain is not mentioned.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "how serde asks")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
