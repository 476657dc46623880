//! Takes up changes of the configuration file while the scheduler runs.

use std::future::pending;

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use supercargo_cluster::{Command, ReloadRefused, Replacement};
use supercargo_framework::Registry;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::metrics::Metrics;
use supercargo_operations::reload::FileWatch;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, info, warn};

use super::settings::{RunningConfig, Settings};

/// What a change of the file changes.
pub(super) struct Reloading {
    pub(super) flags: RunFlags,
    pub(super) registry: Registry,
    /// What the scheduler runs with.
    pub(super) running: RunningConfig,
    pub(super) commands: mpsc::Sender<Command>,
    /// What `/configz` shows.
    pub(super) shown: watch::Sender<Value>,
    pub(super) metrics: Metrics,
}

/// A change that waits until the scheduler knows of the cluster what it needs.
struct Pending {
    running: RunningConfig,
    shown: Value,
    done: oneshot::Receiver<Result<(), ReloadRefused>>,
}

impl Reloading {
    /// Follows the file for ever.
    ///
    /// The old configuration counts until the scheduler has taken up the new one. If the file changes once more before that, the
    /// newer change takes its place, unless it is no configuration.
    pub(super) async fn follow(mut self, mut file: FileWatch) {
        let mut waiting: Option<Pending> = None;
        loop {
            tokio::select! {
                outcome = outcome(&mut waiting) => {
                    if let Some(pending) = waiting.take() {
                        self.conclude(pending, outcome);
                    }
                }
                contents = file.changed() => {
                    let contents = contents.to_vec();
                    match self.take_up(contents).await {
                        Ok(next) => {
                            // The scheduler has taken up the earlier change, or gives it up for the next one: both are known soon.
                            if waiting.is_some() {
                                let outcome = outcome(&mut waiting).await;
                                if let Some(earlier) = waiting.take() {
                                    self.conclude(earlier, outcome);
                                }
                            }
                            waiting = Some(next);
                        }
                        Err(problems) => self.refuse(&problems),
                    }
                }
            }
        }
    }

    /// What has come of a change that has waited.
    fn conclude(&mut self, Pending { running, shown, .. }: Pending, outcome: Result<(), ReloadRefused>) {
        match outcome {
            Ok(()) => {
                self.running = running;
                self.shown.send_replace(shown);
                self.metrics.config_reloaded(true);
                info!("The configuration file has changed, and the scheduler goes on with what it says now");
            }
            Err(problems) => self.refuse(&problems.into()),
        }
    }

    fn refuse(&mut self, problems: &anyhow::Error) {
        self.metrics.config_reloaded(false);
        error!(
            err = format!("{problems:#}"),
            "The configuration file has changed but is refused, and the old configuration stays"
        );
    }

    async fn take_up(&mut self, contents: Vec<u8>) -> anyhow::Result<Pending> {
        let text = String::from_utf8(contents).context("the file is not UTF-8")?;
        let settings = Settings::of_text(&self.flags, &self.registry, Some(&text), Some(&self.running))?;
        for warning in &settings.warnings {
            warn!("{warning}");
        }
        let (running, shown) = (settings.running_config(), serde_json::to_value(&settings.effective)?);
        let (answer, done) = oneshot::channel();
        let replacement = Replacement {
            profiles: settings.profiles,
            options: settings.scheduler,
            extender_settings: settings.extender_settings,
            extenders: settings.extenders,
        };
        let command = Command::Reload(Box::new(replacement), answer);
        self.commands.send(command).await.map_err(|_| anyhow!("the scheduler has ended"))?;
        Ok(Pending { running, shown, done })
    }
}

/// What has come of a change that waits; never, if none does, or if the scheduler has ended, which ends the process. Giving up the
/// wait loses nothing.
async fn outcome(waiting: &mut Option<Pending>) -> Result<(), ReloadRefused> {
    match waiting {
        Some(Pending { done, .. }) => match done.await {
            Ok(outcome) => outcome,
            Err(_) => pending().await,
        },
        None => pending().await,
    }
}
