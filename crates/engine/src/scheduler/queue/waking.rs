//! Pods that are to be tried again because a plugin asks for it, because an eviction failed, or because their victims hold them back no
//! longer.

use super::{Place, Queue};
use crate::planted::{Bug, is_planted};
use crate::scheduler::observations::QueueEvent;
use crate::scheduler::queue_context::{Gate, QueueContext, Retry};

impl Queue {
    /// Tries a pod as soon as possible, however long it would have waited.
    pub(in crate::scheduler) fn activate(&mut self, context: &QueueContext<'_>, uid: &str) {
        let Some(slot) = self.by_uid.get(uid).copied() else { return };
        match self.get(slot).place {
            Place::Active => {}
            Place::InFlight => self.get_mut(slot).is_wanted = true,
            Place::Backoff | Place::ErrorBackoff | Place::Unschedulable => {
                self.leave(context, slot);
                self.enter(context, slot, Place::Active, QueueEvent::ForceActivate);
            }
        }
    }

    /// Tries the pods again that wait because of a plugin, which knows better by now.
    pub(in crate::scheduler) fn retry_rejected_by(
        &mut self,
        context: &QueueContext<'_>,
        plugin: &'static str,
    ) {
        let rejected = self.idle.of_reasons(|slot| self.get(slot).rejectors.contains(plugin));
        for slot in rejected {
            self.requeue(context, slot, Retry::AfterBackoff, QueueEvent::ForceActivate);
        }
    }

    /// A pod's victims hold it back no longer. Nothing but them has kept it from being tried if that gate is shut: something has happened
    /// that may help it, and may not happen again.
    pub(in crate::scheduler) fn let_in(&mut self, context: &QueueContext<'_>, uid: &str) {
        let Some(slot) = self.by_uid.get(uid).copied() else { return };
        let waiting = self.get(slot);
        let is_held = waiting.place == Place::Unschedulable && waiting.gate == Some(Gate::Preemption);
        if is_held && !is_planted(Bug::FreedPodsStayHeld) {
            self.requeue(context, slot, Retry::AfterBackoff, QueueEvent::ForceActivate);
        }
    }

    /// Tries a pod again after a while, because something broke that it waits for.
    pub(in crate::scheduler) fn retry(&mut self, context: &QueueContext<'_>, uid: &str) {
        let Some(slot) = self.by_uid.get(uid).copied() else { return };
        match self.get(slot).place {
            Place::Active | Place::Backoff | Place::ErrorBackoff => {}
            Place::InFlight => self.get_mut(slot).is_wanted = true,
            Place::Unschedulable => {
                let waiting = self.get_mut(slot);
                waiting.rejectors.clear();
                waiting.pending.clear();
                waiting.error_count = waiting.error_count.saturating_add(1);
                self.requeue(context, slot, Retry::AfterBackoff, QueueEvent::ForceActivate);
            }
        }
    }
}
