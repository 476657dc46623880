//! What pods say about why they are not scheduled, and that it is written in the end.
//!
//! As upstream, what is to be said is compared with what the API server says of the pod, at every attempt. What was ordered counts as said until the
//! order fails or the watch tells of the pod, so that an attempt which is faster than the watch does not have the same written twice.
//! Pods that wait for something to happen, or are held back, may not be tried for long: what could not be written about them is written again.

use std::sync::Arc;

use supercargo_framework::{Conclusion, Effect, Nomination, PodCondition};
use supercargo_model::pod::Unscheduled;
use supercargo_model::{Pod, Timestamp};

use super::Scheduler;
use super::binding::Binding;
use super::heap::Slot;
use super::observations::Observation;
use crate::planted::{Bug, is_planted};

/// What a pod says about why it was not scheduled.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// As the API server told it last.
    told: Option<Arc<Unscheduled>>,
    /// As it was meant last, ordered or found to be said; none if nothing was meant yet.
    meant: Option<Arc<Unscheduled>>,
    counts: Counts,
}

/// Which of the two counts as what the pod says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Counts {
    /// What the API server told.
    #[default]
    Told,
    /// What was ordered: the API server has told nothing since.
    Meant,
    /// What the API server told, and what was meant is to be ordered again: an order failed.
    Unwritten,
    /// What the API server told, though something else may have been ordered since, by whoever led before: what is meant next is ordered.
    Left,
}

impl Said {
    /// What the API server tells of a pod that was not known.
    pub(super) fn of(told: Option<Unscheduled>) -> Self {
        Said { told: told.map(Arc::new), ..Said::default() }
    }

    /// The API server tells of the pod.
    pub(super) fn tell(&mut self, told: Option<Unscheduled>) {
        self.told = told.map(Arc::new);
        if self.told.is_some() && self.is_told_as_meant() {
            // Kept once.
            self.meant = self.told.clone();
        }
        if self.counts == Counts::Meant {
            self.counts = Counts::Told;
        }
    }

    /// What is not known to be written is not taken to be.
    pub(super) fn doubt(&mut self) {
        if self.counts == Counts::Meant {
            self.counts = Counts::Told;
        }
    }

    /// An order failed that was to change what the pod says. It may have been this one or one before it, done or not: what the API server
    /// told counts again.
    pub(super) fn fail(&mut self) {
        if self.meant.is_some() {
            self.counts = Counts::Unwritten;
        }
    }

    /// Somebody else says from now on what pods say.
    pub(super) fn leave(&mut self) {
        (self.meant, self.counts) = (None, Counts::Left);
    }

    /// Means this; what is to be ordered, if the pod does not say so already.
    pub(super) fn mean(&mut self, meant: Unscheduled) -> Option<Arc<Unscheduled>> {
        let is_meant =
            self.meant.as_ref().is_none_or(|known| is_same(known, &meant)) && self.counts != Counts::Left;
        // If something else was ordered last, that may land yet.
        if is_meant && self.known().is_some_and(|known| is_same(known, &meant)) {
            self.meant = self.known().cloned();
            if self.counts == Counts::Unwritten {
                self.counts = Counts::Told;
            }
            return None;
        }
        let meant = Arc::new(meant);
        (self.meant, self.counts) = (Some(meant.clone()), Counts::Meant);
        Some(meant)
    }

    /// What the pod says, as far as is known.
    pub(super) fn known(&self) -> Option<&Arc<Unscheduled>> {
        match self.counts {
            Counts::Meant => self.meant.as_ref(),
            Counts::Told | Counts::Unwritten | Counts::Left => self.told.as_ref(),
        }
    }

    /// Whether what is meant could not be written, and nobody has meant anything since.
    pub(super) fn is_unwritten(&self) -> bool {
        self.counts == Counts::Unwritten
    }

    /// What could not be written and is to be ordered again; none if it was written all the same.
    fn mean_again(&mut self) -> Option<Arc<Unscheduled>> {
        if self.is_told_as_meant() {
            self.counts = Counts::Told;
            return None;
        }
        self.counts = Counts::Meant;
        self.meant.clone()
    }

    fn is_told_as_meant(&self) -> bool {
        match (&self.told, &self.meant) {
            (Some(told), Some(meant)) => is_same(told, meant),
            (told, meant) => told.is_none() && meant.is_none(),
        }
    }
}

/// Whether both say the same, no matter since when: the API server keeps whole seconds.
fn is_same(a: &Unscheduled, b: &Unscheduled) -> bool {
    *a.reason == *b.reason && *a.message == *b.message
}

/// The condition that says so.
pub(super) fn condition(said: &Unscheduled, observed_generation: i64, now: Timestamp) -> PodCondition {
    PodCondition {
        kind: "PodScheduled".into(),
        holds: false,
        reason: said.reason.to_string().into(),
        message: said.message.to_string(),
        since: said.since.unwrap_or(now),
        observed_generation,
    }
}

impl Scheduler {
    /// How an order ended that changes what a pod says about its scheduling.
    pub(super) fn conclude_status(&mut self, pod: &Arc<Pod>, conclusion: &Conclusion) {
        let Some(error) = conclusion.error() else { return };
        if is_planted(Bug::UnwrittenCounts) {
            return;
        }
        let uid = &pod.uid;
        let is_waiting = self.queue.find_mut(uid).map(|waiting| waiting.said.fail()).is_some();
        // Nobody minds what a pod says that is sent to a node: its binding takes the place of what was to be said.
        let is_told = self.bindings.get(uid).map_or(is_waiting, Binding::can_be_stopped);
        if is_told && self.leads {
            self.observe(Observation::StatusNotWritten { pod: pod.clone(), error: error.to_owned() });
        }
    }

    /// Has written again what could not be written about pods that wait.
    pub(super) fn say_again(&mut self, slots: Vec<Slot>, now: Timestamp) {
        if !self.leads {
            return;
        }
        for slot in slots {
            let waiting = self.queue.get_mut(slot);
            let Some(said) = waiting.said.mean_again() else { continue };
            let condition = Some(condition(&said, waiting.generation, now));
            let pod = waiting.queued.pod.clone();
            self.order(Effect::UpdateStatus { pod, condition, nomination: Nomination::Keep });
        }
    }
}
