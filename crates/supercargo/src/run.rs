//! `supercargo run`: schedules a real cluster.

pub(crate) mod decisions;
mod observer;
mod reload;
mod settings;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use supercargo_cluster::{
    ApiServer, Clock, Command, ConnectOptions, Driver, DriverOptions, Progress, hostname,
};
use supercargo_engine::Scheduler;
use supercargo_framework::Registry;
use supercargo_operations::clock::time_of_day;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::leader::{Election, Ended, KubeLeaseStore, Leadership, Watchdog, new_identity};
use supercargo_operations::logs;
use supercargo_operations::metrics::{Exposition, Metrics};
use supercargo_operations::serve::{Check, Component, Routes};
use supercargo_operations::signals::{Signal, Signals};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, info, warn};

use crate::outcome::Outcome;
use crate::serving::serve;
use decisions::{DECISIONS_PATH, DecisionsPage, SharedJournal};
use observer::RunObserver;
use reload::Reloading;
use settings::Settings;

/// So many commands may wait for the scheduler.
const COMMANDS_WAITING_MAX: usize = 16;
/// The version of kube-scheduler whose decisions, flags and metrics these are.
const EMULATED_VERSION: &str = "1.36";
/// Two threads keep the network and the scheduler busy; more only cost memory.
const THREADS: usize = 2;

