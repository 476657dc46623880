//! State that outlives a cycle, kept where the engine can see, save and drop it.
//!
//! A plugin that counts or learns keeps nothing in its own fields: what it remembers is a value of a named type
//! here. So a simulation can branch, a restart can resume, and a plugin that is switched off leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::typed::TypedMap;

/// Something a plugin remembers from one cycle to the next.
///
/// A value is copied before it is changed while somebody looks at its last state, which is so in every step that a scheduler
/// takes. What may grow belongs into a [`SharedMap`](crate::SharedMap), of which only the entry is copied that changes.
pub trait Memory: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name it is saved under; unique among all plugins.
    const NAME: &'static str;
}

/// Everything that plugins remember. A clone shares all values with its original until one side changes them.
#[derive(Clone, Debug, Default)]
pub struct Memories {
    values: TypedMap,
    handlers: Arc<BTreeMap<&'static str, Handler>>,
}

/// How the memory of one type is saved and restored, once its type is no longer at hand.
#[derive(Clone, Copy, Debug)]
struct Handler {
    save: fn(&TypedMap) -> serde_json::Result<Option<Value>>,
    load: fn(&mut TypedMap, Value) -> serde_json::Result<()>,
    forget: fn(&mut TypedMap),
}

impl Memories {
    /// What is remembered, if anything is yet.
    pub fn get<M: Memory>(&self) -> Option<&M> {
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

    /// Makes a type known, so that [`Memories::load`] can restore it before anybody has used it.
    pub fn declare<M: Memory>(&mut self) {
        if self.handlers.contains_key(M::NAME) {
            return;
        }
        let handler = Handler {
            save: |values| values.get::<M>().map(serde_json::to_value).transpose(),
            load: |values, saved| {
                values.put(serde_json::from_value::<M>(saved)?);
                Ok(())
            },
            forget: |values| values.remove::<M>(),
        };
        Arc::make_mut(&mut self.handlers).insert(M::NAME, handler);
    }

    /// Whether somebody said that something is remembered under a name.
    pub fn is_declared(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// Everything that is remembered, by name.
    pub fn save(&self) -> serde_json::Result<BTreeMap<String, Value>> {
        let mut saved = BTreeMap::new();
        for (name, handler) in &*self.handlers {
            if let Some(value) = (handler.save)(&self.values)? {
                saved.insert((*name).to_owned(), value);
            }
        }
        Ok(saved)
    }

    /// Restores what [`Memories::save`] gave. Names that nobody declared are returned.
    pub fn load(&mut self, saved: BTreeMap<String, Value>) -> serde_json::Result<Vec<String>> {
        let mut unknown = Vec::new();
        for (name, value) in saved {
            match self.handlers.get(name.as_str()) {
                Some(handler) => (handler.load)(&mut self.values, value)?,
                None => unknown.push(name),
            }
        }
        Ok(unknown)
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
    fn memories_are_saved_restored_and_forgotten() {
        let mut memories = Memories::default();
        assert_eq!(memories.get::<Count>(), None);
        memories.get_mut::<Count>().0 += 2;
        let saved = memories.save().expect("a number can be saved");

        let mut restored = Memories::default();
        restored.declare::<Count>();
        let mut with_stranger = saved.clone();
        with_stranger.insert("Stranger".to_owned(), Value::Null);
        assert_eq!(restored.load(with_stranger).expect("valid"), ["Stranger"]);
        assert_eq!(restored.get::<Count>(), Some(&Count(2)));

        let declared = restored.clone();
        restored.keep_declared(&declared);
        assert_eq!(restored.get::<Count>(), Some(&Count(2)), "what is still declared is kept");
        let mut emptied = restored.clone();
        emptied.keep_declared(&Memories::default());
        assert_eq!(emptied.get::<Count>(), None, "the rest is forgotten");
        assert!(!emptied.forget("Count"), "and nobody knows it");

        assert!(restored.forget("Count"));
        assert_eq!(restored.get::<Count>(), None);
        assert!(!restored.forget("Stranger"));
    }
}
