//! Trying a pod, and what becomes of it when that was in vain.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{Effect, Nomination, Notice, PodCondition};
use supercargo_model::pod::Unscheduled;
use supercargo_model::{Pod, Timestamp};

use super::Scheduler;
use super::heap::Slot;
use super::house::profile_of;
use super::observations::Observation;
use super::queue::Queue;
use super::replacing::no_profile;
use crate::decision::{Decision, Outcome};

/// Why a pod was tried in vain.
#[derive(Debug)]
pub(super) struct Failure {
    /// Whether the pod does not fit; otherwise something broke.
    pub(super) is_rejected: bool,
    pub(super) message: String,
    /// The plugins to blame.
    pub(super) rejectors: BTreeSet<&'static str>,
    pub(super) pending: BTreeSet<&'static str>,
    pub(super) nomination: Nomination,
}

impl Failure {
    /// Something broke.
    pub(super) fn error(message: String) -> Self {
        Failure {
            is_rejected: false,
            message,
            rejectors: BTreeSet::new(),
            pending: BTreeSet::new(),
            nomination: Nomination::Clear,
        }
    }

    /// A plugin rejected the node that was chosen already.
    pub(super) fn rejected(plugin: &'static str, message: &str) -> Self {
        Failure {
            is_rejected: true,
            message: format!("0/1 nodes are available: 1 {message}."),
            rejectors: BTreeSet::from([plugin]),
            pending: BTreeSet::new(),
            nomination: Nomination::Clear,
        }
    }

    fn reason(&self) -> &'static str {
        if self.is_rejected { "Unschedulable" } else { "SchedulerError" }
    }
}

impl Scheduler {
    /// Tries the next pod; none if no pod is ready to be tried, or extenders are being asked about one.
    pub fn schedule_next(&mut self, now: Timestamp) -> Option<Decision> {
        while self.leads && self.consultation.is_none() {
            let slot = self.with_house(now, Queue::pop)?;
            let pod = self.queue.get(slot).queued.pod.clone();
            if pod.is_terminating() {
                let note = format!("skip schedule deleting pod: {}", pod.key());
                self.record(failed_scheduling(&pod, note));
                self.with_house(now, |queue, house| queue.remove(house, &pod.uid));
                self.engine.cluster.clear_standing(&pod.uid);
                continue;
            }
            let decision = if self.has_extenders_for(&pod) && self.engine.cluster.snapshot().node_count() > 0
            {
                self.consult(slot, &pod, now)
            } else {
                self.decide(slot, &pod, now)
            };
            if decision.is_some() {
                return decision;
            }
        }
        None
    }

    fn decide(&mut self, slot: Slot, pod: &Arc<Pod>, now: Timestamp) -> Option<Decision> {
        match self.engine.decide(pod, now) {
            Ok(decision) => {
                self.act_on(slot, &decision, now);
                Some(decision)
            }
            Err(_) => {
                // Nobody is responsible for such pods any more.
                self.with_house(now, |queue, house| queue.remove(house, &pod.uid));
                self.engine.cluster.clear_standing(&pod.uid);
                None
            }
        }
    }

    pub(super) fn act_on(&mut self, slot: Slot, decision: &Decision, now: Timestamp) {
        match &decision.outcome {
            Outcome::Place { row, .. } => self.place(slot, *row, now),
            Outcome::Failed { error } => self.fail(slot, Failure::error(error.clone()), now),
            Outcome::Unschedulable { message, plugins, pending, nomination, victims } => {
                if self.looked_for_room(&decision.pod) {
                    self.observe(Observation::PreemptionTried);
                }
                if let Nomination::Node(node) = nomination {
                    self.make_room(&decision.pod, node, victims.clone(), now);
                }
                let failure = Failure {
                    is_rejected: true,
                    message: message.clone(),
                    rejectors: plugins.clone(),
                    pending: pending.clone(),
                    nomination: nomination.clone(),
                };
                self.fail(slot, failure, now);
            }
        }
    }

    /// Whether PostFilter was run for a pod that fits nowhere.
    fn looked_for_room(&mut self, pod: &Pod) -> bool {
        let profiles = self.engine.profiles();
        profile_of(profiles, pod).is_some_and(|number| !profiles[number].post_filter.is_empty())
            && self.engine.rules().run_post_filter
            && self.engine.cluster.snapshot().node_count() > 0
    }

    /// Puts a pod back into the queue, and tells people why.
    pub(super) fn fail(&mut self, slot: Slot, failure: Failure, now: Timestamp) {
        let reason = failure.reason();
        let Failure { message, rejectors, pending, nomination, .. } = failure;
        self.with_house(now, |queue, house| queue.put_back(house, slot, rejectors, pending));
        let pod = &self.queue.get(slot).queued.pod;
        if profile_of(self.engine.profiles(), pod).is_none() {
            // It was tried by a profile that has gone meanwhile; what counts now is that it is not tried any more.
            let message = no_profile(pod);
            return self.tell_unscheduled(slot, "Unschedulable", message, Nomination::Clear, now);
        }
        self.tell_unscheduled(slot, reason, message, nomination, now);
    }

    /// Tells people why a pod is not scheduled.
    pub(super) fn tell_unscheduled(
        &mut self,
        slot: Slot,
        reason: &'static str,
        message: String,
        nomination: Nomination,
        now: Timestamp,
    ) {
        let waiting = self.queue.get_mut(slot);
        let pod = waiting.queued.pod.clone();
        if !self.leads {
            // Another replica speaks about pods. What this one has not said it says when it leads.
            return;
        }
        let known = waiting.unscheduled.as_ref();
        let is_new = known.is_none_or(|known| *known.reason != *reason || *known.message != *message);
        let since = known.and_then(|known| known.since).unwrap_or(now);
        let condition = is_new.then(|| PodCondition {
            kind: "PodScheduled",
            holds: false,
            reason,
            message: message.clone(),
            since,
            observed_generation: waiting.generation,
        });
        waiting.unscheduled =
            Some(Unscheduled { reason: reason.into(), message: message.as_str().into(), since: Some(since) });
        let nomination = match nomination {
            Nomination::Keep => Nomination::Keep,
            Nomination::Clear => {
                self.engine.cluster.clear_nomination(&pod.uid);
                if pod.nominated_node_name().is_some() { Nomination::Clear } else { Nomination::Keep }
            }
            Nomination::Node(node) => {
                self.engine.cluster.nominate(pod.clone(), &node);
                if pod.nominated_node_name() == Some(&node) {
                    Nomination::Keep
                } else {
                    Nomination::Node(node)
                }
            }
        };
        self.record(failed_scheduling(&pod, message));
        if condition.is_some() || nomination != Nomination::Keep {
            self.order(Effect::UpdateStatus { pod, condition, nomination });
        }
    }
}

fn failed_scheduling(pod: &Arc<Pod>, note: String) -> Notice {
    Notice {
        pod: pod.clone(),
        reporter: Arc::from(&*pod.spec.scheduler_name),
        is_warning: true,
        reason: "FailedScheduling",
        action: "Scheduling",
        note,
        related: None,
    }
}
