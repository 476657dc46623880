//! Reviews by an API server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use supercargo_client::{ApiServer, Call, RequestError};
use tokio::time::{sleep, timeout};

use super::access::{Answer, REVIEW_TIMEOUT, Reviewer, TokenAnswer, User, Verdict};
use super::certificate::FollowedAuthority;

/// Asks an API server.
#[derive(Clone)]
pub struct ApiReviewer {
    server: ApiServer,
    failing: Arc<Failing>,
}

/// Which reviews failed when they were asked for last. A failure is a log line when it begins, and none while it goes on: clients
/// that ask again and again do not fill the log.
#[derive(Debug, Default)]
struct Failing {
    tokens: AtomicBool,
    access: AtomicBool,
}

impl Failing {
    fn note<T>(failing: &AtomicBool, resource: &str, answer: &Result<T, String>) {
        let was_failing = failing.swap(answer.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (answer, was_failing) {
            tracing::warn!(
                err = error,
                resource,
                "Cannot ask the API server who may read pages; they are refused"
            );
        }
    }
}

impl std::fmt::Debug for ApiReviewer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ApiReviewer")
    }
}

impl ApiReviewer {
    /// Asks this server. How many reviews are under way is limited by who asks for them.
    pub fn new(server: &ApiServer) -> Self {
        ApiReviewer { server: server.without_limit(), failing: Arc::default() }
    }

    async fn token(&self, token: &str) -> TokenAnswer {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {},
            "spec": { "token": token },
        });
        let answer = self.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
        Failing::note(&self.failing.tokens, "tokenreviews", &answer);
        let TokenStatusWords { authenticated, user } = answer?;
        if !authenticated {
            return Ok(None);
        }
        let UserWords { username, uid, groups, extra } = user.unwrap_or_default();
        let (groups, extra) = (groups.unwrap_or_default(), extra.unwrap_or_default());
        Ok(Some(User { name: username, uid, groups, extra }))
    }

    async fn access(&self, user: &User, verb: &str, path: &str) -> Result<Verdict, String> {
        let mut spec = json!({
            "user": user.name,
            "groups": user.groups,
            "nonResourceAttributes": { "path": path, "verb": verb },
        });
        if !user.uid.is_empty() {
            spec["uid"] = json!(user.uid);
        }
        if !user.extra.is_empty() {
            spec["extra"] = json!(user.extra);
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec,
        });
        let answer = self.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await;
        Failing::note(&self.failing.access, "subjectaccessreviews", &answer);
        let AccessStatusWords { allowed, denied, reason } = answer?;
        Ok(Verdict { allowed: allowed && !denied, reason })
    }

    /// Has a review made; what it says.
    async fn create<S: Default + for<'a> Deserialize<'a>>(
        &self,
        path: &str,
        review: &Value,
    ) -> Result<S, String> {
        let call = Call::post(path.to_owned(), review.to_string().into_bytes());
        let answer = self.server.fetch(&call).await.map_err(|error| error.to_string())?;
        let answer: Reviewed<S> = serde_json::from_slice(&answer)
            .map_err(|error| format!("the answer to {path} cannot be read: {error}"))?;
        Ok(answer.status.unwrap_or_default())
    }
}

/// A review with its answer.
#[derive(Deserialize)]
struct Reviewed<S> {
    #[serde(default = "Option::default")]
    status: Option<S>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatusWords {
    authenticated: bool,
    user: Option<UserWords>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserWords {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessStatusWords {
    allowed: bool,
    denied: bool,
    reason: String,
}

/// What is read of a ConfigMap.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ConfigMapWords {
    data: Option<BTreeMap<String, String>>,
}

impl Reviewer for ApiReviewer {
    fn review_token<'a>(&'a self, token: &'a str) -> Answer<'a, TokenAnswer> {
        Box::pin(self.token(token))
    }

    fn review_access<'a>(
        &'a self,
        user: &'a User,
        verb: &'a str,
        path: &'a str,
    ) -> Answer<'a, Result<Verdict, String>> {
        Box::pin(self.access(user, verb, path))
    }
}

/// Looks up the authority of client certificates in the cluster, as upstream does if no `--client-ca-file` is given. None if
/// the cluster has none.
pub async fn look_up_client_authority(server: &ApiServer) -> Result<Option<String>, String> {
    const NAMESPACE: &str = "kube-system";
    const NAME: &str = "extension-apiserver-authentication";
    let failed = |error: String| format!("configmap {NAMESPACE}/{NAME}: {error}");
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}");
    let map = match timeout(REVIEW_TIMEOUT, server.get(&path)).await {
        Ok(Ok(map)) => map,
        Ok(Err(RequestError::Refused { code: 404, .. })) => return Ok(None),
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Err(_) => {
            let seconds = REVIEW_TIMEOUT.as_secs();
            return Err(failed(format!("the API server did not answer within {seconds} s")));
        }
    };
    let map: ConfigMapWords = serde_json::from_slice(&map).map_err(|error| failed(error.to_string()))?;
    Ok(map.data.and_then(|mut data| data.remove("client-ca-file")))
}

/// How often it is looked whether the authority is still the same. Upstream hears of a change at once; authorities are replaced
/// with days of overlap.
const FOLLOW_PERIOD: Duration = Duration::from_secs(60);
/// How soon it is looked again if that failed. A right that is missing for it counts as missing for twice as long, so that it is named
/// for as long as it is missing.
const RETRY_PERIOD: Duration = Duration::from_secs(15);

/// Looks the authority up again and again, for as long as somebody waits for it. One that cannot be looked up, or has gone, stays:
/// nobody is to be locked out by that.
pub async fn follow_client_authority(server: ApiServer, followed: FollowedAuthority) -> Infallible {
    // Without an authority the first look may have failed.
    let mut period = if followed.get().is_some() { FOLLOW_PERIOD } else { RETRY_PERIOD };
    loop {
        sleep(period).await;
        period = FOLLOW_PERIOD;
        match look_up_client_authority(&server).await {
            Ok(Some(authority)) => {
                if followed.set(authority) {
                    tracing::info!("The cluster has another authority of client certificates");
                }
            }
            Ok(None) => {}
            Err(error) => {
                period = RETRY_PERIOD;
                tracing::debug!(err = error, "The authority of client certificates cannot be looked up");
            }
        }
    }
}
