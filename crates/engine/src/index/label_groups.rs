//! Bound pods by namespace and labels: what selectors look at. Hot: every pod that comes or goes passes here.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use supercargo_framework::PodMatcher;
use supercargo_model::Pod;

use super::counting::SourceId;
use super::row_counts::RowCounts;
use super::slots::Slots;

/// Where two parts of a pod are kept, which equal parts of other pods share.
pub(super) type Addresses = (usize, usize);

/// All label groups.
#[derive(Debug, Default)]
pub(super) struct LabelGroups {
    list: Slots<LabelGroup>,
    by_address: FxHashMap<Addresses, usize>,
    /// The group that was asked for last; most pods that come are like the one before.
    last: Option<(Addresses, usize)>,
    /// The groups that have a label.
    by_label: FxHashMap<u64, Vec<usize>>,
    sweep_at: usize,
    sweep_min: usize,
}

/// Pods with the same labels in the same namespace.
#[derive(Debug)]
struct LabelGroup {
    /// One of them, held so that the addresses stay theirs.
    pod: Arc<Pod>,
    /// The sources that count them.
    sources: Vec<SourceId>,
    /// How many there are in each row that has any.
    by_row: RowCounts<Pods>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pods {
    staying: u32,
    terminating: u32,
}

impl LabelGroups {
    /// Below `sweep_min`, groups without pods are not worth looking for.
    pub(super) fn new(sweep_min: usize) -> Self {
        LabelGroups { sweep_min, ..LabelGroups::default() }
    }

    /// The number of a pod's label group; if it is new, `matching` says which sources count such pods.
    pub(super) fn of(&mut self, pod: &Arc<Pod>, matching: impl FnOnce(&Pod) -> Vec<SourceId>) -> usize {
        let address = (pod.labels.address(), Arc::as_ptr(&pod.namespace).addr());
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == address) {
            return number;
        }
        if let Some(number) = self.by_address.get(&address) {
            self.last = Some((address, *number));
            return *number;
        }
        self.sweep();
        let group = LabelGroup { pod: pod.clone(), sources: matching(pod), by_row: RowCounts::default() };
        let number = self.list.insert(group);
        self.by_address.insert(address, number);
        for label in pod.labels.iter() {
            self.by_label.entry(hash_label(label)).or_default().push(number);
        }
        number
    }

    /// Counts a pod; the sources that count such pods.
    pub(super) fn count(
        &mut self,
        number: usize,
        row: u32,
        is_terminating: bool,
        change: i64,
    ) -> &[SourceId] {
        let group = self.list.get_mut(number).expect("a group with a number is in the list");
        group.by_row.change(row, |mut pods| {
            let count = if is_terminating { &mut pods.terminating } else { &mut pods.staying };
            *count = count.saturating_add_signed(change as i32);
            pods
        });
        &group.sources
    }

    /// Forgets the pods in a row.
    pub(super) fn lift(&mut self, row: u32) {
        for group in self.list.values_mut() {
            group.by_row.set(row, Pods::default());
        }
    }

    /// Lets a new source count the pods that it means, and says how many there are in which row.
    pub(super) fn adopt(&mut self, source: SourceId, matcher: &PodMatcher) -> Vec<(u32, i64)> {
        let mut counts = Vec::new();
        for number in self.candidates(matcher) {
            let Some(group) = self.list.get_mut(number).filter(|group| matcher.matches_labels(&group.pod))
            else {
                continue;
            };
            group.sources.push(source);
            for (row, pods) in group.by_row.iter() {
                let terminating = if matcher.counts_terminating { pods.terminating } else { 0 };
                counts.push((row, i64::from(pods.staying + terminating)));
            }
        }
        counts.retain(|(_, pods)| *pods > 0);
        counts
    }

    /// Counts no pods for a source any more.
    pub(super) fn abandon(&mut self, source: SourceId, matcher: &PodMatcher) {
        for number in self.candidates(matcher) {
            if let Some(group) = self.list.get_mut(number) {
                group.sources.retain(|id| *id != source);
            }
        }
    }

    /// The groups that a matcher may mean.
    fn candidates(&self, matcher: &PodMatcher) -> Vec<usize> {
        match matcher.common_label() {
            None => self.list.positions().collect(),
            Some(label) => {
                let mut groups = self.by_label.get(&hash_label(label)).cloned().unwrap_or_default();
                // A group with two labels that have the same hash is there twice.
                groups.sort_unstable();
                groups.dedup();
                groups
            }
        }
    }

    /// Drops groups without pods, when there have come to be many groups.
    fn sweep(&mut self) {
        if self.by_address.len() < self.sweep_at.max(self.sweep_min) {
            return;
        }
        self.last = None;
        self.list.remove_unless(|group| group.by_row.len() > 0);
        let list = &self.list;
        self.by_address.retain(|_, number| list.get(*number).is_some());
        self.by_label.retain(|_, groups| {
            groups.retain(|number| list.get(*number).is_some());
            !groups.is_empty()
        });
        self.sweep_at = 2 * self.by_address.len();
    }
}

/// A number for a label; different labels rarely have the same one.
pub(super) fn hash_label((key, value): (&str, &str)) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    (key, value).hash(&mut hasher);
    std::hash::Hasher::finish(&hasher)
}

/// Where a pod's spec and namespace are kept.
pub(super) fn spec_addresses(pod: &Pod) -> Addresses {
    (pod.spec.address(), Arc::as_ptr(&pod.namespace).addr())
}
