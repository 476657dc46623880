//! What plugins are: a trait per extension point, and what a plugin is given and may ask for. Authors depend on `supercargo-sdk`,
//! which hands this on.
//!
//! A plugin is a name, its arguments, and the extension points it implements. This is a whole one:
//!
//! ```
//! use supercargo_framework::{Cycle, Extensions, Filter, NoArgs, Plugin, Registry, Status};
//! use supercargo_model::{LabelLookup, NodeRef};
//!
//! /// Keeps pods off nodes that are not labelled `cpu=true`.
//! struct CpuNodes;
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
//! }
//!
//! impl Filter for CpuNodes {
//!     fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
//!         match node.label("cpu") {
//!             Some("true") => Status::success(),
//!             _ => Status::unschedulable(format!("Node: {}", node.name())),
//!         }
//!     }
//! }
//!
//! let mut registry = Registry::default();
//! registry.register::<CpuNodes>()?;
//! # Ok::<(), supercargo_framework::DuplicatePlugin>(())
//! ```
//!
//! Everything else is an addition to that: [`Args`] for arguments, [`Plugin::reads`] for speed, [`Enqueue`] for
//! waking pods up only when it helps, [`Memory`] for what outlives a cycle, [`preemption`] for evicting pods by one's own
//! rules.

#![warn(missing_docs)]

mod acts;
mod args;
mod columns;
mod counting;
mod cycle;
mod diagnosis;
mod effects;
mod events;
mod extender;
mod likeness;
mod memory;
mod needs;
mod observe;
mod order;
mod page;
mod plugin;
mod points;
pub mod preemption;
mod profile;
mod queries;
mod quirks;
mod reads;
mod registry;
mod shared_map;
mod status;
mod typed;
pub mod witness;
mod writes;

pub use acts::{ACTS_PER_STEP_MAX, Act, Acts, AskedActs, GaugeValue};
pub use args::{Args, FieldProblem, FieldProblems, NoArgs, ProblemKind};
pub use columns::{Amount, ColumnResource, ColumnView, Columns, EXACT_AMOUNT_MAX, NodeNumbers};
pub use counting::{
    Cell, CountedFilter, CountedScore, Counter, Counts, DomainCounts, GroupDomains, Groups, MatcherTerm,
    PodMatcher, Scope, Tally, TermRole,
};
pub use cycle::{Context, Cycle, CycleState};
pub use diagnosis::{Diagnosis, Rejections, unfit_message};
pub use effects::{Conclusion, Effect, News, Notice, PodCondition, Step, Subject};
pub use events::{Actions, Awaited, Change, ClusterEvent, Enqueue, EventResource, Hearing, Hint};
pub use extender::{
    AskFailure, AskedNode, EXTENDER_SETTLES_AFTER, ExtenderAnswer, ExtenderQuestion, NodeVictims,
};
pub use likeness::{Likeness, Touched};
pub use memory::{
    DropReason, DroppedMemory, Memories, Memory, SAVED_BYTES_MAX, SAVED_MEMORY_BYTES_MAX, SavedMemories,
    UnsavedMemory,
};
pub use needs::{Needs, PodNeeds};
pub use observe::Observe;
pub use order::OrderChanges;
pub use page::{Page, PageRequest, Rendered, escape_html};
pub use plugin::{Extensions, Plugin, PluginInstance, Point};
pub use points::{
    Bind, Filter, MAX_NODE_SCORE, NodeRehearsal, NodeScore, Nomination, Normalization, Permit,
    PermitDecision, Plan, PostBind, PostFilter, PostFilterResult, PreBind, PreEnqueue, PreFilter,
    PreFilterResult, PreScore, QueueRank, QueueSort, QueuedPod, Rehearsal, Reserve, RowFilter, RowScore,
    Score, StaysPending, TieBreak,
};
pub use profile::{Named, Profile};
pub use queries::{
    Answer, Endpoint, FACTS_GROUP, Fact, FactForm, Facts, HttpMethod, HttpSource, LeftOut, LeftOutReason,
    LineSource, NodeFacts, NodeUsage, NodeValues, PodAnswer, PrometheusRange, PrometheusSource, Query,
    QuerySource, QueryTls, Question, ResolvedFacts, SAMPLE_FUTURE_MAX, Sample, Series, Strangers, fact_kind,
    is_fact_kind,
};
pub use quirks::{DIFFERENCES, Difference, Fixes, QUIRKS, Quirk, quirks_reference};
pub use reads::{Field, FieldSet, NodeField, PodField, Reads, Unread};
pub use registry::{DuplicatePlugin, PluginType, Registry};
pub use shared_map::{SharedMap, SharedMapEntries};
pub use status::{Code, Status};
pub use writes::{Verb, Write, Writes};
