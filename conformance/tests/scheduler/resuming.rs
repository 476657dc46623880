//! Bindings that wait for something to happen, and that end or go on because another one does.

use std::cell::Cell;
use std::time::Duration;

use serde_json::json;
use supercargo_framework::{
    Actions, Bind, ClusterEvent, Conclusion, Cycle, Effect, Enqueue, Extensions, News, NoArgs, Plugin,
    PreBind, Status, Step, Write, Writes,
};
use supercargo_model::{LabelLookup, NodeRef, ObjectKey, Pod};
use supercargo_testkit::{node, pod};

use crate::acting::world_with;
use crate::only;
use crate::world::{InTests, World};

/// How long a pod waits at PreBind.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    static RESUMED: Cell<u32> = const { Cell::new(0) };
}

/// Has pods wait at PreBind: until a pod is bound that their label `awaits` names, or until the one is gone that `outlasts` names. With the
/// label `by-name`, they wait for no other pod.
struct Waits;

impl Plugin for Waits {
    const NAME: &'static str = "Waits";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Waits
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_bind().enqueue()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        ["awaits", "outlasts"].into_iter().any(|label| pod.labels.label(label).is_some())
    }
}

impl Waits {
    fn is_over(cycle: &Cycle<'_>) -> bool {
        let is_there = |name: &str| {
            cycle.cluster().nodes().flat_map(|node| node.pods().iter()).any(|pod| *pod.name == *name)
        };
        let labels = &cycle.pod.labels;
        labels.label("awaits").is_none_or(is_there)
            && labels.label("outlasts").is_none_or(|name| !is_there(name))
    }

    fn wait(cycle: &Cycle<'_>) -> Step {
        let event = ClusterEvent::pod(Actions::ALL);
        let labels = &cycle.pod.labels;
        let awaited = match labels.label("by-name").and(labels.label("awaits")) {
            Some(name) => event.of(ObjectKey { namespace: "default".into(), name: name.into() }),
            None => event.into(),
        };
        let deadline = Some(cycle.context.now.after(PATIENCE));
        Step::Wait { effects: Vec::new(), events: vec![awaited], deadline }
    }
}

impl PreBind for Waits {
    fn pre_bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        if Self::is_over(cycle) { Step::Done(Status::success()) } else { Self::wait(cycle) }
    }

    fn resume(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>, news: &News<'_>) -> Step {
        RESUMED.set(RESUMED.get() + 1);
        match news {
            News::TimedOut => Step::Done(Status::unschedulable("nothing came")),
            _ if Self::is_over(cycle) => Step::Done(Status::success()),
            _ => Self::wait(cycle),
        }
    }
}

impl Enqueue for Waits {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD)]
    }
}

/// Gives up binding after a second.
struct Impatient;

impl Plugin for Impatient {
    const NAME: &'static str = "Impatient";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Impatient
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.bind()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().write(Write::BINDING)
    }
}

impl Bind for Impatient {
    fn bind(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>) -> Step {
        let effects = vec![Effect::Bind { pod: cycle.pod.clone(), node: node.name().clone() }];
        let deadline = Some(cycle.context.now.after(Duration::from_secs(1)));
        Step::Wait { effects, events: Vec::new(), deadline }
    }
}

fn world() -> World {
    world_with(&["Waits"], supercargo_world::Plugins::add::<Waits>)
}

/// A pod that only one node has room for.
fn put_pinned(world: &mut World, name: &str, node_name: &str, labels: &[(&str, &str)]) {
    world.put(node(node_name).cpu("1").label("of", name));
    let pinned = pod(name).cpu("1").node_selector("of", name);
    world.put(labels.iter().fold(pinned, |pod, (label, value)| pod.label(label, value)));
}

