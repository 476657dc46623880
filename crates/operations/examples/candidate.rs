//! How the parts go together: a process that takes part in an election and serves, and schedules nothing.
//!
//! `cargo run -p supercargo-operations --example candidate -- --kubeconfig FILE --secure-port 10259 -v 4`

use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser;
use supercargo_client::{ApiServer, ConnectOptions};
use supercargo_operations::flags::RunFlags;
use supercargo_operations::leader::{ApiLeaseStore, Election, LeaderSettings, Leadership, new_identity};
use supercargo_operations::metrics::{self, Metrics};
use supercargo_operations::serve::{Access, ApiReviewer, Check, FollowedAuthority, Routes, Server};
use supercargo_operations::signals::{Signal, Signals};
use supercargo_operations::{logs, serve};
use tokio::sync::watch;

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    flags: RunFlags,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = CommandLine::parse().flags;
    let verbosity = logs::start(flags.logging_format, flags.verbosity)?;
    let (overrides, warnings) = flags.overrides();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let mut signals = Signals::listen()?;

    let options = ConnectOptions {
        kubeconfig: overrides.kubeconfig.clone().map(Into::into),
        ..ConnectOptions::default()
    };
    let client = ApiServer::connect(&options).await?;

    let store = ApiLeaseStore::new(client.with_own_connections()?, "kube-system", "kube-scheduler");
    let election = Election::new(store, LeaderSettings::default(), new_identity())?;
    let watchdog = election.watchdog();
    let (sender, mut leadership) = watch::channel(Leadership::Following { holder: None });

    let (scheduler_metrics, exposition) = Metrics::new();
    let scheduler_metrics = Arc::new(Mutex::new(scheduler_metrics));
    let (stop, stopping) = watch::channel(false);
    let stopped = |mut stopping: watch::Receiver<bool>| async move {
        // The sender lives as long as main does.
        let _ = stopping.wait_for(|stop| *stop).await;
    };

    let authority = serve::look_up_client_authority(&client).await.unwrap_or_else(|error| {
        tracing::warn!(error, "Client certificates count for nothing");
        None
    });
    let mut server = None;
    if let Some(options) = flags.serving.options(&flags.access, Some(FollowedAuthority::new(authority))) {
        let listening = Server::listen(options).await?;
        let leader = Check::new("leaderElection", move || watchdog.check());
        let routes = Routes::new()
            .health("/healthz", vec![leader.clone()])
            .health("/livez", Vec::new())
            .health("/readyz", vec![leader])
            .page("/metrics", metrics::CONTENT_TYPE, move || exposition.text())
            .verbosity(verbosity);
        let access = Access::new(&flags.access.authorization_always_allow_paths)?
            .with_token_reviewer(ApiReviewer::new(&client))
            .with_access_reviewer(ApiReviewer::new(&client));
        server = Some(tokio::spawn(listening.run(routes, access, stopped(stopping.clone()))));
    }

    let election = tokio::spawn(election.run(stopped(stopping), sender));
    let mut was_leading = false;
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::StopNow => return Ok(()),
                Signal::Dump => tracing::info!("There is nothing to dump"),
            },
            changed = leadership.changed() => {
                let now = leadership.borrow_and_update().clone();
                let leads = matches!(now, Leadership::Leading { .. });
                scheduler_metrics.lock().unwrap_or_else(PoisonError::into_inner).leading(leads);
                if leads != std::mem::replace(&mut was_leading, leads) || !leads {
                    tracing::info!(leadership = ?now, "Leadership");
                }
                if now == Leadership::Lost || changed.is_err() {
                    break;
                }
            },
        }
    }
    stop.send_replace(true);
    let ended = election.await?;
    tracing::info!(?ended, "Election ended");
    if let Some(server) = server {
        server.await?;
    }
    Ok(())
}
