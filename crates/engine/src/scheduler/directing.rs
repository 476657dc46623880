//! For those who say themselves which pod is tried when, whose time is over and who is woken: judges of cases, in which no time
//! passes and pods have their turns as the case says.

use std::sync::Arc;

use supercargo_framework::QueuedPod;
use supercargo_model::{Pod, Timestamp};

use super::Scheduler;
use super::queue_context::queue_sort;
use crate::decision::Decision;
use crate::engine::UnknownProfile;
use crate::evaluate::Evaluation;

impl Scheduler {
    /// A pod of the queue.
    pub fn waiting_pod(&self, uid: &str) -> Option<&Arc<Pod>> {
        self.queue.find(uid).map(|waiting| &waiting.queued.pod)
    }

    /// Everything that would be said about a pod if it were tried now. Nothing comes of it.
    pub fn evaluate(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Result<Evaluation, UnknownProfile> {
        self.start_observers(now);
        self.engine.evaluate_now(pod, now)
    }

    /// What the index would decide otherwise than the plugins do when they are asked about every node; none if nothing.
    pub fn check_index(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Result<Option<String>, UnknownProfile> {
        self.start_observers(now);
        self.engine.check_index(pod, now)
    }

    /// Tries a certain pod that waits, whoever is before it or holds it back; none if no such pod waits, or extenders are asked
    /// about it first.
    pub fn schedule(&mut self, uid: &str, now: Timestamp) -> Option<Decision> {
        self.start_observers(now);
        let slot = self.with_queue(now, |queue, context| queue.take(context, uid))?;
        let pod = self.queue.get(slot).queued.pod.clone();
        let decision = self.try_pod(slot, &pod, Vec::new(), now);
        self.carry_out_acts(now);
        decision
    }

    /// Whether a pod goes before another one now, by the QueueSort plugin; if that has an order of its own because upstream's is none,
    /// by upstream's.
    pub fn goes_before(&mut self, a: &QueuedPod, b: &QueuedPod, now: Timestamp) -> bool {
        self.start_observers(now);
        let (context, profiles) = self.engine.view(now);
        queue_sort(profiles).is_some_and(|plugin| plugin.less_upstream(&context, a, b))
    }

    /// The time of a pod that waits at Permit is over, whatever the clock says. Nothing happens if it does not wait there.
    pub fn end_permit_wait(&mut self, uid: &Arc<str>, now: Timestamp) {
        self.time_out_permit(uid, now);
        self.carry_out_acts(now);
    }

    /// Wakes all plugins that observe and want to be woken some time, whatever the clock says.
    pub fn wake_all(&mut self, now: Timestamp) {
        self.start_observers(now);
        self.wake_all_observers(now);
        self.carry_out_acts(now);
    }
}
