//! The loop that joins it all: what the API server tells goes into the scheduler, what the scheduler orders is carried out.
//!
//! One task owns the scheduler; nothing is locked. It looks at everything that has come in, tries some pods, hands on the
//! orders, and lets the others work.

mod dumping;
mod reloading;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use supercargo_engine::{
    Decision, Everything, ExtenderSettings, Observation, Order, QueueEvent, Scheduler, SchedulerOptions,
    Standing, Stopwatch, Ticket, Whereabouts,
};
use supercargo_extender::ExtenderClient;
use supercargo_framework::{AskFailure, Conclusion, Effect, ExtenderAnswer, ExtenderQuestion, Profile};
use supercargo_model::{KindId, Timestamp};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::backoff::named_seed;
use crate::clock::{ClockWatch, elapsed};
use crate::heartbeat::{HEARTBEAT_TOLERANCE, Heartbeat};
use crate::order_log::OrderLog;
use crate::perform::{Concluded, OrderOutcome, PerformCounts, Performer, PerformerOptions};
use crate::tasks::Tasks;
use crate::watch::{WatchEvent, Watched};
use crate::watches::{Progress, Watches};
use reloading::PendingReload;
pub use reloading::ReloadRefused;
use supercargo_client::ApiServer;
use supercargo_client::Clock;
use supercargo_client::WriteGate;

/// So many things that have come in are looked at before the next pods are tried, and so many pods are tried before it is
/// looked again what has come in.
const BATCH: usize = 128;
/// How often the observer is told how things stand, at least.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// How soon after the last time the observer is told again, at the earliest, when pods were tried since and there is nothing else to
/// do. Telling it for every single pod would cost more than most decisions.
const REPORT_INTERVAL_MIN: Duration = Duration::from_millis(500);
/// Finding out how things stand takes no more than this part of the time.
const REPORT_SHARE: u32 = 10;
/// How long what was ordered may take when the scheduler stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// What a driver needs.
#[derive(Debug)]
pub struct DriverOptions {
    /// The scheduler to drive; its cluster is still empty.
    pub scheduler: Scheduler,
    /// Where the cluster is.
    pub server: ApiServer,
    /// What time it is.
    pub clock: Clock,
    /// The name of this machine.
    pub hostname: String,
    /// What chance is drawn from.
    pub seed: u64,
    /// Whom to ask about pods, in the order of the configuration.
    pub extenders: Vec<ExtenderClient>,
    /// Whether pods may be tried, and anything be written. The cluster is watched all the same, so that a replica that takes
    /// over knows it already.
    pub gate: WriteGate,
    /// Who owns the tasks of the driver.
    pub tasks: Tasks,
}

/// A pod was tried.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// What was decided.
    pub decision: &'a Decision,
    /// How often the pod was tried, this time included; 0 if that is told when it is bound.
    pub number: u32,
    /// By whose plugins.
    pub profile: &'a Profile,
    /// How long it took.
    pub took: Duration,
}

