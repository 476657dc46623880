//! NetworkOverhead by counts of pods in places, beside NetworkOverhead asked about every node, while nodes move, come and go, pods come and
//! go, and the objects change.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_conformance::samples;
use supercargo_engine::{Engine, EngineOptions, IndexLimits, Indexing, Rules, Seed};
use supercargo_framework::{Fixes, Needs};
use supercargo_model::{Decoded, Pod, Timestamp};
use supercargo_plugins::community::NetworkOverhead;

const HISTORIES: u64 = 40;
const STEPS: usize = 60;
const WORKLOADS: [&str; 4] = ["p1", "p2", "p3", "p4"];
const NOW: Timestamp = Timestamp::from_nanoseconds(1_800_000_000_000_000_000);

/// Numbers that look drawn, the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

fn node(draw: &mut Draw) -> Value {
    let name = format!("n{}", draw.below(9));
    let mut labels = json!({ "kubernetes.io/hostname": name });
    // A value may be empty, the same zone be in two regions, and a region have the name of a zone.
    for (key, values) in [("region", ["r1", "r2", "", "-"]), ("zone", ["z1", "z2", "r1", "-"])] {
        let value = draw.pick(&values);
        if value != "-" {
            labels[format!("topology.kubernetes.io/{key}")] = value.into();
        }
    }
    let room = json!({ "cpu": draw.pick(&["2", "4"]), "memory": "8Gi", "pods": "20" });
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels }, "status": { "allocatable": room, "capacity": room } })
}

fn pod(name: &str, workload: &str, on: Option<&str>) -> Value {
    let labels = json!({ "appgroup.diktyo.x-k8s.io": "app", "appgroup.diktyo.x-k8s.io.workload": workload });
    let container = json!({ "name": "main", "resources": { "requests": { "cpu": "100m" } } });
    let mut spec = json!({ "schedulerName": "default-scheduler", "containers": [container] });
    if let Some(node) = on {
        spec["nodeName"] = node.into();
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "default", "name": name, "uid": name, "labels": labels }, "spec": spec })
}

fn app_group(draw: &mut Draw) -> Value {
    let workload = |name: &str| json!({ "kind": "Deployment", "name": name, "selector": name });
    // The last workload is named twice, so that what it calls may count twice.
    let entries: Vec<Value> = (WORKLOADS.iter().chain([&"p4"]))
        .map(|name| {
            let called: Vec<Value> = (0..draw.below(3))
                .map(|_| json!({ "workload": workload(draw.pick(&WORKLOADS)), "maxNetworkCost": draw.pick(&[0, 5, 20, 100]) }))
                .collect();
            json!({ "workload": workload(name), "dependencies": called })
        })
        .collect();
    json!({
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1", "kind": "AppGroup", "metadata": { "namespace": "default", "name": "app" },
        "spec": { "workloads": entries },
    })
}

fn topology(draw: &mut Draw) -> Value {
    let mut of_key = |key: &str, names: &[&str]| {
        let mut origins = Vec::new();
        for from in names {
            let costs: Vec<Value> = (names.iter().filter(|to| *to != from))
                .filter_map(|to| {
                    let cost = json!({ "destination": to, "networkCost": draw.pick(&[0, 1, 5, 10, 50]) });
                    (draw.below(6) > 0).then_some(cost)
                })
                .collect();
            origins.push(json!({ "origin": from, "costList": costs }));
        }
        json!({ "topologyKey": format!("topology.kubernetes.io/{key}"), "originList": origins })
    };
    let lists = [of_key("region", &["r1", "r2"]), of_key("zone", &["z1", "z2", "r1"])];
    json!({
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1", "kind": "NetworkTopology",
        "metadata": { "namespace": "default", "name": "nt-default" },
        "spec": { "configmapName": "none", "weights": [{ "name": "UserDefined", "topologyList": lists }] },
    })
}

#[test]
fn counts_say_what_is_said_of_every_node() {
    let registry = supercargo_plugins::registry();
    let kube = supercargo_config::KubeSchedulerConfiguration::default();
    let mut profile = supercargo_config::build_profile(&kube, &registry, 0).expect("the default profile");
    samples::add::<NetworkOverhead>(&mut profile, 3);
    let decoder = Needs::of([&profile]).decoder();
    let mut answered = 0;
    for seed in 0..HISTORIES {
        let mut draw = Draw(seed);
        let mut fixes = Fixes::default();
        if seed % 4 == 1 {
            assert!(fixes.enable("unknownNetworkCosts") && fixes.enable("appGroupNamespaces"));
        }
        let options = EngineOptions { rules: Rules::LIVE, seed: Seed(seed), fixes, indexing: Indexing::On };
        let limits = match seed % 3 {
            0 => IndexLimits::default(),
            1 => IndexLimits { singles: 0, ..IndexLimits::default() },
            _ => IndexLimits { domains: 1, singles: 1, ..IndexLimits::default() },
        };
        let mut engine = Engine::new(vec![profile.clone()], options).with_index_limits(limits);
        let put = |engine: &mut Engine, object: &Value| -> Option<Arc<Pod>> {
            let decoded = decoder.decode(&object.to_string()).expect("an object");
            match decoded {
                Decoded::Pod(words) => {
                    engine.cluster.remove_pod(&words.metadata().uid);
                    engine.cluster.add(Decoded::Pod(words)).expect("a pod")
                }
                decoded => engine.cluster.add(decoded).expect("an object"),
            }
        };
        for _ in 0..6 {
            put(&mut engine, &node(&mut draw));
        }
        put(&mut engine, &app_group(&mut draw));
        put(&mut engine, &topology(&mut draw));
        for step in 0..STEPS {
            let number = draw.below(30);
            match draw.below(20) {
                0..=2 => _ = put(&mut engine, &node(&mut draw)),
                3 => _ = engine.cluster.remove_node(&format!("n{number}")),
                4..=6 => _ = engine.cluster.remove_pod(&format!("bound-{number}")),
                7 => _ = put(&mut engine, &topology(&mut draw)),
                8 => _ = put(&mut engine, &app_group(&mut draw)),
                _ => {
                    let (workload, node) = (draw.pick(&WORKLOADS), format!("n{}", draw.below(9)));
                    put(&mut engine, &pod(&format!("bound-{number}"), workload, Some(&node)));
                }
            }
            for workload in WORKLOADS {
                let pending = put(&mut engine, &pod(&format!("pending-{workload}"), workload, None));
                let pending = pending.expect("a pod without a node is pending");
                let difference = engine.check_index(&pending, NOW).expect("the profile is known");
                assert_eq!(difference, None, "history {seed}, step {step}, {workload}");
            }
        }
        answered += engine.index_statistics().answered;
    }
    let all = HISTORIES * STEPS as u64 * WORKLOADS.len() as u64;
    assert!(answered > all / 2, "only {answered} of {all} were decided by counts");
}
