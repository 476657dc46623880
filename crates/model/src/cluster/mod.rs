//! The cluster as a table: nodes are dense rows, and what stands in a row are numbers where it can be.
//!
//! [`Cluster`] is the one writer. A scheduling cycle reads a [`Snapshot`] of it: borrowed, it costs nothing and
//! cannot change; cloned, it costs a pointer for every 64 nodes and stays as it is while the cluster moves on.

mod adding;
mod bare;
mod changes;
mod claims;
mod copy;
mod facts;
mod images;
mod labels;
mod nominations;
mod order;
mod rows;
mod standings;
mod uids;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use changes::{Change, Changes, ObjectChange};
pub use claims::ClaimUsers;
pub use images::{ImageId, ImageState};
pub use labels::{KeyId, LabelPair, LabelTable, ValueId};
pub use standings::{CountedPods, PodSet, PodSetId, Pods, Standing, StandingCounts, StandingPod};
pub use usage::{Usage, VolumeCounts};

use crate::intern::Interner;
use crate::labels::{LabelLookup, Labels};
use crate::lookups::{self, Lookup};
use crate::node::{Node, NodeWords};
use crate::node_selector::SelectableNode;
use crate::object::Objects;
use crate::pod::Pod;
use crate::resources::Resources;
use crate::taints::Taint;
use claims::ClaimTable;
use facts::FactTable;
use images::ImageTable;
use order::{ZoneOrder, zone_of};
use rows::Rows;
use standings::{Book, Ledger};
use uids::UidSet;

/// A node's place in the table. It keeps it for life; afterwards the row is given to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub u32);

/// The cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    version: u64,
    nodes: Rows<NodeRow>,
    rows_by_name: Arc<FxHashMap<Arc<str>, Row>>,
    order: Arc<Vec<Row>>,
    /// How many bound pods there are of each priority.
    priorities: Arc<BTreeMap<i32, usize>>,
    labels: Arc<LabelTable>,
    images: Arc<ImageTable>,
    nominated: Arc<BTreeMap<Arc<str>, Vec<Arc<Pod>>>>,
    objects: Objects,
    facts: FactTable,
    /// Which rows have pods that use which claims.
    claims: ClaimTable,
    /// Where pods stand, if anybody reads it.
    book: Option<Arc<Book>>,
}

/// A row: a node and what its pods take of it. Both are empty in rows that wait for a new node.
///
/// What a decision needs of it stands at the beginning of each of the two, in one line of the processor's cache: in a large cluster
/// every line comes from memory.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct NodeRow {
    usage: Usage,
    node: Node,
}

/// A node as a plugin sees it: its facts, and the pods on it.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    row: Row,
    node: &'a Node,
    usage: &'a Usage,
    labels: &'a LabelTable,
    images: &'a ImageTable,
}

/// The cluster as it is now; the only place where it changes. A clone costs some pointers for every 64 nodes and none for a pod; what is
/// changed afterwards, on either side, is copied in small parts.
#[derive(Debug, Default)]
pub struct Cluster {
    state: Snapshot,
    interner: Interner,
    zones: ZoneOrder,
    /// Whether nodes have come or gone since the last snapshot.
    order_is_stale: bool,
    /// The nodes of the last snapshot, in its order.
    ordered: Arc<[Arc<str>]>,
    free_rows: Vec<Row>,
    /// Every bound pod, by UID.
    bound: UidSet<Arc<Pod>>,
    /// What pods take of nodes that are not there (yet): it counts nowhere until the node appears.
    homeless: FxHashMap<Arc<str>, Usage>,
    /// The node that each nominated pod waits for, by UID.
    nominations: FxHashMap<Arc<str>, Arc<str>>,
    changes: Changes,
    ledger: Ledger,
}

