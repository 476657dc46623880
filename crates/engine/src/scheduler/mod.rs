//! The whole scheduler, without the world: what happens goes in, what is to be done comes out.
//!
//! A driver tells the [`Scheduler`] of every object that came, changed or went ([`Scheduler::put`], [`Scheduler::remove`],
//! [`Scheduler::retain`]), lets it try pods ([`Scheduler::schedule_next`]), carries out its orders
//! ([`Scheduler::take_orders`]), says how they went ([`Scheduler::conclude`]), and wakes it when time has passed
//! ([`Scheduler::next_deadline`], [`Scheduler::advance`]). Nothing here does I/O or reads a clock, so a live cluster, a
//! simulation and a test drive the same scheduler.

mod attempts;
mod binding;
mod consulting;
mod eviction;
mod happenings;
mod heap;
mod house;
mod objects;
mod observations;
mod queue;
mod replacing;
mod whereabouts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use supercargo_framework::{AskFailure, Conclusion, Effect, ExtenderAnswer, Notice, Profile};
use supercargo_model::{Decoded, KindId, ObjectKey, Pod, Snapshot, Timestamp};

use crate::decision::Decision;
use crate::engine::{Engine, EngineOptions};
use binding::Binding;
use consulting::Consultation;
pub use consulting::ExtenderSettings;
use eviction::Eviction;
use happenings::Happening;
use house::House;
pub use observations::{Observation, QueueEvent, QueuePart, Standing, Stopwatch};
pub use queue::QueueLengths;
use queue::{Patience, Queue};
pub use whereabouts::{PodPlace, Whereabouts};

/// How a [`Scheduler`] behaves.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerOptions {
    /// How it decides.
    pub engine: EngineOptions,
    /// How long a pod waits after its first failed attempt; each further one doubles it.
    pub initial_backoff: Duration,
    /// How long a pod waits at most.
    pub max_backoff: Duration,
    /// How long a pod that fits nowhere waits for something to happen, before it is tried all the same.
    pub max_unschedulable: Duration,
}

/// Something for the driver to do.
#[derive(Clone, Debug)]
pub struct Order {
    /// Whoever waits for it to be done is told under this number.
    pub ticket: Option<Ticket>,
    /// What to do.
    pub effect: Effect,
}

/// The number of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Everything of one kind that there is.
#[derive(Clone, Debug)]
pub enum Everything {
    /// The UIDs of all pods.
    Pods(BTreeSet<Box<str>>),
    /// The names of all nodes.
    Nodes(BTreeSet<Box<str>>),
    /// All objects of another kind.
    Objects(KindId, BTreeSet<ObjectKey>),
}

/// A scheduler.
#[derive(Debug)]
pub struct Scheduler {
    engine: Engine,
    queue: Queue,
    /// The pods that were given a node and are not bound yet, by UID, in the order in which they were decided.
    bindings: IndexMap<Arc<str>, Binding, FxBuildHasher>,
    /// The pods that count as bound though the API server has not said so yet.
    assumed: FxHashSet<Arc<str>>,
    /// The pods for which others are being evicted.
    evictions: IndexMap<Arc<str>, Eviction, FxBuildHasher>,
    /// The same by UID, as the queue wants to know them.
    preempting: FxHashSet<Arc<str>>,
    extenders: Vec<ExtenderSettings>,
    /// The attempt that waits for extenders. There is no other meanwhile.
    consultation: Option<Consultation>,
    /// Who waits for an order.
    tickets: FxHashMap<Ticket, Waiter>,
    last_ticket: u64,
    orders: Vec<Order>,
    stopwatch: Stopwatch,
}

/// Who waits for an order to be carried out.
#[derive(Clone, Debug)]
enum Waiter {
    /// A step of the binding of this pod.
    Binding(Arc<str>),
    /// The pod that these others make room for.
    Eviction { preemptor: Arc<str>, victim: Arc<Pod> },
    /// The attempt to place this pod, for which an extender is asked.
    Consultation { pod: Arc<str>, extender: usize },
}

impl Scheduler {
    /// A scheduler with an empty cluster.
    pub fn new(profiles: Vec<Profile>, options: SchedulerOptions) -> Self {
        let SchedulerOptions { engine, initial_backoff, max_backoff, max_unschedulable } = options;
        Scheduler {
            engine: Engine::new(profiles, engine),
            queue: Queue::new(Patience { initial_backoff, max_backoff, max_unschedulable }),
            bindings: IndexMap::default(),
            assumed: FxHashSet::default(),
            evictions: IndexMap::default(),
            preempting: FxHashSet::default(),
            extenders: Vec::new(),
            consultation: None,
            tickets: FxHashMap::default(),
            last_ticket: 0,
            orders: Vec::new(),
            stopwatch: Stopwatch::default(),
        }
    }

