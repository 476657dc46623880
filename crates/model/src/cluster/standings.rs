//! Where pods stand: waiting, gated, at Permit, bound, finished; counted by namespace and by label as they change.
//!
//! Nothing is counted unless somebody declares that it reads it ([`Cluster::count_pods`]). What is counted is part of the
//! snapshot: a clone shares all groups that have not changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rows::Rows;
use super::uids::UidSet;
use super::{Cluster, Snapshot};
use crate::labels::LabelLookup;
use crate::pod::Pod;

/// Where a pod stands on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It waits for its turn, for something to happen, or for a node while it is being tried.
    Waiting,
    /// It is held back, and not tried.
    Gated,
    /// It was given a node, and waits there for leave to be bound.
    AtPermit,
    /// It is bound, or about to be: nothing but an error keeps it from its node.
    Bound,
    /// It has run its course.
    Finished,
}

/// How many pods there are of each standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandingCounts([usize; Standing::ALL.len()]);

/// By what pods are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedPods {
    /// By the values of these labels, in each namespace.
    pub labels: BTreeSet<Box<str>>,
    /// By namespace.
    pub by_namespace: bool,
    /// Those that have run their course as well.
    pub finished: bool,
}

/// The pods of a cluster, as they are counted.
#[derive(Clone, Copy, Debug)]
pub struct Pods<'a> {
    book: Option<&'a Book>,
}

/// Pods that have a namespace or a label in common.
#[derive(Clone, Debug)]
pub struct PodSet<'a> {
    groups: Vec<&'a Group>,
}

/// A pod, and where it stands.
#[derive(Clone, Debug)]
pub struct StandingPod {
    /// The pod, as it was heard of last.
    pub pod: Arc<Pod>,
    /// Where it stands.
    pub standing: Standing,
    /// The node that it is on, if it has one.
    pub node: Option<Arc<str>>,
}

/// What is counted, as part of a snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    counted: Arc<CountedPods>,
    /// The place of each group that has pods.
    places: Arc<BTreeMap<GroupKey, usize>>,
    groups: Rows<Arc<Group>>,
}

/// What the one writer keeps beside the book.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Every pod that has a standing, by UID.
    known: UidSet<StandingPod>,
    /// Places of groups that have no pods any more.
    free: Vec<usize>,
}

/// What the pods of a group have in common. In this order, so that the namespaces of one value are next to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    /// The label; none for those that have only the namespace in common.
    label: Option<(Box<str>, Box<str>)>,
    namespace: Arc<str>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    counts: StandingCounts,
    /// By UID.
    pods: BTreeMap<Arc<str>, StandingPod>,
}

// === impl Pods ===

impl<'a> Pods<'a> {
    /// The pods with that value of a label, in all namespaces.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by that label: what is not counted would seem not to be there.
    pub fn by_label(&self, key: &str, value: &str) -> PodSet<'a> {
        let book = self.book_of_label(key);
        let first = GroupKey { label: Some((key.into(), value.into())), namespace: "".into() };
        let of_value = book.places.range(&first..).take_while(|(known, _)| known.label == first.label);
        PodSet { groups: of_value.map(|(_, place)| &**book.groups.get(*place)).collect() }
    }

    /// The pods of a namespace with that value of a label.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by that label.
    pub fn by_label_in(&self, namespace: &str, key: &str, value: &str) -> PodSet<'a> {
        let book = self.book_of_label(key);
        book.set(&GroupKey { label: Some((key.into(), value.into())), namespace: namespace.into() })
    }

    /// The pods of a namespace.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by namespace.
    pub fn by_namespace(&self, namespace: &str) -> PodSet<'a> {
        let book = self.book.filter(|book| book.counted.by_namespace);
        let book = book.expect("a plugin that reads pods by namespace declares Reads::pods_by_namespace");
        book.set(&GroupKey { label: None, namespace: namespace.into() })
    }

    /// By what pods are counted.
    pub fn counted(&self) -> Option<&'a CountedPods> {
        self.book.map(|book| &*book.counted)
    }

    fn book_of_label(&self, key: &str) -> &'a Book {
        let book = self.book.filter(|book| book.counted.labels.contains(key));
        book.unwrap_or_else(|| {
            panic!("a plugin that reads pods by label {key:?} declares Reads::pods_by_label({key:?})")
        })
    }
}

impl<'a> PodSet<'a> {
    /// How many there are of a standing.
    pub fn count(&self, standing: Standing) -> usize {
        self.groups.iter().map(|group| group.counts.of(standing)).sum()
    }

    /// How many there are of each standing.
    pub fn counts(&self) -> StandingCounts {
        StandingCounts(Standing::ALL.map(|standing| self.count(standing)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.pods.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The pods: by namespace, then by UID.
    pub fn iter(&self) -> impl Iterator<Item = &'a StandingPod> + use<'a, '_> {
        self.groups.iter().flat_map(|group| group.pods.values())
    }
}

impl Standing {
    /// All of them, in the order of a pod's life.
    pub const ALL: [Standing; 5] =
        [Standing::Waiting, Standing::Gated, Standing::AtPermit, Standing::Bound, Standing::Finished];
}

impl StandingCounts {
    /// How many there are of one standing.
    pub fn of(&self, standing: Standing) -> usize {
        self.0[standing as usize]
    }

    fn of_mut(&mut self, standing: Standing) -> &mut usize {
        &mut self.0[standing as usize]
    }
}

impl CountedPods {
    /// Whether nobody reads them.
    pub fn is_nothing(&self) -> bool {
        self.labels.is_empty() && !self.by_namespace
    }

    /// What either counts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.labels.extend(other.labels);
        self.by_namespace |= other.by_namespace;
        self.finished |= other.finished;
        self
    }
}

// === impl Book ===

impl Book {
    fn set(&self, key: &GroupKey) -> PodSet<'_> {
        let place = self.places.get(key);
        PodSet { groups: place.map(|place| &**self.groups.get(*place)).into_iter().collect() }
    }

