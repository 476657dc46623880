//! Groups of pods in virtual time: they go together, wait in vain, give way to each other, and say how they do.

mod status;

use serde_json::{Value, json};
use supercargo_model::lookups::{LOOKUPS_MAX, noting};
use supercargo_testkit::{node, pod};
use supercargo_world::{World, only};

const GROUP: &str = "scheduling.x-k8s.io/pod-group";

/// A world with Coscheduling in the default profile.
fn world_with(args: &Value, fixes: &[&str]) -> World {
    let args = serde_json::to_string(args).expect("arguments are JSON");
    let fixes = fixes.join(", ");
    World::with_config(&format!(
        r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {{disabled: [{{name: "*"}}], enabled: [{{name: Coscheduling}}]}}
    multiPoint: {{enabled: [{{name: Coscheduling}}]}}
  pluginConfig:
  - {{name: Coscheduling, args: {args}}}
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
fixes: [{fixes}]
"#
    ))
}

fn world() -> World {
    world_with(&json!({}), &[])
}

fn group(name: &str, min_member: i64) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": { "namespace": "default", "name": name, "uid": name }, "spec": { "minMember": min_member },
    })
}

fn member(group: &str, number: usize, cpu: &str) -> Value {
    pod(&format!("{group}-{number:04}")).cpu(cpu).label(GROUP, group).into()
}

fn put_members(world: &mut World, group: &str, count: usize, cpu: &str) {
    for number in 0..count {
        world.put(member(group, number, cpu));
    }
}

/// Three nodes that so many pods of one core fill.
fn put_nodes_for(world: &mut World, count: usize) {
    for number in 0..3 {
        let room = json!({ "status": { "allocatable": { "cpu": (count / 3).to_string(), "pods": "2000" } } });
        world.put(node(&format!("n{number}")).with(room));
    }
}

fn bound(world: &World, group: &str, count: usize) -> usize {
    let is_bound = |number: &usize| {
        let name = format!("Pod {group}-{number:04}");
        world.find(&name).is_some_and(|pod| pod["spec"]["nodeName"].is_string())
    };
    (0..count).filter(is_bound).count()
}

