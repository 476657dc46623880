//! The process that schedules a cluster, put together from what it is given: the binary, a test and a simulation run the same.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use supercargo_client::{ApiServer, Clock, ConnectOptions, Tenure, WriteGate};
use supercargo_cluster::{Command, Driver, DriverOptions, Supervisor, Task, TaskEnd, TaskEndCause};
use supercargo_engine::Scheduler;
use supercargo_framework::Registry;
use supercargo_operations::clock::time_of_day;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::leader::{self, ApiLeaseStore, Election, Leadership};
use supercargo_operations::metrics::Metrics;
use supercargo_operations::reload::Files;
use supercargo_operations::signals::{Signal, Signals};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{error, info, warn};

use super::decisions::{DecisionsPage, Holds, SharedJournal};
use super::observer::RunObserver;
use super::pages::{EMULATED_VERSION, Pages};
use super::plugin_pages::PluginPages;
use super::programs::Programs;
use super::reload::Reloading;
use super::settings::Settings;
use crate::serving::serve;

/// What this is.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that it was built from, if whoever built it has said so.
pub(crate) const COMMIT: Option<&str> = option_env!("SUPERCARGO_COMMIT");

/// How many commands may wait for the scheduler.
const COMMANDS_WAITING_MAX: usize = 16;

/// When the process is asked to stop: how long an extender may go on to bind, or a write that was cut off may still be carried out,
/// before the lease is given back. If that takes longer, the lease runs out.
const HANDOVER_PATIENCE: Duration = Duration::from_secs(10);

/// When a task has ended: how long writes under way may take to be over, and then how long it may take to release the lease.
/// Together they are less than the second within which the process ends.
const QUIET_PATIENCE: Duration = Duration::from_millis(400);
const RELEASE_PATIENCE: Duration = Duration::from_millis(400);

/// A scheduler that is configured, and does not run yet.
pub struct Process {
    flags: RunFlags,
    registry: Registry,
    settings: Settings,
}

/// What a process is given by the world around it.
#[derive(Debug)]
pub struct Surroundings {
    /// Where the cluster is.
    pub server: ApiServer,
    /// What time it is.
    pub clock: Clock,
    /// What is asked of the process while it runs.
    pub signals: Signals,
    /// The name of this candidate in the lease, which no other process may have.
    pub identity: String,
    /// The name of this machine, which events carry.
    pub hostname: String,
    /// The runtime of the driver, its watches and its requests. If it has a thread of its own, a long decision delays neither the
    /// lease nor a probe; and if it has only that one, no pod costs a change of threads.
    pub scheduling: Handle,
}

/// How a process came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to stop; what was under way is finished, and the lease is released.
    Stopped,
    /// It was asked a second time to stop, and left at once.
    StoppedAtOnce,
    /// Another replica leads, or may lead.
    LeaseLost,
    /// A task ended that should have gone on.
    TaskEnded(TaskEnd),
}

impl Ended {
    /// The exit code that says so: 0 only if everything was finished.
    pub fn exit_code(&self) -> u8 {
        match self {
            Ended::Stopped => 0,
            Ended::StoppedAtOnce | Ended::LeaseLost | Ended::TaskEnded(_) => 1,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Stopped => formatter.write_str("asked to stop"),
            Ended::StoppedAtOnce => formatter.write_str("asked twice to stop"),
            Ended::LeaseLost => formatter.write_str("the lease was lost"),
            Ended::TaskEnded(end) => end.fmt(formatter),
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Process").field("flags", &self.flags).finish_non_exhaustive()
    }
}

impl Process {
    /// A process with these flags and the configuration file that they name, and with the plugins of a registry.
    pub fn new(flags: RunFlags, registry: Registry, files: &Files) -> anyhow::Result<Self> {
        let settings = Settings::of(&flags, &registry, files)?;
        Ok(Process { flags, registry, settings })
    }

