//! Pods that are held back, and what is told of them.

use super::Queue;
use crate::scheduler::heap::Slot;
use crate::scheduler::queue_context::{Gate, QueueContext};
use crate::scheduler::replacing::no_profile;

impl Queue {
    /// The pods that a plugin began to hold back since the last time, and why, if that is to be told.
    pub(in crate::scheduler) fn take_newly_held(
        &mut self,
        context: &QueueContext<'_>,
    ) -> Vec<(Slot, String)> {
        let slots = std::mem::take(&mut self.newly_held);
        slots.into_iter().filter_map(|slot| self.told_reason(context, slot)).collect()
    }

    /// Why a pod is held back, if that is to be told.
    pub(in crate::scheduler) fn told_reason(
        &self,
        context: &QueueContext<'_>,
        slot: Slot,
    ) -> Option<(Slot, String)> {
        let waiting = self.pods.get(slot)?.as_deref()?;
        match waiting.gate? {
            gate @ Gate::Plugin(name) if context.is_told(gate, waiting) => {
                Some((slot, context.gate_message(waiting, name)))
            }
            Gate::NoProfile => Some((slot, no_profile(&waiting.queued.pod))),
            Gate::Plugin(_) | Gate::Preemption => None,
        }
    }

    /// The pods that are held back, and why, as far as that is to be told.
    pub(in crate::scheduler) fn held(&self, context: &QueueContext<'_>) -> Vec<(Slot, String)> {
        self.idle_slots().filter_map(|slot| self.told_reason(context, slot)).collect()
    }
}
