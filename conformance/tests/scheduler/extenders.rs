//! Extenders, asked in the middle of an attempt.

use std::collections::BTreeMap;

use supercargo_engine::ExtenderSettings;
use supercargo_framework::{AskFailure, ExtenderAnswer, ExtenderQuestion};
use supercargo_testkit::{node, pod};

use crate::only;
use crate::world::{InTests as _, World};

fn everything() -> ExtenderSettings {
    ExtenderSettings {
        filters: true,
        prioritizes: true,
        preempts: true,
        weight: 1,
        ..ExtenderSettings::default()
    }
}

/// Lets all nodes through but n1, likes n3 best, agrees to all victims, and binds.
fn obliging(question: &ExtenderQuestion) -> Result<ExtenderAnswer, String> {
    Ok(match question {
        ExtenderQuestion::Filter { nodes, .. } => ExtenderAnswer::Filtered {
            kept: nodes.iter().filter(|node| *node.name != *"n1").map(|node| (*node.name).into()).collect(),
            failed: BTreeMap::from([("n1".into(), "not this one".to_owned())]),
            unresolvable: BTreeMap::new(),
        },
        ExtenderQuestion::Prioritize { .. } => ExtenderAnswer::Prioritized(vec![("n3".into(), 10)]),
        ExtenderQuestion::Preempt { victims, .. } => {
            let uids = |pods: &[std::sync::Arc<supercargo_model::Pod>]| -> Vec<Box<str>> {
                pods.iter().map(|pod| (*pod.uid).into()).collect()
            };
            let left = victims.iter().filter(|(node, _)| ***node != *"n2");
            ExtenderAnswer::Preempted(
                left.map(|(node, victims)| ((**node).into(), (uids(&victims.pods), 0))).collect(),
            )
        }
        ExtenderQuestion::Bind { .. } => ExtenderAnswer::Bound,
    })
}

fn world(settings: ExtenderSettings) -> World {
    let mut world = World::new().with_extenders(vec![settings], obliging);
    for name in ["n1", "n2", "n3"] {
        world.put(node(name).cpu("2"));
    }
    world
}

#[test]
fn they_filter_and_score_after_the_plugins() {
    let mut world = world(everything());
    world.put(pod("a").cpu("1"));
    assert_eq!(
        world.run(),
        [
            "ask extender 0: filter n1 n2 n3",
            "ask extender 0: prioritize n2 n3",
            "bind a to n3",
            "Scheduled on a: Successfully assigned default/a to n3",
        ]
    );
}

#[test]
fn a_single_node_is_not_scored() {
    let mut world = world(everything());
    world.remove("Node n2");
    world.put(pod("a").cpu("1"));
    assert_eq!(only(&world.run(), "ask"), ["ask extender 0: filter n1 n3"]);
}

#[test]
fn one_that_fails_ends_the_attempt_unless_it_can_be_done_without() {
    let mut world = world(everything());
    world.fail("ask", "it is away");
    world.put(pod("a").cpu("1"));
    let log = world.run();
    assert_eq!(only(&log, "FailedScheduling"), ["FailedScheduling on a: it is away"]);
    world.heal();
    assert_eq!(only(&world.pass(3), "bind"), ["bind a to n3"]);

    let mut world = self::world(ExtenderSettings { is_ignorable: true, ..everything() });
    world.fail("ask", "it is away");
    world.put(pod("a").cpu("1"));
    assert_eq!(only(&world.run(), "bind").len(), 1);
}

#[test]
fn its_reasons_stand_beside_those_of_the_plugins() {
    let mut world = world(everything());
    world.remove("Node n2");
    world.remove("Node n3");
    world.put(pod("a").cpu("1"));
    let log = world.run();
    assert!(
        only(&log, "FailedScheduling")[0].contains("0/1 nodes are available: 1 not this one."),
        "{log:?}"
    );
    // Nobody knows what would help, so everything may.
    world.put(node("n4").cpu("2"));
    assert_eq!(only(&world.run(), "bind"), ["bind a to n4"]);
}

#[test]
fn they_have_a_say_in_who_is_evicted() {
    let mut world = world(everything());
    for name in ["n2", "n3"] {
        world.put(pod(&format!("low-{name}")).cpu("2").on(name).started(1));
    }
    world.put(pod("high").cpu("2").priority(10));
    let log = world.run();
    assert_eq!(only(&log, "ask extender 0: preempt"), ["ask extender 0: preempt n2: low-n2, n3: low-n3"]);
    assert_eq!(only(&log, "evict"), ["evict low-n3 for high"]);
}

#[test]
fn one_that_binds_does_it_instead_of_the_plugins() {
    let mut world = world(ExtenderSettings { binds: true, ..ExtenderSettings::default() });
    world.put(pod("a").cpu("1"));
    let log = world.run();
    assert_eq!(only(&log, "bind"), [""; 0]);
    assert_eq!(only(&log, "ask").len(), 1);
    assert_eq!(only(&log, "Scheduled").len(), 1);

    let mut world =
        self::world(ExtenderSettings { binds: true, is_ignorable: true, ..ExtenderSettings::default() });
    world.fail("ask", "it is away");
    world.put(pod("a").cpu("1"));
    assert_eq!(only(&world.run(), "bind").len(), 1, "the plugins do it then");
}

#[test]
fn only_pods_that_name_its_resources_are_its_business() {
    let settings = ExtenderSettings {
        managed_resources: ["example.com/gpu".into()].into_iter().collect(),
        ..everything()
    };
    let mut world = world(settings);
    world.put(pod("a").cpu("1"));
    assert_eq!(only(&world.run(), "ask"), [""; 0]);
    world.put(node("n4").cpu("2").allocatable("example.com/gpu", "1"));
    world.put(pod("b").request("example.com/gpu", "1"));
    assert_eq!(only(&world.run(), "ask"), ["ask extender 0: filter n4"]);
}

#[test]
fn a_pod_that_they_are_asked_about_is_tried_again_when_the_lease_comes_back() {
    let mut world = world(everything());
    world.put(pod("a").cpu("1"));
    let ticket = world.order_for("ask extender 0: filter n1 n2 n3");
    let now = world.now();
    world.scheduler.set_leading(false, now);
    world.scheduler.set_leading(true, now);
    let late = Err(AskFailure::Answered("too late".to_owned()));
    assert!(world.scheduler.answer(ticket, late, now).is_none());
    world.run();
    assert_eq!(world.node_of("a"), Some("n3"));
}

#[test]
fn what_was_decided_before_the_cluster_changed_is_looked_at_once_more() {
    for is_filled in [false, true] {
        let mut world = world(everything());
        world.remove("Node n2");
        world.put(pod("a").cpu("2"));
        let ticket = world.order_for("ask extender 0: filter n1 n3");
        // Another scheduler binds a pod while the extender thinks.
        world.put(pod("b").cpu("1").on(if is_filled { "n3" } else { "n1" }));
        let now = world.now();
        let kept = vec!["n3".into()];
        let answer =
            ExtenderAnswer::Filtered { kept, failed: BTreeMap::new(), unresolvable: BTreeMap::new() };
        world.scheduler.answer(ticket, Ok(answer), now);
        let log = world.run();
        if is_filled {
            let message = "node \"n3\" has changed while extenders were asked: Insufficient cpu";
            assert_eq!(log[0], format!("FailedScheduling on a: {message}"));
            assert_eq!(world.over_committed(), [""; 0]);
        } else {
            assert_eq!(only(&log, "bind"), ["bind a to n3"]);
        }
    }
}
