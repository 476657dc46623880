//! What goes over the wire to an API server, which is played by a router in this process.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use supercargo_client::ApiServer;

use crate::leader::{ApiLeaseStore, LeaseStore as _, StoreError};
use crate::serve::{
    ApiReviewer, FollowedAuthority, Reviewer as _, User, Verdict, follow_client_authority,
    look_up_client_authority,
};

/// What was asked: method, path, body.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A client of a server that answers everything so, and what it was asked.
fn server(status: u16, answer: Value) -> (ApiServer, Asked) {
    let asked = Asked::default();
    let router = Router::new()
        .fallback(async move |State(asked): State<Asked>, request: Request<Body>| {
            let (parts, body) = request.into_parts();
            let bytes = to_bytes(body, usize::MAX).await.expect("a body");
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            asked.lock().expect("free").push((parts.method.to_string(), parts.uri.path().to_owned(), body));
            let mut response = Response::new(Body::from(answer.to_string()));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            response
        })
        .with_state(Arc::clone(&asked));
    (ApiServer::new(router, None), asked)
}

fn failure(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code})
}

fn only(asked: &Asked) -> (String, String, Value) {
    let asked = asked.lock().expect("free");
    assert_eq!(asked.len(), 1);
    asked[0].clone()
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";

#[tokio::test]
async fn who_leads_is_announced_on_the_lease() {
    let lease = json!({"kind": "Lease", "metadata": {"uid": "u", "resourceVersion": "7"}});
    let (client, asked) = server(200, lease);
    let store = ApiLeaseStore::new(client, "kube-system", "kube-scheduler");
    let noon = "2026-11-16T12:00:00Z".parse().expect("a time");
    assert_eq!(store.announce("host_1", "default-scheduler", noon).await, Ok(()));
    let asked = asked.lock().expect("free");
    assert_eq!(asked[0].1, LEASE);
    let (method, path, event) = &asked[1];
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/api/v1/namespaces/kube-system/events"));
    assert_eq!(event["message"], "host_1 became leader");
    assert_eq!(event["involvedObject"]["uid"], "u");
    assert_eq!(event["lastTimestamp"], "2026-11-16T12:00:00Z");
    assert_eq!(event["metadata"]["name"], "kube-scheduler.18e884bd48128000");
}

#[tokio::test]
async fn a_lease_is_read_whole_and_written_whole() {
    let lease =
        json!({"kind": "Lease", "metadata": {"resourceVersion": "7", "future": 1}, "spec": {"future": [2]}});
    let (client, asked) = server(200, lease.clone());
    let store = ApiLeaseStore::new(client, "kube-system", "kube-scheduler");
    assert_eq!(store.get().await, Ok(Some(lease.clone())));
    assert_eq!(only(&asked), ("GET".to_owned(), LEASE.to_owned(), Value::Null));

    let (client, asked) = server(200, lease.clone());
    let store = ApiLeaseStore::new(client, "kube-system", "kube-scheduler");
    assert_eq!(store.update(lease.clone()).await, Ok(lease.clone()));
    assert_eq!(only(&asked), ("PUT".to_owned(), LEASE.to_owned(), lease.clone()));

    let (client, asked) = server(201, lease);
    let store = ApiLeaseStore::new(client, "kube-system", "kube-scheduler");
    assert!(store.create(json!({"holderIdentity": "me"})).await.is_ok());
    let (method, path, body) = only(&asked);
    assert_eq!((method.as_str(), path.as_str()), ("POST", LEASE.trim_end_matches("/kube-scheduler")));
    assert_eq!(body["apiVersion"], "coordination.k8s.io/v1");
    assert_eq!(body["kind"], "Lease");
    assert_eq!(body["metadata"], json!({"name": "kube-scheduler", "namespace": "kube-system"}));
    assert_eq!(body["spec"], json!({"holderIdentity": "me"}));
}

#[tokio::test]
async fn absence_conflict_and_failure_are_told_apart() {
    let store = |code, reason: &str| ApiLeaseStore::new(server(code, failure(code, reason)).0, "n", "l");
    assert_eq!(store(404, "NotFound").get().await, Ok(None));
    assert!(matches!(store(404, "NotFound").update(json!({})).await, Err(StoreError::Failed(_))));
    assert!(matches!(store(409, "Conflict").update(json!({})).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store(409, "AlreadyExists").create(json!({})).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store(403, "Forbidden").get().await, Err(StoreError::Failed(_))));
    assert!(matches!(store(500, "InternalError").get().await, Err(StoreError::Failed(_))));
}

/// An election has a retry period of its own; whoever waits inside a request runs into its time limit and cannot say why.
#[tokio::test(start_paused = true)]
async fn a_lease_does_not_wait_because_the_server_asks_for_it() {
    for code in [429, 503] {
        let router = Router::new().fallback(async move || {
            let mut response = Response::new(Body::from(failure(code, "TooManyRequests").to_string()));
            *response.status_mut() = StatusCode::from_u16(code).expect("a status");
            response.headers_mut().insert("retry-after", "30".parse().expect("a header"));
            response
        });
        let store = ApiLeaseStore::new(ApiServer::new(router, None), "n", "l");
        let began = tokio::time::Instant::now();
        assert_eq!(store.get().await, Err(StoreError::Failed("no".to_owned())));
        assert!(store.update(json!({})).await.is_err());
        assert_eq!(began.elapsed(), std::time::Duration::ZERO, "{code}");
    }
}

#[tokio::test]
async fn tokens_are_reviewed() {
    let answer = |status: Value| json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": {"token": ""}, "status": status});
    let user = json!({"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}});
    let (client, asked) = server(201, answer(json!({"authenticated": true, "user": user})));
    let found = ApiReviewer::new(&client).review_token("secret").await;
    let expected = User {
        name: "u".to_owned(),
        uid: "1".to_owned(),
        groups: vec!["g".to_owned()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
    };
    assert_eq!(found, Ok(Some(expected)));
    let (method, path, body) = only(&asked);
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"));
    assert_eq!(body["spec"], json!({"token": "secret"}));

    let (client, _) = server(201, answer(json!({"error": "invalid bearer token"})));
    assert_eq!(ApiReviewer::new(&client).review_token("secret").await, Ok(None));
    let (client, _) = server(403, failure(403, "Forbidden"));
    assert!(ApiReviewer::new(&client).review_token("secret").await.is_err());
}

#[tokio::test]
async fn rights_are_reviewed() {
    let answer = |status: Value| json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {}, "status": status});
    let (client, asked) = server(201, answer(json!({"allowed": true, "reason": "RBAC"})));
    let user = User::anonymous();
    let verdict = ApiReviewer::new(&client).review_access(&user, "get", "/metrics").await;
    assert_eq!(verdict, Ok(Verdict { allowed: true, reason: "RBAC".to_owned() }));
    let (method, path, body) = only(&asked);
    assert_eq!(
        (method.as_str(), path.as_str()),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews")
    );
    assert_eq!(
        body["spec"],
        json!({
            "user": "system:anonymous",
            "groups": ["system:unauthenticated"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        })
    );
    let (client, _) = server(201, answer(json!({"allowed": true, "denied": true})));
    let verdict = ApiReviewer::new(&client).review_access(&user, "get", "/metrics").await;
    assert_eq!(verdict.map(|verdict| verdict.allowed), Ok(false));
}

#[tokio::test]
async fn the_client_authority_is_looked_up() {
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"client-ca-file": "PEM"}});
    let (client, asked) = server(200, map);
    assert_eq!(look_up_client_authority(&client).await, Ok(Some("PEM".to_owned())));
    assert_eq!(
        only(&asked).1,
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    );
    let (client, _) = server(404, failure(404, "NotFound"));
    assert_eq!(look_up_client_authority(&client).await, Ok(None));
    let (client, _) = server(403, failure(403, "Forbidden"));
    assert!(look_up_client_authority(&client).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_client_authority_is_followed() {
    let map = json!({"kind": "ConfigMap", "metadata": {}, "data": {"client-ca-file": "PEM"}});
    let (client, asked) = server(200, map);
    let followed = FollowedAuthority::new(None);
    let following = follow_client_authority(client, followed.clone());
    let minutes = std::time::Duration::from_secs(150);
    assert!(tokio::time::timeout(minutes, following).await.is_err(), "it never ends");
    assert_eq!(followed.get().as_deref(), Some("PEM"));
    assert_eq!(asked.lock().expect("free").len(), 3, "soon, and then every minute");

    let (client, _) = server(500, failure(500, "InternalError"));
    let following = follow_client_authority(client, followed.clone());
    assert!(tokio::time::timeout(minutes, following).await.is_err());
    assert_eq!(followed.get().as_deref(), Some("PEM"), "what cannot be looked up stays");
}

/// Whatever the API server forbids shows in one place, from which `/readyz` is answered.
#[tokio::test]
async fn every_right_that_is_missing_is_noted() {
    // In RBAC's words, of everything at once.
    let words: Vec<String> = [
        ("create", "tokenreviews", "authentication.k8s.io"),
        ("create", "subjectaccessreviews", "authorization.k8s.io"),
        ("get", "configmaps", ""),
        ("get", "leases", "coordination.k8s.io"),
        ("create", "leases", "coordination.k8s.io"),
        ("update", "leases", "coordination.k8s.io"),
    ]
    .map(|(verb, resource, group)| {
        format!("User \"s\" cannot {verb} resource {resource:?} in API group {group:?}")
    })
    .into();
    let forbidden = json!({"kind": "Status", "message": words.join("; "), "reason": "Forbidden"});
    let (server, _) = server(403, forbidden);
    let rule = |group: &str, resource: &str, verb: &str| {
        format!("{{apiGroups: [{group:?}], resources: [{resource:?}], verbs: [{verb:?}]}}")
    };
    let (reviewer, user) = (ApiReviewer::new(&server), User::anonymous());
    let lease = ApiLeaseStore::new(server.with_own_connections().expect("it has none"), "n", "l");
    let mut expected = Vec::new();
    let mut check = |error: String, missing: String| {
        assert!(error.contains(&missing), "{error} does not name {missing}");
        expected.push(missing);
        let shown = server.missing_rights().check().expect_err("a right is missing");
        assert!(expected.iter().all(|rule| shown.contains(rule)), "{shown} is not {expected:?}");
    };
    let error = reviewer.review_token("secret").await.expect_err("forbidden");
    check(error, rule("authentication.k8s.io", "tokenreviews", "create"));
    let error = reviewer.review_access(&user, "get", "/metrics").await.expect_err("forbidden");
    check(error, rule("authorization.k8s.io", "subjectaccessreviews", "create"));
    let error = look_up_client_authority(&server).await.expect_err("forbidden");
    check(error, rule("", "configmaps", "get"));
    let error = lease.get().await.expect_err("forbidden").to_string();
    check(error, rule("coordination.k8s.io", "leases", "get"));
    let error = lease.create(json!({})).await.expect_err("forbidden").to_string();
    check(error, rule("coordination.k8s.io", "leases", "create"));
    let error = lease.update(json!({})).await.expect_err("forbidden").to_string();
    check(error, rule("coordination.k8s.io", "leases", "update"));
}

#[tokio::test(start_paused = true)]
async fn an_authority_that_cannot_be_looked_up_is_looked_up_again_soon() {
    let (server, asked) = server(403, failure(403, "Forbidden"));
    let following = follow_client_authority(server, FollowedAuthority::new(Some("PEM".to_owned())));
    assert!(tokio::time::timeout(std::time::Duration::from_secs(100), following).await.is_err());
    assert_eq!(asked.lock().expect("free").len(), 3, "after 60 s, 75 s and 90 s");
}
