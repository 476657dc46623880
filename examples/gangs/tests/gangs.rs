//! What becomes of gangs in time, what the plugin is allowed, and what its configuration says.

use gangs::Gangs;
use supercargo_sdk::serde_json::{Value, json};
use supercargo_sdk::testkit::{ReadsCheck, World, check_points, node, only, pod};

const CONFIG: &str = include_str!("../scheduler-config.yaml");

fn gang(namespace: &str, name: &str, size: u32) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Gang",
        "metadata": { "namespace": namespace, "name": name }, "spec": { "size": size },
    })
}

fn member(name: &str) -> Value {
    pod(name).cpu("1").label("example.com/gang", "trio").scheduler("gang-scheduler").into()
}

/// A world with a gang of three and room for four pods.
fn world() -> World {
    let mut world = World::with_plugins(CONFIG, |plugins| plugins.add::<Gangs>());
    world.put(node("n1").cpu("4"));
    world.put(gang("default", "trio", 3));
    world.run();
    world
}

#[test]
fn three_go_together() {
    let mut world = world();
    world.put(member("a"));
    world.put(member("b"));
    assert_eq!(only(&world.run(), "bind"), [""; 0]);
    assert_eq!(world.place_of("a"), "at Permit on n1 for 60s: Gangs");
    assert!(world.page("Gangs", "").body.contains("<tr><td>default/trio<td>3<td>0<td>2<td>0\n"));
    world.pass(30);
    world.put(member("c"));
    assert_eq!(only(&world.run(), "bind"), ["bind a to n1", "bind b to n1", "bind c to n1"]);
    assert_eq!(world.object("Gang trio")["status"]["bound"], 3);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn who_waits_in_vain_gives_its_room_back() {
    let mut world = world();
    world.put(member("a"));
    world.put(member("b"));
    world.run();
    world.put(pod("big").cpu("4").scheduler("gang-scheduler"));
    assert_eq!(only(&world.pass(59), "bind"), [""; 0], "the room is theirs");
    let log = world.pass(1);
    assert!(
        only(&log, "FailedScheduling on a")[0].contains("timeout after waiting 1m0s at plugin Gangs"),
        "{log:?}"
    );
    assert_eq!(only(&log, "bind"), ["bind big to n1"]);
    assert_eq!(world.object("Gang trio")["status"]["bound"], 0);
}

#[test]
fn a_gang_of_another_namespace_is_another_one() {
    let mut world = world();
    world.put(gang("team-a", "trio", 1));
    world.put(member("a"));
    let other = pod("a").namespace("team-a").cpu("1").label("example.com/gang", "trio");
    world.put(other.scheduler("gang-scheduler"));
    assert_eq!(only(&world.run(), "bind"), ["bind team-a/a to n1"]);
    assert_eq!(world.object("Gang team-a/trio")["status"]["bound"], 1);
    assert_eq!(world.object("Gang trio")["status"]["bound"], 0);
}

#[test]
fn a_status_that_cannot_be_written_is_written_by_the_next_process() {
    let mut world = world();
    world.fail("patch Gang", "the server is away");
    for name in ["a", "b", "c"] {
        world.put(member(name));
    }
    world.run();
    assert_eq!(world.object("Gang trio")["status"]["bound"], 0);
    world.heal();
    world.restart();
    world.run();
    assert_eq!(world.object("Gang trio")["status"]["bound"], 3);
}

#[test]
fn it_is_what_it_declares() {
    check_points!(Gangs);
    ReadsCheck::of::<Gangs>()
        .pod_label("example.com/gang", "trio")
        .object(gang("default", "trio", 3))
        .check();
}

fn printed(words: &[&str]) -> String {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let words: Vec<&str> = words.iter().map(|word| if *word == "CONFIG" { config } else { word }).collect();
    let outcome = supercargo::outcome_of(words, |plugins| plugins.add::<Gangs>());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout
}

#[test]
fn the_configuration_is_right() {
    assert_eq!(printed(&["gangs", "config", "check", "CONFIG"]), "");
}

#[test]
fn it_may_write_the_status_of_gangs_and_no_more_of_them() {
    let rights = printed(&["gangs", "rbac", "--config", "CONFIG", "--name", "gang-scheduler"]);
    assert!(rights.contains("gangs/status"), "{rights}");
    let of_gangs = rights.lines().filter(|line| line.contains("[gangs")).count();
    assert_eq!(of_gangs, 2, "one rule to read gangs, and one to write their status: {rights}");
}