    /// The flags.
    pub fn flags(&self) -> &RunFlags {
        &self.flags
    }

    /// What people should know about the flags and the configuration.
    pub fn warnings(&self) -> &[String] {
        &self.settings.warnings
    }

    /// The whole configuration, with nothing left to defaults, as YAML.
    pub fn configuration(&self) -> String {
        self.settings.as_yaml()
    }

    /// Which API server the flags and the configuration name.
    pub fn connect_options(&self) -> ConnectOptions {
        ConnectOptions::new(&self.settings.kube.client_connection, self.flags.master.clone())
    }

    /// Schedules until told to stop, until another replica leads, or until something breaks. An error says why it did not
    /// begin.
    pub async fn run(self, surroundings: Surroundings) -> anyhow::Result<Ended> {
        self.introduce(&surroundings);
        let mut running = Running::start(self, surroundings).await?;
        let ended = running.follow().await;
        Ok(ended)
    }
}

impl Process {
    /// Says in the log what begins, and where: whoever looks for a scheduler that does something unexpected begins here.
    fn introduce(&self, surroundings: &Surroundings) {
        let (flags, kube) = (&self.flags, &self.settings.kube);
        let given: Vec<String> = flags
            .given
            .iter()
            .map(|name| format!("--{name}={}", flags.shown.get(name).map_or("", String::as_str)))
            .collect();
        info!(
            version = VERSION,
            commit = COMMIT.unwrap_or("unknown"),
            decidesAs = format!("kube-scheduler {EMULATED_VERSION}"),
            flags = given.join(" "),
            "Starting Supercargo"
        );
        let file = flags.config.as_ref().map(|path| path.display().to_string());
        let profiles: Vec<&str> =
            kube.profiles.iter().map(|profile| profile.scheduler_name.as_str()).collect();
        info!(
            file = file.as_deref().unwrap_or("none: defaults and flags"),
            profiles = profiles.join(","),
            extenders = kube.extenders.len(),
            "Using configuration"
        );
        let election = &kube.leader_election;
        let lease = match election.leader_elect {
            true => format!("{}/{}", election.resource_namespace, election.resource_name),
            false => "none: this is the only replica".to_owned(),
        };
        let address = surroundings.server.address();
        info!(
            server = address.unwrap_or("given as a service"),
            identity = surroundings.identity,
            lease,
            "Scheduling for API server"
        );
    }
}

/// A process that runs. All its tasks end with it.
struct Running {
    supervisor: Supervisor,
    signals: Signals,
    commands: mpsc::Sender<Command>,
    leadership: watch::Receiver<Leadership>,
    /// Who is told until when anything may be written.
    tenure: watch::Sender<Tenure>,
    gate: WriteGate,
    clock: Clock,
    metrics: Metrics,
    /// None if there is no election.
    candidate: Option<Candidate>,
    /// The tasks that are stopped one after the other, in this order.
    stages: Vec<Stage>,
    /// What is stopped last: a plugin may ask a program until the last pod is placed. None if it is stopped.
    programs: Option<Programs>,
}

/// A task that ends when its sender is dropped.
struct Stage {
    name: StageName,
    stop: oneshot::Sender<()>,
    task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageName {
    Driver,
    Election,
    Server,
}

impl Running {
    async fn start(process: Process, surroundings: Surroundings) -> anyhow::Result<Self> {
        let Process { flags, registry, settings } = process;
        let Surroundings { server, clock, signals, identity, hostname, scheduling } = surroundings;
        let running = settings.running_config();
        let supervisor = Supervisor::new();
        let tasks = supervisor.tasks();
        let scheduling_tasks = tasks.on(scheduling);
        let (metrics, exposition) = Metrics::new();
        let (commands, commanded) = mpsc::channel(COMMANDS_WAITING_MAX);
        let (tenure, gate) = WriteGate::new(Tenure::Nothing, clock.clone());
        let scheduler =
            Scheduler::new(settings.profiles, settings.scheduler).with_extenders(settings.extender_settings);
        let page_addresses = scheduler.page_addresses();
        let driver = DriverOptions {
            scheduler,
            server: server.clone(),
            clock: clock.clone(),
            hostname,
            seed: settings.own.seed,
            extenders: settings.extenders,
            gate: gate.clone(),
            memories: Some(settings.memories),
            tasks: scheduling_tasks.clone(),
            query_tasks: tasks.clone(),
        };
        let journal = SharedJournal::default();
        let driver = Driver::start(driver, RunObserver::new(metrics.clone(), journal.clone()), commanded);
        // As upstream, the first profile gives its name to events about the lease.
        let component =
            settings.kube.profiles.first().map_or("", |profile| &profile.scheduler_name).to_owned();
        let lease_server = server.with_own_connections()?;
        let candidacy = settings.election.map(|(settings, namespace, name)| {
            let store = ApiLeaseStore::new(lease_server, namespace, name);
            let election = Election::new(store.clone(), settings, identity.clone());
            let candidate = Candidate { store, identity, component };
            election.map(|election| (election.with_clock(time_of_day_by(clock.clone())), candidate))
        });
        let (election, candidate) = candidacy.transpose().context("leaderElection is not usable")?.unzip();
        let (shown, config) = watch::channel(serde_json::to_value(&settings.effective)?);
        let (told, leadership) = watch::channel(Leadership::Following { holder: None });
        let holds = Holds {
            progress: driver.progress(),
            leadership: election.as_ref().map(|_| leadership.clone()),
            heartbeat: driver.heartbeat(),
        };
        let known = driver.known();
        let plugin_pages = PluginPages { commands: commands.clone() };
        let pages = Pages {
            exposition,
            progress: driver.progress(),
            queries: driver.queries(),
            heartbeat: driver.heartbeat(),
            missing_rights: server.missing_rights(),
            watchdog: election.as_ref().map(Election::watchdog),
            config,
            decisions: DecisionsPage {
                journal,
                commands: commands.clone(),
                holds,
                queries: driver.queries(),
            },
            plugins: plugin_pages.clone(),
            flags: flags.shown.clone(),
        };
        let (stop_serving, stopped) = oneshot::channel();
        let routes = pages.routes();
        let serving = serve(&flags.serving, &flags.access, &server, routes, &tasks, stopped).await?;

        plugin_pages.serve_alone(&settings.own.pages, &page_addresses, &tasks)?;
        // From here on nothing keeps the process from beginning: a program is not started in vain.
        let programs = Programs::start(&settings.own.programs, &metrics, &tasks);

        let mut stages = Vec::new();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = scheduling_tasks.spawn("driver", driver.run(async move { _ = stopped.await }));
        stages.push(Stage { name: StageName::Driver, stop, task });
        match election {
            Some(election) => {
                let (stop, mut stopped) = oneshot::channel::<()>();
                let waits = !settings.kube.delay_cache_until_active;
                let task = tasks.spawn("election", async move {
                    // As upstream: a lease in the hands of a replica that cannot schedule keeps others from it that can.
                    if waits {
                        tokio::select! {
                            biased;
                            _ = &mut stopped => return,
                            () = become_known(known) => {}
                        }
                    }
                    // How it ended is told by the leadership.
                    _ = election.run(async move { _ = stopped.await }, told).await;
                });
                stages.push(Stage { name: StageName::Election, stop, task });
            }
            None => _ = tenure.send_replace(Tenure::Always),
        }
        stages.extend(serving.map(|task| Stage { name: StageName::Server, stop: stop_serving, task }));
        if let Some(file) = settings.file {
            let reloading = Reloading {
                flags,
                registry,
                running,
                commands: commands.clone(),
                shown,
                metrics: metrics.clone(),
            };
            tasks.spawn("reload", reloading.follow(file));
        }
        Ok(Running {
            supervisor,
            signals,
            commands,
            leadership,
            tenure,
            gate,
            clock,
            metrics,
            candidate,
            stages,
            programs: Some(programs),
        })
    }

