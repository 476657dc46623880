//! Long random histories of a cluster, in which every decision of the engine is compared with the plain way to decide.
//!
//! The plain way is `evaluate` on the cluster as it is, and now and then on a fresh cluster into which all objects
//! were put for the first time. Every part of a decision must be the same, whatever the engine remembers. These are the tests of
//! `crates/engine/src/index`, which are here because they need the real plugins.
//!
//! `HISTORIES=100000 cargo test --release -p supercargo-conformance --test histories` runs longer, `SEED=…` begins
//! with that history. One that fails is cut down to the few steps that matter, and printed.

mod answers;
mod chance;
mod court;
mod planted;
mod profiles;
mod scenery;
mod setup;
mod shrink;
mod steps;
mod templates;
mod world;

use std::ops::Range;

use supercargo_engine::{Engine, EngineOptions, IndexLimits, Indexing, Seed};
use supercargo_framework::Profile;

use chance::Chance;
use court::{Budget, Coverage, compare_histories};

/// How many histories a test runs, unless somebody asks for more.
const HISTORIES: u64 = 64;
/// How many steps it may take to make a counterexample short.
const SHRINKING: usize = 500_000;
/// Each thing that the histories are for happens at least so often.
const LEAST: u64 = 3;

const EXPECTED: &[&str] = &[
    "node added",
    "node put anew",
    "node removed",
    "node relabelled",
    "node relabelled irrelevantly",
    "node retainted",
    "node cordoned or uncordoned",
    "node resized",
    "node images changed",
    "node features changed",
    "pod bound by somebody else",
    "pod confirmed",
    "pod relabelled",
    "pod terminating",
    "pod resized",
    "pod resize held",
    "pod moved",
    "pod removed",
    "pod nominated by somebody else",
    "nomination cleared",
    "pending pod removed",
    "namespace put",
    "namespace removed",
    "service put",
    "controller put",
    "budget put",
    "storage class put",
    "claim put",
    "claim removed",
    "volume put",
    "volume removed",
    "CSI node put",
    "attachment put",
    "storage capacity put",
    "node load put",
    "device class put",
    "other object removed",
    "assumed volumes forgotten",
    "time passed",
    "decided",
    "compared with a fresh cluster",
    "unfolded",
    "volumes reserved",
    "rules: live",
    "rules: live, smallest name",
    "rules: conformance",
    "no profile is responsible",
    "placed",
    "placed with a choice",
    "placed after a tie",
    "placed with plans",
    "placed among many nodes",
    "nominated node taken",
    "other than nominated node taken",
    "unschedulable",
    "unschedulable with victims",
    "unschedulable with several victims",
    "unschedulable, nomination kept",
    "unschedulable without nodes",
    "unschedulable among many nodes",
    "failed",
    "rejected by DynamicResources",
    "rejected by InterPodAffinity",
    "rejected by NodeAffinity",
    "rejected by NodeDeclaredFeatures",
    "rejected by NodeName",
    "rejected by NodePorts",
    "rejected by NodeResourcesFit",
    "rejected by NodeUnschedulable",
    "rejected by NodeVolumeLimits",
    "rejected by PodTopologySpread",
    "rejected by TaintToleration",
    "rejected by VolumeBinding",
    "rejected by VolumeRestrictions",
    "rejected by VolumeZone",
    "rejected by SampleAvoidZone",
    "rejected by SampleBudget",
    "rejected by SampleEvenRacks",
    "scored differently by ImageLocality",
    "scored differently by InterPodAffinity",
    "scored differently by NodeAffinity",
    "scored differently by NodeResourcesBalancedAllocation",
    "scored differently by NodeResourcesFit",
    "scored differently by PodTopologySpread",
    "scored differently by TaintToleration",
    "scored differently by SampleLeastLoaded",
    "scored differently by SampleLeastTraffic",
    "scored differently by SampleNodeNumber",
    "scored differently by SampleEvenRacks",
    "index: decided",
    "index: left to the plain way",
    "index: class worked out",
    "index: decided row by row",
    "index: decided by the counts of small domains",
    "index: decided for a pod with claims",
    "index: left to the plain way for a pod with claims",
];

/// What happens to what an engine keeps where it may keep little.
const EXPECTED_IN_LITTLE_ROOM: &[&str] = &[
    "index: decided",
    "index: everything forgotten",
    "index: class dropped",
    "index: base dropped",
    "index: planes of a class's own dropped",
    "index: decided with planes of a class's own",
    "index: decided by the counts of small domains",
    "index: decided in the base that is nobody's own",
];

#[test]
fn what_the_engine_remembers_changes_no_decision() {
    let coverage = compare(Indexing::On, seeds(), Engine::new);
    if coverage.get("histories") >= HISTORIES {
        coverage.check(EXPECTED, LEAST);
    }
    report(&coverage);
}

/// The index moved the place where the next search begins, which no other history showed of those that every test run tries.
#[test]
fn a_pod_that_a_prefilter_has_rejected_moves_no_search() {
    compare(Indexing::On, 15_732..15_733, Engine::new);
}

/// What is kept is dropped all the time here, one thing in one history and another in the next.
#[test]
fn how_little_the_engine_remembers_changes_no_decision() {
    let coverage = compare(Indexing::On, seeds(), |profiles, options| {
        Engine::new(profiles, options).with_index_limits(tight(options.seed))
    });
    if coverage.get("histories") >= HISTORIES {
        coverage.check(EXPECTED_IN_LITTLE_ROOM, LEAST);
    }
    report(&coverage);
}

#[test]
fn a_cluster_that_has_changed_is_like_a_fresh_one() {
    compare(Indexing::Off, 1_000_000..1_000_000 + HISTORIES / 8, Engine::new);
}

fn compare(
    indexing: Indexing,
    seeds: Range<u64>,
    make_engine: impl FnMut(Vec<Profile>, EngineOptions) -> Engine,
) -> Coverage {
    let budget = Budget { seeds: seeds.collect(), indexing, shrinking: SHRINKING };
    compare_histories(make_engine, &budget).unwrap_or_else(|counterexample| panic!("{counterexample}"))
}

/// Limits of which about every third is so low that it is reached.
fn tight(Seed(seed): Seed) -> IndexLimits {
    let chance = &mut Chance::new(seed ^ 0x7161);
    let mut limits = IndexLimits::default();
    let lowered = [
        (&mut limits.classes, 3),
        (&mut limits.addresses, 4),
        (&mut limits.likenesses, 2),
        (&mut limits.idle_shapes, 0),
        (&mut limits.keys, 2),
        (&mut limits.singles, 1),
        (&mut limits.domains, 1),
        (&mut limits.parts, 8),
        (&mut limits.planes, 8),
        (&mut limits.eager_bases, 1),
        (&mut limits.seen_bases, 2),
        (&mut limits.base_bytes, 200),
        (&mut limits.specs, 2),
        (&mut limits.new_terms, 2),
        (&mut limits.label_groups, 2),
        (&mut limits.log, 3),
        (&mut limits.recent, 4),
        (&mut limits.reasons, 1),
        (&mut limits.findings, 4),
    ];
    for (limit, low) in lowered {
        if chance.percent(35) {
            *limit = low;
        }
    }
    limits
}

fn seeds() -> Range<u64> {
    let first = number("SEED");
    let count = number("HISTORIES").unwrap_or(if first.is_some() { 1 } else { HISTORIES });
    let first = first.unwrap_or(0);
    first..first + count
}

#[expect(clippy::disallowed_methods, reason = "how a person asks for other histories")]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture, to whoever wants to know what was tried")]
fn report(coverage: &Coverage) {
    println!("{coverage}");
}
