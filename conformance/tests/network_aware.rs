//! Applications in virtual time: their services are tried in order and placed near each other, and the objects that say so are kept true.

use serde_json::{Value, json};
use supercargo_testkit::{PodBuilder, node, pod};
use supercargo_world::{World, only};

const REGION: &str = "topology.kubernetes.io/region";
const ZONE: &str = "topology.kubernetes.io/zone";
const APP_GROUP: &str = "appgroup.diktyo.x-k8s.io";
const WORKLOAD: &str = "appgroup.diktyo.x-k8s.io.workload";

/// A world with both plugins in the default profile.
fn world_with(args: &Value, fixes: &[&str]) -> World {
    World::with_config(&config(args, fixes))
}

fn config(args: &Value, fixes: &[&str]) -> String {
    let (args, fixes) = (args.to_string(), fixes.join(", "));
    format!(
        r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {{disabled: [{{name: "*"}}], enabled: [{{name: TopologicalSort}}]}}
    multiPoint: {{enabled: [{{name: NetworkOverhead, weight: 10}}]}}
  pluginConfig:
  - {{name: NetworkOverhead, args: {args}}}
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
fixes: [{fixes}]
"#
    )
}

/// Two regions of two zones of two nodes each: west-1-a, west-1-b, west-2-a and so on.
fn put_nodes(world: &mut World) {
    for region in ["west", "east"] {
        for zone in 1..=2 {
            for letter in ["a", "b"] {
                let zone = format!("{region}-{zone}");
                world
                    .put(node(&format!("{zone}-{letter}")).cpu("2").label(REGION, region).label(ZONE, &zone));
            }
        }
    }
}

/// Workloads that call others: `web>cart` calls one, to which the network may cost 20.
fn app_group(algorithm: &str, workloads: &[&str]) -> Value {
    let workload = |name: &str| json!({ "kind": "Deployment", "name": name, "selector": name });
    let entry = |text: &&str| {
        let (name, called) = text.split_once('>').unwrap_or((text, ""));
        let called = called.split(',').filter(|name| !name.is_empty());
        let dependency =
            |name: &str| json!({ "workload": workload(name), "maxNetworkCost": 20, "minBandwidth": "100M" });
        json!({ "workload": workload(name), "dependencies": called.map(dependency).collect::<Vec<_>>() })
    };
    json!({
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1", "kind": "AppGroup",
        "metadata": { "namespace": "default", "name": "shop", "uid": "shop" },
        "spec": {
            "numMembers": workloads.len(), "topologySortingAlgorithm": algorithm,
            "workloads": workloads.iter().map(entry).collect::<Vec<_>>(),
        },
    })
}

fn costs(key: &str, names: [&str; 2], cost: i64) -> Value {
    let [a, b] = names;
    let origin = |from: &str, to: &str| json!({ "origin": from, "costList": [{ "destination": to, "networkCost": cost }] });
    json!({ "topologyKey": key, "originList": [origin(a, b), origin(b, a)] })
}

fn topology(weights: &Value) -> Value {
    json!({
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1", "kind": "NetworkTopology",
        "metadata": { "namespace": "default", "name": "nt-default", "uid": "nt" },
        "spec": { "configmapName": "netperf", "weights": weights },
    })
}

/// What people write by hand: 50 between the regions, 10 between the zones of the west; of those of the east nobody says anything.
fn by_hand() -> Value {
    let lists = [costs(REGION, ["west", "east"], 50), costs(ZONE, ["west-1", "west-2"], 10)];
    topology(&json!([{ "name": "UserDefined", "topologyList": lists }]))
}

fn member(name: &str, workload: &str) -> PodBuilder {
    pod(name).cpu("1").label(APP_GROUP, "shop").label(WORKLOAD, workload)
}

/// The turns in a status, as `db:1`.
fn turns(world: &World) -> Vec<String> {
    let order =
        world.object("AppGroup shop")["status"]["topologyOrder"].as_array().cloned().unwrap_or_default();
    let turn = |entry: &Value| {
        format!("{}:{}", entry["workload"]["selector"].as_str().unwrap_or_default(), entry["index"])
    };
    order.iter().map(turn).collect()
}

