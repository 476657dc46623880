//! Quotas of namespaces in virtual time: what is guaranteed, lent, and claimed back.

use serde_json::{Value, json};
use supercargo_testkit::{PodBuilder, node, pod};
use supercargo_world::{World, only};

fn world_with(fixes: &[&str]) -> World {
    let fixes = fixes.join(", ");
    World::with_config(&format!(
        r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {{enabled: [{{name: CapacityScheduling}}]}}
    postFilter: {{disabled: [{{name: "*"}}], enabled: [{{name: CapacityScheduling}}]}}
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
fixes: [{fixes}]
"#
    ))
}

fn quota(namespace: &str, min: &Value, max: &Value) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": { "namespace": namespace, "name": "quota", "uid": namespace }, "spec": { "min": min, "max": max },
    })
}

/// A pod of a namespace that asks for so much memory.
fn asking(namespace: &str, name: &str, memory: &str, priority: i32) -> PodBuilder {
    let created = json!({ "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" } });
    pod(name).namespace(namespace).memory(memory).cpu("1m").priority(priority).with(created)
}

fn running(pod: PodBuilder, node: &str) -> PodBuilder {
    pod.with(json!({ "spec": { "nodeName": node }, "status": { "phase": "Running", "startTime": "2026-01-01T00:00:00Z" } }))
}

/// Lets the scheduler work, and takes evicted pods away, until nothing happens any more.
fn settle(world: &mut World) -> Vec<String> {
    let mut evicted = Vec::new();
    for _ in 0..20 {
        let log = world.pass(2);
        for line in only(&log, "evict ") {
            let victim = line.split(' ').nth(1).expect("who is evicted").to_owned();
            world.remove(&format!("Pod {victim}"));
            evicted.push(victim);
        }
    }
    evicted.sort();
    evicted
}

const LOW: i32 = 10;
const MID: i32 = 50;
const HIGH: i32 = 100;

/// Two nodes of 100, and a quota of 100 that may grow to 200 for each of two namespaces, as upstream's own tests have them.
fn upstream() -> World {
    let mut world = world_with(&[]);
    for name in ["n1", "n2"] {
        world.put(node(name).with(json!({ "status": { "allocatable": { "memory": "100", "cpu": "100" } } })));
    }
    for namespace in ["ns1", "ns2"] {
        let (min, max) =
            (json!({ "memory": "100", "cpu": "100m" }), json!({ "memory": "200", "cpu": "200m" }));
        world.put(quota(namespace, &min, &max));
    }
    world
}

