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
                let (pod, preemptor) = (victim.key(), preemptor.key());
                info!(target: "v2", pod, preemptor, node = &**node, "Evicting pod to make room for a preemptor");
            }
            Observation::NotEvicted { victim, preemptor, error } => {
                if self.limited.admits("evict") {
                    error!(
                        err = error,
                        pod = victim.key(),
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

    /// An order that nobody waits for failed: an event that people do not get to see, or what a plugin wanted.
    pub(crate) fn untold(&self, what: &'static str, about: &str, error: &str) {
        if self.limited.admits(what) {
            warn!(err = error, about, "Failed to {what}");
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
