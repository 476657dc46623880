//! Log lines about what became of decisions and orders, in kube-scheduler's words where it has any. Failures are written at the
//! default level, with the pod, the node, what failed and what happens next; each kind of failure has a limit of its own.

use supercargo_engine::{Decision, Observation, Outcome, Refusal};
use supercargo_model::Pod;
use tracing::{error, info, warn};

use supercargo_client::LimitedLog;

/// Writes them. Clones share the limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderLog {
    limited: LimitedLog,
}

impl OrderLog {
    /// A pod was tried.
    pub(crate) fn decided(&self, decision: &Decision) {
        // The pod's name is put together only where a line is written.
        let pod = &decision.pod;
        match &decision.outcome {
            Outcome::Place { node, feasible, .. } => {
                info!(target: "v3", pod = pod.key(), node = &**node, feasibleNodes = feasible, "Pod gets a node");
            }
            Outcome::Unschedulable { message, .. } => {
                info!(target: "v2", pod = pod.key(), err = message, "Unable to schedule pod; no fit; waiting");
            }
            Outcome::Failed { error } => {
                if self.limited.admits("schedule") {
                    error!(err = error, pod = pod.key(), "Error scheduling pod; retrying");
                }
            }
        }
    }

    /// The scheduler did something else.
    pub(crate) fn observed(&self, observation: &Observation) {
        match observation {
            Observation::Bound { pod, node, evaluated_nodes, feasible_nodes, .. } => {
                info!(
                    target: "v2",
                    pod = pod.key(),
                    node = &**node,
                    evaluatedNodes = evaluated_nodes,
                    feasibleNodes = feasible_nodes,
                    "Successfully bound pod to node"
                );
            }
            Observation::NotBound { pod, node, is_rejected, message, .. } => {
                self.not_bound(pod, node, *is_rejected, message);
            }
            Observation::BoundByOther { pod, node, bound_to } => {
                if self.limited.admits("bound-by-other") {
                    let pod = pod.key();
                    warn!(pod, node = &**node, boundTo = &**bound_to, "Pod was bound by another writer");
                }
            }
            Observation::BindingUnknown { pod, node, error } => {
                if self.limited.admits("binding-unknown") {
                    error!(
                        err = error,
                        pod = pod.key(),
                        node = &**node,
                        "Pod may be bound or not; its room stays taken, and the API server is asked"
                    );
                }
            }
            Observation::LookUpFailed { pod, error } => {
                if self.limited.admits("look-up") {
                    let pod = pod.key();
                    error!(
                        err = error,
                        pod, "Pod cannot be looked up; its room stays taken, and it is tried again"
                    );
                }
            }
            Observation::Evicting { victim, preemptor, node } => {
                // Every one, at every level: somebody will ask who has deleted the pod.
                let (pod, preemptor) = (victim.key(), preemptor.key());
                info!(pod, preemptor, node = &**node, "Evicting pod to make room for a preemptor");
            }
            Observation::NotEvicted { victim, preemptor, error } => {
                if self.limited.admits("evict") {
                    error!(
                        err = error,
                        pod = victim.key(),
                        node = victim.node_name.as_deref(),
                        preemptor = preemptor.key(),
                        "Pod could not be evicted; its preemptor is tried again after a backoff"
                    );
                }
            }
            Observation::StatusNotWritten { pod, error } => {
                if self.limited.admits("update pod status") {
                    let pod = pod.key();
                    warn!(
                        err = error,
                        pod, "Failed to update pod status; why the pod waits is written again"
                    );
                }
            }
            Observation::PluginPanicked { plugin, pod, message } => {
                if self.limited.admits("plugin-panic") {
                    let pod = pod.key();
                    error!(
                        err = message,
                        plugin, pod, "A plugin panicked; the pod is tried again after a backoff"
                    );
                }
            }
            Observation::PluginSlow { plugin, pod, took } => {
                if self.limited.admits("plugin-slow") {
                    let (pod, seconds) = (pod.key(), took.as_secs_f64());
                    warn!(plugin, pod, seconds, "A plugin is slow; no other pod is tried meanwhile");
                }
            }
            Observation::ActsRefused { refusal: Refusal::Following, .. } => {}
            Observation::ActsRefused { plugin, acts, refusal } => {
                if self.limited.admits("act") {
                    warn!(
                        err = refusal.words(),
                        plugin, acts, "A plugin asked for something that is not done"
                    );
                }
            }
            Observation::PluginOrderFailed { plugin, order, error } => {
                if self.limited.admits("plugin-order") {
                    warn!(
                        err = error,
                        plugin,
                        order,
                        "What a plugin has ordered was not done; it is told, and may order it again"
                    );
                }
            }
            Observation::FactsExpired { query, facts } => {
                if self.limited.admits("facts-expired") {
                    warn!(query, facts, "Facts are too old and dropped; plugins go on without them");
                }
            }
            Observation::Queued { .. }
            | Observation::Counted { .. }
            | Observation::Gauged { .. }
            | Observation::AnswerDropped
            | Observation::QuestionAsked { .. }
            | Observation::PointRan { .. }
            | Observation::PreemptionTried
            | Observation::VictimsChosen(_)
            | Observation::Evicted { .. }
            | Observation::PermitAwaited { .. }
            | Observation::Activated { .. }
            | Observation::PermitWaited { .. }
            | Observation::Missed(_) => {}
        }
    }