pub(crate) fn run(flags: &RunFlags, registry: &Registry) -> anyhow::Result<Outcome> {
    let settings = Settings::of(flags, registry)?;
    if let Some(file) = &flags.write_config_to {
        std::fs::write(file, settings.as_yaml())
            .with_context(|| format!("cannot write {}", file.display()))?;
        return Ok(Outcome::default());
    }
    logs::start(flags.logging_format, flags.verbosity).context("cannot start logging")?;
    for warning in &settings.warnings {
        warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let code = runtime.block_on(schedule(flags, registry, settings))?;
    // Whatever still waits for the network need not be waited for.
    runtime.shutdown_background();
    Ok(Outcome { code, ..Outcome::default() })
}

/// Schedules until told to stop, or until another replica leads. Returned is the exit code.
async fn schedule(flags: &RunFlags, registry: &Registry, settings: Settings) -> anyhow::Result<u8> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let connection = &settings.kube.client_connection;
    let server = ApiServer::connect(&ConnectOptions::new(connection, flags.master.clone())).await?;
    let (metrics, exposition) = Metrics::new();
    let (commands, commanded) = mpsc::channel(COMMANDS_WAITING_MAX);
    let (leads, led) = watch::channel(false);
    let scheduler =
        Scheduler::new(settings.profiles, settings.scheduler).with_extenders(settings.extender_settings);
    let driver = DriverOptions {
        scheduler,
        server: server.clone(),
        clock: Clock::system(),
        hostname: hostname(),
        seed: settings.own.seed,
        extenders: settings.extenders,
        leads: led,
    };
    let journal = SharedJournal::default();
    let driver = Driver::start(driver, RunObserver::new(metrics.clone(), journal.clone()), commanded);
    // As upstream, the first profile gives its name to events about the lease.
    let component = settings.kube.profiles.first().map_or("", |profile| &profile.scheduler_name).to_owned();
    let candidacy = settings.election.map(|(settings, namespace, name)| {
        let store = KubeLeaseStore::new(server.client().clone(), namespace, name);
        let identity = new_identity();
        let election = Election::new(store.clone(), settings, identity.clone());
        election.map(|election| (election, Announcement { store, identity, component }))
    });
    let (election, announcement) = candidacy.transpose().context("leaderElection is not usable")?.unzip();
    let watchdog = election.as_ref().map(Election::watchdog);
    let (stop_serving, serving_stopped) = oneshot::channel();
    let (shown, config) = watch::channel(serde_json::to_value(&settings.effective)?);
    let decisions = DecisionsPage::new(journal, commands.clone());
    let progress = driver.progress();
    let pages = Pages { exposition, progress, watchdog, config, decisions, flags: flags.shown.clone() };
    let serving = serve(&flags.serving, &flags.access, &server, routes(pages), serving_stopped).await?;

    let (stop_driver, driver_stopped) = oneshot::channel::<()>();
    let driving = tokio::spawn(driver.run(async move { _ = driver_stopped.await }));
    let (stop_election, election_stopped) = oneshot::channel::<()>();
    let (leadership, mut led) = watch::channel(Leadership::Following { holder: None });
    let electing = match election {
        Some(election) => tokio::spawn(election.run(async move { _ = election_stopped.await }, leadership)),
        None => {
            leads.send_replace(true);
            tokio::spawn(async move {
                _ = election_stopped.await;
                drop(leadership);
                Ended::Stopped
            })
        }
    };
    let reloading = Reloading {
        flags,
        registry,
        running: settings.kube,
        commands: commands.clone(),
        shown,
        metrics: metrics.clone(),
    };
    let mut metrics = metrics;
    let mut reloading = pin!(reloading.follow(settings.file));
    let lost = loop {
        tokio::select! {
            never = &mut reloading => match never {},
            signal = signals.next() => match signal {
                Signal::Stop => break false,
                Signal::StopNow => return Ok(1),
                Signal::Dump => _ = commands.try_send(Command::Dump),
            },
            Ok(()) = led.changed() => {
                let leadership = led.borrow_and_update().clone();
                metrics.leading(matches!(leadership, Leadership::Leading));
                match leadership {
                    Leadership::Leading => {
                        info!("This replica schedules from now on");
                        if let Some(announcement) = announcement.clone() {
                            tokio::spawn(announcement.make());
                        }
                        leads.send_replace(true);
                    }
                    Leadership::Following { holder: Some(holder) } => info!(holder, "Another replica schedules"),
                    Leadership::Following { holder: None } => {}
                    Leadership::Lost => break true,
                }
            }
        }
    };
    if lost {
        // Another replica may lead already: nothing more may be done.
        error!("The lease was lost");
        return Ok(1);
    }
    info!("Stopping: what is under way is finished first");
    leads.send_replace(false);
    drop(stop_driver);
    let stopped = async {
        _ = driving.await;
        drop(stop_election);
        _ = electing.await;
        drop(stop_serving);
        _ = serving.await;
    };
    tokio::select! {
        () = stopped => Ok(0),
        _ = signals.next() => Ok(1),
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

/// What is served.
struct Pages {
    exposition: Exposition,
    progress: Progress,
    watchdog: Option<Watchdog>,
    config: watch::Receiver<serde_json::Value>,
    decisions: DecisionsPage,
    flags: BTreeMap<String, String>,
}

fn routes(pages: Pages) -> Routes {
    let Pages { exposition, progress, watchdog, config, decisions, flags } = pages;
    let leader = move || {
        let watchdog = watchdog.clone();
        Check::new("leaderElection", move || watchdog.as_ref().map_or(Ok(()), Watchdog::check))
    };
    let synced = Check::new("sched-handler-sync", move || progress.check());
    Routes::new()
        .health("/healthz", vec![Check::ping(), leader()])
        .health("/livez", vec![Check::ping()])
        .health("/readyz", vec![Check::ping(), leader(), synced])
        .page("/metrics", supercargo_operations::metrics::CONTENT_TYPE, move || exposition.text())
        .object(DECISIONS_PATH, move |namespace, name| {
            let decisions = decisions.clone();
            async move { decisions.report(namespace, name).await }
        })
        .json("/configz", move || serde_json::json!({ "componentconfig": &*config.borrow() }))
        .slis()
        .zpages(component(), flags)
}

/// What runs, for those who look at it.
fn component() -> Component {
    Component {
        name: "supercargo",
        version: env!("CARGO_PKG_VERSION"),
        emulated_version: EMULATED_VERSION,
        started: time_of_day(),
        clock: time_of_day,
    }
}

/// How long a pod that fits nowhere waits at most, as the flag says.
fn duration(duration: supercargo_framework::GoDuration) -> Duration {
    Duration::from_nanos(duration.0.max(0).unsigned_abs())
}