/// Hears what a driver does. All methods are called from the loop and must not take long.
pub trait Observer: Send {
    /// A pod was tried.
    fn decided(&mut self, attempt: Attempt<'_>);

    /// The scheduler did something else. What concerns an attempt comes after it.
    fn observed(&mut self, observation: Observation);

    /// The scheduler was told of something.
    fn told(&mut self, event: QueueEvent, took: Duration);

    /// Everything of a kind had to be listed again.
    fn listed_again(&mut self, kind: KindId);

    /// What was done in the cluster so far, told when it is told how things stand.
    fn performed(&mut self, counts: PerformCounts);

    /// How things stand, about once a second and after pods were tried.
    fn stands(&mut self, standing: &Standing);
}

/// Something asked of a running driver.
#[derive(Debug)]
pub enum Command {
    /// Write what the queue and the cache hold to the log.
    Dump,
    /// Say where the pod of this namespace and name is.
    Locate {
        /// `metadata.namespace`
        namespace: String,
        /// `metadata.name`
        name: String,
        /// Who wants to know.
        answer: oneshot::Sender<Located>,
    },
    /// Go on with another configuration as soon as everything is listed that it needs, and say when that is done, or why not.
    /// Until then, and if it is refused, the one that runs goes on. One that waits is superseded by the next.
    Reload(Box<Replacement>, oneshot::Sender<Result<(), ReloadRefused>>),
}

/// Where a pod is.
#[derive(Clone, Debug)]
pub struct Located {
    /// When that was looked up.
    pub now: Timestamp,
    /// Whether pods are tried here.
    pub leads: bool,
    /// Where it is, if it has not arrived on a node yet.
    pub whereabouts: Option<Whereabouts>,
}

/// Another configuration. See [`Scheduler::replace_profiles`].
#[derive(Debug)]
pub struct Replacement {
    /// The profiles.
    pub profiles: Vec<Profile>,
    /// How the scheduler behaves.
    pub options: SchedulerOptions,
    /// The extenders, as the scheduler sees them.
    pub extender_settings: Vec<ExtenderSettings>,
    /// Whom to ask, in the same order.
    pub extenders: Vec<ExtenderClient>,
}

/// Runs a scheduler on a cluster.
#[derive(Debug)]
pub struct Driver<O> {
    scheduler: Scheduler,
    observer: O,
    clock: Clock,
    performer: Performer,
    conclusions: mpsc::UnboundedReceiver<Concluded>,
    watched: mpsc::Receiver<WatchEvent>,
    commands: mpsc::Receiver<Command>,
    watches: Watches,
    progress: Progress,
    heartbeat: Heartbeat,
    gate: WriteGate,
    tasks: Tasks,
    extenders: Vec<ExtenderClient>,
    answers: mpsc::UnboundedReceiver<Answered>,
    answered: mpsc::UnboundedSender<Answered>,
    /// Another configuration that is to follow.
    pending: Option<PendingReload>,
    /// Whether pods were tried since the observer was last told how things stand, when that was, and how long it need not be told
    /// again in spite of such news.
    has_news: bool,
    reported: Instant,
    report_pause: Duration,
    /// Whether everything was listed when that was last looked at.
    is_known: bool,
    log: OrderLog,
    clock_watch: ClockWatch,
}

/// What an extender answered to an order.
type Answered = (Ticket, Result<ExtenderAnswer, AskFailure>);

impl<O: Observer> Driver<O> {
    /// Begins to watch the cluster. Commands come in through the channel.
    pub fn start(options: DriverOptions, observer: O, commands: mpsc::Receiver<Command>) -> Self {
        let DriverOptions { scheduler, server, clock, hostname, seed, extenders, gate, tasks } = options;
        let scheduler = scheduler.with_stopwatch(Stopwatch(elapsed));
        // Replicas with the same seed do not watch, and come back after an outage, in step.
        let own_seed = named_seed(seed, &hostname);
        let (watches, watched) = Watches::start(
            server.clone(),
            own_seed,
            scheduler.profiles(),
            !extenders.is_empty(),
            tasks.clone(),
        );
        let (log, clock_watch) = (OrderLog::default(), ClockWatch::new(clock.clone()));
        let performer = PerformerOptions {
            server,
            clock: clock.clone(),
            hostname,
            seed,
            gate: gate.clone(),
            tasks: tasks.clone(),
            log: log.clone(),
        };
        let (performer, conclusions) = Performer::start(performer);
        let progress = watches.progress();
        // There are no more answers than questions, and the scheduler asks about one pod at a time, and once for each binding.
        let (answered, answers) = mpsc::unbounded_channel();
        Driver {
            scheduler,
            observer,
            clock,
            performer,
            conclusions,
            watched,
            commands,
            watches,
            progress,
            heartbeat: Heartbeat::new("driver", HEARTBEAT_TOLERANCE),
            gate,
            tasks,
            extenders,
            answers,
            answered,
            pending: None,
            has_news: false,
            reported: Instant::now(),
            report_pause: Duration::ZERO,
            is_known: false,
            log,
            clock_watch,
        }
    }

    /// How far the first lists have come.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Beats each time the loop turns, for `/livez`.
    pub fn heartbeat(&self) -> Heartbeat {
        self.heartbeat.clone()
    }

