//! The whole scheduler, without the world: what happens goes in, what is to be done comes out.
//!
//! A driver tells the [`Scheduler`] of every object that came, changed or went ([`Scheduler::put`], [`Scheduler::remove`],
//! [`Scheduler::retain`]), lets it try pods ([`Scheduler::schedule_next`]), carries out its orders
//! ([`Scheduler::take_orders`]), says how they went ([`Scheduler::conclude`]), and wakes it when time has passed
//! ([`Scheduler::next_deadline`], [`Scheduler::advance`]). Nothing here does I/O or reads a clock, so a live cluster, a
//! simulation and a test drive the same scheduler.
//!
//! # Words
//!
//! - *active*, *backoff*, *error backoff* (`queue.rs`): kube-scheduler's `activeQ`, `podBackoffQ`, `podErrorBackoffQ`.
//! - *idle* (`queue/idle.rs`): pods at `Place::Unschedulable`, kube-scheduler's `unschedulablePods`; *hopeful* and *in vain* are sets of
//!   them that an event may, or cannot, help.
//! - *in flight*, *happening* (`queue/happened.rs`): a pod that is being tried, and what happened meanwhile (`inFlightPods`,
//!   `inFlightEvents`).
//! - *gate*, *held*: what keeps a pod from being tried at all (PreEnqueue, its victims, a profile that is gone), and a pod that it keeps.
//! - *slot* (`heap.rs`): a pod's number in the queue. *Standing*: how the cluster counts it (`model/src/cluster/standings.rs`).
//! - *assumed*: has a `Binding`, or is *unconfirmed* (bound, but the watch has not said so).
//! - *stage*, *round*, *ticket*, *waiter*, *evidence* (`binding.rs`): how far a binding is; its orders that belong together; one order's
//!   number; who waits for it; what answers say about whether the pod is bound.
//! - *consultation* (`consulting.rs`): an attempt that waits for extenders. *Inquiry* (`questions.rs`): a pod that waits for answers to a
//!   plugin's *question*.
//!
//! Its tests drive it with the real plugins, which this crate does not know: see `conformance/tests/scheduler`.

mod acting;
mod attempts;
mod binding;
mod bindings;
mod catching;
mod clock_set;
mod conditions;
mod consulting;
mod delivering;
mod directing;
mod eviction;
mod facts;
mod happenings;
mod heap;
mod leading;
mod nominating;
mod objects;
mod observations;
mod observing;
mod pages;
mod questions;
mod queue;
mod queue_context;
mod replacing;
mod saving;
mod standings;
mod whereabouts;

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use supercargo_framework::{
    AskFailure, Conclusion, Effect, ExtenderAnswer, Memories, Nomination, Notice, Profile,
};
use supercargo_model::{Cluster, Decoded, Pod, Snapshot, Timestamp};

use crate::decision::Decision;
use crate::engine::{Engine, EngineOptions};
use crate::planted::{Bug, is_planted};
use binding::Asked;
use bindings::Bindings;
pub use catching::{Panicked, caught};
use consulting::Consultation;
pub use consulting::ExtenderSettings;
use delivering::Deliveries;
use eviction::Evictions;
pub use facts::AnswerTaken;
use facts::Queries;
pub use observations::{Books, Gauges, Observation, QueueEvent, QueuePart, Refusal, Stopwatch};
use observing::Observers;
use questions::Inquiries;
pub use questions::PodQuestion;
pub use queue::QueueLengths;
use queue::{Patience, Queue};
use queue_context::QueueContext;
pub use saving::{MemoriesKept, SAVE_INTERVAL};
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