    /// Looks after the tasks until the process ends.
    async fn follow(&mut self) -> Ended {
        loop {
            let end_of_lease = self.end_of_lease();
            tokio::select! {
                biased;
                // An election that has lost the lease says so, and then its task ends.
                Ok(()) = self.leadership.changed() => {
                    if let Some(ended) = self.hear() {
                        return ended;
                    }
                }
                // The election should have said so before.
                () = sleep_until(end_of_lease.unwrap_or_else(Instant::now)), if end_of_lease.is_some() => {
                    return self.lose();
                }
                end = self.supervisor.next_end() => return self.abandon(end).await,
                signal = self.signals.next() => match signal {
                    Signal::Stop => break,
                    Signal::StopNow => return Ended::StoppedAtOnce,
                    Signal::Dump => _ = self.commands.try_send(Command::Dump),
                },
            }
        }
        info!("Stopping: what is under way is finished first");
        self.stop().await
    }

    /// When the lease runs out, if it is ours.
    fn end_of_lease(&self) -> Option<Instant> {
        match *self.tenure.borrow() {
            Tenure::Until { instant, .. } => Some(instant),
            Tenure::Nothing | Tenure::Always => None,
        }
    }

    /// Takes note of who leads; how the process ends if that is its end.
    fn hear(&mut self) -> Option<Ended> {
        let leadership = self.leadership.borrow_and_update().clone();
        match leadership {
            Leadership::Leading { until } => {
                let tenure = Tenure::until(until, &self.clock);
                let before = self.tenure.send_replace(tenure);
                if before == Tenure::Nothing {
                    info!("This replica schedules from now on");
                    self.metrics.leading(true);
                    if let Some(candidate) = self.candidate.clone() {
                        self.supervisor.tasks().spawn_finite("announcement", candidate.announce());
                    }
                }
                None
            }
            Leadership::Following { holder } => {
                self.metrics.leading(false);
                self.tenure.send_replace(Tenure::Nothing);
                if let Some(holder) = holder {
                    info!(holder, "Another replica schedules");
                }
                None
            }
            Leadership::Lost => Some(self.lose()),
        }
    }

