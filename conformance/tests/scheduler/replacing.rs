//! Another configuration while pods wait and are on their way.

use serde_json::json;
use supercargo_engine::{ExtenderSettings, Ticket};
use supercargo_framework::{AskFailure, Conclusion, Effect};
use supercargo_model::Timestamp;
use supercargo_testkit::{node, pod};

use crate::world::World;
use crate::{only, put_pod_with_claim};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
const PACKING: &str = "
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
";

fn config(profiles: &str) -> String {
    format!("{HEAD}profiles: {profiles}\n")
}

fn of(pod: impl Into<serde_json::Value>, scheduler: &str) -> serde_json::Value {
    let mut pod = pod.into();
    pod["spec"]["schedulerName"] = json!(scheduler);
    pod
}

#[test]
fn the_next_pod_is_decided_by_the_new_plugins() {
    let mut world = World::new();
    world.put(node("n1").cpu("8"));
    world.put(node("n2").cpu("8"));
    world.put(pod("there").cpu("4").on("n1"));
    world.put(pod("a").cpu("1"));
    world.run();
    assert_eq!(world.node_of("a"), Some("n2"));
    world.reconfigure(&config(PACKING));
    world.put(pod("b").cpu("1"));
    world.run();
    assert_eq!(world.node_of("b"), Some("n1"));
    world.reconfigure(HEAD);
    world.put(pod("c").cpu("1"));
    world.run();
    assert_eq!(world.node_of("c"), Some("n2"));
}

#[test]
fn what_waited_is_tried_again_and_then_waits_as_before() {
    let mut world = World::new();
    world.put(node("n1").with(json!({"spec": {"unschedulable": true}})));
    world.put(pod("a"));
    assert_eq!(only(&world.run(), "FailedScheduling").len(), 1);
    world.pass(20);
    world.reconfigure(&config(PACKING));
    assert_eq!(only(&world.run(), "FailedScheduling").len(), 1, "it is tried by the new plugins");
    // Without the plugin that rejected it, it fits.
    let lenient = "[{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: NodeUnschedulable}, {name: TaintToleration}]}}}]";
    world.reconfigure(&config(lenient));
    world.pass(20);
    assert_eq!(world.node_of("a"), Some("n1"));
}

#[test]
fn pods_that_wait_a_while_go_on_waiting() {
    let mut world = World::new();
    world.fail("bind", "no");
    world.put(node("n1"));
    world.put(pod("a"));
    world.run();
    world.heal();
    world.reconfigure(&config(PACKING));
    assert_eq!(only(&world.run(), "bind"), [""; 0], "a new configuration does not shorten a backoff");
    assert_eq!(only(&world.pass(3), "bind"), ["bind a to n1"]);
}

#[test]
fn pods_of_a_profile_that_went_are_held_with_a_reason_until_it_comes_back() {
    let both = config("[{schedulerName: default-scheduler}, {schedulerName: other}]");
    let mut world = World::with_config(&both);
    world.put(node("n1").cpu("1"));
    world.put(pod("there").cpu("1").on("n1"));
    world.put(of(pod("a").cpu("1"), "other"));
    world.run();
    world.reconfigure(HEAD);
    let said = "no profile is responsible for schedulerName \"other\" any more";
    assert_eq!(only(&world.run(), "FailedScheduling"), [format!("FailedScheduling on a: {said}")]);
    let condition = &world.object("Pod a")["status"]["conditions"][0];
    assert_eq!((&condition["reason"], &condition["message"]), (&json!("Unschedulable"), &json!(said)));

    world.remove("Pod there");
    world.change("Pod a", &json!({"metadata": {"labels": {"changed": "yes"}}}));
    assert_eq!(world.pass(1000), [""; 0], "it is not tried, and nothing more is said");
    assert_eq!(world.scheduler.queue_lengths().gated, 1);
    world.reconfigure(&config(PACKING));
    assert_eq!(world.pass(10), [""; 0], "nor said again");
    world.reconfigure(&both);
    world.pass(10);
    assert_eq!(world.node_of("a"), Some("n1"));
}

#[test]
fn a_held_pod_can_go_and_can_be_bound_by_others() {
    let both = config("[{schedulerName: default-scheduler}, {schedulerName: other}]");
    let mut world = World::with_config(&both);
    world.put(of(pod("a"), "other"));
    world.put(of(pod("b"), "other"));
    world.run();
    world.reconfigure(HEAD);
    world.put(node("n1"));
    world.remove("Pod a");
    world.change("Pod b", &json!({"spec": {"nodeName": "n1"}}));
    world.run();
    assert_eq!(world.scheduler.queue_lengths().gated, 0);
    world.reconfigure(&both);
    assert_eq!(only(&world.pass(10), "bind"), [""; 0]);
}

#[test]
fn pods_of_a_new_profile_are_picked_up() {
    let mut world = World::new();
    world.put(node("n1"));
    world.put(of(pod("a"), "other"));
    assert_eq!(world.run(), [""; 0]);
    world.reconfigure(&config("[{schedulerName: other}]"));
    assert_eq!(only(&world.run(), "bind"), ["bind a to n1"]);
}

