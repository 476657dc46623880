//! `supercargo shadow`: looks on while another scheduler works.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use supercargo_client::{ApiServer, Clock};
use supercargo_cluster::{
    NODES, PODS, PODS_NOT_FINISHED, Supervisor, Tasks, WatchEvent, WatchRequest, Watched,
};
use supercargo_explain::{Comparison, Judgement, Onlooker, Tally, render_comparison, render_summary};
use supercargo_framework::{Needs, Registry};
use supercargo_model::{Everything, GoDuration, KindId, printable};
use supercargo_operations::flags::{AccessFlags, LoggingFormat, ServingFlags};
use supercargo_operations::logs;
use supercargo_operations::metrics::{self, Exposition, ShadowMetrics};
use supercargo_operations::serve::{Check, Routes};
use supercargo_operations::signals::{Signal, Signals};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

use crate::live::{ConnectArguments, wait_for};
use crate::loaded_config::LoadedConfig;
use crate::outcome::Outcome;
use crate::serving::serve;

/// So much that watches tell may wait to be looked at.
const WATCHED_WAITING_MAX: usize = 1024;
/// Much longer than anybody looks on.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

#[derive(Debug, Args)]
// Whoever looks on from a desk, or beside kube-scheduler, does not expect anything to listen.
#[command(mut_arg("secure_port", |port| port.default_value("0")))]
pub(crate) struct ShadowOptions {
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
    /// The configuration to decide with; the default one if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// How long to look on, such as 1h30m; until SIGTERM or Ctrl-C if not given
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) duration: Option<GoDuration>,
    /// Look at pods of this scheduler; may be given several times; those of the configuration's profiles if not given. A
    /// configuration with one profile decides for any scheduler
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler_name: Vec<String>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = ShadowView::Table)]
    pub(crate) output: ShadowView,
    /// How much to log, on standard error
    #[arg(short, long, value_name = "LEVEL", default_value_t = 0)]
    pub(crate) verbosity: u8,
    /// Where health and metrics are served; nowhere unless a port is given.
    #[command(flatten)]
    pub(crate) serving: ServingFlags,
    /// Who may read them.
    #[command(flatten)]
    pub(crate) access: AccessFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShadowView {
    /// A line for each pod, and a summary
    #[default]
    Table,
    /// An object a line for each pod, and a last one with the summary
    Json,
}

pub(crate) fn run(options: &ShadowOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let config = LoadedConfig::from_file(options.config.as_deref(), registry)?;
    logs::start(LoggingFormat::Text, options.verbosity).context("cannot start logging")?;
    for note in config.notes.lines() {
        warn!("{note}");
    }
    if config.extenders > 0 {
        warn!("Extenders are not asked: {} of them have no say in what is compared", config.extenders);
    }
    wait_for(look_on(options, config))?;
    Ok(Outcome::default())
}

async fn look_on(options: &ShadowOptions, config: LoadedConfig) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let server = options.connect.connect().await?;
    let (metrics, exposition) = ShadowMetrics::new();
    let (known, is_known) = watch::channel(false);
    let (_stop_serving, serving_stopped) = oneshot::channel();
    let mut supervisor = Supervisor::new();
    let (tasks, routes) = (supervisor.tasks(), routes(exposition, is_known));
    serve(&options.serving, &options.access, &server, routes, &tasks, serving_stopped).await?;
    let mut watched = watch_all(&server, &config, &tasks);
    let (unlisted, needs) = (config.kinds(), Needs::of(&config.profiles));
    let onlooker = Onlooker::new(config.profiles, config.fixes, &options.scheduler_name)?;
    let mut shadow = Shadow {
        onlooker,
        tally: Tally::default(),
        metrics,
        known,
        unlisted,
        needs,
        clock: Clock::system(),
        view: options.output,
        is_unread: false,
    };
    let patience =
        options.duration.map_or(FOR_EVER, |duration| Duration::from_nanos(duration.0.max(0).unsigned_abs()));
    let mut end = std::pin::pin!(tokio::time::sleep(patience));
    loop {
        let settled = shadow.settled_in();
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::Stop | Signal::StopNow => break,
                Signal::Dump => info!("{}", shadow.stand()),
            },
            end = supervisor.next_end() => bail!("{end}"),
            () = &mut end => break,
            () = tokio::time::sleep(settled.unwrap_or(FOR_EVER)), if settled.is_some() => shadow.settle()?,
            Some(event) = watched.recv() => shadow.take(event)?,
        }
        if shadow.is_unread {
            // Whoever read along has seen enough.
            return Ok(());
        }
    }
    drop(supervisor);
    shadow.finish()
}

