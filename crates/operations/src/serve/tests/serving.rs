//! Over real sockets on the loopback address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as route;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::client::{Authority, ask, connect, get, send};
use crate::serve::{
    Access, Answer, CertificateSource, Check, ClientAuthority, Component, FollowedAuthority, Note, Reviewer,
    Routes, ServeOptions, Server, TlsOptions, TokenAnswer, User, Verdict,
};

pub(super) struct Running {
    pub(super) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

pub(super) async fn start(routes: Routes, access: Access, client_authority: ClientAuthority) -> Running {
    let options = ServeOptions {
        bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        certificate: CertificateSource::SelfSigned,
        client_authority,
        tls: TlsOptions::default(),
    };
    let server = Server::listen(options).await.expect("a port is free");
    let address = server.address();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(routes, access, async {
        let _ = stopped.await;
    }));
    Running { address, stop, task }
}

pub(super) fn routes() -> Routes {
    Routes::new()
        .health("/livez", Vec::new())
        .health(
            "/readyz",
            vec![
                Check::new("leaderElection", || Ok(())),
                Check::new("sched-handler-sync", || Err("handlers are not fully synchronized".to_owned())),
            ],
        )
        .page("/metrics", crate::metrics::CONTENT_TYPE, || "up 1\n".to_owned())
        .json("/configz", || serde_json::json!({"componentconfig": {}}))
        .object("/debug/pods", async |namespace, name| match &*name {
            "gone" => Err("nobody knows".to_owned()),
            _ => Ok(serde_json::json!({"pod": format!("{namespace}/{name}")})),
        })
}

fn everything() -> Access {
    Access::new(&["/*"]).expect("a good path")
}

