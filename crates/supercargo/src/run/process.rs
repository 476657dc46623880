//! The process that schedules a cluster, put together from what it is given: the binary, a test and a simulation run the same.

use std::fmt;

use anyhow::Context as _;
use supercargo_cluster::{
    ApiServer, Clock, Command, ConnectOptions, Driver, DriverOptions, Supervisor, Task, TaskEnd, TaskEndCause,
};
use supercargo_engine::Scheduler;
use supercargo_framework::Registry;
use supercargo_operations::clock::time_of_day;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::leader::{Election, KubeLeaseStore, Leadership};
use supercargo_operations::metrics::Metrics;
use supercargo_operations::reload::Files;
use supercargo_operations::signals::{Signal, Signals};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, info, warn};

use super::decisions::{DecisionsPage, SharedJournal};
use super::observer::RunObserver;
use super::pages::Pages;
use super::reload::Reloading;
use super::settings::Settings;
use crate::serving::serve;

/// How many commands may wait for the scheduler.
const COMMANDS_WAITING_MAX: usize = 16;

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
        let mut running = Running::start(self, surroundings).await?;
        let ended = running.follow().await;
        Ok(ended)
    }
}

/// A process that runs. All its tasks end with it.
struct Running {
    supervisor: Supervisor,
    signals: Signals,
    commands: mpsc::Sender<Command>,
    leadership: watch::Receiver<Leadership>,
    leads: watch::Sender<bool>,
    metrics: Metrics,
    announcement: Option<Announcement>,
    /// The tasks that are stopped one after the other, in this order.
    stages: Vec<Stage>,
}

/// A task that ends when its sender is dropped.
struct Stage {
    stop: oneshot::Sender<()>,
    task: Task,
}

impl Running {
    async fn start(process: Process, surroundings: Surroundings) -> anyhow::Result<Self> {
        let Process { flags, registry, settings } = process;
        let Surroundings { server, clock, signals, identity, hostname } = surroundings;
        let supervisor = Supervisor::new();
        let tasks = supervisor.tasks();
        let (metrics, exposition) = Metrics::new();
        let (commands, commanded) = mpsc::channel(COMMANDS_WAITING_MAX);
        let (leads, led) = watch::channel(false);
        let scheduler =
            Scheduler::new(settings.profiles, settings.scheduler).with_extenders(settings.extender_settings);
        let driver = DriverOptions {
            scheduler,
            server: server.clone(),
            clock: clock.clone(),
            hostname,
            seed: settings.own.seed,
            extenders: settings.extenders,
            leads: led,
        };
        let journal = SharedJournal::default();
        let driver = Driver::start(driver, RunObserver::new(metrics.clone(), journal.clone()), commanded);
        // As upstream, the first profile gives its name to events about the lease.
        let component =
            settings.kube.profiles.first().map_or("", |profile| &profile.scheduler_name).to_owned();
        let lease_server = server.with_own_connections()?;
        let candidacy = settings.election.map(|(settings, namespace, name)| {
            let store = KubeLeaseStore::new(lease_server.client().clone(), namespace, name);
            let election = Election::new(store.clone(), settings, identity.clone());
            election.map(|election| (election, Announcement { store, identity, component }))
        });
        let (election, announcement) = candidacy.transpose().context("leaderElection is not usable")?.unzip();
        let (shown, config) = watch::channel(serde_json::to_value(&settings.effective)?);
        let pages = Pages {
            exposition,
            progress: driver.progress(),
            heartbeat: driver.heartbeat(),
            watchdog: election.as_ref().map(Election::watchdog),
            config,
            decisions: DecisionsPage::new(journal, commands.clone()),
            flags: flags.shown.clone(),
        };
        let (stop_serving, stopped) = oneshot::channel();
        let routes = pages.routes();
        let serving = serve(&flags.serving, &flags.access, &server, routes, &tasks, stopped).await?;

        let mut stages = Vec::new();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tasks.spawn("driver", driver.run(async move { _ = stopped.await }));
        stages.push(Stage { stop, task });
        let (told, leadership) = watch::channel(Leadership::Following { holder: None });
        match election {
            Some(election) => {
                let (stop, stopped) = oneshot::channel::<()>();
                let task = tasks.spawn("election", async move {
                    // How it ended is told by the leadership.
                    _ = election.run(async move { _ = stopped.await }, told).await;
                });
                stages.push(Stage { stop, task });
            }
            None => _ = leads.send_replace(true),
        }
        stages.extend(serving.map(|task| Stage { stop: stop_serving, task }));
        if let Some(file) = settings.file {
            let reloading = Reloading {
                flags,
                registry,
                running: settings.kube,
                commands: commands.clone(),
                shown,
                metrics: metrics.clone(),
            };
            tasks.spawn("reload", reloading.follow(file));
        }
        Ok(Running { supervisor, signals, commands, leadership, leads, metrics, announcement, stages })
    }