    /// The lease may be another's: nothing more may be done, and it is not for us to release it.
    fn lose(&mut self) -> Ended {
        self.tenure.send_replace(Tenure::Nothing);
        self.metrics.leading(false);
        error!("The lease was lost: another replica may schedule, and this process ends");
        Ended::LeaseLost
    }

    /// Stops one task after the other: what writes, then what lets others write, then what tells about it.
    async fn stop(&mut self) -> Ended {
        self.stop_stages().await.err().unwrap_or(Ended::Stopped)
    }

    async fn stop_stages(&mut self) -> Result<(), Ended> {
        for Stage { name, stop, mut task } in std::mem::take(&mut self.stages) {
            let ended = async {
                drop(stop);
                task.ended().await;
            };
            match name {
                // What is under way may be written as long as the lease is renewed.
                StageName::Driver => self.wait_as_leader(ended).await?,
                StageName::Election => {
                    // The driver has ended, and orders nothing any more; but what it ordered may still be carried out.
                    let gate = self.gate.clone();
                    let mut is_quiet = false;
                    let quiet = async { is_quiet = timeout(HANDOVER_PATIENCE, gate.quiet()).await.is_ok() };
                    self.wait_as_leader(quiet).await?;
                    self.tenure.send_replace(Tenure::Nothing);
                    if is_quiet {
                        self.wait(ended).await?;
                    } else {
                        warn!(err = "writes are still under way", "The lease is not released but runs out");
                        // It would give the lease back when it is told to stop.
                        drop(ended);
                        task.end().await;
                    }
                }
                StageName::Server => self.wait(ended).await?,
            }
        }
        match self.programs.take() {
            Some(programs) => self.wait(programs.stop()).await,
            None => Ok(()),
        }
    }

