//! Whether what a plugin says by counts of pods is what it says of each node: counted here in the simplest way there is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use supercargo_framework::{
    Cell, CountedFilter, CountedScore, Counter, Counts, DomainCounts, GroupDomains, Groups, Scope, Tally,
    TermRole,
};
use supercargo_model::kinds::Namespace;
use supercargo_model::pod::PodAffinityTerm;
use supercargo_model::{Labels, NodeRef, Pod, Snapshot};

use crate::cluster::TestCluster;
use crate::random::World;
use crate::reads::Search;
use crate::trial::status_text;

const FILTER_IS_UNTRUE: &str = "`Filter::counted` says something else than `filter`";
const SCORE_IS_UNTRUE: &str = "`Score::counted` says something else than `score` and `normalize`";

impl Search<'_> {
    /// Whether counts say what the plugin says, at once and after more pods have come: the engine asks for what is counted once,
    /// and keeps it while pods come and go.
    pub(crate) fn look_at_counts(&mut self, world: &World) {
        let mut cluster = world.cluster_for(&self.plugin.reads, false);
        let pod = cluster.pod(world.pending());
        let profile = &self.trial.profile;
        let cycle = cluster.cycle(&pod);
        let filter = profile.filter.first().and_then(|named| named.plugin.counted(&cycle));
        let score = profile.score.first().and_then(|(named, _)| named.plugin.counted(&cycle));
        if filter.is_none() && score.is_none() {
            return;
        }
        for number in 0..=world.node_count() {
            if let Some(filter) = &filter {
                self.demand(self.is_true_filter(&**filter, &cluster, &pod), FILTER_IS_UNTRUE);
            }
            if let Some(score) = &score {
                self.demand(self.is_true_score(&**score, &cluster, &pod), SCORE_IS_UNTRUE);
            }
            if number < world.node_count() {
                let name = format!("counted-{number}");
                let another = world.pending().with(json!({ "metadata": { "name": name, "uid": name } }));
                cluster.put(another.on(&world.node_name(number)));
            }
        }
    }

    fn is_true_filter(&self, counted: &dyn CountedFilter, cluster: &TestCluster, pod: &Arc<Pod>) -> bool {
        let census = Census::of(counted, cluster.snapshot(), pod);
        // Which nodes are feasible is not known yet.
        let groups = Groups { domains: None, ..census.groups() };
        let by_counts = |group: usize| match counted.filter(&groups, group) {
            Ok(()) => Some("ok".to_owned()),
            Err(rejection) => counted.rejections().get(rejection).map(status_text),
        };
        let said = self.trial.filter_pod(cluster, pod);
        let nodes = cluster.snapshot().nodes();
        if let [all] = &said[..]
            && let Some(all) = all.strip_prefix("*: ")
        {
            // PreFilter speaks for all nodes, and is not asked where a filter counts.
            return all == "skip" && (0..groups.len()).all(|group| by_counts(group).as_deref() == Some("ok"));
        }
        nodes.zip(&census.group_of).zip(&said).all(|((node, group), line)| {
            match by_counts(*group) {
                Some(counted) => *line == format!("{}: {counted}", node.name()),
                // It says something else of every node.
                None => counted.rejections().is_empty() && *line != format!("{}: ok", node.name()),
            }
        })
    }

    fn is_true_score(&self, counted: &dyn CountedScore, cluster: &TestCluster, pod: &Arc<Pod>) -> bool {
        let census = Census::of(counted, cluster.snapshot(), pod);
        let groups = census.groups();
        let mut scores = vec![0; groups.len()];
        counted.score(&groups, &mut Vec::new(), &mut scores);
        let said = self.trial.scores_of_pod(cluster, pod);
        if said == ["*: skip"] {
            // Nobody is preferred, by whichever number.
            return scores.windows(2).all(|pair| pair[0] == pair[1]);
        }
        let nodes = cluster.snapshot().nodes();
        nodes
            .zip(&census.group_of)
            .zip(&said)
            .all(|((node, group), line)| *line == format!("{}: {}", node.name(), scores[*group]))
    }
}

type Terms = [i64; TermRole::ALL.len()];

/// All nodes of a cluster by what is counted there: those that are alike are one group, whatever their domains.
#[derive(Debug)]
struct Census {
    nodes: Vec<u32>,
    tallies: Vec<Tally>,
    cells: Vec<Cell>,
    weights: Vec<i64>,
    terms: Vec<Terms>,
    /// The group of each node, in the order of the nodes.
    group_of: Vec<usize>,
    /// For each counter whose domains are wanted, the domain of each node.
    domains: Vec<Option<Vec<u32>>>,
}

