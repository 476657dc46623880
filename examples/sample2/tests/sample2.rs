//! What the plugin says, when it wakes pods up, what becomes of one, and what `config check` says about its configurations.

use sample2::Sample2;
use supercargo_sdk::testkit::{
    World, added, check_points, check_reads, cluster, json, node, only, pod, trial, updated,
};
use supercargo_sdk::{Actions, Hint};

#[test]
fn nodes_need_the_label() {
    let mut cluster =
        cluster().with(node("a").label("cpu", "true")).with(node("b").label("cpu", "yes")).with(node("c"));
    let said = trial::<Sample2>().filter(&mut cluster, pod("web"));
    assert_eq!(said, ["a: ok", "b: unschedulable: Node: b", "c: unschedulable: Node: c"]);
}

#[test]
fn a_label_wakes_pods_up() {
    let labels = Actions::UPDATE_NODE_LABEL;
    let labelled = || node("n").label("cpu", "true");
    trial::<Sample2>().check_hints(
        &mut cluster(),
        pod("web"),
        [
            ("a node gets the label", updated(labels, node("n"), labelled()), Hint::Queue),
            (
                "a node gets another label",
                updated(labels, node("n"), node("n").label("disk", "ssd")),
                Hint::Skip,
            ),
            ("a node loses it", updated(labels, labelled(), node("n")), Hint::Skip),
            ("a node comes with it", added(labelled()), Hint::Queue),
            ("a node comes without it", added(node("n")), Hint::Skip),
        ],
    );
}

#[test]
fn a_pod_is_pending_until_a_node_gets_the_label() {
    let config = include_str!("../scheduler-config.yaml");
    let mut world = World::with_plugins(config, |plugins| plugins.add::<Sample2>());
    world.put(node("a"));
    world.put(node("b"));
    world.put(pod("web").scheduler("sample-scheduler"));
    let log = world.run();
    let event = "FailedScheduling on web: 0/2 nodes are available: 1 Node: a, 1 Node: b.";
    assert!(only(&log, "FailedScheduling")[0].starts_with(event), "{log:?}");
    world.change("Node b", &json!({ "metadata": { "labels": { "disk": "ssd" } } }));
    assert_eq!(world.run(), [""; 0], "another label does not wake it");
    world.change("Node b", &json!({ "metadata": { "labels": { "cpu": "true" } } }));
    assert_eq!(only(&world.pass(1), "bind"), ["bind web to b"], "within a second");
}

#[test]
fn it_is_what_it_declares() {
    check_points!(Sample2);
    check_reads::<Sample2>();
}

fn config_check(file: &str) -> (String, u8) {
    let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    let checked =
        supercargo::outcome_of(["sample2", "config", "check", &path], |plugins| plugins.add::<Sample2>());
    (checked.stdout.replace(&path, file), checked.code)
}

#[test]
fn the_configuration_is_right() {
    assert_eq!(config_check("scheduler-config.yaml"), (String::new(), 0));
}

/// The tutorial's own configuration: with two feasible nodes it failed for every pod.
#[test]
fn the_trap_of_the_tutorial_is_found() {
    let (said, code) = config_check("tests/tutorial-config.yaml");
    assert_eq!(code, 0, "{said}");
    for plugin in ["InterPodAffinity", "PodTopologySpread", "TaintToleration"] {
        let warned = said.lines().any(|line| line.contains("W001") && line.contains(plugin));
        assert!(warned, "no warning about {plugin} in:\n{said}");
    }
}
