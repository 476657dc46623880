//! Trimaran: load that is measured, moves, and is not measured any more.

use serde_json::{Value, json};
use supercargo_testkit::{node, pod};
use supercargo_world::World;

use super::world;

/// What load-watcher says of nodes, up to a time: their average load of cpu and memory in percent, and by how much it deviates.
fn measured(world: &World, ago: i64, nodes: &[(&str, f64, f64)]) -> String {
    let end = world.now().nanoseconds() / 1_000_000_000 - ago;
    let metric = |kind: &str, operator: &str, value: f64| json!({ "type": kind, "operator": operator, "value": value });
    let metrics = |average: f64, deviation: f64| -> Value {
        let of = |kind| [metric(kind, "AVG", average), metric(kind, "STD", deviation)];
        json!([of("CPU"), of("Memory")].concat())
    };
    let nodes: serde_json::Map<String, Value> = nodes
        .iter()
        .map(|(name, average, deviation)| {
            ((*name).to_owned(), json!({ "metrics": metrics(*average, *deviation) }))
        })
        .collect();
    json!({ "window": { "end": end }, "data": { "NodeMetricsMap": nodes } }).to_string()
}

fn two_nodes(page: &str) -> World {
    let mut world = world(page);
    let capacity = json!({ "status": { "capacity": { "cpu": "10", "memory": "10Gi" } } });
    world.put(node("n1").cpu("10").memory("10Gi").with(capacity.clone()));
    world.put(node("n2").cpu("10").memory("10Gi").with(capacity));
    world
}

fn goes_to(world: &mut World, name: &str) -> String {
    world.put(pod(name).cpu("100m").memory("100Mi"));
    world.run();
    world.node_of(name).unwrap_or_default().to_owned()
}

#[test]
fn target_load_packing_counts_a_pod_until_a_measurement_covers_it() {
    let mut world = two_nodes("target-load-packing");
    let answer = |world: &mut World, ago: i64, n1: f64, n2: f64| {
        let text = measured(world, ago, &[("n1", n1, 0.0), ("n2", n2, 0.0)]);
        assert_eq!(world.answer("node-load", &text).as_deref(), Ok(""));
    };
    // The first sample: the first node is nearer to the target of 40 %.
    answer(&mut world, 0, 25.0, 20.0);
    // A pod with a request of a core is expected to use one and a half: 40 %, exactly as wanted.
    world.put(pod("large").cpu("1"));
    world.run();
    assert_eq!(world.node_of("large"), Some("n1"));
    // With it the first node is where it should be, and any more is too much; the second has room up to the target.
    assert_eq!(goes_to(&mut world, "a"), "n2");
    // The second sample does not cover the pod yet: it counts on top of what is measured.
    world.pass(30);
    answer(&mut world, 0, 30.0, 20.0);
    assert_eq!(goes_to(&mut world, "b"), "n2");
    // The third does: what it measures is all there is.
    world.pass(60);
    answer(&mut world, 0, 38.0, 20.0);
    assert_eq!(goes_to(&mut world, "c"), "n1");
    // And when nobody measures any more, load does not count.
    world.pass(600);
    assert!(!goes_to(&mut world, "d").is_empty());
}

#[test]
fn load_variation_risk_balancing_follows_the_load() {
    let mut world = two_nodes("load-variation-risk-balancing");
    let text = measured(&world, 0, &[("n1", 30.0, 5.0), ("n2", 30.0, 30.0)]);
    world.answer("node-load", &text).expect("it can be read");
    assert_eq!(goes_to(&mut world, "a"), "n1", "the load of the other varies more");
    world.pass(30);
    let text = measured(&world, 0, &[("n1", 90.0, 5.0), ("n2", 30.0, 30.0)]);
    world.answer("node-load", &text).expect("it can be read");
    assert_eq!(goes_to(&mut world, "b"), "n2", "the load has moved");
    assert!(world.answer("node-load", "<html>load-watcher is away</html>").is_err());
    assert_eq!(goes_to(&mut world, "c"), "n2", "nonsense changes nothing");
}

#[test]
fn low_risk_over_commitment_avoids_nodes_that_promised_too_much() {
    let mut world = two_nodes("low-risk-over-commitment");
    let greedy = json!({ "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "15" } } });
    world.put(pod("greedy").container(greedy).on("n1").with(json!({ "status": { "phase": "Running" } })));
    let text = measured(&world, 0, &[("n1", 20.0, 2.0), ("n2", 20.0, 2.0)]);
    world.answer("node-load", &text).expect("it can be read");
    assert_eq!(goes_to(&mut world, "a"), "n2");
}

#[test]
fn peaks_saves_energy() {
    let mut world = two_nodes("peaks");
    let text = measured(&world, 0, &[("n1", 20.0, 0.0), ("n2", 60.0, 0.0)]);
    world.answer("node-load", &text).expect("it can be read");
    assert_eq!(goes_to(&mut world, "a"), "n2", "its curve is flat there");
}
