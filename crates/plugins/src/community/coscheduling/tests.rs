//! The arguments, the phases, and what the plugin declares. What becomes of groups in time is in `conformance/tests/gangs.rs`.

use serde_json::json;
use supercargo_framework::{Acts, AskedActs, Change, Memories, Observe};
use supercargo_model::Standing;
use supercargo_testkit::{ReadsCheck, TestCluster, check_points, cluster, node, pod, problems_of, trial};

use super::memory::GroupMemory;
use super::status::{Tally, next};
use super::*;

#[test]
fn it_is_what_it_declares() {
    check_points!(Coscheduling);
    ReadsCheck::of::<Coscheduling>()
        .pod_label(POD_GROUP_LABEL, "g")
        .object(json!({
            "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": { "namespace": "default", "name": "g" },
            "spec": { "minMember": 2, "minResources": { "cpu": "4" } },
        }))
        .check();
}

/// A cluster with a group of so many.
fn with_group(min_member: i64) -> TestCluster {
    let cluster = cluster().reading_for(&Coscheduling::new(CoschedulingArgs::default()).reads());
    cluster.with(node("n1")).with(json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": { "namespace": "default", "name": "g" }, "spec": { "minMember": min_member },
    }))
}

#[test]
fn the_first_that_waits_has_the_others_tried_whoever_is_bound_or_has_completed() {
    let member = |name: &str| pod(name).label(POD_GROUP_LABEL, "g");
    // Where another member stands, whether completed members count, and whether the others are tried.
    for (other, counts_completed, is_tried) in [
        (Standing::Waiting, false, true),
        (Standing::Bound, false, false),
        (Standing::Bound, true, true),
        (Standing::Finished, false, true),
        (Standing::Finished, true, true),
        (Standing::AtPermit, false, false),
        (Standing::AtPermit, true, false),
    ] {
        let mut cluster = with_group(3);
        cluster.fixes.completed_members = counts_completed;
        let on_node = json!({ "spec": { "nodeName": "n1" } });
        match other {
            Standing::Bound | Standing::AtPermit => {
                cluster.put(member("other").with(on_node.clone()));
                cluster.stand(member("other").with(on_node), other);
            }
            Standing::Finished => {
                let done = json!({ "status": { "phase": "Succeeded" } });
                cluster.stand(member("other").with(on_node).with(done), other);
            }
            Standing::Waiting | Standing::Gated => cluster.stand(member("other"), other),
        }
        cluster.stand(member("waiting"), Standing::Waiting);
        let lines = trial::<Coscheduling>().attempt(&mut cluster, member("first"), "n1").permit();
        assert!(lines[0].starts_with("waits until"), "{other:?}: {lines:?}");
        let tried = lines.contains(&"activate: waiting".to_owned());
        assert_eq!(tried, is_tried, "{other:?}, {counts_completed}: {lines:?}");
    }
}

#[test]
fn a_pod_with_both_labels_counts_once() {
    let mut cluster = with_group(2);
    let both = pod("both").label(POD_GROUP_LABEL, "g").label(OLD_POD_GROUP_LABEL, "g");
    // The new label counts, so this one belongs to another group.
    let elsewhere = pod("elsewhere").label(POD_GROUP_LABEL, "h").label(OLD_POD_GROUP_LABEL, "g");
    let old = pod("old").label(OLD_POD_GROUP_LABEL, "g");
    cluster.stand(both, Standing::Waiting);
    cluster.stand(elsewhere, Standing::Waiting);
    let count = |cluster: &TestCluster| {
        let context = cluster.context();
        let group = pod_group::Group::named(&context, "default", "g");
        assert_eq!(group.size(), group.members().count() as i64);
        group.size()
    };
    assert_eq!(count(&cluster), 1);
    cluster.stand(old, Standing::Waiting);
    assert_eq!(count(&cluster), 2);
}

#[test]
fn a_pod_whose_node_was_to_be_taken_is_forgotten_when_it_is_bound_or_gone() {
    let (mut cluster, plugin) = (with_group(2), Coscheduling::new(CoschedulingArgs::default()));
    let member = || pod("a").label(POD_GROUP_LABEL, "g");
    let [waiting, bound] = [member(), member().on("n1")].map(|pod| cluster.pod(pod));
    for (new, is_remembered) in [(Some(&waiting), true), (Some(&bound), false), (None, false)] {
        let mut memories = Memories::default();
        memories.declare::<GroupMemory>();
        let mut asked = AskedActs::default();
        let mut acts = Acts::new(Coscheduling::NAME, &mut memories, &mut asked);
        acts.memory::<GroupMemory>().taken_back.insert((*waiting.uid).to_owned(), ());
        let change = Change::Pod { old: Some(&waiting), new: new.map(|pod| &**pod) };
        plugin.observed(&cluster.context(), &change, &mut acts);
        assert_eq!(acts.memory::<GroupMemory>().taken_back.is_empty(), !is_remembered);
    }
}