impl SchedulerOptions {
    /// With the delays that kube-scheduler has if nobody says otherwise.
    pub fn new(engine: EngineOptions) -> Self {
        SchedulerOptions {
            engine,
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            max_unschedulable: Duration::from_secs(300),
        }
    }
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

/// A scheduler. A clone goes its own way from here on, and decides as its original would; it costs little more than what waits and is on
/// its way. Orders that were not answered yet have the same numbers in both.
#[derive(Clone, Debug)]
pub struct Scheduler {
    engine: Engine,
    queue: Queue,
    /// The pods that were given a node, and are not known to be bound yet.
    bindings: Bindings,
    /// What happened and is being told.
    deliveries: Deliveries,
    /// The pods whose binders say that they bound them, and that the watch has not told of yet. With those in `bindings` they
    /// are the assumed pods.
    unconfirmed: FxHashSet<Arc<str>>,
    /// The pods that a look-up has found to be on their way out without a node, or to have run their course, before the watch has told so.
    over: FxHashSet<Arc<str>>,
    /// The pods for which others are being evicted.
    evictions: Evictions,
    extenders: Vec<ExtenderSettings>,
    /// The attempt that waits for extenders. There is no other meanwhile.
    consultation: Option<Consultation>,
    /// Who waits for an order.
    tickets: FxHashMap<Ticket, Waiter>,
    last_ticket: u64,
    /// The last number that was given to orders which belong together.
    last_round: u64,
    orders: Vec<Order>,
    /// Whether this replica leads: if not, no pod is tried, and nothing is written.
    leads: bool,
    stopwatch: Stopwatch,
    /// What plugins remembered when that was last saved.
    saved: Memories,
    /// Plugins that hear of changes.
    observers: Observers,
    /// What is asked outside for the plugins.
    queries: Queries,
    /// The pods about which somebody outside is asked.
    inquiries: Inquiries,
    /// Whether everything was listed.
    is_cluster_known: bool,
    /// When it was last found out which plugin is slow.
    slow_asked: Option<Timestamp>,
}

/// Who waits for an order to be carried out.
#[derive(Clone, Debug)]
enum Waiter {
    /// A step of a binding.
    Binding(Asked),
    /// A binding that does not know whether its pod is bound.
    LookUp(Asked),
    /// The pod that this victim makes room for, by the round of its eviction.
    Eviction { preemptor: Arc<Pod>, round: u64, victim: Arc<Pod> },
    /// What a pod says about its scheduling.
    Status { pod: Arc<Pod> },
    /// The attempt of this number, for which an extender is asked.
    Consultation { pod: Arc<str>, attempt: u64, extender: usize },
    /// A plugin that observes, and that ordered this.
    Plugin { plugin: &'static str, effect: Box<Effect> },
}

impl Scheduler {
    /// A scheduler with an empty cluster.
    pub fn new(profiles: Vec<Profile>, options: SchedulerOptions) -> Self {
        let SchedulerOptions { engine, initial_backoff, max_backoff, max_unschedulable } = options;
        let patience = Patience { initial_backoff, max_backoff, max_unschedulable };
        let mut queue = Queue::new(patience, &profiles);
        let mut engine = Engine::new(profiles, engine);
        engine.cluster.note_changed_sets();
        queue.tell_standings(engine.cluster.counts_pods());
        Scheduler {
            observers: Observers::of(engine.profiles()),
            queries: Queries::of(engine.profiles()),
            inquiries: Inquiries::default(),
            is_cluster_known: true,
            slow_asked: None,
            saved: Memories::default(),
            engine,
            queue,
            bindings: Bindings::default(),
            deliveries: Deliveries::default(),
            unconfirmed: FxHashSet::default(),
            over: FxHashSet::default(),
            evictions: Evictions::default(),
            extenders: Vec::new(),
            consultation: None,
            tickets: FxHashMap::default(),
            last_ticket: 0,
            last_round: 0,
            orders: Vec::new(),
            leads: true,
            stopwatch: Stopwatch::default(),
        }
    }

    /// The cluster as the scheduler sees it: pods that it has given a node count as bound.
    pub fn cluster(&mut self) -> &Snapshot {
        self.engine.cluster.snapshot()
    }

    /// The cluster once more, to try things out on. A copy costs some pointers for every 64 nodes, and none for a pod.
    pub fn copy_of_cluster(&self) -> Cluster {
        self.engine.cluster.clone()
    }

    /// The profiles, in the order of the configuration.
    pub fn profiles(&self) -> &[Profile] {
        self.engine.profiles()
    }

    /// What plugins remember.
    pub fn memories(&mut self) -> &Memories {
        self.engine.memories()
    }

    /// How many pods wait.
    pub fn queue_lengths(&self) -> QueueLengths {
        self.queue.lengths()
    }

    /// What the driver is to do. What belongs to different pods may be done side by side.
    pub fn take_orders(&mut self) -> Vec<Order> {
        // The next list is as long as this one, as a rule.
        let next = Vec::with_capacity(self.orders.len());
        std::mem::replace(&mut self.orders, next)
    }

