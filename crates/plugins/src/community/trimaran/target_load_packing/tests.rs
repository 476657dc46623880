use serde_json::{Value, json};
use supercargo_testkit::{ReadsCheck, check_points, cluster, node, pod, problems_of, trial_with};

use super::*;
use crate::community::trimaran::Measured;
use crate::community::trimaran::tests::where_load_is_known;

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
    where_load_is_known(ReadsCheck::with_args::<TargetLoadPacking>(args())).check();
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
fn defaults_that_name_no_cpu_are_nothing() {
    let scores = |requests: Value| {
        let mut args = args();
        args["defaultRequests"] = requests;
        let capacity = json!({ "status": { "capacity": { "cpu": "10" } } });
        let mut scene = cluster().with(node("a").with(capacity)).fact("a", load(0.0));
        trial_with::<TargetLoadPacking>(args).scores(&mut scene, pod("web")).join(", ")
    };
    assert_eq!(scores(json!(null)), "a: 55", "a core");
    assert_eq!(scores(json!({})), "a: 40");
    assert_eq!(scores(json!({ "memory": "1Gi" })), "a: 40");
    assert_eq!(scores(json!({ "cpu": "2" })), "a: 70");
}

#[test]
fn points_are_kept_within_their_range_if_that_is_asked_for() {
    let args = |target: i64| json!({ "watcherAddress": "http://load-watcher", "targetUtilization": target });
    let capacity = json!({ "status": { "capacity": { "cpu": "10" } } });
    for (target, percent, expected, mended) in
        [(40, -50.0, "a: -13", "a: 0"), (150, 0.0, "a: 145", "a: 100"), (40, 10.0, "a: 78", "a: 78")]
    {
        for (is_mended, expected) in [(false, expected), (true, mended)] {
            let mut scene = cluster().with(node("a").with(capacity.clone())).fact("a", load(percent));
            scene.fixes.target_load_points = is_mended;
            let said = trial_with::<TargetLoadPacking>(args(target)).scores(&mut scene, pod("web").cpu("1"));
            assert_eq!(said, [expected], "{percent} % with a target of {target}, mended: {is_mended}");
        }
    }
}

#[test]
fn who_names_no_default_says_that_it_is_nothing() {
    for (defaults, expected) in
        [(json!(null), "a: 55"), (json!({}), "a: 40"), (json!({ "cpu": "2" }), "a: 70")]
    {
        let capacity = json!({ "status": { "capacity": { "cpu": "10" } } });
        let mut scene = cluster().with(node("a").with(capacity)).fact("a", load(0.0));
        let mut args = args();
        args["defaultRequests"] = defaults;
        let scores = trial_with::<TargetLoadPacking>(args.clone()).scores(&mut scene, pod("web"));
        assert_eq!(scores, [expected], "{args}");
    }
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
