//! The loop that joins it all: what the API server tells goes into the scheduler, what the scheduler orders is carried out.
//!
//! One task owns the scheduler; nothing is locked. It looks at everything that has come in, tries some pods, hands on the
//! orders, and lets the others work.

mod asking;
mod dumping;
mod extenders;
mod keeping;
mod looking;
mod reloading;
mod waking;

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use supercargo_client::{ApiServer, Clock, WriteGate};
use supercargo_engine::{
    Attempt, Decision, ExtenderSettings, Located, NextTurn, Observer, Order, Pace, QueueEvent, Scheduler,
    SchedulerOptions, Stopwatch, Surroundings,
};
use supercargo_extender::ExtenderClient;
use supercargo_framework::{Effect, PageRequest, Profile, Rendered};
use supercargo_model::{Everything, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tracing::info;

use crate::backoff::named_seed;
use crate::clock::{ClockWatch, elapsed};
use crate::heartbeat::{HEARTBEAT_TOLERANCE, Heartbeat};
use crate::memory_store::{MemoriesPlace, MemoryStore};
use crate::order_log::OrderLog;
use crate::perform::{Concluded, OrderOutcome, Performer, PerformerOptions};
use crate::queries::{Queries, QueryHeard, QueryStatuses};
use crate::tasks::Tasks;
use crate::timer::Timer;
use crate::watch::{WatchEvent, Watched};
use crate::watches::{Progress, Watches};
use asking::{Inquirers, begin_to_ask};
use extenders::Answered;
use keeping::Keeping;
pub use looking::KnownCluster;
use reloading::PendingReload;
pub use reloading::ReloadRefused;
use waking::Woken;

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
    /// Where plugins save what they remember; none if nothing is to be saved.
    pub memories: Option<MemoriesPlace>,
    /// Who owns the tasks of the driver.
    pub tasks: Tasks,
    /// The same for those that ask whom plugins want to hear from, if they are to run elsewhere: what is answered is read there.
    pub query_tasks: Tasks,
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
        /// Where the answer goes.
        answer: oneshot::Sender<Located>,
    },
    /// Make the page of a plugin, or the list of all pages.
    Render {
        /// The plugin; none for the list.
        plugin: Option<String>,
        /// What is asked for.
        request: PageRequest,
        /// Where the page goes.
        answer: oneshot::Sender<RenderedPage>,
    },
    /// Give a copy of all that is known, to answer other schedulers' questions from.
    Look {
        /// Who wants to know; told none as long as not everything was listed.
        answer: oneshot::Sender<Option<KnownCluster>>,
    },
    /// Go on with another configuration as soon as everything is listed that it needs, and say when that is done, or why not.
    /// Until then, and if it is refused, the one that runs goes on. One that waits is superseded by the next.
    Reload(Box<Replacement>, oneshot::Sender<Result<(), ReloadRefused>>),
}

/// What comes of [`Command::Render`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderedPage {
    /// The plugins that have a page, with its title.
    List(Vec<(&'static str, Cow<'static, str>)>),
    /// The page.
    Page(Rendered),
    /// No plugin of that name has a page.
    None,
    /// The plugin could not make it; the text says why.
    Failed(String),
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
    queries: Queries,
    heard: mpsc::Receiver<QueryHeard>,
    inquirers: Inquirers,
    progress: Progress,
    heartbeat: Heartbeat,
    gate: WriteGate,
    tasks: Tasks,
    extenders: Vec<ExtenderClient>,
    answers: mpsc::UnboundedReceiver<Answered>,
    answered: mpsc::UnboundedSender<Answered>,
    /// Another configuration that is to follow.
    pending: Option<PendingReload>,
    pace: Pace,
    /// The moment from which `pace` counts.
    started: Instant,
    /// Whether everything was listed when that was last looked at.
    is_known: bool,
    /// Told when everything is listed, for the first time and again after a time in which it was not.
    known: watch::Sender<bool>,
    log: OrderLog,
    clock_watch: ClockWatch,
    /// What plugins remember beyond this process.
    keeping: Keeping,
}

