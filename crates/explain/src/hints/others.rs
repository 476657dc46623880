//! What others could do: pods that could go, and what holds for all pods of the profile.

use supercargo_engine::FilterWord;
use supercargo_framework::{Code, Nomination};
use supercargo_model::pod::PreemptionPolicy;

use super::Search;
use crate::remedy::{Hint, Remedy};
use crate::text::pods;
use crate::what_if::evaluate_with_priority;

/// Higher priorities are the system's.
const USER_PRIORITY_MAX: i32 = 1_000_000_000;

impl Search<'_> {
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
        let victims: Vec<String> = evaluation.victims.iter().map(|pod| pod.key()).collect();
        let row = self.explainer.context.cluster.row_of(node)?;
        let evicted = pods(victims.len());
        let remedy = Remedy::Priority { at_least: needed, node: node.to_string(), victims };
        self.hint(remedy, &[row], |_| {
            format!("with a priority of {needed} or more it could evict {evicted} on {node}")
        })
    }

    /// Whether there is a node where nobody says that evictions would not help.
    fn evictions_may_help(&self) -> bool {
        let is_hopeless =
            |word: &FilterWord| word.stands_in_the_way() && word.status.code() != Code::Unschedulable;
        self.evaluation.words.iter().any(|(_, words)| !words.iter().any(is_hopeless))
    }
}
