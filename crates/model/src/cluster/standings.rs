//! Where pods stand: waiting, gated, at Permit, bound, finished; counted by namespace and by label as they change.
//!
//! Nothing is counted unless somebody declares that it reads it ([`Cluster::count_pods`]). What is counted is part of the
//! snapshot: a clone shares all groups that have not changed since.

mod group;
mod group_key;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rows::Rows;
use super::uids::UidSet;
use super::{Cluster, Snapshot};
use crate::labels::LabelLookup;
use crate::object::{KindId, Objects};
use crate::pod::Pod;
use crate::resources::Resources;
use group::{Group, PlacedRequests};
use group_key::{GroupKey, GroupParts, NamesGroup};

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
    /// For each of these lists: what pods with a node ask for together in all namespaces that have an object of one of its kinds.
    pub placed_with: BTreeSet<Vec<KindId>>,
}

/// The pods of a cluster, as they are counted.
#[derive(Clone, Copy, Debug)]
pub struct Pods<'a> {
    book: Option<&'a Book>,
}

/// Pods that have a namespace or a label in common.
#[derive(Clone, Debug)]
pub struct PodSet<'a> {
    /// Most sets have one group at most, which takes no list.
    first: Option<&'a Group>,
    others: Vec<&'a Group>,
}

/// Names the pods of a namespace that have one value of a label, for as long as there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSetId(usize);

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
    /// Which group has the pods of a label's value in a namespace, by its place in `groups`.
    places: Arc<BTreeMap<GroupKey, usize>>,
    /// Which group has all pods of a namespace.
    namespaces: Arc<BTreeMap<Arc<str>, usize>>,
    groups: Rows<Arc<Group>>,
    /// One for each list of [`CountedPods::placed_with`], in their order.
    sums: Arc<Vec<SumOfNamespaces>>,
}

/// What the one writer keeps beside the book.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Every pod that has a standing, by UID.
    known: UidSet<Known>,
    places: Places,
}

/// A pod that has a standing, and where the groups are that count it: looking them up by name takes longer than counting.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) standing: StandingPod,
    groups: PlacesOfPod,
}

/// The places of the groups that count a pod.
#[derive(Clone, Debug, Default)]
struct PlacesOfPod {
    namespace: Option<usize>,
    /// In the order of [`CountedPods::labels`], without those that the pod does not have.
    labels: Vec<usize>,
}

/// What becomes of the places of groups.
#[derive(Clone, Debug, Default)]
struct Places {
    /// Those of groups that have no pods any more.
    free: Vec<usize>,
    /// Whether it is noted which groups change that have a label in common.
    notes_changes: bool,
    changed: Vec<PodSetId>,
}

/// What pods that have a node ask for in all namespaces that have an object of one of these kinds.
#[derive(Clone, Debug)]
struct SumOfNamespaces {
    kinds: Vec<KindId>,
    /// Those namespaces.
    namespaces: Arc<BTreeSet<Box<str>>>,
    placed: PlacedRequests,
}

// === impl Pods ===

