//! What a world does, and what it says to a test that is wrong.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::time::Duration;

use serde_json::json;
use supercargo_framework::Conclusion;
use supercargo_testkit::{node, pod};
use supercargo_world::{World, only};

/// A world with a node that has room for four pods of one core.
fn world() -> World {
    let mut world = World::new();
    world.put(node("n1").cpu("4"));
    world
}

#[test]
fn pods_of_one_name_live_in_two_namespaces() {
    let mut world = world();
    world.put(pod("web").cpu("1"));
    world.put(pod("web").cpu("1").namespace("team-a"));
    let log = world.run();
    assert_eq!(only(&log, "bind"), ["bind web to n1", "bind team-a/web to n1"]);
    assert_eq!(only(&log, "Scheduled on team-a/web").len(), 1);
    assert_eq!((world.node_of("web"), world.node_of("team-a/web")), (Some("n1"), Some("n1")));
    assert_eq!(world.object("Pod default/web")["metadata"]["uid"], "web");
    assert_eq!(world.object("Pod team-a/web")["metadata"]["uid"], "team-a/web");

    world.remove("Pod web");
    assert_eq!((world.find("Pod web"), world.node_of("team-a/web")), (None, Some("n1")));
    assert_eq!(world.objects("Pod").count(), 1);
}

#[test]
fn an_order_fails_until_it_is_healed() {
    let mut world = world();
    world.put(pod("a").cpu("1"));
    world.put(pod("b").cpu("1"));
    world.fail("bind a ", "the server is away");
    let log = world.run();
    assert_eq!(only(&log, "bind"), ["bind a to n1: the server is away", "bind b to n1"]);
    assert_eq!(world.place_of("a"), "backs off for 2s");
    assert_eq!(world.node_of("a"), None);
    world.heal();
    assert_eq!(only(&world.pass(1), "bind"), [""; 0]);
    assert_eq!(only(&world.pass(1), "bind"), ["bind a to n1"]);
}

#[test]
fn a_server_that_does_not_say_what_became_of_an_order_is_asked() {
    let mut world = world();
    world.put(pod("a").cpu("1"));
    world.fail_with("bind", Conclusion::Unknown { error: "502".to_owned(), is_answered: true });
    let log = world.run();
    assert_eq!(log[..2], ["bind a to n1: 502", "look up a"]);
}

#[test]
fn a_slow_server_does_what_it_was_told_when_it_catches_up() {
    let mut world = world();
    world.set_slow(true);
    world.put(pod("a").cpu("1"));
    assert_eq!(world.run(), [""; 0]);
    assert_eq!(world.pass(5), [""; 0]);
    assert_eq!(world.place_of("a"), "being bound to n1");
    assert_eq!(world.node_of("a"), None);
    world.put(pod("b").cpu("1"));
    // What is ordered while it catches up waits for the next time.
    assert_eq!(only(&world.catch_up(), "bind"), ["bind a to n1"]);
    world.set_slow(false);
    assert_eq!(only(&world.catch_up(), "bind"), ["bind b to n1"]);
}

#[test]
fn time_passes_in_order_and_only_when_a_test_says_so() {
    let mut world = world();
    let began = world.now();
    world.fail("bind", "no");
    world.put(pod("a").cpu("1"));
    world.run();
    assert_eq!(world.now(), began);
    world.pass_time(Duration::from_millis(500));
    world.put(pod("b").cpu("1"));
    world.heal();
    // b came later and is tried at once; a waits for its time.
    assert_eq!(only(&world.run(), "bind"), ["bind b to n1"]);
    assert_eq!(only(&world.pass(10), "bind"), ["bind a to n1"]);
    assert_eq!(world.now(), began.after(Duration::from_millis(10_500)));
    let created = |name: &str| world.object(name)["metadata"]["creationTimestamp"].clone();
    assert_eq!(
        (created("Pod a"), created("Pod b")),
        (json!("1970-01-12T13:46:40Z"), json!("1970-01-12T13:46:40.5Z"))
    );
}

#[test]
fn two_worlds_are_the_same_to_the_last_line() {
    let history = || {
        let mut world = world();
        world.put(node("n2").cpu("4"));
        for number in 0..10 {
            world.put(pod(&format!("p{number}")).cpu("1").priority(number % 3));
        }
        let mut log = world.run();
        world.remove("Pod p4");
        log.extend(world.pass(600));
        log
    };
    assert_eq!(history(), history());
}