#[test]
fn a_pod_that_goes_on_because_another_one_failed_is_bound_once_and_only_when_the_server_says_so() {
    let mut world = world();
    put_pinned(&mut world, "x", "n1", &[("awaits", "signal")]);
    put_pinned(&mut world, "y", "n2", &[("awaits", "signal")]);
    world.put(node("n3"));
    world.run();
    world.remove("Node n1");
    world.set_slow(true);
    world.put(pod("signal").on("n3"));
    let log = world.run();
    assert_eq!(only(&log, "FailedScheduling on x").len(), 1, "{log:?}");
    assert_eq!(only(&log, "Scheduled"), [""; 0], "nobody has asked the server yet");
    world.set_slow(false);
    let ticket = world.take_undone("bind y to n2").expect("its binding is ordered");
    assert_eq!(world.take_undone("bind y to n2"), None, "once");
    let now = world.now();
    world.scheduler.conclude(ticket, &Conclusion::not_done("no"), now);
    let log = world.pass(5);
    assert_eq!(only(&log, "FailedScheduling on y").len(), 1, "{log:?}");
    assert_eq!(world.node_of("y"), Some("n2"), "it is tried again");
    assert_eq!(world.scheduler.gauges().assumed_pods, 0);
}

#[test]
fn a_pod_that_goes_on_because_another_one_timed_out_has_not_timed_out() {
    let mut world = world();
    put_pinned(&mut world, "x", "n1", &[("awaits", "nobody")]);
    put_pinned(&mut world, "y", "n2", &[("outlasts", "x")]);
    world.run();
    world.set_slow(true);
    let log = world.pass(60);
    assert_eq!(only(&log, "FailedScheduling on x").len(), 1, "{log:?}");
    assert_eq!(world.scheduler.gauges().unresolved_bindings, 0, "its order was not given up");
    world.set_slow(false);
    assert_eq!(only(&world.catch_up(), "Scheduled on y").len(), 1);
}

#[test]
fn a_pod_that_is_rejected_after_what_helps_it_has_come_is_tried_again_after_a_backoff() {
    let mut world = world();
    put_pinned(&mut world, "x", "n1", &[("awaits", "signal")]);
    world.run();
    world.pass(30);
    // Nobody keeps for a pod that is on its way what happens meanwhile.
    world.put(node("n2"));
    assert_eq!(only(&world.pass(30), "FailedScheduling on x").len(), 1);
    RESUMED.set(0);
    world.pass(63);
    assert_eq!(RESUMED.get(), 1, "it was given the node again within seconds, and waited there for a minute");
}

#[test]
fn what_happens_to_an_object_resumes_those_who_wait_for_it() {
    let mut world = world();
    world.put(node("n1").cpu("100"));
    for number in 0..100 {
        world.put(pod(&format!("p{number}")).label("awaits", &format!("q{number}")).label("by-name", "yes"));
    }
    world.run();
    RESUMED.set(0);
    for number in [7, 8, 200] {
        world.put(pod(&format!("q{number}")).on("n1"));
    }
    assert_eq!(only(&world.run(), "bind").len(), 2);
    assert_eq!(RESUMED.get(), 2, "and nobody else");
}

#[test]
fn twenty_thousand_pods_fail_with_their_node_one_after_the_other() {
    const PODS: usize = 20_000;
    let mut world = world();
    world.put(node("n1").with(json!({"status": {"allocatable": {"pods": PODS.to_string()}}})));
    world.put(node("n2").unschedulable());
    for number in 0..PODS {
        world.put(pod(&format!("p{number}")).label("awaits", "signal"));
        if number % 5_000 == 0 {
            world.run();
        }
    }
    world.run();
    assert_eq!(world.scheduler.gauges().bindings, PODS);
    world.remove("Node n1");
    RESUMED.set(0);
    world.put(pod("signal").on("n2"));
    assert_eq!(world.scheduler.gauges().bindings, 0);
    assert_eq!(RESUMED.get(), 0, "their node is gone, so nobody asks the plugin");
}

#[test]
fn an_order_that_is_open_is_not_given_up() {
    let mut world = World::of::<Impatient>();
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("1"));
    let ticket = world.order_for("bind a to n1");
    let log = world.pass(100);
    assert!(only(&log, "look up").len() > 1, "{log:?}");
    assert_eq!(only(&log, "bind"), [""; 0], "whoever carries it out may still send it");
    assert_eq!(world.scheduler.gauges().unresolved_bindings, 1);
    let now = world.now();
    // It was sent meanwhile, and got no answer: it may land for a while.
    let conclusion = Conclusion::Unknown { error: "no answer".to_owned(), is_answered: false };
    world.scheduler.conclude(ticket, &conclusion, now);
    assert_eq!(only(&world.pass(4), "FailedScheduling"), [""; 0]);
    assert_eq!(only(&world.pass(2), "FailedScheduling").len(), 1, "after five seconds it is known");
}
