//! What a driver tells of its scheduler: to metrics, to a journal, to whoever looks at a simulation.

use std::time::Duration;

use supercargo_framework::Profile;
use supercargo_model::{KindId, Timestamp};

use crate::decision::Decision;
use crate::scheduler::{AnswerTaken, Gauges, MemoriesKept, Observation, QueueEvent, Scheduler, Whereabouts};

/// A pod was tried.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The decision that came of the attempt.
    pub decision: &'a Decision,
    /// How often the pod was tried, this time included; 0 if that is told when it is bound.
    pub number: u32,
    /// The profile whose plugins decided.
    pub profile: &'a Profile,
    /// How long the decision took.
    pub took: Duration,
}

impl<'a> Attempt<'a> {
    /// The attempt that a decision of this scheduler ended; none if the pod's profile has gone since.
    pub fn of(scheduler: &'a Scheduler, decision: &'a Decision, took: Duration) -> Option<Self> {
        let name = &*decision.pod.spec.scheduler_name;
        let profile = scheduler.profiles().iter().find(|profile| profile.scheduler_name == name)?;
        let number = scheduler.attempts_of(&decision.pod.uid).unwrap_or_default();
        Some(Attempt { decision, number, profile, took })
    }
}

/// Hears what a driver and its scheduler do. All methods are called between two steps of the scheduler and must not take long.
pub trait Observer: Send {
    /// A pod was tried.
    fn decided(&mut self, attempt: Attempt<'_>);

    /// The scheduler did something else. What concerns an attempt comes after it.
    fn observed(&mut self, observation: Observation);

    /// The scheduler was told of an object, which took so long.
    fn told(&mut self, event: QueueEvent, took: Duration);

    /// Everything of a kind had to be listed again.
    fn listed_again(&mut self, kind: KindId);

    /// An object of a kind came or changed, and could not be read.
    fn could_not_read(&mut self, kind: KindId) {
        let _ = kind;
    }

    /// What was done in the cluster so far, told when it is told how things stand.
    fn performed(&mut self, counts: PerformCounts);

    /// A query was asked once.
    fn queried(&mut self, asked: QueryAsked<'_>);

    /// Something became of what plugins remember and want saved.
    fn kept(&mut self, kept: &MemoriesKept) {
        let _ = kept;
    }

    /// How things stand, about once a second and after pods were tried.
    fn gauges(&mut self, gauges: &Gauges);
}

/// What came of asking a query once.
#[derive(Clone, Copy, Debug)]
pub struct QueryAsked<'a> {
    /// Its name.
    pub query: &'a str,
    /// `success`, or in a word why there is no answer.
    pub result: &'static str,
    /// How long it took.
    pub took: Duration,
    /// How long the answer is, in bytes.
    pub bytes: usize,
    /// What became of the answer; none if there is none.
    pub taken: Option<&'a AnswerTaken>,
    /// When the answer was taken.
    pub now: Timestamp,
}

/// What was done in a cluster so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerformCounts {
    /// Bindings that were made.
    pub bound: u64,
    /// Bindings that failed.
    pub bindings_failed: u64,
    /// Events that were told, or counted where they had been told before.
    pub events_told: u64,
    /// Events that were not told, because there were too many or the server did not take them.
    pub events_lost: u64,
}

/// Where a pod is, by what a driver knows.
#[derive(Clone, Debug)]
pub struct Located {
    /// The time at which the pod was looked for.
    pub now: Timestamp,
    /// Whether pods are tried here.
    pub leads: bool,
    /// The pod's place on its way to a node; none if it has arrived on one, or is not known.
    pub whereabouts: Option<Whereabouts>,
}
