//! The nodes' values under the label keys that pods are counted by. Hot.

use std::hint::black_box;

use rustc_hash::FxHashMap;
use supercargo_framework::Cell;
use supercargo_model::cluster::KeyId;
use supercargo_model::{NodeRef, Row, Snapshot};

/// The row waits for a node.
const NO_NODE: u32 = u32::MAX - 1;
/// The node does not have the key.
const NO_VALUE: u32 = Cell::NO_DOMAIN;
/// There is no further row in the domain.
const NO_ROW: u32 = u32::MAX;
/// There are many domains where there are so many for each node of the largest.
const DOMAINS_PER_NODE: usize = 2;
/// What has many domains has many as long as it has a share of that: otherwise nodes that come and go would change it all the time.
const STAYS_MANY_SHARE: usize = 2;

/// One label key, or two together: the number of every node's value.
#[derive(Debug)]
pub(super) struct KeyColumn {
    name: Box<str>,
    /// The key beside it, if values are pairs.
    second: Option<Box<str>>,
    /// The pairs, with their numbers; a node that lacks a key has an empty value.
    pairs: FxHashMap<[Box<str>; 2], u32>,
    /// The pairs by number.
    places: Vec<[Box<str>; 2]>,
    /// None as long as no node has had the key.
    key: Option<KeyId>,
    values: Vec<u32>,
    /// How many nodes have each value.
    nodes: Vec<u32>,
    /// The first row with each value; from there on, the rows with that value are chained.
    first: Vec<u32>,
    chain: Vec<Link>,
    /// How many nodes the domain with the most nodes has.
    largest: u32,
    /// Below so many domains there are not many.
    many: usize,
    /// Whether there are many domains, all of them small.
    has_many: bool,
    /// How many values some node has.
    domains: usize,
    /// How many values more than one node has.
    shared: usize,
    /// How many nodes do not have the key.
    missing: usize,
    /// Whether a node has, or had, an empty value, which plugins may treat in a way of their own.
    has_empty: bool,
    /// Changes when [`KeyColumn::is_one_node_each`], [`KeyColumn::has_many_domains`] or [`KeyColumn::is_on_all_nodes`] does, or
    /// the first empty value comes up.
    epoch: u64,
}

/// A row's neighbours in the chain of its domain.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

const UNLINKED: Link = Link { previous: NO_ROW, next: NO_ROW };

/// All keys in use.
#[derive(Debug, Default)]
pub(super) struct Keys {
    columns: Vec<KeyColumn>,
    many: usize,
}

impl Keys {
    /// Keys of which those have many domains that have at least so many.
    pub(super) fn new(many: usize) -> Self {
        Keys { columns: Vec::new(), many }
    }

    /// The number of a key's column, which is made if there is none.
    pub(super) fn column(&mut self, name: &str, second: Option<&str>, cluster: &Snapshot) -> usize {
        let is_it = |column: &KeyColumn| *column.name == *name && column.second.as_deref() == second;
        if let Some(index) = self.columns.iter().position(is_it) {
            return index;
        }
        let mut column = KeyColumn {
            name: name.into(),
            second: second.map(Into::into),
            pairs: FxHashMap::default(),
            places: Vec::new(),
            key: None,
            values: vec![NO_NODE; cluster.row_count()],
            nodes: Vec::new(),
            first: Vec::new(),
            chain: vec![UNLINKED; cluster.row_count()],
            largest: 0,
            many: self.many,
            has_many: false,
            domains: 0,
            shared: 0,
            missing: 0,
            has_empty: false,
            epoch: 0,
        };
        for node in cluster.nodes() {
            column.put(node, cluster);
        }
        self.columns.push(column);
        self.columns.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn get(&self, index: usize) -> &KeyColumn {
        &self.columns[index]
    }

    /// Reads a row's values, which will be needed soon.
    pub(super) fn warm(&self, Row(row): Row) {
        for column in &self.columns {
            black_box(column.value(row));
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut KeyColumn> {
        self.columns.iter_mut()
    }
}

impl KeyColumn {
    /// Whether no two nodes have the same value: then a domain is a row.
    pub(super) fn is_one_node_each(&self) -> bool {
        self.shared == 0
    }

    /// Whether there are so many domains, and all so small, that it is better to look at the rows of those that changed than at all
    /// domains: then the rows of several domains may be in one group.
    pub(super) fn has_many_domains(&self) -> bool {
        self.has_many
    }

    /// How many nodes the domain with the most nodes has.
    pub(super) fn largest(&self) -> usize {
        self.largest as usize
    }

    /// The rows of a domain.
    pub(super) fn rows(&self, domain: u32) -> impl Iterator<Item = u32> {
        let linked = |row: u32| (row != NO_ROW).then_some(row);
        let first = self.first.get(domain as usize).copied().and_then(linked);
        std::iter::successors(first, move |row| linked(self.chain[*row as usize].next))
    }

    /// One more than the number of any domain.
    pub(super) fn domain_numbers(&self) -> usize {
        self.nodes.len()
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
                let was_largest = *nodes == self.largest;
                *nodes -= 1;
                self.domains -= usize::from(*nodes == 0);
                self.shared -= usize::from(*nodes == 1);
                // Where all domains are nodes, the largest need not be looked for.
                if was_largest && (self.largest > 1 || self.domains == 0) {
                    self.largest = self.nodes.iter().copied().max().unwrap_or(0);
                }
                self.unchain(row, value);
            }
        }
        self.judge_domains();
        self.epoch += u64::from(before != self.summary());
    }

    /// Notes a node's value.
    pub(super) fn put(&mut self, node: NodeRef<'_>, cluster: &Snapshot) {
        let row = node.row().0 as usize;
        if row >= self.values.len() {
            self.values.resize(row + 1, NO_NODE);
            self.chain.resize(row + 1, UNLINKED);
        }
        let before = self.summary();
        self.values[row] = match self.read(node, cluster) {
            None => {
                self.missing += 1;
                NO_VALUE
            }
            Some(value) => {
                if value as usize >= self.nodes.len() {
                    self.nodes.resize(value as usize + 1, 0);
                    self.first.resize(value as usize + 1, NO_ROW);
                }
                let nodes = &mut self.nodes[value as usize];
                *nodes += 1;
                self.domains += usize::from(*nodes == 1);
                self.shared += usize::from(*nodes == 2);
                self.largest = self.largest.max(*nodes);
                self.enchain(row as u32, value);
                value
            }
        };
        self.judge_domains();
        self.epoch += u64::from(before != self.summary());
    }

    /// The number of a node's value.
    fn read(&mut self, node: NodeRef<'_>, cluster: &Snapshot) -> Option<u32> {
        if let Some(second) = &self.second {
            let text = |key: &str| {
                let pair = cluster.labels().key(key).and_then(|key| node.domain(key));
                pair.map_or("", |pair| cluster.labels().value(pair)).into()
            };
            let place: [Box<str>; 2] = [text(&self.name), text(second)];
            let next = self.places.len() as u32;
            let number = *self.pairs.entry(place.clone()).or_insert(next);
            if number == next {
                self.places.push(place);
            }
            return Some(number);
        }
        if self.key.is_none() {
            self.key = cluster.labels().key(&self.name);
        }
        let pair = self.key.and_then(|key| node.domain(key))?;
        self.has_empty |= cluster.labels().value(pair).is_empty();
        Some(pair.value.0)
    }

    /// The place of a number, where values are pairs.
    pub(super) fn place(&self, number: u32) -> [&str; 2] {
        self.places.get(number as usize).map_or(["", ""], |[first, second]| [first, second])
    }

    fn enchain(&mut self, row: u32, value: u32) {
        let next = std::mem::replace(&mut self.first[value as usize], row);
        self.chain[row as usize] = Link { previous: NO_ROW, next };
        if let Some(link) = self.chain.get_mut(next as usize) {
            link.previous = row;
        }
    }

    fn unchain(&mut self, row: u32, value: u32) {
        let Link { previous, next } = std::mem::replace(&mut self.chain[row as usize], UNLINKED);
        match self.chain.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => self.first[value as usize] = next,
        }
        if let Some(link) = self.chain.get_mut(next as usize) {
            link.previous = previous;
        }
    }

