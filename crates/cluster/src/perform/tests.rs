//! Orders carried out on a server that does all the things that servers do.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use supercargo_engine::{Order, Ticket};
use supercargo_framework::{Conclusion, Effect, Nomination, Notice, PodCondition, Subject};
use supercargo_model::{KindId, ObjectKey, Pod, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::{Concluded, EVENTS_GATHERED_FOR, OrderOutcome, PerformCounts, Performer, PerformerOptions};
use crate::order_log::OrderLog;
use crate::tasks::Supervisor;
use supercargo_client::ApiServer;
use supercargo_client::Clock;
use supercargo_client::fake::{Answer, Asked, Fake};
use supercargo_client::{Tenure, WriteGate};

const PATIENCE: Duration = Duration::from_secs(3600);

struct Trial {
    fake: Fake,
    performer: Performer,
    conclusions: mpsc::UnboundedReceiver<Concluded>,
    tenure: watch::Sender<Tenure>,
    supervisor: Supervisor,
    clock: Clock,
}

impl Trial {
    fn new(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let fake = Fake::numbered(answer);
        let started = Instant::now();
        let clock = Clock::from_fn(move || Timestamp::from_seconds(1_769_860_800).after(started.elapsed()));
        let server = ApiServer::new(fake.service(), None);
        let (tenure, gate) = WriteGate::new(Tenure::Always, clock.clone());
        let own_clock = clock.clone();
        let supervisor = Supervisor::new();
        let tasks = supervisor.tasks();
        let options = PerformerOptions {
            server,
            clock,
            hostname: "host".to_owned(),
            seed: 1,
            gate,
            tasks,
            log: OrderLog::default(),
        };
        let (performer, conclusions) = Performer::start(options);
        Trial { fake, performer, conclusions, tenure, supervisor, clock: own_clock }
    }

    /// Carries out one order.
    async fn perform(&mut self, effect: Effect) -> Result<(), String> {
        self.performer.perform(Order { ticket: Some(Ticket(1)), effect });
        let concluded = timeout(PATIENCE, self.conclusions.recv()).await.expect("it is concluded");
        let outcome = concluded.expect("the performer goes on").outcome;
        outcome.error().map_or(Ok(()), |error| Err(error.to_owned()))
    }

    fn asked(&self) -> Vec<String> {
        self.fake.requests().iter().map(Asked::line).collect()
    }
}

fn pod(name: &str) -> Arc<Pod> {
    Arc::new(Pod {
        name: name.into(),
        namespace: "shop".into(),
        uid: format!("uid-{name}").into(),
        ..Pod::default()
    })
}

fn bind(name: &str) -> Effect {
    Effect::Bind { pod: pod(name), node: "n1".into() }
}

fn unschedulable(name: &str) -> Effect {
    let condition = PodCondition {
        kind: "PodScheduled".into(),
        holds: false,
        reason: "Unschedulable".into(),
        message: "0/1 nodes are available".to_owned(),
        since: Timestamp::default(),
        observed_generation: 1,
    };
    Effect::UpdateStatus { pod: pod(name), condition: Some(condition), nomination: Nomination::Keep }
}

fn failed(name: &str, note: &str) -> Effect {
    Effect::Record(Notice {
        about: Subject::Pod(pod(name)),
        reporter: "default-scheduler".into(),
        is_warning: true,
        reason: "FailedScheduling".into(),
        action: "Scheduling".into(),
        note: note.to_owned(),
        related: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound() {
    let mut trial = Trial::new(|_, _| Answer::plain(201, r#"{"kind":"Status","status":"Success"}"#));
    assert_eq!(trial.perform(bind("web")).await, Ok(()));
    assert_eq!(trial.asked(), ["POST /api/v1/namespaces/shop/pods/web/binding"]);
    let request = &trial.fake.requests()[0];
    assert_eq!(request.json()["metadata"]["uid"], "uid-web");
    assert_eq!(request.json()["target"], json!({ "kind": "Node", "name": "n1" }));
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(trial.performer.counts().bound, 1);
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_is_refused_says_why_in_the_words_of_the_server() {
    let conflict =
        "Operation cannot be fulfilled on pods/binding \"web\": pod web is already assigned to node \"n2\"";
    let mut trial = Trial::new(move |number, _| match number {
        0 => Answer::status(409, conflict),
        _ => Answer::status(404, "pods \"web\" not found"),
    });
    assert_eq!(trial.perform(bind("web")).await, Err(conflict.to_owned()));
    assert_eq!(trial.perform(bind("web")).await, Err("pods \"web\" not found".to_owned()));
    assert_eq!(trial.asked().len(), 2);
    assert_eq!(trial.performer.counts().bindings_failed, 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_looked_up_at_the_server_itself() {
    let not_found = r#"{"kind":"Status","reason":"NotFound","code":404,"message":"pods \"web\" not found"}"#;
    let mut trial = Trial::new(move |number, _| match number {
        0 => Answer::ok(r#"{"metadata":{"name":"web"}}"#),
        1 => Answer::plain(404, not_found),
        2 => Answer::plain(404, "404 page not found"),
        _ => Answer::status(403, "no"),
    });
    let mut found = Vec::new();
    for _ in 0..4 {
        trial
            .performer
            .perform(Order { ticket: Some(Ticket(1)), effect: Effect::LookUp { pod: pod("web") } });
        let concluded = timeout(PATIENCE, trial.conclusions.recv()).await.expect("it is concluded");
        let OrderOutcome::LookedUp(outcome) = concluded.expect("the performer goes on").outcome else {
            panic!("a look-up has an answer of its own")
        };
        found.push(outcome);
    }
    assert_eq!(trial.asked()[0], "GET /api/v1/namespaces/shop/pods/web", "no version: not from a cache");
    assert!(found[0].as_ref().is_ok_and(Option::is_some), "{found:?}");
    assert_eq!(found[1], Ok(None), "the server says that there is no such pod");
    assert!(found[2].is_err(), "whoever says this is no API server: {found:?}");
    assert!(found[3].is_err(), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn bindings_run_side_by_side_as_far_as_there_is_room() {
    let mut trial = Trial::new(|_, _| Answer::never());
    for number in 0..2000 {
        trial.performer.perform(Order { ticket: Some(Ticket(number)), effect: bind(&format!("p{number}")) });
    }
    assert!(!trial.performer.has_room());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(trial.asked().len(), 64);
    // Nobody answers; but nobody waits for ever.
    let conclusion = trial.conclusions.recv().await.expect("the performer goes on");
    assert!(conclusion.outcome.error().is_some_and(|error| error.contains("no answer within 45 s")));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_tried_four_times() {
    let mut trial = Trial::new(|number, _| match number {
        0 => Answer::status(409, "conflict"),
        1 => Answer::status(503, "unavailable"),
        _ => Answer::ok("{}"),
    });
    let started = Instant::now();
    assert_eq!(trial.perform(unschedulable("web")).await, Ok(()));
    assert!((60..=66).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    assert_eq!(trial.asked(), ["PATCH /api/v1/namespaces/shop/pods/web/status"; 3]);
    assert_eq!(trial.fake.requests()[0].header("content-type"), "application/strategic-merge-patch+json");

    let mut trial = Trial::new(|_, _| Answer::status(500, "no"));
    assert_eq!(trial.perform(unschedulable("web")).await, Err("no".to_owned()));
    assert_eq!(trial.asked().len(), 4);

    let mut trial = Trial::new(|_, _| Answer::status(403, "forbidden"));
    assert_eq!(trial.perform(unschedulable("web")).await, Err("forbidden".to_owned()));
    assert_eq!(trial.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_told_and_then_deleted() {
    let mut trial = Trial::new(|_, _| Answer::ok("{}"));
    let evict = || Effect::Evict { victim: pod("low"), preemptor: pod("high") };
    assert_eq!(trial.perform(evict()).await, Ok(()));
    let requests =
        ["PATCH /api/v1/namespaces/shop/pods/low/status", "DELETE /api/v1/namespaces/shop/pods/low"];
    assert_eq!(trial.asked(), requests);
    let sent = trial.fake.requests();
    assert_eq!(sent[0].json()["status"]["conditions"][0]["lastTransitionTime"], "2026-01-31T12:00:00Z");
    assert_eq!(sent[1].json()["preconditions"]["uid"], "uid-low");

    let mut trial = Trial::new(|_, _| Answer::status(403, "pods is forbidden"));
    assert_eq!(trial.perform(evict()).await, Err("pods is forbidden".to_owned()));
    assert_eq!(trial.asked().len(), 1);
}

/// What an API server says of a pod that is not there.
fn not_found() -> Answer {
    Answer::plain(
        404,
        r#"{"kind":"Status","reason":"NotFound","code":404,"message":"pods \"low\" not found"}"#,
    )
}

fn mismatch() -> Answer {
    Answer::status(409, "Precondition failed: UID in precondition: uid-low, UID in object meta: uid-other")
}

#[tokio::test(start_paused = true)]
async fn only_an_api_server_says_that_a_victim_is_gone() {
    let proxy = || Answer::plain(404, "404 page not found");
    let immutable = || {
        Answer::status(
            422,
            "Pod \"low\" is invalid: metadata.uid: Invalid value: \"uid-low\": field is immutable",
        )
    };
    let fine = || Answer::ok("{}");
    type Case<'a> = (&'a (dyn Fn() -> Answer + Sync), &'a (dyn Fn() -> Answer + Sync), bool, usize);
    let cases: [Case<'_>; 8] = [
        // Gone already, gone in between, and replaced by another one.
        (&not_found, &not_found, true, 2),
        (&fine, &not_found, true, 2),
        (&immutable, &fine, true, 1),
        (&fine, &mismatch, true, 2),
        // A victim that lives is deleted, whoever said before that it is not there.
        (&proxy, &fine, true, 2),
        (&not_found, &fine, true, 2),
        // Whoever says this knows nothing about pods.
        (&fine, &proxy, false, 2),
        (&fine, &|| Answer::status(409, "something else is going on"), false, 2),
    ];
    for (number, (patched, deleted, is_done, requests)) in cases.into_iter().enumerate() {
        let answers = std::sync::Mutex::new(vec![deleted(), patched()]);
        let mut trial =
            Trial::new(move |_, _| answers.lock().expect("free").pop().expect("no more requests"));
        let result = trial.perform(Effect::Evict { victim: pod("low"), preemptor: pod("high") }).await;
        assert_eq!((result.is_ok(), trial.asked().len()), (is_done, requests), "case {number}: {result:?}");
    }
}

/// Room is released too early if an answer is believed to end a binding that is still on its way.
#[tokio::test(start_paused = true)]
async fn a_binding_that_a_gateway_answered_for_may_yet_be_made() {
    let unknown = |is_answered| Conclusion::Unknown { error: "no".to_owned(), is_answered };
    for (code, expected) in [
        (404, unknown(true)),
        (429, unknown(true)),
        (408, unknown(false)),
        (500, unknown(false)),
        (502, unknown(false)),
        (503, unknown(false)),
        (504, unknown(false)),
        (524, unknown(false)),
        (403, Conclusion::Refused { error: "no".to_owned(), code: Some(403) }),
        (409, Conclusion::Conflict { error: "no".to_owned() }),
    ] {
        let mut trial = Trial::new(move |_, _| Answer::status(code, "no"));
        trial.performer.perform(Order { ticket: Some(Ticket(1)), effect: bind("web") });
        let concluded = timeout(PATIENCE, trial.conclusions.recv()).await.expect("it is concluded");
        let outcome = concluded.expect("the performer goes on").outcome;
        assert_eq!(outcome, OrderOutcome::Ended(expected), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_patched_and_deleted() {
    let mut trial = Trial::new(|_, _| Answer::ok("{}"));
    let kind =
        KindId { group: "resource.k8s.io", version: "v1", kind: "ResourceClaim", plural: "resourceclaims" };
    let key = ObjectKey { namespace: "shop".into(), name: "gpu".into() };
    let patch = json!({ "status": { "a": 1 } });
    let effect = Effect::Patch { kind, key: key.clone(), subresource: Some("status"), patch: patch.clone() };
    assert_eq!(trial.perform(effect).await, Ok(()));
    assert_eq!(trial.perform(Effect::Delete { kind, key, uid: "1-2".into() }).await, Ok(()));
    let path = "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/gpu";
    assert_eq!(trial.asked(), [format!("PATCH {path}/status"), format!("DELETE {path}")]);
    assert_eq!(trial.fake.requests()[1].json()["preconditions"], json!({ "uid": "1-2" }));
    let request = &trial.fake.requests()[0];
    assert_eq!((request.json(), &*request.header("content-type")), (patch, "application/merge-patch+json"));
}

#[tokio::test(start_paused = true)]
async fn an_event_is_told_once_and_then_counted() {
    let mut trial = Trial::new(|_, _| Answer::ok("{}"));
    for _ in 0..5 {
        assert_eq!(trial.perform(failed("web", "no room")).await, Ok(()));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let sent = trial.fake.requests();
    let name = sent[0].json()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let events = "/apis/events.k8s.io/v1/namespaces/shop/events";
    let patch = format!("PATCH {events}/{name}");
    assert_eq!(trial.asked(), [format!("POST {events}"), patch.clone(), patch]);
    let first = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": name, "namespace": "shop" },
        "eventTime": "2026-01-31T12:00:00.000000Z",
        "reportingController": "default-scheduler", "reportingInstance": "default-scheduler-host",
        "action": "Scheduling", "reason": "FailedScheduling", "type": "Warning", "note": "no room",
        "regarding": { "kind": "Pod", "apiVersion": "v1", "namespace": "shop", "name": "web", "uid": "uid-web" },
    });
    assert_eq!(sent[0].json(), first);
    assert!(name.starts_with("web."));
    // The first one was told after it had waited for others.
    let second = json!({ "series": { "count": 2, "lastObservedTime": "2026-01-31T12:00:11.000000Z" } });
    assert_eq!(sent[1].json(), second);
    // Once it has not happened for a while, the server learns how often it did.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let sent = trial.fake.requests();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[3].json()["series"]["count"], 5);
    // After that it is news again.
    assert_eq!(trial.perform(failed("web", "no room")).await, Ok(()));
    assert_eq!(trial.asked()[4], format!("POST {events}"));
}

#[tokio::test(start_paused = true)]
async fn events_wait_for_others_and_bindings_do_not() {
    let trial = Trial::new(|_, _| Answer::ok("{}"));
    for name in ["a", "b", "c"] {
        trial.performer.perform(Order { ticket: None, effect: failed(name, "no room") });
        trial.performer.perform(Order { ticket: None, effect: bind(name) });
        tokio::time::sleep(EVENTS_GATHERED_FOR / 4).await;
    }
    let bound = |count: u64| PerformCounts { bound: count, ..PerformCounts::default() };
    assert_eq!(trial.performer.counts(), bound(3), "only pods were bound so far");
    tokio::time::sleep(EVENTS_GATHERED_FOR / 4 + Duration::from_millis(1)).await;
    assert_eq!(
        trial.performer.counts(),
        PerformCounts { events_told: 3, ..bound(3) },
        "all are told at once"
    );
    // The next one waits again.
    trial.performer.perform(Order { ticket: None, effect: failed("d", "no room") });
    tokio::time::sleep(EVENTS_GATHERED_FOR / 2).await;
    assert_eq!(trial.performer.counts().events_told, 3);
    // But not when the performer stops.
    let began = Instant::now();
    let Trial { fake, performer, .. } = trial;
    performer.finish(PATIENCE).await;
    assert_eq!((fake.requests().len(), began.elapsed()), (7, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_newer_events_gets_the_older_ones() {
    let mut trial = Trial::new(|_, asked| match &*asked.path {
        "/apis" => Answer::ok(r#"{"kind":"APIGroupList","groups":[]}"#),
        path if path.starts_with("/apis/") => Answer::plain(404, "404 page not found"),
        _ => Answer::ok("{}"),
    });
    assert_eq!(trial.perform(failed("web", "no room")).await, Ok(()));
    assert_eq!(trial.perform(failed("web", "no room")).await, Ok(()));
    let asked = trial.asked();
    assert_eq!(
        asked[1..4],
        ["GET /apis/events.k8s.io/v1", "GET /apis", "POST /api/v1/namespaces/shop/events"]
    );
    assert!(asked[4].starts_with("PATCH /api/v1/namespaces/shop/events/web."), "{asked:?}");
    let sent = trial.fake.requests();
    assert_eq!((&sent[3].json()["message"], &sent[3].json()["count"]), (&json!("no room"), &json!(1)));
    assert_eq!(sent[4].json()["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_does_not_take_is_given_up() {
    let mut trial = Trial::new(|_, asked| match &*asked.path {
        "/apis/events.k8s.io/v1" => {
            Answer::ok(r#"{"kind":"APIResourceList","resources":[{"name":"events"}]}"#)
        }
        _ => Answer::status(404, "namespaces \"shop\" not found"),
    });
    assert_eq!(
        trial.perform(failed("web", "no room")).await,
        Err("namespaces \"shop\" not found".to_owned())
    );
    let mut trial = Trial::new(|_, _| Answer::never());
    assert!(trial.perform(failed("web", "no room")).await.is_err());
    assert_eq!((trial.asked().len(), trial.performer.counts().events_lost), (12, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_ordered_is_done_before_the_end() {
    let trial = Trial::new(|_, _| Answer::ok("{}"));
    for number in 0..200 {
        trial.performer.perform(Order { ticket: None, effect: bind(&format!("p{number}")) });
        trial.performer.perform(Order { ticket: None, effect: failed(&format!("p{number}"), "no room") });
    }
    trial.performer.finish(Duration::from_secs(5)).await;
    assert_eq!(trial.fake.requests().len(), 400);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_end_of_the_lease() {
    let mut trial = Trial::new(|number, _| match number {
        0 => Answer::status(429, "later").with_header("retry-after", "5"),
        _ => Answer::ok("{}"),
    });
    // The lease runs out while the server wants us to wait.
    trial.tenure.send_replace(Tenure::until(Instant::now() + Duration::from_secs(3), &trial.clock));
    let error = trial.perform(bind("a")).await.expect_err("the lease is over");
    assert!(error.contains("this replica does not hold the lease"), "{error}");
    for effect in [bind("b"), unschedulable("b")] {
        trial.perform(effect).await.expect_err("the lease is over");
    }
    assert_eq!(trial.asked(), ["POST /api/v1/namespaces/shop/pods/a/binding"]);
    trial.tenure.send_replace(Tenure::Always);
    assert_eq!(trial.perform(bind("c")).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_panics_is_told_with_its_message() {
    let mut trial = Trial::new(|_, _| panic!("a bug in a request"));
    trial.performer.perform(Order { ticket: Some(Ticket(1)), effect: bind("a") });
    let end = timeout(PATIENCE, trial.supervisor.next_end()).await.expect("it is told");
    assert_eq!(end.to_string(), "task performer panicked: a bug in a request");
}
