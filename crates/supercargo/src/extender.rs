//! `supercargo extender`: answers a stock kube-scheduler with the plugins of a profile.

mod surroundings;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use supercargo_client::{ApiServer, Clock, ConnectOptions};
use supercargo_cluster::{Supervisor, Task, Tasks};
use supercargo_engine::Seed;
use supercargo_extender::server::{Answerer, Limits, Outcome as Answered, Service, Verb, WireNames};
use supercargo_framework::Registry;
use supercargo_operations::flags::LoggingFormat;
use supercargo_operations::logs;
use supercargo_operations::metrics::{self, Exposition, ExtenderMetrics};
use supercargo_operations::serve::{Check, OpenServer, OpenTls, Routes};
use supercargo_operations::signals::{Signal, Signals};
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::loaded_config::LoadedConfig;
use crate::outcome::Outcome;
use surroundings::{ExtenderSurroundings, WatchedCluster};

/// Below this not even a pod fits.
const BODY_BYTES_MIN: usize = 64 << 10;

#[derive(Debug, Args)]
pub(crate) struct ExtenderOptions {
    /// The configuration whose plugins answer, of any version, `-` for standard input; the default one if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Where to listen: an address with a port, or `:8888` for all addresses of this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,
    /// The profile that answers, whatever scheduler a pod asks for; without it, the one named like the pod's scheduler, or
    /// else default-scheduler, or else the first
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The kubeconfig of the cluster to watch; goes before clientConnection.kubeconfig of the configuration. Without either,
    /// the cluster that this process is a pod of
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The address of the API server; goes before what the kubeconfig says
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
    /// Watch no cluster: answer by the nodes that are sent (nodeCacheCapable: false) alone, as if no pods ran on them
    #[arg(long, conflicts_with_all = ["kubeconfig", "master", "serve_bind"])]
    pub(crate) without_cluster: bool,
    /// Answer bind as well. Whoever can ask can then bind pods: listen on a loopback address, or give --client-ca-file
    #[arg(long)]
    pub(crate) serve_bind: bool,
    /// Write answers with the names that schedulers before 1.17 used; questions are read in either
    #[arg(long)]
    pub(crate) legacy_names: bool,
    /// How many bytes a question may have
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body_bytes_max)]
    pub(crate) body_bytes_max: usize,
    /// The certificate to speak TLS with, and its chain, in PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// The authority of clients: if it is given, all but health probes need a certificate of it
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// How much to log, on standard error; at 2 every question
    #[arg(short, long, value_name = "LEVEL", default_value_t = 0)]
    pub(crate) verbosity: u8,
    /// What the program is called, which may have plugins of its own
    #[arg(skip = String::from("supercargo"))]
    pub(crate) program: String,
}

pub(crate) fn run(options: &ExtenderOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    if options.body_bytes_max < BODY_BYTES_MIN {
        bail!(
            "--body-bytes-max {} is too little for a pod: give at least {BODY_BYTES_MIN}",
            options.body_bytes_max
        );
    }
    let config = LoadedConfig::from_file(options.config.as_deref(), registry)?;
    logs::start(LoggingFormat::Text, options.verbosity).context("cannot start logging")?;
    for note in config.notes.lines() {
        warn!("{note}");
    }
    if config.extenders > 0 {
        warn!("The {} extenders of the configuration are not asked: this process is one", config.extenders);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let ended = runtime.block_on(answer_until_stopped(options, config));
    // Whatever still waits for the network need not be waited for.
    runtime.shutdown_background();
    ended?;
    Ok(Outcome::default())
}

async fn answer_until_stopped(options: &ExtenderOptions, config: LoadedConfig) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let server = match options.without_cluster {
        true => None,
        false => Some(ApiServer::connect(&connect_options(options, &config)).await?),
    };
    let mut supervisor = Supervisor::new();
    let extender = Extender::start(options, config, server, &supervisor.tasks())?;
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::StopNow => return Ok(()),
                Signal::Dump => extender.dump(),
            },
            end = supervisor.next_end() => bail!("{end}"),
        }
    }
    info!("Stopping: questions under way are answered first");
    extender.stop().await;
    Ok(())
}

/// Which API server the flags and the configuration name.
fn connect_options(options: &ExtenderOptions, config: &LoadedConfig) -> ConnectOptions {
    let named = ConnectOptions::new(&config.connection, options.master.clone());
    ConnectOptions { kubeconfig: options.kubeconfig.clone().or(named.kubeconfig), ..named }
}

