//! How many pods are where, for all selectors and terms that somebody asks about. Hot: every pod that comes or goes is
//! counted here.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{PodMatcher, Tally, TermRole};
use supercargo_model::pod::{PodAffinityTerm, TermNamespaces};
use supercargo_model::{Labels, NodeRef, Pod, Snapshot};

use super::keys::Keys;
use super::label_groups::{Addresses, LabelGroups, hash_label, spec_addresses};
use super::limits::IndexLimits;
use super::row_counts::RowCounts;
use super::slots::Slots;
use super::tally::DomainTally;
pub(super) use super::tally::TallyRequest;

/// The number of a [`Source`].
pub(super) type SourceId = usize;
/// The number of a [`DomainTally`].
pub(super) type TallyId = usize;

/// All that is counted.
#[derive(Debug, Default)]
pub(super) struct Counting {
    pub(super) keys: Keys,
    sources: Slots<Source>,
    tallies: Slots<DomainTally>,
    matchers: FxHashMap<Arc<PodMatcher>, SourceId>,
    terms: FxHashMap<Arc<CarriedTerm>, SourceId>,
    /// The pods by labels and namespace.
    label_groups: LabelGroups,
    /// The matchers by a label that all their pods have, and those that have no such label.
    by_common_label: FxHashMap<u64, Vec<SourceId>>,
    without_common_label: Vec<SourceId>,
    /// The terms that pods of one spec carry, by the addresses of their spec and namespace.
    by_spec: FxHashMap<Addresses, SpecKind>,
    /// Terms that pods have begun to carry, in the order in which that happened.
    new_terms: NewTerms,
    max_specs: usize,
}

#[derive(Debug, Default)]
struct NewTerms {
    list: Vec<SourceId>,
    /// How many were dropped from the beginning of the list.
    dropped: usize,
    max: usize,
}

/// A term that running pods carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CarriedTerm {
    pub(super) role: TermRole,
    /// What it is worth; below 0 if it keeps pods away.
    pub(super) weight: i32,
    pub(super) term: PodAffinityTerm,
    /// The namespace of the pods that carry it, where the term means that one.
    owner: Option<Arc<str>>,
}

/// Pods of one selector, or pods that carry one term.
#[derive(Debug)]
struct Source {
    what: What,
    /// How many there are in each row that has any.
    by_row: RowCounts<u32>,
    total: u64,
    tallies: Vec<TallyId>,
    /// How many counters of classes use it.
    users: usize,
}

#[derive(Debug)]
enum What {
    Matching(Arc<PodMatcher>),
    Carrying(Arc<CarriedTerm>),
}

/// Pods that carry the same terms.
#[derive(Debug)]
struct SpecKind {
    /// One of them, held so that the addresses stay theirs.
    _pod: Arc<Pod>,
    sources: Vec<SourceId>,
}

impl Counting {
    pub(super) fn new(limits: IndexLimits) -> Self {
        Counting {
            keys: Keys::new(limits.domains),
            label_groups: LabelGroups::new(limits.label_groups),
            new_terms: NewTerms { max: limits.new_terms, ..NewTerms::default() },
            max_specs: limits.specs,
            ..Counting::default()
        }
    }

    /// Counts a pod that came to a row, or left it.
    pub(super) fn count(&mut self, row: u32, pod: &Arc<Pod>, change: i64) {
        let group = self.label_group(pod);
        let spec = pod.spec.pod_affinity.is_declared.then(|| spec_addresses(pod));
        if let Some(key) = spec.filter(|key| !self.by_spec.contains_key(key)) {
            self.learn_spec(key, pod);
        }
        let Counting { keys, sources, tallies, label_groups, by_spec, new_terms, .. } = self;
        let mut ledger = Ledger { keys, sources, tallies, new_terms };
        let is_terminating = pod.is_terminating();
        for id in label_groups.count(group, row, is_terminating, change) {
            if !is_terminating || ledger.counts_terminating(*id) {
                ledger.bump(*id, row, change);
            }
        }
        for id in spec.iter().flat_map(|key| &by_spec[key].sources) {
            ledger.bump(*id, row, change);
        }
    }