#[test]
fn a_chain_of_services_is_placed_in_order_and_near_each_other() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.put(by_hand());
    world.put(app_group("ReverseKahn", &["web>cart", "cart>db", "db"]));
    world.pass(2);
    assert_eq!(turns(&world), ["cart:2", "db:1", "web:3"]);
    for (name, workload) in [("a-web", "web"), ("b-cart", "cart"), ("c-db", "db"), ("d-web", "web")] {
        world.put(member(name, workload));
    }
    let log = world.run();
    let bound: Vec<&str> = only(&log, "bind ").iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(bound, ["c-db", "b-cart", "a-web", "d-web"], "whoever is called goes first");
    let zone =
        |name: &str| world.node_of(name).map(|node| node.rsplit_once('-').expect("a zone").0.to_owned());
    for name in ["b-cart", "a-web", "d-web"] {
        assert_eq!(zone(name), zone("c-db"), "{name} is where what it calls is");
    }
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn the_status_of_an_app_group_follows_its_spec_and_its_pods() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.put(by_hand());
    world.put(app_group("KahnSort", &["web>db", "db"]));
    world.put(member("db-0", "db"));
    world.pass(2);
    let status = world.object("AppGroup shop")["status"].clone();
    assert_eq!(turns(&world), ["db:2", "web:1"]);
    assert_eq!(status["runningWorkloads"], Value::Null, "nothing runs yet");
    assert!(
        status["scheduleStartTime"].is_string() && status["topologyCalculationTime"].is_string(),
        "{status}"
    );
    world.change("Pod db-0", &json!({ "status": { "phase": "Running" } }));
    world.pass(2);
    assert_eq!(world.object("AppGroup shop")["status"]["runningWorkloads"], 1);
    let before = world.object("AppGroup shop")["status"]["topologyCalculationTime"].clone();
    let spec = app_group("ReverseKahn", &["web>cart", "cart>db", "db"])["spec"].clone();
    world.change("AppGroup shop", &json!({ "spec": spec }));
    world.pass(2);
    assert_eq!(turns(&world), ["cart:2", "db:1", "web:3"], "the spec has changed");
    assert_ne!(world.object("AppGroup shop")["status"]["topologyCalculationTime"], before);
    assert_eq!(only(&world.pass(3600), "patch"), [""; 0], "nothing is written that is true already");
    world.remove("Pod db-0");
    world.pass(2);
    assert_eq!(world.object("AppGroup shop")["status"]["runningWorkloads"], 0);
}

#[test]
fn a_circle_is_named_and_holds_nobody_up() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.put(by_hand());
    world.put(app_group("KahnSort", &["web>db", "db>web"]));
    world.put(member("web-0", "web"));
    world.put(member("db-0", "db"));
    let log = world.pass(2);
    let told = only(&log, "InvalidAppGroup");
    assert!(told.len() == 1 && told[0].contains("db -> web -> db"), "{log:#?}");
    assert_eq!(turns(&world), ["db:2", "web:1"], "the order of the spec");
    assert!(world.node_of("web-0").is_some() && world.node_of("db-0").is_some());
    assert_eq!(only(&world.pass(600), "InvalidAppGroup"), [""; 0], "once is enough");
}

#[test]
fn what_is_missing_is_a_reason_until_it_comes() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.put(member("web-0", "web"));
    world.put(pod("other").cpu("1"));
    let log = world.run();
    assert!(
        only(&log, "FailedScheduling on web-0")[0]
            .contains("AppGroup shop was not found in namespace default"),
        "{log:#?}"
    );
    assert!(world.node_of("other").is_some(), "others go on");
    world.put(app_group("KahnSort", &["web>db", "db"]));
    let log = world.pass(5);
    assert!(
        only(&log, "FailedScheduling on web-0")[0].contains("NetworkTopology nt-default was not found"),
        "{log:#?}"
    );
    world.put(by_hand());
    let log = world.pass(20);
    assert!(world.node_of("web-0").is_some(), "{log:#?}");
    let told = only(&log, "UnknownCosts");
    assert!(told.len() == 1 && told[0].contains("\"east-1\" to \"east-2\""), "{log:#?}");
}

