//! What others could do: pods that could go, and what holds for all pods of the profile.

use std::collections::BTreeMap;

use supercargo_engine::{FilterWord, feasible_among};
use supercargo_framework::{Code, Context, Nomination, Profile};
use supercargo_model::Row;
use supercargo_model::pod::PreemptionPolicy;

use super::Search;
use super::opponents::Opponents;
use crate::explanation::Explainer;
use crate::remedy::{Hint, Remedy};
use crate::text::{nodes, pods};
use crate::what_if::evaluate_with_priority;

/// Higher priorities are the system's.
const USER_PRIORITY_MAX: i32 = 1_000_000_000;

/// More pods than this are not asked to go for one.
const PODS_IN_THE_WAY_MAX: usize = 5;
/// The plugin that keeps to what the profile adds, and what it says then.
const NODE_AFFINITY: &str = "NodeAffinity";
const REASON_ADDED_AFFINITY: &str = "node(s) didn't match scheduler-enforced node affinity";

impl Search<'_> {
    /// Nodes that would do but for the node affinity that the profile adds to all pods.
    pub(super) fn added_affinity(&self) -> Option<Hint> {
        let Explainer { profile, context, .. } = self.explainer;
        let says_so = |words: &[FilterWord]| {
            let mut blockers = words.iter().filter(|word| word.stands_in_the_way());
            blockers
                .all(|word| word.plugin == NODE_AFFINITY && word.status.message() == REASON_ADDED_AFFINITY)
        };
        let only = self.blocked_only_by(&[NODE_AFFINITY]);
        let words: BTreeMap<Row, &[FilterWord]> =
            self.evaluation.words.iter().map(|(row, words)| (*row, &**words)).collect();
        // The pod's own rules are looked at here, since the plugin that would is left out below.
        let rows: Vec<Row> = { only.into_iter() }
            .filter(|row| says_so(words[row]) && self.pod.spec.admits_node(&self.node(*row)))
            .collect();
        if rows.is_empty() {
            return None;
        }
        let mut without: Profile = (*profile).clone();
        without.pre_filter.retain(|named| named.name != NODE_AFFINITY);
        without.filter.retain(|named| named.name != NODE_AFFINITY);
        let rows = feasible_among(&without, context.clone(), self.pod, &rows);
        let name = &profile.scheduler_name;
        self.hint(Remedy::DropAddedAffinity { profile: name.clone() }, &rows, |opens| {
            format!(
                "without the node affinity that profile {name} adds to all pods {} would do",
                nodes(opens)
            )
        })
    }

    /// The node that the fewest pods stand in the way of, and who they are: those that want no such pod near them, that
    /// have its host ports, or that it does not want near itself.
    pub(super) fn pods_in_the_way(&self) -> Option<Hint> {
        let rows = self.blocked_only_by(&["InterPodAffinity", "NodePorts"]);
        if rows.is_empty() {
            return None;
        }
        let opponents = Opponents::new(self.pod, &self.explainer.context);
        let in_the_way =
            rows.iter().filter_map(|row| Some((opponents.on(self.node(*row), PODS_IN_THE_WAY_MAX)?, *row)));
        let (pods, row) = in_the_way.min_by_key(|(pods, _)| pods.len())?;
        let Explainer { profile, context, .. } = self.explainer;
        let cluster = &context.cluster.without_pods(pods.iter().map(|(row, pod)| (*row, &*pod.uid)));
        let context = Context { cluster, ..context.clone() };
        // Where they leave room, or a domain, more nodes than these may open.
        let opened = feasible_among(profile, context, self.pod, cluster.rows());
        if !opened.contains(&row) {
            return None;
        }
        let mut names: Vec<String> = pods.iter().map(|(_, pod)| pod.key()).collect();
        names.sort_unstable();
        let list = names.join(", ");
        self.hint(Remedy::RemovePods { pods: names }, &opened, |opens| {
            format!("without {list}, in the way now, {} would do", nodes(opens))
        })
    }

    /// What it could evict if it mattered more.
    pub(super) fn priority(&self) -> Option<Hint> {
        let spec = &self.pod.spec;
        let may = self.evaluation.victims.is_empty() && spec.preemption_policy != PreemptionPolicy::Never;
        if !may || !self.evictions_may_help() {
            return None;
        }
        let highest = self.explainer.highest_priority()?.min(USER_PRIORITY_MAX - 1);
        let priority = highest.checked_add(1).filter(|priority| *priority > self.pod.priority())?;
        let mut evaluation = evaluate_with_priority(self.explainer, self.pod, priority);
        let needed = evaluation.victims.iter().map(|pod| pod.priority()).max()?.checked_add(1)?;
        if needed != priority {
            evaluation = evaluate_with_priority(self.explainer, self.pod, needed);
        }
        let Nomination::Node(node) = &evaluation.nomination else { return None };
        let victims: Vec<String> = evaluation.evicted().map(|pod| pod.key()).collect();
        let row = self.explainer.context.cluster.row_of(node)?;
        let gain = match victims.len() {
            0 => format!("have the room that pods leaving {node} make"),
            evicted => format!("evict {} on {node}", pods(evicted)),
        };
        let remedy = Remedy::Priority { at_least: needed, node: node.to_string(), victims };
        self.hint(remedy, &[row], |_| format!("with a priority of {needed} or more it could {gain}"))
    }

    /// Whether there is a node where nobody says that evictions would not help.
    fn evictions_may_help(&self) -> bool {
        let is_hopeless =
            |word: &FilterWord| word.stands_in_the_way() && word.status.code() != Code::Unschedulable;
        self.evaluation.words.iter().any(|(_, words)| !words.iter().any(is_hopeless))
    }
}
