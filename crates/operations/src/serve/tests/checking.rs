//! Who may do what, with an API server that is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Duration, advance, sleep};

use crate::serve::{
    ALWAYS_ALLOW_PATHS, Access, Answer, ClientCertificate, Question, Refusal, Reviewer, TokenAnswer, User,
    Verdict,
};

/// An API server that knows one token for each of its words.
#[derive(Clone, Default)]
struct Played {
    token_reviews: Arc<AtomicUsize>,
    access_reviews: Arc<AtomicUsize>,
}

impl Reviewer for Played {
    fn review_token<'a>(&'a self, token: &'a str) -> Answer<'a, TokenAnswer> {
        self.token_reviews.fetch_add(1, Ordering::Relaxed);
        let user = |name: &str, group: &str| {
            Some(User { name: name.to_owned(), groups: vec![group.to_owned()], ..User::default() })
        };
        Box::pin(async move {
            match token {
                "prometheus" => Ok(user("prometheus", "monitoring")),
                "stranger" => Ok(user("<stranger>", "strangers")),
                "root" => Ok(user("root", "system:masters")),
                "slow" => {
                    sleep(Duration::from_secs(3600)).await;
                    Ok(None)
                }
                "broken" => Err("connection refused".to_owned()),
                _ => Ok(None),
            }
        })
    }

    fn review_access<'a>(
        &'a self,
        user: &'a User,
        verb: &'a str,
        path: &'a str,
    ) -> Answer<'a, Result<Verdict, String>> {
        self.access_reviews.fetch_add(1, Ordering::Relaxed);
        assert!(user.name == "system:anonymous" || user.groups.contains(&"system:authenticated".to_owned()));
        Box::pin(async move {
            if path == "/broken" {
                return Err("connection refused".to_owned());
            }
            let allowed = user.name == "prometheus" && verb == "get" && path == "/metrics";
            let reason = if path == "/reason" { "because" } else { "" };
            Ok(Verdict { allowed, reason: reason.to_owned() })
        })
    }
}

fn access(played: &Played) -> Access {
    Access::new(&ALWAYS_ALLOW_PATHS)
        .expect("good paths")
        .with_token_reviewer(played.clone())
        .with_access_reviewer(played.clone())
}

async fn ask(access: &Access, path: &str, authorization: Option<&str>) -> Result<String, Refusal> {
    let question = Question { method: "GET", path, authorization, certificate: ClientCertificate::None };
    access.check(&question).await.map(|granted| granted.user.name)
}

fn forbidden(message: &str) -> Result<String, Refusal> {
    Err(Refusal::Forbidden { message: message.to_owned() })
}

fn unauthorized(detail: Option<&str>) -> Result<String, Refusal> {
    Err(Refusal::Unauthorized { detail: detail.map(str::to_owned) })
}

#[tokio::test(start_paused = true)]
async fn the_table() {
    let access = access(&Played::default());
    let anonymous = || Ok("system:anonymous".to_owned());
    for (path, authorization, expected) in [
        ("/healthz", None, anonymous()),
        ("/livez", Some("Basic abc"), anonymous()),
        ("/readyz", Some("Bearer "), anonymous()),
        ("/healthz", Some("Bearer wrong"), unauthorized(None)),
        (
            "/healthz/ping",
            None,
            forbidden("forbidden: User \"system:anonymous\" cannot get path \"/healthz/ping\""),
        ),
        ("/metrics", None, forbidden("forbidden: User \"system:anonymous\" cannot get path \"/metrics\"")),
        ("/metrics", Some("Bearer prometheus"), Ok("prometheus".to_owned())),
        ("/metrics", Some("bearer prometheus"), Ok("prometheus".to_owned())),
        (
            "/configz",
            Some("Bearer prometheus"),
            forbidden("forbidden: User \"prometheus\" cannot get path \"/configz\""),
        ),
        ("/configz", Some("Bearer root"), Ok("root".to_owned())),
        (
            "/reason",
            Some("Bearer stranger"),
            forbidden("forbidden: User \"&lt;stranger&gt;\" cannot get path \"/reason\": because"),
        ),
        (
            "/metrics",
            Some("Bearer broken"),
            unauthorized(Some("the token could not be reviewed: connection refused")),
        ),
        (
            "/metrics",
            Some("Bearer slow"),
            unauthorized(Some("the token could not be reviewed: the API server did not answer within 10 s")),
        ),
        (
            "/broken",
            None,
            Err(Refusal::Unknown {
                error: "the right to do so could not be reviewed: connection refused".to_owned(),
            }),
        ),
    ] {
        assert_eq!(ask(&access, path, authorization).await, expected, "{path} {authorization:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_a_while() {
    let played = Played::default();
    let access = access(&played);
    let reviews =
        || (played.token_reviews.load(Ordering::Relaxed), played.access_reviews.load(Ordering::Relaxed));
    for _ in 0..5 {
        assert!(ask(&access, "/metrics", Some("Bearer prometheus")).await.is_ok());
    }
    assert_eq!(reviews(), (1, 1));
    advance(Duration::from_secs(11)).await;
    assert!(ask(&access, "/metrics", Some("Bearer prometheus")).await.is_ok());
    assert_eq!(reviews(), (2, 2));
    for _ in 0..3 {
        assert!(ask(&access, "/metrics", Some("Bearer broken")).await.is_err());
    }
    assert_eq!(reviews(), (5, 2), "that nobody answered is not kept");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_goes_before_a_token() {
    let played = Played::default();
    let access = access(&played);
    let user = User { name: "prometheus".to_owned(), ..User::default() };
    let question = Question {
        method: "GET",
        path: "/metrics",
        authorization: Some("Bearer wrong"),
        certificate: ClientCertificate::Names(&user),
    };
    assert_eq!(access.check(&question).await.map(|granted| granted.user.name), Ok("prometheus".to_owned()));
    assert_eq!(played.token_reviews.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn with_nobody_to_ask_everybody_is_anonymous_and_little_is_allowed() {
    let access = Access::new(&["/healthz", "metrics*", "/"]).expect("good paths");
    for (path, allowed) in [
        ("/healthz", true),
        ("/metrics", true),
        ("/metrics/slis", true),
        ("/", true),
        ("/configz", false),
        ("/healthz/ping", false),
    ] {
        assert_eq!(ask(&access, path, Some("Bearer anything")).await.is_ok(), allowed, "{path}");
    }
    let error = Access::new(&["/a*b"]).expect_err("a star in the middle");
    assert_eq!(error.to_string(), "--authorization-always-allow-paths: only trailing * allowed in \"a*b\"");
}
