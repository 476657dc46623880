//! The whole scheduler on a cluster in virtual time: what it orders, and when. These are the tests of `crates/engine/src/scheduler`, which
//! are here because they need the real plugins.

mod acting;
mod conditions;
mod extenders;
mod faults;
mod misbehaving;
mod network_traffic;
mod observing;
mod pages;
mod permits;
mod preempting;
mod qos;
mod queries;
mod questions;
mod random;
mod replacing;
mod resuming;
mod standings;
mod unknown;
mod whereabouts;
mod world;

use serde_json::json;
use supercargo_testkit::{node, pod};
use supercargo_world::only;
use world::World;

#[test]
fn a_pod_is_bound_and_people_are_told() {
    let mut world = World::new();
    world.put(node("n1").cpu("4"));
    world.put(pod("a").cpu("1"));
    assert_eq!(world.run(), ["bind a to n1", "Scheduled on a: Successfully assigned default/a to n1"]);
    assert_eq!(world.node_of("a"), Some("n1"));
    assert_eq!(world.scheduler.cluster().nodes().next().expect("there is one").pods().len(), 1);
    assert_eq!(world.pass(1000), [""; 0], "nothing is left to do");
}

#[test]
fn no_node_is_given_more_than_it_has_while_bindings_take_their_time() {
    let mut world = World::new();
    world.set_slow(true);
    for name in ["n1", "n2", "n3"] {
        world.put(node(name).cpu("2"));
    }
    for number in 0..8 {
        world.put(pod(&format!("p{number}")).cpu("1"));
    }
    world.run();
    world.set_slow(false);
    world.catch_up();
    for name in ["n1", "n2", "n3"] {
        let count = (0..8).filter(|number| world.node_of(&format!("p{number}")) == Some(name)).count();
        assert_eq!(count, 2, "{name}");
    }
    assert_eq!(world.scheduler.queue_lengths().unschedulable, 2);
}

#[test]
fn an_unfit_pod_says_why_once_and_comes_back_when_there_is_room() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("big").cpu("2"));
    let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes \
                   are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(
        world.run(),
        [format!("FailedScheduling on big: {message}"), format!("status of big: Unschedulable {message}")]
    );
    world.put(node("n2").cpu("1"));
    assert_eq!(world.run(), [""; 0], "a node that is too small does not wake it");
    world.put(node("n3").cpu("4"));
    // It waits for its backoff only if others could go first.
    assert_eq!(world.run(), ["bind big to n3", "Scheduled on big: Successfully assigned default/big to n3"]);
}

#[test]
fn the_same_failure_is_not_written_twice() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("big").cpu("2"));
    assert_eq!(world.run().len(), 2);
    let log = world.pass(400);
    assert_eq!(only(&log, "status"), [""; 0], "{log:?}");
    assert_eq!(
        only(&log, "FailedScheduling").len(),
        1,
        "once in five minutes it is tried all the same: {log:?}"
    );
}

#[test]
fn a_failed_binding_gives_the_room_back_and_is_tried_again_after_a_while() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("1"));
    world.fail("bind a", "the server is away");
    let error = "running Bind plugin \"DefaultBinder\": the server is away";
    assert_eq!(
        world.run(),
        [
            "bind a to n1: the server is away".to_owned(),
            format!("FailedScheduling on a: {error}"),
            format!("status of a: SchedulerError {error}"),
        ]
    );
    assert_eq!(world.scheduler.cluster().nodes().next().expect("there is one").pods().len(), 0);
    world.heal();
    assert_eq!(world.run(), [""; 0], "not at once");
    assert_eq!(only(&world.pass(3), "bind"), ["bind a to n1"]);
}

#[test]
fn backoff_doubles_up_to_its_limit() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("1"));
    world.fail("bind a", "no");
    let mut tries = Vec::new();
    for second in 0..60 {
        let log = if second == 0 { world.run() } else { world.pass(1) };
        if !only(&log, "bind").is_empty() {
            tries.push(second);
        }
    }
    assert_eq!(
        tries,
        [0, 2, 5, 10, 19, 30, 41, 52],
        "1, 2, 4, 8, 10, 10 seconds, and up to the next whole one"
    );
}

#[test]
fn important_pods_go_first_and_equal_ones_as_they_came() {
    let mut world = World::new();
    for (name, priority) in [("a", 0), ("b", 5), ("c", 0), ("d", 9)] {
        world.put(pod(name).priority(priority));
    }
    world.put(node("n1"));
    let log = world.run();
    let bound: Vec<&str> = only(&log, "bind").iter().map(|line| &line[5..6]).collect();
    assert_eq!(bound, ["d", "b", "a", "c"]);
}

