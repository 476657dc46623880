//! Plugins that read more than they declare are found out, each with its honest twin beside it, of which nothing is found.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Acts, ColumnView, Context, Cycle, Extensions, Filter, Memory, NoArgs, NodeField, NodeScore,
    Normalization, OrderChanges, Plugin, PodField, PreScore, Query, QuerySource, QueueRank, QueueSort,
    QueuedPod, Reads, Reserve, RowFilter, RowScore, Score, Status, fact_kind,
};
use supercargo_model::kinds::Service;
use supercargo_model::{Kind, KindId, LabelLookup, NodeRef, Pod, Row, Timestamp};
use supercargo_testkit::ReadsCheck;

/// A plugin and its twin: `Name<true>` declares what `Name<false>` keeps to itself.
macro_rules! twins {
    ($name:ident: $($point:ident)*, reads $honest:expr, or $liar:expr $(, remembers $memory:ty)? $(, concerns $concerns:expr)?) => {
        struct $name<const HONEST: bool>;
        impl<const HONEST: bool> Plugin for $name<HONEST> {
            const NAME: &'static str = stringify!($name);
            type Args = NoArgs;
            fn new(_: NoArgs) -> Self {
                $name
            }
            fn extensions(points: Extensions<Self>) -> Extensions<Self> {
                points$(.$point())*$(.remembers::<$memory>())?
            }
            fn reads(&self) -> Reads {
                if HONEST { $honest } else { $liar }
            }
            $(fn concerns(&self, pod: &Pod) -> bool {
                let concerns: fn(bool, &Pod) -> bool = $concerns;
                concerns(HONEST, pod)
            })?
        }
    };
}

/// A filter that is a condition.
macro_rules! filter {
    ($name:ident: $passes:expr) => {
        impl<const HONEST: bool> Filter for $name<HONEST> {
            fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
                let passes: fn(&Cycle<'_>, NodeRef<'_>) -> bool = $passes;
                if passes(cycle, node) { Status::success() } else { Status::unschedulable("no") }
            }
        }
    };
}

/// So many clusters are enough here.
const WORLDS: usize = 20;

/// The check finds exactly this about the liar, and nothing about the twin.
fn check<Honest: Plugin, Liar: Plugin>(expected: &[&str]) {
    assert_eq!(ReadsCheck::of::<Liar>().worlds(WORLDS).findings(), expected, "{}", Liar::NAME);
    ReadsCheck::of::<Honest>().worlds(WORLDS).check();
}

macro_rules! lies {
    ($($name:ident => [$($expected:expr),*];)*) => {
        /// A test a lie.
        #[expect(non_snake_case, reason = "each test is called like its plugin")]
        mod lies_are_found_and_honest_twins_are_not_accused {
            $(#[test]
            fn $name() {
                super::check::<super::$name<true>, super::$name<false>>(&[$($expected),*]);
            })*
        }
    };
}

lies! {
    PodPriority => ["the pod's Priority matters: declare `.pod(&[PodField::Priority])`"];
    OwnLabel => ["a label of the pod is looked up: declare `.pod(&[PodField::Labels])`"];
    OwnAnnotation => ["an annotation of the pod is looked up: declare `.pod(&[PodField::Annotations])`"];
    PodName => ["the pod's Name matters: declare `.pod(&[PodField::Name])`"];
    NodeCordon => ["the node's Unschedulable matters: declare `.node(&[NodeField::Unschedulable])`"];
    OwnNodeLabel => ["a label of a node is looked up: declare `.node(&[NodeField::Labels])`"];
    Neighbours => ["other nodes or their pods matter: declare `.topology()`"];
    NodeCount => ["how many nodes there are, or which images they have, matters: declare `.all_nodes()`"];
    Clock => ["the time matters: declare `.time()`"];
    Chance => ["the seed matters, and answers are kept: declare `.time()`, so that they are not"];
    Remembering => ["what it remembers matters: declare `.memory()`"];
    OwnKind => ["objects of kind Quota are looked up: declare `.kind::<Quota>()`"];
    OtherNodes => [
        "objects of kind Quota are looked up that are not named like the node: declare `.kind::<Quota>()`, not `.of_node`"
    ];
    KnownKind => ["objects of kind Service are looked up: declare `.kind::<Service>()`"];
    Asking => ["facts of kind Load are looked up: declare the `.query(…)` that tells of Load"];
    Texts => ["texts of pods or nodes matter: declare `.raw_objects()`"];
    Unconcerned => [
        "it rejects or scores a pod that does not concern it: `concerns` must say true for such a pod"
    ];
    Halved => ["`normalize` changes scores: `normalization` must not be `None`"];
    Averaged => ["`normalize` looks at more than which scores occur: `normalization` must not be `ByValues`"];
    Middling => [
        "`normalize` looks at more than the lowest and the highest score: `normalization` must not be `ByRange`"
    ];
    Feasible => ["which nodes are feasible matters to PreScore: `normalization` must be `Unknown`"];
    Rows => ["`filter_rows` says something else than `filter`"];
    OneRow => ["`filter_row` says something else than `filter`"];
    ScoreRow => ["`score_row` says something else than `score`"];
    Ageing => [
        "the order of waiting pods depends on the time: `QueueSort::changes` must say `OrderChanges::with_time(…)`"
    ];
    Alike => ["`alike` gives one number to pods that it tells apart by their Name"];
    Ranked => ["`QueueSort::rank` has another order than `less`"];
}

