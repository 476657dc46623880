//! Writes events to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use supercargo_model::KindId;
use tokio::time::sleep;
use tracing::info;

use super::body::namespace_of;
use super::{Event, EventCall, Series, body};
use crate::backoff::{Backoff, BackoffLimits, Chance};
use crate::path;
use crate::watch::is_served;
use supercargo_client::{ApiServer, Call, MERGE_PATCH, RequestError};

/// How often an event is tried to be told; client-go's `maxTriesPerEvent`.
const TRIES_MAX: u32 = 12;
/// And how long it waits in between.
const BACKOFF: BackoffLimits = BackoffLimits {
    first: Duration::from_millis(500),
    factor: 2.0,
    longest: Duration::from_secs(10),
    jitter: 1.0,
};

const EVENTS: KindId = KindId { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events" };
const CORE_EVENTS: KindId = KindId { group: "", version: "v1", kind: "Event", plural: "events" };

/// Knows how to tell the server.
#[derive(Debug)]
pub(crate) struct Sink {
    server: ApiServer,
    chance: Chance,
    /// The server has events only in the core group.
    is_core: Arc<AtomicBool>,
}

impl Sink {
    pub(crate) fn new(server: ApiServer, chance: Chance) -> Self {
        Sink { server, chance, is_core: Arc::default() }
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

    async fn try_to_tell(&self, EventCall { event, series }: &EventCall) -> Result<(), RequestError> {
        if let Some(series) = *series {
            match self.repeat(event, series).await {
                // It is not there any more, or not yet.
                Err(error) if error.code() == Some(404) => {}
                result => return result,
            }
        }
        match self.create(event, *series).await {
            // An earlier try came through after all.
            Err(error) if error.code() == Some(409) => Ok(()),
            // That the namespace is not there is said with the same number.
            Err(error) if error.code() == Some(404) && !self.is_core() => {
                if is_served(&self.server, EVENTS).await? {
                    return Err(error);
                }
                info!("the server does not serve events.k8s.io/v1, events go to the core group");
                self.is_core.store(true, Ordering::Relaxed);
                self.create(event, *series).await
            }
            result => result,
        }
    }

    async fn create(&self, event: &Event, series: Option<Series>) -> Result<(), RequestError> {
        let body = if self.is_core() { body::core_event(event, series) } else { body::event(event, series) };
        let mut path = path::of_version(self.kind());
        path.push_str("/namespaces/");
        path::push_escaped(&mut path, namespace_of(&event.notice.about));
        path.push_str("/events");
        self.server.perform(&Call::post(path, body)).await
    }

    async fn repeat(&self, event: &Event, series: Series) -> Result<(), RequestError> {
        let body = if self.is_core() { body::core_repetition(series) } else { body::repetition(series) };
        let mut path = path::of_version(self.kind());
        path.push_str("/namespaces/");
        path::push_escaped(&mut path, namespace_of(&event.notice.about));
        path.push_str("/events/");
        path::push_escaped(&mut path, &event.name);
        self.server.perform(&Call::patch(path, MERGE_PATCH, body)).await
    }

    fn is_core(&self) -> bool {
        self.is_core.load(Ordering::Relaxed)
    }

    fn kind(&self) -> KindId {
        if self.is_core() { CORE_EVENTS } else { EVENTS }
    }
}
