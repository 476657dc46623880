//! Whoever measures: what each of them answers becomes the load of nodes.

use serde_json::{Value, json};
use supercargo_framework::Plugin;
use supercargo_testkit::{PodBuilder, ReadsCheck, TestCluster, cluster, node, pod, problems_of, trial_with};

use super::*;

/// A check in clusters where the load of all nodes is known.
pub(super) fn where_load_is_known(check: ReadsCheck) -> ReadsCheck {
    let measured = |percent: i32| json!({ "average": percent, "deviation": 7, "isKnown": true, "first": percent, "last": percent });
    let fact = |name: String, percent: i32| {
        json!({
            "apiVersion": "facts.supercargo.dev/v1alpha1", "kind": "NodeLoad", "metadata": { "name": name },
            "cpu": measured(percent), "memory": measured(percent + 9), "windowEnd": 3_600,
        })
    };
    // The nodes of random clusters, and what they may be called instead.
    let names =
        (0..4).flat_map(|index| ["n", "m"].map(|letter| (format!("{letter}{index}"), 20 * index + 5)));
    names.fold(check, |check, (name, percent)| check.object(fact(name, percent)))
}

fn scene() -> TestCluster {
    let capacity = json!({ "status": { "capacity": { "cpu": "4", "memory": "8Gi" } } });
    cluster().with(node("n1").with(capacity))
}

fn load(scene: &TestCluster) -> Option<NodeLoad> {
    scene.snapshot().object_of::<NodeLoad>(scene.row("n1")).copied()
}

#[test]
fn load_watcher_answers() {
    let plugin = trial_with::<TargetLoadPacking>(json!({ "watcherAddress": "http://load-watcher:2020/" }));
    let metric = |kind: &str, operator: &str, value: f64| json!({ "type": kind, "operator": operator, "value": value });
    let metrics = [
        metric("CPU", "Latest", 90.0),
        metric("CPU", "AVG", 40.0),
        metric("CPU", "STD", 5.0),
        metric("CPU", "", 7.0),
        metric("Memory", "Latest", 30.0),
        metric("Energy", "AVG", 1.0),
    ];
    let text = json!({ "window": { "end": 3_590 }, "data": { "NodeMetricsMap": {
        "n1": { "metrics": metrics }, "n2": { "metrics": metrics }, "n3": { "metrics": [] },
    } } });
    let mut scene = scene();
    plugin.answer(&mut scene, "node-load", &text.to_string()).expect("it can be read");
    let measured = load(&scene).expect("the node was measured");
    assert_eq!((measured.cpu.average, measured.cpu.deviation, measured.window_end), (40.0, 5.0, 3_590));
    assert_eq!((measured.cpu.first, measured.cpu.last), (Some(90.0), Some(40.0)));
    assert_eq!((measured.memory.average, measured.memory.is_known), (30.0, true));
    let absurd =
        json!({ "data": { "NodeMetricsMap": { "n1": { "metrics": [metric("CPU", "AVG", -10.5)] } } } });
    plugin.answer(&mut scene, "node-load", &absurd.to_string()).expect("it can be read");
    assert_eq!(load(&scene), None, "what cannot be meant is as if it were not said");
    for nonsense in ["<html>", "[]", r#"{"data":{"NodeMetricsMap":{"n1":{"metrics":[{"value":"much"}]}}}}"#] {
        assert!(plugin.answer(&mut scene, "node-load", nonsense).is_err(), "{nonsense}");
    }
}

#[test]
fn what_load_watcher_says_is_as_old_as_its_window() {
    let plugin = trial_with::<TargetLoadPacking>(json!({ "watcherAddress": "http://load-watcher" }));
    let text = |end: Option<i64>| {
        let metrics = [json!({ "type": "CPU", "operator": "AVG", "value": 40 })];
        let mut text = json!({ "data": { "NodeMetricsMap": { "n1": { "metrics": metrics } } } });
        if let Some(end) = end {
            text["window"] = json!({ "end": end });
        }
        text.to_string()
    };
    // It is 3,600 seconds since the epoch.
    let old = "1 too old";
    for (end, expected) in [
        (3_600, Ok(3_600)),
        (3_540, Ok(3_540)),
        (3_301, Ok(3_301)),
        (3_300, Err(old)),
        (1, Err(old)),
        (3_630, Ok(3_630)),
        (3_631, Err("1 from the future")),
        (3_600_000, Err("1 from the future")),
        (i64::MAX, Err("1 from the future")),
    ] {
        let mut scene = scene();
        let said = plugin.answer(&mut scene, "node-load", &text(Some(end))).expect("it can be read");
        let load = load(&scene).map(|load| load.window_end);
        assert_eq!((load, &*said), (expected.ok(), expected.err().unwrap_or_default()), "{end}");
    }
    for end in [None, Some(0), Some(-1)] {
        let mut scene = scene();
        plugin.answer(&mut scene, "node-load", &text(end)).expect("it can be read");
        let measured = load(&scene).expect("the node was measured").window_end;
        assert_eq!(measured, 3_600, "now, so that pods count on top of it for a minute");
        let facts = plugin.query("node-load").read(text(end).as_bytes(), scene.now).expect("it can be read");
        assert!(facts.warnings()[0].contains("does not say when its window ended"), "{:?}", facts.warnings());
    }
}

