//! Sharing equal values, so that a million pods of a few specs fit in memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::labels::Labels;
use crate::pod::{ControllerReference, PodSpec, SpecWords};
use crate::resources::ResourceList;

/// A shared value. Two handles from one [`Interner`] are equal exactly if they are the same allocation.
pub struct Interned<T>(Arc<T>);

/// Keeps one copy of each value that pods have in common.
#[derive(Debug, Default)]
pub struct Interner {
    pub(crate) specs: InternTable<PodSpec>,
    pub(crate) labels: InternTable<Labels>,
    pub(crate) controllers: InternTable<ControllerReference>,
    pub(crate) resources: InternTable<ResourceList>,
    names: InternTable<str>,
    /// The specs of words that were read lately.
    pub(crate) recent_specs: FxHashMap<SpecWords, Interned<PodSpec>>,
}

/// One copy of each distinct `T` in use.
pub(crate) struct InternTable<T: ?Sized> {
    values: FxHashSet<Arc<T>>,
    /// When the table has grown to this many entries, those that nobody uses any more are dropped.
    sweep_at: usize,
}

/// Below this size a table is not worth sweeping.
const SWEEP_MIN: usize = 1024;

impl Interner {
    /// One shared copy of a name that many objects repeat: a namespace, a node.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        match self.names.values.get(name) {
            Some(found) => found.clone(),
            None => self.names.keep(name.into()),
        }
    }
}

impl<T: Eq + Hash> InternTable<T> {
    pub(crate) fn intern(&mut self, value: T) -> Interned<T> {
        match self.values.get(&value) {
            Some(found) => Interned(found.clone()),
            None => Interned(self.keep(Arc::new(value))),
        }
    }
}

impl<T: Eq + Hash + ?Sized> InternTable<T> {
    /// Keeps a value that is not there yet.
    fn keep(&mut self, value: Arc<T>) -> Arc<T> {
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.sweep_at = (2 * self.values.len()).max(SWEEP_MIN);
        }
        self.values.insert(value.clone());
        value
    }
}

impl<T: ?Sized> Default for InternTable<T> {
    fn default() -> Self {
        InternTable { values: FxHashSet::default(), sweep_at: SWEEP_MIN }
    }
}

impl<T: ?Sized> fmt::Debug for InternTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InternTable({} values)", self.values.len())
    }
}

impl<T> Interned<T> {
    /// A number that tells the value from all others of its interner, as long as a handle to it lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

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
    use crate::pod::Pod;

    #[test]
    fn equal_values_share_one_allocation() {
        let mut table = InternTable::default();
        let first = table.intern("a".to_owned());
        assert!(first.is_same(&table.intern("a".to_owned())));
        assert!(!first.is_same(&table.intern("b".to_owned())));
    }

    #[test]
    fn names_out_of_use_are_dropped() {
        let mut interner = Interner::default();
        let kept = interner.name("kept");
        for number in 0..100_000 {
            // The nodes of a cluster that grows and shrinks every day.
            interner.name(&format!("node-{number}"));
        }
        assert!(interner.names.values.len() <= SWEEP_MIN, "{interner:?}");
        assert!(Arc::ptr_eq(&kept, &interner.name("kept")));
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

    fn pod(interner: &mut Interner, name: usize, spec: &str) -> Pod {
        let json = format!(
            r#"{{"metadata":{{"name":"pod-{name}","namespace":"default","labels":{{"app":"web"}},"ownerReferences":[
                {{"kind":"ReplicaSet","name":"web","controller":true}}]}},"spec":{spec}}}"#
        );
        interner.pod(serde_json::from_str(&json).expect("a pod"))
    }

    #[test]
    fn pods_of_one_spec_share_it() {
        let mut interner = Interner::default();
        let spec = r#"{"nodeName":"a","priority":7,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}"#;
        // The same in other words, on another node.
        let same = r#"{"containers":[{"resources":{"requests":{"cpu":"1000m"},"limits":null},"name":"c"}],
            "tolerations":[],"priority":7,"nodeName":"b"}"#;
        let other = r#"{"priority":8,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}"#;
        let first = pod(&mut interner, 0, spec);
        let second = pod(&mut interner, 1, same);
        let third = pod(&mut interner, 2, other);
        assert!(first.spec.is_same(&second.spec));
        assert!(!first.spec.is_same(&third.spec));
        assert!(first.labels.is_same(&third.labels) && first.annotations.is_same(&third.annotations));
        assert!(Arc::ptr_eq(&first.namespace, &third.namespace));
        let (first, third) = (first.controller.expect("given"), third.controller.expect("given"));
        assert!(first.is_same(&third));
    }

    #[test]
    fn specs_out_of_use_are_dropped() {
        let mut interner = Interner::default();
        let first = pod(&mut interner, 0, "{}");
        let gone = Arc::downgrade(&first.spec.0);
        drop(first);
        for number in 0..2 * SWEEP_MIN {
            pod(&mut interner, number, &format!(r#"{{"priority":{number}}}"#));
        }
        assert!(gone.upgrade().is_none());
        assert!(interner.specs.values.len() <= SWEEP_MIN, "{interner:?}");
    }

    #[test]
    fn a_pod_stays_small() {
        // A million of them: each byte here is a megabyte there.
        const POD_BYTES: usize = 136;
        assert!(size_of::<Pod>() <= POD_BYTES, "a Pod takes {} bytes", size_of::<Pod>());
    }
}