    /// The groups that a pod belongs to.
    fn keys_of(&self, pod: &Pod) -> Vec<GroupKey> {
        let counted = &self.counted;
        let by_namespace =
            counted.by_namespace.then(|| GroupKey { label: None, namespace: pod.namespace.clone() });
        let by_label = counted.labels.iter().filter_map(|key| {
            let value = pod.labels.label(key)?;
            Some(GroupKey { label: Some((key.clone(), value.into())), namespace: pod.namespace.clone() })
        });
        by_namespace.into_iter().chain(by_label).collect()
    }

    fn add(&mut self, standing: &StandingPod, free: &mut Vec<usize>) {
        for key in self.keys_of(&standing.pod) {
            let place = match self.places.get(&key) {
                Some(place) => *place,
                None => {
                    let place = free.pop().unwrap_or_else(|| {
                        self.groups.push(Arc::default());
                        self.groups.len() - 1
                    });
                    Arc::make_mut(&mut self.places).insert(key, place);
                    place
                }
            };
            let group = Arc::make_mut(self.groups.get_mut(place));
            *group.counts.of_mut(standing.standing) += 1;
            group.pods.insert(standing.pod.uid.clone(), standing.clone());
        }
    }

    fn remove(&mut self, standing: &StandingPod, free: &mut Vec<usize>) {
        for key in self.keys_of(&standing.pod) {
            let Some(place) = self.places.get(&key).copied() else { continue };
            let group = Arc::make_mut(self.groups.get_mut(place));
            if group.pods.remove(&standing.pod.uid).is_some() {
                *group.counts.of_mut(standing.standing) -= 1;
            }
            if group.pods.is_empty() {
                Arc::make_mut(&mut self.places).remove(&key);
                free.push(place);
            }
        }
    }
}

// === impl Snapshot and Cluster ===

impl Snapshot {
    /// The pods by where they stand, as far as plugins declare that they read them.
    pub fn pods(&self) -> Pods<'_> {
        Pods { book: self.book.as_deref() }
    }
}

impl Cluster {
    /// Counts pods by this from now on. True if it was something else before: then bound pods are counted, and whoever knows
    /// where others stand has to say so again.
    pub fn count_pods(&mut self, counted: CountedPods) -> bool {
        let before = self.state.book.as_ref().map(|book| &*book.counted);
        if before.map_or(counted.is_nothing(), |before| *before == counted) {
            return false;
        }
        self.state.version += 1;
        self.ledger = Ledger::default();
        if counted.is_nothing() {
            self.state.book = None;
            return true;
        }
        self.state.book = Some(Arc::new(Book { counted: Arc::new(counted), ..Book::default() }));
        let bound: Vec<Arc<Pod>> = self.bound_pods().cloned().collect();
        for pod in bound {
            self.stands(&pod, Standing::Bound);
        }
        true
    }

    /// Whether anybody reads where pods stand.
    pub fn counts_pods(&self) -> bool {
        self.state.book.is_some()
    }

    /// Takes note of where a pod stands that is not bound. A bound pod stands where its node is, which is known here; of it can be
    /// said that it waits there for leave.
    pub fn set_standing(&mut self, pod: &Arc<Pod>, standing: Standing) {
        if !self.counts_pods() {
            return;
        }
        match self.bound_pod(&pod.uid).cloned() {
            Some(bound) if standing == Standing::AtPermit => self.stands(&bound, standing),
            Some(bound) => self.stands(&bound, Standing::Bound),
            None => self.stands(pod, standing),
        }
    }

    /// A pod that is not bound is gone, or nobody's business any more.
    pub fn clear_standing(&mut self, uid: &str) {
        if self.counts_pods() && self.bound_pod(uid).is_none() {
            self.stands_nowhere(uid);
        }
    }

    /// The pods that have a standing, by UID, in no particular order.
    pub fn standing_uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ledger.known.iter().map(|standing| &standing.pod.uid)
    }

    pub(super) fn stands(&mut self, pod: &Arc<Pod>, standing: Standing) {
        let Some(book) = &mut self.state.book else { return };
        let now = StandingPod { pod: pod.clone(), standing, node: pod.node_name.clone() };
        let finished = standing == Standing::Finished && !book.counted.finished;
        let book = Arc::make_mut(book);
        if let Some(before) = self.ledger.known.get(&pod.uid) {
            if before.standing == standing && Arc::ptr_eq(&before.pod, pod) {
                return;
            }
            book.remove(before, &mut self.ledger.free);
        }
        self.state.version += 1;
        if finished {
            self.ledger.known.take(&pod.uid);
            return;
        }
        book.add(&now, &mut self.ledger.free);
        self.ledger.known.replace(now);
    }

    pub(super) fn stands_nowhere(&mut self, uid: &str) {
        let Some(book) = &mut self.state.book else { return };
        let Some(before) = self.ledger.known.take(uid) else { return };
        Arc::make_mut(book).remove(&before, &mut self.ledger.free);
        self.state.version += 1;
    }
}

#[cfg(test)]
mod tests;