    /// An event that people do not get to see.
    pub(crate) fn event_lost(&self, about: &str, error: &str) {
        if self.limited.admits("record event") {
            warn!(err = error, about, "Failed to record event; it is not told again");
        }
    }

    /// Something that a plugin wanted, and does not wait for.
    pub(crate) fn change_lost(&self, object: &str, error: &str) {
        if self.limited.admits("change object") {
            warn!(err = error, object, "Failed to change object as a plugin wanted; it is not tried again");
        }
    }

    /// An extender did not answer, or said that it has failed.
    pub(crate) fn extender_failed(&self, error: &str) {
        if self.limited.admits("extender") {
            warn!(
                err = error,
                "An extender gave no answer; its pod is tried again after a backoff, or goes on without it if the extender is ignorable"
            );
        }
    }

    /// Says how much was left out. To be called about once a second.
    pub(crate) fn write_suppressed(&self) {
        self.limited.write_suppressed();
    }

    fn not_bound(&self, pod: &Pod, node: &str, is_rejected: bool, message: &str) {
        if is_rejected {
            info!(target: "v2", err = message, pod = pod.key(), node, "Pod was not permitted on its node; waiting");
        } else if self.limited.admits("bind") {
            error!(err = message, pod = pod.key(), node, "Error binding pod; retrying after a backoff");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use supercargo_client::logged::Logged;

    use super::*;

    fn pod(name: &str) -> Arc<Pod> {
        Arc::new(Pod {
            namespace: "shop".into(),
            name: name.into(),
            node_name: Some("n1".into()),
            ..Pod::default()
        })
    }

    #[test]
    fn what_fails_and_who_is_deleted_is_written_at_the_default_level() {
        let (low, high, error) = (|| pod("low"), || pod("high"), || "it broke".to_owned());
        let (about_low, about_high) = ("pod=\"shop/low\"", "preemptor=\"shop/high\"");
        for (observation, expected) in [
            (
                Observation::Evicting { victim: low(), preemptor: high(), node: "n1".into() },
                vec![about_low, about_high, "node=\"n1\"", "Evicting pod"],
            ),
            (
                Observation::NotEvicted { victim: low(), preemptor: high(), error: error() },
                vec![about_low, about_high, "node=\"n1\"", "it broke", "tried again after a backoff"],
            ),
            (
                Observation::BindingUnknown { pod: low(), node: "n1".into(), error: error() },
                vec![about_low, "node=\"n1\"", "it broke", "the API server is asked"],
            ),
            (
                Observation::LookUpFailed { pod: low(), error: error() },
                vec![about_low, "it broke", "it is tried again"],
            ),
            (
                Observation::StatusNotWritten { pod: low(), error: error() },
                vec![about_low, "it broke", "is written again"],
            ),
            (
                Observation::PluginOrderFailed {
                    plugin: "Gangs",
                    order: "patch podgroups shop/g".to_owned(),
                    error: error(),
                },
                vec!["plugin=\"Gangs\"", "patch podgroups shop/g", "it broke", "may order it again"],
            ),
        ] {
            let (logged, _logging) = Logged::without_verbosity();
            OrderLog::default().observed(&observation);
            let lines = logged.text();
            assert!(
                expected.iter().all(|word| lines.contains(word)),
                "{lines:?} has not all of {expected:?}"
            );
        }
    }
}