impl<'a> Pods<'a> {
    /// The pods with that value of a label, in all namespaces.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by that label: what is not counted would seem not to be there.
    pub fn by_label(&self, key: &str, value: &str) -> PodSet<'a> {
        let book = self.book_of_label(key);
        let first = GroupKey::new(key, value, "".into());
        let of_value =
            book.places.range::<GroupKey, _>(&first..).take_while(|(known, _)| known.is_of(key, value));
        let mut groups = of_value.map(|(_, place)| &**book.groups.get(*place));
        PodSet { first: groups.next(), others: groups.collect() }
    }

    /// The pods of a namespace with that value of a label.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by that label.
    pub fn by_label_in(&self, namespace: &str, key: &str, value: &str) -> PodSet<'a> {
        let book = self.book_of_label(key);
        let place = book.place(&(value, key, namespace));
        PodSet::of(place.map(|place| &**book.groups.get(place)))
    }

    /// The name of what [`Pods::by_label_in`] gives; none if there are no such pods, or nobody reads pods by that label.
    pub fn id_by_label_in(&self, namespace: &str, key: &str, value: &str) -> Option<PodSetId> {
        let book = self.book.filter(|book| book.counted.labels.contains(key))?;
        book.place(&(value, key, namespace)).map(PodSetId)
    }

    /// The pods of a namespace.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by namespace.
    pub fn by_namespace(&self, namespace: &str) -> PodSet<'a> {
        PodSet::of(self.group_of_namespace(namespace))
    }

    /// What the pods of a namespace ask for together that have a node, be they bound or at Permit; none if there are no such pods.
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by namespace.
    pub fn placed_requests_in(&self, namespace: &str) -> Option<&'a Resources> {
        self.placed_in(namespace).map(|placed| placed.requests.get())
    }

    /// The same by [`PodSpec::plain_requests`](crate::PodSpec::plain_requests).
    ///
    /// # Panics
    /// If no plugin declares that it reads pods by namespace.
    pub fn placed_plain_requests_in(&self, namespace: &str) -> Option<&'a Resources> {
        self.placed_in(namespace).map(|placed| placed.plain.get())
    }

    /// What the pods that have a node ask for together in all namespaces that have an object of one of these kinds. It is kept up as pods
    /// and objects come and go, so that it costs nothing however many namespaces there are.
    ///
    /// # Panics
    /// If no plugin declares that it reads it for this list of kinds.
    pub fn placed_requests_with(&self, kinds: &[KindId]) -> &'a Resources {
        self.placed_with(kinds).requests.get()
    }

    /// The same by [`PodSpec::plain_requests`](crate::PodSpec::plain_requests).
    ///
    /// # Panics
    /// If no plugin declares that it reads it for this list of kinds.
    pub fn placed_plain_requests_with(&self, kinds: &[KindId]) -> &'a Resources {
        self.placed_with(kinds).plain.get()
    }

    /// By what pods are counted.
    pub fn counted(&self) -> Option<&'a CountedPods> {
        self.book.map(|book| &*book.counted)
    }

    fn placed_in(&self, namespace: &str) -> Option<&'a PlacedRequests> {
        self.group_of_namespace(namespace)?.placed.as_ref()
    }

    fn placed_with(&self, kinds: &[KindId]) -> &'a PlacedRequests {
        let mut sums = self.book.into_iter().flat_map(|book| book.sums.iter());
        let sum = sums.find(|sum| sum.kinds == kinds);
        let sum = sum.expect("a plugin that reads requests by kinds declares Reads::placed_requests_with");
        &sum.placed
    }

    fn group_of_namespace(&self, namespace: &str) -> Option<&'a Group> {
        let book = self.book.filter(|book| book.counted.by_namespace);
        let book = book.expect("a plugin that reads pods by namespace declares Reads::pods_by_namespace");
        book.namespaces.get(namespace).map(|place| &**book.groups.get(*place))
    }

    fn book_of_label(&self, key: &str) -> &'a Book {
        let book = self.book.filter(|book| book.counted.labels.contains(key));
        book.unwrap_or_else(|| {
            panic!("a plugin that reads pods by label {key:?} declares Reads::pods_by_label({key:?})")
        })
    }
}

impl<'a> PodSet<'a> {
    fn of(group: Option<&'a Group>) -> Self {
        PodSet { first: group, others: Vec::new() }
    }

    fn groups(&self) -> impl Iterator<Item = &'a Group> + use<'a, '_> {
        self.first.iter().chain(&self.others).copied()
    }

    /// How many there are of a standing.
    pub fn count(&self, standing: Standing) -> usize {
        self.groups().map(|group| group.counts.of(standing)).sum()
    }

    /// How many have scheduling gates in their specs.
    pub fn count_with_gates(&self) -> usize {
        self.groups().map(|group| group.with_gates).sum()
    }

    /// How many have run their course, and well.
    pub fn count_succeeded(&self) -> usize {
        self.groups().map(|group| group.succeeded).sum()
    }

    /// How many there are of each standing.
    pub fn counts(&self) -> StandingCounts {
        StandingCounts(Standing::ALL.map(|standing| self.count(standing)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.groups().map(|group| group.pods.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The pods: by namespace, then by UID.
    pub fn iter(&self) -> impl Iterator<Item = &'a StandingPod> + use<'a, '_> {
        self.groups().flat_map(|group| group.pods.values())
    }
}

impl Standing {
    /// All of them, in the order of a pod's life.
    pub const ALL: [Standing; 5] =
        [Standing::Waiting, Standing::Gated, Standing::AtPermit, Standing::Bound, Standing::Finished];

    /// Whether such pods take room on a node.
    pub fn has_node(self) -> bool {
        matches!(self, Standing::AtPermit | Standing::Bound)
    }
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
    /// The labels of a pod that are counted, with their values.
    fn labels_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.labels.iter().filter_map(|key| Some((&**key, pod.labels.label(key)?)))
    }

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
        self.placed_with.extend(other.placed_with);
        self
    }
}

// === impl Book ===

