//! Quotas of namespaces in virtual time: what is guaranteed, lent, and claimed back.

use std::collections::BTreeSet;

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
    let mut evicted: Vec<String> = (0..20).flat_map(|_| settle_once(world)).collect();
    evicted.sort();
    evicted
}

/// The same, once. A pod may be evicted for two others.
fn settle_once(world: &mut World) -> BTreeSet<String> {
    let log = world.pass(2);
    let victim = |line: &&str| line.split(' ').nth(1).expect("who is evicted").to_owned();
    let victims: BTreeSet<String> = only(&log, "evict ").iter().map(victim).collect();
    for victim in &victims {
        world.remove(&format!("Pod {victim}"));
    }
    victims
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
fn what_a_quota_does_not_name_is_borrowed_from_those_that_name_it() {
    let mut world = world_with(&["unlistedQuotaResources"]);
    world.put(node("n1").with(json!({ "status": { "allocatable": { "memory": "100", "cpu": "100" } } })));
    world.put(quota("ns1", &json!({ "cpu": "100m" }), &json!({ "cpu": "200m" })));
    world.put(quota("ns2", &json!({ "cpu": "100m", "memory": "100" }), &json!({ "cpu": "200m" })));
    for name in ["a", "b"] {
        world.put(running(asking("ns1", name, "50", HIGH), "n1"));
    }
    world.put(asking("ns2", "c", "50", LOW));
    assert_eq!(settle(&mut world).len(), 1, "one of those goes that have borrowed memory");
    assert_eq!(world.node_of("ns2/c"), Some("n1"));
}

#[test]
fn ten_thousand_quotas_are_kept_true_in_turns() {
    const QUOTAS: usize = 10_000;
    let mut world = world_with(&[]);
    let room = json!({ "memory": "64Gi", "cpu": "64", "pods": "10000" });
    world.put(node("n1").with(json!({ "status": { "allocatable": room } })));
    let amount = json!({ "cpu": "1", "memory": "1Gi" });
    for number in 0..QUOTAS {
        world.put(quota(&format!("ns{number:05}"), &amount, &amount));
    }
    for number in (0..QUOTAS).step_by(QUOTAS / 20) {
        world.put(asking(&format!("ns{number:05}"), "a", "1Gi", MID));
        world.put(asking(&format!("ns{number:05}"), "b", "1Gi", MID));
    }
    let mut log = world.run();
    assert_eq!(only(&log, "bind").len(), 20);
    // Those that change every second are in nobody's way.
    for step in 0..30 {
        for number in 0..100 {
            let name = format!("p{step}");
            world.put(running(asking(&format!("ns{number:05}"), &name, "1Mi", MID), "n1"));
        }
        log.extend(world.pass(1));
    }
    let has_status = |object: &&Value| object["status"]["used"].is_object();
    assert_eq!(world.objects("ElasticQuota").filter(has_status).count(), QUOTAS);
    assert_eq!(only(&log, "Synced on ns09999/quota").len(), 1);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_quotas_status_counts_sidecars_as_the_quota_does() {
    for (fixes, expected) in [(&[][..], "1Gi"), (&["quotaSidecars"][..], "1536Mi")] {
        let mut world = world_with(fixes);
        world.put(node("n1"));
        world.put(quota("ns1", &json!({ "memory": "4Gi" }), &json!({ "memory": "4Gi" })));
        let requests = json!({ "requests": { "memory": "512Mi" } });
        let sidecar = json!({ "name": "side", "restartPolicy": "Always", "resources": requests });
        let pod = running(asking("ns1", "a", "1Gi", MID), "n1");
        world.put(pod.with(json!({ "spec": { "initContainers": [sidecar] } })));
        world.run();
        world.pass(2);
        let used = &world.object("ElasticQuota ns1/quota")["status"]["used"];
        assert_eq!(used["memory"], expected, "{fixes:?}");
    }
}

#[test]
fn a_quota_is_told_to_be_synced_when_it_is() {
    let mut world = world_with(&[]);
    world.put(node("n1"));
    world.fail("patch ElasticQuota", "the server is away");
    world.put(quota("ns1", &json!({ "cpu": "2" }), &json!({ "cpu": "2" })));
    let log = world.pass(5);
    assert!(log.iter().any(|line| line.contains("the server is away")), "{log:#?}");
    assert_eq!(only(&log, "Synced"), [""; 0]);
    world.heal();
    assert_eq!(only(&world.pass(10), "Synced").len(), 1);
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

/// So many nodes of four pods each, all of which a namespace has taken that is guaranteed half of them; another has the other half.
fn lent(nodes: usize) -> World {
    // Without the fix, pods that are nominated make nodes fail on which victims are few, and more go on others, as upstream.
    let mut world = world_with(&["quotaEvictions"]);
    let amount = |pods: usize| json!({ "memory": (pods * 10).to_string(), "cpu": format!("{pods}m") });
    for namespace in ["ns1", "ns2"] {
        world.put(quota(namespace, &amount(nodes * 2), &amount(nodes * 4)));
    }
    for number in 0..nodes {
        let name = format!("n{number:02}");
        world.put(node(&name).with(json!({ "status": { "allocatable": { "memory": "40", "cpu": "1" } } })));
        for place in 0..4 {
            world.put(running(asking("ns1", &format!("a{number:02}-{place}"), "10", LOW), &name));
        }
    }
    world
}

#[test]
fn what_was_lent_is_claimed_back_to_the_last_pod_and_not_further() {
    const NODES: usize = 22;
    let mut world = lent(NODES);
    for number in 0..NODES * 2 + 1 {
        world.put(asking("ns2", &format!("b{number:02}"), "10", MID));
    }
    assert_eq!(settle(&mut world).len(), NODES * 2);
    let is_bound = |number: &usize| world.node_of(&format!("ns2/b{number:02}")).is_some();
    assert_eq!((0..NODES * 2 + 1).filter(is_bound).count(), NODES * 2);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn nodes_are_named_only_where_they_are_few() {
    for (nodes, words) in [
        (
            2,
            "1 No victims found on node n00 for preemptor pod b, 1 No victims found on node n01 for preemptor pod b.",
        ),
        (102, " 102 No victims found for preemptor pod b."),
    ] {
        // Nobody has borrowed; and a pod that has its share looks among its own, of which there are none.
        for own_min in ["9999", "0"] {
            let mut world = lent(nodes);
            let amount = |memory: &str| json!({ "memory": memory, "cpu": "9" });
            world.put(quota("ns1", &amount("9999"), &amount("9999")));
            world.put(quota("ns2", &amount(own_min), &amount("9999")));
            world.put(asking("ns2", "b", "10", MID));
            let log = world.run();
            let said = only(&log, "FailedScheduling on ns2/b")[0];
            assert!(said.contains(words), "{own_min}: {said}");
        }
    }
}

/// Numbers without a pattern.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A world asks all plugins about all nodes again after each decision, and panics if that comes to something else: what was found out for
/// one pod about the victims on a node must hold for the next, while quotas are lent, claimed back, used up and changed.
#[test]
fn what_is_known_of_victims_holds_whatever_happens_to_quotas() {
    const NAMESPACES: [&str; 4] = ["ns1", "ns2", "ns3", "free"];
    for seed in 0..60 {
        let mut chance = Chance(seed);
        let mut world = world_with(&[]);
        for number in 0..4 {
            let room = json!({ "status": { "allocatable": { "memory": "60", "cpu": "1" } } });
            world.put(node(&format!("n{number}")).with(room));
        }
        for step in 0..40 {
            let namespace = NAMESPACES[chance.below(NAMESPACES.len())];
            match chance.below(8) {
                0 | 1 if namespace != "free" => {
                    let min = chance.below(12) * 10;
                    let amount = |memory: usize| json!({ "memory": memory.to_string(), "cpu": "1" });
                    world.put(quota(namespace, &amount(min), &amount(min + chance.below(12) * 10)));
                }
                2 => _ = settle_once(&mut world),
                _ => {
                    let (memory, priority) = (["10", "20"][chance.below(2)], [LOW, HIGH][chance.below(2)]);
                    world.put(asking(namespace, &format!("p{step}"), memory, priority));
                    world.run();
                }
            }
        }
        settle(&mut world);
        assert_eq!(world.complaints(), [""; 0], "seed {seed}");
    }
}
