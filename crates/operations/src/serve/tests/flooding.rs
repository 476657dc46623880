//! Floods of tokens and paths that nobody knows, with an API server that is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, advance, sleep};

use crate::serve::cache::{REFUSED_ENTRIES_MAX, TIME_TO_LIVE};
use crate::serve::gate::{ANONYMOUS_REVIEWS_MAX, REVIEW_WAIT_MAX, REVIEWS_MAX, REVIEWS_WAITING_MAX};
use crate::serve::{
    ALWAYS_ALLOW_PATHS, Access, Answer, ClientCertificate, Question, Refusal, Reviewer, TokenAnswer, User,
    Verdict,
};

/// How long the API server takes for a review, unless it hangs.
const REVIEW_TIME: Duration = Duration::from_millis(5);

/// An API server that knows the token `good`, and counts how much it is asked at once.
#[derive(Clone, Default)]
struct Slow {
    hangs: bool,
    at_once: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Slow {
    async fn take_time(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        sleep(if self.hangs { Duration::from_secs(3_600) } else { REVIEW_TIME }).await;
        self.at_once.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reviewer for Slow {
    fn review_token<'a>(&'a self, token: &'a str) -> Answer<'a, TokenAnswer> {
        Box::pin(async move {
            self.take_time().await;
            Ok((token == "good").then(|| User { name: "prometheus".to_owned(), ..User::default() }))
        })
    }

    fn review_access<'a>(
        &'a self,
        user: &'a User,
        _: &'a str,
        path: &'a str,
    ) -> Answer<'a, Result<Verdict, String>> {
        Box::pin(async move {
            self.take_time().await;
            let allowed = user.name == "prometheus" && path == "/metrics";
            Ok(Verdict { allowed, reason: String::new() })
        })
    }
}

fn access(tokens: &Slow, rights: &Slow) -> Access {
    Access::new(&ALWAYS_ALLOW_PATHS)
        .expect("good paths")
        .with_token_reviewer(tokens.clone())
        .with_access_reviewer(rights.clone())
}

async fn ask(access: &Access, path: &str, token: Option<&str>) -> Result<(), Refusal> {
    let authorization = token.map(|token| format!("Bearer {token}"));
    let question = Question {
        method: "GET",
        path,
        authorization: authorization.as_deref(),
        certificate: ClientCertificate::None,
    };
    access.check(&question).await.map(|_| ())
}

/// Clients that ask with ever new tokens, or for ever new paths, one request after the other each.
fn flood(access: &Access, clients: usize, with_tokens: bool) -> JoinSet<()> {
    let mut flooding = JoinSet::new();
    for client in 0..clients {
        let access = access.clone();
        flooding.spawn(async move {
            for number in 0.. {
                let made_up = format!("/{client}-{number}");
                let token = with_tokens.then_some(made_up.as_str());
                let refused = ask(&access, &made_up, token).await;
                assert!(refused.is_err());
            }
        });
    }
    flooding
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_starve_neither_a_new_token_nor_a_known_one() {
    let (tokens, rights) = (Slow::default(), Slow::default());
    let access = access(&tokens, &rights);
    let clients = 200;
    let flooding = flood(&access, clients, true);
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    assert_eq!(ask(&access, "/metrics", Some("good")).await, Ok(()), "a new token");
    let turns = u32::try_from(clients / REVIEWS_MAX + 2).expect("few");
    assert!(began.elapsed() <= turns * REVIEW_TIME, "it waits for its turn: {:?}", began.elapsed());
    // Many more strangers are asked about than answers are kept of them.
    let (asked, began) = (tokens.asked.load(Ordering::Relaxed), Instant::now());
    sleep(TIME_TO_LIVE / 2).await;
    assert!(tokens.asked.load(Ordering::Relaxed) - asked > 2 * REFUSED_ENTRIES_MAX);
    assert_eq!(ask(&access, "/metrics", Some("good")).await, Ok(()), "a known token");
    assert_eq!(began.elapsed(), TIME_TO_LIVE / 2, "nothing is asked about it");
    assert_eq!(tokens.most_at_once.load(Ordering::Relaxed), REVIEWS_MAX);
    drop(flooding);
}

#[tokio::test(start_paused = true)]
async fn paths_that_anonymous_clients_make_up_do_not_delay_users() {
    let (tokens, rights) = (Slow::default(), Slow::default());
    let access = access(&tokens, &rights);
    let flooding = flood(&access, 200, false);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(rights.most_at_once.load(Ordering::Relaxed), ANONYMOUS_REVIEWS_MAX);
    let began = Instant::now();
    assert_eq!(ask(&access, "/metrics", Some("good")).await, Ok(()));
    assert!(
        began.elapsed() <= 2 * REVIEW_TIME,
        "a review of the token and one of the right: {:?}",
        began.elapsed()
    );
    drop(flooding);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_or_behind_too_many_is_told_to_try_again() {
    let tokens = Slow { hangs: true, ..Slow::default() };
    let access = access(&tokens, &Slow::default());
    let mut waiting = JoinSet::new();
    for number in 0..REVIEWS_MAX + REVIEWS_WAITING_MAX {
        let access = access.clone();
        waiting.spawn(async move { ask(&access, "/metrics", Some(&number.to_string())).await });
        yield_now().await;
    }
    let busy = |result: Result<(), Refusal>| matches!(result, Err(Refusal::Busy { .. }));
    assert!(busy(ask(&access, "/metrics", Some("one too many")).await));
    assert_eq!(ask(&access, "/livez", None).await, Ok(()), "probes are not reviewed");
    advance(REVIEW_WAIT_MAX).await;
    for _ in 0..REVIEWS_WAITING_MAX {
        let result = waiting.join_next().await.expect("as many as there were").expect("no panic");
        assert!(busy(result));
    }
    assert_eq!(tokens.most_at_once.load(Ordering::Relaxed), REVIEWS_MAX);
}