twins! { PodPriority: filter, reads Reads::nothing().pod(&[PodField::Priority]), or Reads::nothing() }
filter! { PodPriority: |cycle, _| cycle.pod.priority() <= 0 }

// Nobody in the random clusters has such labels: asking for them is enough.
twins! { OwnLabel: filter, reads Reads::nothing().pod(&[PodField::Labels]), or Reads::nothing() }
filter! { OwnLabel: |cycle, _| cycle.pod.labels.label("example.com/team") != Some("red") }

twins! { OwnAnnotation: filter, reads Reads::nothing().pod(&[PodField::Annotations]), or Reads::nothing() }
filter! { OwnAnnotation: |cycle, _| cycle.pod.annotations.label("example.com/team") != Some("red") }

twins! { PodName: filter, reads Reads::nothing().pod(&[PodField::Name]), or Reads::nothing() }
filter! { PodName: |cycle, _| &*cycle.pod.name != "q" }

struct Alike<const HONEST: bool>;
impl<const HONEST: bool> Plugin for Alike<HONEST> {
    const NAME: &'static str = "Alike";
    type Args = NoArgs;
    fn new(_: NoArgs) -> Self {
        Alike
    }
    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Name]).alike()
    }
    fn alike(&self, pod: &Pod) -> u64 {
        if HONEST { u64::from(pod.name.starts_with('q')) } else { 0 }
    }
}
filter! { Alike: |cycle, _| !cycle.pod.name.starts_with('q') }

twins! { NodeCordon: filter, reads Reads::nothing().node(&[NodeField::Unschedulable]), or Reads::nothing() }
filter! { NodeCordon: |_, node| !node.facts().unschedulable }

twins! { OwnNodeLabel: filter, reads Reads::nothing().node(&[NodeField::Labels]), or Reads::nothing() }
filter! { OwnNodeLabel: |_, node| node.label("example.com/tier") != Some("gold") }

twins! {
    Neighbours: filter,
    reads Reads::nothing().node(&[NodeField::Pods, NodeField::Requested]).topology(),
    or Reads::nothing().node(&[NodeField::Pods, NodeField::Requested])
}
filter! { Neighbours: |cycle, _| cycle.cluster().nodes().map(|node| node.pods().len()).sum::<usize>() % 3 != 0 }

twins! { NodeCount: filter, reads Reads::nothing().all_nodes(), or Reads::nothing() }
filter! { NodeCount: |cycle, _| cycle.cluster().rows().len() % 2 == 0 }

twins! { Clock: filter, reads Reads::nothing().time(), or Reads::nothing() }
filter! { Clock: |cycle, _| cycle.context.now < Timestamp::from_seconds(86_400) }

twins! { Chance: filter, reads Reads::nothing().time(), or Reads::nothing() }
filter! { Chance: |cycle, _| cycle.context.seed == 0 }

#[derive(Clone, Default, Deserialize, Serialize)]
struct Sent(u32);

impl Memory for Sent {
    const NAME: &'static str = "Sent";
}

