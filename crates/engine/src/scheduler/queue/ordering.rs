//! The order in which pods are tried, and when it has to be made anew.
//!
//! An order may change with time or with events ([`OrderChanges`]). Then the heaps are stale until somebody wants to know which
//! pod is first: pods come and go without being compared, and the heap is put in order once, however much has happened.

use supercargo_framework::{ClusterEvent, Context, OrderChanges, Profile, QueueSort};
use supercargo_model::Timestamp;

use super::{Patience, Queue, Waiting, at};
use crate::scheduler::heap::{Heap, Slot};
use crate::scheduler::queue_context::{QueueContext, queue_sort};

/// What the order of the heaps depends on, and which heaps are not in order any more.
#[derive(Debug)]
pub(super) struct Order {
    changes: OrderChanges,
    /// The moment whose order it is, if the order depends on time.
    moment: Option<Timestamp>,
    active_is_stale: bool,
    /// Whether pods whose backoffs end together are not in order any more. When backoffs end is always right.
    backoff_is_stale: bool,
}

impl Order {
    /// The order of these profiles; all of them sort alike.
    pub(super) fn of(profiles: &[Profile]) -> Self {
        let changes = queue_sort(profiles).map(QueueSort::changes).unwrap_or_default();
        Order { changes, moment: None, active_is_stale: false, backoff_is_stale: false }
    }

    pub(super) fn depends_on_events(&self) -> bool {
        !self.changes.events.is_empty()
    }

    /// Something happened.
    pub(super) fn hear(&mut self, event: &ClusterEvent) {
        if self.changes.covers(event) {
            self.set_stale();
        }
    }

    fn set_stale(&mut self) {
        (self.active_is_stale, self.backoff_is_stale) = (true, true);
    }

    /// What pods are compared by; the time is the moment that counts by now.
    fn context<'a>(&mut self, context: &Context<'a>) -> Context<'a> {
        let mut context = context.clone();
        if self.changes.every.is_some() {
            let moment = self.changes.moment(context.now);
            if self.moment != Some(moment) {
                self.moment = Some(moment);
                self.set_stale();
            }
            context.now = moment;
        }
        context
    }
}

impl Queue {
    /// The pod that is to be tried next.
    pub(super) fn first_active(&mut self, context: &QueueContext<'_>) -> Option<Slot> {
        let moment = self.order.context(&context.context);
        if std::mem::take(&mut self.order.active_is_stale) {
            let pods = &self.pods;
            self.active.renew(|a, b| context.less(&moment, at(pods, a), at(pods, b)));
        }
        self.active.first()
    }

    /// The pod whose backoff ends next.
    pub(super) fn first_in_backoff(&mut self, context: &QueueContext<'_>) -> Option<Slot> {
        let moment = self.order.context(&context.context);
        if std::mem::take(&mut self.order.backoff_is_stale) {
            let (pods, patience) = (&self.pods, &self.patience);
            let less = |a: &Waiting, b: &Waiting| context.less(&moment, a, b);
            self.backoff.renew(|a, b| ends_before(patience, at(pods, a), at(pods, b), less));
        }
        self.backoff.first()
    }

    pub(super) fn with_active(
        &mut self,
        act: impl FnOnce(&mut Heap, &dyn Fn(Slot, Slot) -> bool),
        context: &QueueContext<'_>,
    ) {
        let moment = self.order.context(&context.context);
        if self.order.active_is_stale {
            return act(&mut self.active, &|_, _| false);
        }
        let pods = &self.pods;
        act(&mut self.active, &|a, b| context.less(&moment, at(pods, a), at(pods, b)));
    }

    pub(super) fn with_backoff(
        &mut self,
        act: impl FnOnce(&mut Heap, &dyn Fn(Slot, Slot) -> bool),
        context: &QueueContext<'_>,
    ) {
        let moment = self.order.context(&context.context);
        let is_stale = self.order.backoff_is_stale;
        let (pods, patience) = (&self.pods, &self.patience);
        let less = |a: &Waiting, b: &Waiting| !is_stale && context.less(&moment, a, b);
        act(&mut self.backoff, &|a, b| ends_before(patience, at(pods, a), at(pods, b), less));
    }

    pub(super) fn with_errors(&mut self, act: impl FnOnce(&mut Heap, &dyn Fn(Slot, Slot) -> bool)) {
        let (pods, patience) = (&self.pods, &self.patience);
        let rank = |slot| (at(pods, slot).backoff_end(patience), at(pods, slot).arrival);
        act(&mut self.error_backoff, &|a, b| rank(a) < rank(b));
    }
}

/// Whether a pod's backoff ends before another's, or with it, and the pod is less.
fn ends_before(
    patience: &Patience,
    a: &Waiting,
    b: &Waiting,
    less: impl Fn(&Waiting, &Waiting) -> bool,
) -> bool {
    let ends = a.backoff_end(patience).cmp(&b.backoff_end(patience));
    ends.is_lt() || (ends.is_eq() && less(a, b))
}

#[cfg(test)]
mod tests;
