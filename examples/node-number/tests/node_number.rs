//! What the plugin says, when its pods go where, and that its configuration is right.

use node_number::NodeNumber;
use supercargo_sdk::testkit::{World, check_points, check_reads, cluster, node, pod, trial};

#[test]
fn the_node_with_the_pods_number_is_preferred() {
    let mut cluster =
        cluster().with(node("node1")).with(node("node10")).with(node("node3")).with(node("node-a"));
    let table = [
        ("pod1", ["node1: 10", "node10: 0", "node3: 0", "node-a: 0"]),
        ("pod-23", ["node1: 0", "node10: 0", "node3: 10", "node-a: 0"]),
        ("pod0", ["node1: 0", "node10: 10", "node3: 0", "node-a: 0"]),
        // Neither an error nor a preference.
        ("pod", ["node1: 0", "node10: 0", "node3: 0", "node-a: 0"]),
    ];
    for (name, expected) in table {
        assert_eq!(trial::<NodeNumber>().scores(&mut cluster, pod(name)), expected, "{name}");
    }
}

#[test]
fn a_pod_goes_after_as_many_seconds_as_its_node_says() {
    for (name, seconds) in [("node0", 0), ("node1", 1), ("node3", 3), ("node-a", 0)] {
        let mut world = World::of::<NodeNumber>();
        world.put(node(name));
        world.put(pod("web"));
        world.run();
        for waited in 0..seconds {
            assert_eq!(
                world.place_of("web"),
                format!("at Permit on {name} for {}s: NodeNumber", seconds - waited)
            );
            world.pass(1);
        }
        assert_eq!(world.node_of("web"), Some(name));
    }
}

#[test]
fn a_pod_goes_to_the_node_with_its_number() {
    let config = include_str!("../scheduler-config.yaml");
    let mut world = World::with_plugins(config, |plugins| plugins.add::<NodeNumber>());
    for number in 1..=9 {
        world.put(node(&format!("node{number}")));
        world.put(pod(&format!("pod{number}")).scheduler("number-scheduler"));
    }
    world.pass(9);
    for number in 1..=9 {
        assert_eq!(world.node_of(&format!("pod{number}")), Some(format!("node{number}").as_str()));
    }
}

#[test]
fn it_is_what_it_declares() {
    check_points!(NodeNumber);
    check_reads::<NodeNumber>();
}

#[test]
fn the_configuration_is_right() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let words = ["node-number", "config", "check", file];
    let checked = supercargo::outcome_of(words, |plugins| plugins.add::<NodeNumber>());
    assert_eq!((checked.stdout.as_str(), checked.code), ("", 0));
}