    /// The number of the pod's label group.
    fn label_group(&mut self, pod: &Arc<Pod>) -> usize {
        let Counting { label_groups, sources, by_common_label, without_common_label, .. } = self;
        label_groups.of(pod, |pod| {
            let common =
                pod.labels.iter().filter_map(|label| by_common_label.get(&hash_label(label))).flatten();
            let matches = |id: &SourceId| match sources.get(*id) {
                Some(Source { what: What::Matching(matcher), .. }) => matcher.matches_labels(pod),
                _ => false,
            };
            let mut matching: Vec<SourceId> =
                common.chain(&*without_common_label).copied().filter(matches).collect();
            // A label with two hashes that are the same would have it twice.
            matching.sort_unstable();
            matching.dedup();
            matching
        })
    }

    /// Takes everything on a row out of the counts, before its node changes or goes.
    pub(super) fn lift(&mut self, row: u32) {
        for id in self.sources.positions() {
            let pods = self.sources.get(id).map_or(0, |source| source.by_row.get(row));
            if pods > 0 {
                self.bump(id, row, -i64::from(pods));
            }
        }
        self.label_groups.lift(row);
        for tally in self.tallies.values_mut() {
            tally.exclude(row, &self.keys);
        }
        for column in self.keys.iter_mut() {
            column.remove(row);
        }
    }

    /// Puts a row's node and its pods into the counts.
    pub(super) fn lower(&mut self, node: NodeRef<'_>, cluster: &Snapshot) {
        for column in self.keys.iter_mut() {
            column.put(node, cluster);
        }
        for tally in self.tallies.values_mut() {
            tally.include(node, &self.keys);
        }
        for pod in node.pods() {
            self.count(node.row().0, pod, 1);
        }
    }

    fn learn_spec(&mut self, key: Addresses, pod: &Arc<Pod>) {
        if self.by_spec.len() >= self.max_specs {
            self.by_spec.clear();
            self.forget_idle_terms();
        }
        let sources = carried_terms(pod).map(|term| self.term_source(term)).collect();
        self.by_spec.insert(key, SpecKind { _pod: pod.clone(), sources });
    }

    /// Drops the terms that no pod carries and no class counts.
    fn forget_idle_terms(&mut self) {
        let sources = &mut self.sources;
        self.terms.retain(|_, id| {
            let is_idle = matches!(sources.get(*id), Some(Source { total: 0, users: 0, .. }));
            if is_idle {
                sources.remove(*id);
            }
            !is_idle
        });
    }

    fn term_source(&mut self, term: CarriedTerm) -> SourceId {
        if let Some(id) = self.terms.get(&term) {
            return *id;
        }
        let term = Arc::new(term);
        let id = self.new_source(What::Carrying(term.clone()));
        self.terms.insert(term, id);
        id
    }

    fn new_source(&mut self, what: What) -> SourceId {
        let source = Source { what, by_row: RowCounts::default(), total: 0, tallies: Vec::new(), users: 0 };
        self.sources.insert(source)
    }

    fn bump(&mut self, id: SourceId, row: u32, change: i64) {
        let Counting { keys, sources, tallies, new_terms, .. } = self;
        Ledger { keys, sources, tallies, new_terms }.bump(id, row, change);
    }

    // === What classes use ===

    /// The source of the pods that match; they are counted if nobody did so before.
    pub(super) fn matching(&mut self, matcher: &PodMatcher) -> SourceId {
        let id = match self.matchers.get(matcher) {
            Some(id) => *id,
            None => {
                let matcher = Arc::new(matcher.clone());
                let id = self.new_source(What::Matching(matcher.clone()));
                self.matchers.insert(matcher.clone(), id);
                match matcher.common_label() {
                    Some(label) => self.by_common_label.entry(hash_label(label)).or_default().push(id),
                    None => self.without_common_label.push(id),
                }
                for (row, pods) in self.label_groups.adopt(id, &matcher) {
                    self.bump(id, row, pods);
                }
                id
            }
        };
        self.source_mut(id).users += 1;
        id
    }