    /// The cluster as the scheduler sees it: pods that it has given a node count as bound.
    pub fn cluster(&mut self) -> &Snapshot {
        self.engine.cluster.snapshot()
    }

    /// The profiles, in the order of the configuration.
    pub fn profiles(&self) -> &[Profile] {
        self.engine.profiles()
    }

    /// How many pods wait.
    pub fn queue_lengths(&self) -> QueueLengths {
        self.queue.lengths()
    }

    /// What the driver is to do. What belongs to different pods may be done side by side.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// How an order went, as far as that is known.
    pub fn conclude(&mut self, ticket: Ticket, conclusion: &Conclusion, now: Timestamp) {
        let result = conclusion.error().map_or(Ok(()), |error| Err(error.to_owned()));
        match self.tickets.remove(&ticket) {
            None => {}
            Some(Waiter::Binding(uid)) => self.conclude_step(&uid, result, now),
            Some(Waiter::Eviction { preemptor, victim }) => {
                self.conclude_eviction(&preemptor, &victim, result.is_ok(), now);
            }
            Some(Waiter::Consultation { pod, extender }) => {
                let error = result.err().unwrap_or_else(|| "the extender gave no answer".to_owned());
                self.hear(&pod, extender, Err(error), now);
            }
        }
    }

    /// What the API server itself says of a pod that an [`Effect::LookUp`] is about: the pod of that name if there is one,
    /// perhaps with another UID; an error if it could not be read.
    pub fn looked_up(&mut self, ticket: Ticket, found: Result<Option<Decoded>, String>, now: Timestamp) {
        let _ = (ticket, found, now);
    }

    /// What an extender answered, or why it did not. If that decides a pod, the decision.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Result<ExtenderAnswer, AskFailure>,
        now: Timestamp,
    ) -> Option<Decision> {
        match self.tickets.get(&ticket)? {
            Waiter::Consultation { pod, extender } => {
                let (pod, extender) = (pod.clone(), *extender);
                self.tickets.remove(&ticket);
                self.hear(&pod, extender, answer.map_err(|failure| failure.error().to_owned()), now)
            }
            _ => {
                let conclusion = match answer {
                    Ok(_) => Conclusion::Done,
                    Err(AskFailure::Answered(error)) => Conclusion::Unknown { error, is_answered: true },
                    Err(AskFailure::Unanswered(error)) => Conclusion::Unknown { error, is_answered: false },
                };
                self.conclude(ticket, &conclusion, now);
                None
            }
        }
    }

    /// When [`Scheduler::advance`] has something to do at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let bindings = self.bindings.values().filter_map(Binding::deadline);
        bindings.chain(self.queue.next_deadline()).min()
    }

    /// Does what is due: backoffs that have passed, waits that were too long.
    pub fn advance(&mut self, now: Timestamp) {
        self.with_house(now, Queue::advance);
        let is_due = |binding: &Binding| binding.deadline().is_some_and(|deadline| deadline <= now);
        let due: Vec<Arc<str>> =
            self.bindings.iter().filter(|(_, binding)| is_due(binding)).map(|(uid, _)| uid.clone()).collect();
        for uid in due {
            self.time_out(&uid, now);
        }
    }

    fn order(&mut self, effect: Effect) {
        self.orders.push(Order { ticket: None, effect });
    }

    fn order_and_wait(&mut self, effect: Effect, waiter: Waiter) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tickets.insert(ticket, waiter);
        self.orders.push(Order { ticket: Some(ticket), effect });
    }

    fn record(&mut self, notice: Notice) {
        self.order(Effect::Record(notice));
    }

    /// Tells whoever waits for it that something happened.
    fn happened(&mut self, happening: Happening, now: Timestamp) {
        self.happened_to(happening, now, |_| true);
    }

    /// The same, where it can help only some of the waiting pods.
    fn happened_to(&mut self, happening: Happening, now: Timestamp, concerned: impl Fn(&Pod) -> bool) {
        self.resume_bindings(&happening, now);
        if self.queue.listens() {
            self.with_house(now, |queue, house| queue.react(house, happening, concerned));
        }
    }

    /// Whether anybody waits for something to happen.
    fn anybody_listens(&self) -> bool {
        self.queue.listens() || self.bindings.values().any(Binding::listens)
    }

    fn with_house<R>(&mut self, now: Timestamp, act: impl FnOnce(&mut Queue, &House<'_>) -> R) -> R {
        let (context, profiles) = self.engine.view(now);
        act(&mut self.queue, &House { context, profiles, preempting: &self.preempting })
    }
}