#[test]
fn a_pod_that_calls_others_does_not_go_too_far_away_and_is_tried_when_one_comes() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.put(by_hand());
    world.put(app_group("KahnSort", &["web>db", "db"]));
    world.put(member("db-0", "db").on("west-1-a"));
    for name in ["west-1-a", "west-1-b", "west-2-a", "west-2-b"] {
        world.put(pod(&format!("full-{name}")).cpu("1").on(name));
        world.put(pod(&format!("more-{name}")).cpu(if name == "west-1-a" { "0" } else { "1" }).on(name));
    }
    world.put(member("web-0", "web"));
    let log = world.run();
    let told = only(&log, "FailedScheduling on web-0")[0];
    assert!(
        told.contains(
            "does not meet several network requirements from Workload dependencies: Satisfied: 0 Violated: 1"
        ),
        "{told}"
    );
    world.put(member("db-1", "db").on("east-1-a"));
    world.pass(20);
    assert_eq!(world.node_of("web-0").map(|node| &node[..4]), Some("east"), "as many are near as far away");
}

/// Measurements between nodes.
fn measured(entries: &[(&str, &str, &str)]) -> Value {
    let key =
        |from: &str, to: &str| format!("netperf.p90.latency.milliseconds.origin.{from}.destination.{to}");
    let data: serde_json::Map<String, Value> =
        entries.iter().map(|(from, to, cost)| (key(from, to), json!(cost))).collect();
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": "netperf" }, "data": data })
}

/// The costs of a set as `west>east:50`.
fn written(world: &World, set: &str) -> Vec<String> {
    let mut all = Vec::new();
    for weights in
        world.object("NetworkTopology nt-default")["spec"]["weights"].as_array().into_iter().flatten()
    {
        let lists =
            weights["topologyList"].as_array().into_iter().flatten().filter(|_| weights["name"] == set);
        for origin in lists.flat_map(|list| list["originList"].as_array().into_iter().flatten()) {
            for cost in origin["costList"].as_array().into_iter().flatten() {
                let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                all.push(format!(
                    "{}>{}:{}",
                    name(&origin["origin"]),
                    name(&cost["destination"]),
                    cost["networkCost"]
                ));
            }
        }
    }
    all
}

