//! A plugin that counts, and says by counts something else than of each node, is found out; one that says the same is not.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{
    CountedFilter, CountedScore, Counter, Counts, Cycle, Extensions, Filter, Groups, MatcherTerm, NoArgs,
    NodeField, NodeScore, Plugin, PodMatcher, Reads, Scope, Score, Status, Tally,
};
use supercargo_model::{LabelLookup, LabelSelector, NodeRef, Pod};
use supercargo_testkit::ReadsCheck;

const ZONE: &str = "topology.kubernetes.io/zone";
/// More pods are a crowd.
const CROWD: u32 = 2;

/// Keeps pods out of crowded zones, and prefers zones with fewer pods. What is wrong with the way that it counts is its number.
struct Crowds<const LIE: u8>;

const HONEST: u8 = 0;
/// It counts only the pods of its own node.
const OTHER_SCOPE: u8 = 1;
/// It looks once, and not again.
const LOOKS_ONCE: u8 = 2;
/// It says another word.
const OTHER_WORD: u8 = 3;
/// It does not know how many nodes a group has.
const GROUPS_ARE_NODES: u8 = 4;
/// It asks for counts of all domains that it did not want.
const UNWANTED_COUNTS: u8 = 5;
/// It asks how many domains there are, and did not want to know.
const UNWANTED_DOMAINS: u8 = 6;
/// It takes the numbers in cells for those of domains.
const CELLS_ARE_DOMAINS: u8 = 7;
/// It takes the nodes of a group for nodes of one domain.
const GROUPS_ARE_DOMAINS: u8 = 8;

impl<const LIE: u8> Plugin for Crowds<LIE> {
    const NAME: &'static str = "Crowds";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Crowds
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Labels, NodeField::Pods]).topology()
    }
}

/// The pods in a node's zone; none if it is in none.
fn in_zone(cycle: &Cycle<'_>, node: NodeRef<'_>) -> Option<u32> {
    let zone = node.label(ZONE)?;
    let near = cycle.cluster().nodes().filter(|other| other.label(ZONE) == Some(zone));
    Some(near.map(|node| node.pods().len() as u32).sum())
}

/// Fewer pods are better, and so are fewer nodes with a zone, and fewer zones.
fn score_of(pods: Option<u32>, zoned: u32, zones: usize) -> i64 {
    100 - (i64::from(pods.unwrap_or(0) + zoned) + zones as i64).min(100)
}

impl<const LIE: u8> Filter for Crowds<LIE> {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match in_zone(cycle, node) {
            Some(pods) if pods > CROWD => Status::unschedulable("a crowd"),
            _ => Status::success(),
        }
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedFilter>> {
        Some(Arc::new(Counted::<LIE>::of(cycle)))
    }
}

impl<const LIE: u8> Score for Crowds<LIE> {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let cluster = cycle.cluster();
        let zoned = || cluster.nodes().filter_map(|node| node.label(ZONE).map(str::to_owned));
        let zones: BTreeSet<String> = zoned().collect();
        Ok(score_of(in_zone(cycle, node), zoned().count() as u32, zones.len()))
    }

    fn normalize(&self, _: &Cycle<'_>, _: &mut [NodeScore]) -> Status {
        Status::success()
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedScore>> {
        Some(Arc::new(Counted::<LIE>::of(cycle)))
    }
}

struct Counted<const LIE: u8> {
    counters: [Counter; 1],
    rejections: [Status; 1],
    /// All pods, at the time when it was made.
    pods: Vec<Arc<Pod>>,
}

impl<const LIE: u8> Counted<LIE> {
    fn of(cycle: &Cycle<'_>) -> Self {
        let everybody = MatcherTerm { namespaces: None, selector: LabelSelector::everything() };
        let scope = if LIE == OTHER_SCOPE { Scope::Node } else { Scope::NodesWithKeys(Vec::new()) };
        Counted {
            counters: [Counter {
                scope,
                wants_counts: LIE != UNWANTED_COUNTS,
                wants_domains: LIE != UNWANTED_DOMAINS,
                ..Counter::new(PodMatcher { terms: vec![everybody], counts_terminating: true }, ZONE)
            }],
            rejections: [Status::unschedulable(if LIE == OTHER_WORD { "a mob" } else { "a crowd" })],
            pods: cycle.cluster().nodes().flat_map(|node| node.pods().to_vec()).collect(),
        }
    }
}

impl<const LIE: u8> Counts for Counted<LIE> {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
}

impl<const LIE: u8> CountedFilter for Counted<LIE> {
    fn rejections(&self) -> &[Status] {
        &self.rejections
    }

    fn filter(&self, groups: &Groups<'_>, group: usize) -> Result<(), usize> {
        let Tally { total, of_domains } = groups.tallies[0];
        // What it does not know it makes up.
        let is_stale = LIE == LOOKS_ONCE && total > self.pods.len() as u64;
        let is_lost = LIE == UNWANTED_COUNTS && of_domains.domains == 0;
        let is_crowd = groups.cell(group, 0).pods > CROWD;
        if is_crowd && !is_stale && !is_lost { Err(0) } else { Ok(()) }
    }
}

impl<const LIE: u8> CountedScore for Counted<LIE> {
    fn score(&self, groups: &Groups<'_>, scratch: &mut Vec<u32>, scores: &mut [i64]) {
        let nodes = |group: usize| if LIE == GROUPS_ARE_NODES { 1 } else { groups.nodes[group] };
        let zoned_groups = || (0..groups.len()).filter(|group| groups.cell(*group, 0).has_domain());
        let zoned = zoned_groups().map(nodes).sum();
        let zones = match LIE {
            CELLS_ARE_DOMAINS => {
                zoned_groups().map(|group| groups.cell(group, 0).domain).collect::<BTreeSet<u32>>().len()
            }
            GROUPS_ARE_DOMAINS => zoned_groups().count(),
            _ => groups.domains(0, |_| true, scratch),
        };
        for (group, score) in scores.iter_mut().enumerate() {
            *score = score_of(Some(groups.cell(group, 0).pods), zoned, zones);
        }
    }
}

fn findings<const LIE: u8>() -> Vec<String> {
    ReadsCheck::of::<Crowds<LIE>>().worlds(20).findings()
}

#[test]
fn counts_that_say_something_else_are_found() {
    let filter = "`Filter::counted` says something else than `filter`";
    let score = "`Score::counted` says something else than `score` and `normalize`";
    assert_eq!(findings::<HONEST>(), [""; 0]);
    assert_eq!(findings::<OTHER_SCOPE>(), [filter, score]);
    assert_eq!(findings::<LOOKS_ONCE>(), [filter]);
    assert_eq!(findings::<OTHER_WORD>(), [filter]);
    assert_eq!(findings::<GROUPS_ARE_NODES>(), [score]);
    assert_eq!(findings::<UNWANTED_COUNTS>(), [filter]);
    assert_eq!(findings::<UNWANTED_DOMAINS>(), [score]);
    assert_eq!(findings::<CELLS_ARE_DOMAINS>(), [score]);
    assert_eq!(findings::<GROUPS_ARE_DOMAINS>(), [score]);
}