/// An extender that answers. Its tasks end with it.
struct Extender {
    address: SocketAddr,
    watched: Option<WatchedCluster>,
    stop: oneshot::Sender<()>,
    serving: Task,
}

impl Extender {
    /// Begins to watch the cluster, if there is one, and to answer.
    fn start(
        options: &ExtenderOptions,
        config: LoadedConfig,
        server: Option<ApiServer>,
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let LoadedConfig { profiles, fixes, seed, .. } = config;
        let names: Vec<&str> = profiles.iter().map(|profile| &*profile.scheduler_name).collect();
        info!(profiles = names.join(","), isWatching = server.is_some(), "Using configuration");
        let answerer = Answerer::new(profiles.clone(), fixes, options.profile.as_deref())?;
        let outcomes = [Answered::Answered, Answered::Failed, Answered::Malformed, Answered::Refused];
        let (metrics, exposition) =
            ExtenderMetrics::new(&Verb::ALL.map(Verb::name), &outcomes.map(Answered::name));
        let tls = options.tls_cert_file.clone().zip(options.tls_private_key_file.clone());
        let tls = tls.map(|(certificate, key)| OpenTls {
            certificate,
            key,
            client_authority: options.client_ca_file.clone(),
        });
        let listening = OpenServer::listen(options.listen, tls)?;
        let address = listening.address();
        let is_open = !address.ip().is_loopback() && options.client_ca_file.is_none();
        if options.serve_bind && is_open {
            warn!(%address, "Whoever reaches this address can have pods bound: give --client-ca-file");
        }
        let clock = Clock::system();
        let watched = server.map(|server| {
            WatchedCluster::start(server, profiles, fixes, Seed(seed), clock.clone(), metrics.clone(), tasks)
        });
        if watched.is_none() {
            warn!(
                "No cluster is watched: what runs on the nodes is not known, and names of nodes are not answered"
            );
        }
        let routes = routes(watched.as_ref(), exposition);
        let surroundings =
            ExtenderSurroundings::new(watched.clone(), options.serve_bind, clock, Seed(seed), metrics);
        let names = if options.legacy_names { WireNames::Legacy } else { WireNames::Go };
        let limits = Limits { body_bytes_max: options.body_bytes_max, ..Limits::default() };
        let service = Service::new(answerer, surroundings, names, limits);
        let routes = routes.merge(service.into_router(format!("Welcome to {}!\n", options.program)));
        let (stop, stopped) = oneshot::channel::<()>();
        info!("Answering on {address}");
        let serving = tasks.spawn("server", listening.run(routes, async move { _ = stopped.await }));
        Ok(Extender { address, watched, stop, serving })
    }

    /// Writes what is known to the log.
    fn dump(&self) {
        info!(address = %self.address, "Answering");
        if let Some(watched) = &self.watched {
            watched.dump();
        }
    }

    /// Ends when the questions under way are answered, or have had their time.
    async fn stop(mut self) {
        drop(self.stop);
        self.serving.ended().await;
    }
}

fn routes(watched: Option<&WatchedCluster>, exposition: Exposition) -> Routes {
    let (live, ready) = match watched {
        None => (Vec::new(), Vec::new()),
        Some(watched) => {
            let (progress, heartbeat) = (watched.progress.clone(), watched.heartbeat.clone());
            let known = Check::new("extender-sync", move || progress.check());
            (vec![Check::new("driver", move || heartbeat.check())], vec![known])
        }
    };
    let with_ping = |checks: Vec<Check>| [Check::ping()].into_iter().chain(checks).collect();
    let exposition = Arc::new(exposition);
    Routes::new()
        .health("/healthz", vec![Check::ping()])
        .health("/livez", with_ping(live))
        .health("/readyz", with_ping(ready))
        .page("/metrics", metrics::CONTENT_TYPE, move || exposition.text())
        .slis()
}

/// An address with a port, where an absent address means all.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let all = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port.parse().ok()?));
    let address = match text.strip_prefix(':') {
        Some(port) => all(port),
        None => text.parse().ok(),
    };
    address.ok_or_else(|| "give an IP address with a port, such as 127.0.0.1:8888, or :8888".to_owned())
}
