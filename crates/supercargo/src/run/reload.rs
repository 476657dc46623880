//! Takes up changes of the configuration file while the scheduler runs.

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use supercargo_cluster::{Command, Replacement};
use supercargo_config::KubeSchedulerConfiguration;
use supercargo_framework::Registry;
use supercargo_operations::flags::RunFlags;
use supercargo_operations::metrics::Metrics;
use supercargo_operations::reload::FileWatch;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, info, warn};

use super::settings::Settings;

/// What a change of the file changes.
pub(super) struct Reloading {
    pub(super) flags: RunFlags,
    pub(super) registry: Registry,
    /// What the scheduler runs with.
    pub(super) running: KubeSchedulerConfiguration,
    pub(super) commands: mpsc::Sender<Command>,
    /// What `/configz` shows.
    pub(super) shown: watch::Sender<Value>,
    pub(super) metrics: Metrics,
}

impl Reloading {
    /// Follows the file for ever.
    pub(super) async fn follow(mut self, mut file: FileWatch) {
        loop {
            let contents = file.changed().await.to_vec();
            let taken = self.take_up(contents).await;
            match &taken {
                Ok(()) => info!(
                    "The configuration file has changed, and the scheduler goes on with what it says now"
                ),
                Err(problems) => {
                    error!(
                        "The configuration file has changed but is refused, and the old configuration stays: {problems:#}"
                    );
                }
            }
            self.metrics.config_reloaded(taken.is_ok());
        }
    }

    async fn take_up(&mut self, contents: Vec<u8>) -> anyhow::Result<()> {
        let text = String::from_utf8(contents).context("the file is not UTF-8")?;
        let settings = Settings::of_text(&self.flags, &self.registry, Some(text), Some(&self.running))?;
        for warning in &settings.warnings {
            warn!("{warning}");
        }
        let shown = serde_json::to_value(&settings.effective)?;
        let (done, is_done) = oneshot::channel();
        let replacement = Replacement {
            profiles: settings.profiles,
            options: settings.scheduler,
            extender_settings: settings.extender_settings,
            extenders: settings.extenders,
        };
        let ended = || anyhow!("the scheduler has ended");
        self.commands.send(Command::Reload(Box::new(replacement), done)).await.map_err(|_| ended())?;
        is_done.await.map_err(|_| ended())?;
        self.running = settings.kube;
        self.shown.send_replace(shown);
        Ok(())
    }
}
