//! Pods by the domains of a topology key. Hot: every pod that comes or goes is counted here.

use std::fmt;
use std::sync::Arc;

use supercargo_framework::{Cell, Counts, DomainCounts, Tally};
use supercargo_model::{NodeRef, Row, Snapshot};

use super::keys::{KeyColumn, Keys};

/// When more domains than this have changed since somebody looked, nobody knows which.
const CHANGED_DOMAINS_MAX: usize = 1 << 10;

/// What is to be counted, and how.
pub(super) struct TallyRequest {
    pub(super) key: usize,
    /// Who says which nodes count, and the number of the counter there; all count if nobody does.
    pub(super) chosen_by: Option<(Arc<dyn Counts>, usize)>,
    /// Whether the counts of all domains are wanted.
    pub(super) wants_counts: bool,
    /// Who says what pods elsewhere are worth, and the number of the counter there, if somebody wants to know.
    pub(super) weighed_by: Option<(Arc<dyn Counts>, usize)>,
}

/// A source by the domains of a topology key. It belongs to one counter of one class.
pub(super) struct DomainTally {
    key: usize,
    /// Which nodes count, if not all of them do.
    chosen: Option<Chosen>,
    pods: Vec<u32>,
    total: u64,
    /// The counts of all domains that have a node which counts, if somebody wants them.
    counts: Option<CountList>,
    /// What the pods of all domains are worth for each, if somebody wants to know.
    weights: Option<Weights>,
    changes: Changes,
}

struct Weights {
    by: Arc<dyn Counts>,
    counter: usize,
    /// What all pods together are worth for a domain.
    sums: Vec<i64>,
    /// What one pod of a domain is worth for each domain; none as long as there has been no pod.
    of_domain: Vec<Option<Box<[i64]>>>,
}

struct Chosen {
    by: Arc<dyn Counts>,
    counter: usize,
    rows: Vec<bool>,
    /// How many of the nodes of each domain count.
    nodes: Vec<u32>,
}

/// How many domains have each count, by count.
#[derive(Debug, Default)]
struct CountList {
    list: Vec<(u32, u32)>,
    domains: usize,
}

/// The domains whose counts have changed.
#[derive(Debug)]
enum Changes {
    /// Nobody wants to know, or there are too many.
    Unknown,
    Noted(Vec<u32>),
}

impl DomainTally {
    /// A tally of no pods yet.
    pub(super) fn new(request: TallyRequest, keys: &Keys, cluster: &Snapshot) -> Self {
        let TallyRequest { key, chosen_by, wants_counts, weighed_by } = request;
        let chosen =
            chosen_by.map(|(by, counter)| Chosen { by, counter, rows: Vec::new(), nodes: Vec::new() });
        let counts = wants_counts.then(CountList::default);
        let weights = weighed_by.map(|(by, counter)| Weights {
            by,
            counter,
            sums: vec![0; keys.get(key).domain_numbers()],
            of_domain: Vec::new(),
        });
        let pods = Vec::new();
        let mut tally =
            DomainTally { key, chosen, pods, total: 0, counts, weights, changes: Changes::Unknown };
        if tally.chosen.is_some() {
            for node in cluster.nodes() {
                tally.include(node, keys);
            }
        } else if let Some(counts) = &mut tally.counts {
            counts.add(0, keys.get(key).domains());
        }
        tally
    }

    /// Counts pods that came to a row, or left it.
    pub(super) fn bump(&mut self, row: u32, change: i64, keys: &Keys) {
        let domain = keys.get(self.key).value(row);
        if domain == Cell::NO_DOMAIN || !self.counts_row(row) {
            return;
        }
        let index = domain as usize;
        if index >= self.pods.len() {
            self.pods.resize(index + 1, 0);
        }
        let old = self.pods[index];
        let new = old.saturating_add_signed(change as i32);
        self.pods[index] = new;
        self.total = self.total.saturating_add_signed(change);
        if let Some(weights) = &mut self.weights {
            weights.add(domain, i64::from(new) - i64::from(old), keys.get(self.key));
        }
        if let Some(counts) = &mut self.counts {
            counts.remove(old);
            counts.add(new, 1);
        }
        self.note(domain);
    }