#[tokio::test]
async fn pages_and_checks() {
    let server = start(routes(), everything(), ClientAuthority::None).await;
    for (path, status, content_type, body) in [
        ("/livez", 200, "text/plain; charset=utf-8", "ok"),
        ("/livez?verbose", 200, "text/plain; charset=utf-8", "[+]ping ok\nlivez check passed\n"),
        ("/livez/ping", 200, "text/plain; charset=utf-8", "ok"),
        (
            "/readyz",
            500,
            "text/plain; charset=utf-8",
            "[+]leaderElection ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
        ),
        ("/readyz?exclude=sched-handler-sync", 200, "text/plain; charset=utf-8", "ok"),
        (
            "/readyz?verbose=1&exclude=sched-handler-sync&exclude=nonsense",
            200,
            "text/plain; charset=utf-8",
            "[+]leaderElection ok\n[+]sched-handler-sync excluded: ok\nwarn: some health checks cannot be excluded: no \
             matches for \"nonsense\"\nreadyz check passed\n",
        ),
        (
            "/readyz/sched-handler-sync",
            500,
            "text/plain; charset=utf-8",
            "internal server error: handlers are not fully synchronized\n",
        ),
        ("/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "up 1\n"),
        ("/configz", 200, "application/json", "{\"componentconfig\":{}}"),
        ("/debug/pods/shop/web-1", 200, "application/json", "{\"pod\":\"shop/web-1\"}\n"),
        ("/debug/pods/shop/gone", 503, "text/plain; charset=utf-8", "nobody knows\n"),
        ("/debug/pods/shop", 404, "text/plain; charset=utf-8", "404 page not found\n"),
        ("/nonsense", 404, "text/plain; charset=utf-8", "404 page not found\n"),
    ] {
        let reply = get(server.address, path, "", None).await.expect("an answer");
        assert_eq!((reply.status, reply.body.as_str()), (status, body), "{path}");
        assert!(reply.head.contains(&format!("content-type: {content_type}")), "{path}: {}", reply.head);
    }
}

#[tokio::test]
async fn health_checks_are_counted_and_pages_are_listed() {
    let component = Component {
        name: "supercargo",
        version: "0.1.0",
        emulated_version: "1.36",
        started: crate::clock::time_of_day(),
        clock: crate::clock::time_of_day,
    };
    let routes = routes().slis().zpages(component, BTreeMap::from([("v".to_owned(), "2".to_owned())]));
    let server = start(routes, everything(), ClientAuthority::None).await;
    for path in ["/livez", "/readyz", "/readyz/leaderElection"] {
        get(server.address, path, "", None).await.expect("an answer");
    }
    let slis = get(server.address, "/metrics/slis", "", None).await.expect("an answer").body;
    for line in [
        r#"kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 0"#,
        r#"kubernetes_healthchecks_total{name="leaderElection",status="success",type="readyz"} 2"#,
        r#"kubernetes_healthchecks_total{name="sched-handler-sync",status="error",type="readyz"} 1"#,
        r#"kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1"#,
        "# TYPE process_start_time_seconds gauge",
    ] {
        assert!(slis.lines().any(|found| found == line), "{line}\n{slis}");
    }
    let text = get(server.address, "/statusz", "", None).await.expect("an answer").body;
    assert!(text.ends_with("Paths: /configz /flagz /livez /metrics /metrics/slis /readyz\n"), "{text}");
    let accept = "Accept: application/json;v=v1beta1;g=config.k8s.io;as=Flagz\r\n";
    let reply = get(server.address, "/flagz", accept, None).await.expect("an answer");
    assert!(
        reply.head.contains("content-type: application/json;g=config.k8s.io;v=v1beta1;as=flagz"),
        "{}",
        reply.head
    );
    assert!(reply.body.contains(r#""flags":{"v":"2"}"#), "{}", reply.body);
    let reply = get(server.address, "/flagz", "Accept: application/json\r\n", None).await.expect("an answer");
    assert_eq!(reply.status, 406);
}

#[tokio::test]
async fn who_may_not_reads_why() {
    let access = Access::new(&crate::serve::ALWAYS_ALLOW_PATHS).expect("good paths");
    let server = start(routes(), access, ClientAuthority::None).await;
    let reply =
        get(server.address, "/metrics", "Authorization: Bearer x\r\n", None).await.expect("an answer");
    assert_eq!(reply.status, 403);
    let status: serde_json::Value = serde_json::from_str(&reply.body).expect("a status");
    assert_eq!(
        status,
        serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403,
            "details": {}, "message": "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"",
        })
    );
    assert_eq!(get(server.address, "/livez", "", None).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_client_certificate_says_who_asks() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let access = Access::new(&crate::serve::ALWAYS_ALLOW_PATHS).expect("good paths");
    let server = start(routes(), access, ClientAuthority::Pem(authority.pem.clone())).await;
    let admin = authority.sign("admin", &["system:masters"]);
    assert_eq!(get(server.address, "/metrics", "", Some(admin)).await.expect("an answer").status, 200);
    let other = authority.sign("other", &["people"]);
    let reply = get(server.address, "/metrics", "", Some(other)).await.expect("an answer");
    assert_eq!(reply.status, 403);
    assert!(reply.body.contains("User \\\"other\\\" cannot get path"), "{}", reply.body);
    let forged = stranger.sign("admin", &["system:masters"]);
    assert!(get(server.address, "/livez", "", Some(forged)).await.is_err(), "not signed by the authority");
    assert_eq!(get(server.address, "/livez", "", None).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_connection_does_not_outlive_its_authority() {
    let authority = Authority::new();
    let followed = FollowedAuthority::new(Some(authority.pem.clone()));
    let access = Access::new(&crate::serve::ALWAYS_ALLOW_PATHS).expect("good paths");
    let server = start(routes(), access, ClientAuthority::Followed(followed.clone())).await;
    let admin = authority.sign("admin", &["system:masters"]);
    let mut stream = connect(server.address, Some(admin)).await.expect("connected");
    assert_eq!(ask(&mut stream, "/metrics", "").await.expect("an answer").0, 200);
    followed.set(Authority::new().pem);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    let (status, text) = ask(&mut stream, "/metrics", "").await.expect("an answer");
    assert_eq!(status, 401);
    assert!(text.contains("connection: close") && text.contains("is not good any more"), "{text}");
}

/// Knows two users by their tokens; one of them may read `/readyz`.
struct Knows;

impl Reviewer for Knows {
    fn review_token<'a>(&'a self, token: &'a str) -> Answer<'a, TokenAnswer> {
        Box::pin(async move { Ok(Some(User { name: token.to_owned(), ..User::default() })) })
    }

    fn review_access<'a>(
        &'a self,
        user: &'a User,
        verb: &'a str,
        path: &'a str,
    ) -> Answer<'a, Result<Verdict, String>> {
        let allowed = user.name == "operator" && verb == "get" && path == "/readyz";
        Box::pin(async move { Ok(Verdict { allowed, reason: String::new() }) })
    }
}

#[tokio::test]
async fn who_may_know_reads_why_a_check_has_failed() {
    let withheld = "[-]sched-handler-sync failed: reason withheld\n";
    let told = "[-]sched-handler-sync failed: handlers are not fully synchronized\n";
    let open = Access::new(&crate::serve::ALWAYS_ALLOW_PATHS).expect("good paths");
    let closed = Access::new(&["/healthz"]).expect("a good path");
    for (access, anonymous, stranger) in [(open, 500, 500), (closed, 403, 403)] {
        let access = access.with_token_reviewer(Knows).with_access_reviewer(Knows);
        let server = start(routes(), access, ClientAuthority::None).await;
        for path in ["/readyz", "/readyz?verbose"] {
            for (token, status, line) in [
                (None, anonymous, withheld),
                (Some("stranger"), stranger, withheld),
                (Some("operator"), 500, told),
            ] {
                let header = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
                let reply = get(server.address, path, header.as_deref().unwrap_or_default(), None).await;
                let reply = reply.expect("an answer");
                assert_eq!(reply.status, status, "{path} {token:?}");
                assert_eq!(reply.body.contains(line), status == 500, "{path} {token:?}: {}", reply.body);
            }
        }
    }
}

#[tokio::test]
async fn notes_are_shown_to_who_wants_to_see_every_check_and_fail_nothing() {
    let note =
        Note { summary: "query load: no answer in 3 s".to_owned(), reason: Some("it is down".to_owned()) };
    let quiet = Note { summary: "query x: 1 facts".to_owned(), reason: None };
    let notes = move || vec![note.clone(), quiet.clone()];
    let routes = Routes::new().health_with_notes("/readyz", Vec::new(), notes);
    let open = Access::new(&crate::serve::ALWAYS_ALLOW_PATHS).expect("good paths");
    let access = open.with_token_reviewer(Knows).with_access_reviewer(Knows);
    let server = start(routes, access, ClientAuthority::None).await;
    let lines = |reason: &str| {
        format!(
            "[+]ping ok\n[i]query load: no answer in 3 s{reason}\n[i]query x: 1 facts\nreadyz check passed\n"
        )
    };
    for (path, header, body) in [
        ("/readyz", "", "ok".to_owned()),
        ("/readyz?verbose", "", lines("")),
        ("/readyz?verbose", "Authorization: Bearer stranger\r\n", lines("")),
        ("/readyz?verbose", "Authorization: Bearer operator\r\n", lines(": it is down")),
    ] {
        let reply = get(server.address, path, header, None).await.expect("an answer");
        assert_eq!((reply.status, reply.body), (200, body), "{path} {header}");
    }
}

#[tokio::test]
async fn requests_under_way_are_answered_when_the_server_stops() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, left) = (Arc::clone(&entered), Arc::clone(&leave));
    let slow = Router::new().route(
        "/slow",
        route(async move || {
            enter.notify_one();
            left.notified().await;
            "done"
        }),
    );
    let server = start(Routes::new().merge(slow), everything(), ClientAuthority::None).await;
    let address = server.address;
    let request = tokio::spawn(async move { get(address, "/slow", "", None).await });
    entered.notified().await;
    server.stop.send(()).expect("the server listens");
    // It stops listening before it waits for what is under way.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!server.task.is_finished());
    leave.notify_one();
    let reply = request.await.expect("no panic").expect("an answer");
    assert_eq!((reply.status, reply.body.as_str()), (200, "done"));
    server.task.await.expect("no panic");
}

#[tokio::test]
async fn what_is_no_tls_does_not_disturb() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = start(routes(), everything(), ClientAuthority::None).await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("connected");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert_eq!(get(server.address, "/livez", "", None).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn verbosity_is_changed_while_running() {
    let verbosity = crate::logs::Verbosity::new(0);
    let routes = Routes::new().verbosity(verbosity.clone());
    let server = start(routes, everything(), ClientAuthority::None).await;
    let put = async |body: &str| {
        let headers = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let reply = send(server.address, "PUT", "/debug/flags/v", &headers, None).await.expect("an answer");
        (reply.status, reply.body)
    };
    assert_eq!(put("4").await, (200, "successfully set klog.logging.verbosity to 4".to_owned()));
    assert_eq!(verbosity.get(), 4);
    assert_eq!(put("much").await.0, 400);
    assert_eq!(verbosity.get(), 4);
}