    fn judge_domains(&mut self) {
        let slack = if self.has_many { STAYS_MANY_SHARE } else { 1 };
        self.has_many = self.domains * slack >= self.many
            && self.domains * slack >= self.largest as usize * DOMAINS_PER_NODE;
    }

    fn summary(&self) -> (bool, bool, bool, bool) {
        (self.is_one_node_each(), self.has_many, self.is_on_all_nodes(), self.has_empty)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use supercargo_testkit::{cluster, node};

    use super::*;

    const KEY: &str = "rack";

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Nodes come with a rack or without one, move to another, and go.
        #[test]
        fn a_column_knows_the_rows_of_every_domain(
            steps in prop::collection::vec((0..12u32, prop::option::of(0..6u32), prop::bool::weighted(0.2)), 1..60),
        ) {
            let mut cluster = cluster();
            let mut keys = Keys::new(3);
            keys.column(KEY, None, cluster.snapshot());
            for (number, rack, goes) in steps {
                let name = format!("n{number}");
                let known = cluster.snapshot().row_of(&name);
                if let Some(Row(row)) = known {
                    keys.columns[0].remove(row);
                }
                if goes && known.is_some() {
                    cluster.remove_node(&name);
                } else if !goes {
                    let racked = |rack: u32| node(&name).label(KEY, &format!("r{rack}"));
                    cluster.put(rack.map_or_else(|| node(&name), racked));
                    let snapshot = cluster.snapshot();
                    let row = snapshot.row_of(&name).expect("it was just put");
                    keys.columns[0].put(snapshot.node(row), snapshot);
                }
                check(&keys.columns[0], cluster.snapshot())?;
            }
        }
    }

    fn check(column: &KeyColumn, cluster: &Snapshot) -> Result<(), TestCaseError> {
        let mut largest = 0;
        let mut domains = 0;
        for domain in 0..column.domain_numbers() as u32 {
            let rows: BTreeSet<u32> = column.rows(domain).collect();
            let is_there =
                |node: &NodeRef<'_>| node.domain_named(KEY).is_some_and(|pair| pair.value.0 == domain);
            let expected: BTreeSet<u32> = cluster.nodes().filter(is_there).map(|node| node.row().0).collect();
            prop_assert_eq!(&rows, &expected);
            prop_assert_eq!(column.rows(domain).count(), rows.len());
            largest = largest.max(rows.len());
            domains += usize::from(!rows.is_empty());
        }
        prop_assert_eq!((column.largest(), column.domains()), (largest, domains));
        // Between what makes domains many and what makes them few again, it depends on what was before.
        if domains >= 3 && domains >= DOMAINS_PER_NODE * largest {
            prop_assert!(column.has_many_domains());
        }
        if STAYS_MANY_SHARE * domains < 3 || STAYS_MANY_SHARE * domains < DOMAINS_PER_NODE * largest {
            prop_assert!(!column.has_many_domains());
        }
        Ok(())
    }
}