    /// Waits for a part of the end while the lease is renewed; an error says that the process ends at once.
    async fn wait_as_leader(&mut self, part: impl Future<Output = ()>) -> Result<(), Ended> {
        let mut leadership = self.leadership.clone();
        let mut part = pin!(part);
        loop {
            tokio::select! {
                biased;
                waited = self.wait(part.as_mut()) => return waited,
                Ok(()) = leadership.changed() => {
                    if let Some(ended) = self.hear() {
                        return Err(ended);
                    }
                }
            }
        }
    }

    /// Waits for a part of the end; an error says that the process ends at once.
    async fn wait(&mut self, part: impl Future<Output = ()>) -> Result<(), Ended> {
        let mut part = pin!(part);
        loop {
            tokio::select! {
                biased;
                () = part.as_mut() => return Ok(()),
                end = self.supervisor.next_end() => match end.cause {
                    // It was told to.
                    TaskEndCause::Returned => {}
                    TaskEndCause::Panicked(_) => return Err(self.abandon(end).await),
                },
                signal = self.signals.next() => match signal {
                    Signal::Stop | Signal::StopNow => return Err(Ended::StoppedAtOnce),
                    Signal::Dump => {}
                },
            }
        }
    }

    /// Ends because a task has ended. Another replica need not wait for the lease to run out, if nothing is written any more
    /// for sure: the gate is closed first, and the lease is released only if all writes that had passed it have an answer.
    async fn abandon(&mut self, end: TaskEnd) -> Ended {
        error!(task = %end.task, err = %end, "A task has ended, and the process ends with it");
        let led = self.tenure.send_replace(Tenure::Nothing) != Tenure::Nothing;
        self.metrics.leading(false);
        for stage in std::mem::take(&mut self.stages) {
            match stage.name {
                // It would go on renewing.
                StageName::Election => stage.task.end().await,
                StageName::Driver | StageName::Server => stage.task.abort(),
            }
        }
        if let Some(candidate) = self.candidate.take().filter(|_| led) {
            match timeout(QUIET_PATIENCE, self.gate.quiet()).await {
                Ok(()) => candidate.release(&self.clock).await,
                Err(_) => warn!(err = "writes are still under way", "The lease is not released but runs out"),
            }
        }
        Ended::TaskEnded(end)
    }
}

/// Waits until the cluster is known; for ever if that cannot be any more, because the driver has ended.
async fn become_known(mut known: watch::Receiver<bool>) {
    if known.wait_for(|is_known| *is_known).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// This process as a candidate in the election.
#[derive(Clone)]
struct Candidate {
    store: ApiLeaseStore,
    identity: String,
    component: String,
}

impl Candidate {
    /// Tells people that we lead.
    async fn announce(self) {
        if let Err(error) = self.store.announce(&self.identity, &self.component, time_of_day()).await {
            warn!(err = %error, "The event that this replica leads could not be recorded");
        }
    }

    /// Gives back the lease of an election that has ended.
    async fn release(self, clock: &Clock) {
        let now = time_of_day_by(clock.clone())();
        match timeout(RELEASE_PATIENCE, leader::release(&self.store, &self.identity, now)).await {
            Ok(Ok(())) => info!("The lease is released"),
            Ok(Err(error)) => warn!(err = %error, "The lease is not released but runs out"),
            Err(_) => warn!(err = "the API server does not answer", "The lease is not released but runs out"),
        }
    }
}

/// The time of day as leases have it, by a clock of the cluster.
fn time_of_day_by(clock: Clock) -> impl Fn() -> jiff::Timestamp + Send + Sync + 'static {
    // Both count nanoseconds from the epoch, and jiff's range is wider.
    move || jiff::Timestamp::from_nanosecond(clock.now().nanoseconds().into()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
