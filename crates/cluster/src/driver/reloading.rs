//! Another configuration: first everything is listed that it needs, then it takes the place of the one that runs.

use std::time::Duration;

use supercargo_engine::Observer;
use supercargo_model::Everything;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::info;

use super::{Driver, Replacement};

/// How long a configuration that is to follow may wait for what it needs to be listed. The one that runs goes on meanwhile.
pub(super) const RELOAD_PATIENCE: Duration = Duration::from_secs(30);

/// Why another configuration did not take the place of the one that runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadRefused {
    /// What it needs could not be listed.
    #[error(
        "what it needs to know of the cluster was not there after {seconds} s: {missing}",
        seconds = RELOAD_PATIENCE.as_secs()
    )]
    NotListed {
        /// The kinds, with the reasons.
        missing: String,
    },
    /// Another one came while it waited.
    #[error("another configuration came before everything was listed that this one needs")]
    Superseded,
}

/// A configuration that waits for what it needs.
#[derive(Debug)]
pub(super) struct PendingReload {
    replacement: Replacement,
    done: oneshot::Sender<Result<(), ReloadRefused>>,
    pub(super) until: Instant,
}

impl<O: Observer> Driver<O> {
    /// Begins to list what another configuration needs. One that waits already is superseded.
    pub(super) async fn begin_reload(
        &mut self,
        replacement: Replacement,
        done: oneshot::Sender<Result<(), ReloadRefused>>,
    ) {
        if let Some(pending) = self.pending.take() {
            // It is no error if nobody waits for the answer.
            let _ = pending.done.send(Err(ReloadRefused::Superseded));
        }
        let gone = self.watches.prepare(&replacement.profiles, !replacement.extenders.is_empty()).await;
        self.forget(gone);
        self.pending = Some(PendingReload { replacement, done, until: Instant::now() + RELOAD_PATIENCE });
    }

    /// Goes on with the configuration that waits, if everything is there that it needs; refuses it, if that took too long.
    pub(super) async fn continue_reload(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let missing = self.watches.missing();
        if missing.is_empty() {
            self.replace(pending.replacement).await;
            let _ = pending.done.send(Ok(()));
        } else if pending.until <= Instant::now() {
            let gone = self.watches.abandon().await;
            self.forget(gone);
            let _ = pending.done.send(Err(ReloadRefused::NotListed { missing: missing.join("; ") }));
        } else {
            self.pending = Some(pending);
        }
    }

    async fn replace(&mut self, replacement: Replacement) {
        let Replacement { profiles, options, extender_settings, extenders } = replacement;
        // Questions to extenders name them by their place, so those that were asked go out first.
        self.give_orders();
        self.scheduler.replace_profiles(profiles, options, extender_settings, self.clock.now());
        let gone = self.watches.commit(self.scheduler.profiles()).await;
        self.forget(gone);
        self.ask_others();
        self.extenders = extenders;
        self.pace.note_news();
        // It may have been only the profiles before that miss something.
        self.note_knowledge();
        let profiles = self.scheduler.profiles().iter().map(|profile| profile.scheduler_name.as_str());
        info!(profiles = profiles.collect::<Vec<_>>().join(","), "The scheduler has other profiles now");
    }

    /// Forgets kinds that nobody reads.
    fn forget(&mut self, gone: Vec<Everything>) {
        for everything in gone {
            self.scheduler.retain(&everything, self.clock.now());
        }
    }
}