impl<O: Observer> Driver<O> {
    /// Begins to watch the cluster. Commands come in through the channel.
    pub fn start(options: DriverOptions, observer: O, commands: mpsc::Receiver<Command>) -> Self {
        let DriverOptions {
            scheduler,
            server,
            clock,
            hostname,
            seed,
            extenders,
            gate,
            memories,
            tasks,
            query_tasks,
        } = options;
        let scheduler = scheduler.with_stopwatch(Stopwatch(elapsed)).with_unknown_cluster();
        // Replicas with the same seed do not watch, and come back after an outage, in step.
        let own_seed = named_seed(seed, &hostname);
        let (watches, watched) = Watches::start(
            server.clone(),
            own_seed,
            scheduler.profiles(),
            !extenders.is_empty(),
            tasks.clone(),
        );
        let (queries, heard) = begin_to_ask(&scheduler, &server, &clock, own_seed, query_tasks.clone());
        let inquirers = Inquirers::new(server.clone(), query_tasks);
        let log = OrderLog::default();
        let store = memories.map(|place| MemoryStore::new(&server, gate.clone(), place));
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
        let (started, clock_now) = (Instant::now(), clock.now());
        Driver {
            scheduler,
            observer,
            clock,
            performer,
            conclusions,
            watched,
            commands,
            watches,
            queries,
            heard,
            inquirers,
            progress,
            heartbeat: Heartbeat::new("driver", HEARTBEAT_TOLERANCE),
            gate,
            keeping: Keeping::new(store, tasks.clone()),
            tasks,
            extenders,
            answers,
            answered,
            pending: None,
            pace: Pace::new(Duration::ZERO),
            clock_watch: ClockWatch::new(Duration::ZERO, clock_now),
            started,
            is_known: false,
            known: watch::Sender::new(false),
            log,
        }
    }

    /// How far the first lists have come.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// How it goes with the queries.
    pub fn queries(&self) -> QueryStatuses {
        self.queries.statuses()
    }

    /// Becomes true when the cluster is known for the first time: from then on pods can be scheduled.
    pub fn known(&self) -> watch::Receiver<bool> {
        self.known.subscribe()
    }

    /// Beats each time the loop turns, for `/livez`.
    pub fn heartbeat(&self) -> Heartbeat {
        self.heartbeat.clone()
    }