#[test]
fn a_gated_pod_waits_for_its_gates_without_a_word() {
    let mut world = World::new();
    world.put(node("n1"));
    world.put(pod("a").with(json!({"spec": {"schedulingGates": [{"name": "wait"}]}})));
    assert_eq!(world.pass(1000), [""; 0]);
    assert_eq!(world.scheduler.queue_lengths().gated, 1);
    world.change("Pod a", &json!({"spec": {"schedulingGates": null}}));
    assert_eq!(only(&world.run(), "bind"), ["bind a to n1"]);
}

#[test]
fn preemption_evicts_waits_for_the_victim_to_go_and_then_takes_its_place() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("low").cpu("2").on("n1").started(1));
    world.put(pod("high").cpu("2").priority(10));
    let log = world.run();
    assert_eq!(
        log,
        [
            "evict low for high".to_owned(),
            "FailedScheduling on high: 0/1 nodes are available: 1 Insufficient cpu.".to_owned(),
            "status of high: Unschedulable 0/1 nodes are available: 1 Insufficient cpu. nominated to n1"
                .to_owned(),
            "Preempted on low: Preempted by pod high on node n1".to_owned(),
        ]
    );
    world.put(pod("other").cpu("2"));
    assert_eq!(only(&world.run(), "bind"), [""; 0], "the room is meant for the pod that made it");
    world.remove("Pod low");
    assert_eq!(only(&world.pass(2), "bind"), ["bind high to n1"]);
    assert_eq!(world.node_of("other"), None);
}

#[test]
fn a_victim_is_told_also_where_the_preemptor_is_bound_before_the_eviction_is_answered() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("low").cpu("2").on("n1").started(1));
    world.set_slow(true);
    world.put(pod("high").cpu("2").priority(10));
    world.run();
    // The watch tells first that the victim is gone, and the API server binds the preemptor meanwhile.
    world.remove("Pod low");
    world.pass(2);
    world.change("Pod high", &json!({ "spec": { "nodeName": "n1" } }));
    world.set_slow(false);
    let log = world.catch_up();
    assert_eq!(only(&log, "Preempted"), ["Preempted on low: Preempted by pod high on node n1"]);
}

#[test]
fn a_preemptor_whose_victim_cannot_be_evicted_is_tried_again() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("low").cpu("2").on("n1").started(1));
    world.put(pod("high").cpu("2").priority(10));
    world.fail("evict", "forbidden");
    assert!(world.run().contains(&"evict low for high: forbidden".to_owned()));
    world.heal();
    let log = world.pass(20);
    assert_eq!(only(&log, "evict"), ["evict low for high"]);
}

#[test]
fn several_victims_go_side_by_side_and_the_last_one_last() {
    let mut world = World::new();
    world.set_slow(true);
    world.put(node("n1").cpu("3"));
    for name in ["v1", "v2", "v3"] {
        world.put(pod(name).cpu("1").on("n1").started(1));
    }
    world.put(pod("high").cpu("3").priority(10));
    world.run();
    world.set_slow(false);
    assert_eq!(world.scheduler.queue_lengths().unschedulable, 1);
    world.catch_up();
    let gone = |name: &str| world.object(&format!("Pod {name}"))["metadata"]["deletionTimestamp"].is_string();
    assert!(["v1", "v2", "v3"].into_iter().all(gone));
    for name in ["v1", "v2"] {
        world.remove(&format!("Pod {name}"));
        assert_eq!(only(&world.pass(2), "bind"), [""; 0]);
    }
    world.remove("Pod v3");
    assert_eq!(only(&world.pass(5), "bind"), ["bind high to n1"]);
}

#[test]
fn a_pod_that_goes_while_it_is_bound_leaves_its_room() {
    let mut world = World::new();
    world.set_slow(true);
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("1"));
    world.run();
    world.put(pod("b").cpu("1"));
    world.run();
    assert_eq!(world.scheduler.queue_lengths().unschedulable, 1);
    world.set_slow(false);
    world.remove("Pod a");
    assert_eq!(only(&world.pass(3), "bind b"), ["bind b to n1"]);
}

#[test]
fn somebody_else_binds_the_pod_first() {
    let mut world = World::new();
    world.set_slow(true);
    world.put(node("n1").cpu("1"));
    world.put(node("n2").cpu("4"));
    world.put(pod("a").cpu("1"));
    world.run();
    // The other scheduler took the node that ours did not choose, or the same; either way the API server's word counts.
    world.change("Pod a", &json!({"spec": {"nodeName": "n2"}}));
    world.set_slow(false);
    world.run();
    let on = |world: &mut World, name: &str| {
        let row = world.scheduler.cluster().row_of(name).expect("it is there");
        world.scheduler.cluster().node(row).pods().len()
    };
    assert_eq!((on(&mut world, "n1"), on(&mut world, "n2")), (0, 1));
}

