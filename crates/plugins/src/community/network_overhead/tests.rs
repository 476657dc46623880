//! What the plugin says of nodes, and what it declares. What becomes of applications in time is in `conformance/tests/network_aware.rs`.

use serde_json::{Value, json};
use supercargo_testkit::{
    PodBuilder, ReadsCheck, TestCluster, args_of, check_points, cluster, node, pod, problems_of, trial,
};

use super::*;
use crate::community::network_aware::{REGION, WORKLOAD_LABEL, ZONE};

/// An AppGroup whose workloads call others: `p1>p2:20` calls one to which the network may cost 20.
fn app_group(workloads: &[&str]) -> Value {
    let workload = |name: &str| json!({ "kind": "Deployment", "name": name, "selector": name });
    let entry = |text: &&str| {
        let (name, call) = text.split_once('>').unwrap_or((text, ""));
        let dependency = call.split_once(':').map(|(called, most)| {
            let most: i64 = most.parse().expect("a number");
            json!({ "workload": workload(called), "maxNetworkCost": most, "minBandwidth": "2G" })
        });
        json!({ "workload": workload(name), "dependencies": dependency.into_iter().collect::<Vec<_>>() })
    };
    json!({
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1", "kind": "AppGroup",
        "metadata": { "namespace": "default", "name": "app" },
        "spec": { "workloads": workloads.iter().map(entry).collect::<Vec<_>>() },
    })
}

/// A NetworkTopology with costs both ways, each as (key, from, to, cost).
fn topology(costs: &[(&str, &str, &str, i64)]) -> Value {
    let of_key = |key: &str| {
        let both = costs.iter().filter(|(known, ..)| *known == key);
        let both = both.flat_map(|(_, from, to, cost)| [(from, to, cost), (to, from, cost)]);
        let origin = |(from, to, cost): (&&str, &&str, &i64)| json!({ "origin": from, "costList": [{ "destination": to, "networkCost": cost, "bandwidthCapacity": "1G", "isAllowed": false }] });
        json!({ "topologyKey": key, "originList": both.map(origin).collect::<Vec<_>>() })
    };
    json!({
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1", "kind": "NetworkTopology",
        "metadata": { "namespace": "default", "name": "nt-default" },
        "spec": {
            "configmapName": "netperf",
            "weights": [{ "name": "UserDefined", "topologyList": [of_key(ZONE), of_key(REGION)] }],
        },
    })
}

fn member(name: &str, workload: &str) -> PodBuilder {
    pod(name).label(APP_GROUP_LABEL, "app").label(WORKLOAD_LABEL, workload)
}

/// The cluster of the specification's example: two regions of two zones of two nodes.
fn scene() -> TestCluster {
    let place = |number: usize| if number < 5 { "us-west-1" } else { "us-east-1" };
    let zone = |number: usize| format!("Z{}", number.div_ceil(2));
    let reads = trial::<NetworkOverhead>().profile.plugins()[0].reads.clone();
    let mut scene = cluster().reading_for(&reads).counting(&reads);
    for number in 1..=8 {
        let name = format!("n{number}");
        scene = scene.with(node(&name).label(REGION, place(number)).label(ZONE, &zone(number)));
    }
    scene
        .with(app_group(&["p1>p2:0", "p2>p3:0", "p3"]))
        .with(topology(&[
            (REGION, "us-west-1", "us-east-1", 20),
            (ZONE, "Z1", "Z2", 5),
            (ZONE, "Z3", "Z4", 10),
        ]))
        .with(member("p1-0", "p1").on("n2"))
        .with(member("p2-0", "p2").on("n5"))
        .with(member("p3-0", "p3").on("n1"))
}

/// Nodes are asked about in an order of zones.
fn sorted(mut said: Vec<String>) -> Vec<String> {
    said.sort();
    said
}

#[test]
fn it_is_what_it_declares() {
    check_points!(NetworkOverhead);
    ReadsCheck::of::<NetworkOverhead>()
        .pod_label(APP_GROUP_LABEL, "app")
        .pod_label(WORKLOAD_LABEL, "p1")
        .pod_label(WORKLOAD_LABEL, "p2")
        .object(app_group(&["p1>p2:20", "p2>p1:0"]))
        .object(topology(&[(ZONE, "z1", "z2", 10), (REGION, "r1", "r2", 30)]))
        .check();
}

#[test]
fn the_nearer_the_better() {
    let scores =
        |workload: &str| sorted(trial::<NetworkOverhead>().scores(&mut scene(), member("new", workload)));
    let expected =
        |scores: [i64; 8]| (1..).zip(scores).map(|(n, score)| format!("n{n}: {score}")).collect::<Vec<_>>();
    assert_eq!(scores("p1"), expected([0, 0, 0, 0, 100, 95, 50, 50]));
    assert_eq!(scores("p2"), expected([100, 95, 75, 75, 0, 0, 0, 0]));
    assert_eq!(scores("p3"), expected([0; 8]), "it calls nobody");
    assert_eq!(scores("other"), expected([0; 8]));
    let alone = trial::<NetworkOverhead>().scores(&mut scene(), pod("alone"));
    assert_eq!(sorted(alone), expected([0; 8]));
}

