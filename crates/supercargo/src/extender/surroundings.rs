//! What an extender knows, and what it does in the cluster.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use supercargo_client::{ApiServer, Clock, Tenure, WriteGate, hostname};
use supercargo_cluster::{Command, Driver, DriverOptions, Heartbeat, LimitedLog, Progress, Tasks, bind};
use supercargo_engine::{
    Attempt, EngineOptions, Gauges, Indexing, Observation, Observer, PerformCounts, QueryAsked, QueueEvent,
    Rules, Scheduler, SchedulerOptions, Seed,
};
use supercargo_extender::server::{Answered, Answerer, Outcome, Surroundings, View};
use supercargo_extender::wire::ExtenderBindingArgs;
use supercargo_framework::{Fixes, Profile};
use supercargo_model::KindId;
use supercargo_operations::logs::V2;
use supercargo_operations::metrics::ExtenderMetrics;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

/// How many questions may wait for the one who knows the cluster.
const LOOKS_WAITING_MAX: usize = 64;

/// A cluster that is watched as a replica of `supercargo run` watches it that does not lead: it knows everything, what plugins ask for
/// outside included, tries no pod and writes nothing.
#[derive(Clone, Debug)]
pub(super) struct WatchedCluster {
    server: ApiServer,
    commands: mpsc::Sender<Command>,
    pub(super) progress: Progress,
    pub(super) heartbeat: Heartbeat,
}

impl WatchedCluster {
    pub(super) fn start(
        server: ApiServer,
        profiles: Vec<Profile>,
        fixes: Fixes,
        seed: Seed,
        clock: Clock,
        metrics: ExtenderMetrics,
        tasks: &Tasks,
    ) -> Self {
        let engine = EngineOptions { rules: Rules::LIVE, seed, fixes, indexing: Indexing::Off };
        let (commands, commanded) = mpsc::channel(LOOKS_WAITING_MAX);
        let options = DriverOptions {
            scheduler: Scheduler::new(profiles, SchedulerOptions::new(engine)),
            server: server.clone(),
            // Nobody holds the other end: the gate never opens.
            gate: WriteGate::new(Tenure::Nothing, clock.clone()).1,
            clock,
            hostname: hostname(),
            seed: seed.0,
            extenders: Vec::new(),
            memories: None,
            tasks: tasks.clone(),
            query_tasks: tasks.clone(),
        };
        let driver = Driver::start(options, Onlooker(metrics), commanded);
        let (progress, heartbeat) = (driver.progress(), driver.heartbeat());
        tasks.spawn("driver", driver.run(std::future::pending()));
        WatchedCluster { server, commands, progress, heartbeat }
    }

    /// Writes what is known to the log.
    pub(super) fn dump(&self) {
        // Whoever asks too often is not answered.
        _ = self.commands.try_send(Command::Dump);
    }

    async fn look(&self, seed: u64) -> Result<View, String> {
        let gone = "the task that watches the cluster has ended";
        let (answer, answered) = oneshot::channel();
        self.commands.send(Command::Look { answer }).await.map_err(|_| gone)?;
        match answered.await.map_err(|_| gone)? {
            Some(known) => Ok(View {
                cluster: known.cluster,
                is_watched: true,
                memories: known.memories,
                now: known.now,
                seed,
            }),
            None => {
                let why = self.progress.check().err().unwrap_or_default();
                Err(format!("the extender does not know the cluster yet: {why}"))
            }
        }
    }
}

/// What an extender is surrounded by.
#[derive(Debug)]
pub(super) struct ExtenderSurroundings {
    watched: Option<WatchedCluster>,
    serves_bind: bool,
    clock: Clock,
    seed: Seed,
    /// How many questions were asked.
    questions: AtomicU64,
    metrics: ExtenderMetrics,
    log: LimitedLog,
}

impl ExtenderSurroundings {
    pub(super) fn new(
        watched: Option<WatchedCluster>,
        serves_bind: bool,
        clock: Clock,
        seed: Seed,
        metrics: ExtenderMetrics,
    ) -> Self {
        let (questions, log) = (AtomicU64::new(0), LimitedLog::default());
        ExtenderSurroundings { watched, serves_bind, clock, seed, questions, metrics, log }
    }
}

impl Surroundings for ExtenderSurroundings {
    async fn view(&self, answerer: &Answerer) -> Result<View, String> {
        let seed = self.seed.attempt(self.questions.fetch_add(1, Ordering::Relaxed));
        match &self.watched {
            Some(watched) => watched.look(seed).await,
            None => Ok(answerer.empty_view(self.clock.now(), seed)),
        }
    }

    async fn bind(&self, binding: ExtenderBindingArgs) -> Result<(), String> {
        match &self.watched {
            Some(watched) if self.serves_bind => bind(&watched.server, binding).await,
            _ => {
                Err("this extender does not bind: start it with --serve-bind, or remove bindVerb".to_owned())
            }
        }
    }

    fn answered(&self, answered: &Answered<'_>) {
        let Answered { verb, outcome, error, took } = answered;
        self.metrics.answered(verb.name(), outcome.name(), *took);
        if *outcome == Outcome::Answered {
            info!(target: V2, verb = verb.name(), took = ?took, "Question answered");
        } else {
            self.log.write_suppressed();
            if self.log.admits(verb.name()) {
                warn!(err = error, verb = verb.name(), outcome = outcome.name(), "Question not answered");
            }
        }
    }
}

/// Hears what becomes of a scheduler that does not schedule.
struct Onlooker(ExtenderMetrics);

impl Observer for Onlooker {
    fn decided(&mut self, _: Attempt<'_>) {}
    fn observed(&mut self, _: Observation) {}
    fn told(&mut self, _: QueueEvent, _: Duration) {}
    fn performed(&mut self, _: PerformCounts) {}
    fn queried(&mut self, _: QueryAsked<'_>) {}

    fn listed_again(&mut self, kind: KindId) {
        self.0.watch_restarted(kind.plural);
    }

    fn gauges(&mut self, gauges: &Gauges) {
        self.0.stands(gauges.nodes, gauges.pods);
    }
}
