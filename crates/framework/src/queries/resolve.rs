//! Which objects facts become: whose node is meant, and what of it counts.

use std::collections::BTreeMap;

use supercargo_model::{NodeRef, Object, ObjectKey, Snapshot, Timestamp};

use super::Query;
use super::facts::{Fact, FactForm, Facts, LeftOut, LeftOutReason};

/// The objects that facts become.
#[derive(Debug)]
pub struct ResolvedFacts {
    /// The objects by name, each with the time at which it is too old.
    pub objects: BTreeMap<Box<str>, (Object, Timestamp)>,
    /// What does not count.
    pub left_out: LeftOut,
    /// What is said of nodes that are not known. It is left out, and may count later.
    pub strangers: Strangers,
}

/// What an answer says of nodes that are not known, by what it calls them, without ports.
#[derive(Clone, Debug, Default)]
pub struct Strangers(BTreeMap<Box<str>, Vec<Fact>>);

impl Query {
    /// The objects that facts of this query become in a cluster.
    pub fn resolve(&self, facts: Facts, cluster: &Snapshot, now: Timestamp) -> ResolvedFacts {
        let mut left_out = facts.left_out().clone();
        let mut objects: BTreeMap<Box<str>, (Object, Timestamp)> = BTreeMap::new();
        let mut duplicates: BTreeMap<Box<str>, u64> = BTreeMap::new();
        let mut strangers = Strangers::default();
        let nodes = match self.form() {
            FactForm::PerNode => Nodes::of(cluster),
            FactForm::Whole => Nodes::default(),
        };
        for Fact { mut object, at } in facts.into_list() {
            let end = at.min(now).after(self.max_age());
            let name = match self.form() {
                FactForm::Whole => Some(self.name()),
                FactForm::PerNode => nodes.find(cluster, &object.key.name),
            };
            match name {
                _ if end <= now => left_out.count(LeftOutReason::Old, 1),
                None => {
                    left_out.count(LeftOutReason::UnknownNode, 1);
                    strangers.add(Fact { object, at });
                }
                Some(name) => {
                    let name: Box<str> = name.into();
                    object.key = key_of(&name);
                    if objects.insert(name.clone(), (object, end)).is_some() {
                        *duplicates.entry(name).or_insert(1) += 1;
                    }
                }
            }
        }
        for (name, times) in duplicates {
            // Nobody knows which of them is true.
            objects.remove(&name);
            left_out.count(LeftOutReason::Duplicate, times);
        }
        ResolvedFacts { objects, left_out, strangers }
    }

    /// The object that a fact about a stranger becomes now that the node is known, with the time at which it is too old; none if nothing
    /// is said of the node, or several things are.
    pub fn resolve_stranger(
        &self,
        strangers: &mut Strangers,
        cluster: &Snapshot,
        node: NodeRef<'_>,
        now: Timestamp,
    ) -> Option<(Object, Timestamp)> {
        let mut said = strangers.take(cluster, node);
        let Fact { mut object, at } = said.pop().filter(|_| said.is_empty())?;
        let end = at.min(now).after(self.max_age());
        object.key = key_of(node.name());
        (end > now).then_some((object, end))
    }
}

fn key_of(node: &str) -> ObjectKey {
    ObjectKey { namespace: Box::default(), name: node.into() }
}

impl Strangers {
    fn add(&mut self, fact: Fact) {
        let called = without_port(&fact.object.key.name).into();
        self.0.entry(called).or_default().push(fact);
    }

    /// What is said of a node by its name, or by an address that no other node has.
    fn take(&mut self, cluster: &Snapshot, node: NodeRef<'_>) -> Vec<Fact> {
        let mut said = self.0.remove(&**node.name()).unwrap_or_default();
        for address in node.facts().internal_addresses.iter() {
            let has_address = |other: &NodeRef<'_>| other.facts().internal_addresses.contains(address);
            // All nodes are looked at only if somebody is called like that.
            if self.0.contains_key(address) && cluster.nodes().filter(has_address).count() == 1 {
                said.extend(self.0.remove(address).into_iter().flatten());
            }
        }
        said
    }

    /// When each was measured, to change it: the clock was set.
    pub fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.0.values_mut().flatten().map(|fact| &mut fact.at)
    }
}

/// The nodes by their internal addresses. One that several nodes have is no node's.
#[derive(Default)]
pub(super) struct Nodes<'a>(BTreeMap<&'a str, Option<&'a str>>);

impl<'a> Nodes<'a> {
    pub(super) fn of(cluster: &'a Snapshot) -> Self {
        let mut nodes: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for node in cluster.nodes() {
            for address in node.facts().internal_addresses.iter() {
                let name = nodes.entry(address).or_insert(Some(node.name()));
                *name = name.filter(|known| **known == **node.name());
            }
        }
        Nodes(nodes)
    }

    /// The node that a source means: by its name or an address, with or without a port.
    pub(super) fn find<'n>(&self, cluster: &'n Snapshot, called: &'n str) -> Option<&'n str>
    where
        'a: 'n,
    {
        let without_port = without_port(called);
        let is_node = |name: &&str| cluster.row_of(name).is_some();
        let by_address = || self.0.get(without_port).copied().flatten();
        [called, without_port].into_iter().find(is_node).or_else(by_address)
    }
}

/// What a node is called, without a port.
fn without_port(called: &str) -> &str {
    match called.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(called, |(address, _)| address),
        // An IPv6 address without brackets has no port.
        None if called.matches(':').count() > 1 => called,
        None => called.split_once(':').map_or(called, |(host, _)| host),
    }
}
