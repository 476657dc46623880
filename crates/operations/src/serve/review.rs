//! Reviews by an API server.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use supercargo_framework::with_causes;
use tokio::time::{sleep, timeout};

use super::access::{Answer, REVIEW_TIMEOUT, Reviewer, TokenAnswer, User, Verdict};
use super::certificate::FollowedAuthority;

/// Asks an API server.
#[derive(Clone)]
pub struct KubeReviewer {
    client: Client,
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

impl std::fmt::Debug for KubeReviewer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KubeReviewer")
    }
}

impl KubeReviewer {
    /// Asks through this client.
    pub fn new(client: Client) -> Self {
        KubeReviewer { client, failing: Arc::default() }
    }

    async fn token(&self, token: &str) -> TokenAnswer {
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer =
            reviews.create(&PostParams::default(), &review).await.map_err(|error| with_causes(&error));
        Failing::note(&self.failing.tokens, "tokenreviews", &answer);
        let status = answer?.status.unwrap_or_default();
        if !status.authenticated.unwrap_or(false) {
            return Ok(None);
        }
        let user = status.user.unwrap_or_default();
        Ok(Some(User {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default().into_iter().collect(),
        }))
    }

    async fn access(&self, user: &User, verb: &str, path: &str) -> Result<Verdict, String> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
                groups: Some(user.groups.clone()),
                extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer =
            reviews.create(&PostParams::default(), &review).await.map_err(|error| with_causes(&error));
        Failing::note(&self.failing.access, "subjectaccessreviews", &answer);
        let status = answer?.status.unwrap_or_default();
        Ok(Verdict {
            allowed: status.allowed && !status.denied.unwrap_or(false),
            reason: status.reason.unwrap_or_default(),
        })
    }
}

impl Reviewer for KubeReviewer {
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
pub async fn look_up_client_authority(client: Client) -> Result<Option<String>, String> {
    const NAMESPACE: &str = "kube-system";
    const NAME: &str = "extension-apiserver-authentication";
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let looked_up = match timeout(REVIEW_TIMEOUT, maps.get_opt(NAME)).await {
        Ok(looked_up) => looked_up.map_err(|error| with_causes(&error)),
        Err(_) => Err(format!("the API server did not answer within {} s", REVIEW_TIMEOUT.as_secs())),
    };
    let map = looked_up.map_err(|error| format!("configmap {NAMESPACE}/{NAME}: {error}"))?;
    Ok(map.and_then(|map| map.data?.remove("client-ca-file")))
}

/// How often it is looked whether the authority is still the same. Upstream hears of a change at once; authorities are replaced
/// with days of overlap.
const FOLLOW_PERIOD: Duration = Duration::from_secs(60);

/// Looks the authority up again and again, for as long as somebody waits for it. One that cannot be looked up, or has gone, stays:
/// nobody is to be locked out by that.
pub async fn follow_client_authority(client: Client, followed: FollowedAuthority) -> Infallible {
    loop {
        sleep(FOLLOW_PERIOD).await;
        match look_up_client_authority(client.clone()).await {
            Ok(Some(authority)) => {
                if followed.set(authority) {
                    tracing::info!("The cluster has another authority of client certificates");
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(err = error, "The authority of client certificates cannot be looked up");
            }
        }
    }
}
