//! All bindings under way, and which of them is due next or listens for events: found without a look at every binding, so
//! that ten thousand pods that wait at Permit cost a decision nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use supercargo_model::Timestamp;

use super::binding::Binding;

/// The bindings under way, by the UIDs of their pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    by_uid: IndexMap<Arc<str>, Box<Binding>, FxBuildHasher>,
    /// The position of the binding that came or changed last: a binding is taken several steps at a time.
    last_position: usize,
    /// When a binding is to be resumed at the latest, and its number.
    deadlines: BTreeSet<(Timestamp, u64, Arc<str>)>,
    /// The bindings that wait for an event, by their numbers: they are resumed in the order in which pods were decided.
    listeners: BTreeMap<u64, Arc<str>>,
    /// How many bindings wait to know whether their pod was bound.
    unresolved: usize,
    last_number: u64,
}

/// What the indices of [`Bindings`] hold of one binding.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Waits {
    deadline: Option<Timestamp>,
    listens: bool,
    is_unresolved: bool,
}

impl Waits {
    // Not inlined: bindings are changed in many places, and the code of this one is at hand by then.
    #[inline(never)]
    fn of(binding: &Binding) -> Self {
        Waits {
            deadline: binding.deadline(),
            listens: binding.listens(),
            is_unresolved: binding.is_unresolved(),
        }
    }
}

impl Bindings {
    pub(super) fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// How many bindings wait to know whether their pod was bound.
    pub(super) fn unresolved(&self) -> usize {
        self.unresolved
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Binding> {
        self.by_uid.get_index(self.position_of(uid)?).map(|(_, binding)| &**binding)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Binding> {
        self.by_uid.values().map(|binding| &**binding)
    }

    /// Where the binding of a pod is. The last one is known by where its UID lies in memory, without a look at the text.
    fn position_of(&self, uid: &str) -> Option<usize> {
        let last = self.by_uid.get_index(self.last_position);
        if last.is_some_and(|(known, _)| std::ptr::eq(&**known, uid)) {
            return Some(self.last_position);
        }
        self.by_uid.get_index_of(uid)
    }

    pub(super) fn insert(&mut self, mut binding: Binding) {
        self.last_number += 1;
        binding.number = self.last_number;
        let (uid, number, waits) = (binding.pod().uid.clone(), binding.number, Waits::of(&binding));
        let (position, replaced) = self.by_uid.insert_full(uid.clone(), Box::new(binding));
        self.last_position = position;
        debug_assert!(replaced.is_none(), "a pod has one binding at a time");
        self.enter(&uid, number, waits);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Binding> {
        let (uid, binding) = self.by_uid.swap_remove_index(self.position_of(uid)?)?;
        self.leave(&uid, binding.number, Waits::of(&binding));
        Some(*binding)
    }

    /// Changes a binding, and brings what is known of its waits up to date. There is no other way to change one.
    pub(super) fn change<R>(&mut self, uid: &str, act: impl FnOnce(&mut Binding) -> R) -> Option<R> {
        self.last_position = self.position_of(uid)?;
        let binding = &mut *self.by_uid[self.last_position];
        let before = Waits::of(binding);
        let result = act(binding);
        self.update_waits(before);
        Some(result)
    }

    /// Brings what is known of the waits of the binding up to date that was changed last.
    fn update_waits(&mut self, before: Waits) {
        let Some((uid, binding)) = self.by_uid.get_index(self.last_position) else { return };
        let after = Waits::of(binding);
        if before != after {
            let (uid, number) = (uid.clone(), binding.number);
            self.leave(&uid, number, before);
            self.enter(&uid, number, after);
        }
    }

    pub(super) fn change_all(&mut self, mut act: impl FnMut(&mut Binding)) {
        let uids: Vec<Arc<str>> = self.by_uid.keys().cloned().collect();
        for uid in uids {
            self.change(&uid, &mut act);
        }
    }

    /// When the first binding is to be resumed.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(deadline, ..)| *deadline)
    }

    /// The bindings whose deadline has come, earliest first.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Arc<str>> {
        self.deadlines.iter().take_while(|(due, ..)| *due <= now).map(|(.., uid)| uid.clone()).collect()
    }

    /// Whether any binding waits for an event.
    pub(super) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The bindings that wait for an event, of those that `concerned` names.
    pub(super) fn listeners(&self, concerned: impl Fn(&Binding) -> bool) -> Vec<Arc<str>> {
        let listening = self.listeners.values().filter(|uid| self.get(uid).is_some_and(&concerned));
        listening.cloned().collect()
    }

    fn enter(&mut self, uid: &Arc<str>, number: u64, waits: Waits) {
        if let Some(deadline) = waits.deadline {
            self.deadlines.insert((deadline, number, uid.clone()));
        }
        if waits.listens {
            self.listeners.insert(number, uid.clone());
        }
        self.unresolved += usize::from(waits.is_unresolved);
    }

    fn leave(&mut self, uid: &Arc<str>, number: u64, waits: Waits) {
        if let Some(deadline) = waits.deadline {
            self.deadlines.remove(&(deadline, number, uid.clone()));
        }
        if waits.listens {
            self.listeners.remove(&number);
        }
        self.unresolved -= usize::from(waits.is_unresolved);
    }
}