#[test]
fn costs_are_worked_out_from_measurements() {
    let mut world = world_with(&json!({ "weightsName": "NetperfCosts" }), &[]);
    put_nodes(&mut world);
    world.put(by_hand());
    let log = world.pass(2);
    let told = only(&log, "ConfigMapNotFound");
    assert!(
        told.len() == 1 && told[0].contains("there is no ConfigMap \"netperf\" in namespace default"),
        "{log:#?}"
    );
    assert_eq!(world.object("NetworkTopology nt-default")["status"]["nodeCount"], 8);
    world.put(measured(&[
        ("west-1-a", "east-1-a", "30"),
        ("east-1-b", "west-2-a", "41"),
        ("west-1-a", "west-2-b", "4"),
        ("west-1-b", "west-2-a", "fast"),
        ("west-1-a", "west-1-b", "1"),
    ]));
    let log = world.pass(2);
    assert!(only(&log, "InvalidMeasurements")[0].contains("1 measurements cannot be read"), "{log:#?}");
    assert_eq!(
        written(&world, "NetperfCosts"),
        ["east>west:35", "west>east:35", "west-1>west-2:4", "west-2>west-1:4"]
    );
    assert_eq!(written(&world, "UserDefined").len(), 4, "what is written by hand stays");
    assert!(world.object("NetworkTopology nt-default")["status"]["weightCalculationTime"].is_string());
    assert_eq!(only(&world.pass(3600), "patch"), [""; 0], "nothing is written that is true already");

    world.put(app_group("KahnSort", &["web>db", "db"]));
    world.put(member("db-0", "db").on("west-1-a"));
    world.put(pod("full").cpu("1").on("west-1-a"));
    world.put(pod("full-b").cpu("2").on("west-1-b"));
    world.put(member("web-0", "web"));
    world.run();
    assert_eq!(world.node_of("web-0").map(|node| &node[..6]), Some("west-2"), "4 is near enough, 35 is not");
    world.put(measured(&[("west-1-a", "east-1-a", "9")]));
    world.pass(2);
    assert_eq!(
        written(&world, "NetperfCosts"),
        ["east>west:9", "west>east:9"],
        "that pods have moved, which waits for a minute, holds nothing up"
    );
    world.put(measured(&[("west-1-a", "east-1-a", "9"), ("west-1-a", "west-2-b", "4")]));
    world.pass(120);
    let weights = world.object("NetworkTopology nt-default")["spec"]["weights"][1].to_string();
    assert!(weights.contains(r#""bandwidthAllocated":"100M""#), "what pods ask for is added up: {weights}");

    world.put(measured(&[("west-1-a", "east-1-a", "7")]));
    world.pass(2);
    assert_eq!(written(&world, "NetperfCosts"), ["east>west:7", "west>east:7"]);
    world.put(node("alone").label(REGION, "north").label(ZONE, "north-1"));
    let log = world.pass(2);
    assert!(only(&log, "UnknownCosts").iter().any(|line| line.contains("north")), "{log:#?}");
    assert_eq!(world.object("NetworkTopology nt-default")["status"]["nodeCount"], 9);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn what_could_not_be_written_is_written_later() {
    let mut world = world_with(&json!({}), &[]);
    world.fail("patch AppGroup", "the server is away");
    world.put(app_group("KahnSort", &["web>db", "db"]));
    world.pass(5);
    assert_eq!(turns(&world), [""; 0]);
    world.heal();
    world.pass(20);
    assert_eq!(turns(&world), ["db:2", "web:1"]);
}

#[test]
fn objects_of_the_old_api_group_are_read_with_a_warning() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    let (mut group, mut network) = (app_group("KahnSort", &["web>db", "db"]), by_hand());
    group["apiVersion"] = "appgroup.diktyo.k8s.io/v1alpha1".into();
    network["apiVersion"] = "networktopology.diktyo.k8s.io/v1alpha1".into();
    world.put(group);
    world.put(network);
    world.put(member("web-0", "web"));
    let log = world.pass(2);
    assert_eq!(only(&log, "OldApiGroup").len(), 2, "{log:#?}");
    assert!(world.node_of("web-0").is_some());
}

#[test]
fn with_the_fix_an_app_group_is_that_of_a_namespace() {
    for (fixes, expected) in [(&[][..], "west"), (&["appGroupNamespaces"], "east")] {
        let mut world = world_with(&json!({}), fixes);
        put_nodes(&mut world);
        world.put(by_hand());
        world.put(app_group("KahnSort", &["web>db", "db"]));
        for number in 0..2 {
            world.put(member(&format!("foreign-{number}"), "db").cpu("0").namespace("other").on("west-1-a"));
        }
        world.put(member("db-0", "db").on("east-1-a"));
        world.put(member("web-0", "web"));
        world.run();
        assert_eq!(world.node_of("web-0").map(|node| &node[..4]), Some(expected), "{fixes:?}");
    }
}

#[test]
fn what_is_wrong_is_told_by_whoever_leads_and_again_of_another_object() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.scheduler.set_leading(false, world.now());
    let (circle, unknown) = ("InvalidAppGroup", "UnknownCosts");
    world.put(by_hand());
    world.put(app_group("KahnSort", &["web>db", "db>web"]));
    let log = world.pass(60);
    assert_eq!((only(&log, circle).len(), only(&log, unknown).len()), (0, 0), "{log:#?}");
    world.scheduler.set_leading(true, world.now());
    let log = world.pass(60);
    assert_eq!((only(&log, circle).len(), only(&log, unknown).len()), (1, 1), "{log:#?}");
    world.remove("AppGroup shop");
    let mut again = app_group("KahnSort", &["web>db", "db>web"]);
    again["metadata"]["uid"] = "another".into();
    world.put(again);
    assert_eq!(only(&world.pass(60), circle).len(), 1, "it is another one");
}

#[test]
fn a_slow_server_is_not_told_the_same_again_and_again() {
    let mut world = world_with(&json!({}), &[]);
    put_nodes(&mut world);
    world.put(by_hand());
    world.put(app_group("KahnSort", &["web>db", "db"]));
    world.pass(2);
    for number in 0..5 {
        world.put(member(&format!("db-{number}"), "db").on("west-1-a"));
    }
    world.pass(2);
    world.set_slow(true);
    for number in 0..5 {
        world.change(&format!("Pod db-{number}"), &json!({ "status": { "phase": "Running" } }));
        world.pass(3);
    }
    let log = world.catch_up();
    assert_eq!(only(&log, "patch").len(), 1, "{log:#?}");
    world.set_slow(false);
    world.pass(3);
    assert_eq!(
        world.object("AppGroup shop")["status"]["runningWorkloads"],
        5,
        "what came meanwhile is written then"
    );
}

#[test]
fn costs_are_worked_out_whichever_profile_wants_them() {
    let first = "profiles:\n- schedulerName: first\n  plugins:\n    queueSort: {disabled: [{name: \"*\"}], enabled: [{name: TopologicalSort}]}\n    multiPoint: {enabled: [{name: NetworkOverhead}]}\n- schedulerName: second\n  plugins:";
    let config =
        config(&json!({ "weightsName": "NetperfCosts" }), &[]).replacen("profiles:\n- plugins:", first, 1);
    let mut world = World::with_config(&config);
    put_nodes(&mut world);
    world.put(by_hand());
    world.put(measured(&[("west-1-a", "east-1-a", "30")]));
    world.pass(2);
    assert_eq!(written(&world, "NetperfCosts"), ["east>west:30", "west>east:30"]);
}

#[test]
fn costs_that_no_object_has_room_for_are_not_written() {
    let mut world = world_with(&json!({ "weightsName": "NetperfCosts" }), &[]);
    let name = |number: usize| format!("{}-{number:03}", "a-zone-with-a-rather-long-name");
    for number in 0..120 {
        world.put(node(&name(number)).label(REGION, "west").label(ZONE, &name(number)));
    }
    world.put(by_hand());
    let names: Vec<String> = (0..120).map(name).collect();
    let pairs: Vec<(&str, &str, &str)> = names.windows(2).map(|pair| (&*pair[0], &*pair[1], "5")).collect();
    world.put(measured(&pairs));
    let log = world.pass(60);
    let told = only(&log, "TooManyPlaces");
    assert!(told.len() == 1 && told[0].contains("an object has room for 1400000"), "{log:#?}");
    assert_eq!(written(&world, "NetperfCosts"), [""; 0]);
}

#[test]
fn the_bandwidth_of_an_app_group_is_that_of_its_namespace_with_the_fix() {
    for (fixes, expected) in [(&[][..], "100M"), (&["appGroupNamespaces"], "0")] {
        let mut world = world_with(&json!({ "weightsName": "NetperfCosts" }), fixes);
        put_nodes(&mut world);
        world.put(by_hand());
        world.put(app_group("KahnSort", &["web>db", "db"]));
        world.put(member("db-0", "db").on("west-1-a"));
        world.put(member("foreign", "web").namespace("other").on("west-2-b"));
        world.put(measured(&[("west-1-a", "west-2-b", "4")]));
        world.pass(120);
        let weights = world.object("NetworkTopology nt-default")["spec"]["weights"][1].to_string();
        let first = weights.split("bandwidthAllocated\":\"").nth(2).and_then(|rest| rest.split('"').next());
        assert_eq!(first, Some(expected), "{fixes:?}: {weights}");
    }
}