    /// How an order went, as far as that is known. An answer that nobody waits for any more changes nothing.
    pub fn conclude(&mut self, ticket: Ticket, conclusion: &Conclusion, now: Timestamp) {
        let error = || conclusion.error().unwrap_or("there was no answer").to_owned();
        match self.take_waiter(ticket) {
            None => self.observe(Observation::AnswerDropped),
            Some(Waiter::Binding(asked)) => self.conclude_step(&asked, conclusion, now),
            Some(Waiter::LookUp(asked)) => self.resolve(&asked, Err(error()), now),
            Some(Waiter::Eviction { preemptor, round, victim }) => {
                self.conclude_eviction(&preemptor, round, &victim, conclusion, now);
            }
            Some(Waiter::Consultation { pod, attempt, extender }) => {
                self.hear(&pod, attempt, extender, Err(error()), now);
            }
            Some(Waiter::Status { pod }) => self.conclude_status(&pod, conclusion),
            Some(Waiter::Plugin { plugin, effect }) => {
                if let Effect::UpdateStatus { pod, .. } = &*effect {
                    // It may have taken the place of what was to be said before.
                    self.conclude_status(pod, conclusion);
                }
                self.conclude_for_plugin(plugin, &effect, conclusion, now);
            }
        }
        self.carry_out_acts(now);
    }

    /// What the API server itself says of a pod that an [`Effect::LookUp`] is about: the pod of that name if there is one,
    /// perhaps with another UID; an error if it could not be read.
    pub fn looked_up(&mut self, ticket: Ticket, found: Result<Option<Decoded>, String>, now: Timestamp) {
        match self.take_waiter(ticket) {
            Some(Waiter::LookUp(asked)) => self.resolve(&asked, found, now),
            _ => self.observe(Observation::AnswerDropped),
        }
        self.carry_out_acts(now);
    }

    /// Who waits for an order. Each order is answered once.
    fn take_waiter(&mut self, ticket: Ticket) -> Option<Waiter> {
        if is_planted(Bug::TicketsStay) {
            return self.tickets.get(&ticket).cloned();
        }
        self.tickets.remove(&ticket)
    }

    /// What an extender answered, or why it did not. If that decides a pod, the decision.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Result<ExtenderAnswer, AskFailure>,
        now: Timestamp,
    ) -> Option<Decision> {
        match self.tickets.get(&ticket) {
            Some(Waiter::Consultation { pod, attempt, extender }) => {
                let (pod, attempt, extender) = (pod.clone(), *attempt, *extender);
                self.tickets.remove(&ticket);
                let answer = answer.map_err(|failure| failure.error().to_owned());
                let decision = self.hear(&pod, attempt, extender, answer, now);
                self.carry_out_acts(now);
                decision
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
        let deadlines = [
            self.bindings.next_deadline(),
            self.queue.next_deadline(),
            self.observers.next_deadline(),
            self.queries.next_deadline(),
            self.inquiries.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due: backoffs that have passed, waits that were too long, facts that are too old.
    pub fn advance(&mut self, now: Timestamp) {
        self.drop_old_facts(now);
        self.end_inquiries(now);
        self.start_observers(now);
        let unwritten = self.with_queue(now, Queue::advance);
        self.say_again(unwritten, now);
        for due in self.bindings.due(now) {
            self.time_out(&due, now);
        }
        self.wake_observers(now);
        self.carry_out_acts(now);
    }

    fn order(&mut self, effect: Effect) {
        if !self.leads {
            return;
        }
        if let Effect::UpdateStatus { pod, .. } = &effect {
            let waiter = Waiter::Status { pod: pod.clone() };
            return self.order_and_wait(effect, waiter);
        }
        self.orders.push(Order { ticket: None, effect });
    }

    fn order_and_wait(&mut self, effect: Effect, waiter: Waiter) {
        debug_assert!(
            self.leads || matches!(effect, Effect::LookUp { .. }),
            "a replica that follows writes nothing"
        );
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tickets.insert(ticket, waiter);
        self.orders.push(Order { ticket: Some(ticket), effect });
    }

    fn record(&mut self, notice: Notice) {
        self.order(Effect::Record(notice));
    }

    /// Whether anybody waits for something to happen.
    fn anybody_listens(&self) -> bool {
        self.queue.listens() || self.bindings.listens()
    }

    fn with_queue<R>(&mut self, now: Timestamp, act: impl FnOnce(&mut Queue, &QueueContext<'_>) -> R) -> R {
        self.queue.sets_changed(self.engine.cluster.take_changed_sets());
        let (context, profiles) = self.engine.view(now);
        let context = QueueContext { context, profiles, preempting: self.evictions.preempting() };
        let result = act(&mut self.queue, &context);
        let held = self.queue.take_newly_held(&context);
        for (pod, standing) in self.queue.take_standings() {
            self.engine.cluster.set_standing(&pod, standing);
        }
        for (slot, message) in held {
            self.tell_unscheduled(slot, "Unschedulable", message, Nomination::Clear, now);
        }
        result
    }
}
