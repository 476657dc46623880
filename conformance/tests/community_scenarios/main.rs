//! The community's plugins in a whole scheduler, in virtual time, with the configurations of their pages in `docs/plugins`.

mod load;

use serde_json::{Value, json};
use supercargo_testkit::{PodBuilder, node, pod};
use supercargo_world::{World, only};

/// A scheduler with the configuration that stands on a page.
fn world(page: &str) -> World {
    let path = format!("{}/../docs/plugins/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let blocks = text.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
    let config = blocks.into_iter().find(|block| block.contains("KubeSchedulerConfiguration"));
    World::with_config(config.unwrap_or_else(|| panic!("{path} has no configuration")))
}

fn running(pod: PodBuilder) -> PodBuilder {
    pod.with(json!({ "status": { "phase": "Running" } }))
}

#[test]
fn qos_sort_gives_the_last_room_to_who_said_what_it_needs() {
    let mut world = world("qos-sort");
    world.put(node("n1").cpu("1").memory("1Gi"));
    world.set_leading(false);
    let exact = json!({ "cpu": "800m", "memory": "1Mi" });
    world.put(pod("vague").cpu("800m"));
    world.put(pod("exact").container(json!({ "resources": { "requests": exact, "limits": exact } })));
    world.set_leading(true);
    world.run();
    assert_eq!(
        (world.node_of("exact"), world.node_of("vague")),
        (Some("n1"), None),
        "it came later, and goes first"
    );
}

#[test]
fn node_metadata_goes_where_it_is_cheap() {
    let mut world = world("node-metadata");
    let costing = |name, cost| node(name).annotation("example.com/cost-per-hour", cost);
    world.put(costing("n1", "200"));
    world.put(costing("n2", "90"));
    world.put(node("n3"));
    world.put(pod("a"));
    world.run();
    assert_eq!(world.node_of("a"), Some("n2"));
    world.change("Node n1", &json!({ "metadata": { "annotations": { "example.com/cost-per-hour": "10" } } }));
    world.put(pod("b"));
    world.run();
    assert_eq!(world.node_of("b"), Some("n1"));
}

#[test]
fn pod_state_goes_where_others_leave() {
    let mut world = world("pod-state");
    world.put(node("n1"));
    world.put(node("n2"));
    world.put(running(pod("old").on("n2")).terminating());
    world.put(pod("new"));
    world.run();
    assert_eq!(world.node_of("new"), Some("n2"));
}

#[test]
fn node_resources_allocatable_fills_small_nodes_first() {
    let mut world = world("node-resources-allocatable");
    world.put(node("large").cpu("64").memory("256Gi"));
    world.put(node("small").cpu("2").memory("4Gi"));
    for name in ["a", "b", "c"] {
        world.put(pod(name).cpu("1").memory("1Gi"));
        world.run();
    }
    let places = ["a", "b", "c"].map(|name| world.node_of(name).map(ToOwned::to_owned));
    assert_eq!(places.map(Option::unwrap_or_default), ["small", "small", "large"]);
}

#[test]
fn preemption_toleration_spares_pods_for_a_time() {
    let mut world = world("preemption-toleration");
    let annotation = |name: &str| format!("preemption-toleration.scheduling.x-k8s.io/{name}");
    let annotations = json!({ annotation("minimum-preemptable-priority"): "10000", annotation("toleration-seconds"): "3600" });
    world.put(json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 8_000,
        "metadata": { "name": "batch", "annotations": annotations },
    }));
    world.put(node("n1").cpu("1"));
    let scheduled =
        json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": world.now().to_string() });
    let victim = pod("batch").cpu("1").priority(8_000).on("n1");
    world.put(victim.with(json!({
        "spec": { "priorityClassName": "batch" }, "status": { "phase": "Running", "conditions": [scheduled] },
    })));
    world.put(pod("web").cpu("1").priority(9_999));
    let log = world.run();
    assert!(only(&log, "evict").is_empty(), "it is spared: {log:?}");
    let log = world.pass(3_000);
    assert!(only(&log, "evict").is_empty(), "it is still spared: {log:?}");
    let log = world.pass(1_000);
    assert_eq!(only(&log, "evict").len(), 1, "its time is over: {log:?}");
    world.remove("Pod batch");
    world.pass(10);
    assert_eq!(world.node_of("web"), Some("n1"));
}

#[test]
fn sysched_keeps_pods_with_the_same_calls_together() {
    let mut world = world("sysched");
    for (name, calls) in [("web", ["read", "accept4"]), ("tool", ["mount", "ptrace"])] {
        world.put(json!({
            "apiVersion": "security-profiles-operator.x-k8s.io/v1beta1", "kind": "SeccompProfile",
            "metadata": { "namespace": "default", "name": name },
            "spec": { "defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{ "action": "SCMP_ACT_ALLOW", "names": calls }] },
        }));
    }
    let confined = |pod: PodBuilder, name: &str| -> Value {
        let profile =
            json!({ "type": "Localhost", "localhostProfile": format!("operator/default/{name}.json") });
        pod.with(json!({ "spec": { "securityContext": { "seccompProfile": profile } } })).into()
    };
    world.put(node("n1"));
    world.put(node("n2"));
    world.put(confined(running(pod("a").on("n1")), "web"));
    world.put(confined(running(pod("b").on("n2")), "tool"));
    world.put(confined(pod("c"), "tool"));
    world.put(confined(pod("d"), "web"));
    world.run();
    assert_eq!((world.node_of("c"), world.node_of("d")), (Some("n2"), Some("n1")));
}
