//! What the author of a plugin depends on: one crate, and nothing of the machinery that runs plugins.
//!
//! A plugin is a name, its arguments, and the extension points at which it has something to say. This is a whole one:
//!
//! ```
//! use supercargo_sdk::prelude::*;
//!
//! /// Keeps pods off nodes that are not labelled `cpu=true`.
//! pub struct CpuNodes;
//!
//! impl Plugin for CpuNodes {
//!     const NAME: &'static str = "CpuNodes";
//!     type Args = NoArgs;
//!
//!     fn new(_: NoArgs) -> Self {
//!         CpuNodes
//!     }
//!
//!     fn extensions(points: Extensions<Self>) -> Extensions<Self> {
//!         points.filter()
//!     }
//!
//!     fn reads(&self) -> Reads {
//!         Reads::nothing().node(&[NodeField::Labels])
//!     }
//! }
//!
//! impl Filter for CpuNodes {
//!     fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
//!         match node.label("cpu") {
//!             Some("true") => Status::success(),
//!             _ => Status::unschedulable("node(s) had no label cpu=true"),
//!         }
//!     }
//! }
//! ```
//!
//! A program that schedules with it is one call of the crate `supercargo`, in which every subcommand knows the plugin:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     supercargo::main_with(|plugins| plugins.add::<CpuNodes>())
//! }
//! ```
//!
//! Arguments are a struct that [`serde`] reads, without a dependency of one's own:
//!
//! ```
//! use supercargo_sdk::prelude::*;
//!
//! #[derive(Clone, Debug, Default, Deserialize, Serialize)]
//! #[serde(crate = "supercargo_sdk::serde", default, deny_unknown_fields, rename_all = "camelCase")]
//! pub struct CpuNodesArgs {
//!     /// Nodes with fewer cores are left out.
//!     min_cores: i64,
//! }
//!
//! impl Args for CpuNodesArgs {
//!     fn validate(&self, problems: &mut FieldProblems) {
//!         if self.min_cores < 0 {
//!             problems.invalid("minCores", self.min_cores, "must not be negative");
//!         }
//!     }
//! }
//! ```
//!
//! Tests use the module `testkit`, which the feature of that name brings: name it in the dev-dependencies. It tries a plugin at each
//! of its points, and has a `World` in which it runs beside Kubernetes' own while time passes.
//!
//! | for | see |
//! |---|---|
//! | the extension points | [`PreEnqueue`], [`QueueSort`], [`PreFilter`], [`Filter`], [`PostFilter`], [`PreScore`], [`Score`], [`Reserve`], [`Permit`], [`PreBind`], [`Bind`], [`PostBind`] |
//! | answers | [`Status`], [`PreFilterResult`], [`PermitDecision`], [`Step`] |
//! | acting on other pods, writing, waking later, counting | [`Acts`], [`Writes`], [`Observe`] |
//! | showing what it knows | [`Page`] |
//! | speed | [`Plugin::reads`], [`Normalization`], [`columns`], [`counting`] |
//! | waking pods up when it helps | [`Enqueue`] |
//! | what outlives a cycle | [`Memory`], [`SharedMap`] |
//! | evicting pods by one's own rules | [`preemption`] |
//! | what somebody outside says | [`Query`], [`PrometheusSource`], [`fact_kind`]; about one pod [`Question`] |
//! | objects of other kinds | [`Kind`], [`kinds`], [`RawObject`] |

#![warn(missing_docs)]

pub mod prelude;

pub use {serde, serde_json};