twins! { Remembering: filter reserve, reads Reads::nothing().memory(), or Reads::nothing(), remembers Sent }
filter! { Remembering: |cycle, _| cycle.context.memories.get::<Sent>().is_none_or(|sent| sent.0 < 2) }
impl<const HONEST: bool> Reserve for Remembering<HONEST> {
    fn reserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Sent>().0 += 1;
        Status::success()
    }
    fn unreserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Sent>().0 -= 1;
    }
}

#[derive(Deserialize)]
struct Quota {}

impl Kind for Quota {
    const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Quota", plural: "quotas" };
}

twins! { OwnKind: filter, reads Reads::nothing().kind::<Quota>(), or Reads::nothing() }
filter! { OwnKind: |cycle, _| cycle.cluster().objects().get::<Quota>("default", "limit").is_none() }

twins! { OtherNodes: filter, reads Reads::nothing().kind::<Quota>(), or Reads::nothing().of_node::<Quota>() }
filter! { OtherNodes: |cycle, _| cycle.cluster().objects().all::<Quota>().count() < 2 }

twins! { KnownKind: filter, reads Reads::nothing().kind::<Service>(), or Reads::nothing() }
filter! { KnownKind: |cycle, _| cycle.cluster().objects().all::<Service>().count() < 2 }

#[derive(PartialEq, Deserialize)]
struct Load {}

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

fn load() -> Query {
    Query::per_node::<Load>("load", QuerySource::NodeMetrics, |_, _| Ok(()))
}

twins! { Asking: filter, reads Reads::nothing().query(load()), or Reads::nothing() }
filter! { Asking: |cycle, node| cycle.object_of::<Load>(node).is_none() }

#[derive(Deserialize)]
struct AnyPod {}

twins! { Texts: filter, reads Reads::nothing().raw_objects(), or Reads::nothing() }
filter! { Texts: |cycle, _| cycle.pod.raw.as_ref().is_none_or(|raw| raw.parse::<AnyPod>().is_ok()) }

// The liar says that only pods of some priority concern it, and turns others away as well.
twins! {
    Unconcerned: filter,
    reads Reads::nothing().pod(&[PodField::Priority]),
    or Reads::nothing().pod(&[PodField::Priority]),
    concerns |honest, pod| honest || pod.priority() > 0
}
filter! { Unconcerned: |cycle, _| cycle.pod.priority() >= 0 }

fn taints(node: NodeRef<'_>) -> i64 {
    40 * i64::from(node.facts().unschedulable) + 20
}

/// A score by whether the node is cordoned, and how it becomes final.
macro_rules! score {
    ($name:ident: $points:ident $($more:ident)*, by $normalization:expr, $normalize:expr) => {
        twins! {
            $name: $points $($more)*,
            reads Reads::nothing().node(&[NodeField::Unschedulable]),
            or Reads::nothing().node(&[NodeField::Unschedulable])
        }
        impl<const HONEST: bool> Score for $name<HONEST> {
            fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
                Ok(taints(node) + cycle.get::<Seen>().map_or(0, |seen| seen.0))
            }
            fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
                let normalize: fn(&mut [NodeScore]) = $normalize;
                normalize(scores);
                Status::success()
            }
            fn normalization(&self) -> Normalization {
                if HONEST { Normalization::Unknown } else { $normalization }
            }
        }
    };
}

/// Whether any node was feasible.
#[derive(Clone)]
struct Seen(i64);

score! { Halved: score, by Normalization::None, |scores| scores.iter_mut().for_each(|score| score.score /= 2) }
fn average(scores: &mut [NodeScore]) {
    let sum: i64 = scores.iter().map(|score| score.score).sum();
    let average = sum / scores.len() as i64;
    scores.iter_mut().for_each(|score| score.score = average);
}
score! { Averaged: score, by Normalization::ByValues, |scores| average(scores) }
score! { Middling: score, by Normalization::ByRange, |scores| average(scores) }
score! { Feasible: score pre_score, by Normalization::None, |_| {} }
impl<const HONEST: bool> PreScore for Feasible<HONEST> {
    fn pre_score(&self, cycle: &mut Cycle<'_>, feasible: &[Row]) -> Status {
        cycle.put(Seen(i64::from(!feasible.is_empty())));
        Status::success()
    }
}

