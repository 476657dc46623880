use serde_json::json;
use supercargo_testkit::{check_points, check_reads, cluster, node, pod, problems_of, trial, trial_with};

use super::*;

#[test]
fn it_is_what_it_declares() {
    check_points!(NodeResourcesAllocatable);
    check_reads::<NodeResourcesAllocatable>();
}

#[test]
fn small_nodes_or_large_ones() {
    for (mode, nodes, expected) in [
        ("Least", [("1", "1000Mi"), ("2", "2000Mi"), ("3", "3000Mi")], [100, 50, 0]),
        ("Most", [("1", "1000Mi"), ("2", "2000Mi"), ("3", "3000Mi")], [0, 50, 100]),
        ("Least", [("4", "16Gi"), ("8", "32Gi"), ("10", "16Gi")], [100, 0, 70]),
        ("Most", [("4", "16Gi"), ("8", "32Gi"), ("10", "16Gi")], [0, 100, 29]),
        ("Most", [("4", "16Gi"), ("4", "16Gi"), ("4", "16Gi")], [0, 0, 0]),
    ] {
        let mut scene = cluster();
        for (index, (cpu, memory)) in nodes.into_iter().enumerate() {
            scene = scene.with(node(&index.to_string()).cpu(cpu).memory(memory));
        }
        let plugin = trial_with::<NodeResourcesAllocatable>(json!({ "mode": mode }));
        let expected = [0, 1, 2].map(|index| format!("{index}: {}", expected[index]));
        assert_eq!(plugin.scores(&mut scene, pod("web")), expected, "{mode} {nodes:?}");
    }
}

#[test]
fn what_nodes_do_not_count_weighs_and_has_nothing() {
    let args = json!({ "mode": "Most", "resources": [{ "name": "example.com/gpu", "weight": 2 }, { "name": "pods", "weight": 1 }] });
    let mut scene = cluster().with(node("a").allocatable("example.com/gpu", "4")).with(node("b"));
    assert_eq!(
        trial_with::<NodeResourcesAllocatable>(args).scores(&mut scene, pod("web")),
        ["a: 100", "b: 0"]
    );
}

#[test]
fn the_largest_weights_do_not_overflow() {
    let args = json!({ "resources": [{ "name": "memory", "weight": i64::MAX }, { "name": "cpu", "weight": i64::MAX }] });
    let mut scene = cluster().with(node("a").memory("8Ei")).with(node("b").memory("1Gi"));
    assert_eq!(
        trial_with::<NodeResourcesAllocatable>(args).scores(&mut scene, pod("web")),
        ["a: 0", "b: 100"]
    );
    assert_eq!(trial::<NodeResourcesAllocatable>().scores(&mut scene, pod("web")), ["a: 0", "b: 100"]);
}

#[test]
fn the_largest_amounts_do_not_overflow() {
    let weights = |weight: i64| {
        let resources = ["cpu", "memory", "ephemeral-storage"];
        resources.map(|name| json!({ "name": name, "weight": weight })).to_vec()
    };
    for (mode, expected) in [("Least", ["a: 0", "b: 100"]), ("Most", ["a: 100", "b: 0"])] {
        for resources in [weights(i64::MAX), weights(1), weights(1)[..1].to_vec()] {
            let args = json!({ "mode": mode, "resources": resources });
            let large = node("a").cpu("9223372036854775807m").memory("8Ei");
            let large = large.allocatable("ephemeral-storage", "8Ei");
            let mut scene = cluster().with(large).with(node("b").cpu("1").memory("1Gi"));
            let scores = trial_with::<NodeResourcesAllocatable>(args.clone()).scores(&mut scene, pod("web"));
            assert_eq!(scores, expected, "{args}");
        }
    }
    // So much is below 0 to whoever counts in 64 bits, as upstream does.
    let args = json!({ "resources": [{ "name": "cpu", "weight": 1 }] });
    let mut scene = cluster().with(node("a").cpu("9223372036854775808m")).with(node("b").cpu("1"));
    assert_eq!(
        trial_with::<NodeResourcesAllocatable>(args).scores(&mut scene, pod("web")),
        ["a: 100", "b: 0"]
    );
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let problems = |args| problems_of::<NodeResourcesAllocatable>(args);
    assert_eq!(problems(json!({})), [""; 0]);
    assert_eq!(
        problems(json!({ "mode": "least", "resources": [{ "name": "cpu" }] })),
        [
            "resources[0].weight: Invalid value: 0: resource weight of cpu should be a positive value, got :0",
            "mode: Invalid value: \"least\": invalid support ModeType",
        ]
    );
    assert_eq!(problems(json!({ "Mode": "Least" })).len(), 1);
}
