//! NUMA zones in virtual time: topologies that are late, pods of other schedulers, and room that preemption makes in a zone.

use serde_json::{Value, json};
use supercargo_testkit::{PodBuilder, node, pod};
use supercargo_world::{World, only};

/// The fingerprints of pods of the namespace default, by their names.
const OF_A: &str = "pfp0v00173ac1f6debaedf3d";
const OF_B: &str = "pfp0v0016e71eed5e95ab132";
const OF_A_AND_B: &str = "pfp0v001dced628646ab6893";
const OF_STRANGER: &str = "pfp0v001befd1114709a68a7";
const OF_NOBODY: &str = "pfp0v001ef46db3751d8e999";

fn world_with(args: &str, fixes: &[&str]) -> World {
    World::with_config(&config(args, fixes))
}

fn config(args: &str, fixes: &[&str]) -> String {
    let fixes = fixes.join(", ");
    format!(
        r"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {{enabled: [{{name: NodeResourceTopologyMatch}}]}}
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args: {args}
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
fixes: [{fixes}]
"
    )
}

/// Pods are counted on top of topologies, which are looked at every five seconds.
const COUNTING: &str = "{cacheResyncPeriodSeconds: 5, cache: {informerMode: Shared}}";

/// What is left in the zones of n1, each of four cores.
fn topology(cores: [u32; 2], fingerprint: &str) -> Value {
    let zone = |number: usize| {
        let resource = |name: &str, all: &str, left: String| json!({ "name": name, "capacity": all, "allocatable": all, "available": left });
        let resources =
            [resource("cpu", "4", cores[number].to_string()), resource("memory", "8Gi", "8Gi".to_owned())];
        json!({ "name": format!("node-{number}"), "type": "Node", "resources": resources })
    };
    json!({
        "apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": { "name": "n1" },
        "attributes": [
            { "name": "topologyManagerPolicy", "value": "single-numa-node" },
            { "name": "nodeTopologyPodsFingerprint", "value": fingerprint },
        ],
        "zones": [zone(0), zone(1)],
    })
}

fn guaranteed(name: &str, cores: u32) -> PodBuilder {
    let amounts = json!({ "cpu": cores.to_string(), "memory": "1Gi" });
    let container = json!({ "name": "c0", "resources": { "requests": amounts, "limits": amounts } });
    pod(name).with(json!({ "spec": { "containers": [container] } }))
}

fn running() -> Value {
    json!({ "status": { "phase": "Running" } })
}

/// A node of eight cores in two zones, of which a topology says that they are free.
fn world_with_node(args: &str, fixes: &[&str]) -> World {
    let mut world = world_with(args, fixes);
    world.put(node("n1").cpu("8").memory("16Gi"));
    world.put(topology([4, 4], ""));
    world
}

#[test]
fn a_topology_that_is_late_sends_pods_where_they_are_refused() {
    let mut world = world_with_node("{}", &[]);
    for (name, cores) in [("a", 3), ("b", 3), ("c", 2)] {
        world.put(guaranteed(name, cores));
    }
    world.run();
    assert_eq!(world.node_of("c"), Some("n1"), "which has one core left in each zone");
}

