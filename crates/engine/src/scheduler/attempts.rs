//! Trying a pod, and what becomes of it when that was in vain.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{Effect, Nomination, Notice, StaysPending, Subject, Write};
use supercargo_model::pod::Unscheduled;
use supercargo_model::{Object, Pod, Timestamp};

use super::Scheduler;
use super::binding::NodeCounts;
use super::catching::{Panicked, caught};
use super::conditions::condition;
use super::heap::Slot;
use super::observations::Observation;
use super::queue::Queue;
use super::queue_context::profile_of;
use super::replacing::no_profile;
use crate::decision::{Decision, Outcome};

/// Why a pod was tried in vain.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Whether the pod does not fit; otherwise something broke.
    pub(super) is_rejected: bool,
    /// What is told to people.
    pub(super) message: String,
    /// What the plugin that is to blame said, or what broke.
    pub(super) words: Box<str>,
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
            words: message.as_str().into(),
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
            words: message.into(),
            rejectors: BTreeSet::from([plugin]),
            pending: BTreeSet::new(),
            nomination: Nomination::Clear,
        }
    }

    fn reason(&self) -> &'static str {
        if self.is_rejected { "Unschedulable" } else { "SchedulerError" }
    }

    /// The status that an extension point ended with, as metrics name it.
    pub(super) fn status(&self) -> &'static str {
        if self.is_rejected { "Unschedulable" } else { "Error" }
    }
}

impl Scheduler {
    /// Tries the next pod; none if no pod is ready to be tried, extenders are being asked about one, or others
    /// about all.
    pub fn schedule_next(&mut self, now: Timestamp) -> Option<Decision> {
        self.start_observers(now);
        let decision = self.try_next(now);
        self.carry_out_acts(now);
        decision
    }

    fn try_next(&mut self, now: Timestamp) -> Option<Decision> {
        while self.leads && self.consultation.is_none() {
            if let Some(decision) = self.decide_next_asked(now) {
                return Some(decision);
            }
            if self.consultation.is_some() || self.inquiries.is_full() {
                return None;
            }
            let slot = self.with_queue(now, Queue::pop)?;
            let pod = self.queue.get(slot).queued.pod.clone();
            if self.skips_deleted(&pod, now) || self.inquire(slot, &pod, now) {
                continue;
            }
            let decision = self.try_pod(slot, &pod, Vec::new(), now);
            if decision.is_some() {
                return decision;
            }
        }
        None
    }

    /// Whether a pod is not tried because it is being deleted.
    pub(super) fn skips_deleted(&mut self, pod: &Arc<Pod>, now: Timestamp) -> bool {
        if pod.is_terminating() {
            let note = format!("skip schedule deleting pod: {}", pod.key());
            self.record(failed_scheduling(pod, note));
            self.drop_waiting(pod, now);
        }
        pod.is_terminating()
    }

    /// Tries a pod, with what was answered about it; none if extenders are asked first.
    pub(super) fn try_pod(
        &mut self,
        slot: Slot,
        pod: &Arc<Pod>,
        answers: Vec<Object>,
        now: Timestamp,
    ) -> Option<Decision> {
        if self.has_extenders_for(pod) && self.engine.cluster.snapshot().node_count() > 0 {
            self.consult(slot, pod, answers, now)
        } else if answers.is_empty() {
            self.decide(slot, pod, now)
        } else {
            self.with_answers(&answers, |scheduler| scheduler.decide(slot, pod, now))
        }
    }

    fn decide(&mut self, slot: Slot, pod: &Arc<Pod>, now: Timestamp) -> Option<Decision> {
        let began = self.stopwatch.read();
        let decided = caught(|| self.engine.decide(pod, now));
        let took = self.stopwatch.since(began);
        match decided {
            Ok(Ok(decision)) => {
                self.act_on(slot, &decision, now);
                self.look_for_slow(pod, took, now);
                Some(decision)
            }
            Err(panicked) => Some(self.break_off(slot, pod, &panicked, now)),
            Ok(Err(_)) => {
                // Nobody is responsible for such pods any more.
                self.drop_waiting(pod, now);
                None
            }
        }
    }

    /// A plugin panicked while a pod was decided.
    pub(super) fn break_off(
        &mut self,
        slot: Slot,
        pod: &Arc<Pod>,
        panicked: &Panicked,
        now: Timestamp,
    ) -> Decision {
        self.tell_of_panic(pod, panicked);
        let decision = self.engine.broken_off(pod, now, panicked.to_string());
        self.act_on(slot, &decision, now);
        decision
    }

    /// Takes a pod out of the queue that is not to be tried any more.
    fn drop_waiting(&mut self, pod: &Arc<Pod>, now: Timestamp) {
        let told = self.told_pod(&pod.uid);
        self.with_queue(now, |queue, context| queue.remove(context, &pod.uid));
        self.engine.cluster.clear_standing(&pod.uid);
        if let Some((node, pod)) = self.engine.cluster.clear_nomination(&pod.uid) {
            self.nomination_ended(&pod, &node, now);
        }
        self.tell_of_pod(told, None, now);
    }