/// Why a pod cannot be put into the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// Pods are known by their UID.
    #[error("pod {pod} has no metadata.uid")]
    NoUid {
        /// The pod.
        pod: String,
    },
    /// Only bound pods take room.
    #[error("pod {pod} has no spec.nodeName")]
    NotBound {
        /// The pod.
        pod: String,
    },
    /// Two pods with one UID are one pod.
    #[error("pod {pod} is in the cluster already: another pod has its metadata.uid {uid:?}")]
    DuplicateUid {
        /// The pod that came second.
        pod: String,
        /// The UID.
        uid: Arc<str>,
    },
}

// === impl Snapshot ===

impl Snapshot {
    /// A number that changes whenever anything in the cluster does.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.order.len()
    }

    /// How many rows the table has, those that wait for a new node included.
    pub fn row_count(&self) -> usize {
        self.nodes.len()
    }

    /// The rows of all nodes, in the order in which nodes are examined.
    pub fn rows(&self) -> &[Row] {
        &self.order
    }

    /// All nodes, in the order in which they are examined.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        self.order.iter().map(|row| self.node(*row))
    }

    /// The node in a row.
    pub fn node(&self, row: Row) -> NodeRef<'_> {
        let NodeRow { node, usage } = self.nodes.get(row.0 as usize);
        NodeRef { row, node, usage, labels: &self.labels, images: &self.images }
    }

    /// Reads a word of each cache line that placing a pod in a row needs, so that they come from memory together and not
    /// one after the other.
    pub fn warm(&self, row: Row) {
        let NodeRow { node, usage } = self.nodes.get(row.0 as usize);
        std::hint::black_box((
            self.nodes.is_shared(row.0 as usize),
            Arc::strong_count(&node.name),
            usage.pods().last().map(Arc::as_ptr),
        ));
    }

    /// The node in a row, with other pods on it: how a cycle tries out what does not hold yet.
    pub fn node_with<'a>(&'a self, row: Row, usage: &'a Usage) -> NodeRef<'a> {
        NodeRef { usage, ..self.node(row) }
    }

    /// The cluster with one node changed, to see what would be then. Labels and images are not among what can be.
    #[must_use]
    pub fn with_node_changed(&self, row: Row, change: impl FnOnce(&mut Node)) -> Self {
        let mut changed = self.clone();
        changed.version += 1;
        change(&mut changed.nodes.get_mut(row.0 as usize).node);
        changed
    }

    /// The cluster without some of its pods, each given by its UID and the row it is in, to see what would be then.
    #[must_use]
    pub fn without_pods<'a>(&self, pods: impl IntoIterator<Item = (Row, &'a str)>) -> Self {
        let mut changed = self.clone();
        changed.version += 1;
        for (row, uid) in pods {
            if let Some(pod) = changed.nodes.get_mut(row.0 as usize).usage.remove(uid) {
                changed.claims.remove(&pod, row);
            }
        }
        changed
    }

    /// The row of the node with that name.
    pub fn row_of(&self, node_name: &str) -> Option<Row> {
        self.rows_by_name.get(node_name).copied()
    }

    /// The node labels as numbers.
    pub fn labels(&self) -> &LabelTable {
        &self.labels
    }

    /// Whether an image of that name is, or was, on any node.
    pub fn knows_image(&self, name: &str) -> bool {
        self.images.id(name).is_some()
    }

    /// The pods for which preemption is making room on that node.
    pub fn nominated_to(&self, node_name: &str) -> &[Arc<Pod>] {
        if self.nominated.is_empty() { &[] } else { self.nominated.get(node_name).map_or(&[], Vec::as_slice) }
    }

    /// The nodes that pods are nominated to, with those pods.
    pub fn nominated(&self) -> impl Iterator<Item = (&Arc<str>, &[Arc<Pod>])> {
        self.nominated.iter().map(|(name, pods)| (name, pods.as_slice()))
    }

    /// The lowest priority of any pod that is bound to a node.
    pub fn lowest_priority(&self) -> Option<i32> {
        self.priorities.keys().next().copied()
    }

    /// Objects of all other kinds.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }
}

