//! The order in which pods are tried, and when it has to be made anew.
//!
//! An order may change with time or with events ([`OrderChanges`]). Then the heaps are stale until somebody wants to know which
//! pod is first: pods come and go without being compared, and the heap is put in order once, however much has happened.

use supercargo_framework::{Change, ClusterEvent, Context, OrderChanges, Profile, QueueSort, TieBreak};
use supercargo_model::Timestamp;

use super::{Patience, Queue, Waiting, at};
use crate::scheduler::heap::{Entry, Heap, Slot};
use crate::scheduler::queue_context::{QueueContext, queue_sort};

/// What the order of the heaps depends on, and which heaps are not in order any more.
#[derive(Clone, Debug)]
pub(super) struct Order {
    changes: OrderChanges,
    /// What decides between pods of one rank, before who came first does.
    tie_break: Option<TieBreak>,
    /// The moment whose order it is, if the order depends on time.
    moment: Option<Timestamp>,
    /// Whether pods are sorted by ranks: every pod that is ready has had one so far.
    is_ranked: bool,
    active_is_stale: bool,
    /// Whether pods whose backoffs end together are not in order any more. When backoffs end is always right.
    backoff_is_stale: bool,
}

impl Order {
    /// The order of these profiles; all of them sort alike.
    pub(super) fn of(profiles: &[Profile]) -> Self {
        let sort = queue_sort(profiles);
        Order {
            changes: sort.map(QueueSort::changes).unwrap_or_default(),
            tie_break: sort.and_then(QueueSort::tie_break),
            moment: None,
            is_ranked: true,
            active_is_stale: false,
            backoff_is_stale: false,
        }
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

    /// Something happened to an object.
    pub(super) fn hear_of(&mut self, event: &ClusterEvent, change: &Change<'_>) {
        if self.changes.covers(event) && self.changes.concern(change) {
            self.set_stale();
        }
    }

    /// The order has to be made anew.
    pub(super) fn set_stale(&mut self) {
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
            if self.order.is_ranked {
                let entry =
                    |slot| context.entry(&moment, slot, at(pods, slot)).unwrap_or(Entry::unranked(slot));
                self.active.renew(entry, by_rank(pods, self.order.tie_break));
            } else {
                let less = |a: &Entry, b: &Entry| context.less(&moment, at(pods, a.slot), at(pods, b.slot));
                self.active.renew(Entry::unranked, less);
            }
        }
        self.active.first()
    }

    /// The pod whose backoff ends next.
    pub(super) fn first_in_backoff(&mut self, context: &QueueContext<'_>) -> Option<Slot> {
        let moment = self.order.context(&context.context);
        if std::mem::take(&mut self.order.backoff_is_stale) {
            let (pods, patience) = (&self.pods, &self.patience);
            let less = |a: &Waiting, b: &Waiting| context.less(&moment, a, b);
            let ends_before =
                |a: &Entry, b: &Entry| ends_before(patience, at(pods, a.slot), at(pods, b.slot), less);
            self.backoff.renew(Entry::unranked, ends_before);
        }
        self.backoff.first()
    }

    /// Takes a pod out of the heap of those that are ready.
    pub(super) fn leave_active(&mut self, slot: Slot, context: &QueueContext<'_>) {
        let moment = self.order.context(&context.context);
        if self.order.active_is_stale {
            self.active.remove(slot, |_, _| false);
        } else if self.order.is_ranked {
            self.active.remove(slot, by_rank(&self.pods, self.order.tie_break));
        } else {
            let pods = &self.pods;
            self.active.remove(slot, |a, b| context.less(&moment, at(pods, a.slot), at(pods, b.slot)));
        }
    }

    /// Changes the heap of the pods that are ready, where the pod of a slot comes, or is another one now.
    pub(super) fn with_active(
        &mut self,
        slot: Slot,
        context: &QueueContext<'_>,
        act: impl FnOnce(&mut Heap, Entry, &dyn Fn(&Entry, &Entry) -> bool),
    ) {
        let moment = self.order.context(&context.context);
        let ranked = context.entry(&moment, slot, at(&self.pods, slot)).filter(|_| self.order.is_ranked);
        if ranked.is_none() && std::mem::take(&mut self.order.is_ranked) {
            // This pod cannot be compared with the others by ranks, so none is.
            self.order.active_is_stale = true;
        }
        let pods = &self.pods;
        let less = |a: &Entry, b: &Entry| context.less(&moment, at(pods, a.slot), at(pods, b.slot));
        let is_before = by_rank(pods, self.order.tie_break);
        let keeps_ranks = self.order.changes.keeps_ranks;
        match ranked {
            _ if self.order.active_is_stale => act(&mut self.active, Entry::unranked(slot), &|_, _| false),
            None => act(&mut self.active, Entry::unranked(slot), &less),
            Some(entry) => act(&mut self.active, entry, &|a, b| {
                let agrees = keeps_ranks || is_before(a, b) == less(a, b);
                debug_assert!(agrees, "QueueSort::rank and less do not agree");
                is_before(a, b)
            }),
        }
    }

    /// The same for the heap of the pods that back off.
    pub(super) fn with_backoff(
        &mut self,
        slot: Slot,
        context: &QueueContext<'_>,
        act: impl FnOnce(&mut Heap, Entry, &dyn Fn(&Entry, &Entry) -> bool),
    ) {
        let moment = self.order.context(&context.context);
        let is_stale = self.order.backoff_is_stale;
        let (pods, patience) = (&self.pods, &self.patience);
        let less = |a: &Waiting, b: &Waiting| !is_stale && context.less(&moment, a, b);
        act(&mut self.backoff, Entry::unranked(slot), &|a, b| {
            ends_before(patience, at(pods, a.slot), at(pods, b.slot), less)
        });
    }

    /// The same for the heap of the pods that back off after an error.
    pub(super) fn with_errors(
        &mut self,
        slot: Slot,
        act: impl FnOnce(&mut Heap, Entry, &dyn Fn(&Entry, &Entry) -> bool),
    ) {
        let (pods, patience) = (&self.pods, &self.patience);
        let rank = |slot| (at(pods, slot).backoff_end(patience), at(pods, slot).arrival);
        act(&mut self.error_backoff, Entry::unranked(slot), &|a, b| rank(a.slot) < rank(b.slot));
    }
}

/// Whether a pod goes before another by their ranks; if these are the same, by what breaks ties, and then as they came.
fn by_rank(pods: &[Option<Box<Waiting>>], tie_break: Option<TieBreak>) -> impl Fn(&Entry, &Entry) -> bool {
    move |a, b| match tie_break {
        Some(tie_break) if a.rank == b.rank => {
            let order = tie_break(&at(pods, a.slot).queued, &at(pods, b.slot).queued);
            order.then(a.arrival.cmp(&b.arrival)).is_lt()
        }
        _ => a.is_before(b),
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
