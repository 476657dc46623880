//! What there is to say about a pod.

use std::sync::Arc;

use serde::Serialize;
use supercargo_engine::{Evaluation, Rules, Thoroughness, Ties, evaluate};
use supercargo_framework::{Context, Profile};
use supercargo_model::Pod;

use crate::hints::find_hints;
use crate::obstacles::Obstacles;
use crate::placement::Placement;

/// How pods are explained: all nodes are looked at and scored, and nothing depends on chance.
pub(crate) const RULES: Rules = Rules {
    score_single_node: true,
    errors_reject_nodes: true,
    sample_nodes: false,
    blame_all_plugins: false,
    prefer_nominated_node: false,
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
    /// Something broke.
    Failed {
        /// What.
        error: String,
    },
}

impl<'a> Explainer<'a> {
    /// Explains one pod.
    pub fn explain(&self, pod: &Arc<Pod>) -> Explanation {
        Explanation { pod: pod.key(), alike: Vec::new(), verdict: self.verdict(pod) }
    }

    fn verdict(&self, pod: &Arc<Pod>) -> Verdict {
        for named in &self.profile.pre_enqueue {
            let status = named.plugin.pre_enqueue(&self.context, pod);
            if !status.is_success() {
                return Verdict::Held { plugin: named.name.to_owned(), reason: status.message() };
            }
        }
        let evaluation = self.evaluate(pod, RULES, Thoroughness::FirstRejection);
        if let Some(error) = evaluation.error {
            return Verdict::Failed { error };
        }
        if !evaluation.feasible.is_empty() {
            return Verdict::Placed(Placement::new(&evaluation, self.context.cluster));
        }
        // What the filters say is all that is wanted now: preemption has had its say.
        let only_filters = Rules { run_post_filter: false, ..RULES };
        let thorough = self.evaluate(pod, only_filters, Thoroughness::EveryWord);
        let hints = find_hints(self, pod, &thorough, !evaluation.victims.is_empty());
        Verdict::Pending(Obstacles::new(&evaluation, self.context.cluster, hints))
    }

    pub(crate) fn evaluate(&self, pod: &Arc<Pod>, rules: Rules, thoroughness: Thoroughness) -> Evaluation {
        evaluate(self.profile, self.context.clone(), pod, rules, thoroughness, &mut 0)
    }
}