// === impl NodeRef ===

impl<'a> NodeRef<'a> {
    /// Its row in the table.
    pub fn row(&self) -> Row {
        self.row
    }

    /// `metadata.name`
    pub fn name(&self) -> &'a Arc<str> {
        &self.node.name
    }

    /// `spec.taints`
    pub fn taints(&self) -> &'a [Taint] {
        &self.node.taints
    }

    /// `spec.unschedulable`
    pub fn is_unschedulable(&self) -> bool {
        self.node.unschedulable
    }

    /// `status.allocatable`, without the number of pods.
    pub fn allocatable(&self) -> &'a Resources {
        &self.node.allocatable
    }

    /// How many pods the node takes.
    pub fn allowed_pods(&self) -> i64 {
        self.node.allowed_pods
    }

    /// `status.declaredFeatures`
    pub fn declared_features(&self) -> &'a [Box<str>] {
        &self.node.declared_features
    }

    /// `metadata.annotations`
    pub fn annotations(&self) -> &'a Labels {
        &self.node.annotations
    }

    /// All of the node's facts.
    pub fn facts(&self) -> &'a Node {
        self.node
    }

    /// The pods on the node and what they take of it.
    pub fn usage(&self) -> &'a Usage {
        self.usage
    }

    /// The pods on the node, in no meaningful order.
    pub fn pods(&self) -> &'a [Arc<Pod>] {
        self.usage.pods()
    }

    /// The node's labels as numbers, in key order.
    pub fn label_pairs(&self) -> &'a [LabelPair] {
        &self.node.labels
    }

    /// The node's labels.
    pub fn labels(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let table = self.labels;
        self.node.labels.iter().map(|pair| (table.key_name(pair.key), table.value(*pair)))
    }

    /// The node's domain under a topology key.
    pub fn domain(&self, key: KeyId) -> Option<LabelPair> {
        let index = self.node.labels.binary_search_by_key(&key, |pair| pair.key).ok()?;
        Some(self.node.labels[index])
    }

    /// The node's domain under a topology key, by the key's name.
    pub fn domain_named(&self, key: &str) -> Option<LabelPair> {
        lookups::note(|| Lookup::NodeLabel(self.row()));
        self.domain(self.labels.key(key)?)
    }

    /// The image of that name, if the node has it.
    pub fn image(&self, name: &str) -> Option<ImageState> {
        let id = self.images.id(name)?;
        self.node.images.binary_search(&id).ok()?;
        Some(self.images.state(id))
    }
}

impl LabelLookup for NodeRef<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.domain_named(key).map(|pair| self.labels.value(pair))
    }
}

impl SelectableNode for NodeRef<'_> {
    fn name(&self) -> &str {
        &self.node.name
    }
}

// === impl Cluster ===

impl Cluster {
    /// The cluster as it is now, brought up to date.
    #[inline]
    pub fn snapshot(&mut self) -> &Snapshot {
        if self.order_is_stale {
            self.put_in_order();
        }
        &self.state
    }

    /// The row of a node. It needs no snapshot, whose order takes time for as many nodes as there are.
    pub fn row_of(&self, name: &str) -> Option<Row> {
        self.state.row_of(name)
    }

    /// What has changed in the table since somebody last took the changes.
    pub fn changes(&mut self) -> &mut Changes {
        &mut self.changes
    }

    /// Where values that pods share are kept.
    pub fn interner(&mut self) -> &mut Interner {
        &mut self.interner
    }

