//! Sharing equal values, so that a million pods of a few specs fit in memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::labels::Labels;
use crate::pod::{ControllerReference, PodSpec};

/// A shared value. Two handles from one [`Interner`] are equal exactly if they are the same allocation.
pub struct Interned<T>(Arc<T>);

/// Keeps one copy of each value that pods have in common.
#[derive(Debug, Default)]
pub struct Interner {
    pub(crate) specs: InternTable<PodSpec>,
    pub(crate) labels: InternTable<Labels>,
    pub(crate) controllers: InternTable<ControllerReference>,
    names: FxHashSet<Arc<str>>,
}

/// One copy of each distinct `T` in use.
pub(crate) struct InternTable<T> {
    values: FxHashSet<Arc<T>>,
    /// When the table has grown to this many entries, those that nobody uses any more are dropped.
    sweep_at: usize,
}

/// Below this size a table is not worth sweeping.
const SWEEP_MIN: usize = 1024;

impl Interner {
    /// One shared copy of a name that many objects repeat: a namespace, a node.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(found) = self.names.get(name) {
            return found.clone();
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        name
    }
}

impl<T: Eq + Hash> InternTable<T> {
    pub(crate) fn intern(&mut self, value: T) -> Interned<T> {
        if let Some(found) = self.values.get(&value) {
            return Interned(found.clone());
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.sweep_at = (2 * self.values.len()).max(SWEEP_MIN);
        }
        let value = Arc::new(value);
        self.values.insert(value.clone());
        Interned(value)
    }
}

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        InternTable { values: FxHashSet::default(), sweep_at: SWEEP_MIN }
    }
}

impl<T> fmt::Debug for InternTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InternTable({} values)", self.values.len())
    }
}

impl<T> Interned<T> {
    /// Whether both are the same allocation.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for Interned<T> {
    fn clone(&self) -> Self {
        Interned(self.0.clone())
    }
}

impl<T> Deref for Interned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Default> Default for Interned<T> {
    fn default() -> Self {
        Interned(Arc::default())
    }
}

impl<T> From<T> for Interned<T> {
    /// A value of its own, shared with nobody yet.
    fn from(value: T) -> Self {
        Interned(Arc::new(value))
    }
}

impl<T: PartialEq> PartialEq for Interned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || *self.0 == *other.0
    }
}

impl<T: Eq> Eq for Interned<T> {}

impl<T: Hash> Hash for Interned<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Interned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_one_allocation() {
        let mut table = InternTable::default();
        let first = table.intern("a".to_owned());
        assert!(first.is_same(&table.intern("a".to_owned())));
        assert!(!first.is_same(&table.intern("b".to_owned())));
    }

    #[test]
    fn values_out_of_use_are_dropped() {
        let mut table = InternTable::default();
        let kept = table.intern(u64::MAX);
        for value in 0..100_000 {
            table.intern(value);
        }
        assert!(table.values.len() <= SWEEP_MIN, "{table:?}");
        assert!(kept.is_same(&table.intern(u64::MAX)));
    }
}
