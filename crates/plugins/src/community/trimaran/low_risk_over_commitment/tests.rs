use serde_json::json;
use supercargo_testkit::{ReadsCheck, args_of, check_points, cluster, node, pod, trial_with};

use super::*;
use crate::community::trimaran::Measured;
use crate::community::trimaran::tests::where_load_is_known;

#[test]
fn it_is_what_it_declares() {
    check_points!(LowRiskOverCommitment);
    where_load_is_known(ReadsCheck::with_args::<LowRiskOverCommitment>(json!({}))).check();
}

#[test]
fn a_node_gets_points_for_the_riskier_of_its_resources() {
    let known = |average, deviation| Measured { average, deviation, is_known: true, ..Measured::default() };
    let load = NodeLoad { cpu: known(50.0, 10.0), memory: known(40.0, 5.0), ..NodeLoad::default() };
    let resources = |cpu: &str, cpu_limit: &str, memory: &str, memory_limit: &str| {
        let requests = json!({ "cpu": cpu, "memory": memory });
        json!({ "resources": { "requests": requests, "limits": { "cpu": cpu_limit, "memory": memory_limit } } })
    };
    let mut scene = cluster()
        .with(node("a").cpu("4").memory("8Mi"))
        .with(node("b").cpu("4").memory("8Mi"))
        .with(pod("there").container(resources("2", "3500m", "4Mi", "5Mi")).on("a"))
        .fact("a", load);
    let plugin = trial_with::<LowRiskOverCommitment>(json!({ "watcherAddress": "http://load-watcher" }));
    let web = pod("web").container(resources("1", "1500m", "1Mi", "1Mi"));
    assert_eq!(plugin.scores(&mut scene, web), ["a: 51", "b: 0"]);
    assert_eq!(
        plugin.scores(&mut scene, pod("idle")),
        ["a: 0", "b: 0"],
        "who asks for nothing is not scored"
    );
}

#[test]
fn what_is_out_of_range_is_the_default() {
    let args = json!({ "watcherAddress": "http://load-watcher", "smoothingWindowSize": -1, "riskLimitWeights": { "cpu": 2 } });
    let args = args_of::<LowRiskOverCommitment>(args);
    assert_eq!(
        (&args["smoothingWindowSize"], &args["riskLimitWeights"]),
        (&json!(5), &json!({ "cpu": 0.5, "memory": 0.5 }))
    );
}
