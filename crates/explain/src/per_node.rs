//! Pods that are for one node each: a DaemonSet's. They are tried one by one and told together.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use supercargo_engine::{Rules, Thoroughness, evaluate};
use supercargo_framework::Nomination;
use supercargo_model::Pod;

use crate::explanation::{Explainer, Explanation, RULES, Verdict};
use crate::obstacles::{EXAMPLES_MAX, Obstacle};
use crate::remedy::Hint;
use crate::workloads::node_of;

/// On how many of their nodes such pods fit, and what stands in the way on the others.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PerNode {
    /// How many nodes there are pods for.
    pub nodes: usize,
    /// On how many they fit as things are.
    pub fits: usize,
    /// On how many more the scheduler will make room.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_eviction: usize,
    /// What stands in the way on the others, on most nodes first.
    pub obstacles: Vec<Obstacle>,
    /// One of these nodes, the first of the most frequent obstacle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<NodeExample>,
}

/// A node on which such a pod does not fit.
#[derive(Clone, Debug, Serialize)]
pub struct NodeExample {
    /// The node.
    pub node: String,
    /// What would help there, as tried.
    pub hints: Vec<Hint>,
}

/// How a pod does on the node that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnItsNode {
    /// It fits.
    Fits,
    /// It will, once others are evicted.
    ByEviction,
    /// It does not: who says so, and why.
    Unfit(Vec<(String, String)>),
}

impl Explainer<'_> {
    /// Tries a pod on the node that it is for.
    pub fn on_its_node(&self, pod: &Arc<Pod>) -> OnItsNode {
        if let Some((plugin, reason)) = self.held(pod) {
            return OnItsNode::Unfit(vec![(plugin, reason)]);
        }
        // There is no choice between nodes, so that nobody needs scores.
        let rules = Rules { score_single_node: false, ..RULES };
        let context = self.context.clone();
        let evaluation = evaluate(self.profile, context, pod, rules, Thoroughness::FirstRejection, &mut 0);
        if let Some(error) = evaluation.error {
            return OnItsNode::Unfit(vec![(String::new(), error)]);
        }
        if !evaluation.feasible.is_empty() {
            return OnItsNode::Fits;
        }
        if matches!(evaluation.nomination, Nomination::Node(_)) {
            return OnItsNode::ByEviction;
        }
        let diagnosis = &evaluation.diagnosis;
        let row = node_of(pod).and_then(|node| self.context.cluster.row_of(node));
        let status = row.and_then(|row| diagnosis.nodes.get(&row)).unwrap_or(&diagnosis.others);
        let plugin = status.plugin().unwrap_or_default();
        OnItsNode::Unfit(
            status.reasons().iter().map(|reason| (plugin.to_owned(), reason.to_string())).collect(),
        )
    }

    /// Tells together how pods do on the nodes that they are for. `name` is that of their workload.
    pub fn explain_per_node(&self, name: &str, tried: &[(Arc<Pod>, OnItsNode)]) -> Explanation {
        let mut groups: BTreeMap<(&str, &str), Vec<&Arc<Pod>>> = BTreeMap::new();
        for (pod, how) in tried {
            if let OnItsNode::Unfit(reasons) = how {
                for (plugin, reason) in reasons {
                    groups.entry((plugin, reason)).or_default().push(pod);
                }
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, pods)| std::cmp::Reverse(pods.len()));
        let example = groups.first().and_then(|(_, pods)| self.example(pods.first()?));
        let obstacles = groups.iter().map(|((plugin, reason), pods)| Obstacle {
            plugin: (*plugin).to_owned(),
            reason: (*reason).to_owned(),
            nodes: pods.len(),
            examples: pods
                .iter()
                .filter_map(|pod| node_of(pod))
                .take(EXAMPLES_MAX)
                .map(str::to_owned)
                .collect(),
            is_uncertain: false,
        });
        let count = |wanted: OnItsNode| tried.iter().filter(|(_, how)| *how == wanted).count();
        let verdict = Verdict::PerNode(PerNode {
            nodes: tried.len(),
            fits: count(OnItsNode::Fits),
            by_eviction: count(OnItsNode::ByEviction),
            obstacles: obstacles.collect(),
            example,
        });
        Explanation::new(name.to_owned(), verdict)
    }

    fn example(&self, pod: &Arc<Pod>) -> Option<NodeExample> {
        let Verdict::Pending(obstacles) = self.explain(pod).verdict else { return None };
        let (node, mut hints) = (node_of(pod)?.to_owned(), obstacles.hints);
        // That it could go elsewhere without its node affinity is no help: that is what makes it a pod for this node.
        hints.retain(|hint| hint.examples.contains(&node));
        Some(NodeExample { node, hints })
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