    /// Adds a node, or changes the one of that name.
    pub fn put_node(&mut self, words: &NodeWords) -> Row {
        self.state.version += 1;
        let name = self.interner.name(words.name());
        match self.state.row_of(&name) {
            Some(row) => {
                let old_zone = zone_of(&self.state.node(row));
                let images = self.state.nodes.get(row.0 as usize).node.images.clone();
                let sizes = self.state.images.sizes(&images);
                Arc::make_mut(&mut self.state.images).remove_node(&images);
                let node = self.node_facts(name, words);
                let census = images != node.images || sizes != self.state.images.sizes(&images);
                // A node that says the same again, as it does every few minutes, is no change.
                if census || self.state.nodes.get(row.0 as usize).node != node {
                    self.state.nodes.get_mut(row.0 as usize).node = node;
                    self.changes.note(Change::Node { row, census });
                }
                let zone = zone_of(&self.state.node(row));
                if zone != old_zone {
                    // As upstream, the order itself stays as it is until a node comes or goes.
                    self.zones.remove(&old_zone, row);
                    self.zones.add(&zone, row);
                }
                row
            }
            None => {
                let node = self.node_facts(name.clone(), words);
                let usage = self.homeless.remove(&name).unwrap_or_default();
                let row = self.take_row(NodeRow { node, usage });
                for pod in self.state.nodes.get(row.0 as usize).usage.pods() {
                    self.state.claims.add(pod, row);
                }
                Arc::make_mut(&mut self.state.rows_by_name).insert(name, row);
                self.gather_facts(row, words.name());
                let zone = zone_of(&self.state.node(row));
                self.zones.add(&zone, row);
                self.order_is_stale = true;
                self.changes.note(Change::Node { row, census: true });
                row
            }
        }
    }

    /// Removes a node; false if there is none of that name. Its pods wait for one to come back.
    pub fn remove_node(&mut self, name: &str) -> bool {
        let Some(row) = self.state.row_of(name) else { return false };
        self.state.version += 1;
        self.zones.remove(&zone_of(&self.state.node(row)), row);
        self.order_is_stale = true;
        let NodeRow { node, usage } = std::mem::take(self.state.nodes.get_mut(row.0 as usize));
        Arc::make_mut(&mut self.state.images).remove_node(&node.images);
        Arc::make_mut(&mut self.state.rows_by_name).remove(name);
        for pod in usage.pods() {
            self.state.claims.remove(pod, row);
        }
        if !usage.pods().is_empty() {
            self.homeless.insert(node.name, usage);
        }
        self.drop_facts(row);
        self.free_rows.push(row);
        self.changes.note(Change::Node { row, census: true });
        true
    }

    /// Adds a bound pod.
    pub fn add_pod(&mut self, pod: Arc<Pod>) -> Result<(), ClusterError> {
        let node_name = node_of(&pod)?;
        self.enter(&pod)?;
        match self.state.row_of(&node_name) {
            Some(row) => self.settle(pod, row),
            None => self.homeless.entry(node_name).or_default().add(pod),
        }
        Ok(())
    }

    /// Adds a pending pod as one that is bound to the node in a row.
    pub fn bind_pod(&mut self, pod: &Pod, row: Row) -> Result<(), ClusterError> {
        if pod.uid.is_empty() {
            return Err(ClusterError::NoUid { pod: pod.key() });
        }
        let node_name = Some(self.state.node(row).name().clone());
        let pod = Arc::new(Pod { node_name, ..pod.clone() });
        self.enter(&pod)?;
        self.settle(pod, row);
        Ok(())
    }

    /// Takes note of a pod that is bound now.
    fn enter(&mut self, pod: &Arc<Pod>) -> Result<(), ClusterError> {
        if !self.bound.insert(pod.clone()) {
            return Err(ClusterError::DuplicateUid { pod: pod.key(), uid: pod.uid.clone() });
        }
        self.state.version += 1;
        self.clear_nomination(&pod.uid);
        *Arc::make_mut(&mut self.state.priorities).entry(pod.priority()).or_default() += 1;
        self.stands(pod, Standing::Bound);
        Ok(())
    }

