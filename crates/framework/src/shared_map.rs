//! A sorted map whose clones share all that they have in common.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sorted map for what plugins remember: a clone costs nothing, and changing one entry of a map that has clones copies a
/// path of about twenty small nodes, however many entries there are.
///
/// What is remembered is copied before it is changed, so that a cycle that fails can be undone and whoever looks at an
/// earlier state still sees it. With a `BTreeMap` in it, all entries are copied each time; with this, none but the one.
pub struct SharedMap<K, V> {
    root: Link<K, V>,
    len: usize,
}

type Link<K, V> = Option<Arc<Node<K, V>>>;

/// A node of a tree whose two sides differ in height by one at most.
struct Node<K, V> {
    entry: Arc<(K, V)>,
    left: Link<K, V>,
    right: Link<K, V>,
    height: u8,
}

/// The entries of a [`SharedMap`], in the order of their keys.
#[derive(Debug)]
pub struct SharedMapEntries<'a, K, V> {
    /// The nodes whose entry, and then whose right side, is still to come.
    waiting: Vec<&'a Node<K, V>>,
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let mut link = &self.root;
        while let Some(node) = link {
            link = match key.cmp(&node.entry.0) {
                Ordering::Less => &node.left,
                Ordering::Greater => &node.right,
                Ordering::Equal => return Some(&node.entry.1),
            };
        }
        None
    }

    /// The entry whose key compares equal, by an order that the keys are in: for who has the parts of a key, and need not make one.
    pub fn find(&self, compare: impl Fn(&K) -> Ordering) -> Option<(&K, &V)> {
        let mut link = &self.root;
        while let Some(node) = link {
            link = match compare(&node.entry.0) {
                Ordering::Greater => &node.left,
                Ordering::Less => &node.right,
                Ordering::Equal => return Some((&node.entry.0, &node.entry.1)),
            };
        }
        None
    }

    /// The entry with the smallest key.
    pub fn first(&self) -> Option<(&K, &V)> {
        let mut node = self.root.as_deref()?;
        while let Some(left) = node.left.as_deref() {
            node = left;
        }
        Some((&node.entry.0, &node.entry.1))
    }

    /// The entry with the largest key.
    pub fn last(&self) -> Option<(&K, &V)> {
        let mut node = self.root.as_deref()?;
        while let Some(right) = node.right.as_deref() {
            node = right;
        }
        Some((&node.entry.0, &node.entry.1))
    }

    /// The entries whose keys are larger than this one, in the order of their keys. Those before it are not looked at.
    pub fn after(&self, key: &K) -> SharedMapEntries<'_, K, V> {
        let mut entries = SharedMapEntries { waiting: Vec::new() };
        let mut link = &self.root;
        while let Some(node) = link {
            if node.entry.0 > *key {
                entries.waiting.push(node);
                link = &node.left;
            } else {
                link = &node.right;
            }
        }
        entries
    }

    /// Whether there is such a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if !self.contains_key(key) {
            return None;
        }
        let mut link = &mut self.root;
        loop {
            let node = Arc::make_mut(link.as_mut()?);
            link = match key.cmp(&node.entry.0) {
                Ordering::Less => &mut node.left,
                Ordering::Greater => &mut node.right,
                Ordering::Equal => return Some(&mut Arc::make_mut(&mut node.entry).1),
            };
        }
    }

    /// The value of a key, to change it; the default if there is none yet.
    pub fn get_or_default(&mut self, key: &K) -> &mut V
    where
        V: Default,
    {
        if !self.contains_key(key) {
            self.insert(key.clone(), V::default());
        }
        self.get_mut(key).expect("it was just put there if it was missing")
    }

    /// Puts a value under a key; the value that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let old = insert(&mut self.root, key, value);
        self.len += usize::from(old.is_none());
        old
    }

    /// Takes the value of a key out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        // A map without the key is not copied.
        if !self.contains_key(key) {
            return None;
        }
        self.len -= 1;
        remove(&mut self.root, key)
    }

    /// Keeps only some of the entries.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &V) -> bool) {
        let dropped: Vec<K> =
            self.iter().filter(|(key, value)| !is_kept(key, value)).map(|(key, _)| key.clone()).collect();
        for key in dropped {
            self.remove(&key);
        }
    }
}

impl<K, V> SharedMap<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> SharedMapEntries<'_, K, V> {
        let mut entries = SharedMapEntries { waiting: Vec::new() };
        entries.descend(&self.root);
        entries
    }
}

