//! The nodes' values under the label keys that pods are counted by. Hot.

use std::hint::black_box;

use supercargo_framework::Cell;
use supercargo_model::cluster::KeyId;
use supercargo_model::{NodeRef, Row, Snapshot};

/// The row waits for a node.
const NO_NODE: u32 = u32::MAX - 1;
/// The node does not have the key.
const NO_VALUE: u32 = Cell::NO_DOMAIN;

/// One label key: the number of every node's value.
#[derive(Debug)]
pub(super) struct KeyColumn {
    name: Box<str>,
    /// None as long as no node has had the key.
    key: Option<KeyId>,
    values: Vec<u32>,
    /// How many nodes have each value.
    nodes: Vec<u32>,
    /// How many values some node has.
    domains: usize,
    /// How many values more than one node has.
    shared: usize,
    /// How many nodes do not have the key.
    missing: usize,
    /// Whether a node has, or had, an empty value, which plugins may treat in a way of their own.
    has_empty: bool,
    /// Changes when [`KeyColumn::is_one_node_each`] or [`KeyColumn::is_on_all_nodes`] does, or the first empty value
    /// comes up.
    epoch: u64,
}

/// All keys in use.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<KeyColumn>);

impl Keys {
    /// The number of a key's column, which is made if there is none.
    pub(super) fn column(&mut self, name: &str, cluster: &Snapshot) -> usize {
        if let Some(index) = self.0.iter().position(|column| *column.name == *name) {
            return index;
        }
        let mut column = KeyColumn {
            name: name.into(),
            key: None,
            values: vec![NO_NODE; cluster.row_count()],
            nodes: Vec::new(),
            domains: 0,
            shared: 0,
            missing: 0,
            has_empty: false,
            epoch: 0,
        };
        for node in cluster.nodes() {
            column.put(node, cluster);
        }
        self.0.push(column);
        self.0.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, index: usize) -> &KeyColumn {
        &self.0[index]
    }

    /// Reads a row's values, which will be needed soon.
    pub(super) fn warm(&self, Row(row): Row) {
        for column in &self.0 {
            black_box(column.value(row));
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut KeyColumn> {
        self.0.iter_mut()
    }
}

impl KeyColumn {
    /// Whether no two nodes have the same value: then a domain is a row.
    pub(super) fn is_one_node_each(&self) -> bool {
        self.shared == 0
    }

    pub(super) fn is_on_all_nodes(&self) -> bool {
        self.missing == 0
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of a row's value, or [`Cell::NO_DOMAIN`].
    pub(super) fn value(&self, row: u32) -> u32 {
        match self.values.get(row as usize) {
            Some(value) if *value != NO_NODE => *value,
            _ => NO_VALUE,
        }
    }

    /// How many nodes have each value.
    pub(super) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    pub(super) fn domains(&self) -> usize {
        self.domains
    }

    /// Notes that the row's node is gone, or about to be looked at again.
    pub(super) fn remove(&mut self, row: u32) {
        let Some(value) = self.values.get_mut(row as usize) else { return };
        let old = std::mem::replace(value, NO_NODE);
        let before = self.summary();
        match old {
            NO_NODE => return,
            NO_VALUE => self.missing -= 1,
            value => {
                let nodes = &mut self.nodes[value as usize];
                *nodes -= 1;
                self.domains -= usize::from(*nodes == 0);
                self.shared -= usize::from(*nodes == 1);
            }
        }
        self.epoch += u64::from(before != self.summary());
    }

    /// Notes a node's value.
    pub(super) fn put(&mut self, node: NodeRef<'_>, cluster: &Snapshot) {
        let row = node.row().0 as usize;
        if row >= self.values.len() {
            self.values.resize(row + 1, NO_NODE);
        }
        let before = self.summary();
        if self.key.is_none() {
            self.key = cluster.labels().key(&self.name);
        }
        self.values[row] = match self.key.and_then(|key| node.domain(key)) {
            None => {
                self.missing += 1;
                NO_VALUE
            }
            Some(pair) => {
                self.has_empty |= cluster.labels().value(pair).is_empty();
                let value = pair.value.0;
                if value as usize >= self.nodes.len() {
                    self.nodes.resize(value as usize + 1, 0);
                }
                let nodes = &mut self.nodes[value as usize];
                *nodes += 1;
                self.domains += usize::from(*nodes == 1);
                self.shared += usize::from(*nodes == 2);
                value
            }
        };
        self.epoch += u64::from(before != self.summary());
    }

    fn summary(&self) -> (bool, bool, bool) {
        (self.is_one_node_each(), self.is_on_all_nodes(), self.has_empty)
    }
}