    fn settle(&mut self, pod: Arc<Pod>, row: Row) {
        self.state.nodes.get_mut(row.0 as usize).usage.add(pod.clone());
        self.state.claims.add(&pod, row);
        self.changes.note(Change::PodAdded { row, pod });
    }

    /// Removes a bound pod; none if there is none with that UID.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let pod = self.bound.take(uid)?;
        let node_name = pod.node_name.as_ref()?;
        self.state.version += 1;
        self.uncount_priority(pod.priority());
        self.stands_nowhere(uid);
        match self.state.row_of(node_name) {
            Some(row) => {
                self.state.nodes.get_mut(row.0 as usize).usage.remove(uid);
                self.state.claims.remove(&pod, row);
                self.changes.note(Change::PodRemoved { row, pod: pod.clone() });
            }
            None => {
                let usage = self.homeless.get_mut(node_name)?;
                usage.remove(uid);
                if usage.pods().is_empty() {
                    self.homeless.remove(node_name);
                }
            }
        }
        Some(pod)
    }

    fn uncount_priority(&mut self, priority: i32) {
        let priorities = Arc::make_mut(&mut self.state.priorities);
        if let Some(count) = priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                priorities.remove(&priority);
            }
        }
    }

    /// The bound pod with that UID.
    pub fn bound_pod(&self, uid: &str) -> Option<&Arc<Pod>> {
        self.bound.get(uid)
    }

    /// How many pods are bound.
    pub fn bound_pod_count(&self) -> usize {
        self.bound.len()
    }

    /// All bound pods, in no particular order.
    pub fn bound_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.bound.iter()
    }

    /// Replaces a bound pod by a later state of itself, or adds it. Where that cannot be done nothing changes.
    pub fn update_pod(&mut self, pod: Arc<Pod>) -> Result<(), ClusterError> {
        node_of(&pod)?;
        self.remove_pod(&pod.uid);
        self.add_pod(pod)
    }

    /// Puts a node into a free row, or into a new one.
    fn take_row(&mut self, node_row: NodeRow) -> Row {
        if let Some(row) = self.free_rows.pop() {
            *self.state.nodes.get_mut(row.0 as usize) = node_row;
            return row;
        }
        let row = Row(u32::try_from(self.state.nodes.len()).expect("a cluster has fewer than 2^32 nodes"));
        self.state.nodes.push(node_row);
        row
    }

    fn node_facts(&mut self, name: Arc<str>, words: &NodeWords) -> Node {
        let mut pairs: Box<[LabelPair]> = (words.metadata.labels.iter())
            .map(|(key, value)| {
                // Most often nothing is new, and a table that a snapshot shares need not be copied.
                let known = self.state.labels.pair(key, value);
                known.unwrap_or_else(|| Arc::make_mut(&mut self.state.labels).intern(key, value))
            })
            .collect();
        pairs.sort_unstable();
        Node {
            name,
            labels: pairs,
            annotations: self.interner.labels.intern(words.metadata.annotations.clone()),
            taints: words.spec.taints.clone(),
            unschedulable: words.spec.unschedulable,
            allocatable: Resources::from_list(&words.status.allocatable),
            allowed_pods: words.status.allocatable.amount(crate::names::resource::PODS),
            capacity: self.interner.resources.intern(words.status.capacity.clone()),
            internal_addresses: words.status.internal_addresses(),
            images: Arc::make_mut(&mut self.state.images).add_node(&words.status.images),
            declared_features: words.status.declared_features.clone(),
            conditions: self.interner.labels.intern(words.status.conditions.clone()),
            raw: words.raw.clone(),
        }
    }
}

/// The node that a pod is bound to.
fn node_of(pod: &Pod) -> Result<Arc<str>, ClusterError> {
    if pod.uid.is_empty() {
        return Err(ClusterError::NoUid { pod: pod.key() });
    }
    pod.node_name.clone().ok_or_else(|| ClusterError::NotBound { pod: pod.key() })
}

#[cfg(test)]
mod tests;
