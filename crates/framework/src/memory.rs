//! State that outlives a cycle, kept where the engine can see, save and drop it.
//!
//! A plugin that counts or learns keeps nothing in its own fields: what it remembers is a value of a named type
//! here. So a simulation can branch, a restart can resume, and a plugin that is switched off leaves nothing behind.

mod saved;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::typed::TypedMap;
pub use saved::{
    DropReason, DroppedMemory, SAVED_BYTES_MAX, SAVED_MEMORY_BYTES_MAX, SavedMemories, UnsavedMemory,
};

/// Something a plugin remembers from one cycle to the next.
///
/// A value is copied before it is changed while somebody looks at its last state, which is so in every step of a pod's cycle, and seldom
/// where a plugin observes. What may grow belongs into a [`SharedMap`](crate::SharedMap), of which only the entry is copied that changes.
pub trait Memory: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name it is saved under; unique among all plugins.
    const NAME: &'static str;

    /// The version of what it looks like when it is saved, if it is to survive a restart of the scheduler and a takeover by another
    /// replica; if it need not, none. A value that was saved under another version is dropped, with a warning: count it up when what is
    /// saved changes its meaning, or cannot be read any more.
    ///
    /// Saved values are written to an object of the cluster every few seconds while they change, so what changed last may be lost; and
    /// they have limits, [`SAVED_MEMORY_BYTES_MAX`] and [`SAVED_BYTES_MAX`].
    const SAVED: Option<u32> = None;

    /// The clock was set forward by so many seconds, or back if they are negative. A plugin is woken when it would have been; points in time
    /// that are remembered have to move along, if something waits for them.
    fn clock_was_set(&mut self, seconds: i64) {
        let _ = seconds;
    }
}

/// Everything that plugins remember. A clone shares all values with its original until one side changes them.
#[derive(Clone, Debug, Default)]
pub struct Memories {
    values: TypedMap,
    handlers: Arc<BTreeMap<&'static str, Handler>>,
    /// Whether nobody may look here: see [`Memories::withheld`].
    is_withheld: bool,
}

/// How the memory of one type is saved and restored, once its type is no longer at hand.
#[derive(Clone, Copy, Debug)]
struct Handler {
    /// The first plugin that said that it remembers this; empty if nobody said so.
    plugin: &'static str,
    /// See [`Memory::SAVED`].
    version: Option<u32>,
    save: saved::Save,
    load: saved::Load,
    /// Whether two maps hold the same value: the one, not an equal one.
    is_same: fn(&TypedMap, &TypedMap) -> bool,
    forget: fn(&mut TypedMap),
    /// See [`Memory::clock_was_set`].
    set_clock: fn(&mut TypedMap, i64),
}

impl Memories {
    /// Memories that say where to look instead. Plugins that observe have their memories in hand: a second look at them would make every
    /// change a copy.
    #[must_use]
    pub fn withheld() -> Self {
        Memories { is_withheld: true, ..Memories::default() }
    }

    /// What is remembered, if anything is yet.
    ///
    /// # Panics
    ///
    /// If the memories are [withheld](Memories::withheld), as in the calls of [`Observe`](crate::Observe).
    pub fn get<M: Memory>(&self) -> Option<&M> {
        assert!(
            !self.is_withheld,
            "{} is not in `context.memories` of a plugin that observes: ask `acts.recall` for it",
            M::NAME
        );
        self.values.get()
    }

    /// What is remembered, to change it; the default if nothing is yet.
    pub fn get_mut<M: Memory>(&mut self) -> &mut M {
        self.declare::<M>();
        if self.values.get::<M>().is_none() {
            self.values.put(M::default());
        }
        self.values.get_mut().expect("it was just put there if it was missing")
    }

    /// Makes a type known, so that [`Memories::restore`] can restore it before anybody has used it.
    pub fn declare<M: Memory>(&mut self) {
        self.declare_for::<M>("");
    }

    /// The same for a plugin, which is named where something is wrong with the memory.
    pub fn declare_for<M: Memory>(&mut self, plugin: &'static str) {
        if self.handlers.get(M::NAME).is_some_and(|handler| !handler.plugin.is_empty() || plugin.is_empty()) {
            return;
        }
        let handler = Handler {
            plugin,
            version: M::SAVED,
            save: saved::save::<M>,
            load: saved::load::<M>,
            is_same: TypedMap::is_same::<M>,
            forget: |values| values.remove::<M>(),
            set_clock: |values, seconds| {
                if let Some(memory) = values.get_mut::<M>() {
                    memory.clock_was_set(seconds);
                }
            },
        };
        Arc::make_mut(&mut self.handlers).insert(M::NAME, handler);
    }

    /// Whether somebody said that something is remembered under a name.
    pub fn is_declared(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// Knows what `declared` knows, and forgets everything else.
    pub fn keep_declared(&mut self, declared: &Memories) {
        for (name, handler) in &*self.handlers {
            if !declared.handlers.contains_key(name) {
                (handler.forget)(&mut self.values);
            }
        }
        self.handlers.clone_from(&declared.handlers);
    }

    /// The clock was set: tells everything that is remembered.
    pub fn clock_was_set(&mut self, seconds: i64) {
        for handler in self.handlers.values() {
            (handler.set_clock)(&mut self.values, seconds);
        }
    }

    /// Forgets what is remembered under a name; false if nobody declared it.
    pub fn forget(&mut self, name: &str) -> bool {
        let Some(handler) = self.handlers.get(name) else { return false };
        (handler.forget)(&mut self.values);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Count(u32);

    impl Memory for Count {
        const NAME: &'static str = "Count";
    }

    #[test]
    fn memories_are_kept_and_forgotten_by_who_declares_them() {
        let mut memories = Memories::default();
        assert_eq!(memories.get::<Count>(), None);
        memories.get_mut::<Count>().0 += 2;

        let declared = memories.clone();
        memories.keep_declared(&declared);
        assert_eq!(memories.get::<Count>(), Some(&Count(2)), "what is still declared is kept");
        let mut emptied = memories.clone();
        emptied.keep_declared(&Memories::default());
        assert_eq!(emptied.get::<Count>(), None, "the rest is forgotten");
        assert!(!emptied.forget("Count"), "and nobody knows it");

        assert!(memories.forget("Count"));
        assert_eq!(memories.get::<Count>(), None);
        assert!(!memories.forget("Stranger"));
    }

    #[test]
    fn memories_hear_that_the_clock_was_set() {
        #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
        struct Until(i64);

        impl Memory for Until {
            const NAME: &'static str = "Until";

            fn clock_was_set(&mut self, seconds: i64) {
                self.0 += seconds;
            }
        }
        let mut memories = Memories::default();
        memories.declare::<Until>();
        memories.clock_was_set(-10);
        assert!(memories.get::<Until>().is_none(), "nothing is remembered yet");
        memories.get_mut::<Until>().0 = 100;
        memories.get_mut::<Count>().0 = 3;
        memories.clock_was_set(-10);
        assert_eq!(memories.get::<Until>().map(|until| until.0), Some(90));
        assert_eq!(memories.get::<Count>(), Some(&Count(3)));
    }

    #[test]
    #[should_panic(expected = "ask `acts.recall` for it")]
    fn withheld_memories_say_where_to_look() {
        let _ = Memories::withheld().get::<Count>();
    }
}
