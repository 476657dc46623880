//! Whether anybody schedules the pods that wait: what leases and events say about a scheduler.

use std::time::Duration;

use serde::Deserialize;
use supercargo_client::{ApiServer, RequestError};
use supercargo_config::LeaderElection;
use supercargo_model::Timestamp;
use tokio::time::sleep;

use crate::ask::is_of_name;
use crate::cluster_files::now;

/// How far the clock of whoever renews a lease may be off from ours.
const CLOCK_ALLOWANCE: Duration = Duration::from_secs(5);
/// How long a lease lasts that does not say; kube-scheduler's default.
const LEASE_DURATION_DEFAULT: Duration = Duration::from_secs(15);
/// Where schedulers have their leases, unless somebody says otherwise.
const LEASE_NAMESPACE: &str = "kube-system";
/// How often a lease that looks dead is looked at again, and after which pause. Clocks differ; but whoever holds a lease
/// renews it every two seconds, unless configured otherwise.
const SECOND_LOOKS: u32 = 4;
const SECOND_LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A lease by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What is known about whether a scheduler runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scheduling {
    /// Somebody holds its lease.
    Runs(LeaseName),
    /// Nobody has renewed its lease for too long.
    Dead { lease: LeaseName, holder: String, age: Duration },
    /// Its lease was given up, and nobody has taken it.
    Released(LeaseName),
    /// It has no lease that is known, but there are events by it, or pods that it bound.
    Heard,
    /// Neither a lease nor anything that it did was found.
    Nobody { looked_at: String },
    /// What would tell may not be read, or could not be.
    Unknown { why: String },
}

/// How to find out about a scheduler.
pub(crate) struct Question<'a> {
    /// Its `schedulerName`.
    pub(crate) scheduler: &'a str,
    /// Its lease, if a configuration says which.
    pub(crate) election: Option<&'a LeaderElection>,
    /// Where to look if not all namespaces may be looked at: that of a pod that waits for it.
    pub(crate) namespace: &'a str,
    /// Whether a pod of it is bound.
    pub(crate) has_bound: bool,
}

/// What is read of a lease.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct LeaseWords {
    metadata: LeaseNameWords,
    spec: LeaseSpecWords,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct LeaseNameWords {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaseSpecWords {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    renew_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListWords<T> {
    items: Vec<T>,
}

impl Scheduling {
    /// Looks at the scheduler's lease, and if there is none at its events.
    pub(crate) async fn of(server: &ApiServer, question: &Question<'_>) -> Self {
        let Question { scheduler, election, .. } = question;
        if !scheduler.bytes().all(is_of_name) {
            return Scheduling::Unknown { why: format!("{scheduler:?} cannot be the name of a scheduler") };
        }
        let place = match election {
            Some(election) => LeasePlace::Named(LeaseName {
                namespace: election.resource_namespace.clone(),
                name: election.resource_name.clone(),
            }),
            None => LeasePlace::Anywhere((*scheduler).to_owned()),
        };
        match place.find(server).await {
            Ok(Found::Lease(lease)) => watch(server, lease).await,
            Ok(Found::None { looked_at }) => heard(server, question, looked_at).await,
            Err(error) => Scheduling::Unknown { why: error.to_string() },
        }
    }

    /// The lease whose holder can be asked.
    pub(crate) fn lease(&self) -> Option<&LeaseName> {
        match self {
            Scheduling::Runs(lease) => Some(lease),
            _ => None,
        }
    }

    /// What whoever waits for the scheduler has to know first, if anything.
    pub(crate) fn alarm(&self, scheduler: &str, is_configured: bool) -> Option<String> {
        let nobody = if is_configured {
            "no scheduler is running".to_owned()
        } else {
            format!("scheduler {scheduler:?} is not running")
        };
        match self {
            Scheduling::Dead { lease, holder, age } => {
                let age = ago(*age);
                Some(format!("{nobody}: the lease {lease} was last renewed {age} ago by {holder}"))
            }
            Scheduling::Released(lease) => {
                Some(format!("{nobody}: nobody holds the lease {lease}, it was given up"))
            }
            Scheduling::Nobody { looked_at } => Some(format!(
                "nobody seems to run scheduler {scheduler:?}, which is the likely cause if the pod has no events: {looked_at}, no \
                 event by it, and no pod that it bound"
            )),
            Scheduling::Runs(_) | Scheduling::Heard | Scheduling::Unknown { .. } => None,
        }
    }
}

impl std::fmt::Display for LeaseName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where a lease is looked for.
enum LeasePlace {
    Named(LeaseName),
    /// In all namespaces, by its name alone.
    Anywhere(String),
}

enum Found {
    Lease(LeaseWords),
    None { looked_at: String },
}

impl LeasePlace {
    async fn find(&self, server: &ApiServer) -> Result<Found, RequestError> {
        let name = match self {
            LeasePlace::Named(lease) => return find_named(server, lease).await,
            LeasePlace::Anywhere(name) => name,
        };
        let all = format!("/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D{name}");
        match server.get(&all).await {
            Ok(text) => {
                let list: ListWords<LeaseWords> = serde_json::from_slice(&text).unwrap_or_default();
                let newest = list.items.into_iter().max_by_key(|lease| lease.spec.renew_time);
                Ok(newest.map_or_else(
                    || Found::None { looked_at: format!("there is no lease {name} in any namespace") },
                    Found::Lease,
                ))
            }
            Err(error) if error.code() == Some(403) => {
                let lease = LeaseName { namespace: LEASE_NAMESPACE.to_owned(), name: name.clone() };
                find_named(server, &lease).await
            }
            Err(error) => Err(error),
        }
    }
}

async fn find_named(server: &ApiServer, lease: &LeaseName) -> Result<Found, RequestError> {
    match server.get(&path(lease)).await {
        Ok(text) => Ok(Found::Lease(read(&text, lease))),
        Err(error) if error.code() == Some(404) => {
            Ok(Found::None { looked_at: format!("there is no lease {lease}") })
        }
        Err(error) => Err(error),
    }
}

fn path(LeaseName { namespace, name }: &LeaseName) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
}

/// A lease, under the name by which it was asked for.
fn read(text: &[u8], asked: &LeaseName) -> LeaseWords {
    let mut lease: LeaseWords = serde_json::from_slice(text).unwrap_or_default();
    lease.metadata = LeaseNameWords { namespace: asked.namespace.clone(), name: asked.name.clone() };
    lease
}

/// Judges a lease, and looks at it again if it seems to be nobody's: it may just be changing hands, or the clocks differ.
async fn watch(server: &ApiServer, first: LeaseWords) -> Scheduling {
    let mut judged = judge(&first, now());
    for _ in 0..SECOND_LOOKS {
        if matches!(judged, Scheduling::Runs(_)) {
            return judged;
        }
        sleep(SECOND_LOOK_PAUSE).await;
        let name = lease_name(&first);
        let Ok(text) = server.get(&path(&name)).await else { return judged };
        let lease = read(&text, &name);
        let is_held = lease.spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty());
        judged =
            if is_held && lease.spec != first.spec { Scheduling::Runs(name) } else { judge(&lease, now()) };
    }
    judged
}