    /// Schedules until `stop` is ready; then what was ordered gets a few seconds to be carried out.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut woken = Woken::Nothing;
        let (mut deadline_timer, mut report_timer) = (Timer::new(), Timer::new());
        loop {
            let now = Instant::now();
            self.heartbeat.beat_at(now);
            self.note_clock(now);
            self.take_up(std::mem::replace(&mut woken, Woken::Nothing)).await;
            while let Ok(command) = self.commands.try_recv() {
                self.obey(command).await;
            }
            let taken = self.take_in();
            self.continue_reload().await;
            self.keep_memories();
            let done = taken + self.try_pods();
            self.give_orders();
            self.give_questions();
            self.give_observations();
            match self.pace.after(done) {
                NextTurn::WhenSomethingHappens => {}
                turn => {
                    if turn == NextTurn::AfterOthers {
                        tokio::task::yield_now().await;
                    }
                    if futures_ready(&mut stop).await {
                        break;
                    }
                    continue;
                }
            }
            if self.next_report() <= Instant::now() {
                self.report();
            }
            let deadline = self.scheduler.next_deadline();
            if let Some(deadline) = deadline {
                // Another wait may be over at the same time of day, if the clock was set between the two.
                let moment = (self.clock_watch.shift(), deadline);
                deadline_timer.set(moment, |(_, deadline)| self.instant(*deadline));
            }
            report_timer.set(self.next_report(), |report| *report);
            let reload_ends = self.pending.as_ref().map(|pending| pending.until);
            let is_unsaved = self.scheduler.has_unsaved_memories();
            woken = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(conclusion) = self.conclusions.recv() => Woken::Conclusion(conclusion),
                Some(answered) = self.answers.recv() => Woken::Answer(answered),
                Some(heard) = self.heard.recv() => Woken::Query(heard),
                Some(told) = self.inquirers.told.recv() => Woken::Inquiry(told),
                Some(event) = self.watched.recv() => Woken::Watch(event),
                Some(command) = self.commands.recv() => Woken::Command(command),
                () = deadline_timer.passed(), if deadline.is_some() => Woken::Deadline,
                () = self.gate.changed() => Woken::Nothing,
                () = sleep_until(reload_ends.unwrap_or_else(far_off)), if reload_ends.is_some() => Woken::Nothing,
                () = self.keeping.due(is_unsaved) => Woken::Nothing,
                () = report_timer.passed() => Woken::Nothing,
            };
        }
        self.watches.abort_all();
        self.queries.abort_all();
        self.give_orders();
        let (leading, now) = (self.tenure(), self.clock.now());
        let Driver { performer, mut keeping, mut scheduler, mut observer, .. } = self;
        let (kept, ()) = tokio::join!(
            keeping.finish(&mut scheduler, leading, now, STOP_PATIENCE),
            performer.finish(STOP_PATIENCE)
        );
        kept.iter().for_each(|kept| observer.kept(kept));
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
        while let Ok(told) = self.inquirers.told.try_recv() {
            self.hear_inquiry(told);
            taken += 1;
        }
        while let Ok(heard) = self.heard.try_recv() {
            self.hear_query(heard);
            taken += 1;
        }
        while taken < Pace::BATCH
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
            // As long as it is not listed, nothing is scheduled.
            Watched::Began | Watched::Served => {
                if self.is_known && !self.progress.is_complete() {
                    info!(
                        kind = kind.plural,
                        "The kind is served again; nothing is scheduled until it is listed"
                    );
                }
                self.note_knowledge();
            }
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
            Watched::Unreadable => self.observer.could_not_read(kind),
            Watched::Listed(everything) => {
                if let Some(everything) = everything {
                    self.observer.listed_again(kind);
                    self.scheduler.retain(&everything, now);
                }
                self.note_knowledge();
            }
            Watched::Unserved => {
                self.scheduler.retain(&Everything::none_of(kind), now);
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
            let (kinds, gauges) = (self.progress.kind_count(), self.scheduler.gauges());
            let pending = gauges.queue;
            let pending = pending.active + pending.backoff + pending.unschedulable + pending.gated;
            info!(
                kinds,
                nodes = gauges.nodes,
                boundPods = gauges.pods,
                pendingPods = pending,
                "Everything is listed; the cluster is known"
            );
            self.scheduler.cluster_is_known(self.clock.now());
            self.known.send_replace(true);
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
        let (leading, is_known) = (self.leading(), self.progress.is_complete());
        let (pace, scheduler, mut surroundings) = self.parts();
        pace.try_pods(scheduler, leading, is_known, &mut surroundings)
    }

    /// The pace, the scheduler, and what is around it.
    fn parts(&mut self) -> (&mut Pace, &mut Scheduler, LiveSurroundings<'_, O>) {
        let Driver {
            pace, scheduler, observer, clock, clock_watch, performer, heartbeat, log, started, ..
        } = self;
        let started = *started;
        let surroundings =
            LiveSurroundings { observer, clock, clock_watch, performer, heartbeat, log, started };
        (pace, scheduler, surroundings)
    }

    fn give_observations(&mut self) {
        for observation in self.scheduler.take_observations() {
            self.log.observed(&observation);
            self.observer.observed(observation);
        }
    }

    /// Hands on what was ordered.
    fn give_orders(&mut self) {
        let (leading, now) = (self.leading(), self.clock.now());
        for order in self.pace.take_orders(&mut self.scheduler, leading, now) {
            match order {
                Order { ticket: Some(ticket), effect: Effect::Ask { extender, question } } => {
                    self.ask(ticket, extender, question);
                }
                order => self.performer.perform(order),
            }
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Dump => self.dump(),
            Command::Locate { namespace, name, answer } => {
                let now = self.clock.now();
                let whereabouts = self.scheduler.whereabouts(&namespace, &name, now);
                let leads = self.gate.is_open();
                // It is no error if the one that sent the command waits no longer.
                let _ = answer.send(Located { now, leads, whereabouts });
            }
            Command::Render { plugin, request, answer } => {
                let rendered = match plugin {
                    None => RenderedPage::List(self.scheduler.pages()),
                    Some(plugin) => match self.scheduler.render(&plugin, &request, self.clock.now()) {
                        None => RenderedPage::None,
                        Some(Ok(rendered)) => RenderedPage::Page(rendered),
                        Some(Err(error)) => RenderedPage::Failed(error),
                    },
                };
                let _ = answer.send(rendered);
            }
            // It is no error if the one that sent the command waits no longer.
            Command::Look { answer } => _ = answer.send(self.look()),
            Command::Reload(replacement, done) => self.begin_reload(*replacement, done).await,
        }
    }

    fn report(&mut self) {
        let began = self.started.elapsed();
        self.log.write_suppressed();
        self.inquirers.server.write_suppressed();
        self.observer.performed(self.performer.counts());
        let gauges = self.scheduler.gauges();
        self.queries.statuses().note_facts(&gauges.facts);
        self.queries.write_suppressed();
        self.observer.gauges(&gauges);
        self.pace.note_report(began, self.started.elapsed());
    }

    /// When the observer is told how things stand, if nothing else is to be done by then.
    fn next_report(&self) -> Instant {
        self.started + self.pace.next_report()
    }

    /// When a point in time comes, by the clock that tokio waits with.
    fn instant(&self, time: Timestamp) -> Instant {
        Instant::now() + time.since(self.clock.now())
    }
}

/// What is around the scheduler of a live driver.
struct LiveSurroundings<'a, O> {
    observer: &'a mut O,
    clock: &'a Clock,
    clock_watch: &'a mut ClockWatch,
    performer: &'a Performer,
    heartbeat: &'a Heartbeat,
    log: &'a OrderLog,
    started: Instant,
}

impl<O: Observer> Surroundings for LiveSurroundings<'_, O> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn clock_was_set(&mut self, elapsed: Duration, now: Timestamp) -> i64 {
        self.clock_watch.was_set(elapsed, now, || (self.started.elapsed(), self.clock.now()))
    }

    fn has_room(&self) -> bool {
        self.performer.has_room()
    }

    fn decided(&mut self, decision: &Decision, attempt: Option<Attempt<'_>>) {
        if let Some(attempt) = attempt {
            self.observer.decided(attempt);
        }
        self.log.decided(decision);
        // A batch of slow decisions is slow, and not stuck.
        self.heartbeat.beat();
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

#[cfg(test)]
mod tests;