    fn note(&mut self, domain: u32) {
        match &mut self.changes {
            Changes::Unknown => {}
            Changes::Noted(list) if list.len() < CHANGED_DOMAINS_MAX => list.push(domain),
            Changes::Noted(_) => self.changes = Changes::Unknown,
        }
    }

    fn counts_row(&self, row: u32) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.rows.get(row as usize) == Some(&true))
    }

    /// Takes note that a node goes, or changes; its pods have been taken out of the counts, but its value is still known.
    pub(super) fn exclude(&mut self, row: u32, keys: &Keys) {
        let domain = keys.get(self.key).value(row);
        if domain == Cell::NO_DOMAIN || !self.counts_row(row) {
            return;
        }
        let others = match &mut self.chosen {
            None => keys.get(self.key).nodes()[domain as usize] - 1,
            Some(chosen) => {
                chosen.rows[row as usize] = false;
                chosen.nodes[domain as usize] -= 1;
                chosen.nodes[domain as usize]
            }
        };
        let pods = self.in_domain(domain);
        if let Some(counts) = &mut self.counts
            && others == 0
        {
            counts.remove(pods);
        }
    }

    /// Takes note of a node that came, or changed; its value is known, and its pods are not counted yet.
    pub(super) fn include(&mut self, node: NodeRef<'_>, keys: &Keys) {
        let Row(row) = node.row();
        let domain = keys.get(self.key).value(row);
        let nodes = match &mut self.chosen {
            _ if domain == Cell::NO_DOMAIN => return,
            None => keys.get(self.key).nodes()[domain as usize],
            Some(chosen) => match chosen.include(node, domain) {
                0 => return,
                nodes => nodes,
            },
        };
        if let Some(weights) = &mut self.weights {
            weights.grow(&self.pods, keys.get(self.key));
        }
        let pods = self.in_domain(domain);
        if let Some(counts) = &mut self.counts
            && nodes == 1
        {
            counts.add(pods, 1);
        }
    }

    /// How many pods are in a domain.
    pub(super) fn in_domain(&self, domain: u32) -> u32 {
        self.pods.get(domain as usize).copied().unwrap_or(0)
    }

    /// What the pods of all domains are worth for one.
    pub(super) fn weight(&self, domain: u32) -> i64 {
        self.weights.as_ref().and_then(|weights| weights.sums.get(domain as usize)).copied().unwrap_or(0)
    }

    pub(super) fn summary(&self) -> Tally {
        let of_domains = self.counts.as_ref().map(CountList::summary).unwrap_or_default();
        Tally { total: self.total, of_domains }
    }

    /// Hands on which domains have changed since the last time; false if that is not known.
    pub(super) fn take_changes(&mut self, into: &mut Vec<u32>) -> bool {
        match &mut self.changes {
            Changes::Noted(list) => {
                into.append(list);
                true
            }
            Changes::Unknown => {
                self.changes = Changes::Noted(Vec::new());
                false
            }
        }
    }
}

impl Chosen {
    /// How many nodes of its domain count with the node; 0 if it does not count itself.
    fn include(&mut self, node: NodeRef<'_>, domain: u32) -> u32 {
        let Row(row) = node.row();
        if !self.by.includes(self.counter, node) {
            return 0;
        }
        if self.rows.len() <= row as usize {
            self.rows.resize(row as usize + 1, false);
        }
        if self.nodes.len() <= domain as usize {
            self.nodes.resize(domain as usize + 1, 0);
        }
        self.rows[row as usize] = true;
        self.nodes[domain as usize] += 1;
        self.nodes[domain as usize]
    }
}