fn routes(exposition: Exposition, is_known: watch::Receiver<bool>) -> Routes {
    let known = Check::new("shadow-sync", move || match *is_known.borrow() {
        true => Ok(()),
        false => Err("the cluster is not known yet".to_owned()),
    });
    Routes::new()
        .health("/healthz", vec![Check::ping()])
        .health("/livez", vec![Check::ping()])
        .health("/readyz", vec![Check::ping(), known])
        .page("/metrics", metrics::CONTENT_TYPE, move || exposition.text())
        .slis()
}

/// Watches everything that the plugins read. Watches only ever read.
fn watch_all(server: &ApiServer, config: &LoadedConfig, tasks: &Tasks) -> mpsc::Receiver<WatchEvent> {
    let decoder = Arc::new(config.decoder());
    let (sender, watched) = mpsc::channel(WATCHED_WAITING_MAX);
    for (number, kind) in (0..).zip(config.kinds()) {
        let request = WatchRequest {
            kind,
            field_selector: (kind == PODS).then_some(PODS_NOT_FINISHED),
            is_known: false,
        };
        let (server, decoder, sender) = (server.clone(), decoder.clone(), sender.clone());
        let watching = supercargo_cluster::watch(server, request, decoder, number, sender);
        tasks.spawn(format!("watch of {}", kind.plural), watching);
    }
    watched
}

/// What is known, and what was found out.
struct Shadow {
    onlooker: Onlooker,
    tally: Tally,
    metrics: ShadowMetrics,
    /// Whether the cluster is known, for whoever asks whether we are ready.
    known: watch::Sender<bool>,
    /// The kinds that are still to be listed for the first time.
    unlisted: BTreeSet<KindId>,
    /// Who reads what.
    needs: Needs,
    clock: Clock,
    view: ShadowView,
    /// Nobody reads what we print.
    is_unread: bool,
}

impl Shadow {
    /// Takes in what a watch tells.
    fn take(&mut self, WatchEvent { kind, watched, .. }: WatchEvent) -> anyhow::Result<()> {
        let now = self.clock.now();
        match watched {
            Watched::Began if kind == PODS => {
                let comparisons = self.onlooker.pause(now);
                self.tell(&comparisons)?;
            }
            Watched::Began | Watched::Served => {}
            Watched::Put(object) => {
                let comparisons = self.onlooker.put(object, now);
                self.tell(&comparisons)?;
            }
            Watched::Removed(object) => {
                let comparisons = self.onlooker.remove(&object, now);
                self.tell(&comparisons)?;
            }
            Watched::Listed(everything) => {
                if let Some(everything) = everything {
                    self.metrics.watch_restarted(kind.plural);
                    self.onlooker.retain(&everything);
                }
                self.known(kind, kind == PODS);
            }
            Watched::Unserved => {
                if let Some(absence) = self.needs.absence(kind) {
                    warn!(kind = kind.plural, "{absence}");
                }
                self.onlooker.retain(&Everything::none_of(kind));
                self.known(kind, false);
            }
            // The watch has said so itself.
            Watched::Resumed | Watched::Unreadable => {}
            Watched::Stalled { reason } => {
                let is_needed = kind == PODS || kind == NODES;
                if !is_needed && self.unlisted.contains(&kind) {
                    warn!(
                        err = reason,
                        kind = kind.plural,
                        "Cannot be read and is treated as if there were none"
                    );
                    self.known(kind, false);
                } else {
                    warn!(err = reason, kind = kind.plural, "Cannot be watched for now");
                }
            }
        }
        self.settle()
    }

