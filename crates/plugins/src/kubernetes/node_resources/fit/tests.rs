use serde_json::{Value, json};
use supercargo_framework::Fixes as FixSet;
use supercargo_testkit::{
    added, args_of, cluster, deleted, node, pod, problems_of, trial, trial_with, updated,
};

use super::*;

fn device_class(resource: Option<&str>) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": { "name": "gpu" }, "spec": { "extendedResourceName": resource },
    })
}

#[test]
fn everything_that_is_short_is_told() {
    // 4 cores and 8 GiB, of which 3 cores, 1 GiB and a GPU are taken.
    let mut cluster = cluster()
        .with(node("n").pods(2).allocatable("example.com/gpu", "2").allocatable("ephemeral-storage", "1Gi"))
        .with(pod("there").cpu("3").memory("1Gi").request("example.com/gpu", "1").on("n"));
    let fit = trial::<NodeResourcesFit>();
    for (what, pod, said) in [
        ("nothing requested", pod("p"), "ok"),
        ("exactly what is left", pod("p").cpu("1").memory("7Gi").request("example.com/gpu", "1"), "ok"),
        ("others would have to go", pod("p").cpu("1001m"), "unschedulable: Insufficient cpu"),
        ("more than there is", pod("p").cpu("4001m"), "unresolvable: Insufficient cpu"),
        ("memory", pod("p").memory("8Gi"), "unschedulable: Insufficient memory"),
        (
            "storage",
            pod("p").request("ephemeral-storage", "2Gi"),
            "unresolvable: Insufficient ephemeral-storage",
        ),
        ("devices", pod("p").request("example.com/gpu", "2"), "unschedulable: Insufficient example.com/gpu"),
        (
            "unknown devices",
            pod("p").request("example.com/x", "1"),
            "unresolvable: Insufficient example.com/x",
        ),
        ("no unknown devices", pod("p").request("example.com/x", "0"), "ok"),
        ("huge pages", pod("p").request("hugepages-2Mi", "2Mi"), "unresolvable: Insufficient hugepages-2Mi"),
        ("no such resource", pod("p").request("storage", "1"), "ok"),
        (
            "several, one of them beyond hope",
            pod("p").cpu("2").memory("9Gi"),
            "unresolvable: Insufficient cpu, Insufficient memory",
        ),
    ] {
        assert_eq!(fit.filter(&mut cluster, pod), [format!("n: {said}")], "{what}");
    }
    cluster.put(pod("another").on("n"));
    let full = fit.filter(&mut cluster, pod("p").cpu("2"));
    assert_eq!(full, ["n: unschedulable: Too many pods, Insufficient cpu"]);
    let error = r#"error: error reading "PreFilterNodeResourcesFit" from cycleState: not found"#;
    assert_eq!(fit.unprepared(&mut cluster, pod("p")), [error, "ok"]);
}