impl Book {
    /// Counts nobody yet.
    fn new(counted: CountedPods, objects: &Objects) -> Self {
        let sum_of = |kinds: &Vec<KindId>| SumOfNamespaces {
            kinds: kinds.clone(),
            namespaces: Arc::new(
                kinds.iter().flat_map(|kind| objects.namespaces(*kind)).map(Into::into).collect(),
            ),
            placed: PlacedRequests::default(),
        };
        let sums = counted.placed_with.iter().map(sum_of).collect();
        Book { sums: Arc::new(sums), counted: Arc::new(counted), ..Book::default() }
    }

    fn place(&self, parts: &GroupParts<'_>) -> Option<usize> {
        let parts: &dyn NamesGroup = parts;
        self.places.get(parts).copied()
    }

    /// Counts a pod that is not counted. Where it is counted.
    fn add(&mut self, known: &StandingPod, places: &mut Places) -> PlacesOfPod {
        let (pod, counted) = (&known.pod, self.counted.clone());
        let mut of_pod = PlacesOfPod::default();
        if counted.by_namespace {
            let place = self.namespaces.get(&pod.namespace).copied().unwrap_or_else(|| {
                let place = free_place(&mut self.groups, &mut places.free);
                Arc::make_mut(&mut self.namespaces).insert(pod.namespace.clone(), place);
                self.group_mut(place).placed = Some(PlacedRequests::default());
                place
            });
            self.group_mut(place).add(known);
            self.sum(known, PlacedRequests::add);
            of_pod.namespace = Some(place);
        }
        for (key, value) in counted.labels_of(pod) {
            let place = self.place(&(value, key, &pod.namespace)).unwrap_or_else(|| {
                let place = free_place(&mut self.groups, &mut places.free);
                let key = GroupKey::new(key, value, pod.namespace.clone());
                Arc::make_mut(&mut self.places).insert(key, place);
                place
            });
            places.note(place);
            self.group_mut(place).add(known);
            of_pod.labels.push(place);
        }
        of_pod
    }

    fn remove(&mut self, Known { standing: known, groups }: &Known, places: &mut Places) {
        let (pod, counted) = (&known.pod, self.counted.clone());
        if let Some(place) = groups.namespace {
            self.sum(known, PlacedRequests::subtract);
            if self.group_mut(place).remove(known) {
                Arc::make_mut(&mut self.namespaces).remove(&pod.namespace);
                places.free.push(place);
            }
        }
        for (&place, (key, value)) in groups.labels.iter().zip(counted.labels_of(pod)) {
            places.note(place);
            if self.group_mut(place).remove(known) {
                let parts: &dyn NamesGroup = &(value, key, &*pod.namespace);
                Arc::make_mut(&mut self.places).remove(parts);
                places.free.push(place);
            }
        }
    }

    /// A pod stands elsewhere, in the groups in which it was.
    fn replace(
        &mut self,
        Known { standing: before, groups }: &Known,
        now: &StandingPod,
        places: &mut Places,
    ) {
        if let Some(place) = groups.namespace {
            self.group_mut(place).replace(before, now);
            self.sum(before, PlacedRequests::subtract);
            self.sum(now, PlacedRequests::add);
        }
        for &place in &groups.labels {
            places.note(place);
            self.group_mut(place).replace(before, now);
        }
    }

    fn group_mut(&mut self, place: usize) -> &mut Group {
        Arc::make_mut(self.groups.get_mut(place))
    }

    /// Takes note of a pod in the sums of namespaces that it belongs to, if it has a node.
    fn sum(&mut self, standing: &StandingPod, note: fn(&mut PlacedRequests, &Pod)) {
        let namespace = &*standing.pod.namespace;
        let is_meant = |sum: &SumOfNamespaces| sum.namespaces.contains(namespace);
        if standing.standing.has_node() && self.sums.iter().any(is_meant) {
            let sums = Arc::make_mut(&mut self.sums).iter_mut();
            sums.filter(|sum| is_meant(sum)).for_each(|sum| note(&mut sum.placed, &standing.pod));
        }
    }

    /// Objects of a kind came to a namespace, or went from it.
    fn objects_changed(&mut self, kind: KindId, namespace: &str, objects: &Objects) {
        let placed = self.namespaces.get(namespace).and_then(|place| self.groups.get(*place).placed.as_ref());
        for number in 0..self.sums.len() {
            let sum = &self.sums[number];
            let has_any = sum.kinds.iter().any(|kind| objects.has_any_in(*kind, namespace));
            if !sum.kinds.contains(&kind) || has_any == sum.namespaces.contains(namespace) {
                continue;
            }
            let sum = &mut Arc::make_mut(&mut self.sums)[number];
            let namespaces = Arc::make_mut(&mut sum.namespaces);
            if has_any {
                namespaces.insert(namespace.into());
                placed.into_iter().for_each(|placed| sum.placed.add_all(placed));
            } else {
                namespaces.remove(namespace);
                placed.into_iter().for_each(|placed| sum.placed.subtract_all(placed));
            }
        }
    }
}

