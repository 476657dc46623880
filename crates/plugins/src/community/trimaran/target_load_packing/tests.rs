use serde_json::{Value, json};
use supercargo_testkit::{check_points, cluster, node, pod, problems_of, trial_with};

use super::*;
use crate::community::trimaran::Measured;

fn args() -> Value {
    json!({ "watcherAddress": "http://load-watcher" })
}

fn load(percent: f64) -> NodeLoad {
    let cpu = Measured { last: Some(percent), is_known: true, ..Measured::default() };
    NodeLoad { cpu, window_end: 3_600, ..NodeLoad::default() }
}

#[test]
fn it_is_what_it_declares() {
    check_points!(TargetLoadPacking);
}

#[test]
fn nodes_are_filled_up_to_the_target_and_avoided_beyond() {
    let capacity = json!({ "status": { "capacity": { "cpu": "10" } } });
    let plugin = trial_with::<TargetLoadPacking>(args());
    let scores = |percent, pod: supercargo_testkit::PodBuilder| {
        let mut scene =
            cluster().with(node("a").with(capacity.clone())).with(node("b")).fact("a", load(percent));
        plugin.scores(&mut scene, pod).join(", ")
    };
    let web = || pod("web").cpu("1");
    assert_eq!(scores(10.0, web()), "a: 78, b: 0", "the second node was not measured");
    assert_eq!(scores(25.0, web()), "a: 100, b: 0");
    assert_eq!(scores(90.0, web()), "a: 0, b: 0");
    let empty = || pod("web").with(json!({ "spec": { "containers": [] } }));
    assert_eq!(scores(0.0, empty()), "a: 40, b: 0");
    assert_eq!(scores(50.0, empty()), "a: 33, b: 0");
    let limited = pod("web").container(json!({ "resources": { "limits": { "cpu": "1500m" } } }));
    assert_eq!(scores(25.0, limited), "a: 100, b: 0", "limits count as they are");
    assert_eq!(scores(30.0, pod("web")), "a: 100, b: 0", "who says nothing is expected to use a core");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let problems = |args| problems_of::<TargetLoadPacking>(args);
    assert_eq!(problems(args()), [""; 0]);
    assert_eq!(problems(json!({})), [""; 0], "the metrics API is asked");
    let wrong = problems(json!({ "metricProvider": { "type": "Other" } }));
    assert_eq!(
        wrong,
        ["metricProvider.type: Invalid value: \"Other\": invalid MetricProvider.Type, got Other"]
    );
    assert!(problems(json!({ "defaultRequestsMultiplier": "abc" }))[0].contains("unable to parse"));
    assert!(problems(json!({ "metricProvider": { "type": "SignalFx" } }))[0].contains("load-watcher"));
}