impl<'a, K, V> SharedMapEntries<'a, K, V> {
    fn descend(&mut self, mut link: &'a Link<K, V>) {
        while let Some(node) = link {
            self.waiting.push(node);
            link = &node.left;
        }
    }
}

impl<'a, K, V> Iterator for SharedMapEntries<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.waiting.pop()?;
        self.descend(&node.right);
        Some((&node.entry.0, &node.entry.1))
    }
}

fn insert<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>, key: K, value: V) -> Option<V> {
    let Some(node) = link else {
        *link = Some(Arc::new(Node { entry: Arc::new((key, value)), left: None, right: None, height: 1 }));
        return None;
    };
    let node = Arc::make_mut(node);
    let old = match key.cmp(&node.entry.0) {
        Ordering::Less => insert(&mut node.left, key, value),
        Ordering::Greater => insert(&mut node.right, key, value),
        Ordering::Equal => {
            return Some(value_of(std::mem::replace(&mut node.entry, Arc::new((key, value)))));
        }
    };
    node.balance();
    old
}

fn remove<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>, key: &K) -> Option<V> {
    let node = Arc::make_mut(link.as_mut()?);
    let old = match key.cmp(&node.entry.0) {
        Ordering::Less => remove(&mut node.left, key),
        Ordering::Greater => remove(&mut node.right, key),
        Ordering::Equal => match (node.left.take(), node.right.take()) {
            (None, only) | (only, None) => {
                let old = node.entry.clone();
                *link = only;
                return Some(value_of(old));
            }
            (left, mut right) => {
                let next = take_first(&mut right);
                (node.left, node.right) = (left, right);
                next.map(|next| value_of(std::mem::replace(&mut node.entry, next)))
            }
        },
    };
    node.balance();
    old
}

/// Takes the first entry out.
fn take_first<K, V>(link: &mut Link<K, V>) -> Option<Arc<(K, V)>> {
    let node = Arc::make_mut(link.as_mut()?);
    if node.left.is_none() {
        let (entry, right) = (node.entry.clone(), node.right.take());
        *link = right;
        return Some(entry);
    }
    let first = take_first(&mut node.left);
    node.balance();
    first
}

/// The value of an entry, copied only if somebody else has the entry too.
fn value_of<K: Clone, V: Clone>(entry: Arc<(K, V)>) -> V {
    Arc::unwrap_or_clone(entry).1
}

fn height<K, V>(link: &Link<K, V>) -> u8 {
    link.as_ref().map_or(0, |node| node.height)
}

impl<K, V> Node<K, V> {
    fn measure(&mut self) {
        self.height = 1 + height(&self.left).max(height(&self.right));
    }

    /// Makes the sides as high as each other, or nearly, after one of them has changed by one.
    fn balance(&mut self) {
        self.measure();
        let (left, right) = (height(&self.left), height(&self.right));
        if left > right + 1 {
            let side = Arc::make_mut(self.left.as_mut().expect("the higher side has nodes"));
            if height(&side.left) < height(&side.right) {
                side.raise_right();
            }
            self.raise_left();
        } else if right > left + 1 {
            let side = Arc::make_mut(self.right.as_mut().expect("the higher side has nodes"));
            if height(&side.right) < height(&side.left) {
                side.raise_left();
            }
            self.raise_right();
        }
    }

    /// The left child takes the node's place, and the node becomes its right child.
    fn raise_left(&mut self) {
        let Some(mut raised) = self.left.take() else { return };
        let child = Arc::make_mut(&mut raised);
        self.left = child.right.take();
        self.measure();
        std::mem::swap(self, child);
        self.right = Some(raised);
        self.measure();
    }

    /// The right child takes the node's place, and the node becomes its left child.
    fn raise_right(&mut self) {
        let Some(mut raised) = self.right.take() else { return };
        let child = Arc::make_mut(&mut raised);
        self.right = child.left.take();
        self.measure();
        std::mem::swap(self, child);
        self.left = Some(raised);
        self.measure();
    }
}

// Written by hand, because derived ones would ask for keys and values that can be cloned, or have a default.

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        Node {
            entry: self.entry.clone(),
            left: self.left.clone(),
            right: self.right.clone(),
            height: self.height,
        }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        SharedMap { root: self.root.clone(), len: self.len }
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        SharedMap { root: None, len: 0 }
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SharedMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V> fmt::Debug for Node<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node of height {}", self.height)
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = SharedMap::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = SharedMapEntries<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Serialize, V: Serialize> Serialize for SharedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K, V> Deserialize<'de> for SharedMap<K, V>
where
    K: Deserialize<'de> + Ord + Clone,
    V: Deserialize<'de> + Clone,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
