//! What a namespace has had is remembered by the next process, whatever ended the last one.

use allowance::Allowance;
use supercargo_sdk::testkit::{ReadsCheck, World, check_points, node, only, pod};

const CONFIG: &str = include_str!("../scheduler-config.yaml");

fn world() -> World {
    let mut world = World::with_plugins(CONFIG, |plugins| plugins.add::<Allowance>());
    world.put(node("n1").cpu("4"));
    world
}

fn put(world: &mut World, names: &[&str]) -> Vec<String> {
    for name in names {
        world.put(pod(name).scheduler("allowance-scheduler"));
    }
    only(&world.run(), "bind").into_iter().map(str::to_owned).collect()
}

#[test]
fn a_namespace_has_three_pods_whatever_becomes_of_them_and_of_the_scheduler() {
    let mut world = world();
    assert_eq!(put(&mut world, &["a", "b"]).len(), 2);
    world.remove("Pod a");
    world.restart();
    assert!(world.page("Allowance", "").body.contains("<tr><td>default<td>2\n"));
    assert_eq!(put(&mut world, &["c", "d"]), ["bind c to n1"]);
    world.pass(10);
    world.take_over();
    world.pass(400);
    assert_eq!(world.place_of("d"), "unschedulable: Allowance");
    world.put(pod("e").namespace("other").scheduler("allowance-scheduler"));
    assert_eq!(only(&world.run(), "bind"), ["bind other/e to n1"]);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_pod_that_is_not_bound_after_all_does_not_count() {
    let mut world = world();
    world.fail("bind", "the server is away");
    assert_eq!(put(&mut world, &["a", "b", "c", "d"]).len(), 4, "each is tried, and gives its place back");
    world.heal();
    assert_eq!(only(&world.pass(400), "bind").len(), 3);
}

#[test]
fn state_of_another_version_is_dropped() {
    let mut world = world();
    assert_eq!(put(&mut world, &["a", "b", "c"]).len(), 3);
    world.restart();
    let entry = "memory.Allowance_2fSpent".to_owned();
    world.saved().insert(entry, r#"{"version":0,"value":{"default":3}}"#.to_owned());
    world.crash();
    assert_eq!(
        world.complaints(),
        [
            "Allowance: Allowance/Spent is dropped: it was saved under version 0, and the plugin knows version 1"
        ]
    );
    assert_eq!(put(&mut world, &["d"]), ["bind d to n1"]);
}

#[test]
fn it_is_what_it_declares() {
    check_points!(Allowance);
    ReadsCheck::of::<Allowance>().check();
}

#[test]
fn it_may_write_the_object_that_it_saves_to_and_no_other() {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let words = ["allowance", "rbac", "--config", config, "--name", "allowance-scheduler"];
    let outcome = supercargo::outcome_of(words, |plugins| plugins.add::<Allowance>());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let rules = "# What plugins remember is saved. Creation cannot be limited by name.\n\
                 - apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [create]\n\
                 - apiGroups: [\"\"]\n  resources: [configmaps]\n  resourceNames: [allowance-scheduler-memories]\n  \
                 verbs: [get, update]\n";
    assert!(outcome.stdout.contains(rules), "{}", outcome.stdout);
}