#[test]
fn some_extended_resources_are_not_looked_at() {
    let wants = |resource: &str| pod("p").request(resource, "1");
    let ignoring = trial_with::<NodeResourcesFit>(
        json!({ "ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["example.org"] }),
    );
    for (resource, ok) in [
        ("example.com/a", true),
        ("example.com/b", false),
        ("example.org/anything", true),
        ("hugepages-2Mi", false),
    ] {
        let said = ignoring.filter(&mut cluster().with(node("n")), wants(resource));
        assert_eq!(said[0] == "n: ok", ok, "{resource}: {said:?}");
    }
    let fit = trial::<NodeResourcesFit>();
    let mut devices = cluster()
        .with(node("none"))
        .with(node("zero").allocatable("example.com/gpu", "0"))
        .with(node("one").allocatable("example.com/gpu", "1"))
        .with(device_class(Some("example.com/gpu")));
    let two = pod("p").request("example.com/gpu", "2");
    let said = ["none: ok", "zero: ok", "one: unresolvable: Insufficient example.com/gpu"];
    assert_eq!(fit.filter(&mut devices, two), said, "devices stand in where a node has none of its own");
    let implicit = wants("deviceclass.resource.kubernetes.io/gpu");
    assert!(fit.filter(&mut devices, implicit).iter().all(|said| said.ends_with(": ok")));
}

#[test]
fn scores_follow_the_strategy() {
    let mut cluster = cluster()
        .with(node("n").allocatable("example.com/gpu", "4"))
        .with(pod("there").cpu("1").memory("1Gi").request("example.com/gpu", "1").on("n"));
    let strategy = |strategy: Value| trial_with::<NodeResourcesFit>(json!({ "scoringStrategy": strategy }));
    let most = json!({ "type": "MostAllocated" });
    let gpu = |weight: i64| json!([{ "name": "example.com/gpu", "weight": weight }, { "name": "cpu", "weight": 1 }]);
    let shape = json!({ "shape": [{ "utilization": 0, "score": 0 }, { "utilization": 100, "score": 10 }] });
    let ratio = json!({ "type": "RequestedToCapacityRatio", "requestedToCapacityRatio": shape });
    let two_gpus = || pod("p").cpu("1").request("example.com/gpu", "2");
    for (what, fit, pod, score) in [
        ("defaults count 100m and 200Mi", trial::<NodeResourcesFit>(), pod("p"), 78),
        ("packed", strategy(most), pod("p"), 20),
        (
            "weights",
            strategy(json!({ "type": "MostAllocated", "resources": gpu(3) })),
            two_gpus(),
            (75 * 3 + 50) / 4,
        ),
        (
            "what the pod does not ask for drops out",
            strategy(json!({ "type": "MostAllocated", "resources": gpu(3) })),
            pod("p").cpu("1"),
            50,
        ),
        ("ratio", strategy(ratio), pod("p").cpu("1").memory("3Gi"), 50),
    ] {
        assert_eq!(fit.scores(&mut cluster, pod), [format!("n: {score}")], "{what}");
    }
}

#[test]
fn requests_at_pod_level_score_only_with_the_fix() {
    let big =
        || pod("p").with(json!({ "spec": { "resources": { "requests": { "cpu": "2", "memory": "4Gi" } } } }));
    let fit = trial::<NodeResourcesFit>();
    let mut cluster = cluster().with(node("n"));
    assert_eq!(fit.scores(&mut cluster, big()), ["n: 97"], "as upstream, as if it asked for nothing");
    cluster.fixes = FixSet { fit_score_pod_level_requests: true, ..FixSet::default() };
    assert_eq!(fit.scores(&mut cluster, big()), ["n: 50"]);
    assert_eq!(fit.filter(&mut cluster, big()), ["n: ok"]);
}

#[test]
fn room_that_becomes_free_helps() {
    let other = || pod("other").cpu("2").memory("2Gi");
    let less_cpu = || pod("other").cpu("1").memory("2Gi");
    let less_memory = || pod("other").cpu("2").memory("1Gi");
    let scale_down = Actions::UPDATE_POD_SCALE_DOWN;
    let allocatable = Actions::UPDATE_NODE_ALLOCATABLE;
    let n = || node("n");
    trial::<NodeResourcesFit>().check_hints(
        &mut cluster(),
        pod("p").cpu("2"),
        [
            ("a bound pod goes", deleted(other().on("n")), Hint::Queue),
            ("a nominated pod goes", deleted(other().nominated("n")), Hint::Queue),
            ("a pending pod goes", deleted(other()), Hint::Skip),
            (
                "it asks for less itself",
                updated(scale_down, pod("p").cpu("3"), pod("p").cpu("2")),
                Hint::Queue,
            ),
            ("another frees cpu", updated(scale_down, other().on("n"), less_cpu().on("n")), Hint::Queue),
            ("another frees memory", updated(scale_down, other().on("n"), less_memory().on("n")), Hint::Skip),
            ("a pending pod asks for less", updated(scale_down, other(), less_cpu()), Hint::Skip),
            (
                "labels of a pod",
                updated(Actions::UPDATE_POD_LABEL, other().on("n"), less_cpu().on("n")),
                Hint::Skip,
            ),
            ("a node where it fits", added(n()), Hint::Queue),
            ("a node that is too small", added(n().cpu("1")), Hint::Skip),
            ("a node that takes no pods", added(n().pods(0)), Hint::Skip),
            ("a node grows in cpu", updated(allocatable, n().cpu("3"), n()), Hint::Queue),
            (
                "a node grows, but not enough",
                updated(allocatable, n().cpu("1"), n().cpu("1500m")),
                Hint::Skip,
            ),
            ("a node grows in memory", updated(allocatable, n(), n().memory("9Gi")), Hint::Skip),
            ("a node takes more pods", updated(allocatable, n(), n().pods(111)), Hint::Queue),
            ("a node shrinks", updated(allocatable, n(), n().cpu("3")), Hint::Skip),
            ("taints", updated(Actions::UPDATE_NODE_TAINT, n(), n()), Hint::Queue),
            ("a device class", added(device_class(Some("example.com/gpu"))), Hint::Skip),
        ],
    );
}

#[test]
fn devices_that_stand_in_for_a_resource_help() {
    let (update, gpu) = (Actions::UPDATE, Some("example.com/gpu"));
    let fit = trial::<NodeResourcesFit>();
    fit.check_hints(
        &mut cluster(),
        pod("p").request("example.com/gpu", "1"),
        [
            ("a class for it comes", added(device_class(gpu)), Hint::Queue),
            ("a class for something else", added(device_class(Some("example.com/x"))), Hint::Skip),
            ("a class for nothing", added(device_class(None)), Hint::Skip),
            ("a class turns to it", updated(update, device_class(None), device_class(gpu)), Hint::Queue),
            ("a class stays as it is", updated(update, device_class(gpu), device_class(gpu)), Hint::Skip),
            ("a class turns away", updated(update, device_class(gpu), device_class(None)), Hint::Skip),
            ("a class goes", deleted(device_class(gpu)), Hint::Skip),
            ("a node without any", added(node("n")), Hint::Skip),
        ],
    );
    fit.check_hints(
        &mut cluster(),
        pod("p").request("deviceclass.resource.kubernetes.io/gpu", "1"),
        [
            ("the class itself comes", added(device_class(None)), Hint::Queue),
            ("it has that name already", updated(update, device_class(None), device_class(gpu)), Hint::Skip),
        ],
    );
    let mut devices = cluster().with(device_class(gpu));
    let allocatable = Actions::UPDATE_NODE_ALLOCATABLE;
    fit.check_hints(
        &mut devices,
        pod("p").request("example.com/gpu", "1"),
        [
            ("a node without any will do", added(node("n")), Hint::Queue),
            ("any change of it", updated(allocatable, node("n"), node("n").memory("1Gi")), Hint::Queue),
        ],
    );
}

#[test]
fn arguments() {
    let resources = json!([{ "name": "cpu", "weight": 1 }, { "name": "memory", "weight": 1 }]);
    let strategy = json!({ "type": "LeastAllocated", "resources": resources });
    assert_eq!(args_of::<NodeResourcesFit>(json!({})), json!({ "scoringStrategy": strategy }));
    let weightless =
        json!({ "scoringStrategy": { "type": "MostAllocated", "resources": [{ "name": "cpu" }] } });
    assert_eq!(args_of::<NodeResourcesFit>(weightless)["scoringStrategy"]["resources"][0]["weight"], 1);

    let points = |points: &[(i32, i32)]| -> Value {
        points
            .iter()
            .map(|(utilization, score)| json!({ "utilization": utilization, "score": score }))
            .collect()
    };
    let ratio = |shape: Value| json!({ "type": "RequestedToCapacityRatio", "requestedToCapacityRatio": { "shape": shape } });
    let at = "scoringStrategy.requestedToCapacityRatio";
    let supported = r#"supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio""#;
    for (strategy, problem) in [
        (json!({}), format!("scoringStrategy.type: Unsupported value: \"\": {supported}")),
        (json!({ "type": "Best" }), format!("scoringStrategy.type: Unsupported value: \"Best\": {supported}")),
        (
            json!({ "type": "MostAllocated", "resources": [{ "name": "cpu", "weight": 101 }] }),
            "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]"
                .to_owned(),
        ),
        (
            json!({ "type": "MostAllocated", "resources": [{ "name": "cpu", "weight": -1 }] }),
            "scoringStrategy.resources[0].weight: Invalid value: -1: resource weight of cpu not in valid range (0, 100]"
                .to_owned(),
        ),
        (
            json!({ "type": "RequestedToCapacityRatio" }),
            format!("{at}: Required value: must be specified when type is RequestedToCapacityRatio"),
        ),
        (
            json!({ "type": "MostAllocated", "requestedToCapacityRatio": {} }),
            format!("{at}: Forbidden: must be nil when type is not RequestedToCapacityRatio"),
        ),
        (ratio(points(&[])), format!("{at}.shape: Required value: at least one point must be specified")),
        (
            ratio(points(&[(5, 1), (5, 2)])),
            format!("{at}.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order"),
        ),
        (ratio(points(&[(101, 1)])), format!("{at}.shape[0].utilization: Invalid value: 101: not in valid range [0, 100]")),
        (ratio(points(&[(1, 11)])), format!("{at}.shape[0].score: Invalid value: 11: not in valid range [0, 10]")),
    ] {
        assert_eq!(problems_of::<NodeResourcesFit>(json!({ "scoringStrategy": strategy })), [problem]);
    }
    let starts = |args: Value, start: &str| {
        let problems = problems_of::<NodeResourcesFit>(args);
        assert!(problems[0].starts_with(start), "{problems:?}");
    };
    starts(
        json!({ "ignoredResources": ["a b"] }),
        "ignoredResources[0]: Invalid value: \"a b\": name part must",
    );
    let slash = "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'";
    starts(json!({ "ignoredResourceGroups": ["a/b"] }), slash);
    starts(
        json!({ "ignoredResourceGroups": ["-"] }),
        "ignoredResourceGroups[0]: Invalid value: \"-\": name part must",
    );
}
