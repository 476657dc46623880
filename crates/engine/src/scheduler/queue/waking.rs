//! Pods that somebody wants to be tried again.

use super::{Place, Queue};
use crate::scheduler::house::{House, Verdict};
use crate::scheduler::observations::QueueEvent;

impl Queue {
    /// Tries a pod as soon as possible, however long it would have waited.
    pub(in crate::scheduler) fn activate(&mut self, house: &House<'_>, uid: &str) {
        let Some(slot) = self.by_uid.get(uid).copied() else { return };
        match self.get(slot).place {
            Place::Active => {}
            Place::InFlight => self.get_mut(slot).is_wanted = true,
            Place::Backoff | Place::ErrorBackoff | Place::Unschedulable => {
                self.leave(house, slot);
                self.enter(house, slot, Place::Active, QueueEvent::ForceActivate);
            }
        }
    }

    /// Tries a pod again after a while, because something broke that it waits for.
    pub(in crate::scheduler) fn retry(&mut self, house: &House<'_>, uid: &str) {
        let Some(slot) = self.by_uid.get(uid).copied() else { return };
        match self.get(slot).place {
            Place::Active | Place::Backoff | Place::ErrorBackoff => {}
            Place::InFlight => self.get_mut(slot).is_wanted = true,
            Place::Unschedulable => {
                let waiting = self.get_mut(slot);
                waiting.rejectors.clear();
                waiting.pending.clear();
                waiting.error_count = waiting.error_count.saturating_add(1);
                self.requeue(house, slot, Verdict::AfterBackoff, QueueEvent::ForceActivate);
            }
        }
    }
}