pub use supercargo_framework::preemption;
pub use supercargo_framework::{
    ACTS_PER_STEP_MAX, Act, Actions, Acts, Answer, Args, AskedActs, Awaited, Bind, Change, ClusterEvent,
    Code, Conclusion, Context, Cycle, Effect, Endpoint, Enqueue, EventResource, Extensions, Fact, FactForm,
    Facts, FieldProblem, FieldProblems, Filter, Fixes, Hint, HttpMethod, HttpSource, LeftOut, LeftOutReason,
    Likeness, LineSource, MAX_NODE_SCORE, Memories, Memory, News, NoArgs, NodeFacts, NodeField,
    NodeRehearsal, NodeScore, NodeUsage, NodeValues, NodeVictims, Nomination, Normalization, Notice, Observe,
    OrderChanges, Page, PageRequest, Permit, PermitDecision, Plan, Plugin, PodCondition, PodField, Point,
    PostBind, PostFilter, PostFilterResult, PreBind, PreEnqueue, PreFilter, PreFilterResult, PreScore,
    ProblemKind, PrometheusRange, PrometheusSource, Query, QuerySource, QueryTls, Question, QueueRank,
    QueueSort, QueuedPod, Reads, Rehearsal, Rejections, Rendered, Reserve, Sample, Score, Series, SharedMap,
    SharedMapEntries, Status, StaysPending, Step, Subject, TieBreak, Touched, Unread, Verb, Write, Writes,
    escape_html, fact_kind,
};
pub use supercargo_model::cluster::{ClaimUsers, ObjectChange};
pub use supercargo_model::{
    GoDuration, InvalidDuration, Kind, KindId, LabelLookup, LabelSelector, Labels, MetadataWords, Node,
    NodeRef, NodeSelector, Object, ObjectKey, Objects, Pod, PodSet, PodSpec, Pods, Quantity, RawObject,
    ResourceList, Resources, Row, SelectableNode, Snapshot, Standing, StandingCounts, StandingPod, Timestamp,
};
pub use supercargo_model::{kinds, labels, node_selector, pod, quantity, resources, taints, wire};

/// Many nodes at a time: for filters and scores that are loops over numbers.
pub mod columns {
    pub use supercargo_framework::{
        Amount, ColumnResource, ColumnView, Columns, EXACT_AMOUNT_MAX, NodeNumbers, RowFilter, RowScore,
    };
}

/// Answers that depend on other nodes only through counts of pods.
pub mod counting {
    pub use supercargo_framework::{
        Cell, CountedFilter, CountedScore, Counter, Counts, DomainCounts, Groups, MatcherTerm, PodMatcher,
        Scope, Tally, TermRole,
    };
}

/// Pods, nodes and clusters for tests, in a few words each, one plugin tried out on them, and a whole scheduler with it.
///
/// ```
/// use supercargo_sdk::prelude::*;
/// use supercargo_sdk::testkit::{cluster, node, pod, trial};
/// # struct Ssd;
/// # impl Plugin for Ssd {
/// #     const NAME: &'static str = "Ssd";
/// #     type Args = NoArgs;
/// #     fn new(_: NoArgs) -> Self { Ssd }
/// #     fn extensions(points: Extensions<Self>) -> Extensions<Self> { points.filter() }
/// #     fn reads(&self) -> Reads { Reads::nothing().node(&[NodeField::Labels]) }
/// # }
/// # impl Filter for Ssd {
/// #     fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
/// #         if node.label("disk") == Some("ssd") { Status::success() } else { Status::unschedulable("no SSD") }
/// #     }
/// # }
///
/// let mut cluster = cluster().with(node("fast").label("disk", "ssd")).with(node("slow"));
/// assert_eq!(trial::<Ssd>().filter(&mut cluster, pod("a").cpu("100m")), ["fast: ok", "slow: unschedulable: no SSD"]);
///
/// // It lists all points that it implements, and declares all that it reads.
/// supercargo_sdk::testkit::check_points!(Ssd);
/// supercargo_sdk::testkit::check_reads::<Ssd>();
///
/// // Beside Kubernetes' own plugins, in a cluster in virtual time.
/// use supercargo_sdk::testkit::{World, json};
/// let mut world = World::of::<Ssd>();
/// world.put(node("n1"));
/// world.put(pod("a"));
/// world.run();
/// assert_eq!(world.place_of("a"), "unschedulable: Ssd");
/// world.change("Node n1", &json!({ "metadata": { "labels": { "disk": "ssd" } } }));
/// world.pass(2);
/// assert_eq!(world.node_of("a"), Some("n1"));
/// ```
#[cfg(feature = "testkit")]
pub mod testkit {
    pub use serde_json::json;
    pub use supercargo_testkit::*;
    pub use supercargo_world::{World, only};
}
