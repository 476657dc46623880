//! Plugins as authors write them, one for each way to stay on the index: for benchmarks, and to compare with the plain way.

mod even_racks;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Acts, Cycle, Extensions, Filter, Memory, NoArgs, NodeField, NodeScore, Normalization, Plugin, PodField,
    Point, PreFilter, PreFilterResult, PreScore, Profile, Reads, Registry, Reserve, Score, Status,
};
use supercargo_model::{Kind, KindId, LabelLookup as _, NodeRef, Pod, Row};

pub use even_racks::EvenRacks;

const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of pods that must not be in a zone.
pub const AVOIDS: &str = "avoids";
/// Namespaces that begin like this have a budget.
const TEAMS: &str = "team";
/// How many pods such a namespace may have.
const BUDGET: u32 = 4;
/// What nodes get that have the pod's number.
const NUMBER_SCORE: i64 = 100;

/// What is known of a node from outside: an object that is named like it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// How loaded it is, from 0 to 100.
    pub load: i64,
    /// How many bytes went through it.
    pub traffic: i64,
}

impl Kind for NodeLoad {
    const ID: KindId =
        KindId { group: "samples.supercargo.dev", version: "v1", kind: "NodeLoad", plural: "nodeloads" };
}

/// How many pods each namespace with a budget was given.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Spent(pub BTreeMap<Box<str>, u32>);

impl Memory for Spent {
    const NAME: &'static str = "SampleBudget";
}

/// A Filter that nobody wrote with the index in mind: it comes behind those that count pods.
#[derive(Debug)]
pub struct AvoidZone;

/// A PreFilter that remembers: so many pods a namespace.
#[derive(Debug)]
pub struct Budget;

/// A Score by an object per node.
#[derive(Debug)]
pub struct LeastLoaded;

/// A Score by an object per node, normalised by the lowest and the highest.
#[derive(Debug)]
pub struct LeastTraffic;

/// A Score by the last digits of the names of pod and node.
#[derive(Debug)]
pub struct NodeNumber;

/// Adds one of these plugins to a profile, at its points, behind all others.
pub fn add<P: Plugin>(profile: &mut Profile, weight: i64) {
    add_with::<P>(profile, weight, None);
}

/// The same with these arguments, which have to be right.
pub fn add_with<P: Plugin>(profile: &mut Profile, weight: i64, args: Option<&serde_json::Value>) {
    let mut registry = Registry::default();
    registry.register::<P>().expect("it is the only one");
    let plugin = registry.get(P::NAME).expect("it was just registered");
    let instance = plugin.make(args).expect("it takes these arguments");
    for point in Point::ALL {
        profile.add(&instance, point, weight);
    }
}

impl Plugin for AvoidZone {
    const NAME: &'static str = "SampleAvoidZone";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        AvoidZone
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Labels]).node(&[NodeField::Labels])
    }
}

impl Filter for AvoidZone {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match cycle.pod.labels.label(AVOIDS) {
            Some(zone) if node.label(ZONE) == Some(zone) => {
                Status::unschedulable("node(s) in an avoided zone")
            }
            _ => Status::success(),
        }
    }
}

impl Plugin for Budget {
    const NAME: &'static str = "SampleBudget";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        Budget
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().reserve().remembers::<Spent>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Namespace]).memory()
    }
}

impl PreFilter for Budget {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let spent = cycle.context.memories.get::<Spent>();
        let spent = spent.and_then(|spent| spent.0.get(&*cycle.pod.namespace)).copied().unwrap_or(0);
        if spent < BUDGET {
            PreFilterResult::AllNodes
        } else {
            PreFilterResult::Reject(Status::unschedulable("the budget of the namespace is spent"))
        }
    }
}

impl Reserve for Budget {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        if cycle.pod.namespace.starts_with(TEAMS) {
            *acts.memory::<Spent>().0.entry((*cycle.pod.namespace).into()).or_default() += 1;
        }
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        if let Some(spent) = acts.memory::<Spent>().0.get_mut(&*cycle.pod.namespace) {
            *spent = spent.saturating_sub(1);
        }
    }
}

impl Plugin for LeastLoaded {
    const NAME: &'static str = "SampleLeastLoaded";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        LeastLoaded
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Name]).of_node::<NodeLoad>()
    }
}

impl Score for LeastLoaded {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(cycle.object_of::<NodeLoad>(node).map_or(0, |known| 100 - known.load.clamp(0, 100)))
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

impl Plugin for LeastTraffic {
    const NAME: &'static str = "SampleLeastTraffic";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        LeastTraffic
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Name]).of_node::<NodeLoad>()
    }
}

impl Score for LeastTraffic {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(cycle.object_of::<NodeLoad>(node).map_or(0, |known| known.traffic))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        least_first(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRange
    }
}

/// Turns amounts around: 100 for the lowest, 0 for the highest.
pub fn least_first(scores: &mut [NodeScore]) {
    let values = || scores.iter().map(|score| score.score);
    let (lowest, highest) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
    let range = highest.saturating_sub(lowest).max(1);
    for score in scores {
        score.score = (highest - score.score) * 100 / range;
    }
}

/// The last digit of a name.
fn digit(name: &str) -> Option<u32> {
    name.chars().last()?.to_digit(10)
}

/// The digit of the pod's name.
#[derive(Clone, Copy, Debug)]
struct PodDigit(u32);

impl Plugin for NodeNumber {
    const NAME: &'static str = "SampleNodeNumber";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        NodeNumber
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_score().score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Name]).alike().node(&[NodeField::Name])
    }

    fn alike(&self, pod: &Pod) -> u64 {
        digit(&pod.name).map_or(0, |digit| u64::from(digit) + 1)
    }
}

impl PreScore for NodeNumber {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        match digit(&cycle.pod.name) {
            Some(digit) => {
                cycle.put(PodDigit(digit));
                Status::success()
            }
            None => Status::skip(),
        }
    }
}

impl Score for NodeNumber {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let PodDigit(wanted) = cycle.get().copied().ok_or_else(|| Status::error("PreScore has not run"))?;
        Ok(if digit(node.name()) == Some(wanted) { NUMBER_SCORE } else { 0 })
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}