#[test]
fn a_pod_is_somewhere_at_every_time() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 5
profiles: [{schedulerName: ours}]
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
tieBreak: SmallestName
";
    let mut world = World::with_config(config);
    for name in ["n3", "n1", "n2"] {
        world.put(node(name).cpu("1"));
    }
    world.put(pod("a").cpu("1"));
    world.put(pod("b").cpu("1").scheduler("ours"));
    world.put(pod("c").cpu("2").scheduler("ours"));
    world.put(pod("d").scheduler("ours").with(json!({"spec": {"schedulingGates": [{"name": "wait"}]}})));
    assert_eq!(world.place_of("b"), "to be tried");
    world.run();
    assert_eq!(world.place_of("a"), "nobody's: it asks for default-scheduler, and the profiles are ours");
    assert_eq!(world.place_of("b"), "on n1", "the second document says so");
    assert_eq!(world.place_of("c"), "unschedulable: NodeResourcesFit");
    assert!(world.place_of("d").starts_with("held by SchedulingGates: "), "{}", world.place_of("d"));
    world.change("Pod b", &json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(world.place_of("b"), "finished");
    world.fail("bind", "no");
    world.put(pod("e").cpu("1").scheduler("ours"));
    world.run();
    assert_eq!(world.place_of("e"), "backs off for 6s");
}

#[test]
fn an_evicted_pod_goes_when_the_test_says_so() {
    let mut world = world();
    world.put(pod("low").cpu("4").on("n1").started(1));
    world.put(pod("high").cpu("4").priority(10));
    assert_eq!(only(&world.run(), "evict"), ["evict low for high"]);
    assert_eq!(world.object("Pod low")["metadata"]["deletionTimestamp"], json!(world.now()));
    world.remove("Pod low");
    assert_eq!(only(&world.pass(2), "bind"), ["bind high to n1"]);
}

#[test]
fn a_new_process_knows_what_the_server_has() {
    let mut world = world();
    world.put(pod("a").cpu("3"));
    world.run();
    world.set_slow(true);
    world.put(pod("b").cpu("1"));
    world.run();
    world.set_slow(false);
    world.restart();
    world.put(pod("c").cpu("4"));
    assert_eq!(only(&world.run(), "bind"), ["bind b to n1"], "a's room is taken, and b's order was lost");
    world.set_leading(false);
    world.remove("Pod a");
    assert_eq!(world.pass(600), [""; 0]);
}

thread_local! {
    /// The file in which this thread panicked last.
    static PANICKED_IN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What a test is told that is wrong, and in which file.
#[track_caller]
fn told(wrong: impl FnOnce(&mut World)) -> (String, String) {
    static NOTES_FILES: Once = Once::new();
    NOTES_FILES.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            let file = panic.location().map_or("", Location::file).to_owned();
            PANICKED_IN.with(|place| place.replace(file));
            usual(panic);
        }));
    });
    let mut world = world();
    world.put(pod("web"));
    let panic = catch_unwind(AssertUnwindSafe(|| wrong(&mut world))).expect_err("it is told");
    let words = panic.downcast_ref::<String>().expect("it is told in words").clone();
    (words, PANICKED_IN.with(RefCell::take))
}

#[test]
fn a_test_that_is_wrong_is_told_so() {
    type Wrong = fn(&mut World);
    let table: [(Wrong, &str); 16] = [
        (|world| world.put(json!(3)), "this cannot be put into the world: it has no apiVersion\n3"),
        (|world| world.put(json!({"apiVersion": "v1"})), "it has no kind"),
        (|world| world.put(json!({"apiVersion": "v1", "kind": "Pod"})), "it has no metadata.name"),
        (
            |world| world.put(pod("a").cpu("much")),
            "Pod default/a: spec.containers[0].resources.requests.cpu: ",
        ),
        (
            |world| world.put(json!({"apiVersion": "v1", "kind": "Nod", "metadata": {"name": "n"}})),
            "did you mean",
        ),
        (|world| world.put(pod("b").uid("web")), "another pod has the UID \"web\""),
        (
            |world| world.change("Pod web", &json!({"spec": {"priority": "high"}})),
            "Pod web cannot be changed so: ",
        ),
        (|world| world.remove("Pod wbe"), "there is no Pod wbe; there are: Pod web"),
        (|world| world.remove("Gang g"), "there is no Gang g, nor any other Gang"),
        (
            |world| _ = world.object("web"),
            "\"web\" names no object: say `KIND NAME` or `KIND NAMESPACE/NAME`",
        ),
        (|world| _ = world.place_of("gone"), "there is no Pod gone; there are: Pod web"),
        (|world| _ = world.page("Gangs", ""), "no plugin \"Gangs\" of this configuration has a page"),
        (|world| _ = world.answer("load", "3"), "no plugin of this configuration asks \"load\""),
        (|world| world.reconfigure("kind: KubeSchedulerConfig"), "the configuration is wrong:\n"),
        (|_| _ = World::with_config("profiles: 3"), "the configuration is wrong:\n"),
        (|world| world.fail_with("bind", Conclusion::Done), "an order that is done does not fail"),
    ];
    for (wrong, expected) in table {
        let (told, file) = told(wrong);
        assert!(told.contains(expected), "told {told:?} instead of {expected:?}");
        assert!(file.ends_with("tests/world.rs"), "{expected:?} is told at a line of {file}");
    }
}
