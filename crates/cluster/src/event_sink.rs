//! Writes events to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use supercargo_api::{EventCall, EventGroup};
use supercargo_client::{ApiServer, RequestError};
use tokio::time::sleep;
use tracing::info;

use crate::backoff::{Backoff, BackoffLimits, Chance};
use crate::watch::is_served;

/// How often an event is tried to be told; client-go's `maxTriesPerEvent`.
const TRIES_MAX: u32 = 12;
/// And how long it waits in between.
const BACKOFF: BackoffLimits = BackoffLimits {
    first: Duration::from_millis(500),
    factor: 2.0,
    longest: Duration::from_secs(10),
    jitter: 1.0,
};

/// Knows how to tell the server.
#[derive(Debug)]
pub(crate) struct Sink {
    /// Shared by all events: a copy is counted in several places.
    server: Arc<ApiServer>,
    chance: Chance,
    /// The server has events only in the core group.
    is_core: Arc<AtomicBool>,
}

impl Sink {
    pub(crate) fn new(server: ApiServer, chance: Chance) -> Self {
        Sink { server: Arc::new(server), chance, is_core: Arc::default() }
    }

    /// The same for another event. Its waits between retries are its own, so that events which fail together are not
    /// retried together.
    pub(crate) fn fork(&mut self) -> Self {
        Sink { server: self.server.clone(), chance: self.chance.fork(), is_core: self.is_core.clone() }
    }

    /// Tells the server, more than once if need be.
    pub(crate) async fn tell(&mut self, call: &EventCall) -> Result<(), String> {
        let mut backoff = Backoff::new(BACKOFF, self.chance.fork());
        loop {
            let error = match self.try_to_tell(call).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let wait = backoff.next(BACKOFF.longest);
            // What the server refuses once it refuses again.
            if error.code().is_some() || backoff.failures() >= TRIES_MAX {
                return Err(error.to_string());
            }
            sleep(wait).await;
        }
    }

    async fn try_to_tell(&self, event: &EventCall) -> Result<(), RequestError> {
        if let Some(call) = event.repetition(self.group()) {
            match self.server.perform(&call).await {
                // It is not there any more, or not yet.
                Err(error) if error.code() == Some(404) => {}
                result => return result,
            }
        }
        match self.server.perform(&event.creation(self.group())).await {
            // An earlier try came through after all.
            Err(error) if error.code() == Some(409) => Ok(()),
            // That the namespace is not there is said with the same number.
            Err(error) if error.code() == Some(404) && self.group() != EventGroup::Core => {
                // Boxed, since it is rare and large, and what tells an event is as large as its largest part.
                if Box::pin(is_served(&self.server, EventGroup::Events.kind())).await? {
                    return Err(error);
                }
                info!("the server does not serve events.k8s.io/v1, events go to the core group");
                self.is_core.store(true, Ordering::Relaxed);
                self.server.perform(&event.creation(EventGroup::Core)).await
            }
            result => result,
        }
    }

    fn group(&self) -> EventGroup {
        if self.is_core.load(Ordering::Relaxed) { EventGroup::Core } else { EventGroup::Events }
    }
}