impl Census {
    fn of(counts: &dyn Counts, cluster: &Snapshot, pod: &Pod) -> Self {
        let counted: Vec<Counted<'_>> = (counts.counters().iter().enumerate())
            .map(|(number, _)| Counted::of(counts, number, cluster))
            .collect();
        let meant = MeantTerms::of(cluster, pod, counts.roles());
        let mut census = Census {
            nodes: Vec::new(),
            tallies: counted.iter().map(|counted| counted.tally).collect(),
            cells: Vec::new(),
            weights: Vec::new(),
            terms: Vec::new(),
            group_of: Vec::new(),
            domains: counted.iter().map(|counted| counted.domains(cluster)).collect(),
        };
        let mut known: Vec<(Vec<Cell>, Vec<i64>, Terms)> = Vec::new();
        for node in cluster.nodes() {
            let cells: Vec<Cell> = counted.iter().map(|counted| counted.cell(node, cluster)).collect();
            let weights = counted.iter().map(|counted| counted.weight(node, cluster)).collect();
            let alike = (cells, weights, meant.on(node));
            let group = known.iter().position(|other| *other == alike).unwrap_or_else(|| {
                census.nodes.push(0);
                census.cells.extend(&alike.0);
                census.weights.extend(&alike.1);
                census.terms.push(alike.2);
                known.push(alike);
                known.len() - 1
            });
            census.nodes[group] += 1;
            census.group_of.push(group);
        }
        census
    }

    fn groups(&self) -> Groups<'_> {
        Groups {
            nodes: &self.nodes,
            tallies: &self.tallies,
            cells: &self.cells,
            cells_per_group: self.tallies.len(),
            first_cell: 0,
            weights: &self.weights,
            terms: &self.terms,
            domains: Some(self),
        }
    }
}

impl GroupDomains for Census {
    fn domains(&self, counter: usize, is_meant: &mut dyn FnMut(usize) -> bool, _: &mut Vec<u32>) -> usize {
        let Some(domains) = &self.domains[counter] else { return 0 };
        let meant = domains.iter().zip(&self.group_of).filter(|(_, group)| is_meant(**group));
        let domains: BTreeSet<u32> = meant.map(|(domain, _)| *domain).collect();
        domains.into_iter().filter(|domain| *domain != Cell::NO_DOMAIN).count()
    }
}

/// What one counter counts.
struct Counted<'a> {
    counts: &'a dyn Counts,
    number: usize,
    counter: &'a Counter,
    /// The places of nodes, where two keys make one.
    places: Vec<[&'a str; 2]>,
    /// The pods of each domain that has a node which counts.
    by_domain: BTreeMap<u32, u32>,
    tally: Tally,
}

impl<'a> Counted<'a> {
    fn of(counts: &'a dyn Counts, number: usize, cluster: &'a Snapshot) -> Self {
        let counter = &counts.counters()[number];
        let mut places: Vec<[&str; 2]> = cluster.nodes().map(|node| place(counter, node, cluster)).collect();
        places.sort_unstable();
        places.dedup();
        let has = |node: NodeRef<'_>, key: &str| domain(node, key) != Cell::NO_DOMAIN;
        let is_counted = |node: NodeRef<'_>| match &counter.scope {
            Scope::Node => true,
            Scope::NodesWithKeys(keys) => keys.iter().all(|key| has(node, key)),
            Scope::Chosen => counts.includes(number, node),
        };
        let mut by_domain: BTreeMap<u32, u32> = BTreeMap::new();
        let mut everywhere = 0;
        for node in cluster.nodes() {
            let domain = domain_of(counter, node, &places, cluster);
            let pods = matching(counter, node);
            everywhere += u64::from(pods);
            if domain != Cell::NO_DOMAIN && is_counted(node) {
                *by_domain.entry(domain).or_default() += pods;
            }
        }
        let tally = match counter.scope {
            Scope::Node => Tally { total: everywhere, of_domains: DomainCounts::default() },
            _ => Tally {
                total: by_domain.values().map(|pods| u64::from(*pods)).sum(),
                // The engine knows them only if they are wanted.
                of_domains: if counter.wants_counts { summary(&by_domain) } else { DomainCounts::default() },
            },
        };
        Counted { counts, number, counter, places, by_domain, tally }
    }

    /// What all pods are worth for a node, if somebody wants to know.
    fn weight(&self, node: NodeRef<'_>, cluster: &Snapshot) -> i64 {
        if !self.counter.wants_weights {
            return 0;
        }
        let from = place(self.counter, node, cluster);
        let worth = |other: NodeRef<'_>| {
            let to = place(self.counter, other, cluster);
            self.counts.weight(self.number, from, to) * i64::from(matching(self.counter, other))
        };
        cluster.nodes().map(worth).sum()
    }

    fn cell(&self, node: NodeRef<'_>, cluster: &Snapshot) -> Cell {
        let domain = domain_of(self.counter, node, &self.places, cluster);
        let pods = match self.counter.scope {
            _ if domain == Cell::NO_DOMAIN => 0,
            Scope::Node => matching(self.counter, node),
            _ => self.by_domain.get(&domain).copied().unwrap_or(0),
        };
        // Domains are not told apart: the engine need not do so either.
        Cell { domain: if domain == Cell::NO_DOMAIN { domain } else { 0 }, pods }
    }

    /// The domain of each node, if somebody wants to know.
    fn domains(&self, cluster: &Snapshot) -> Option<Vec<u32>> {
        let of_node = |node| domain_of(self.counter, node, &self.places, cluster);
        let all = || cluster.nodes().map(of_node).collect();
        self.counter.wants_domains.then(all)
    }
}

