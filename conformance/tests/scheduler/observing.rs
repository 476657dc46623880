//! What the scheduler says it has done.

use std::time::Duration;

use serde_json::json;
use supercargo_engine::{Observation, QueuePart};
use supercargo_framework::Point;
use supercargo_testkit::{node, pod};

use crate::world::World;

/// Why pods came into which part of the queue, and how many.
fn queued(observations: &[Observation]) -> Vec<(QueuePart, String, u64)> {
    let words = |observation: &Observation| match observation {
        Observation::Queued { queue, event, pods } => Some((*queue, event.label().into_owned(), *pods)),
        _ => None,
    };
    observations.iter().filter_map(words).collect()
}

fn line(queue: QueuePart, event: &str) -> (QueuePart, String, u64) {
    (queue, event.to_owned(), 1)
}

#[test]
fn ways_through_the_queue_have_upstreams_names() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("there").cpu("1").on("n1"));
    world.put(pod("a").cpu("1"));
    world.run();
    let seen = world.scheduler.take_observations();
    assert_eq!(
        queued(&seen),
        [
            line(QueuePart::Active, "UnschedulablePodAdd"),
            line(QueuePart::Unschedulable, "ScheduleAttemptFailure")
        ]
    );
    assert!(seen.contains(&Observation::PreemptionTried));
    assert_eq!(world.scheduler.take_observations(), [], "they are taken once");

    world.remove("Pod there");
    assert_eq!(queued(&world.scheduler.take_observations()), [line(QueuePart::Backoff, "AssignedPodDelete")]);
    world.pass(5);
    let seen = world.scheduler.take_observations();
    assert_eq!(queued(&seen), [line(QueuePart::Active, "PopFromBackoffQ")]);
    let bound = seen.iter().find(|observation| matches!(observation, Observation::Bound { .. }));
    let Some(Observation::Bound { attempts: 2, was_flushed: false, .. }) = bound else { panic!("{bound:?}") };

    world.put(pod("gated").with(json!({"spec": {"schedulingGates": [{"name": "wait"}]}})));
    assert_eq!(
        queued(&world.scheduler.take_observations()),
        [line(QueuePart::Unschedulable, "UnschedulablePodAdd")]
    );
    world.change("Pod gated", &json!({"spec": {"schedulingGates": []}}));
    let event = "UnschedulablePodUpdatePodSchedulingGatesEliminated";
    assert_eq!(queued(&world.scheduler.take_observations()), [line(QueuePart::Active, event)]);
}

#[test]
fn many_that_come_for_one_reason_are_one_observation() {
    let mut world = World::new();
    for number in 0..100 {
        world.put(pod(&format!("p{number}")));
    }
    let seen = world.scheduler.take_observations();
    assert_eq!(queued(&seen), [(QueuePart::Active, "UnschedulablePodAdd".to_owned(), 100)]);
}

#[test]
fn a_binding_takes_from_its_order_to_its_conclusion() {
    let mut world = World::new();
    world.set_slow(true);
    world.put(node("n1"));
    world.put(node("n2").unschedulable());
    world.put(pod("a"));
    world.pass(3);
    world.set_slow(false);
    world.catch_up();
    let seen = world.scheduler.take_observations();
    let took = Duration::from_secs(3);
    let points: Vec<(Point, &str, Duration)> = seen
        .iter()
        .filter_map(|seen| match seen {
            Observation::PointRan { point, pod, status, took } if *pod.name == *"a" => {
                Some((*point, *status, *took))
            }
            _ => None,
        })
        .collect();
    let at_once = |point| (point, "Success", Duration::ZERO);
    assert_eq!(
        points,
        [
            at_once(Point::Reserve),
            at_once(Point::Permit),
            at_once(Point::PreBind),
            (Point::Bind, "Success", took),
            at_once(Point::PostBind),
        ]
    );
    let bound = seen.iter().find(|seen| matches!(seen, Observation::Bound { .. }));
    let Some(Observation::Bound {
        pod,
        evaluated_nodes: 2,
        feasible_nodes: 1,
        attempts: 1,
        since_queued,
        since_attempt,
        was_flushed: false,
        ..
    }) = bound
    else {
        panic!("{seen:?}")
    };
    assert_eq!((&*pod.key(), *since_queued, *since_attempt), ("default/a", took, took));
}

#[test]
fn a_binding_that_fails_is_an_attempt_that_failed() {
    let mut world = World::new();
    world.fail("bind", "no");
    world.put(node("n1"));
    world.put(pod("a"));
    world.run();
    let seen = world.scheduler.take_observations();
    let failure = seen.iter().find(|seen| matches!(seen, Observation::NotBound { .. }));
    let Some(Observation::NotBound { pod, is_rejected: false, message, .. }) = failure else {
        panic!("{seen:?}")
    };
    assert_eq!(&*pod.name, "a");
    assert!(message.contains("no"), "{message}");
    assert!(!seen.iter().any(|seen| matches!(seen, Observation::Bound { .. })), "{seen:?}");
}

#[test]
fn evictions_are_seen_from_the_first_victim_to_the_last() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("x").cpu("1").on("n1"));
    world.put(pod("y").cpu("1").on("n1"));
    world.put(pod("a").cpu("2").with(json!({"spec": {"priority": 10}})));
    world.run();
    let seen = world.scheduler.take_observations();
    assert!(seen.contains(&Observation::VictimsChosen(2)), "{seen:?}");
    assert!(seen.contains(&Observation::Evicted { is_success: true, took: Duration::ZERO }), "{seen:?}");
}

#[test]
fn how_things_stand() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("there").cpu("1").on("n1"));
    world.put(pod("a").cpu("1"));
    world.put(pod("gated").with(json!({"spec": {"schedulingGates": [{"name": "wait"}]}})));
    world.run();
    let gauges = world.scheduler.gauges();
    assert_eq!((gauges.nodes, gauges.pods, gauges.assumed_pods, gauges.in_flight), (1, 1, 0, 0));
    assert_eq!((gauges.queue.unschedulable, gauges.queue.gated), (1, 1));
    let unschedulable: Vec<_> =
        gauges.unschedulable.iter().map(|((plugin, _), pods)| (*plugin, *pods)).collect();
    assert_eq!(unschedulable, [("NodeResourcesFit", 1), ("SchedulingGates", 1)]);
}