impl Places {
    /// The group of that place changes, which has a label in common.
    fn note(&mut self, place: usize) {
        // Many pods of one group change one after the other.
        if self.notes_changes && self.changed.last() != Some(&PodSetId(place)) {
            self.changed.push(PodSetId(place));
        }
    }
}

/// The place of a group that has no pods yet.
fn free_place(groups: &mut Rows<Arc<Group>>, free: &mut Vec<usize>) -> usize {
    free.pop().unwrap_or_else(|| {
        groups.push(Arc::default());
        groups.len() - 1
    })
}

// === impl Snapshot and Cluster ===

impl Snapshot {
    /// The pods by where they stand, as far as plugins declare that they read them.
    pub fn pods(&self) -> Pods<'_> {
        Pods { book: self.book.as_deref() }
    }
}

impl Cluster {
    /// Counts pods by this from now on. True if it was something else before: then bound pods are counted, and those that are known to
    /// have run their course, of whom nobody would speak again; whoever knows where others stand has to say so again.
    pub fn count_pods(&mut self, counted: CountedPods) -> bool {
        let before = self.state.book.as_ref().map(|book| &*book.counted);
        if before.map_or(counted.is_nothing(), |before| *before == counted) {
            return false;
        }
        self.state.version += 1;
        let notes_changes = self.ledger.places.notes_changes;
        let ledger = Ledger { places: Places { notes_changes, ..Places::default() }, ..Ledger::default() };
        let old = std::mem::replace(&mut self.ledger, ledger);
        if counted.is_nothing() {
            self.state.book = None;
            return true;
        }
        self.state.book = Some(Arc::new(Book::new(counted, &self.state.objects)));
        let bound: Vec<Arc<Pod>> = self.bound_pods().cloned().collect();
        for pod in bound {
            self.stands(&pod, Standing::Bound);
        }
        let finished = old.known.iter().filter(|known| known.standing.standing == Standing::Finished);
        for known in finished {
            self.stands(&known.standing.pod, Standing::Finished);
        }
        true
    }

    /// Objects of a kind came to a namespace, or went from it: sums may have to do with it.
    pub(super) fn sum_anew(&mut self, kind: KindId, namespace: &str) {
        if let Some(book) = &mut self.state.book
            && book.sums.iter().any(|sum| sum.kinds.contains(&kind))
        {
            Arc::make_mut(book).objects_changed(kind, namespace, &self.state.objects);
        }
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
        self.ledger.known.iter().map(|known| &known.standing.pod.uid)
    }

    /// Notes from now on which pods by label change. Whoever wants that takes them now and then.
    pub fn note_changed_sets(&mut self) {
        self.ledger.places.notes_changes = true;
    }

    /// The pods by label of which one came, changed, stood elsewhere or went since the last time; some of them more than once. What is
    /// counted anew has no names in common with what was counted before.
    pub fn take_changed_sets(&mut self) -> Vec<PodSetId> {
        std::mem::take(&mut self.ledger.places.changed)
    }

    pub(super) fn stands(&mut self, pod: &Arc<Pod>, standing: Standing) {
        let Some(book) = &mut self.state.book else { return };
        let now = StandingPod { pod: pod.clone(), standing, node: pod.node_name.clone() };
        let finished = standing == Standing::Finished && !book.counted.finished;
        let book = Arc::make_mut(book);
        if let Some(known) = self.ledger.known.get_mut(&pod.uid) {
            let before = &known.standing;
            if before.standing == standing && Arc::ptr_eq(&before.pod, pod) {
                return;
            }
            self.state.version += 1;
            if !finished && before.pod.namespace == pod.namespace && before.pod.labels == pod.labels {
                book.replace(known, &now, &mut self.ledger.places);
                known.standing = now;
                return;
            }
            book.remove(known, &mut self.ledger.places);
            self.ledger.known.take(&pod.uid);
        }
        if !finished {
            self.state.version += 1;
            let groups = book.add(&now, &mut self.ledger.places);
            self.ledger.known.insert(Known { standing: now, groups });
        }
    }

    pub(super) fn stands_nowhere(&mut self, uid: &str) {
        let Some(book) = &mut self.state.book else { return };
        let Some(before) = self.ledger.known.take(uid) else { return };
        Arc::make_mut(book).remove(&before, &mut self.ledger.places);
        self.state.version += 1;
    }
}

#[cfg(test)]
mod tests;
