//! Other plugins: every pod is asked for anew, and none is lost.

use super::ordering::Order;
use super::{Patience, Place, Queue};
use crate::scheduler::heap::{Heap, Slot};
use crate::scheduler::observations::QueueEvent;
use crate::scheduler::queue_context::{Gate, QueueContext, Retry};

impl Queue {
    /// Goes on with other plugins and other patience. Whatever waited for something to happen is tried again, because
    /// everything may be different now. Returned are the pods that nobody is responsible for any more.
    pub(in crate::scheduler) fn renew(
        &mut self,
        context: &QueueContext<'_>,
        patience: Patience,
    ) -> Vec<Slot> {
        (self.patience, self.order) = (patience, Order::of(context.profiles));
        // The heaps are in the order of the old plugins.
        (self.active, self.backoff, self.error_backoff) = (Heap::default(), Heap::default(), Heap::default());
        self.idle.clear();
        let mut slots: Vec<Slot> = (0..self.pods.len()).filter(|slot| self.pods[*slot].is_some()).collect();
        slots.sort_by_key(|slot| self.get(*slot).arrival);
        let mut orphans = Vec::new();
        for slot in slots {
            let before = self.get(slot).gate;
            self.renew_pod(context, slot);
            if self.get(slot).gate == Some(Gate::NoProfile) && before != Some(Gate::NoProfile) {
                orphans.push(slot);
            }
        }
        orphans
    }

    fn renew_pod(&mut self, context: &QueueContext<'_>, slot: Slot) {
        let place = match self.get(slot).place {
            // It is tried again if the old plugins' word was a no.
            Place::InFlight => return self.get_mut(slot).is_wanted = true,
            Place::Active => Place::Active,
            Place::Backoff | Place::ErrorBackoff | Place::Unschedulable => {
                let waits = self.get(slot).is_backing_off(&self.patience, context.now());
                if waits { Place::Backoff } else { Place::Active }
            }
        };
        self.enter(context, slot, place, QueueEvent::ConfigurationChanged);
    }

    /// Breaks off the attempt to place a pod, which is tried again as soon as pods are tried.
    pub(in crate::scheduler) fn take_back(&mut self, context: &QueueContext<'_>, slot: Slot) {
        self.requeue(context, slot, Retry::Immediately, QueueEvent::ForceActivate);
    }

    /// Breaks off the attempt to place a pod. It waits until [`Queue::renew`] looks at it.
    pub(in crate::scheduler) fn break_off(&mut self, context: &QueueContext<'_>, slot: Slot) {
        self.leave(context, slot);
        self.get_mut(slot).place = Place::Unschedulable;
        self.add_idle(context, slot);
    }
}