fn summary(by_domain: &BTreeMap<u32, u32>) -> DomainCounts {
    DomainCounts {
        domains: by_domain.len(),
        occupied: by_domain.values().filter(|pods| **pods > 0).count(),
        minimum: by_domain.values().min().copied().unwrap_or(0),
        maximum: by_domain.values().max().copied().unwrap_or(0),
    }
}

/// The terms of running pods that mean the pending one.
struct MeantTerms<'a> {
    /// The role, what one such pod is worth, the key, and the domain of the pod that carries the term.
    terms: Vec<(TermRole, i64, &'a str, u32)>,
}

impl<'a> MeantTerms<'a> {
    fn of(cluster: &'a Snapshot, pod: &Pod, roles: &[TermRole]) -> Self {
        let namespace = cluster.objects().get::<Namespace>("", &pod.namespace);
        let namespace_labels: Labels =
            namespace.map(|namespace| namespace.metadata.labels.clone()).unwrap_or_default();
        let mut terms = Vec::new();
        for node in cluster.nodes() {
            for running in node.pods() {
                for (role, weight, term) in carried(running) {
                    let is_meant =
                        term.matches(&running.namespace, &pod.namespace, &namespace_labels, &pod.labels);
                    if is_meant && roles.contains(&role) {
                        terms.push((role, weight, &*term.topology_key, domain(node, &term.topology_key)));
                    }
                }
            }
        }
        MeantTerms { terms }
    }

    fn on(&self, node: NodeRef<'_>) -> Terms {
        let mut sums = Terms::default();
        for (role, weight, key, carried_in) in &self.terms {
            if *carried_in != Cell::NO_DOMAIN && domain(node, key) == *carried_in {
                sums[*role as usize] += weight;
            }
        }
        sums
    }
}

fn carried(pod: &Pod) -> impl Iterator<Item = (TermRole, i64, &PodAffinityTerm)> {
    let affinity = &pod.spec.pod_affinity;
    let required = affinity.required.iter().map(|term| (TermRole::Required, 1, term));
    let anti = affinity.required_anti.iter().map(|term| (TermRole::RequiredAnti, 1, term));
    let preferred = (affinity.preferred.iter())
        .map(|weighted| (TermRole::Preferred, i64::from(weighted.weight), &weighted.term));
    let preferred_anti = (affinity.preferred_anti.iter())
        .map(|weighted| (TermRole::PreferredAnti, -i64::from(weighted.weight), &weighted.term));
    required.chain(anti).chain(preferred).chain(preferred_anti)
}

fn matching(counter: &Counter, node: NodeRef<'_>) -> u32 {
    node.pods().iter().filter(|pod| counter.pods.matches(pod)).count() as u32
}

/// The values of a node under the two keys of a counter, empty where it has none.
fn place<'a>(counter: &Counter, node: NodeRef<'_>, cluster: &'a Snapshot) -> [&'a str; 2] {
    let value = |key: &str| node.domain_named(key).map_or("", |pair| cluster.labels().value(pair));
    [value(&counter.topology_key), counter.second_key.as_deref().map_or("", value)]
}

/// The number of what counts as one place.
fn domain_of(counter: &Counter, node: NodeRef<'_>, places: &[[&str; 2]], cluster: &Snapshot) -> u32 {
    match counter.second_key {
        None => domain(node, &counter.topology_key),
        Some(_) => {
            places.binary_search(&place(counter, node, cluster)).map_or(Cell::NO_DOMAIN, |at| at as u32)
        }
    }
}

fn domain(node: NodeRef<'_>, key: &str) -> u32 {
    node.domain_named(key).map_or(Cell::NO_DOMAIN, |pair| pair.value.0)
}