#[test]
fn long_answers_are_read_and_those_who_ask_one_source_ask_the_same() {
    let query = |args: Value| trial_with::<LoadVariationRiskBalancing>(args).query("node-load");
    let watcher = query(json!({ "watcherAddress": "http://load-watcher" }));
    // 15,000 nodes of 5 KiB each.
    assert!(watcher.bytes_max() >= 15_000 * 5 * 1_024);
    assert_eq!(watcher.validate(), Ok(()));
    let labelled = |mut args: Value| {
        args["metricProvider"]["nodeLabel"] = json!("node");
        query(args)
    };
    assert_eq!(watcher, labelled(json!({ "watcherAddress": "http://load-watcher/" })));
    assert_eq!(query(json!({})), labelled(json!({})));
    let prometheus = || json!({ "metricProvider": { "type": "Prometheus" } });
    assert!(query(prometheus()).collides_with(&labelled(prometheus())));
}

#[test]
fn a_wrong_series_is_told_by_its_name_and_a_token_is_not_shown() {
    let provider =
        json!({ "type": "Prometheus", "cpuSeries": "a", "memorySeries": "b c", "token": "secret" });
    let args = json!({ "metricProvider": provider });
    let problems = problems_of::<LoadVariationRiskBalancing>(args.clone());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("metricProvider.memorySeries: Invalid value: \"b c\""), "{problems:?}");
    let read: LoadVariationRiskBalancingArgs = serde_json::from_value(args).expect("it can be read");
    assert!(!format!("{read:?}").contains("secret"));
    let token = read.metric_provider.token.expect("it is there");
    assert_eq!(serde_json::to_value(token).expect("it can be written"), json!("secret"));
}

#[test]
fn sidecars_and_what_pods_ask_for_as_a_whole_count_if_that_is_asked_for() {
    let resources = |times: i64| {
        let memory = format!("{times}Gi");
        json!({ "requests": { "cpu": times, "memory": memory }, "limits": { "cpu": 4 * times, "memory": memory } })
    };
    let with_sidecar = |name: &str| {
        let sidecar = json!({ "name": "side", "restartPolicy": "Always", "resources": resources(1) });
        pod(name)
            .container(json!({ "resources": resources(1) }))
            .with(json!({ "spec": { "initContainers": [sidecar] } }))
    };
    let as_a_whole = |name: &str| {
        pod(name)
            .container(json!({ "resources": resources(1) }))
            .with(json!({ "spec": { "resources": resources(2) } }))
    };
    let two = |name: &str| {
        let containers = ["one", "two"].map(|name| json!({ "name": name, "resources": resources(1) }));
        pod(name).with(json!({ "spec": { "containers": containers } }))
    };
    let one = |name: &str| pod(name).container(json!({ "resources": resources(1) }));
    let measured =
        Measured { average: 10.0, deviation: 5.0, is_known: true, first: Some(10.0), last: Some(10.0) };
    let load = NodeLoad { cpu: measured, memory: measured, usage: None, window_end: 3_600 };
    let amounts = json!({ "cpu": "10", "memory": "8Gi" });
    let scores = |web: PodBuilder, late: PodBuilder, is_mended: bool| {
        let mut scene = cluster()
            .with(node("n").with(json!({ "status": { "capacity": amounts, "allocatable": amounts } })))
            .with(late.on("n").with(json!({ "status": { "startTime": null } })))
            .fact("n", load);
        scene.fixes.recent_pods_load = true;
        scene.fixes.load_sidecars = is_mended;
        let args = || json!({ "watcherAddress": "http://load-watcher", "smoothingWindowSize": 5 });
        let mut simple = args();
        simple.as_object_mut().expect("an object").remove("smoothingWindowSize");
        [
            trial_with::<LoadVariationRiskBalancing>(simple.clone()).scores(&mut scene, web.clone()),
            trial_with::<LowRiskOverCommitment>(args()).scores(&mut scene, web.clone()),
            trial_with::<TargetLoadPacking>(simple).scores(&mut scene, web),
        ]
        .concat()
    };
    let (like_one, like_two) =
        (scores(one("web"), one("late"), false), scores(two("web"), two("late"), false));
    assert!(like_one.iter().zip(&like_two).all(|(one, two)| one != two), "{like_one:?} {like_two:?}");
    for (what, web, late) in [
        ("sidecars", with_sidecar("web"), with_sidecar("late")),
        ("pods", as_a_whole("web"), as_a_whole("late")),
    ] {
        assert_eq!(scores(web.clone(), late.clone(), false), like_one, "{what}");
        assert_eq!(scores(web, late, true), like_two, "{what}");
    }
}

