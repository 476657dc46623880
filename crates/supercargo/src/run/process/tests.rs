//! Whole processes, started in this one: against an API server that answers from memory, in virtual time.

mod clock;
mod memories;
mod queries;
mod questions;
mod reload;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser as _;
use supercargo_model::Timestamp;
use supercargo_operations::signals::Given;
use supercargo_sdk::prelude::{Cycle, Extensions, Filter, NoArgs, NodeRef, Plugin, Status};
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep};

use super::*;
use crate::{CommandLine, Plugins};
use server::Server;

const NAME: &str = "replica-a";

/// A process that runs, and what a test does to it.
struct Replica {
    signals: mpsc::Sender<Given>,
    task: JoinHandle<anyhow::Result<Ended>>,
}

impl Replica {
    fn start(server: &Server, flags: &[&str], files: &Files) -> Self {
        Replica::with_clock(server, flags, files, virtual_clock())
    }

    fn with_clock(server: &Server, flags: &[&str], files: &Files, clock: Clock) -> Self {
        Replica::with_plugins(server, flags, files, clock, supercargo_plugins::registry())
    }

    fn with_plugins(server: &Server, flags: &[&str], files: &Files, clock: Clock, plugins: Registry) -> Self {
        Replica::named(NAME, server, flags, files, clock, plugins)
    }

    fn named(
        identity: &str,
        server: &Server,
        flags: &[&str],
        files: &Files,
        clock: Clock,
        plugins: Registry,
    ) -> Self {
        let words = ["supercargo", "run", "--secure-port=0"].iter().chain(flags);
        let line = CommandLine::try_parse_from(words).expect("flags");
        let crate::Command::Run(flags) = line.command else { panic!("not run") };
        let process = Process::new(*flags, plugins, files).expect("a configuration");
        let (sender, signals) = Signals::given();
        let surroundings = Surroundings {
            server: server.api_server(),
            clock,
            signals,
            identity: identity.to_owned(),
            hostname: "host".to_owned(),
            scheduling: Handle::current(),
        };
        Replica { signals: sender, task: tokio::spawn(process.run(surroundings)) }
    }

    async fn signal(&self, signal: Given) {
        self.signals.send(signal).await.expect("the process listens");
    }

    async fn ended(self) -> Ended {
        self.task.await.expect("the process does not panic").expect("the process begins")
    }
}

/// The time that tests let pass.
fn virtual_clock() -> Clock {
    let began = Instant::now();
    Clock::from_fn(move || Timestamp::from_seconds(1_800_000_000).after(began.elapsed()))
}

#[tokio::test(start_paused = true)]
async fn a_process_schedules_until_a_signal_stops_it() {
    let server = Server::with_pods(&["a", "b"]);
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(10)).await;
    assert_eq!(server.bound(), ["a on n1", "b on n1"]);
    assert_eq!(server.holder(), NAME);
    replica.signal(Given::Dump).await;
    server.add_pod("c");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.bound(), ["a on n1", "b on n1", "c on n1"]);

    replica.signal(Given::Terminate).await;
    let ended = replica.ended().await;
    assert_eq!((&ended, ended.exit_code()), (&Ended::Stopped, 0));
    assert_eq!(server.holder(), "", "the lease is released");
    server.add_pod("d");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.bound().len(), 3, "no task is left that schedules");
}

