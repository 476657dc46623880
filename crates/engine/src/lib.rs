//! Decides for a pod, on one immutable snapshot of the cluster, with the plugins of one profile.
//!
//! [`evaluate()`] runs all plugins on all nodes and returns every word they said, as an [`Evaluation`]. [`Engine`] keeps
//! a cluster and its profiles and returns a small [`Decision`] for each pod, which it can unfold into the whole
//! evaluation when somebody looks. Nothing here does I/O, reads a clock or draws a random number of its own: the same
//! cluster, pod and seed always give the same answer.

mod among;
mod chance;
mod decision;
mod engine;
mod evaluate;
mod filtering;
mod index;
mod observer;
mod pace;
#[doc(hidden)]
pub mod planted;
mod rehearsal;
mod sampling;
mod scheduler;
mod scoring;
mod unplaced;

pub use among::{ScoresAmong, feasible_among, filter_among, preempt_among, score_among};
pub use chance::{Seed, Ties};
pub use decision::{Decision, Outcome};
pub use engine::{Engine, EngineOptions, Indexing, StaleDecision, UnknownProfile, counted_pods};
pub use evaluate::{Evaluation, FilterWord, PluginScores, Rules, Thoroughness, evaluate};
pub use index::{IndexLimits, IndexStatistics, PlainDecisions, PlainReason};
pub use observer::{Attempt, Located, Observer, PerformCounts, QueryAsked};
pub use pace::{Leading, NextTurn, Pace, Surroundings};
pub use scheduler::{
    AnswerTaken, Books, ExtenderSettings, Gauges, MemoriesKept, Observation, Order, Panicked, PodPlace,
    PodQuestion, QueueEvent, QueueLengths, QueuePart, Refusal, SAVE_INTERVAL, Scheduler, SchedulerOptions,
    Stopwatch, Ticket, Whereabouts, caught,
};

#[cfg(test)]
mod tests;
