//! The pods that wait for something to happen, put together by what they wait for: what happens costs a look at every reason to wait, and
//! not at every pod.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use supercargo_model::PodSetId;

use super::{Queue, Waiting};
use crate::scheduler::happenings::{Happening, What};
use crate::scheduler::heap::Slot;
use crate::scheduler::queue_context::{Gate, QueueContext};

/// The pods that wait for something to happen.
#[derive(Clone, Debug, Default)]
pub(super) struct Idle {
    /// As many as there are sets of plugins that reject pods together, which are few. A reason for which no pod waits any more is used again.
    reasons: Vec<Reason>,
    len: usize,
}

/// Where a pod is among those that wait for something to happen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdlePlace {
    reason: usize,
    set: Option<PodSetId>,
}

/// Why pods wait, and those that wait for it.
#[derive(Clone, Debug, Default)]
struct Reason {
    scheduler_name: Box<str>,
    gate: Option<Gate>,
    rejectors: BTreeSet<&'static str>,
    pending: BTreeSet<&'static str>,
    len: usize,
    /// Those that wait on their own.
    alone: BTreeSet<Slot>,
    /// Those that wait together, if something that happens may help them.
    hopeful: BTreeMap<PodSetId, BTreeSet<Slot>>,
    /// Those that wait together while nothing helps them.
    in_vain: FxHashMap<PodSetId, BTreeSet<Slot>>,
}

impl Reason {
    /// Why a pod waits.
    fn of(waiting: &Waiting) -> Self {
        Reason {
            scheduler_name: waiting.queued.pod.spec.scheduler_name.clone(),
            gate: waiting.gate,
            rejectors: waiting.rejectors.clone(),
            pending: waiting.pending.clone(),
            ..Reason::default()
        }
    }

    fn is_of(&self, waiting: &Waiting) -> bool {
        self.gate == waiting.gate
            && self.rejectors == waiting.rejectors
            && self.pending == waiting.pending
            && self.scheduler_name == waiting.queued.pod.spec.scheduler_name
    }

    /// Any of its pods; in what they wait for all are alike.
    fn example(&self) -> Option<Slot> {
        let mut sets = self.hopeful.values().chain(self.in_vain.values());
        self.alone.first().or_else(|| sets.next()?.first()).copied()
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        let sets = self.hopeful.values().chain(self.in_vain.values());
        self.alone.iter().chain(sets.flatten()).copied()
    }

    fn insert(&mut self, slot: Slot, id: Option<PodSetId>) {
        let slots = match id {
            None => &mut self.alone,
            Some(id) => match self.in_vain.get_mut(&id) {
                Some(slots) => slots,
                None => self.hopeful.entry(id).or_default(),
            },
        };
        slots.insert(slot);
        self.len += 1;
    }

    fn remove(&mut self, slot: Slot, id: Option<PodSetId>) {
        self.len -= 1;
        let Some(id) = id else {
            self.alone.remove(&slot);
            return;
        };
        if let Some(slots) = self.hopeful.get_mut(&id) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.hopeful.remove(&id);
            }
        } else if let Some(slots) = self.in_vain.get_mut(&id) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.in_vain.remove(&id);
            }
        }
    }
}

impl Idle {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there are, and how many of them are held back.
    pub(super) fn counts(&self) -> (usize, usize) {
        let gated = self.reasons.iter().filter(|reason| reason.gate.is_some());
        (self.len, gated.map(|reason| reason.len).sum())
    }

    pub(super) fn clear(&mut self) {
        *self = Idle::default();
    }

    /// A pod waits from now on.
    fn insert(&mut self, slot: Slot, waiting: &Waiting, set: Option<PodSetId>) -> IdlePlace {
        let known = self.reasons.iter().position(|reason| reason.is_of(waiting));
        let reason = known.unwrap_or_else(|| {
            let unused = self.reasons.iter().position(|reason| reason.len == 0);
            let place = unused.unwrap_or_else(|| {
                self.reasons.push(Reason::default());
                self.reasons.len() - 1
            });
            self.reasons[place] = Reason::of(waiting);
            place
        });
        self.reasons[reason].insert(slot, set);
        self.len += 1;
        IdlePlace { reason, set }
    }

    fn remove(&mut self, slot: Slot, idle_place: IdlePlace) {
        self.reasons[idle_place.reason].remove(slot, idle_place.set);
        self.len -= 1;
    }

    /// One pod of each reason for which any pod waits.
    pub(super) fn examples(&self) -> impl Iterator<Item = Slot> {
        self.reasons.iter().filter_map(Reason::example)
    }

    /// The pods that wait for a reason that is meant, in order.
    pub(super) fn of_reasons(&self, is_meant: impl Fn(Slot) -> bool) -> Vec<Slot> {
        let meant = self.reasons.iter().filter(|reason| reason.example().is_some_and(&is_meant));
        let mut slots: Vec<Slot> = meant.flat_map(Reason::slots).collect();
        slots.sort_unstable();
        slots
    }

    /// The same without those that wait together and in vain. That is asked of one of them.
    fn hopeful_of_reasons(
        &mut self,
        is_meant: impl Fn(Slot) -> bool,
        is_in_vain: impl Fn(Slot) -> bool,
    ) -> Vec<Slot> {
        let mut slots = Vec::new();
        for reason in &mut self.reasons {
            if !reason.example().is_some_and(&is_meant) {
                continue;
            }
            slots.extend(&reason.alone);
            let example = |set: &BTreeSet<Slot>| set.first().copied();
            let in_vain = reason.hopeful.extract_if(.., |_, set| example(set).is_some_and(&is_in_vain));
            reason.in_vain.extend(in_vain);
            slots.extend(reason.hopeful.values().flatten());
        }
        slots.sort_unstable();
        slots
    }

    /// Pods of this set changed: events may help those that wait with them again.
    fn reconsider(&mut self, id: PodSetId) {
        for reason in self.reasons.iter_mut().filter(|reason| !reason.in_vain.is_empty()) {
            if let Some(set) = reason.in_vain.remove(&id) {
                reason.hopeful.insert(id, set);
            }
        }
    }
}

impl Queue {
    /// Lets a pod wait with those that wait for the same.
    pub(super) fn add_idle(&mut self, context: &QueueContext<'_>, slot: Slot) {
        let waiting = super::at(&self.pods, slot);
        let idle_place = self.idle.insert(slot, waiting, context.set_of(waiting));
        self.get_mut(slot).idle_place = idle_place;
    }

    pub(super) fn remove_idle(&mut self, slot: Slot) {
        let idle_place = self.get(slot).idle_place;
        self.idle.remove(slot, idle_place);
    }

    /// These sets of pods are not what they were.
    pub(in crate::scheduler) fn sets_changed(&mut self, ids: Vec<PodSetId>) {
        if !self.idle.is_empty() {
            ids.into_iter().for_each(|id| self.idle.reconsider(id));
        }
    }

    /// The pods that may be helped by something that happens, in order.
    pub(super) fn hearing(&mut self, context: &QueueContext<'_>, happening: &Happening) -> Vec<Slot> {
        if let What::Object { old, new } = &happening.what
            && let Some(object) = new.as_ref().or(old.as_ref())
        {
            context.sets_named(&object.key).into_iter().for_each(|id| self.idle.reconsider(id));
        }
        let pods = &self.pods;
        let hears = |slot: Slot| context.hears(super::at(pods, slot), happening.event);
        let is_in_vain = |slot: Slot| context.is_in_vain(super::at(pods, slot));
        self.idle.hopeful_of_reasons(hears, is_in_vain)
    }
}