twins! {
    Rows: filter,
    reads Reads::nothing().node(&[NodeField::Requested, NodeField::Allocatable, NodeField::Pods]),
    or Reads::nothing().node(&[NodeField::Requested, NodeField::Allocatable, NodeField::Pods])
}
impl<const HONEST: bool> Filter for Rows<HONEST> {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if node.pods().len() > 1 { Status::unschedulable("full") } else { Status::success() }
    }
    fn filter_rows(&self, _: &Cycle<'_>, columns: ColumnView<'_>, passed: &mut [bool]) -> bool {
        let free = columns.free_pods().iter();
        free.zip(passed.iter_mut()).for_each(|(free, passed)| *passed &= *free > 1.0);
        !HONEST
    }
}

twins! {
    OneRow: filter,
    reads Reads::nothing().node(&[NodeField::Requested, NodeField::Allocatable, NodeField::Pods]),
    or Reads::nothing().node(&[NodeField::Requested, NodeField::Allocatable, NodeField::Pods])
}
impl<const HONEST: bool> Filter for OneRow<HONEST> {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if node.pods().len() > 1 { Status::unschedulable("full") } else { Status::success() }
    }
    fn filter_row(&self, _: &Cycle<'_>) -> Option<RowFilter> {
        (!HONEST).then(|| -> RowFilter { Box::new(|node| node.free_pods() > 1.0) })
    }
}

twins! {
    ScoreRow: score,
    reads Reads::nothing().node(&[NodeField::Requested, NodeField::Allocatable, NodeField::Pods]),
    or Reads::nothing().node(&[NodeField::Requested, NodeField::Allocatable, NodeField::Pods])
}
impl<const HONEST: bool> Score for ScoreRow<HONEST> {
    fn score(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(node.pods().len().min(100) as i64)
    }
    fn score_row(&self, _: &Cycle<'_>) -> Option<RowScore> {
        (!HONEST).then(|| -> RowScore { Box::new(|node| node.free_pods().clamp(0.0, 100.0) as i32) })
    }
}

twins! { Ageing: queue_sort, reads Reads::nothing(), or Reads::nothing() }
impl<const HONEST: bool> QueueSort for Ageing<HONEST> {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        let is_early = context.now < Timestamp::from_seconds(86_400);
        if is_early { a.queued_at < b.queued_at } else { a.queued_at > b.queued_at }
    }
    fn changes(&self) -> OrderChanges {
        if HONEST { OrderChanges::with_time(Duration::from_secs(60)) } else { OrderChanges::never() }
    }
}

twins! { Ranked: queue_sort, reads Reads::nothing(), or Reads::nothing() }
impl<const HONEST: bool> QueueSort for Ranked<HONEST> {
    fn less(&self, _: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        a.queued_at < b.queued_at
    }
    fn rank(&self, _: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        let rank = pod.queued_at.nanoseconds();
        Some([if HONEST { rank } else { -rank }, 0])
    }
}

/// Forgets to say that it remembers.
struct Forgetful;

impl Plugin for Forgetful {
    const NAME: &'static str = "Forgetful";
    type Args = NoArgs;
    fn new(_: NoArgs) -> Self {
        Forgetful
    }
    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.reserve()
    }
    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl Reserve for Forgetful {
    fn reserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Sent>().0 += 1;
        Status::success()
    }
    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

#[test]
fn remembering_without_saying_so_is_found() {
    let found = ReadsCheck::of::<Forgetful>().findings();
    let expected = "it panicked: the plugin Forgetful remembers Sent without saying so: \
                    list `.remembers::<…>()` in its `extensions`";
    assert_eq!(found, [expected]);
}

/// Values of the author's own: nobody asks for this label by name, and it is found all the same.
#[test]
fn values_of_the_authors_own_are_tried_out() {
    twins! { Counting: filter, reads Reads::nothing().pod(&[PodField::Labels]), or Reads::nothing() }
    filter! { Counting: |cycle, _| !cycle.pod.labels.iter().any(|(key, _)| key == "example.com/rare") }
    let check = ReadsCheck::of::<Counting<false>>();
    assert_eq!(check.findings(), [""; 0], "nobody has the label");
    let found = check.pod_label("example.com/rare", "x").findings();
    assert_eq!(found, ["the pod's Labels matters: declare `.pod(&[PodField::Labels])`"]);
    ReadsCheck::of::<Counting<true>>().pod_label("example.com/rare", "x").check();
}

#[test]
#[should_panic(expected = "Clock is not what it declares:\n  the time matters")]
fn a_check_fails_with_what_to_declare() {
    supercargo_testkit::check_reads::<Clock<false>>();
}
