use serde_json::json;
use supercargo_testkit::{ReadsCheck, check_points, cluster, node, pod, trial_with};

use super::*;
use crate::community::trimaran::Measured;
use crate::community::trimaran::tests::where_load_is_known;

fn plugin(margin: f64, sensitivity: f64) -> LoadVariationRiskBalancing {
    LoadVariationRiskBalancing {
        args: LoadVariationRiskBalancingArgs {
            safe_variance_margin: Some(margin),
            safe_variance_sensitivity: Some(sensitivity),
            ..LoadVariationRiskBalancingArgs::default()
        },
    }
}

#[test]
fn it_is_what_it_declares() {
    check_points!(LoadVariationRiskBalancing);
    where_load_is_known(ReadsCheck::with_args::<LoadVariationRiskBalancing>(
        json!({ "safeVarianceSensitivity": 2.0 }),
    ))
    .check();
}

#[test]
fn risk_is_load_and_how_much_it_varies() {
    for (margin, sensitivity, average, deviation, expected) in [
        (1.0, 1.0, 40.0, 36.0, 57),
        (1.0, 0.0, 40.0, 36.0, 75),
        (1.0, 2.0, -40.0, 36.0, 65),
        (1.0, 2.0, 200.0, 36.0, 20),
        (1.0, 2.0, 40.0, -36.0, 75),
        (1.0, 2.0, 40.0, 120.0, 25),
        (-1.0, 1.0, 40.0, 36.0, 75),
    ] {
        let statistics =
            Statistics { capacity: 100.0, requested: 10.0, used_average: average, used_deviation: deviation };
        let points = plugin(margin, sensitivity).points(&statistics).round() as i64;
        assert_eq!(points, expected, "margin {margin}, sensitivity {sensitivity}, {average} ± {deviation}");
    }
}

#[test]
fn the_riskier_resource_counts_and_a_node_without_a_measurement_gets_nothing() {
    let known = |average, deviation| Measured { average, deviation, is_known: true, ..Measured::default() };
    let load = NodeLoad { cpu: known(40.0, 10.0), memory: known(30.0, 16.0), ..NodeLoad::default() };
    let mut scene = cluster()
        .with(node("a").cpu("4").memory("8Gi"))
        .with(node("b").cpu("4").memory("8Gi"))
        .with(node("c").cpu("4").memory("8Gi"))
        .fact("a", load)
        .fact("b", NodeLoad { memory: Measured::default(), ..load });
    let plugin = trial_with::<LoadVariationRiskBalancing>(json!({ "watcherAddress": "http://load-watcher" }));
    assert_eq!(plugin.scores(&mut scene, pod("web").cpu("1").memory("1Gi")), ["a: 63", "b: 63", "c: 0"]);
}

#[test]
fn a_load_is_a_share_of_what_the_node_has_if_that_is_asked_for() {
    let status = json!({ "status": { "capacity": { "cpu": "8", "memory": "8Gi" }, "allocatable": { "cpu": "4", "memory": "4Gi" } } });
    let half = Measured { average: 50.0, is_known: true, ..Measured::default() };
    let load = NodeLoad { cpu: half, memory: half, ..NodeLoad::default() };
    for (is_mended, expected) in [(false, "n1: 75"), (true, "n1: 50")] {
        let mut scene = cluster().with(node("n1").with(status.clone())).fact("n1", load);
        scene.fixes.load_of_capacity = is_mended;
        let plugin = trial_with::<LoadVariationRiskBalancing>(json!({}));
        let empty = pod("web").with(json!({ "spec": { "containers": [] } }));
        assert_eq!(plugin.scores(&mut scene, empty), [expected], "mended: {is_mended}");
    }
}
