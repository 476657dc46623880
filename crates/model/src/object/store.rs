//! Where the objects of one kind are kept: by name, in the order of names, and on shelves. Hot for pods with claims.

use std::any::Any;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{KindId, Object, ObjectKey, Shelves};

/// The objects of one kind; a clone shares everything with its original until one of them changes.
#[derive(Clone, Default)]
pub(super) struct KindStore {
    pub(super) version: u64,
    by_name: Arc<FxHashMap<SharedKey, Stored>>,
    ordered: Arc<BTreeMap<SharedKey, Stored>>,
    /// What stands on each shelf. A shelf without objects is not there.
    shelves: Arc<FxHashMap<String, BTreeSet<SharedKey>>>,
}

/// An object without its kind and its name.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) value: Arc<dyn Any + Send + Sync>,
    pub(super) shelves: Shelves,
}

/// A key that several tables share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SharedKey(Arc<ObjectKey>);

/// A namespace and a name, in a key or by themselves: what is looked up need not be copied first.
trait TwoNames {
    fn names(&self) -> (&str, &str);
}

impl TwoNames for SharedKey {
    fn names(&self) -> (&str, &str) {
        (&self.0.namespace, &self.0.name)
    }
}

impl TwoNames for (&str, &str) {
    fn names(&self) -> (&str, &str) {
        *self
    }
}

impl PartialEq for dyn TwoNames + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for dyn TwoNames + '_ {}

impl Hash for dyn TwoNames + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

impl Hash for SharedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

impl<'a> Borrow<dyn TwoNames + 'a> for SharedKey {
    fn borrow(&self) -> &(dyn TwoNames + 'a) {
        self
    }
}

impl Borrow<ObjectKey> for SharedKey {
    fn borrow(&self) -> &ObjectKey {
        &self.0
    }
}

impl KindStore {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Stored> {
        self.by_name.get(&(namespace, name) as &dyn TwoNames)
    }

    /// All objects, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Stored)> {
        self.ordered.iter().map(|(SharedKey(key), stored)| (&**key, stored))
    }

    /// The objects from a name on.
    pub(super) fn from<'a>(
        &'a self,
        first: &ObjectKey,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Stored)> + use<'a> {
        self.ordered.range::<ObjectKey, _>(first..).map(|(SharedKey(key), stored)| (&**key, stored))
    }

    /// What stands on a shelf, in the order of names.
    pub(super) fn shelf<'a>(
        &'a self,
        shelf: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Stored)> + use<'a> {
        let keys = self.shelves.get(shelf).into_iter().flatten();
        keys.filter_map(|key| Some((&*key.0, self.by_name.get(key)?)))
    }

    pub(super) fn shelf_len(&self, shelf: &str) -> usize {
        self.shelves.get(shelf).map_or(0, BTreeSet::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn put(&mut self, key: ObjectKey, stored: Stored) {
        self.version += 1;
        let (key, shelves) = (SharedKey(Arc::new(key)), stored.shelves.clone());
        Arc::make_mut(&mut self.ordered).insert(key.clone(), stored.clone());
        let before = Arc::make_mut(&mut self.by_name).insert(key.clone(), stored);
        self.reshelve(&key, &before.and_then(|before| before.shelves), &shelves);
    }

    /// False if there is none of that name.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> bool {
        if self.get(&key.namespace, &key.name).is_none() {
            return false;
        }
        self.version += 1;
        let removed = Arc::make_mut(&mut self.ordered).remove_entry(key);
        let (key, stored) = removed.expect("what is found by name is in the order of names");
        Arc::make_mut(&mut self.by_name).remove(&key);
        self.reshelve(&key, &stored.shelves, &None);
        true
    }

    /// Moves an object from the shelves it stood on to those it stands on now.
    fn reshelve(&mut self, key: &SharedKey, from: &Shelves, to: &Shelves) {
        if from == to {
            return;
        }
        let shelves = Arc::make_mut(&mut self.shelves);
        for name in from.iter().flat_map(|names| names.iter()) {
            if let Some(shelf) = shelves.get_mut(name) {
                shelf.remove(key);
                if shelf.is_empty() {
                    shelves.remove(name);
                }
            }
        }
        for name in to.iter().flat_map(|names| names.iter()) {
            shelves.entry(name.clone()).or_default().insert(key.clone());
        }
    }
}

impl Stored {
    pub(super) fn object(&self, kind: KindId, key: &ObjectKey) -> Object {
        let Stored { value, shelves } = self.clone();
        Object { kind, key: key.clone(), raw: None, value, shelves }
    }
}

impl fmt::Debug for KindStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects at version {}", self.by_name.len(), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_both_forms_and_told_apart() {
        let mut store = KindStore::default();
        let key = |namespace: &str, name: &str| ObjectKey { namespace: namespace.into(), name: name.into() };
        let keys = [("b", "a"), ("", "ab"), ("a", "b"), ("ab", "")];
        for (number, (namespace, name)) in keys.into_iter().enumerate() {
            store.put(key(namespace, name), Stored { value: Arc::new(number), shelves: None });
        }
        let value = |stored: &Stored| *stored.value.downcast_ref::<usize>().expect("a number");
        for (number, (namespace, name)) in keys.into_iter().enumerate() {
            assert_eq!(store.get(namespace, name).map(value), Some(number));
        }
        assert!(store.get("a", "").is_none());
        let listed = |store: &KindStore| store.iter().map(|(_, stored)| value(stored)).collect::<Vec<_>>();
        assert_eq!(listed(&store), [1, 2, 3, 0]);
        assert_eq!(store.from(&key("a", "z")).map(|(_, stored)| value(stored)).collect::<Vec<_>>(), [3, 0]);

        let before = store.clone();
        assert!(store.remove(&key("a", "b")) && !store.remove(&key("a", "b")));
        assert_eq!((store.version, listed(&store)), (5, vec![1, 3, 0]));
        assert!(store.get("a", "b").is_none() && before.get("a", "b").is_some());
    }
}
