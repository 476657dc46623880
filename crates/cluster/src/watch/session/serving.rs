//! Whether the server serves the kind of a watch, which only discovery can say.
//!
//! Of pods and nodes not even that is believed: a server without them is none, and taking them for empty would free all room, or
//! forget all nodes, at once.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use super::{Session, Told, UNSERVED_INTERVAL};
use crate::watch::discovery::is_served;
use crate::watch::stop::{Failure, Stop};
use crate::watch::{NODES, PODS, Watched};

/// For how long discovery has to say that a kind of which objects are known is not served, until these are forgotten: a server
/// that has just started does not know its custom resources yet.
const UNSERVED_BELIEVED_AFTER: Duration = Duration::from_secs(15);
/// When discovery takes longer, it is told meanwhile why the watch does not go on. Mostly it answers sooner, and there is one reason to tell.
const DISCOVERY_QUICK: Duration = Duration::from_secs(1);
/// How long discovery may take; then it says nothing.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(10);

impl Session {
    /// Finds out whether a failure means that the kind is not served, or that it is served by now.
    pub(super) async fn look_into(&mut self, stop: Stop) -> Result<Stop, Stop> {
        let Stop::Failed(mut failure) = stop else { return Ok(stop) };
        let is_essential = self.kind() == PODS || self.kind() == NODES;
        // Whatever a list of such a kind fails with, objects of it may be there.
        let was_unserved = self.told == Told::Unserved;
        if !is_essential && (failure.may_be_unserved || was_unserved) {
            match self.ask_discovery(&failure).await? {
                Ok(false) => return Ok(Stop::Unserved),
                Ok(true) => self.tell_served().await?,
                Err(error) => {
                    failure.reason +=
                        &format!("; discovery does not say whether the kind is served: {error}");
                }
            }
        }
        failure.reason += &failure.advice;
        Ok(Stop::Failed(failure))
    }

    async fn ask_discovery(&mut self, failure: &Failure) -> Result<Result<bool, String>, Stop> {
        // A server that asks to wait is waited for between two tries of the watch, which are told of.
        let (server, kind) = (self.server.clone().without_asked_retries(), self.kind());
        let mut answer = pin!(timeout(DISCOVERY_PATIENCE, is_served(&server, kind)));
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            () = self.sender.closed() => return Err(Stop::Closed),
            () = sleep(DISCOVERY_QUICK) => {
                // It may have been told in the last round, with what discovery said in the end: two reasons would take turns for ever.
                let is_told = self.stalled.as_ref().is_some_and(|told| told.starts_with(&failure.reason));
                if !is_told {
                    self.stall(format!("{}{}", failure.reason, failure.advice)).await?;
                }
                answer.await
            }
        };
        Ok(match answer {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", DISCOVERY_PATIENCE.as_secs())),
        })
    }

    /// Whether it is too early to believe discovery that the kind is not served.
    pub(super) fn doubts(&mut self) -> bool {
        match self.told {
            Told::Nothing | Told::Unserved => false,
            Told::Objects => {
                self.told = Told::Doubted { since: Instant::now() };
                true
            }
            Told::Doubted { since } => since.elapsed() < UNSERVED_BELIEVED_AFTER,
        }
    }

    /// Tells that the kind is not served, once, and again after trouble.
    pub(super) async fn tell_unserved(&mut self) -> Result<(), Stop> {
        if self.told == Told::Unserved && self.stalled.is_none() {
            return Ok(());
        }
        self.told = Told::Unserved;
        self.backoff.reset();
        self.stalled = None;
        info!(
            kind = self.kind().plural,
            "the server does not serve {} {}: treated as if there were none, and looked for every {} s",
            self.kind().api_version(),
            self.kind().kind,
            UNSERVED_INTERVAL.as_secs()
        );
        self.send(Watched::Unserved).await
    }

    /// Tells that the kind is served, if it was told that it is not: there may be objects of it, though none is known yet.
    pub(super) async fn tell_served(&mut self) -> Result<(), Stop> {
        if self.told != Told::Unserved {
            return Ok(());
        }
        self.told = Told::Nothing;
        info!(kind = self.kind().plural, "the kind is served now");
        self.send(Watched::Served).await
    }
}