#[test]
fn what_is_too_far_away_is_rejected() {
    let filter =
        |workload: &str| sorted(trial::<NetworkOverhead>().filter(&mut scene(), member("new", workload)));
    let rejected = |node: &str| {
        format!(
            "{node}: unschedulable: Node {node} does not meet several network requirements from Workload dependencies: \
             Satisfied: 0 Violated: 1"
        )
    };
    let of_p1 = filter("p1");
    assert_eq!(of_p1[0], rejected("n1"));
    assert_eq!(of_p1[5], "n6: ok");
    assert_eq!(filter("p2")[4], rejected("n5"));
    assert!(filter("p3").iter().all(|said| said.ends_with(": ok")));
}

#[test]
fn what_is_missing_is_a_reason() {
    let said =
        |mut scene: TestCluster| trial::<NetworkOverhead>().pre_filter(&mut scene, member("new", "p1"));
    let reads = trial::<NetworkOverhead>().profile.plugins()[0].reads.clone();
    let empty = || cluster().reading_for(&reads).counting(&reads).with(node("n1"));
    assert_eq!(said(empty()), "unresolvable: AppGroup app was not found in namespace default");
    let with_group = empty().with(app_group(&["p1>p2:0"]));
    assert_eq!(
        said(with_group),
        "unresolvable: NetworkTopology nt-default was not found in namespace default"
    );
    let mut plain = empty();
    assert_eq!(trial::<NetworkOverhead>().pre_filter(&mut plain, pod("alone")), "all nodes");
}

#[test]
fn a_pod_on_a_node_that_is_gone_does_not_count() {
    let mut scene = scene().with(member("lost", "p2").on("n9"));
    let scores = sorted(trial::<NetworkOverhead>().scores(&mut scene, member("new", "p1")));
    assert_eq!(scores[4], "n5: 100");
}

#[test]
fn faults_of_upstream_are_mended_where_that_is_asked_for() {
    // A pod of p1 may go to n3, from where p2 in Z1 costs 5; and to n7, of which nobody knows how far Z1 is.
    let passed = |fix: &str| {
        let reads = trial::<NetworkOverhead>().profile.plugins()[0].reads.clone();
        let mut scene = cluster()
            .reading_for(&reads)
            .counting(&reads)
            .with(node("n1").label(REGION, "west").label(ZONE, "Z1"))
            .with(node("n3").label(REGION, "west").label(ZONE, "Z2"))
            .with(node("n7").label(REGION, "north").label(ZONE, "Z9"))
            .with(app_group(&["p1>p2:20"]))
            .with(topology(&[(ZONE, "Z1", "Z2", 5)]))
            .with(member("p2-0", "p2").on("n1"));
        let mut fixes = scene.fixes;
        assert!(fix.is_empty() || fixes.enable(fix), "{fix}");
        scene.fixes = fixes;
        let said = trial::<NetworkOverhead>().filter(&mut scene, member("new", "p1"));
        said.iter().filter(|said| said.ends_with(": ok")).map(|said| said[..2].to_owned()).collect::<Vec<_>>()
    };
    for (fix, expected) in [
        ("", &["n1", "n3", "n7"][..]),
        ("unknownNetworkCosts", &["n1", "n3"]),
        ("networkPermission", &["n1", "n7"]),
        ("networkBandwidth", &["n1", "n7"]),
    ] {
        assert_eq!(passed(fix), expected, "{fix}");
    }
}

#[test]
fn arguments_have_defaults_and_no_others() {
    let default = json!({
        "namespaces": ["default"], "weightsName": "UserDefined", "networkTopologyName": "nt-default", "calculateCosts": true,
    });
    assert_eq!(args_of::<NetworkOverhead>(json!({})), default);
    assert_eq!(args_of::<NetworkOverhead>(json!({ "namespaces": [] })), default);
    assert_eq!(problems_of::<NetworkOverhead>(json!({ "other": 1 })).len(), 1);
}

#[test]
fn of_config_maps_only_measurements_are_kept() {
    let key = "netperf.p90.latency.milliseconds.origin.n1.destination.n2";
    for (data, kept) in [
        (json!({ "other": "x".repeat(1000), key: "5", "netperf": "6" }), &[key][..]),
        (json!({}), &[]),
        (Value::Null, &[]),
    ] {
        let text = json!({ "data": data, "binaryData": { "b": "eA==" } }).to_string();
        let map: MeasurementMap = serde_json::from_str(&text).expect("a ConfigMap");
        assert_eq!(map.keys().collect::<Vec<_>>(), kept);
    }
    let map: MeasurementMap = serde_json::from_str("{}").expect("a ConfigMap");
    assert_eq!(map, MeasurementMap::default());
}
