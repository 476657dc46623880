//! The requests that carry out an order.

use std::time::Duration;

use bytes::Bytes;
use supercargo_framework::{Conclusion, Effect, Nomination, PodCondition};
use supercargo_model::Pod;
use tokio::time::sleep;

use super::bodies;
use crate::backoff::{Backoff, BackoffLimits, Chance};
use crate::path;
use supercargo_client::Clock;
use supercargo_client::{ApiServer, Call, MERGE_PATCH, RequestError, STRATEGIC_MERGE_PATCH};

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
    server: ApiServer,
    clock: Clock,
    chance: Chance,
}

impl Requests {
    pub(super) fn new(server: ApiServer, clock: Clock, chance: Chance) -> Self {
        Requests { server, clock, chance }
    }

    /// The same for another order. Its waits between retries are its own, so that orders which fail together are not
    /// retried together.
    pub(super) fn fork(&mut self) -> Self {
        Requests { server: self.server.clone(), clock: self.clock.clone(), chance: self.chance.fork() }
    }

    pub(super) async fn bind(&self, pod: &Pod, node: &str) -> Conclusion {
        let path = path::of_pod(&pod.namespace, &pod.name, Some("binding"));
        let call = Call::post(path, bodies::binding(pod, node));
        concluded(self.server.perform(&call).await)
    }

    /// The pod as the API server holds it, not as a cache remembers it; none if there is no pod of that name.
    pub(super) async fn look_up(&self, pod: &Pod) -> Result<Option<Bytes>, String> {
        // A request that names no resourceVersion is answered from etcd.
        let path = path::of_pod(&pod.namespace, &pod.name, None);
        match self.server.fetch(&Call::get(path)).await {
            Ok(found) => Ok(Some(found)),
            // Only the API server itself gives this reason: the 404 of a proxy says nothing about the pod.
            Err(RequestError::Refused { code: 404, reason, .. }) if reason == "NotFound" => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) async fn update_status(
        &mut self,
        pod: &Pod,
        condition: Option<&PodCondition>,
        nomination: &Nomination,
    ) -> Conclusion {
        match bodies::status(pod, condition, nomination) {
            Some(body) => concluded(self.patch_status(pod, body).await),
            None => Conclusion::Done,
        }
    }

    /// Everything else that changes an object.
    pub(super) async fn write(&mut self, effect: &Effect) -> Conclusion {
        let call = match effect {
            Effect::Create { kind, namespace, object } => {
                let namespace = Some(&**namespace).filter(|namespace| !namespace.is_empty());
                let path = path::of_kind_in(*kind, namespace);
                Call::post(path, bodies::created(*kind, object))
            }
            Effect::Patch { kind, key, subresource, patch } => {
                let path = path::of_object(*kind, key, *subresource);
                Call::patch(path, MERGE_PATCH, patch.to_string().into_bytes())
            }
            Effect::Delete { kind, key, uid } => {
                let call = Call::delete(path::of_object(*kind, key, None), bodies::deletion(uid));
                return concluded(self.server.perform(&call).await);
            }
            Effect::Evict { victim, preemptor } => {
                return concluded(self.evict(victim, preemptor).await);
            }
            Effect::Bind { .. }
            | Effect::UpdateStatus { .. }
            | Effect::Ask { .. }
            | Effect::LookUp { .. }
            | Effect::Record(_) => {
                unreachable!("these have lanes of their own")
            }
        };
        match self.server.fetch(&call).await {
            // An answer that is no JSON comes from somebody on the way, who may have dropped the rest of it.
            Ok(answer) => match serde_json::from_slice(&answer) {
                Ok(object) => Conclusion::DoneWith(Box::new(object)),
                Err(_) => Conclusion::Done,
            },
            Err(error) => concluded(Err(error)),
        }
    }

    async fn evict(&mut self, victim: &Pod, preemptor: &Pod) -> Result<(), RequestError> {
        let is_told = victim.status.as_ref().is_some_and(|status| status.preempted_by_scheduler);
        if !is_told {
            let body = bodies::disruption(victim, preemptor, self.clock.now());
            match self.patch_status(victim, body).await {
                Err(error) if is_gone(&error) => return Ok(()),
                result => result?,
            }
        }
        let path = path::of_pod(&victim.namespace, &victim.name, None);
        match self.server.perform(&Call::delete(path, bodies::deletion(&victim.uid))).await {
            Err(error) if is_gone(&error) || error.code() == Some(409) => Ok(()),
            result => result,
        }
    }

    async fn patch_status(&mut self, pod: &Pod, body: Vec<u8>) -> Result<(), RequestError> {
        let path = path::of_pod(&pod.namespace, &pod.name, Some("status"));
        let call = Call::patch(path, STRATEGIC_MERGE_PATCH, body);
        let mut backoff = Backoff::new(STATUS_BACKOFF, self.chance.fork());
        loop {
            let error = match self.server.perform(&call).await {
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
        Some(404) => Conclusion::Gone { error },
        Some(409) => Conclusion::Conflict { error },
        Some(408 | 429 | 500..) => Conclusion::Unknown { error, is_answered: true },
        Some(code) => Conclusion::Refused { error, code: Some(code) },
        None if failed.is_not_sent() => Conclusion::not_done(error),
        None => Conclusion::Unknown { error, is_answered: false },
    }
}

/// The pod is gone, or gone and replaced by another one of the same name: to a patch with the UID of the old one, the server
/// says that a UID cannot be changed.
fn is_gone(error: &RequestError) -> bool {
    match error {
        RequestError::Refused { code: 404, .. } => true,
        RequestError::Refused { code: 422, message, .. } => message.contains("metadata.uid"),
        _ => false,
    }
}