#[test]
fn what_was_lent_is_claimed_back() {
    let mut world = upstream();
    world.put(running(asking("ns1", "a", "50", MID), "n1"));
    world.put(running(asking("ns1", "b", "50", MID), "n1"));
    world.put(running(asking("ns1", "c", "50", LOW), "n2"));
    for (name, priority) in [("d", MID), ("e", MID), ("f", LOW)] {
        world.put(asking("ns2", name, "50", priority));
    }
    assert_eq!(settle(&mut world), ["ns1/c"]);
    assert!(world.node_of("ns2/d").is_some() && world.node_of("ns2/e").is_some());
    assert_eq!(world.node_of("ns2/f"), None);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_namespace_that_has_its_share_makes_room_among_its_own() {
    let mut world = upstream();
    for (namespace, node) in [("ns1", "n1"), ("ns2", "n2")] {
        world.put(running(asking(namespace, "mid", "50", MID), node));
        world.put(running(asking(namespace, "low", "50", LOW), node));
        world.put(asking(namespace, "new", "50", MID));
    }
    assert_eq!(settle(&mut world), ["ns1/low", "ns2/low"]);
    assert!(world.node_of("ns1/new").is_some() && world.node_of("ns2/new").is_some());
}

#[test]
fn without_quotas_it_is_ordinary_preemption() {
    let mut world = world_with(&[]);
    for name in ["n1", "n2"] {
        world.put(node(name).with(json!({ "status": { "allocatable": { "memory": "100" } } })));
    }
    for (namespace, node) in [("ns1", "n1"), ("ns2", "n2")] {
        world.put(running(asking(namespace, "high", "50", HIGH), node));
        world.put(running(asking(namespace, "low", "50", LOW), node));
        world.put(asking(namespace, "new", "50", MID));
    }
    assert_eq!(settle(&mut world), ["ns1/low", "ns2/low"]);
}

#[test]
fn whoever_has_borrowed_cannot_claim_and_no_two_nodes_are_emptied_for_one_pod() {
    let mut world = upstream();
    world.put(running(asking("ns1", "a", "50", MID), "n1"));
    for (name, node) in [("b", "n1"), ("c", "n2"), ("d", "n2")] {
        world.put(running(asking("ns2", name, "50", HIGH), node));
    }
    world.put(asking("ns2", "e", "50", HIGH));
    assert_eq!(settle(&mut world), [""; 0]);
    assert_eq!(world.node_of("ns2/e"), None);

    let mut world = upstream();
    for node in ["n1", "n2"] {
        world.put(running(asking("ns1", &format!("low-{node}"), "50", LOW), node));
        world.put(running(asking("ns2", &format!("mid-{node}"), "50", MID), node));
    }
    world.put(asking("ns1", "big", "100", HIGH));
    world.put(asking("ns2", "big", "100", HIGH));
    assert_eq!(settle(&mut world), [""; 0]);
}

#[test]
fn a_pod_that_fits_on_no_node_makes_nobody_go() {
    let mut world = upstream();
    for (namespace, name, priority, node) in
        [("ns1", "a", MID, "n1"), ("ns1", "b", MID, "n1"), ("ns1", "c", LOW, "n2"), ("ns2", "d", MID, "n2")]
    {
        world.put(running(asking(namespace, name, "50", priority), node));
    }
    world.put(asking("ns1", "e", "150", HIGH));
    world.put(asking("ns2", "f", "150", HIGH));
    assert_eq!(settle(&mut world), [""; 0]);
    assert_eq!((world.node_of("ns1/e"), world.node_of("ns2/f")), (None, None));
}

#[test]
fn three_quotas_share() {
    let mut world = world_with(&[]);
    for name in ["n1", "n2"] {
        world
            .put(node(name).with(json!({ "status": { "allocatable": { "cpu": "100m", "memory": "1Gi" } } })));
    }
    for (namespace, min, max) in [("ns1", 1, 3), ("ns2", 3, 3), ("ns3", 3, 4)] {
        let amount = |cpu: i32| json!({ "cpu": format!("{cpu}m"), "memory": "1Gi" });
        world.put(quota(namespace, &amount(min), &amount(max)));
    }
    let small = |namespace: &str, name: &str, priority| asking(namespace, name, "1", priority);
    world.put(running(small("ns1", "high", HIGH), "n1"));
    for name in ["m1", "m2"] {
        world.put(running(small("ns1", name, MID), "n2"));
    }
    for (name, node) in [("m1", "n1"), ("m2", "n2"), ("m3", "n2")] {
        world.put(running(small("ns2", name, MID), node));
    }
    for name in ["a", "b", "c", "d"] {
        world.put(small("ns3", name, MID));
    }
    assert_eq!(settle(&mut world), ["ns1/m1", "ns1/m2"]);
    let bound =
        ["a", "b", "c", "d"].into_iter().filter(|name| world.node_of(&format!("ns3/{name}")).is_some());
    assert_eq!(bound.count(), 3);
}

#[test]
fn pods_that_ran_before_their_quota_count() {
    let mut world = world_with(&[]);
    world.put(node("n1"));
    world.put(running(asking("ns1", "a", "1Gi", MID), "n1"));
    world.run();
    let amount = json!({ "cpu": "1", "memory": "1Gi" });
    world.put(quota("ns1", &amount, &amount));
    world.put(asking("ns1", "b", "1Gi", MID));
    let log = world.run();
    let said = only(&log, "FailedScheduling on ns1/b")[0];
    assert!(said.contains("because ElasticQuota ns1 is more than Max"), "{said}");
    world.remove("Pod ns1/a");
    world.pass(5);
    assert_eq!(world.node_of("ns1/b"), Some("n1"));
}

#[test]
fn what_a_quota_does_not_name_is_free_if_it_is_asked_for() {
    for (fixes, expected) in [(&[][..], None), (&["unlistedQuotaResources"][..], Some("n1"))] {
        let mut world = world_with(fixes);
        world.put(node("n1"));
        world.put(quota("ns1", &json!({ "cpu": "2" }), &json!({ "cpu": "3" })));
        world.put(asking("ns1", "a", "1Gi", MID));
        world.run();
        assert_eq!(world.node_of("ns1/a"), expected, "{fixes:?}");
    }
}

#[test]
fn a_quotas_status_says_what_runs() {
    let mut world = world_with(&[]);
    world.put(node("n1"));
    let amount = json!({ "cpu": "2", "memory": "4Gi" });
    world.put(quota("ns1", &amount, &amount));
    world.run();
    world.pass(2);
    let used = |world: &World| world.object("ElasticQuota ns1/quota")["status"]["used"].clone();
    assert_eq!(used(&world), json!({ "cpu": "0", "memory": "0" }));
    world.put(running(asking("ns1", "a", "1Gi", MID), "n1"));
    world.run();
    let log = world.pass(2);
    assert_eq!(used(&world), json!({ "cpu": "1m", "memory": "1Gi" }));
    assert_eq!(only(&log, "Synced on ns1/quota").len(), 1, "{log:?}");
    world.change("Pod ns1/a", &json!({ "status": { "phase": "Succeeded" } }));
    world.run();
    world.pass(2);
    assert_eq!(used(&world), json!({ "cpu": "0", "memory": "0" }));
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_quotas_status_says_what_is_enforced_if_that_is_asked_for() {
    let mut world = world_with(&["quotaStatusPlaced"]);
    world.put(node("n1"));
    let amount = json!({ "cpu": "2", "memory": "4Gi" });
    world.put(quota("ns1", &amount, &amount));
    world.put(asking("ns1", "a", "1Gi", MID));
    world.run();
    world.pass(2);
    assert_eq!(world.node_of("ns1/a"), Some("n1"), "it is bound, and does not run yet");
    let used = |world: &World| world.object("ElasticQuota ns1/quota")["status"]["used"].clone();
    assert_eq!(used(&world), json!({ "cpu": "1m", "memory": "1Gi" }));
    world.remove("Pod ns1/a");
    world.run();
    world.pass(2);
    assert_eq!(used(&world), json!({ "cpu": "0", "memory": "0" }));
}

#[test]
fn a_quota_that_takes_the_place_of_another_is_told_on_that() {
    let mut world = world_with(&[]);
    world.put(node("n1"));
    let quota = |name: &str, cpu: &str| {
        let mut quota =
            quota("ns1", &json!({ "cpu": cpu, "memory": "4Gi" }), &json!({ "cpu": cpu, "memory": "4Gi" }));
        quota["metadata"] = json!({ "namespace": "ns1", "name": name, "uid": name });
        quota
    };
    world.put(quota("late", "1"));
    world.run();
    world.put(quota("early", "0"));
    let log = world.run();
    let told = only(&log, "DuplicateElasticQuota on ns1/late");
    assert!(told.len() == 1 && told[0].contains("another ElasticQuota, early, which counts"), "{log:#?}");
    // It counts, and nobody is stuck: the pod waits for room in the quota, and gets it.
    world.put(asking("ns1", "a", "1Gi", MID));
    world.run();
    assert_eq!(world.node_of("ns1/a"), None);
    world.remove("ElasticQuota ns1/early");
    world.pass(5);
    assert_eq!(world.node_of("ns1/a"), Some("n1"));
}

#[test]
fn odd_quotas_are_told_of() {
    let mut world = world_with(&[]);
    world.put(node("n1"));
    world.put(quota("ns1", &json!({ "cpu": "3", "memory": "1Gi" }), &json!({ "cpu": "2", "memory": "1Gi" })));
    let mut second = quota("ns1", &json!({}), &json!({}));
    second["metadata"] = json!({ "namespace": "ns1", "name": "second", "uid": "second" });
    world.put(second);
    let mut old =
        quota("ns2", &json!({ "cpu": "1", "memory": "1Gi" }), &json!({ "cpu": "1", "memory": "1Gi" }));
    old["apiVersion"] = json!("scheduling.sigs.k8s.io/v1alpha1");
    world.put(old);
    world.put(asking("ns2", "a", "1Gi", MID));
    world.put(asking("ns2", "b", "1Gi", MID));
    // A min above the max stops nobody: pods go up to the max.
    for name in ["a", "b"] {
        world.put(asking("ns1", name, "512Mi", MID));
    }
    world.put(asking("ns1", "c", "1Mi", MID));
    let log = world.run();
    for (event, words) in [
        ("InvalidElasticQuota on ns1/quota", "spec.min.cpu is 3, which is more than spec.max.cpu, 2"),
        ("DuplicateElasticQuota on ns1/second", "another ElasticQuota, quota, which counts"),
        ("OldApiGroup on ns2/quota", "scheduling.sigs.k8s.io is the old name"),
    ] {
        assert!(log.iter().any(|line| line.contains(event) && line.contains(words)), "{event}: {log:#?}");
    }
    let bound = ["a", "b"].into_iter().filter(|name| world.node_of(&format!("ns2/{name}")).is_some()).count();
    assert_eq!(bound, 1, "the old quota counts");
    assert!(world.node_of("ns1/a").is_some() && world.node_of("ns1/b").is_some());
    assert!(only(&log, "FailedScheduling on ns1/c")[0].contains("is more than Max"), "{log:#?}");
}
