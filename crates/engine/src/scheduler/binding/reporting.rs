//! What there is to tell of a binding: how it ended, and how far it has come.

use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::Point;
use supercargo_model::{Pod, Timestamp};

use super::{Binding, QueueEntry, Stage};
use crate::scheduler::Scheduler;
use crate::scheduler::attempts::Failure;
use crate::scheduler::heap::Slot;
use crate::scheduler::observations::Observation;
use crate::scheduler::whereabouts::PodPlace;

impl Binding {
    pub(in crate::scheduler) fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    /// How often the pod was tried, if its entry of the queue is here.
    pub(in crate::scheduler) fn attempts(&self) -> Option<u32> {
        match &self.entry {
            QueueEntry::InFlight => None,
            QueueEntry::Held(waiting) => Some(waiting.queued.attempts),
        }
    }

    /// How far it has come.
    pub(in crate::scheduler) fn pod_place(&self) -> PodPlace {
        let (node, since) = (self.node.clone(), self.began);
        match &self.stage {
            Stage::Permit(waits) => PodPlace::Permit {
                node,
                plugins: waits.iter().map(|wait| wait.plugin).collect(),
                until: self.deadline().unwrap_or(since),
            },
            Stage::PreBind(..) => PodPlace::PreBind { node, since },
            Stage::SeekBinder(_) | Stage::Extender(_) | Stage::Bind(..) => PodPlace::Binding { node, since },
            Stage::Unresolved(_) => PodPlace::Unresolved { node, since },
        }
    }
}

impl Scheduler {
    pub(super) fn observe_bound(&mut self, binding: &Binding, now: Timestamp) {
        self.observe_point(Point::Bind, &binding.pod, "Success", now.since(binding.began));
        if let QueueEntry::Held(waiting) = &binding.entry {
            self.observe(Observation::Bound {
                pod: binding.pod.clone(),
                node: binding.node.clone(),
                evaluated_nodes: binding.counts.evaluated,
                feasible_nodes: binding.counts.feasible,
                attempts: waiting.queued.attempts,
                since_queued: now.since(waiting.queued.first_attempt_at.unwrap_or(now)),
                since_attempt: waiting.since_attempt(now),
                was_flushed: waiting.was_flushed(),
            });
        }
    }

    /// What a binding was at when it failed.
    pub(super) fn observe_failed(&mut self, uid: &str, failure: &Failure, now: Timestamp) {
        let Some(binding) = self.bindings.get(uid) else { return };
        let status = failure.status();
        let point = match &binding.stage {
            Stage::Permit(_) => {
                let took = now.since(binding.began);
                return self.observe(Observation::PermitWaited { result: status, took });
            }
            Stage::PreBind(..) => Point::PreBind,
            Stage::SeekBinder(_) | Stage::Extender(_) | Stage::Bind(..) | Stage::Unresolved(_) => Point::Bind,
        };
        let (pod, took) = (binding.pod.clone(), now.since(binding.began));
        self.observe_point(point, &pod, status, took);
    }

    /// Reserve, or Permit, was run at once.
    pub(super) fn observe_at_once<T>(
        &mut self,
        point: Point,
        pod: &Arc<Pod>,
        result: &Result<T, Failure>,
        began: Duration,
    ) {
        let took = self.stopwatch.since(began);
        let status = result.as_ref().map_or_else(Failure::status, |_| "Success");
        self.observe_point(point, pod, status, took);
    }

    /// Puts a pod back into the queue that was given a node.
    pub(in crate::scheduler) fn fail_placed(
        &mut self,
        slot: Slot,
        node: &Arc<str>,
        failure: Failure,
        now: Timestamp,
    ) {
        let waiting = self.queue.get(slot);
        let observation = Observation::NotBound {
            pod: waiting.queued.pod.clone(),
            node: node.clone(),
            is_rejected: failure.is_rejected,
            message: failure.message.clone(),
            words: failure.words.to_string(),
            plugins: failure.rejectors.clone(),
            since_attempt: waiting.since_attempt(now),
        };
        self.observe(observation);
        self.fail(slot, failure, now);
    }
}
