//! What pods say about why they wait, whatever becomes of the orders to write it.

use serde_json::json;
use supercargo_framework::Conclusion;
use supercargo_testkit::{node, pod};

use crate::only;
use crate::world::World;

const STATUS: &str = "status of a: Unschedulable 0/1 nodes are available: 1 Insufficient cpu. no new claims to \
                      deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";

/// A pod that fits on no node.
fn world() -> World {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("2"));
    world
}

/// A pod that is held back, as the claim that it wants is not there.
fn holding() -> World {
    let mut world = World::new();
    world.put(node("n1"));
    let claims = json!([{"name": "gpu", "resourceClaimName": "missing"}]);
    world.put(pod("a").with(json!({"spec": {"resourceClaims": claims}})));
    world
}

fn failures() -> [Conclusion; 4] {
    let error = || "the server is away".to_owned();
    [
        Conclusion::not_done(error()),
        Conclusion::Refused { error: error(), code: Some(403) },
        Conclusion::Unknown { error: error(), is_answered: true },
        Conclusion::Unknown { error: error(), is_answered: false },
    ]
}

/// The pod is tried again, with the same result: as far as it knows, other plugins decide.
fn try_again(world: &mut World) -> Vec<String> {
    world.reconfigure("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n");
    world.run()
}

fn said(world: &World) -> Option<String> {
    let status = &world.find("Pod a")?["status"]["conditions"][0];
    status["message"].as_str().map(str::to_owned)
}

#[test]
fn what_could_not_be_written_is_written_at_the_next_attempt() {
    for failure in failures() {
        let mut world = world();
        world.fail_with("status of a", failure.clone());
        assert_eq!(only(&world.run(), "status"), [format!("{STATUS}: the server is away")], "{failure:?}");
        world.heal();
        world.pass(3);
        assert_eq!(said(&world), None);
        assert_eq!(only(&try_again(&mut world), "status"), [STATUS], "{failure:?}");
        assert!(said(&world).is_some());
        assert_eq!(only(&world.pass(1000), "status"), [""; 0], "once is enough: {failure:?}");
    }
}

#[test]
fn what_could_not_be_written_is_written_again_without_an_attempt() {
    for (world, message) in [(world as fn() -> World, STATUS), (holding, "status of a: Unschedulable")] {
        for failure in failures() {
            let mut world = world();
            world.fail_with("status of a", failure.clone());
            assert_eq!(only(&world.run(), "status").len(), 1, "{failure:?}");
            let failed = world.pass(100);
            let failed = only(&failed, "status");
            assert_eq!(failed.len(), 3, "twice a minute: {failed:?}");
            world.heal();
            let log = world.pass(30);
            let again = only(&log, "status");
            assert!(again.len() == 1 && again[0].starts_with(message), "{failure:?}: {log:?}");
            assert_eq!(only(&log, "FailedScheduling"), [""; 0], "nobody was tried");
            assert!(said(&world).is_some());
            assert_eq!(only(&world.pass(1000), "status"), [""; 0], "once is enough: {failure:?}");
        }
    }
}

#[test]
fn an_attempt_before_the_answer_writes_nothing_twice() {
    let mut world = world();
    world.set_slow(true);
    assert_eq!(only(&world.run(), "status"), [""; 0], "it takes its time");
    world.pass(3);
    assert_eq!(only(&try_again(&mut world), "FailedScheduling").len(), 1);
    world.set_slow(false);
    assert_eq!(only(&world.catch_up(), "status"), [STATUS]);
    assert_eq!(only(&world.pass(1000), "status"), [""; 0]);
}

#[test]
fn a_change_of_the_pod_does_not_lose_what_could_not_be_written() {
    let mut world = holding();
    world.fail("status of a", "the server is away");
    world.run();
    world.heal();
    world.change("Pod a", &json!({"metadata": {"annotations": {"seen": "yes"}}}));
    assert_eq!(only(&world.run(), "status"), [""; 0]);
    assert_eq!(only(&world.pass(30), "status").len(), 1);
}

#[test]
fn a_replica_that_follows_writes_nothing_again() {
    let mut world = holding();
    world.fail("status of a", "the server is away");
    world.run();
    world.heal();
    let now = world.now();
    world.scheduler.set_leading(false, now);
    assert_eq!(only(&world.pass(100), "status"), [""; 0]);
    let now = world.now();
    world.scheduler.set_leading(true, now);
    assert_eq!(only(&world.run(), "status").len(), 1);
    assert_eq!(only(&world.pass(100), "status"), [""; 0]);
}

#[test]
fn a_replica_that_leads_again_says_what_it_means_whatever_was_ordered_before() {
    let mut world = holding();
    world.run();
    let meant = said(&world);
    let default = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    world.set_slow(true);
    world.reconfigure(&format!("{default}profiles: [{{schedulerName: other}}]\n"));
    world.run();
    let now = world.now();
    world.scheduler.set_leading(false, now);
    world.reconfigure(default);
    world.run();
    world.scheduler.set_leading(true, now);
    // Only now is carried out what was ordered before.
    world.set_slow(false);
    assert_eq!(only(&world.catch_up(), "status").len(), 2);
    assert_eq!(said(&world), meant);
}