    /// The terms that pods carry now.
    pub(super) fn carried_terms(&self) -> impl Iterator<Item = (SourceId, &CarriedTerm)> {
        self.terms.iter().filter(|(_, id)| self.total(**id) > 0).map(|(term, id)| (*id, &**term))
    }

    /// How many terms have ever begun to be carried.
    pub(super) fn new_term_count(&self) -> usize {
        self.new_terms.dropped + self.new_terms.list.len()
    }

    /// The terms that pods have begun to carry since there were so many; none if that is too long ago to know.
    pub(super) fn new_terms(&self, since: usize) -> Option<impl Iterator<Item = &CarriedTerm>> {
        let list = self.new_terms.list.get(since.checked_sub(self.new_terms.dropped)?..)?;
        Some(list.iter().filter_map(|id| match self.sources.get(*id) {
            Some(Source { what: What::Carrying(term), .. }) => Some(&**term),
            _ => None,
        }))
    }

    /// Uses a term's source.
    pub(super) fn share_term(&mut self, id: SourceId) {
        self.source_mut(id).users += 1;
    }

    /// Counts a source by the domains of a key.
    pub(super) fn tally(&mut self, source: SourceId, request: TallyRequest, cluster: &Snapshot) -> TallyId {
        let mut tally = DomainTally::new(request, &self.keys, cluster);
        for (row, pods) in self.source(source).by_row.iter() {
            tally.bump(row, i64::from(pods), &self.keys);
        }
        let id = self.tallies.insert(tally);
        self.source_mut(source).tallies.push(id);
        id
    }

    /// Gives back what a class used.
    pub(super) fn release(&mut self, source: SourceId, tally: Option<TallyId>) {
        if let Some(tally) = tally {
            self.tallies.remove(tally);
            self.source_mut(source).tallies.retain(|other| *other != tally);
        }
        let Source { what, users, .. } = self.source_mut(source);
        *users -= 1;
        if *users == 0
            && let What::Matching(matcher) = what
        {
            let matcher = matcher.clone();
            self.matchers.remove(&matcher);
            self.sources.remove(source);
            let list = match matcher.common_label().map(hash_label) {
                Some(label) => self.by_common_label.entry(label).or_default(),
                None => &mut self.without_common_label,
            };
            list.retain(|id| *id != source);
            if let Some(label) = matcher.common_label().map(hash_label)
                && self.by_common_label[&label].is_empty()
            {
                self.by_common_label.remove(&label);
            }
            self.label_groups.abandon(source, &matcher);
        }
    }

    /// How many pods of a source are in a row.
    pub(super) fn in_row(&self, source: SourceId, row: u32) -> u32 {
        self.source(source).by_row.get(row)
    }

    /// The rows that have pods of a source.
    pub(super) fn rows(&self, source: SourceId) -> impl Iterator<Item = u32> {
        self.source(source).by_row.iter().map(|(row, _)| row)
    }

    /// Adds the rows that have pods of a source.
    pub(super) fn extend_with_rows(&self, source: SourceId, rows: &mut Vec<u32>) {
        self.source(source).by_row.extend_with_rows(rows);
    }

    /// How many rows have pods of a source.
    pub(super) fn row_count(&self, source: SourceId) -> usize {
        self.source(source).by_row.len()
    }

    /// How many pods of a source there are.
    pub(super) fn total(&self, source: SourceId) -> u64 {
        self.source(source).total
    }

    /// How many pods of a tally are in a domain.
    pub(super) fn in_domain(&self, tally: TallyId, domain: u32) -> u32 {
        self.held_tally(tally).in_domain(domain)
    }