    /// Looks after the tasks until the process ends.
    async fn follow(&mut self) -> Ended {
        loop {
            tokio::select! {
                biased;
                // An election that has lost the lease says so, and then its task ends.
                Ok(()) = self.leadership.changed() => {
                    if let Some(ended) = self.hear() {
                        return ended;
                    }
                }
                end = self.supervisor.next_end() => return self.abandon(end),
                signal = self.signals.next() => match signal {
                    Signal::Stop => break,
                    Signal::StopNow => return Ended::StoppedAtOnce,
                    Signal::Dump => _ = self.commands.try_send(Command::Dump),
                },
            }
        }
        info!("Stopping: what is under way is finished first");
        self.leads.send_replace(false);
        self.stop().await
    }

    /// Takes note of who leads; how the process ends if that is its end.
    fn hear(&mut self) -> Option<Ended> {
        let leadership = self.leadership.borrow_and_update().clone();
        self.metrics.leading(matches!(leadership, Leadership::Leading));
        match leadership {
            Leadership::Leading => {
                info!("This replica schedules from now on");
                if let Some(announcement) = self.announcement.clone() {
                    self.supervisor.tasks().spawn_brief("announcement", announcement.make());
                }
                self.leads.send_replace(true);
                None
            }
            Leadership::Following { holder: Some(holder) } => {
                info!(holder, "Another replica schedules");
                None
            }
            Leadership::Following { holder: None } => None,
            Leadership::Lost => {
                // Another replica may lead already: nothing more may be done.
                error!("The lease was lost");
                Some(Ended::LeaseLost)
            }
        }
    }

    /// Stops one task after the other: what writes, then what lets others write, then what tells about it.
    async fn stop(&mut self) -> Ended {
        for Stage { stop, mut task } in std::mem::take(&mut self.stages) {
            drop(stop);
            loop {
                tokio::select! {
                    biased;
                    () = task.ended() => break,
                    end = self.supervisor.next_end() => match end.cause {
                        // It was told to.
                        TaskEndCause::Returned => {}
                        TaskEndCause::Panicked(_) => return self.abandon(end),
                    },
                    signal = self.signals.next() => match signal {
                        Signal::Stop | Signal::StopNow => return Ended::StoppedAtOnce,
                        Signal::Dump => {}
                    },
                }
            }
        }
        Ended::Stopped
    }

    /// Ends because a task has ended.
    fn abandon(&mut self, end: TaskEnd) -> Ended {
        error!(task = %end.task, err = %end, "A task has ended, and the process ends with it");
        Ended::TaskEnded(end)
    }
}

/// Tells people that we lead.
#[derive(Clone)]
struct Announcement {
    store: KubeLeaseStore,
    identity: String,
    component: String,
}

impl Announcement {
    async fn make(self) {
        if let Err(error) = self.store.announce(&self.identity, &self.component, time_of_day()).await {
            warn!("The event that this replica leads could not be recorded: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