/// What a lease says at a point in time.
fn judge(lease: &LeaseWords, now: Timestamp) -> Scheduling {
    let name = lease_name(lease);
    let LeaseSpecWords { holder_identity, lease_duration_seconds, renew_time } = &lease.spec;
    let Some(holder) = holder_identity.as_ref().filter(|holder| !holder.is_empty()) else {
        return Scheduling::Released(name);
    };
    let Some(renewed) = renew_time else { return Scheduling::Released(name) };
    let lasts = lease_duration_seconds
        .map_or(LEASE_DURATION_DEFAULT, |seconds| Duration::from_secs(u64::from(seconds)));
    let age = now.since(*renewed);
    if age > lasts + CLOCK_ALLOWANCE {
        Scheduling::Dead { lease: name, holder: holder.clone(), age }
    } else {
        Scheduling::Runs(name)
    }
}

fn lease_name(lease: &LeaseWords) -> LeaseName {
    LeaseName { namespace: lease.metadata.namespace.clone(), name: lease.metadata.name.clone() }
}

/// What is known of a scheduler without a lease.
async fn heard(server: &ApiServer, question: &Question<'_>, looked_at: String) -> Scheduling {
    if question.has_bound {
        return Scheduling::Heard;
    }
    let selector = format!("events?limit=1&fieldSelector=reportingComponent%3D{}", question.scheduler);
    let mut answer = server.get(&format!("/api/v1/{selector}")).await;
    if answer.as_ref().is_err_and(|error| error.code() == Some(403)) {
        answer = server.get(&format!("/api/v1/namespaces/{}/{selector}", question.namespace)).await;
    }
    match answer {
        Ok(text) => {
            let list: ListWords<serde::de::IgnoredAny> = serde_json::from_slice(&text).unwrap_or_default();
            if list.items.is_empty() { Scheduling::Nobody { looked_at } } else { Scheduling::Heard }
        }
        Err(error) => Scheduling::Unknown { why: format!("{looked_at}, and events: {error}") },
    }
}

/// A span of time for people.
fn ago(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(spec: &str) -> LeaseWords {
        let text = format!(r#"{{"metadata":{{"namespace":"kube-system","name":"s"}},"spec":{spec}}}"#);
        serde_json::from_str(&text).expect("a lease")
    }

    #[track_caller]
    fn check(spec: &str, expected: Option<&str>) {
        let now: Timestamp = serde_json::from_str("\"2026-11-17T10:01:00Z\"").expect("a time");
        let judged = judge(&lease(spec), now);
        assert_eq!(judged.alarm("s", true).as_deref(), expected, "{spec}");
        assert_eq!(judged.lease().is_some(), expected.is_none(), "{spec}");
    }

    #[test]
    fn a_lease_that_nobody_renews_is_dead() {
        let renewed = |time: &str| {
            format!(r#"{{"holderIdentity":"a_1","leaseDurationSeconds":15,"renewTime":"{time}"}}"#)
        };
        check(&renewed("2026-11-17T10:00:58.123456Z"), None);
        check(&renewed("2026-11-17T10:00:40.000000Z"), None);
        let dead = "no scheduler is running: the lease kube-system/s was last renewed 34 s ago by a_1";
        check(&renewed("2026-11-17T10:00:26.000000Z"), Some(dead));
        // A clock that goes ahead of ours.
        check(&renewed("2026-11-17T10:03:00.000000Z"), None);
        let given_up = "no scheduler is running: nobody holds the lease kube-system/s, it was given up";
        check(
            r#"{"holderIdentity":"","leaseDurationSeconds":1,"renewTime":"2026-11-17T10:00:59Z"}"#,
            Some(given_up),
        );
        check("{}", Some(given_up));
    }

    #[test]
    fn a_scheduler_that_left_no_trace_is_named() {
        let nobody =
            Scheduling::Nobody { looked_at: "there is no lease volcano in any namespace".to_owned() };
        let said = nobody.alarm("volcano", false).expect("it is said");
        assert!(said.starts_with("nobody seems to run scheduler \"volcano\""), "{said}");
        assert!(said.contains("no lease volcano in any namespace, no event by it"), "{said}");
        assert_eq!(Scheduling::Heard.alarm("volcano", false), None);
    }
}