#[test]
fn the_metrics_api_says_how_much_of_a_node_is_used() {
    let plugin = trial_with::<TargetLoadPacking>(json!({}));
    let usage = json!({ "cpu": "1", "memory": "2Gi" });
    let item = json!({ "metadata": { "name": "n1" }, "timestamp": "1970-01-01T00:59:50Z", "window": "10s", "usage": usage });
    // What is not whole of one node costs the others nothing.
    let broken = [
        json!({ "metadata": { "name": "n2" }, "usage": usage }),
        json!({ "metadata": { "name": "n2" }, "timestamp": "1970-01-01T00:59:50Z", "usage": {} }),
        json!({ "metadata": { "name": "n2" }, "timestamp": "1970-01-01T00:59:50Z", "usage": { "cpu": "much", "memory": "1" } }),
        json!(null),
    ];
    let items: Vec<Value> = broken.into_iter().chain([item]).collect();
    let mut scene = scene();
    let said = plugin
        .answer(&mut scene, "node-load", &json!({ "kind": "NodeMetricsList", "items": items }).to_string())
        .expect("it can be read");
    assert_eq!(said, "4 that cannot be read");
    let load = load(&scene).expect("the node was measured");
    let node = scene.node("n1");
    assert_eq!((load.cpu_of(node).last, load.memory_of(node).average), (Some(25.0), 25.0));
}

#[test]
fn prometheus_is_asked_once_for_everything() {
    let provider =
        json!({ "type": "Prometheus", "address": "http://prometheus:9090", "cpuSeries": "node:cpu:share" });
    let plugin = trial_with::<LoadVariationRiskBalancing>(json!({ "metricProvider": provider }));
    let series = |resource: &str, operator: &str, value: &str| json!({ "metric": { "instance": "n1", "resource": resource, "operator": operator }, "value": [3_590, value] });
    let result = [series("CPU", "AVG", "0.4"), series("CPU", "STD", "0.1"), series("Memory", "AVG", "0.3")];
    let text = json!({ "status": "success", "data": { "resultType": "vector", "result": result } });
    let mut scene = scene();
    plugin.answer(&mut scene, "node-load", &text.to_string()).expect("it can be read");
    let load = load(&scene).expect("the node was measured");
    assert_eq!((load.cpu.average, load.cpu.deviation, load.memory.average), (40.0, 10.0, 30.0));
    assert_eq!((load.window_end, load.memory.is_known), (3_590, true));
}

/// Whether a node is worse than one with the same load and the same pod, because its pod has come since the load was measured.
fn is_worse_with_a_late_pod<P: Plugin>(args: Value, started: &Value, is_mended: bool) -> bool {
    let measured = Measured { average: 10.0, deviation: 5.0, is_known: true, first: Some(10.0), last: None };
    let load = NodeLoad { cpu: measured, memory: measured, usage: None, window_end: 3_600 };
    let resources =
        json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "3", "memory": "6Gi" } });
    let placed = |name: &str, time: &Value| {
        pod(name)
            .container(json!({ "resources": resources }))
            .on(name)
            .with(json!({ "status": { "startTime": time } }))
    };
    let amounts = json!({ "cpu": "4", "memory": "8Gi" });
    let large = |name| node(name).with(json!({ "status": { "capacity": amounts, "allocatable": amounts } }));
    let mut scene = cluster()
        .with(large("late"))
        .with(large("long"))
        .with(placed("late", started))
        .with(placed("long", &json!("1970-01-01T00:59:00Z")))
        .fact("late", load)
        .fact("long", load);
    scene.fixes.recent_pods_load = is_mended;
    let scores = trial_with::<P>(args).scores(&mut scene, pod("web").cpu("500m").memory("1Gi"));
    let points = |index: usize| -> i64 {
        let (_, points) = scores[index].split_once(": ").expect("a node and its points");
        points.parse().expect("a number")
    };
    assert!(points(0) <= points(1), "{scores:?}");
    points(0) < points(1)
}

#[test]
fn pods_that_came_since_the_load_was_measured_count_if_that_is_asked_for() {
    let watcher = || json!({ "watcherAddress": "http://load-watcher" });
    let model = json!({ "k0": 100.0, "k1": 1.0, "k2": 0.05 });
    let peaks = || json!({ "WatcherAddress": "http://load-watcher", "NodePowerModel": { "late": model, "long": model } });
    for started in [json!(null), json!("1970-01-01T00:59:01Z"), json!("1970-01-01T01:00:05Z")] {
        for is_mended in [false, true] {
            let is_worse = [
                is_worse_with_a_late_pod::<LoadVariationRiskBalancing>(watcher(), &started, is_mended),
                is_worse_with_a_late_pod::<LowRiskOverCommitment>(watcher(), &started, is_mended),
                is_worse_with_a_late_pod::<Peaks>(peaks(), &started, is_mended),
            ];
            assert_eq!(is_worse, [is_mended; 3], "started at {started}");
        }
    }
}
