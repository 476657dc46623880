//! All bindings under way, and which of them is due next or listens for events: found without a look at every binding, so
//! that ten thousand pods that wait at Permit cost a decision nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use supercargo_framework::{Awaited, EventResource};
use supercargo_model::{ObjectKey, Timestamp};

use super::binding::Binding;

/// The bindings under way, by the UIDs of their pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    by_uid: IndexMap<Arc<str>, Box<Binding>, FxBuildHasher>,
    /// The position of the binding that came or changed last: a binding is taken several steps at a time.
    last_position: usize,
    /// When a binding is to be resumed at the latest, and its number.
    deadlines: BTreeSet<(Timestamp, u64, Arc<str>)>,
    /// The bindings that wait for an event, by what they wait for, and then by their numbers: they are resumed in the order in which pods
    /// were decided. An event costs a look at those that wait for its object, or for any.
    listeners: FxHashMap<Listened, BTreeMap<u64, Arc<str>>>,
    /// How many bindings wait to know whether their pod was bound.
    unresolved: usize,
    last_number: u64,
}

/// What an event that is waited for happens to: any object of a kind, or the one of that name.
type Listened = (EventResource, Option<ObjectKey>);

/// One wait of one binding. Whoever goes through several bindings looks whether each still waits as it did: what is done for one may end
/// another, or take it further.
///
/// Each wait of a step is a round of its own. At Permit the round stays the same while a plugin waits for something else, or until another
/// time: whoever holds a fence also asks [`Binding::hears`], or whether [`Binding::deadline`] has come.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    pub(super) uid: Arc<str>,
    number: u64,
    round: u64,
}

impl Fence {
    /// Whether the binding still waits for what it waited for.
    pub(super) fn is_of(&self, binding: &Binding) -> bool {
        self.number == binding.number && self.round == binding.round()
    }
}

/// What the indices of [`Bindings`] hold of one binding.
#[derive(Clone, PartialEq, Eq)]
struct Waits {
    deadline: Option<Timestamp>,
    listened: Vec<Listened>,
    is_unresolved: bool,
}

impl Waits {
    // Not inlined: bindings are changed in many places, and the code of this one is at hand by then.
    #[inline(never)]
    fn of(binding: &Binding) -> Self {
        Waits {
            deadline: binding.deadline(),
            listened: binding.awaited().map(listened).collect(),
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
        self.leave(&uid, binding.number, &Waits::of(&binding));
        Some(*binding)
    }

    /// Changes a binding, and brings what is known of its waits up to date. There is no other way to change one.
    pub(super) fn change<R>(&mut self, uid: &str, act: impl FnOnce(&mut Binding) -> R) -> Option<R> {
        self.last_position = self.position_of(uid)?;
        let binding = &mut *self.by_uid[self.last_position];
        let before = Waits::of(binding);
        let result = act(binding);
        self.update_waits(&before);
        Some(result)
    }

    /// Brings what is known of the waits of the binding up to date that was changed last.
    fn update_waits(&mut self, before: &Waits) {
        let Some((uid, binding)) = self.by_uid.get_index(self.last_position) else { return };
        let after = Waits::of(binding);
        if *before != after {
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
    pub(super) fn due(&self, now: Timestamp) -> Vec<Fence> {
        let due = self.deadlines.iter().take_while(|(due, ..)| *due <= now);
        due.filter_map(|(.., uid)| self.fence(uid)).collect()
    }

    fn fence(&self, uid: &Arc<str>) -> Option<Fence> {
        let binding = self.get(uid)?;
        Some(Fence { uid: uid.clone(), number: binding.number, round: binding.round() })
    }

    /// Whether any binding waits for an event.
    pub(super) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The bindings that wait for an event of that object, of those that `concerned` names.
    pub(super) fn listeners(
        &self,
        resource: EventResource,
        object: &ObjectKey,
        concerned: impl Fn(&Binding) -> bool,
    ) -> Vec<Fence> {
        let keys = [(EventResource::Any, None), (resource, None), (resource, Some(object.clone()))];
        let known = keys.iter().filter_map(|key| self.listeners.get(key)).flatten();
        let listening = known.filter(|(_, uid)| self.get(uid).is_some_and(&concerned));
        // A binding may wait for several of these.
        let by_number: BTreeMap<u64, &Arc<str>> = listening.map(|(number, uid)| (*number, uid)).collect();
        by_number.into_values().filter_map(|uid| self.fence(uid)).collect()
    }

    fn enter(&mut self, uid: &Arc<str>, number: u64, waits: Waits) {
        if let Some(deadline) = waits.deadline {
            self.deadlines.insert((deadline, number, uid.clone()));
        }
        for listened in waits.listened {
            self.listeners.entry(listened).or_default().insert(number, uid.clone());
        }
        self.unresolved += usize::from(waits.is_unresolved);
    }

    fn leave(&mut self, uid: &Arc<str>, number: u64, waits: &Waits) {
        if let Some(deadline) = waits.deadline {
            self.deadlines.remove(&(deadline, number, uid.clone()));
        }
        for listened in &waits.listened {
            // It may wait for several events of one object.
            if let Some(listeners) = self.listeners.get_mut(listened) {
                listeners.remove(&number);
                if listeners.is_empty() {
                    self.listeners.remove(listened);
                }
            }
        }
        self.unresolved -= usize::from(waits.is_unresolved);
    }
}

/// Where a binding is found that waits for this.
fn listened(awaited: &Awaited) -> Listened {
    let resource = awaited.event.resource;
    // What can happen to anything is not looked up by a name.
    (resource, awaited.object.clone().filter(|_| resource != EventResource::Any))
}
