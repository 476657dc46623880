//! Whether this replica leads. One that follows knows the cluster as the leader does, but tries no pod and writes nothing.

use supercargo_framework::{Conclusion, Effect, Nomination};
use supercargo_model::Timestamp;

use super::Scheduler;
use super::queue::Queue;

impl Scheduler {
    /// Begins to lead, or to follow.
    ///
    /// A scheduler that stops leading puts back the pods whose bindings can still be stopped, and evicts nobody any more.
    /// Bindings that were sent stay until it is known what became of them. Orders that were not taken yet are dropped.
    pub fn set_leading(&mut self, leads: bool, now: Timestamp) {
        if self.leads == leads {
            return;
        }
        self.leads = leads;
        if leads {
            self.tell_of_held_pods(now);
            self.restart_observers(now);
            self.carry_out_acts(now);
            return;
        }
        self.break_off_consultation(now, Queue::take_back);
        self.break_off_inquiries(now, Queue::take_back);
        self.forget_evictions(now);
        self.stop_bindings(now);
        self.carry_out_acts(now);
        self.drop_orders(now);
        self.queue.leave_conditions();
    }

    /// Orders that the driver has not taken are not carried out any more, and say so to who waits for them.
    fn drop_orders(&mut self, now: Timestamp) {
        let (kept, dropped): (Vec<_>, Vec<_>) = std::mem::take(&mut self.orders)
            .into_iter()
            .partition(|order| matches!(order.effect, Effect::LookUp { .. }));
        self.orders = kept;
        for ticket in dropped.into_iter().filter_map(|order| order.ticket) {
            let error = "this replica does not lead any more".to_owned();
            self.conclude(ticket, &Conclusion::not_done(error), now);
        }
    }

    /// A new leader says of pods that are held back what its predecessor may not have said.
    fn tell_of_held_pods(&mut self, now: Timestamp) {
        for (slot, message) in self.with_queue(now, |queue, context| queue.held(context)) {
            self.tell_unscheduled(slot, "Unschedulable", message, Nomination::Clear, now);
        }
    }
}
