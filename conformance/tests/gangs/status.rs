//! What groups say about themselves, and which of their members count.

use super::*;

#[test]
fn odd_groups_are_told_of_and_stop_nobody() {
    let mut world = world();
    world.put(node("n1"));
    world.put(group("none", 0));
    world.put(group("huge", 1_000_000_000));
    let mut old = group("old", 1);
    old["apiVersion"] = json!("scheduling.sigs.k8s.io/v1alpha1");
    world.put(old);
    for name in ["none", "huge"] {
        put_members(&mut world, name, 2, "100m");
    }
    world.put(pod("old-0000").label("pod-group.scheduling.sigs.k8s.io", "old"));
    world.put(pod("plain"));
    let log = world.run();
    assert_eq!(bound(&world, "none", 2), 2);
    assert_eq!(bound(&world, "old", 1), 1);
    assert!(world.node_of("plain").is_some());
    let expected = "pre-filter pod huge-0000 cannot find enough sibling pods, current pods number: 2, minMember of group: 1000000000";
    assert!(only(&log, "FailedScheduling on huge-0000")[0].contains(expected), "{log:#?}");
    for (event, words) in [
        ("InvalidPodGroup on none", "spec.minMember is 0"),
        ("InvalidPodGroup on huge", "no more than 65535 pods can go together"),
        ("OldApiGroup on old", "scheduling.sigs.k8s.io is the old name of scheduling.x-k8s.io"),
    ] {
        assert!(log.iter().any(|line| line.contains(event) && line.contains(words)), "{event}: {log:#?}");
    }
    world.pass(3600);
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_groups_status_says_how_it_does() {
    let mut world = world();
    world.put(node("n1"));
    world.put(group("g", 2));
    world.run();
    world.pass(3);
    assert_eq!(phase(&world, "g"), "Pending");
    put_members(&mut world, "g", 2, "1");
    world.run();
    world.pass(5);
    assert_eq!(phase(&world, "g"), "Scheduling");
    let tell = |world: &mut World, number: usize, phase: &str| {
        world.change(&format!("Pod g-{number:04}"), &json!({ "status": { "phase": phase } }));
        world.run();
        world.pass(5);
    };
    tell(&mut world, 0, "Running");
    tell(&mut world, 1, "Running");
    let status = &world.object("PodGroup g")["status"];
    assert_eq!((status["phase"].as_str(), status["running"].as_i64()), (Some("Running"), Some(2)));
    tell(&mut world, 0, "Succeeded");
    tell(&mut world, 1, "Succeeded");
    let status = world.object("PodGroup g")["status"].clone();
    assert_eq!(
        (status["phase"].as_str(), status["succeeded"].as_i64()),
        (Some("Finished"), Some(2)),
        "{status}"
    );
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_status_that_cannot_be_written_is_written_later() {
    let mut world = world();
    world.put(node("n1"));
    world.fail("patch PodGroup", "the server is away");
    world.put(group("g", 1));
    world.run();
    world.pass(5);
    assert_eq!(world.object("PodGroup g")["status"], Value::Null);
    world.heal();
    world.pass(10);
    assert_eq!(phase(&world, "g"), "Pending");
}

#[test]
fn completed_members_count_if_they_are_asked_to() {
    for (fixes, expected) in [(&[][..], 0), (&["completedMembers"][..], 5)] {
        let mut world = world_with(&json!({}), fixes);
        world.put(node("n1").cpu("6"));
        world.put(group("g", 6));
        let mut done = member("g", 5, "1");
        done["spec"]["nodeName"] = json!("n1");
        done["status"] = json!({ "phase": "Succeeded" });
        world.put(done);
        put_members(&mut world, "g", 5, "1");
        world.run();
        world.pass(10);
        assert_eq!(bound(&world, "g", 5), expected, "{fixes:?}");
    }
}

#[test]
fn completed_members_count_after_a_reload() {
    let config = |others: &str| {
        format!(
            r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {{disabled: [{{name: "*"}}], enabled: [{{name: Coscheduling}}]}}
    multiPoint: {{enabled: [{{name: Coscheduling}}{others}]}}
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
fixes: [completedMembers]
"#
        )
    };
    let mut world = World::with_config(&config(""));
    world.put(node("n1").cpu("6"));
    world.put(group("g", 2));
    let mut done = member("g", 1, "1");
    done["spec"]["nodeName"] = json!("n1");
    done["status"] = json!({ "phase": "Succeeded" });
    world.put(done);
    world.run();
    // Pods are counted by namespace from now on, too.
    world.reconfigure(&config(", {name: CapacityScheduling}"));
    put_members(&mut world, "g", 1, "1");
    world.run();
    assert_eq!(bound(&world, "g", 1), 1);
}
