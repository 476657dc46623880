//! The requests that carry out an order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use supercargo_api::Call;
use supercargo_client::{ApiServer, Clock, RequestError};
use supercargo_framework::{Conclusion, Effect, Nomination, PodCondition};
use supercargo_model::Pod;
use tokio::time::sleep;

use crate::backoff::{Backoff, BackoffLimits, Chance};

/// How often a status is tried to be changed; upstream's number (client-go `retry.DefaultBackoff`).
const STATUS_TRIES_MAX: u32 = 4;
/// And how long it waits in between.
const STATUS_BACKOFF: BackoffLimits = BackoffLimits {
    first: Duration::from_millis(10),
    factor: 5.0,
    longest: Duration::from_secs(10),
    jitter: 0.1,
};

/// Knows how to ask for things.
#[derive(Debug)]
pub(super) struct Requests {
    /// Shared by all orders: a copy is counted in several places.
    server: Arc<ApiServer>,
    clock: Clock,
    chance: Chance,
}

impl Requests {
    pub(super) fn new(server: ApiServer, clock: Clock, chance: Chance) -> Self {
        Requests { server: Arc::new(server), clock, chance }
    }

    /// The same for another order. Its waits between retries are its own, so that orders which fail together are not
    /// retried together.
    pub(super) fn fork(&mut self) -> Self {
        Requests { server: self.server.clone(), clock: self.clock.clone(), chance: self.chance.fork() }
    }

    pub(super) async fn bind(&self, pod: &Pod, node: &str) -> Conclusion {
        concluded(self.server.perform(&supercargo_api::bind(pod, node)).await)
    }

    /// The pod as the API server holds it, not as a cache remembers it; none if there is no pod of that name.
    pub(super) async fn look_up(&self, pod: &Pod) -> Result<Option<Bytes>, String> {
        match self.server.fetch(&supercargo_api::look_up(pod)).await {
            Ok(found) => Ok(Some(found)),
            // The 404 of a proxy says nothing about the pod.
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) async fn update_status(
        &mut self,
        pod: &Pod,
        condition: Option<&PodCondition>,
        nomination: &Nomination,
    ) -> Conclusion {
        match supercargo_api::update_status(pod, condition, nomination) {
            Some(call) => concluded(self.insist(&call).await),
            None => Conclusion::Done,
        }
    }

    /// Everything else that changes an object.
    pub(super) async fn write(&mut self, effect: &Effect) -> Conclusion {
        if let Effect::Evict { victim, preemptor } = effect {
            return concluded(self.evict(victim, preemptor).await);
        }
        let [call] =
            supercargo_api::calls(effect, self.clock.now()).try_into().unwrap_or_else(|calls: Vec<_>| {
                unreachable!("what takes {} requests has a lane or a function of its own", calls.len())
            });
        if matches!(effect, Effect::Delete { .. }) {
            // The answer is about the deletion, or an object that is going.
            return concluded(self.server.perform(&call).await);
        }
        match self.server.fetch(&call).await {
            // An answer that is no JSON comes from somebody on the way, who may have dropped the rest of it.
            Ok(answer) => match serde_json::from_slice(&answer) {
                Ok(object) => Conclusion::DoneWith(Box::new(object)),
                Err(_) => Conclusion::Done,
            },
            Err(error) => concluded(Err(error)),
        }
    }

    /// Whether a victim is gone is decided by the answer to its deletion, which names its UID: a 404 to what comes before may be that of a
    /// proxy, and a preemptor would wait for a deletion that nobody has ordered. So there is nothing to look up.
    async fn evict(&mut self, victim: &Pod, preemptor: &Pod) -> Result<(), RequestError> {
        if let Some(call) = supercargo_api::disrupt(victim, preemptor, self.clock.now()) {
            match self.insist(&call).await {
                Err(error) if is_replaced(&error) => return Ok(()),
                Err(error) if error.code() == Some(404) => {}
                result => result?,
            }
        }
        match self.server.perform(&supercargo_api::delete_pod(victim)).await {
            Err(error) if error.is_not_found() || is_replaced(&error) => Ok(()),
            result => result,
        }
    }

    /// Makes a request that changes a status, more than once if need be.
    async fn insist(&mut self, call: &Call) -> Result<(), RequestError> {
        let mut backoff = Backoff::new(STATUS_BACKOFF, self.chance.fork());
        loop {
            let error = match self.server.perform(call).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let wait = backoff.next(STATUS_BACKOFF.longest);
            let may_pass = matches!(error.code(), Some(409 | 500 | 503)) || error.is_connection_refused();
            if !may_pass || backoff.failures() >= STATUS_TRIES_MAX {
                return Err(error);
            }
            sleep(wait).await;
        }
    }
}

/// What is known after a request.
fn concluded(result: Result<(), RequestError>) -> Conclusion {
    let Err(failed) = result else { return Conclusion::Done };
    let error = failed.to_string();
    match failed.code() {
        Some(404) if failed.is_not_found() => Conclusion::Gone { error },
        Some(409) => Conclusion::Conflict { error },
        Some(404 | 429) => Conclusion::Unknown { error, is_answered: true },
        // Whoever answered may not know what becomes of the request.
        _ if failed.may_come_yet() => Conclusion::Unknown { error, is_answered: false },
        code => Conclusion::Refused { error, code },
    }
}

/// The pod is gone, and another one has its name. To a patch with the UID of the old one the server says that a UID cannot be changed, to a
/// deletion that the UID of its precondition is another one.
fn is_replaced(error: &RequestError) -> bool {
    match error {
        RequestError::Refused { code: 422, message, .. } => message.contains("metadata.uid"),
        RequestError::Refused { code: 409, message, .. } => message.contains("precondition"),
        _ => false,
    }
}
