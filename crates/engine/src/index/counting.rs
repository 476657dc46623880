//! How many pods are where, for all selectors and terms that somebody asks about. Hot: every pod that comes or goes is
//! counted here.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{Counts, PodMatcher, Tally, TermRole};
use supercargo_model::pod::{PodAffinityTerm, TermNamespaces};
use supercargo_model::{Labels, NodeRef, Pod, Row, Snapshot};

use super::keys::Keys;
use super::label_groups::{Addresses, LabelGroups, hash_label, spec_addresses};
use super::limits::IndexLimits;
use super::slots::Slots;

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
    by_row: FxHashMap<u32, u32>,
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

/// A source by the domains of a topology key.
struct DomainTally {
    source: SourceId,
    key: usize,
    /// Which nodes count, if not all of them do.
    chosen: Option<Chosen>,
    pods: Vec<u32>,
    total: u64,
    /// The smallest number in a domain, and how many domains have it; 0 of them if that has to be found out again.
    minimum: (u32, usize),
    wants_minimum: bool,
}

struct Chosen {
    by: Arc<dyn Counts>,
    counter: usize,
    rows: Vec<bool>,
    /// How many of the nodes of each domain count.
    nodes: Vec<u32>,
    domains: usize,
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
            let held = self.sources.get(id).and_then(|source| source.by_row.get(&row).copied());
            if let Some(pods) = held {
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
        let source = Source { what, by_row: FxHashMap::default(), total: 0, tallies: Vec::new(), users: 0 };
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

    /// Counts a source by the domains of a key, on the nodes that `chosen_by` includes or on all.
    pub(super) fn tally(
        &mut self,
        source: SourceId,
        key: usize,
        chosen_by: Option<(Arc<dyn Counts>, usize)>,
        wants_minimum: bool,
        cluster: &Snapshot,
    ) -> TallyId {
        let chosen = chosen_by.map(|(by, counter)| Chosen {
            by,
            counter,
            rows: Vec::new(),
            nodes: Vec::new(),
            domains: 0,
        });
        let mut tally =
            DomainTally { source, key, chosen, pods: Vec::new(), total: 0, minimum: (0, 0), wants_minimum };
        if tally.chosen.is_some() {
            for node in cluster.nodes() {
                tally.include(node, &self.keys);
            }
        }
        for (row, pods) in &self.source(source).by_row {
            tally.bump(*row, i64::from(*pods), &self.keys);
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
        self.source(source).by_row.get(&row).copied().unwrap_or(0)
    }

    /// The rows that have pods of a source.
    pub(super) fn rows(&self, source: SourceId) -> impl ExactSizeIterator<Item = u32> {
        self.source(source).by_row.keys().copied()
    }

    /// How many pods of a source there are.
    pub(super) fn total(&self, source: SourceId) -> u64 {
        self.source(source).total
    }

    /// How many pods of a tally are in a domain.
    pub(super) fn in_domain(&self, tally: TallyId, domain: u32) -> u32 {
        let tally = self.tallies.get(tally).expect("the class that asks holds the tally");
        tally.pods.get(domain as usize).copied().unwrap_or(0)
    }

    /// A tally over all domains.
    pub(super) fn summary(&mut self, tally: TallyId) -> Tally {
        let tally = self.tallies.get_mut(tally).expect("the class that asks holds the tally");
        tally.summary(&self.keys)
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
        let count = source.by_row.entry(row).or_default();
        *count = count.saturating_add_signed(change as i32);
        if *count == 0 {
            source.by_row.remove(&row);
        }
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

impl DomainTally {
    fn bump(&mut self, row: u32, change: i64, keys: &Keys) {
        let domain = keys.get(self.key).value(row);
        if domain == supercargo_framework::Cell::NO_DOMAIN || !self.counts(row) {
            return;
        }
        let domain = domain as usize;
        if domain >= self.pods.len() {
            self.pods.resize(domain + 1, 0);
        }
        let old = self.pods[domain];
        let new = old.saturating_add_signed(change as i32);
        self.pods[domain] = new;
        self.total = self.total.saturating_add_signed(change);
        let (minimum, domains) = &mut self.minimum;
        if *domains > 0 {
            if new < *minimum {
                (*minimum, *domains) = (new, 1);
            } else {
                *domains -= usize::from(old == *minimum);
                *domains += usize::from(new == *minimum);
            }
        }
    }

    fn counts(&self, row: u32) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.rows.get(row as usize) == Some(&true))
    }

    fn exclude(&mut self, row: u32, keys: &Keys) {
        self.minimum.1 = 0;
        let Some(chosen) = &mut self.chosen else { return };
        let Some(true) = chosen.rows.get(row as usize) else { return };
        chosen.rows[row as usize] = false;
        if let Some(nodes) = chosen.nodes.get_mut(keys.get(self.key).value(row) as usize) {
            *nodes -= 1;
            chosen.domains -= usize::from(*nodes == 0);
        }
    }

    fn include(&mut self, node: NodeRef<'_>, keys: &Keys) {
        self.minimum.1 = 0;
        let Some(chosen) = &mut self.chosen else { return };
        let Row(row) = node.row();
        if chosen.rows.len() <= row as usize {
            chosen.rows.resize(row as usize + 1, false);
        }
        let domain = keys.get(self.key).value(row);
        if !chosen.by.includes(chosen.counter, node) || domain == supercargo_framework::Cell::NO_DOMAIN {
            return;
        }
        chosen.rows[row as usize] = true;
        if chosen.nodes.len() <= domain as usize {
            chosen.nodes.resize(domain as usize + 1, 0);
        }
        chosen.nodes[domain as usize] += 1;
        chosen.domains += usize::from(chosen.nodes[domain as usize] == 1);
    }

    fn summary(&mut self, keys: &Keys) -> Tally {
        let column = keys.get(self.key);
        let (nodes, domains) = match &self.chosen {
            None => (column.nodes(), column.domains()),
            Some(chosen) => (&*chosen.nodes, chosen.domains),
        };
        if self.wants_minimum && self.minimum.1 == 0 {
            let pods = |domain: usize| self.pods.get(domain).copied().unwrap_or(0);
            let counts = || (0..nodes.len()).filter(|domain| nodes[*domain] > 0).map(pods);
            let minimum = counts().min().unwrap_or(0);
            self.minimum = (minimum, counts().filter(|pods| *pods == minimum).count());
        }
        let (minimum, at_minimum) = self.minimum;
        Tally {
            total: self.total,
            domains,
            minimum: (self.wants_minimum && at_minimum > 0).then_some(minimum),
        }
    }
}

impl std::fmt::Debug for DomainTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DomainTally").field("source", &self.source).field("pods", &self.pods).finish()
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