#[test]
fn a_pod_being_deleted_is_not_scheduled() {
    let mut world = World::new();
    world.put(pod("a").terminating());
    world.put(node("n1"));
    assert_eq!(world.run(), ["FailedScheduling on a: skip schedule deleting pod: default/a"]);
}

#[test]
fn without_nodes_a_pod_is_tried_again_after_a_while() {
    let mut world = World::new();
    world.put(pod("a"));
    let message = "no nodes available to schedule pods";
    assert_eq!(
        world.run(),
        [format!("FailedScheduling on a: {message}"), format!("status of a: Unschedulable {message}")]
    );
    world.put(node("n1"));
    assert_eq!(only(&world.pass(3), "bind"), ["bind a to n1"]);
}

#[test]
fn what_a_new_list_does_not_name_is_gone() {
    use std::collections::BTreeSet;
    use supercargo_model::Everything;
    use supercargo_model::Timestamp;

    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(node("n2").cpu("1"));
    world.put(pod("a").cpu("1").on("n1"));
    world.put(pod("b").cpu("2"));
    world.run();
    let now = Timestamp::from_seconds(1_000_001);
    world.scheduler.retain(&Everything::Pods(BTreeSet::from(["b".into()])), now);
    assert_eq!(world.scheduler.cluster().nodes().map(|node| node.pods().len()).sum::<usize>(), 0);
    world.scheduler.retain(&Everything::Pods(BTreeSet::new()), now);
    assert_eq!(world.scheduler.queue_lengths().unschedulable, 0);
    world.scheduler.retain(&Everything::Nodes(BTreeSet::from(["n2".into()])), now);
    assert_eq!(world.scheduler.cluster().node_count(), 1);
}

#[test]
fn volumes_are_bound_before_the_pod_is() {
    let mut world = World::new();
    world.put(node("n1"));
    world.put(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }));
    world.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"},
        "status": {"phase": "Available"},
    }));
    world.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim", "namespace": "default", "uid": "claim-uid"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                 "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }));
    world.put(pod("a").with(json!({"spec": {"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]}})));
    assert_eq!(world.run(), ["status of a: nominated to n1", "patch PersistentVolume pv"]);
    // Now the volume controller does its part.
    world.change("PersistentVolume pv", &json!({"status": {"phase": "Bound"}}));
    assert_eq!(world.run(), [""; 0]);
    world.change(
        "PersistentVolumeClaim claim",
        &json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}),
    );
    assert_eq!(only(&world.run(), "bind"), ["bind a to n1"]);
}

/// A pod whose claim waits for it, and is to be made where the pod goes.
fn put_pod_with_claim(world: &mut World) {
    world.put(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "made"},
        "provisioner": "example.com/made", "volumeBindingMode": "WaitForFirstConsumer",
    }));
    world.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim", "namespace": "default", "uid": "claim-uid"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "made",
                 "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }));
    world.put(pod("a").with(json!({"spec": {"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]}})));
}

#[test]
fn volumes_that_are_not_bound_in_time_send_the_pod_back() {
    let mut world = World::new();
    world.put(node("n1"));
    put_pod_with_claim(&mut world);
    assert_eq!(world.run(), ["status of a: nominated to n1", "patch PersistentVolumeClaim claim"]);
    assert_eq!(world.pass(599), [""; 0]);
    let log = world.pass(1);
    assert_eq!(
        only(&log, "FailedScheduling"),
        [
            "FailedScheduling on a: running PreBind plugin \"VolumeBinding\": binding volumes: context deadline exceeded"
        ]
    );
}

#[test]
fn two_profiles_share_one_cluster() {
    let mut world = World::with_config(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: spreading
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
",
    );
    world.put(node("n1").cpu("8"));
    world.put(node("n2").cpu("8"));
    world.put(pod("there").cpu("4").on("n1"));
    world.put(pod("a").cpu("1").with(json!({"spec": {"schedulerName": "spreading"}})));
    world.put(pod("b").cpu("1").with(json!({"spec": {"schedulerName": "packing"}})));
    world.put(pod("c").cpu("1"));
    world.run();
    assert_eq!(world.node_of("a"), Some("n2"));
    assert_eq!(world.node_of("b"), Some("n1"));
    assert_eq!(world.node_of("c"), None, "nobody is responsible for it");
}