    /// Schedules until `stop` is ready; then what was ordered gets a few seconds to be carried out.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut worked_at_once = 0;
        loop {
            self.heartbeat.beat();
            while let Ok(command) = self.commands.try_recv() {
                self.obey(command).await;
            }
            let taken = self.take_in();
            self.continue_reload().await;
            let worked = taken + self.try_pods();
            self.give_orders();
            self.give_observations();
            if worked > 0 {
                // There may be more by now. Others want to work too, after a batch; to let them in after each pod would cost
                // system calls, and they get their turn anyway as soon as there is nothing to do here.
                worked_at_once += worked;
                if worked_at_once >= BATCH {
                    worked_at_once = 0;
                    tokio::task::yield_now().await;
                }
                if !futures_ready(&mut stop).await {
                    continue;
                }
                break;
            }
            worked_at_once = 0;
            if self.next_report() <= Instant::now() {
                self.report();
            }
            let deadline = self.scheduler.next_deadline().map(|deadline| self.instant(deadline));
            let next_report = self.next_report();
            let reload_ends = self.pending.as_ref().map(|pending| pending.until);
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(conclusion) = self.conclusions.recv() => self.conclude(conclusion),
                Some(answered) = self.answers.recv() => self.hear(answered),
                Some(event) = self.watched.recv() => self.take(event),
                () = self.gate.changed() => {}
                Some(command) = self.commands.recv() => self.obey(command).await,
                () = sleep_until(deadline.unwrap_or_else(far_off)), if deadline.is_some() => {
                    self.scheduler.advance(self.clock.now());
                }
                // What comes of it is decided at the beginning of the loop.
                () = sleep_until(reload_ends.unwrap_or_else(far_off)), if reload_ends.is_some() => {}
                () = sleep_until(next_report) => self.report(),
            }
        }
        self.watches.abort_all();
        self.give_orders();
        self.performer.finish(STOP_PATIENCE).await;
    }

    /// Looks at what has come in; how much that was.
    fn take_in(&mut self) -> usize {
        let mut taken = 0;
        while let Ok(conclusion) = self.conclusions.try_recv() {
            self.conclude(conclusion);
            taken += 1;
        }
        while let Ok(answered) = self.answers.try_recv() {
            self.hear(answered);
            taken += 1;
        }
        while taken < BATCH
            && let Ok(event) = self.watched.try_recv()
        {
            self.take(event);
            taken += 1;
        }
        taken
    }

    fn take(&mut self, event: WatchEvent) {
        if !self.watches.note(&event) {
            return;
        }
        let WatchEvent { kind, watched, .. } = event;
        let now = self.clock.now();
        match watched {
            Watched::Began => {}
            Watched::Put(object) => {
                let (event, began) = (self.scheduler.event_of(&object, false), Instant::now());
                self.scheduler.put(object, now);
                self.tell(event, began);
            }
            Watched::Removed(object) => {
                let (event, began) = (self.scheduler.event_of(&object, true), Instant::now());
                self.scheduler.remove(&object, now);
                self.tell(event, began);
            }
            Watched::Listed(everything) => {
                if let Some(everything) = everything {
                    self.observer.listed_again(kind);
                    self.scheduler.retain(&everything, now);
                }
                self.note_knowledge();
            }
            Watched::Unserved => {
                self.scheduler.retain(&Everything::Objects(kind, BTreeSet::new()), now);
                self.note_knowledge();
            }
            // The watch has said so itself.
            Watched::Stalled { .. } => {}
            Watched::Resumed => info!(kind = kind.plural, "Kind is watched again"),
        }
    }

    /// Says when the cluster has become known: once, and again after a time in which it was not.
    fn note_knowledge(&mut self) {
        let is_known = self.progress.is_complete();
        if is_known && !self.is_known {
            let (kinds, standing) = (self.progress.kind_count(), self.scheduler.standing());
            let pending = standing.queue;
            let pending = pending.active + pending.backoff + pending.unschedulable + pending.gated;
            info!(
                kinds,
                nodes = standing.nodes,
                boundPods = standing.pods,
                pendingPods = pending,
                "Everything is listed; the cluster is known"
            );
        }
        self.is_known = is_known;
    }

    fn tell(&mut self, event: Option<QueueEvent>, began: Instant) {
        if let Some(event) = event {
            self.observer.told(event, began.elapsed());
        }
    }

    fn conclude(&mut self, Concluded { ticket, outcome }: Concluded) {
        let now = self.clock.now();
        match outcome {
            OrderOutcome::Ended(conclusion) => self.scheduler.conclude(ticket, &conclusion, now),
            OrderOutcome::LookedUp(found) => {
                let found =
                    found.and_then(|found| found.map(|text| self.watches.decode_pod(&text)).transpose());
                self.scheduler.looked_up(ticket, found, now);
            }
        }
    }

    /// Tries some pods; how many.
    fn try_pods(&mut self) -> usize {
        let leads = self.gate.is_open();
        self.scheduler.set_leading(leads, self.clock.now());
        if !leads || !self.progress.is_complete() {
            return 0;
        }
        let mut tried = 0;
        while tried < BATCH && self.performer.has_room() {
            let began = Instant::now();
            let now = self.clock.now();
            if self.scheduler.next_deadline().is_some_and(|deadline| deadline <= now) {
                self.scheduler.advance(now);
            }
            let Some(decision) = self.scheduler.schedule_next(now) else { break };
            self.decided(&decision, began.elapsed());
            // A batch of slow decisions is slow, and not stuck.
            self.heartbeat.beat();
            tried += 1;
        }
        tried
    }

    fn hear(&mut self, (ticket, answer): Answered) {
        if let Err(error) = &answer {
            warn!(err = %error, "An extender gave no answer");
        }
        let began = Instant::now();
        if let Some(decision) = self.scheduler.answer(ticket, answer, self.clock.now()) {
            self.decided(&decision, began.elapsed());
        }
    }

    fn decided(&mut self, decision: &Decision, took: Duration) {
        let mut profiles = self.scheduler.profiles().iter();
        let name = &*decision.pod.spec.scheduler_name;
        if let Some(profile) = profiles.find(|profile| profile.scheduler_name == name) {
            let number = self.scheduler.attempts_of(&decision.pod.uid).unwrap_or_default();
            self.observer.decided(Attempt { decision, number, profile, took });
        }
        self.has_news = true;
        self.log.decided(decision);
    }

    fn give_observations(&mut self) {
        for observation in self.scheduler.take_observations() {
            self.log.observed(&observation);
            self.observer.observed(observation);
        }
    }

    /// Hands on what was ordered. A replica that does not lead orders nothing; should the scheduler have orders all the same,
    /// they end here. Orders of a leader whose lease is about to be renewed wait for that.
    fn give_orders(&mut self) {
        if !self.gate.is_open() {
            if !self.gate.has_tenure() {
                self.refuse_orders();
            }
            return;
        }
        for order in self.scheduler.take_orders() {
            match order {
                Order { ticket: Some(ticket), effect: Effect::Ask { extender, question } } => {
                    self.ask(ticket, extender, question);
                }
                order => self.performer.perform(order),
            }
        }
    }

    fn refuse_orders(&mut self) {
        let now = self.clock.now();
        for ticket in self.scheduler.take_orders().into_iter().filter_map(|order| order.ticket) {
            let error = "not carried out, because this replica does not hold the lease".to_owned();
            self.scheduler.conclude(ticket, &Conclusion::Refused { error }, now);
        }
    }

    fn ask(&self, ticket: Ticket, extender: usize, question: ExtenderQuestion) {
        let (client, answered) = (self.extenders.get(extender).cloned(), self.answered.clone());
        let gate = self.gate.clone();
        self.tasks.spawn_finite("question to an extender", async move {
            let answer = match (client, gate.pass()) {
                // An extender may bind the pod, so it is asked under the same condition as the API server.
                (_, None) => Err(AskFailure::Answered("this replica does not hold the lease".to_owned())),
                (client, Some(passage)) => {
                    let answer = match client {
                        Some(client) => client.ask(&question).await,
                        None => {
                            Err(AskFailure::Answered("the configuration has no such extender".to_owned()))
                        }
                    };
                    passage.leave();
                    answer
                }
            };
            // If nobody wants to know, nobody is told.
            let _ = answered.send((ticket, answer));
        });
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Dump => self.dump(),
            Command::Locate { namespace, name, answer } => {
                let now = self.clock.now();
                let whereabouts = self.scheduler.whereabouts(&namespace, &name, now);
                let leads = self.gate.is_open();
                // Whoever asked may have gone.
                let _ = answer.send(Located { now, leads, whereabouts });
            }
            Command::Reload(replacement, done) => self.begin_reload(*replacement, done).await,
        }
    }

    fn report(&mut self) {
        let began = Instant::now();
        self.log.write_suppressed();
        let seconds = self.clock_watch.was_set();
        if seconds != 0 {
            warn!(seconds, "The clock was set; what waits goes on waiting for as long as it would have");
            self.scheduler.clock_was_set(seconds);
        }
        self.observer.performed(self.performer.counts());
        self.observer.stands(&self.scheduler.standing());
        self.has_news = false;
        self.reported = Instant::now();
        self.report_pause = (REPORT_SHARE * began.elapsed()).clamp(REPORT_INTERVAL_MIN, REPORT_INTERVAL);
    }

    /// When the observer is told how things stand, if nothing else is to be done by then.
    fn next_report(&self) -> Instant {
        self.reported + if self.has_news { self.report_pause } else { REPORT_INTERVAL }
    }

    /// When a point in time comes, by the clock that tokio waits with.
    fn instant(&self, time: Timestamp) -> Instant {
        Instant::now() + time.since(self.clock.now())
    }
}

/// Whether a future is ready, without waiting for it.
async fn futures_ready(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
    })
    .await
}

/// Long after everything else.
fn far_off() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
