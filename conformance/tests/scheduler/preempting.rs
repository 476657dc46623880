//! Pods whose victims are being evicted, while their victims go on their own, late answers come in, and the lease is lost.

use serde_json::json;
use supercargo_framework::Conclusion;
use supercargo_testkit::{node, pod};

use crate::world::{InTests as _, World};
use crate::{only, permits};

/// So long a pod waits at most that is tried again after its backoff.
const BACKOFF_SECONDS: u64 = 12;

#[test]
fn two_pods_that_share_a_victim_are_both_tried_when_it_is_gone() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("v").cpu("2").on("n1").started(1));
    world.set_slow(true);
    world.put(pod("p1").cpu("1").priority(10));
    world.put(pod("p2").cpu("1").priority(10));
    let log = world.run();
    assert_eq!(only(&log, "FailedScheduling").len(), 2, "{log:?}");
    // Somebody else deletes it; both hear of that before their evictions are answered.
    world.remove("Pod v");
    world.run();
    world.set_slow(false);
    world.catch_up();
    world.pass(BACKOFF_SECONDS);
    assert_eq!((world.node_of("p1"), world.node_of("p2")), (Some("n1"), Some("n1")));
}

#[test]
fn a_last_victim_that_leaves_before_its_turn_has_left() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    for name in ["a", "b"] {
        world.put(pod(name).cpu("1").on("n1").started(1));
    }
    world.set_slow(true);
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    for name in ["a", "b"] {
        world.remove(&format!("Pod {name}"));
        world.run();
    }
    world.set_slow(false);
    let log = world.catch_up();
    assert_eq!(only(&log, "evict").len(), 1, "the last one is gone already: {log:?}");
    world.pass(BACKOFF_SECONDS);
    assert_eq!(world.node_of("high"), Some("n1"));
}

#[test]
fn a_last_victim_that_waits_at_permit_leaves_at_once() {
    let mut world = permits::world();
    world.put(pod("bound").cpu("1").on("n1").started(1).priority(5));
    world.put(pod("waits").cpu("1").label("gang", "x").priority(1));
    world.run();
    world.set_slow(true);
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    world.remove("Pod bound");
    world.run();
    world.set_slow(false);
    world.catch_up();
    world.pass(BACKOFF_SECONDS);
    assert_eq!(world.node_of("high"), Some("n1"));
}

#[test]
fn a_pod_whose_victims_are_not_evicted_any_more_is_tried_by_the_next_leader() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    for name in ["a", "b"] {
        world.put(pod(name).cpu("1").on("n1").started(1));
    }
    world.set_slow(true);
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    world.put(node("n2").cpu("2"));
    assert_eq!(
        only(&world.run(), "FailedScheduling"),
        [""; 0],
        "it waits for its victims, though it fits elsewhere"
    );
    let now = world.now();
    world.scheduler.set_leading(false, now);
    world.set_slow(false);
    world.catch_up();
    world.scheduler.set_leading(true, now);
    assert_eq!(only(&world.pass(BACKOFF_SECONDS), "bind"), ["bind high to n2"]);
}

#[test]
fn a_pod_that_goes_before_the_server_has_heard_of_its_nomination_leaves_its_room_to_others() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("v").cpu("1").on("n1").started(1));
    world.set_slow(true);
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    world.put(pod("other").cpu("1"));
    assert_eq!(only(&world.run(), "FailedScheduling on other").len(), 1, "the room is meant for another one");
    world.set_slow(false);
    world.remove("Pod high");
    assert_eq!(only(&world.pass(BACKOFF_SECONDS), "bind"), ["bind other to n1"]);
}

/// A cluster in which `high` is nominated to n1, whose victim takes its time, and `other` waits because of that alone.
fn nominated() -> World {
    let mut world = World::new();
    world.put(node("n1").cpu("2").allocatable("example.com/x", "1"));
    world.put(pod("v").cpu("1").on("n1").started(1));
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    assert_eq!(world.object("Pod high")["status"]["nominatedNodeName"], "n1");
    world.put(pod("other").cpu("1").request("example.com/x", "1"));
    assert_eq!(only(&world.run(), "FailedScheduling on other").len(), 1, "the room is meant for another one");
    world
}

#[test]
fn a_nominated_pod_that_is_on_its_way_out_leaves_its_room_to_others() {
    let mut world = nominated();
    // Whoever put a finalizer there takes their time.
    world.change("Pod high", &json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}));
    assert_eq!(only(&world.pass(BACKOFF_SECONDS), "bind"), ["bind other to n1"]);
    assert_eq!(world.scheduler.cluster().nominated().count(), 0);
    world.remove("Pod v");
    world.change("Pod high", &json!({"metadata": {"labels": {"a": "b"}}}));
    world.run();
    assert_eq!(world.scheduler.cluster().nominated().count(), 0, "it is told of again, and never tried");
}

#[test]
fn a_nominated_pod_that_gets_another_node_leaves_its_room_to_others() {
    for is_bound_by_another in [false, true] {
        let mut world = nominated();
        world.put(node("n2").cpu(if is_bound_by_another { "0" } else { "2" }));
        if is_bound_by_another {
            world.bind("high", "n2");
        }
        world.pass(BACKOFF_SECONDS);
        let nodes = (world.node_of("high"), world.node_of("other"));
        assert_eq!(nodes, (Some("n2"), Some("n1")), "bound by another: {is_bound_by_another}");
    }
}

#[test]
fn a_nomination_that_ends_before_the_server_has_heard_of_it_leaves_the_room_to_others() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("v").cpu("1").on("n1").started(1));
    world.set_slow(true);
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    world.put(pod("other").cpu("1"));
    assert_eq!(only(&world.run(), "FailedScheduling on other").len(), 1, "the room is meant for another one");
    // The victim may not be evicted, and is one no more when `high` is tried again.
    world.put(pod("v").cpu("1").on("n1").started(1).priority(20));
    let (ticket, now) = (world.take_undone("evict v for high").expect("it is ordered"), world.now());
    world.scheduler.conclude(ticket, &Conclusion::not_done("forbidden"), now);
    world.pass(BACKOFF_SECONDS);
    assert!(world.take_undone("bind other to n1").is_some(), "nobody waits for room that is kept for nobody");
}

#[test]
fn a_last_victim_that_has_lost_its_place_meanwhile_is_not_evicted() {
    for is_bound_elsewhere in [false, true] {
        let mut world = permits::world();
        world.put(pod("bound").cpu("1").on("n1").started(1).priority(5));
        world.put(pod("waits").cpu("1").label("gang", "x").priority(1));
        world.run();
        world.set_slow(true);
        world.put(pod("high").cpu("2").priority(10));
        world.run();
        // It has waited at Permit for too long, and another scheduler binds it.
        world.pass(31);
        if is_bound_elsewhere {
            world.put(node("n2").cpu("1"));
            world.bind("waits", "n2");
        }
        world.set_slow(false);
        let log = world.catch_up();
        assert_eq!(only(&log, "evict"), ["evict bound for high"], "bound elsewhere: {is_bound_elsewhere}");
        world.remove("Pod bound");
        world.pass(BACKOFF_SECONDS);
        assert_eq!(world.node_of("high"), Some("n1"));
    }
}