    /// How long until the next binding can be compared.
    fn settled_in(&self) -> Option<Duration> {
        self.onlooker.deadline().map(|deadline| deadline.since(self.clock.now()))
    }

    /// Compares what has been held long enough.
    fn settle(&mut self) -> anyhow::Result<()> {
        let comparisons = self.onlooker.settle(self.clock.now());
        self.tell(&comparisons)?;
        let (nodes, waiting) = self.onlooker.counts();
        self.metrics.stands(nodes, waiting, self.onlooker.held());
        self.metrics.missed(self.onlooker.missed());
        Ok(())
    }

    fn tell(&mut self, comparisons: &[Comparison]) -> anyhow::Result<()> {
        for comparison in comparisons {
            self.tally.add(comparison);
            self.count(comparison);
            self.is_unread |= !print(&line_of(comparison, self.view)?)?;
        }
        Ok(())
    }

    fn count(&mut self, comparison: &Comparison) {
        self.metrics.compared(comparison.judgement.label(), comparison.held);
        match &comparison.judgement {
            Judgement::Same | Judgement::Tied => {}
            Judgement::Better(difference) | Judgement::Worse(difference) => {
                for (plugin, points) in &difference.plugins {
                    self.metrics.difference(plugin, *points);
                }
            }
            Judgement::Rejected { plugin, .. } => {
                self.metrics.rejected(plugin.as_deref().unwrap_or_default());
            }
        }
    }

    /// A kind was listed. Pods can be compared as soon as all are, and whenever a broken list of pods has been mended.
    fn known(&mut self, kind: KindId, are_pods: bool) {
        let is_news = self.unlisted.remove(&kind);
        if self.unlisted.is_empty() && (is_news || are_pods) {
            self.onlooker.watch();
        }
        if self.unlisted.is_empty() && is_news {
            let (nodes, waiting) = self.onlooker.counts();
            self.known.send_replace(true);
            info!(nodes, waiting, "The cluster is known; looking on");
        }
    }

    fn stand(&mut self) -> String {
        let (nodes, waiting) = self.onlooker.counts();
        let summary = render_summary(&self.tally.summary(self.onlooker.missed()));
        format!("{nodes} nodes, {waiting} pods waiting; {summary}")
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let comparisons = self.onlooker.settle_all(self.clock.now());
        self.tell(&comparisons)?;
        let summary = self.tally.summary(self.onlooker.missed());
        let text = match self.view {
            ShadowView::Table => render_summary(&summary),
            ShadowView::Json => format!("{}\n", serde_json::json!({ "summary": summary })),
        };
        print(&text).map(|_| ())
    }
}

/// A comparison as one line, whatever the names in it are.
fn line_of(comparison: &Comparison, view: ShadowView) -> anyhow::Result<String> {
    let text = match view {
        ShadowView::Table => render_comparison(comparison),
        ShadowView::Json => serde_json::to_string(comparison)?,
    };
    Ok(format!("{}\n", printable(text.trim_end_matches('\n'))))
}

/// Prints at once, for whoever reads along; false if nobody does.
fn print(text: &str) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line() {
        let comparison = Comparison {
            pod: "default/a\nsame      default/b".to_owned(),
            theirs: "\u{1b}[31mnode\u{202e}".to_owned(),
            ours: None,
            feasible: 0,
            judgement: Judgement::Same,
            held: Duration::ZERO,
        };
        for view in [ShadowView::Table, ShadowView::Json] {
            let line = line_of(&comparison, view).expect("it can be written");
            assert_eq!(line.find(['\n', '\u{1b}', '\u{202e}']), Some(line.len() - 1), "{line:?}");
        }
    }
}