#[tokio::test(start_paused = true)]
async fn a_standby_writes_nothing() {
    let server = Server::with_pods(&["a"]);
    server.give_lease_to("another");
    let replica = Replica::start(&server, &[], &Files::system());
    // Nobody renews the lease, so it is taken over after its 15 s; until then nothing is written.
    sleep(Duration::from_secs(14)).await;
    assert_eq!(server.writes(), [""; 0]);
    sleep(Duration::from_secs(20)).await;
    assert_eq!((server.holder().as_str(), server.bound().len()), (NAME, 1));
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_process_alone_needs_no_lease() {
    let server = Server::with_pods(&["a"]);
    let replica = Replica::start(&server, &["--leader-elect=false"], &Files::system());
    sleep(Duration::from_secs(1)).await;
    assert_eq!((server.holder().as_str(), server.bound().len()), ("", 1));
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_ends_the_process() {
    let server = Server::with_pods(&[]);
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(10)).await;
    server.silence("/apis/coordination.k8s.io");
    let before = Instant::now();
    let ended = replica.ended().await;
    assert_eq!((&ended, ended.exit_code()), (&Ended::LeaseLost, 1));
    assert!(before.elapsed() <= Duration::from_secs(15), "{:?}", before.elapsed());
    assert_eq!(server.holder(), NAME, "what was lost is not released");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_read_where_the_process_is_told_to() {
    let server = Server::with_pods(&["a"]);
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let files = Files::from_fn(move |path| {
        assert_eq!(path.to_str(), Some("/config/scheduler.yaml"));
        Ok(format!("{head}profiles: [{{schedulerName: other}}]\n").into_bytes())
    });
    let replica = Replica::start(&server, &["--config=/config/scheduler.yaml"], &files);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(server.bound(), [""; 0], "the pod asks for another scheduler");
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}

/// Lets only the pod `a` onto nodes.
struct OnlyA;

impl Plugin for OnlyA {
    const NAME: &'static str = "OnlyA";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        OnlyA
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for OnlyA {
    fn filter(&self, cycle: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        if *cycle.pod.name == *"a" { Status::success() } else { Status::unresolvable("not a") }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_schedules_with_a_plugin_that_was_added() {
    let server = Server::with_pods(&["a", "b"]);
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let profile = "profiles: [{plugins: {multiPoint: {enabled: [{name: OnlyA}]}}}]\n";
    let files = Files::from_fn(move |_| Ok(format!("{head}{profile}").into_bytes()));
    let plugins = Plugins::with(Plugins::add::<OnlyA>).expect("the name is free");
    let flags = ["--config=/config.yaml", "--leader-elect=false"];
    let replica = Replica::with_plugins(&server, &flags, &files, virtual_clock(), plugins);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(server.bound(), ["a on n1"]);
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}

/// Waits for a process that a task ends: the task and its panic, after less than a second.
async fn ended_by_a_task(replica: Replica) -> String {
    let before = Instant::now();
    let ended = replica.ended().await;
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(ended.exit_code(), 1);
    assert!(matches!(ended, Ended::TaskEnded(_)), "{ended:?}");
    ended.to_string()
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";

#[tokio::test(start_paused = true)]
async fn a_performer_that_panics_ends_the_process_and_the_lease_runs_out() {
    let server = Server::with_pods(&[]);
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(10)).await;
    server.plant_bug("/binding");
    server.add_pod("a");
    let reason = ended_by_a_task(replica).await;
    assert_eq!(reason, "task performer panicked: a bug at /api/v1/namespaces/default/pods/a/binding");
    // Nobody knows whether the binding was carried out, so nobody may write before the lease has run out.
    assert_eq!(server.holder(), NAME);
}

#[tokio::test(start_paused = true)]
async fn an_election_that_panics_ends_the_process() {
    let server = Server::with_pods(&["a"]);
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(9)).await;
    server.plant_bug("/leases/kube-scheduler");
    // The next renewal comes within two seconds.
    sleep(Duration::from_millis(1_500)).await;
    let ended = replica.ended().await;
    assert_eq!(ended.to_string(), format!("task election panicked: a bug at {LEASE}"));
    assert_eq!(server.holder(), "", "nothing was under way, so the lease is released");
    server.add_pod("b");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.bound(), ["a on n1"], "nothing is written after the election has ended");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_panics_ends_the_process() {
    let server = Server::with_pods(&["a"]);
    let broken = Arc::new(AtomicBool::new(false));
    let (began, is_broken) = (Instant::now(), broken.clone());
    let clock = Clock::from_fn(move || {
        assert!(!is_broken.load(Ordering::SeqCst), "the clock is broken");
        Timestamp::from_seconds(1_800_000_000).after(began.elapsed())
    });
    let replica = Replica::with_clock(&server, &["--leader-elect=false"], &Files::system(), clock);
    sleep(Duration::from_secs(10)).await;
    broken.store(true, Ordering::SeqCst);
    server.add_pod("b");
    assert_eq!(ended_by_a_task(replica).await, "task driver panicked: the clock is broken");
    assert_eq!(server.bound(), ["a on n1"]);
}

/// The gate does not need the election: its clock is enough.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_the_lease_has_run_out() {
    let server = Server::with_pods(&[]);
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(10)).await;
    // As after SIGSTOP and SIGCONT: much time passes at once, and a pod is there when the process goes on.
    server.silence("/apis/coordination.k8s.io");
    server.add_pod("a");
    advance(Duration::from_secs(20)).await;
    assert_eq!(replica.ended().await, Ended::LeaseLost);
    assert_eq!(server.bound(), [""; 0]);
}

/// A lease in the hands of a replica that cannot schedule keeps others from it that can.
#[tokio::test(start_paused = true)]
async fn a_replica_takes_the_lease_when_it_knows_the_cluster() {
    for (configuration, takes_it_before) in [("", false), ("delayCacheUntilActive: true\n", true)] {
        let server = Server::with_pods(&["a"]);
        server.forbid(Some("nodes"));
        let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
        let files = Files::from_fn(move |_| Ok(format!("{head}{configuration}").into_bytes()));
        let replica = Replica::start(&server, &["--config=/scheduler.yaml"], &files);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(server.holder() == NAME, takes_it_before, "{configuration}");
        server.forbid(None);
        sleep(Duration::from_secs(60)).await;
        assert_eq!((server.holder().as_str(), server.bound().len()), (NAME, 1), "{configuration}");
        replica.signal(Given::Terminate).await;
        assert_eq!(replica.ended().await, Ended::Stopped);
        assert_eq!(server.holder(), "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_never_knows_the_cluster_can_be_stopped() {
    let server = Server::with_pods(&["a"]);
    server.forbid(Some("nodes"));
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(20)).await;
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
    assert_eq!(server.writes(), [""; 0]);
}

/// Another replica that leads at once would take the room of a pod that is still being bound.
#[tokio::test(start_paused = true)]
async fn the_lease_is_given_back_when_nothing_is_under_way_any_more() {
    let server = Server::with_pods(&[]);
    let replica = Replica::start(&server, &[], &Files::system());
    sleep(Duration::from_secs(10)).await;
    server.silence("/api/v1/namespaces/default/pods/a/binding");
    server.add_pod("a");
    sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    replica.signal(Given::Terminate).await;
    // The driver waits for 5 s; the binding that is cut off then may still be carried out for 5 s.
    sleep(Duration::from_millis(9_900)).await;
    assert_eq!(server.holder(), NAME, "it is renewed");
    assert_eq!(replica.ended().await, Ended::Stopped);
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    assert_eq!(server.holder(), "");
}