    pub(super) fn act_on(&mut self, slot: Slot, decision: &Decision, now: Timestamp) {
        if !matches!(decision.outcome, Outcome::Failed { .. }) {
            self.tell_rejections(&decision.pod, now);
        }
        match &decision.outcome {
            Outcome::Place { row, evaluated, feasible, .. } => {
                self.place(slot, *row, NodeCounts { evaluated: *evaluated, feasible: *feasible }, now);
            }
            Outcome::Failed { error } => self.fail(slot, Failure::error(error.clone()), now),
            Outcome::Unschedulable { victims, .. }
                if !victims.is_empty() && !self.may_evict(&decision.pod) =>
            {
                let error = "a PostFilter plugin wants pods evicted, but none of the profile declares that it evicts pods";
                self.fail(slot, Failure::error(error.to_owned()), now);
            }
            Outcome::Unschedulable { message, plugins, pending, nomination, victims } => {
                if self.looked_for_room(&decision.pod) {
                    self.observe(Observation::PreemptionTried);
                }
                let displaced = match nomination {
                    Nomination::Node(node) => self.make_room(&decision.pod, node, victims.clone(), now),
                    Nomination::Keep | Nomination::Clear => Vec::new(),
                };
                self.conclude_pending(
                    &StaysPending::new(&decision.pod, message, plugins, nomination, victims),
                    now,
                );
                let failure = Failure {
                    is_rejected: true,
                    message: message.clone(),
                    words: message.as_str().into(),
                    rejectors: plugins.clone(),
                    pending: pending.clone(),
                    nomination: nomination.clone(),
                };
                self.fail(slot, failure, now);
                // Only now, as the pod itself is not helped by what it takes from others.
                for ended in displaced {
                    self.nomination_cleared(ended, now);
                }
            }
        }
    }

    /// Tells PostFilter plugins that a pod fits nowhere: this decision counts.
    fn conclude_pending(&mut self, decided: &StaysPending<'_>, now: Timestamp) {
        let Some(number) = profile_of(self.engine.profiles(), decided.pod) else { return };
        if self.engine.profiles()[number].post_filter.is_empty() {
            return;
        }
        // The pod stays pending, whoever panics; that was told by then.
        let _ = self.caught_acting(decided.pod, |scheduler| {
            scheduler.engine.with_acts(now, |profiles, context, acting| {
                for named in &profiles[number].post_filter {
                    named.run(|plugin| plugin.stays_pending(context, decided, &mut acting.of(named.name)));
                }
            });
        });
    }

    /// Whether a PostFilter plugin has declared that it evicts pods.
    fn may_evict(&self, pod: &Pod) -> bool {
        let profiles = self.engine.profiles();
        let profile = profile_of(profiles, pod).map(|number| &profiles[number]);
        let evicts = |name| {
            let mut plugins = profile.iter().flat_map(|profile| profile.plugins());
            plugins.any(|plugin| plugin.name == name && plugin.writes.contains(&Write::EVICTION))
        };
        profile.is_some_and(|profile| profile.post_filter.iter().any(|named| evicts(named.name)))
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
        self.with_queue(now, |queue, context| queue.put_back(context, slot, rejectors, pending));
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
        let since = waiting.said.known().and_then(|known| known.since).or(Some(now));
        let meant = Unscheduled { reason: reason.into(), message: message.as_str().into(), since };
        let condition = waiting.said.mean(meant).map(|meant| condition(&meant, waiting.generation, now));
        let is_nomination_ordered = std::mem::take(&mut waiting.is_nomination_ordered);
        let nomination = match nomination {
            Nomination::Keep => Nomination::Keep,
            _ if self.engine.rules().keep_nominations => Nomination::Keep,
            Nomination::Clear => {
                // What was ordered may not have been done yet, or not be told of yet.
                let ended = self.nominate(&pod, None);
                let is_ordered = ended.is_some() || is_nomination_ordered;
                let is_nominated = is_ordered || pod.nominated_node_name().is_some();
                if let Some(ended) = ended {
                    self.nomination_cleared(ended, now);
                }
                if is_nominated { Nomination::Clear } else { Nomination::Keep }
            }
            Nomination::Node(node) => {
                if let Some(ended) = self.nominate(&pod, Some(&node)) {
                    self.nomination_cleared(ended, now);
                }
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
        about: Subject::Pod(pod.clone()),
        reporter: Arc::from(&*pod.spec.scheduler_name),
        is_warning: true,
        reason: "FailedScheduling".into(),
        action: "Scheduling".into(),
        note,
        related: None,
    }
}