#[test]
fn no_zone_is_overcommitted_while_a_topology_is_late() {
    let mut world = world_with_node(COUNTING, &["numaResyncPendingPods"]);
    world.put(guaranteed("a", 3));
    world.run();
    assert_eq!(world.node_of("a"), Some("n1"));
    world.put(guaranteed("b", 3));
    world.pass(30);
    let waits = "unschedulable: NodeResourceTopologyMatch";
    assert_eq!(world.place_of("b"), waits, "nobody knows in which zone a is");

    world.change("Pod a", &running());
    world.put(topology([1, 4], OF_A));
    world.run();
    assert_eq!(world.node_of("b"), None, "nobody has looked at it yet");
    world.pass(6);
    assert_eq!(world.node_of("b"), Some("n1"), "it is tried again when somebody has");

    world.put(guaranteed("c", 2));
    world.pass(30);
    assert_eq!(world.place_of("c"), waits, "b is in the other zone");
    world.change("Pod b", &running());
    world.put(topology([1, 1], OF_A_AND_B));
    world.pass(30);
    assert_eq!(world.place_of("c"), waits, "two cores are left, but not in one zone");

    world.remove("Pod a");
    world.put(topology([4, 1], OF_B));
    world.pass(30);
    assert_eq!(world.node_of("c"), Some("n1"));
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_topology_without_all_pods_does_not_count() {
    let mut world = world_with_node(COUNTING, &[]);
    world.put(guaranteed("a", 3));
    world.run();
    world.change("Pod a", &running());
    world.put(guaranteed("b", 3));
    for fingerprint in ["", "nonsense", OF_B, OF_A_AND_B] {
        world.put(topology([4, 4], fingerprint));
        world.pass(30);
        assert_eq!(world.node_of("b"), None, "{fingerprint:?}");
    }
}

#[test]
fn pods_that_have_not_started_are_forgotten_only_as_upstream_does() {
    for (fixes, expected) in [(&[][..], Some("n1")), (&["numaResyncPendingPods"][..], None)] {
        let mut world = world_with_node(COUNTING, fixes);
        world.put(guaranteed("a", 1).on("n1").with(running()));
        world.put(topology([3, 4], OF_A));
        world.put(guaranteed("b", 3));
        world.run();
        assert_eq!(world.node_of("b"), Some("n1"));
        // It takes a while to start, and meanwhile the topology says what it said before.
        world.put(guaranteed("c", 3));
        world.pass(30);
        assert_eq!(world.node_of("c"), expected, "{fixes:?}");
    }
}

#[test]
fn a_node_with_a_pod_of_another_scheduler_is_left_alone_until_its_topology_has_it() {
    let mut world = world_with_node(COUNTING, &[]);
    world.put(guaranteed("stranger", 2).on("n1").scheduler("other").with(running()));
    world.put(guaranteed("a", 1));
    world.pass(30);
    assert_eq!(world.place_of("a"), "unschedulable: NodeResourceTopologyMatch");
    world.put(topology([2, 4], OF_STRANGER));
    world.pass(6);
    assert_eq!(world.node_of("a"), Some("n1"));
}

#[test]
fn a_topology_that_comes_after_the_start_counts() {
    let mut world = world_with(COUNTING, &[]);
    world.put(node("n1").cpu("8").memory("16Gi"));
    world.run();
    world.put(topology([1, 1], ""));
    world.put(guaranteed("a", 2));
    world.run();
    assert_eq!(world.node_of("a"), None);
    world.put(topology([1, 2], ""));
    world.pass(2);
    assert_eq!(world.node_of("a"), Some("n1"), "nothing was counted on top of the old one");
}

#[test]
fn a_node_is_given_to_one_pod_at_a_time() {
    let mut world = world_with_node("{discardReservedNodes: true}", &[]);
    world.set_slow(true);
    for name in ["a", "b"] {
        world.put(guaranteed(name, 1));
    }
    world.run();
    assert_eq!(world.place_of("b"), "unschedulable: NodeResourceTopologyMatch");
    world.set_slow(false);
    world.catch_up();
    world.pass(5);
    assert_eq!((world.node_of("a"), world.node_of("b")), (Some("n1"), Some("n1")));
}

/// A zone with two pods, and another one with a third; all of it is taken.
fn full_world(mode: &str) -> World {
    let args =
        format!("{{cacheResyncPeriodSeconds: 5, cache: {{informerMode: Shared}}, preemptionMode: {mode}}}");
    let mut world = world_with(&args, &[]);
    world.put(node("n1").cpu("8").memory("16Gi"));
    for (name, cores) in [("p0", 2), ("p1", 2), ("p2", 4)] {
        let started = json!({ "status": { "startTime": "2026-01-01T00:00:00Z" } });
        world.put(guaranteed(name, cores).namespace("ns").on("n1").with(running()).with(started));
    }
    let mut full = topology([0, 0], "");
    let placement = json!({
        "name": "topology.node.k8s.io/numaplacement-metadata", "value": "npv0v001::ve=leb89::cc=3::nn=2::bn=0",
    });
    full["attributes"].as_array_mut().expect("it has attributes").push(placement);
    full["zones"][1]["attributes"] =
        json!([{ "name": "topology.node.k8s.io/numaplacement-vector", "value": "$" }]);
    for zone in [0, 1] {
        full["zones"][zone]["resources"][1]["available"] = "6Gi".into();
    }
    world.put(full);
    world
}

#[test]
fn preemption_frees_one_zone_and_not_half_of_two() {
    let mut world = full_world("Enabled");
    world.put(guaranteed("important", 4).priority(100));
    let log = world.run();
    let evicted = only(&log, "evict ");
    assert!(evicted.len() == 1 && evicted[0].contains("ns/p2"), "{log:?}");
    world.remove("Pod ns/p2");
    world.put(topology([0, 4], ""));
    world.pass(10);
    assert_eq!(world.node_of("important"), Some("n1"));

    let mut world = full_world("Disabled");
    world.put(guaranteed("important", 4).priority(100));
    let log = world.run();
    assert!(only(&log, "evict ").is_empty(), "nobody knows which zone a pod would leave: {log:?}");
}

#[test]
fn odd_topologies_keep_no_pod_waiting() {
    for args in ["{}", COUNTING, "{discardReservedNodes: true}", "{scoringStrategy: {type: LeastNUMANodes}}"]
    {
        let mut world = world_with(args, &[]);
        world.put(node("n1").cpu("8").memory("16Gi"));
        for object in [
            json!({ "metadata": { "name": "nobody" }, "zones": topology([1, 1], "")["zones"] }),
            json!({ "metadata": { "name": "n1" } }),
            json!({ "metadata": { "name": "n1" }, "zones": null, "attributes": null, "topologyPolicies": null }),
            json!({ "metadata": { "name": "n1" }, "zones": [{ "name": "node-900", "type": "Node" }, { "name": "", "type": "" }] }),
        ] {
            let mut object = object;
            object["apiVersion"] = "topology.node.k8s.io/v1alpha2".into();
            object["kind"] = "NodeResourceTopology".into();
            world.put(object);
        }
        world.put(guaranteed("a", 1));
        world.run();
        assert_eq!(world.node_of("a"), Some("n1"), "{args}");
        world.remove("NodeResourceTopology n1");
        world.put(guaranteed("b", 1));
        world.pass(10);
        assert_eq!(world.node_of("b"), Some("n1"), "{args}");
        assert_eq!(world.complaints(), [""; 0]);
    }
}

#[test]
fn topologies_are_looked_at_for_ever_whatever_the_clock_says() {
    for seconds in [-3_600, -10, -1, 1, 10] {
        let mut world = world_with_node(COUNTING, &[]);
        world.pass(12);
        world.set_clock(seconds);
        world.pass(30);
        world.put(guaranteed("stranger", 2).on("n1").scheduler("other").with(running()));
        world.put(topology([2, 4], OF_STRANGER));
        world.put(guaranteed("a", 1));
        world.pass(10);
        assert_eq!(world.node_of("a"), Some("n1"), "{seconds}");
    }
}

#[test]
fn a_pod_of_a_profile_without_the_plugin_is_one_of_another_scheduler() {
    let sibling = "profiles:\n- schedulerName: sibling\n- schedulerName: default-scheduler\n  plugins:";
    let config = config(COUNTING, &[]).replacen("profiles:\n- plugins:", sibling, 1);
    let mut world = World::with_config(&config);
    world.put(node("n1").cpu("8").memory("16Gi"));
    world.put(topology([4, 4], ""));
    world.put(guaranteed("stranger", 2).scheduler("sibling"));
    world.run();
    assert_eq!(world.node_of("stranger"), Some("n1"));
    world.put(guaranteed("a", 3));
    world.pass(30);
    assert_eq!(world.place_of("a"), "unschedulable: NodeResourceTopologyMatch", "nobody has counted it");
    world.change("Pod stranger", &running());
    world.put(topology([2, 4], OF_STRANGER));
    world.pass(6);
    assert_eq!(world.node_of("a"), Some("n1"));
}

#[test]
fn a_node_without_pods_is_believed_though_another_scheduler_gave_it_one() {
    let mut world = world_with_node(COUNTING, &[]);
    world.put(guaranteed("stranger", 2).on("n1").scheduler("other").with(running()));
    world.pass(6);
    world.remove("Pod stranger");
    world.put(guaranteed("a", 1));
    world.pass(30);
    assert_eq!(world.node_of("a"), None, "its topology does not say whom it has counted");
    world.put(topology([4, 4], OF_NOBODY));
    world.pass(6);
    assert_eq!(world.node_of("a"), Some("n1"));
}

#[test]
fn the_newest_topology_counts_when_the_last_pod_is_gone_that_it_lacked() {
    let mut world = world_with_node(COUNTING, &[]);
    world.put(guaranteed("a", 1));
    world.run();
    world.put(topology([2, 2], ""));
    world.remove("Pod a");
    world.put(guaranteed("b", 3));
    world.pass(4);
    assert_eq!(world.node_of("b"), None, "a core of each zone is gone for good");
    world.put(guaranteed("c", 2));
    world.pass(4);
    assert_eq!(world.node_of("c"), Some("n1"));
}

#[test]
fn pods_that_went_while_nobody_counted_are_not_counted_later() {
    let mut world = world_with_node(COUNTING, &[]);
    world.put(guaranteed("a", 3));
    world.put(guaranteed("b", 1));
    world.run();
    world.reconfigure(&config("{}", &[]));
    world.remove("Pod a");
    world.run();
    world.reconfigure(&config(COUNTING, &[]));
    world.put(guaranteed("c", 4));
    world.put(guaranteed("d", 3));
    world.pass(2);
    assert_eq!(world.node_of("c"), None, "b is there");
    assert_eq!(world.node_of("d"), Some("n1"));
}

#[test]
fn a_victim_that_has_not_started_does_not_keep_preemption_from_a_zone() {
    let mut world = full_world("Enabled");
    world.put(node("n1").cpu("9").memory("16Gi"));
    world.put(guaranteed("late", 1).namespace("ns").on("n1"));
    world.put(guaranteed("important", 4).priority(100));
    let log = world.run();
    let evicted = only(&log, "evict ");
    assert!(evicted.len() == 1 && evicted[0].contains("ns/p2"), "{log:?}");
}

#[test]
fn what_is_odd_about_a_topology_is_told_once() {
    const LEAST: &str = "{scoringStrategy: {type: LeastNUMANodes}}";
    for args in ["{}", COUNTING, "{discardReservedNodes: true}", LEAST] {
        let mut world = world_with(args, &[]);
        world.put(node("n1").cpu("8").memory("16Gi"));
        let mut odd = topology([4, 4], "");
        odd["zones"][0]["name"] = "numa-node-0".into();
        odd["zones"][1]["name"] = "numa-node-1".into();
        world.put(odd.clone());
        let mut elsewhere = topology([4, 4], "");
        elsewhere["metadata"]["name"] = "n2".into();
        world.put(elsewhere);
        let log = world.pass(60);
        let about = |log: &[String], reason: &str| {
            only(log, reason).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (zones, nodes) = (about(&log, "NoNumaZone"), about(&log, "NodeNotFound"));
        assert!(
            zones.len() == 1 && zones[0].contains("n1") && zones[0].contains("node-0"),
            "{args}: {log:#?}"
        );
        assert!(nodes.len() == 1 && nodes[0].contains("there is no node n2"), "{args}: {log:#?}");
        assert_eq!(about(&log, "UnknownCosts").len(), usize::from(args == LEAST), "{log:#?}");
        assert_eq!(about(&world.pass(600), "No"), [""; 0], "{args}: once is enough");
        world.put(node("n2").cpu("8").memory("16Gi"));
        odd["metadata"]["uid"] = "another".into();
        world.remove("NodeResourceTopology n1");
        world.put(odd);
        let log = world.pass(60);
        assert_eq!(
            (about(&log, "NoNumaZone").len(), about(&log, "NodeNotFound").len()),
            (1, 0),
            "{args}: {log:#?}"
        );
    }
}

#[test]
fn a_replica_that_begins_to_lead_tells_what_is_odd() {
    let mut world = world_with("{}", &[]);
    world.scheduler.set_leading(false, world.now());
    world.put(topology([4, 4], ""));
    assert_eq!(only(&world.pass(60), "NodeNotFound"), [""; 0]);
    world.scheduler.set_leading(true, world.now());
    assert_eq!(only(&world.pass(60), "NodeNotFound").len(), 1);
}

#[test]
fn not_everything_is_told_of_where_everything_is_odd() {
    let mut world = world_with("{}", &[]);
    for number in 0..150 {
        let mut lost = topology([4, 4], "");
        lost["metadata"]["name"] = format!("lost-{number}").into();
        world.put(lost);
    }
    assert_eq!(only(&world.pass(60), "NodeNotFound").len(), 100);
    assert_eq!(only(&world.pass(600), "NodeNotFound"), [""; 0]);
}

#[test]
fn a_topology_of_no_pods_does_not_count_while_one_is_on_its_way() {
    let mut world = world_with_node(COUNTING, &[]);
    world.put(topology([4, 4], OF_NOBODY));
    world.put(guaranteed("a", 3));
    world.run();
    world.put(guaranteed("b", 3));
    world.pass(30);
    assert_eq!(world.node_of("b"), None, "a has not started yet");
}
