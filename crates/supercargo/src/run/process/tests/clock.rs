//! A clock that is set while pods wait.

use std::sync::atomic::AtomicI64;

use supercargo_sdk::prelude::{Acts, Permit, PermitDecision};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);
const HASTE: Duration = Duration::from_millis(30_500);

/// Lets pods wait at Permit until their time is over, which comes sooner for the one that is `hasty`.
struct Patient;

impl Plugin for Patient {
    const NAME: &'static str = "Patient";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Patient
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.permit()
    }
}

impl Permit for Patient {
    fn permit(&self, cycle: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let patience = if *cycle.pod.name == *"hasty" { HASTE } else { PATIENCE };
        PermitDecision::wait_until(cycle.context.now.after(patience))
    }
}

/// A process whose pods wait at Permit, and by how many seconds its clock is set.
fn start(server: &Server) -> (Replica, Arc<AtomicI64>) {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let profile = "profiles: [{plugins: {multiPoint: {enabled: [{name: Patient}]}}}]\n";
    let files = Files::from_fn(move |_| Ok(format!("{head}{profile}").into_bytes()));
    let plugins = Plugins::with(Plugins::add::<Patient>).expect("the name is free");
    let (set, clock) = (Arc::new(AtomicI64::new(0)), virtual_clock());
    let offset = set.clone();
    let clock = Clock::from_fn(move || clock.now().moved(offset.load(Ordering::SeqCst)));
    let flags = ["--config=/config.yaml", "--leader-elect=false"];
    (Replica::with_plugins(server, &flags, &files, clock, plugins), set)
}

/// Something happens right after the clock was set, before anybody looks at it for its own sake.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_before_an_event_ends_no_wait_and_draws_none_out() {
    let server = Server::with_pods(&["a"]);
    let (replica, set) = start(&server);
    let gave_up = |name: &str| server.is_told_to_wait(name);
    sleep(Duration::from_millis(10_300)).await;
    set.store(3600, Ordering::SeqCst);
    server.add_pod("b");
    sleep(Duration::from_secs(40)).await;
    assert!(!gave_up("a") && !gave_up("b"), "{:?}", server.writes());
    sleep(Duration::from_secs(15)).await;
    assert!(gave_up("a") && !gave_up("b"), "a has waited for a minute: {:?}", server.writes());
    sleep(Duration::from_secs(10)).await;
    assert!(gave_up("b"), "and now so has b: {:?}", server.writes());
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}

/// A wait is over at the same time of day as another one that has ended, which was another moment before the clock was set.
#[tokio::test(start_paused = true)]
async fn a_wait_is_not_taken_for_one_of_before_the_clock_was_set() {
    let server = Server::with_pods(&["a"]);
    let (replica, set) = start(&server);
    // Between two reports, so that the driver is next woken by the removal.
    sleep(Duration::from_millis(9_500)).await;
    assert_eq!(server.bound(), [""; 0]);
    set.store(20, Ordering::SeqCst);
    server.remove_pod("a");
    server.add_pod("hasty");
    sleep(Duration::from_millis(30_400)).await;
    assert!(!server.is_told_to_wait("hasty"), "{:?}", server.writes());
    sleep(Duration::from_millis(200)).await;
    assert!(server.is_told_to_wait("hasty"), "{:?}", server.writes());
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}