    /// What the pods of a tally are worth for a domain, those of all domains taken together.
    pub(super) fn weight(&self, tally: TallyId, domain: u32) -> i64 {
        self.held_tally(tally).weight(domain)
    }

    /// A tally over all domains.
    pub(super) fn summary(&self, tally: TallyId) -> Tally {
        self.held_tally(tally).summary()
    }

    /// The domains whose counts have changed since the last time, perhaps some of them twice; none if those are too many to know, or if
    /// nobody has asked before. The tally notes them from now on.
    pub(super) fn take_changed_domains(&mut self, tally: TallyId, into: &mut Vec<u32>) -> bool {
        self.tallies.get_mut(tally).expect("the class that asks holds the tally").take_changes(into)
    }

    fn held_tally(&self, tally: TallyId) -> &DomainTally {
        self.tallies.get(tally).expect("the class that asks holds the tally")
    }

    fn source(&self, id: SourceId) -> &Source {
        self.sources.get(id).expect("whoever asks holds the source")
    }

    fn source_mut(&mut self, id: SourceId) -> &mut Source {
        self.sources.get_mut(id).expect("whoever asks holds the source")
    }
}

/// The parts of [`Counting`] that change when a pod is counted.
struct Ledger<'a> {
    keys: &'a Keys,
    sources: &'a mut Slots<Source>,
    tallies: &'a mut Slots<DomainTally>,
    new_terms: &'a mut NewTerms,
}

impl Ledger<'_> {
    fn counts_terminating(&self, id: SourceId) -> bool {
        matches!(self.sources.get(id), Some(Source { what: What::Matching(matcher), .. }) if matcher.counts_terminating)
    }

    fn bump(&mut self, id: SourceId, row: u32, change: i64) {
        let Some(source) = self.sources.get_mut(id) else { return };
        source.by_row.change(row, |pods| pods.saturating_add_signed(change as i32));
        let was_none = source.total == 0;
        source.total = source.total.saturating_add_signed(change);
        if was_none && matches!(source.what, What::Carrying(_)) {
            self.new_terms.note(id);
        }
        for tally in &source.tallies {
            if let Some(tally) = self.tallies.get_mut(*tally) {
                tally.bump(row, change, self.keys);
            }
        }
    }
}

impl NewTerms {
    fn note(&mut self, id: SourceId) {
        if self.list.len() >= self.max {
            self.dropped += self.list.len();
            self.list.clear();
        }
        self.list.push(id);
    }
}

impl CarriedTerm {
    /// Whether the term means the pod.
    pub(super) fn means(&self, pod: &Pod, namespace_labels: &Labels) -> bool {
        let owner = self.owner.as_deref().unwrap_or_default();
        self.term.matches(owner, &pod.namespace, namespace_labels, &pod.labels)
    }
}

/// The terms of a pod, as they are counted.
fn carried_terms(pod: &Pod) -> impl Iterator<Item = CarriedTerm> {
    let affinity = &pod.spec.pod_affinity;
    let carried = move |role, weight, term: &PodAffinityTerm| CarriedTerm {
        role,
        weight,
        term: term.clone(),
        owner: matches!(term.namespaces, TermNamespaces::Own).then(|| pod.namespace.clone()),
    };
    let required = affinity.required.iter().map(move |term| carried(TermRole::Required, 1, term));
    let anti = affinity.required_anti.iter().map(move |term| carried(TermRole::RequiredAnti, 1, term));
    let preferred =
        affinity.preferred.iter().map(move |term| carried(TermRole::Preferred, term.weight, &term.term));
    let preferred_anti = affinity
        .preferred_anti
        .iter()
        .map(move |term| carried(TermRole::PreferredAnti, term.weight.wrapping_neg(), &term.term));
    required.chain(anti).chain(preferred).chain(preferred_anti)
}
