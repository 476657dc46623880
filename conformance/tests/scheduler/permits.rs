//! Pods that wait for each other before they go to their nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use supercargo_framework::{
    Acts, Cycle, Effect, Extensions, Memory, NoArgs, Nomination, Permit, PermitDecision, Plugin, Reserve,
    Status,
};
use supercargo_model::{LabelLookup, NodeRef};
use supercargo_testkit::{node, pod};
use supercargo_world::Plugins;

use crate::only;
use crate::world::World;

/// Lets pods with the label `gang` go when two of them have a node.
pub(crate) struct Pairs;

#[derive(Clone, Default, Deserialize, Serialize)]
struct Waiting(BTreeSet<Arc<str>>);

impl Memory for Waiting {
    const NAME: &'static str = "Pairs";
}

impl Plugin for Pairs {
    const NAME: &'static str = "Pairs";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Pairs
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.reserve().permit().remembers::<Waiting>()
    }

    fn concerns(&self, pod: &supercargo_model::Pod) -> bool {
        pod.labels.label("gang").is_some()
    }
}

impl Reserve for Pairs {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Waiting>().0.insert(cycle.pod.uid.clone());
        // Whoever is to be tried next: the other half.
        acts.activate(&"late".into());
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Waiting>().0.remove(&cycle.pod.uid);
    }
}

impl Permit for Pairs {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        if cycle.pod.labels.label("gang") == Some("refused") {
            return PermitDecision::Reject(Status::unschedulable("not with us"));
        }
        let waiting = acts.memory::<Waiting>().0.clone();
        if waiting.len() < 2 {
            return PermitDecision::wait_until(cycle.context.now.after(Duration::from_secs(30)));
        }
        for other in waiting.iter().filter(|uid| **uid != cycle.pod.uid) {
            acts.allow(other);
        }
        PermitDecision::Allow
    }
}

pub(crate) fn world() -> World {
    let mut world = World::with_plugins(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Pairs}]}}
",
        Plugins::add::<Pairs>,
    );
    world.put(node("n1").cpu("2"));
    world
}

#[test]
fn pods_wait_until_they_are_allowed_and_keep_their_room_meanwhile() {
    let mut world = world();
    world.put(pod("a").cpu("1").label("gang", "x"));
    assert_eq!(world.run(), ["status of a: nominated to n1"]);
    world.put(pod("big").cpu("2"));
    assert_eq!(only(&world.run(), "bind"), [""; 0], "there is room for one more only");
    world.put(pod("b").cpu("1").label("gang", "x"));
    assert_eq!(only(&world.run(), "bind"), ["bind a to n1", "bind b to n1"]);
}

#[test]
fn a_pod_that_waits_too_long_gives_its_room_back() {
    let mut world = world();
    world.put(pod("a").cpu("2").label("gang", "x"));
    world.run();
    world.put(pod("other").cpu("2"));
    assert_eq!(only(&world.pass(29), "bind"), [""; 0]);
    let log = world.pass(2);
    let message = "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Pairs.";
    assert_eq!(only(&log, "FailedScheduling on a")[0], format!("FailedScheduling on a: {message}"));
    assert_eq!(only(&log, "bind"), ["bind other to n1"]);
}

#[test]
fn a_nomination_is_taken_back_with_the_node_even_before_it_is_heard_of() {
    for is_heard_of in [false, true] {
        let mut world = world();
        world.put(pod("a").cpu("2").label("gang", "x"));
        let nominations = |world: &mut World, now| -> Vec<Nomination> {
            world.scheduler.advance(now);
            world.scheduler.schedule_next(now);
            let orders = world.scheduler.take_orders().into_iter();
            let nomination = |effect| match effect {
                Effect::UpdateStatus { nomination, .. } => Some(nomination),
                _ => None,
            };
            orders.filter_map(|order| nomination(order.effect)).collect()
        };
        let now = world.now();
        assert_eq!(nominations(&mut world, now), [Nomination::Node("n1".into())]);
        if is_heard_of {
            world.change("Pod a", &json!({ "status": { "nominatedNodeName": "n1" } }));
        }
        let later = now.after(Duration::from_secs(31));
        assert_eq!(nominations(&mut world, later), [Nomination::Clear], "heard of: {is_heard_of}");
    }
}

#[test]
fn a_pod_that_is_refused_says_so() {
    let mut world = world();
    world.put(pod("a").cpu("1").label("gang", "refused"));
    let log = world.run();
    let message = "0/1 nodes are available: 1 not with us.";
    // The plugin does not say what it waits for, so the pod's new condition is reason enough to try it once more.
    assert_eq!(only(&log, "FailedScheduling"), [&*format!("FailedScheduling on a: {message}"); 2]);
    assert_eq!(world.scheduler.cluster().nodes().map(|node| node.pods().len()).sum::<usize>(), 0);
}

#[test]
fn a_pod_that_goes_while_it_waits_leaves_nothing_behind() {
    let mut world = world();
    world.put(pod("a").cpu("2").label("gang", "x"));
    world.run();
    world.remove("Pod a");
    world.put(pod("b").cpu("2"));
    assert_eq!(only(&world.run(), "bind"), ["bind b to n1"]);
    world.put(node("n2").cpu("2"));
    world.put(pod("c").cpu("1").label("gang", "x"));
    assert_eq!(only(&world.run(), "bind"), [""; 0], "the one that went does not count");
}

#[test]
fn a_plugin_can_have_other_pods_tried() {
    let mut world = world();
    world.put(pod("late").cpu("2").node_selector("disk", "ssd"));
    world.run();
    world.put(pod("a").cpu("1").label("gang", "x"));
    world.put(pod("b").cpu("1").label("gang", "x"));
    let log = world.run();
    assert!(
        !only(&log, "FailedScheduling on late").is_empty(),
        "it was tried, though nothing helps it: {log:?}"
    );
}
