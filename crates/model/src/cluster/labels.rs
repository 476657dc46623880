//! Node labels as numbers: keys are numbered, and the values of each key by themselves.
//!
//! The hostname makes every label set unique, so interning whole sets saves nothing. Per key it does: a zone has
//! three values however many nodes there are, and a value's number is the index of its topology domain.

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// The number of a label key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

/// The number of a value among those of its key: the index of a topology domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

/// One label of a node. Under a topology key this is the node's domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelPair {
    /// The key.
    pub key: KeyId,
    /// The value, among those of the key.
    pub value: ValueId,
}

/// All label keys and values that nodes carry.
#[derive(Clone, Debug, Default)]
pub struct LabelTable {
    keys: IndexSet<Arc<str>, FxBuildHasher>,
    values: Vec<IndexSet<Arc<str>, FxBuildHasher>>,
}

impl LabelTable {
    /// The number of a key, if some node has (or had) it.
    pub fn key(&self, key: &str) -> Option<KeyId> {
        self.keys.get_index_of(key).map(|index| KeyId(number(index)))
    }

    /// The number of a label, if some node has (or had) it.
    pub fn pair(&self, key: &str, value: &str) -> Option<LabelPair> {
        let key = self.key(key)?;
        let index = self.values[key.0 as usize].get_index_of(value)?;
        Some(LabelPair { key, value: ValueId(number(index)) })
    }

    /// The value with that number.
    pub fn value(&self, pair: LabelPair) -> &str {
        &self.values[pair.key.0 as usize][pair.value.0 as usize]
    }

    /// The key with that number.
    pub fn key_name(&self, key: KeyId) -> &str {
        &self.keys[key.0 as usize]
    }

    /// How many values a key has: topology domains are numbered below this.
    pub fn value_count(&self, key: KeyId) -> usize {
        self.values[key.0 as usize].len()
    }

    pub(super) fn intern(&mut self, key: &str, value: &str) -> LabelPair {
        let key_index = match self.keys.get_index_of(key) {
            Some(index) => index,
            None => {
                self.values.push(IndexSet::default());
                self.keys.insert_full(key.into()).0
            }
        };
        let values = &mut self.values[key_index];
        let value_index = values.get_index_of(value).unwrap_or_else(|| values.insert_full(value.into()).0);
        LabelPair { key: KeyId(number(key_index)), value: ValueId(number(value_index)) }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a cluster has fewer than 2^32 label keys, and values of a key")
}
