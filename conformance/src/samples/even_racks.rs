//! A plugin of an author's own that spreads pods, by the counts of all racks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_framework::{
    CountedFilter, CountedScore, Counter, Counts, Cycle, DomainCounts, Extensions, Filter, Groups,
    MAX_NODE_SCORE, MatcherTerm, NoArgs, NodeField, Plugin, PodField, PodMatcher, PreFilter, PreFilterResult,
    Reads, Score, Status,
};
use supercargo_model::{LabelLookup as _, LabelSelector, NodeRef, Pod};

/// The label that says in which rack a node is.
const RACK: &str = "example.com/rack";
/// A rack may have so many pods of a namespace more than the one with the fewest.
const MAX_SKEW: u32 = 6;
const REASON: &str = "node(s) in a rack with too many pods of the namespace";

/// Keeps the pods of each namespace even over racks: empty racks first, then those with few.
#[derive(Debug)]
pub struct EvenRacks;

/// The pods of the namespace in each rack.
#[derive(Clone, Debug)]
struct Racks(BTreeMap<Box<str>, u32>);

/// The same, counted by the engine.
struct RackCounts {
    counters: [Counter; 1],
    rejections: [Status; 1],
}

impl Plugin for EvenRacks {
    const NAME: &'static str = "SampleEvenRacks";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        EvenRacks
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().score()
    }

    fn reads(&self) -> Reads {
        let node = [NodeField::Labels, NodeField::Pods];
        Reads::nothing().pod(&[PodField::Namespace]).node(&node).topology()
    }
}

impl PreFilter for EvenRacks {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let mut racks = Racks(BTreeMap::new());
        for node in cycle.cluster().nodes() {
            let pods = node.pods().iter().filter(|pod| pod.namespace == cycle.pod.namespace).count();
            racks.add(node, pods as i32);
        }
        cycle.put(racks);
        PreFilterResult::AllNodes
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        change(cycle, pod, node, 1)
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        change(cycle, pod, node, -1)
    }
}

impl Filter for EvenRacks {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(racks) = cycle.get::<Racks>() else { return missing() };
        match racks.on(node) {
            Some(pods) if is_too_many(pods, racks.counts()) => Status::unschedulable(REASON),
            _ => Status::success(),
        }
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedFilter>> {
        Some(Arc::new(RackCounts::of(cycle.pod)))
    }
}

impl Score for EvenRacks {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let racks = cycle.get::<Racks>().ok_or_else(missing)?;
        Ok(racks.on(node).map_or(0, |pods| score_of(pods, racks.counts())))
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedScore>> {
        Some(Arc::new(RackCounts::of(cycle.pod)))
    }
}

impl Racks {
    fn add(&mut self, node: NodeRef<'_>, pods: i32) {
        if let Some(rack) = node.label(RACK) {
            let count = self.0.entry(rack.into()).or_default();
            *count = count.saturating_add_signed(pods);
        }
    }

    fn on(&self, node: NodeRef<'_>) -> Option<u32> {
        self.0.get(node.label(RACK)?).copied()
    }

    fn counts(&self) -> DomainCounts {
        DomainCounts {
            domains: self.0.len(),
            occupied: self.0.values().filter(|pods| **pods > 0).count(),
            minimum: self.0.values().min().copied().unwrap_or(0),
            maximum: self.0.values().max().copied().unwrap_or(0),
        }
    }
}

impl RackCounts {
    fn of(pod: &Pod) -> Self {
        let own = BTreeSet::from([Box::from(&*pod.namespace)]);
        let term = MatcherTerm { namespaces: Some(own), selector: LabelSelector::everything() };
        let pods = PodMatcher { terms: vec![term], counts_terminating: true };
        RackCounts {
            counters: [Counter { wants_counts: true, ..Counter::new(pods, RACK) }],
            rejections: [Status::unschedulable(REASON)],
        }
    }
}

impl Counts for RackCounts {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
}

impl CountedFilter for RackCounts {
    fn rejections(&self) -> &[Status] {
        &self.rejections
    }

    fn filter(&self, groups: &Groups<'_>, group: usize) -> Result<(), usize> {
        let cell = groups.cell(group, 0);
        let is_rejected = cell.has_domain() && is_too_many(cell.pods, groups.tallies[0].of_domains);
        if is_rejected { Err(0) } else { Ok(()) }
    }
}

impl CountedScore for RackCounts {
    fn score(&self, groups: &Groups<'_>, _: &mut Vec<u32>, scores: &mut [i64]) {
        for (group, score) in scores.iter_mut().enumerate() {
            let cell = groups.cell(group, 0);
            *score = if cell.has_domain() { score_of(cell.pods, groups.tallies[0].of_domains) } else { 0 };
        }
    }
}

/// Whether a rack with so many pods gets no further one.
fn is_too_many(pods: u32, all: DomainCounts) -> bool {
    pods + 1 > all.minimum + MAX_SKEW
}

/// 100 for empty racks. As long as there are any, half as much for others.
fn score_of(pods: u32, all: DomainCounts) -> i64 {
    if pods == 0 {
        return MAX_NODE_SCORE;
    }
    let range = i64::from(all.maximum - all.minimum).max(1);
    let even = i64::from(all.maximum.saturating_sub(pods)) * MAX_NODE_SCORE / range;
    if all.occupied < all.domains { even / 2 } else { even }
}

fn change(cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>, pods: i32) -> Status {
    let is_own = pod.namespace == cycle.pod.namespace;
    match cycle.get_mut::<Racks>() {
        Some(racks) if is_own => racks.add(node, pods),
        Some(_) => {}
        None => return missing(),
    }
    Status::success()
}

fn missing() -> Status {
    Status::error("PreFilter has not run")
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_says_by_counts_what_it_says_of_each_node() {
        supercargo_testkit::check_reads::<super::EvenRacks>();
    }
}