fn phase(world: &World, group: &str) -> String {
    world.object(&format!("PodGroup {group}"))["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_gang_goes_together_however_large_it_is() {
    for size in [3, 30, 3000] {
        let mut world = world();
        put_nodes_for(&mut world, size);
        world.put(group("g", size as i64));
        put_members(&mut world, "g", size - 1, "1");
        assert_eq!(only(&world.run(), "bind"), [""; 0], "one of {size} is missing");
        world.put(member("g", size - 1, "1"));
        assert_eq!(only(&world.run(), "bind").len(), size);
        assert_eq!(world.complaints(), [""; 0]);
    }
}

#[test]
fn a_gang_that_does_not_fit_gives_everything_back_at_once() {
    for size in [3, 30, 300] {
        let mut world = world_with(&json!({ "podGroupRejectPercentage": 0 }), &[]);
        put_nodes_for(&mut world, size);
        world.put(group("g", size as i64));
        put_members(&mut world, "g", size - 1, "1");
        world.put(member("g", size - 1, "4000"));
        let log = world.run();
        assert_eq!(only(&log, "bind"), [""; 0]);
        let taken = world.scheduler.cluster().nodes().map(|node| node.pods().len()).sum::<usize>();
        assert_eq!(taken, 0, "nobody holds room");
        assert_eq!(world.complaints(), [""; 0]);
        // What waits behind it has the room.
        put_members(&mut world, "plain", size, "1");
        for number in 0..size {
            world.change(&format!("Pod plain-{number:04}"), &json!({ "metadata": { "labels": null } }));
        }
        assert_eq!(only(&world.run(), "bind").len(), size);
    }
}

#[test]
fn a_rejected_gang_leaves_its_nodes_to_plain_pods() {
    let mut world = world_with(&json!({ "podGroupRejectPercentage": 0 }), &[]);
    world.put(node("n1").cpu("1"));
    world.put(group("g", 2));
    world.put(member("g", 0, "1"));
    world.put(member("g", 1, "4000"));
    assert_eq!(only(&world.run(), "bind"), [""; 0]);
    let status = world.object("Pod g-0000")["status"].clone();
    assert_eq!(status["nominatedNodeName"], Value::Null, "{status}");
    // Whatever it is heard of next, the pod is not nominated.
    world.change("Pod g-0000", &json!({ "metadata": { "annotations": { "any": "thing" } } }));
    assert_eq!(world.scheduler.cluster().nominated().count(), 0);
    world.put(pod("plain").cpu("1"));
    assert_eq!(only(&world.run(), "bind"), ["bind plain to n1"]);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_pod_whose_victims_take_their_time_does_not_fail_its_group() {
    let mut world = world();
    world.put(node("n1").cpu("2"));
    world.put(pod("low").cpu("1").on("n1"));
    world.put(group("g", 2));
    for number in 0..2 {
        world.put(pod(&format!("g-{number:04}")).cpu("1").priority(10).label(GROUP, "g"));
    }
    let log = world.run();
    assert_eq!(only(&log, "evict"), ["evict low for g-0001"], "{log:#?}");
    // Another node has it tried again, though it must not go there.
    for number in 2..5 {
        let away = json!({ "spec": { "unschedulable": true } });
        world.put(node(&format!("n{number}")).cpu("1").with(away));
        let log = world.pass(15);
        assert!(!only(&log, "FailedScheduling on g-0001").is_empty(), "it is tried again: {log:#?}");
        assert_eq!(at_permit(&mut world, "g", 2), 1, "{log:#?}");
        assert_eq!(only(&log, "FailedScheduling on g-0000"), [""; 0]);
    }
    world.remove("Pod low");
    world.pass(20);
    assert_eq!(bound(&world, "g", 2), 2);
}

#[test]
fn many_groups_back_off_and_are_tried_again() {
    const GROUPS: usize = 4_000;
    let mut world = world_with(&json!({ "podGroupBackoffSeconds": 5 }), &[]);
    world.put(node("n1").cpu("1"));
    for number in 0..GROUPS {
        let name = format!("g{number:05}");
        world.put(group(&name, 1));
        world.put(member(&name, 0, "4"));
    }
    let tried = |log: &[String]| log.iter().filter(|line| line.contains("Insufficient cpu")).count();
    assert!(tried(&world.run()) >= GROUPS);
    assert_eq!(tried(&world.pass(4)), 0);
    assert!(tried(&world.pass(10)) >= GROUPS, "each is tried again when its time is over");
}

#[test]
fn a_clock_that_is_set_back_draws_no_backoff_out() {
    let mut world = world_with(&json!({ "podGroupBackoffSeconds": 5, "podGroupRejectPercentage": 0 }), &[]);
    world.put(node("n1").cpu("1"));
    world.put(group("g", 2));
    put_members(&mut world, "g", 2, "1");
    world.run();
    world.set_clock(-3600);
    world.put(node("n2").cpu("1"));
    world.pass(30);
    assert_eq!(bound(&world, "g", 2), 2);
}

#[test]
fn a_gang_that_fits_in_part_rests_between_two_attempts() {
    for (size, room) in [(4, 2), (9, 3), (30, 12)] {
        let mut world = world();
        world.put(node("n1").cpu(&room.to_string()));
        world.put(group("g", size as i64));
        put_members(&mut world, "g", size, "1");
        // No time passes: whoever is tried again must have waited.
        let log = world.run();
        assert_eq!(only(&log, "bind"), [""; 0]);
        assert!(world.scheduler.cluster().nodes().all(|node| node.pods().is_empty()), "nobody holds room");
        world.pass(30);
        assert_eq!(bound(&world, "g", size), 0);
        // All of them go as soon as they can.
        world.put(node("n2").cpu(&(size - room).to_string()));
        world.pass(30);
        assert_eq!(bound(&world, "g", size), size);
        assert_eq!(world.complaints(), [""; 0]);
    }
}

/// How often something was looked up of pods and groups while something happened.
fn lookups(act: impl FnOnce()) -> usize {
    let ((), looked_up) = noting(act);
    assert!(looked_up.len() < LOOKUPS_MAX, "not all of them were noted");
    looked_up.len()
}

fn bound_pod(name: &str) -> Value {
    pod(name).cpu("1").on("n0").into()
}

#[test]
fn what_happens_elsewhere_is_nothing_to_groups_that_lack_members() {
    let lookups_beside = |groups: usize, size: usize| {
        let mut world = world();
        put_nodes_for(&mut world, 30);
        for number in 0..groups {
            let name = format!("g{number}");
            world.put(group(&name, size as i64 + 1));
            put_members(&mut world, &name, size, "1");
        }
        world.run();
        world.pass(30);
        // They are looked at once, and wait in vain from then on.
        world.put(bound_pod("a"));
        let count = lookups(|| world.put(bound_pod("b")));
        // Until the last member comes: then all are there at once.
        world.put(member("g0", size, "1"));
        world.put(bound_pod("c"));
        assert_eq!(only(&world.run(), "bind").len(), size + 1);
        count
    };
    let few = lookups_beside(1, 1);
    assert_eq!([lookups_beside(200, 1), lookups_beside(1, 20)], [few, few]);
}

#[test]
fn a_refused_gang_is_looked_at_no_more_often_the_larger_it_is() {
    let lookups_of = |size: usize| {
        let mut world = world_with(&json!({ "podGroupRejectPercentage": 0 }), &[]);
        put_nodes_for(&mut world, size);
        world.put(group("g", size as i64));
        put_members(&mut world, "g", size - 1, "1");
        world.put(member("g", size - 1, "4000"));
        lookups(|| _ = world.run()) / size
    };
    let (small, large) = (lookups_of(12), lookups_of(240));
    assert!(large <= small + small / 10, "{small} a pod of 12, {large} a pod of 240");
}

/// What changes, besides that a pod is bound, and whether both members that are there go then.
type Changed = (&'static str, fn(&mut World), bool);

#[test]
fn members_that_lack_others_are_tried_again_when_that_changes() {
    let changes: [Changed; 5] = [
        ("nothing", |_| {}, false),
        ("minMember", |world| world.change("PodGroup g", &json!({ "spec": { "minMember": 2 } })), true),
        ("the group", |world| world.remove("PodGroup g"), false),
        ("another group", |world| world.put(group("other", 1)), false),
        (
            "a member of no importance",
            |world| world.put(pod("bound").cpu("1").on("n0").label(GROUP, "g")),
            true,
        ),
    ];
    for (what, change, goes) in changes {
        let mut world = world();
        put_nodes_for(&mut world, 30);
        world.put(group("g", 3));
        put_members(&mut world, "g", 2, "1");
        world.run();
        world.pass(30);
        world.put(bound_pod("a"));
        assert_eq!(only(&world.run(), "bind"), [""; 0]);
        change(&mut world);
        world.put(bound_pod("b"));
        assert_eq!(only(&world.run(), "bind").len(), if goes { 2 } else { 0 }, "{what} changes");
    }
}

#[test]
fn whoever_waits_in_vain_gives_its_node_back_and_the_group_with_it() {
    let mut world =
        world_with(&json!({ "podGroupRejectPercentage": 50, "permitWaitingTimeSeconds": 30 }), &[]);
    world.put(node("n1").cpu("2"));
    world.put(group("g", 3));
    put_members(&mut world, "g", 3, "1");
    world.run();
    assert_eq!(world.place_of("g-0000"), "at Permit on n1 for 30s: Coscheduling");
    world.pass(10);
    world.put(pod("other").cpu("2"));
    assert_eq!(only(&world.pass(19), "bind"), [""; 0], "the room is theirs");
    let log = world.pass(2);
    let expired = only(&log, "FailedScheduling on g-0000")[0];
    assert!(expired.contains("timeout after waiting 30s at plugin Coscheduling"), "{expired}");
    assert_eq!(only(&log, "bind"), ["bind other to n1"]);
    assert_eq!(at_permit(&mut world, "g", 3), 0);
}

#[test]
fn a_group_says_how_long_its_members_wait() {
    let mut world = world_with(&json!({ "podGroupRejectPercentage": 50 }), &[]);
    world.put(node("n1").cpu("2"));
    let mut timed = group("g", 3);
    timed["spec"]["scheduleTimeoutSeconds"] = json!(5);
    world.put(timed);
    put_members(&mut world, "g", 3, "1");
    world.run();
    assert_eq!(world.place_of("g-0000"), "at Permit on n1 for 5s: Coscheduling");
}

/// Two groups of ten, and room for eighteen: nine of each are given a node, and neither can have a tenth.
fn half_admitted(yields: bool) -> World {
    let args = json!({ "podGroupRejectPercentage": 100, "halfAdmittedGroupsYield": yields });
    let mut world = world_with(&args, &[]);
    let put_nodes = |world: &mut World, letter: &str| {
        (0..9).for_each(|number| world.put(node(&format!("{letter}{number}")).cpu("1")));
    };
    put_nodes(&mut world, "m");
    world.put(group("a", 10));
    put_members(&mut world, "a", 10, "1");
    world.run();
    // While the tenth of a backs off, there is room for nine of b.
    put_nodes(&mut world, "n");
    world.put(group("b", 10));
    put_members(&mut world, "b", 10, "1");
    assert_eq!(only(&world.run(), "bind"), [""; 0]);
    for name in ["a", "b"] {
        assert_eq!(at_permit(&mut world, name, 10), 9, "{name}");
    }
    world
}

fn at_permit(world: &mut World, group: &str, count: usize) -> usize {
    let mut places = (0..count).map(|number| world.place_of(&format!("{group}-{number:04}")));
    places.by_ref().filter(|place| place.starts_with("at Permit")).count()
}

#[test]
fn of_two_groups_that_are_in_each_others_way_the_later_one_gives_way() {
    let mut world = half_admitted(true);
    let log = world.pass(2);
    assert_eq!(only(&log, "bind a-").len(), 10, "{log:#?}");
    assert!(log.iter().any(|line| line.contains("gives way to PodGroup default/a")), "{log:#?}");
    assert_eq!(bound(&world, "b", 10), 0);
    for number in 0..10 {
        world.remove(&format!("Pod a-{number:04}"));
    }
    let log = world.pass(20);
    assert_eq!(only(&log, "bind b-").len(), 10, "and then it goes: {log:#?}");
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn upstream_they_wait_for_each_other_until_their_time_is_over() {
    let mut world = half_admitted(false);
    let log = world.pass(59);
    assert_eq!(only(&log, "bind"), [""; 0]);
    assert_eq!(at_permit(&mut world, "a", 10) + at_permit(&mut world, "b", 10), 18);
}

#[test]
fn a_group_backs_off_and_others_go_meanwhile() {
    let mut world = world_with(&json!({ "podGroupBackoffSeconds": 5, "podGroupRejectPercentage": 0 }), &[]);
    world.put(node("n1").cpu("6"));
    for name in ["n2", "n3", "n4"] {
        world.put(node(name).cpu("2"));
    }
    world.put(group("a", 6));
    put_members(&mut world, "a", 6, "4");
    world.put(group("b", 1));
    put_members(&mut world, "b", 1, "2");
    let log = world.run();
    assert_eq!(bound(&world, "b", 1), 1);
    let recent = |log: &[String]| log.iter().any(|line| line.contains("podGroup default/a failed recently"));
    assert!(recent(&log), "{log:#?}");
    assert_eq!(bound(&world, "a", 6), 0);
    for name in ["n5", "n6", "n7", "n8", "n9", "n10"] {
        world.put(node(name).cpu("4"));
    }
    world.pass(30);
    assert_eq!(bound(&world, "a", 6), 6, "it is tried again when its time is over");
}

#[test]
fn what_the_cluster_lacks_is_said_before_anybody_takes_a_node() {
    let mut world = world();
    world.put(node("n1").cpu("2"));
    world.put(node("n2").cpu("2"));
    let mut large = group("g", 2);
    large["spec"]["minResources"] = json!({ "cpu": "5" });
    world.put(large);
    put_members(&mut world, "g", 2, "1");
    let log = world.run();
    assert!(only(&log, "FailedScheduling on g-0000")[0].contains("resource gap: map[cpu:1000m]"), "{log:#?}");
    world.put(node("n3").cpu("1"));
    world.put(pod("news"));
    world.pass(10);
    assert_eq!(bound(&world, "g", 2), 2);
}

#[test]
fn after_a_crash_in_the_middle_of_a_gang_nobody_waits_for_ever() {
    let mut world = world();
    world.put(node("n1").cpu("3"));
    world.put(group("g", 3));
    world.set_slow(true);
    put_members(&mut world, "g", 3, "1");
    world.run();
    // One binding has reached the server, and the process dies.
    world.change("Pod g-0000", &json!({ "spec": { "nodeName": "n1" } }));
    world.set_slow(false);
    world.crash();
    world.run();
    world.pass(60);
    assert_eq!(bound(&world, "g", 3), 3);
}

/// Pods of a group: its name, its minMember, how many come, their memory, their priority.
type GroupOfPods = (&'static str, i64, usize, &'static str, i32);
/// The pods that come, and how many of each group run in the end.
type Scenario = (&'static [GroupOfPods], &'static [(&'static str, usize)]);

/// How the pods of a scenario come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrival {
    /// Group by group.
    InOrder,
    /// One of each group in turn.
    Interleaved,
    /// The same, and each group says how much memory it needs.
    WithMinResources,
}

#[test]
fn the_scenarios_of_upstream() {
    // There is one node, with room for three pods of 100.
    let scenarios: [Scenario; 5] = [
        (&[("a", 3, 3, "50", 0), ("b", 4, 4, "100", 0)], &[("a", 3), ("b", 0)]),
        (&[("a", 4, 3, "50", 0), ("plain", 0, 2, "100", 0)], &[("a", 0), ("plain", 2)]),
        (&[("a", 3, 3, "100", 10), ("b", 3, 3, "50", 100)], &[("a", 0), ("b", 3)]),
        (&[("a", 3, 3, "50", 10), ("plain", 0, 3, "100", 100)], &[("a", 0), ("plain", 3)]),
        (
            &[("a", 3, 3, "50", 0), ("b", 4, 4, "100", 0), ("c", 4, 4, "100", 0)],
            &[("a", 3), ("b", 0), ("c", 0)],
        ),
    ];
    for (number, (groups, expected)) in scenarios.into_iter().enumerate() {
        let args = json!({ "podGroupRejectPercentage": 0, "permitWaitingTimeSeconds": 3 });
        for arrival in [Arrival::InOrder, Arrival::Interleaved, Arrival::WithMinResources] {
            let mut world = world_with(&args, &[]);
            world.put(node("n1").with(json!({ "status": { "allocatable": { "memory": "300" } } })));
            for (name, min_member, _, memory, _) in groups.iter().filter(|(name, ..)| *name != "plain") {
                let mut made = group(name, *min_member);
                if arrival == Arrival::WithMinResources {
                    let memory: i64 = memory.parse().expect("a number of bytes");
                    made["spec"]["minResources"] = json!({ "memory": (memory * min_member).to_string() });
                }
                world.put(made);
                world.pass(1);
            }
            let mut places: Vec<(usize, usize)> = (0..groups.len())
                .flat_map(|index| (0..groups[index].2).map(move |place| (index, place)))
                .collect();
            if arrival != Arrival::InOrder {
                places.sort_by_key(|(index, place)| (*place, *index));
            }
            for (index, place) in places {
                let (name, _, _, memory, priority) = groups[index];
                let member = pod(&format!("{name}-{place:04}")).memory(memory).priority(priority);
                world.put(if name == "plain" { member } else { member.label(GROUP, name) });
            }
            world.run();
            world.pass(30);
            for (name, count) in expected {
                assert_eq!(bound(&world, name, 4), *count, "scenario {number}, {arrival:?}, {name}");
            }
        }
    }
}

#[test]
fn a_member_that_somebody_else_binds_keeps_its_place_and_leaves_the_others_theirs() {
    for fixes in [&[][..], &["completedMembers"]] {
        let mut world = world_with(&json!({ "podGroupRejectPercentage": 100 }), fixes);
        put_nodes_for(&mut world, 3);
        world.put(group("g", 3));
        put_members(&mut world, "g", 2, "1");
        world.put(member("g", 2, "4"));
        assert_eq!(only(&world.run(), "bind"), [""; 0], "one does not fit");
        let node_name = world.object("Pod g-0000")["status"]["nominatedNodeName"].clone();
        world.change("Pod g-0000", &json!({ "spec": { "nodeName": node_name } }));
        assert_eq!(only(&world.run(), "FailedScheduling on g-0001"), [""; 0], "the other member still waits");
        assert_eq!(world.scheduler.gauges().bindings, 1);
        world.put(node("large").cpu("4"));
        assert_eq!(only(&world.pass(3), "bind").len(), 2);
        assert_eq!(world.complaints(), [""; 0]);
    }
}