#[test]
fn bindings_under_way_are_finished_even_if_their_profile_went() {
    let both = config("[{schedulerName: default-scheduler}, {schedulerName: other}]");
    let mut world = World::with_config(&both);
    world.set_slow(true);
    world.put(node("n1").cpu("1"));
    world.put(of(pod("a").cpu("1"), "other"));
    world.run();
    world.reconfigure(HEAD);
    world.put(pod("b").cpu("1"));
    world.run();
    world.set_slow(false);
    world.catch_up();
    assert_eq!(world.node_of("a"), Some("n1"));
    assert_eq!(world.node_of("b"), None, "the room was taken all the while");
}

#[test]
fn a_binding_that_fails_after_its_profile_went_leaves_a_held_pod() {
    let both = config("[{schedulerName: default-scheduler}, {schedulerName: other}]");
    let mut world = World::with_config(&both);
    world.set_slow(true);
    world.fail("bind a", "no");
    world.put(node("n1").cpu("1"));
    world.put(of(pod("a").cpu("1"), "other"));
    world.run();
    world.reconfigure(HEAD);
    world.put(pod("b").cpu("1"));
    world.run();
    world.set_slow(false);
    world.catch_up();
    world.pass(20);
    assert_eq!((world.node_of("a"), world.node_of("b")), (None, Some("n1")), "its room was given back");
    let message = &world.object("Pod a")["status"]["conditions"][0]["message"];
    assert_eq!(message, "no profile is responsible for schedulerName \"other\" any more");
    world.heal();
    world.put(node("n2").cpu("1"));
    world.reconfigure(&both);
    world.pass(20);
    assert_eq!(world.node_of("a"), Some("n2"));
}

#[test]
fn volumes_under_way_are_bound_by_the_plugins_that_began() {
    let mut world = World::new();
    world.put(node("n1"));
    put_pod_with_claim(&mut world);
    world.run();
    world.reconfigure(&config(PACKING));
    assert_eq!(world.pass(599), [""; 0]);
    // As if nothing had happened, it ends when its time is over, and begins anew.
    let log = world.pass(1);
    let said = "FailedScheduling on a: running PreBind plugin \"VolumeBinding\": binding volumes: context deadline exceeded";
    assert_eq!(only(&log, "FailedScheduling"), [said]);
}

#[test]
fn a_preemptor_keeps_its_place_in_the_queue_while_its_victims_go() {
    let mut world = World::new();
    world.set_slow(true);
    world.put(node("n1").cpu("1"));
    world.put(pod("x").cpu("1").on("n1"));
    world.put(pod("a").cpu("1").with(json!({"spec": {"priority": 10}})));
    world.run();
    world.reconfigure(&config(PACKING));
    world.run();
    world.set_slow(false);
    world.catch_up();
    world.remove("Pod x");
    world.pass(20);
    assert_eq!(world.node_of("a"), Some("n1"));
}

const NOW: Timestamp = Timestamp::from_nanoseconds(1_000_000 * 1_000_000_000);

/// A world whose scheduler has asked an extender about pod `a`, and the number of the question.
fn asking(extender: ExtenderSettings) -> (World, Ticket) {
    let mut world = World::new();
    world.scheduler = world.scheduler.with_extenders(vec![extender]);
    world.put(node("n1"));
    world.put(pod("a"));
    world.scheduler.schedule_next(NOW);
    let orders = world.scheduler.take_orders();
    let question = orders.iter().find(|order| matches!(order.effect, Effect::Ask { .. }));
    (world, question.and_then(|order| order.ticket).expect("the extender is asked"))
}

#[test]
fn a_pod_that_extenders_are_asked_about_is_tried_anew() {
    let (mut world, question) = asking(ExtenderSettings { filters: true, ..ExtenderSettings::default() });
    world.put(pod("b"));
    assert!(world.scheduler.schedule_next(NOW).is_none(), "others wait meanwhile");
    world.reconfigure(HEAD);
    assert_eq!(only(&world.run(), "bind"), ["bind a to n1", "bind b to n1"]);
    // The answer that comes after all means nothing.
    assert!(
        world.scheduler.answer(question, Err(AskFailure::Answered("too late".to_owned())), NOW).is_none()
    );
    assert_eq!(world.pass(100), [""; 0]);
}

#[test]
fn an_extender_that_went_may_finish_its_binding() {
    let (mut world, question) = asking(ExtenderSettings { binds: true, ..ExtenderSettings::default() });
    world.reconfigure(HEAD);
    assert_eq!(world.run(), [""; 0]);
    world.scheduler.conclude(question, &Conclusion::Done, NOW);
    assert_eq!(world.pass(100), ["Scheduled on a: Successfully assigned default/a to n1"]);
}

#[test]
fn a_binding_that_an_extender_which_went_fails_to_make_is_made_by_plugins() {
    let binds = ExtenderSettings { binds: true, is_ignorable: true, ..ExtenderSettings::default() };
    let (mut world, question) = asking(binds);
    world.reconfigure(HEAD);
    world.scheduler.conclude(question, &Conclusion::Gone { error: "it is gone".to_owned() }, NOW);
    assert_eq!(only(&world.pass(10), "bind"), ["bind a to n1"]);
}