#[test]
fn arguments_are_checked() {
    for (args, expected) in [
        (json!({}), &[][..]),
        (json!({ "permitWaitingTimeSeconds": 0, "podGroupRejectPercentage": 100 }), &[]),
        (json!({ "permitWaitingTimeSeconds": -1 }), &["permitWaitingTimeSeconds"]),
        (json!({ "podGroupBackoffSeconds": -1 }), &["podGroupBackoffSeconds"]),
        (json!({ "podGroupRejectPercentage": 101 }), &["podGroupRejectPercentage"]),
    ] {
        let problems = problems_of::<Coscheduling>(args.clone());
        assert_eq!(problems.len(), expected.len(), "{args}: {problems:?}");
        for (problem, path) in problems.iter().zip(expected) {
            assert!(problem.contains(path), "{problem}");
        }
    }
}

#[test]
fn members_wait_as_long_as_the_group_or_the_arguments_say() {
    for (of_arguments, of_group, expected) in [
        (60, None, 60),
        (30, None, 30),
        (0, None, 60),
        (30, Some(5), 5),
        (30, Some(0), 30),
        (0, Some(0), 0),
        (30, Some(-5), 0),
    ] {
        let args =
            CoschedulingArgs { permit_waiting_time_seconds: of_arguments, ..CoschedulingArgs::default() };
        assert_eq!(args.permit_wait(of_group).as_secs(), expected, "{of_arguments} and {of_group:?}");
    }
}

#[test]
fn a_group_keeps_its_nodes_if_only_few_are_missing() {
    let args = CoschedulingArgs::default();
    for (placed, min_member, expected) in [(9, 10, true), (8, 10, false), (0, 1, false), (99, 100, true)] {
        assert_eq!(args.keeps_waiting(placed, min_member), expected, "{placed} of {min_member}");
    }
}

#[test]
fn phases_follow_the_pods() {
    // The phase before, minMember; how many pods there are, run, have succeeded, have failed; the phase after, and with the fix.
    for (before, min_member, [pods, running, succeeded, failed], after, mended) in [
        ("", 2, [0, 0, 0, 0], "Pending", "Pending"),
        ("Pending", 3, [2, 0, 0, 0], "Pending", "Pending"),
        ("Pending", 2, [2, 2, 0, 0], "Scheduling", "Scheduling"),
        ("Scheduling", 2, [2, 0, 0, 0], "Scheduling", "Scheduling"),
        ("Scheduling", 2, [2, 2, 0, 0], "Running", "Running"),
        ("Scheduling", 2, [2, 0, 0, 2], "Failed", "Failed"),
        ("Scheduling", 2, [2, 0, 2, 0], "Finished", "Finished"),
        ("Scheduling", 2, [2, 1, 0, 1], "Failed", "Failed"),
        ("Scheduling", 2, [3, 0, 2, 1], "Finished", "Finished"),
        ("Running", 4, [2, 2, 0, 0], "Pending", "Pending"),
        ("Running", 2, [3, 2, 0, 1], "Failed", "Running"),
        ("Failed", 2, [2, 2, 0, 0], "Failed", "Running"),
        ("Finished", 2, [2, 0, 0, 0], "Finished", "Finished"),
    ] {
        let status = PodGroupStatus { phase: before.into(), ..PodGroupStatus::default() };
        let spec = PodGroupSpec { min_member, ..PodGroupSpec::default() };
        let tally = Tally { pods, running, succeeded, failed };
        for (mends, expected) in [(false, after), (true, mended)] {
            let status = next(&status, &spec, tally, Some("ns/owner".to_owned()), mends);
            assert_eq!(&*status.phase, expected, "{before} with {tally:?} of {min_member}, mended: {mends}");
            let is_taken = before == "Pending" && expected == "Scheduling";
            assert_eq!(&*status.occupied_by, if is_taken { "ns/owner" } else { "" });
        }
    }
}
