//! Says where a pod would go and why there, or why nowhere and what would help.
//!
//! An explanation is a value ([`Explanation`]); a table, JSON or a web page are views of it. What it says would help has been
//! tried: each [`Hint`] comes from an evaluation in which the pod did fit.

mod capacity;
mod doubt;
mod explanation;
mod facts;
mod hints;
mod journal;
mod obstacles;
mod per_node;
mod placement;
mod remedy;
mod render;
mod shadow;
mod text;
mod what_if;
mod workloads;

pub use capacity::{
    COPIES_DEFAULT_MAX, COPIES_MAX, Capacity, CapacityLimit, CapacityOptions, CountingLimit, NodeCapacity,
    capacity, template,
};
pub use doubt::{
    Doubt, Missing, MissingReason, MissingReport, Part, doubt_sentence, doubts, kind_name, missing_sentence,
};
pub use explanation::{Explainer, Explanation, Verdict};
pub use journal::{
    Asked, Journal, JournalLimits, PastDecision, PastOutcome, PlaceReport, PodReport, QueueName, render_asked,
};
pub use obstacles::{Obstacle, Obstacles, Preemption};
pub use per_node::{NodeExample, OnItsNode, PerNode};
pub use placement::{Candidate, Placement, RunnerUp};
pub use remedy::{Hint, Remedy};
pub use render::{Detail, render, render_capacity};
pub use shadow::{
    Comparison, Difference, Judgement, Onlooker, PluginDifference, PluginRejections, Summary, Tally,
    UnclearProfile, compare, render_comparison, render_summary,
};
pub use workloads::{
    ADMISSION_KINDS, PODS_MADE_MAX, WorkloadError, WorkloadKind, WorkloadPods, WorkloadSummary, Workloads,
};
