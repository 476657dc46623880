//! What the plugin says, and that its configuration is right.

use node_number::NodeNumber;
use supercargo_sdk::prelude::*;
use supercargo_sdk::testkit::{cluster, node, pod, trial};
use supercargo_sdk::{AskedActs, Memories};

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
fn a_pod_waits_for_as_many_seconds_as_its_node_says() {
    let mut cluster = cluster().with(node("node0")).with(node("node3")).with(node("node-a"));
    let pod = cluster.pod(pod("web"));
    let (mut memories, mut asked) = (Memories::default(), AskedActs::default());
    let mut acts = Acts::new(NodeNumber::NAME, &mut memories, &mut asked);
    for (name, seconds) in [("node0", None), ("node3", Some(3)), ("node-a", None)] {
        let mut cycle = cluster.cycle(&pod);
        let began = cycle.context.now;
        let waits = match NodeNumber.permit(&mut cycle, &mut acts, cluster.node(name)) {
            PermitDecision::Wait { until, .. } => Some(until.since(began).as_secs()),
            _ => None,
        };
        assert_eq!(waits, seconds, "{name}");
        let later = NodeNumber.reconsider(&mut cycle, &mut acts, cluster.node(name), &News::TimedOut);
        assert!(matches!(later, Some(PermitDecision::Allow)), "{name}");
    }
}

#[test]
fn the_configuration_is_right() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let words = ["node-number", "config", "check", file];
    let checked = supercargo::outcome_of(words, |plugins| plugins.add::<NodeNumber>());
    assert_eq!((checked.stdout.as_str(), checked.code), ("", 0));
}
