//! A driver on a small server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use supercargo_client::fake::{Answer, Fake, Writer};
use supercargo_client::logged::Logged;
use supercargo_engine::{
    EngineOptions, Gauges, Indexing, Observation, PerformCounts, QueryAsked, Rules, Seed,
};
use supercargo_framework::{Fixes, Reads};
use supercargo_model::KindId;
use supercargo_model::kinds::Service;
use tokio::time::sleep;

use super::*;
use crate::tasks::Supervisor;

const KNOWN: &str = "Everything is listed; the cluster is known";
const PAUSED: &str = "The kind is served again; nothing is scheduled until it is listed kind=\"services\"";

/// Nobody looks.
struct Nobody;

impl Observer for Nobody {
    fn decided(&mut self, _: Attempt<'_>) {}
    fn observed(&mut self, _: Observation) {}
    fn told(&mut self, _: QueueEvent, _: Duration) {}
    fn listed_again(&mut self, _: KindId) {}
    fn performed(&mut self, _: PerformCounts) {}
    fn queried(&mut self, _: QueryAsked<'_>) {}
    fn gauges(&mut self, _: &Gauges) {}
}

fn options() -> SchedulerOptions {
    let (rules, fixes) = (Rules::LIVE, Fixes::default());
    SchedulerOptions::new(EngineOptions { rules, seed: Seed(1), fixes, indexing: Indexing::On })
}

fn profiles(reads: Reads) -> Vec<Profile> {
    let mut profile = Profile::new("default-scheduler");
    profile.reads = Some(reads);
    vec![profile]
}

/// A server with nothing in it that does not serve services, until it serves them, and that lists them when they may be listed.
fn server(are_served: &Arc<AtomicBool>, are_listed: &Arc<AtomicBool>) -> ApiServer {
    let (are_served, are_listed) = (are_served.clone(), are_listed.clone());
    let open: std::sync::Mutex<Vec<Writer>> = std::sync::Mutex::default();
    let fake = Fake::new(move |asked| {
        let (is_served, is_listed) = (are_served.load(Ordering::SeqCst), are_listed.load(Ordering::SeqCst));
        match &*asked.path {
            "/busy" => return Answer::status(429, "slow down").with_header("retry-after", "60"),
            "/api/v1" => {
                let name = if is_served { "services" } else { "pods" };
                return Answer::ok(&format!(
                    r#"{{"kind":"APIResourceList","resources":[{{"name":"{name}"}}]}}"#
                ));
            }
            "/api/v1/services" if !is_served => return Answer::plain(404, "404 page not found"),
            "/api/v1/services" if !is_listed => return Answer::status(403, "forbidden"),
            _ => {}
        }
        let (writer, answer) = Answer::streamed();
        if asked.query.contains("sendInitialEvents") {
            let end = r#"{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"2"}"#;
            let line = format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{end}}}}}\n");
            let _ = writer.send(Ok(line.into()));
        }
        open.lock().expect("no test panics here").push(writer);
        answer
    });
    ApiServer::new(fake.service(), None)
}

/// A driver that reads services, on such a server.
fn driver(supervisor: &Supervisor, server: ApiServer, commands: mpsc::Receiver<Command>) -> Driver<Nobody> {
    let began = Instant::now();
    let options = DriverOptions {
        scheduler: Scheduler::new(profiles(Reads::nothing().kind::<Service>()), options()),
        server,
        clock: Clock::from_fn(move || Timestamp::from_seconds(1_800_000_000).after(began.elapsed())),
        hostname: "host".to_owned(),
        seed: 1,
        extenders: Vec::new(),
        gate: WriteGate::always_open(),
        memories: None,
        tasks: supervisor.tasks(),
        query_tasks: supervisor.tasks(),
    };
    Driver::start(options, Nobody, commands)
}

/// It is said when scheduling pauses, and when it goes on: because the kind is listed, or because nobody reads it any more.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_again_is_waited_for_and_both_is_said() {
    for is_reloaded in [false, true] {
        let (logged, _logging) = Logged::without_verbosity();
        let (are_served, are_listed) = (Arc::default(), Arc::default());
        let supervisor = Supervisor::new();
        let (commands, commanded) = mpsc::channel(1);
        let driver = driver(&supervisor, server(&are_served, &are_listed), commanded);
        let (progress, mut known) = (driver.progress(), driver.known());
        supervisor.tasks().spawn("driver", driver.run(std::future::pending()));
        let said = |line: &str| logged.text().matches(line).count();
        sleep(Duration::from_secs(10)).await;
        assert_eq!((progress.is_complete(), said(KNOWN), said(PAUSED)), (true, 1, 0), "{}", logged.text());
        assert!(*known.borrow_and_update());

        are_served.store(true, Ordering::SeqCst);
        sleep(Duration::from_secs(60)).await;
        assert_eq!((progress.is_complete(), said(KNOWN), said(PAUSED)), (false, 1, 1), "{}", logged.text());
        assert_eq!(known.has_changed().ok(), Some(false));

        if is_reloaded {
            let (done, reloaded) = oneshot::channel();
            let replacement = Replacement {
                profiles: profiles(Reads::nothing()),
                options: options(),
                extender_settings: Vec::new(),
                extenders: Vec::new(),
            };
            commands.send(Command::Reload(Box::new(replacement), done)).await.expect("the driver is there");
            assert_eq!(reloaded.await, Ok(Ok(())));
        } else {
            are_listed.store(true, Ordering::SeqCst);
        }
        sleep(Duration::from_secs(60)).await;
        assert_eq!((progress.is_complete(), said(KNOWN), said(PAUSED)), (true, 2, 1), "{}", logged.text());
        assert_eq!(known.has_changed().ok(), Some(true));
    }
}

#[tokio::test(start_paused = true)]
async fn how_many_requests_were_asked_to_wait_besides_is_said_soon() {
    let (logged, _logging) = Logged::without_verbosity();
    let (supervisor, server) = (Supervisor::new(), server(&Arc::default(), &Arc::default()));
    let (_commands, commanded) = mpsc::channel(1);
    let driver = driver(&supervisor, server.clone(), commanded);
    supervisor.tasks().spawn("driver", driver.run(std::future::pending()));
    for _ in 0..25 {
        let server = server.with_own_limit();
        supervisor.tasks().spawn_finite("request", async move { _ = server.get("/busy").await });
    }
    sleep(Duration::from_secs(12)).await;
    let text = logged.text();
    assert_eq!(
        (text.matches("asks to wait").count(), text.matches("5 more like this").count()),
        (20, 1),
        "{text}"
    );
}