impl Weights {
    /// Counts so many more pods of a domain.
    fn add(&mut self, domain: u32, pods: i64, key: &KeyColumn) {
        let Weights { by, counter, sums, of_domain } = self;
        let index = domain as usize;
        if of_domain.len() <= index {
            of_domain.resize(index + 1, None);
        }
        let worth = of_domain[index].get_or_insert_with(|| {
            let to = key.place(domain);
            (0..sums.len()).map(|from| by.weight(*counter, key.place(from as u32), to)).collect()
        });
        for (sum, worth) in sums.iter_mut().zip(worth) {
            *sum = sum.wrapping_add(worth.wrapping_mul(pods));
        }
    }

    /// Makes room for domains that have come up; all is worked out again, which is rare.
    fn grow(&mut self, pods: &[u32], key: &KeyColumn) {
        if self.sums.len() >= key.domain_numbers() {
            return;
        }
        self.sums = vec![0; key.domain_numbers()];
        self.of_domain.clear();
        for (domain, pods) in pods.iter().enumerate().filter(|(_, pods)| **pods > 0) {
            self.add(domain as u32, i64::from(*pods), key);
        }
    }
}

impl CountList {
    fn add(&mut self, count: u32, domains: usize) {
        if domains == 0 {
            return;
        }
        self.domains += domains;
        match self.position(count) {
            Ok(position) => self.list[position].1 += domains as u32,
            Err(position) => self.list.insert(position, (count, domains as u32)),
        }
    }

    fn remove(&mut self, count: u32) {
        let Ok(position) = self.position(count) else { return };
        self.domains -= 1;
        self.list[position].1 -= 1;
        if self.list[position].1 == 0 {
            self.list.remove(position);
        }
    }

    fn position(&self, count: u32) -> Result<usize, usize> {
        self.list.binary_search_by_key(&count, |(count, _)| *count)
    }

    fn summary(&self) -> DomainCounts {
        let (Some(first), Some(last)) = (self.list.first(), self.list.last()) else {
            return DomainCounts::default();
        };
        let empty = if first.0 == 0 { first.1 } else { 0 };
        DomainCounts {
            domains: self.domains,
            occupied: self.domains - empty as usize,
            minimum: first.0,
            maximum: last.0,
        }
    }
}

impl fmt::Debug for DomainTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DomainTally").field("key", &self.key).field("pods", &self.pods).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(counts: &[u32]) -> DomainCounts {
        DomainCounts {
            domains: counts.len(),
            occupied: counts.iter().filter(|count| **count > 0).count(),
            minimum: counts.iter().min().copied().unwrap_or(0),
            maximum: counts.iter().max().copied().unwrap_or(0),
        }
    }

    proptest! {
        #[test]
        fn the_counts_of_domains_are_those_of_a_plain_list(
            steps in prop::collection::vec((0..6usize, 0..4u32), 0..200),
        ) {
            let (mut list, mut model) = (CountList::default(), Vec::new());
            for (domain, count) in steps {
                match (domain < model.len(), count) {
                    (false, _) => {
                        list.add(count, 1);
                        model.push(count);
                    }
                    (true, 0) => list.remove(model.swap_remove(domain)),
                    (true, _) => {
                        list.remove(model[domain]);
                        list.add(count, 1);
                        model[domain] = count;
                    }
                }
                prop_assert_eq!(list.summary(), naive(&model));
            }
        }
    }

    #[test]
    fn changes_are_noted_once_somebody_has_asked_and_forgotten_when_there_are_too_many() {
        let mut changes = Vec::new();
        let mut tally = DomainTally {
            key: 0,
            chosen: None,
            pods: Vec::new(),
            total: 0,
            counts: None,
            weights: None,
            changes: Changes::Unknown,
        };
        tally.note(1);
        assert!(!tally.take_changes(&mut changes), "nobody had asked");
        tally.note(2);
        tally.note(2);
        assert!(tally.take_changes(&mut changes));
        assert_eq!(changes, [2, 2]);
        for domain in 0..=CHANGED_DOMAINS_MAX {
            tally.note(domain as u32);
        }
        assert!(!tally.take_changes(&mut changes), "there were too many");
        assert!(tally.take_changes(&mut changes));
        assert_eq!(changes, [2, 2]);
    }
}
