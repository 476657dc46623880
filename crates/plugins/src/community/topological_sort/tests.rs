//! The order, and what the plugin declares. What the controller writes is in `conformance/tests/network_aware.rs`.

use serde_json::{Value, json};
use supercargo_framework::{Conclusion, Effect};
use supercargo_model::{ObjectKey, Timestamp};
use supercargo_testkit::{
    PodBuilder, ReadsCheck, TestCluster, args_of, check_points, cluster, pod, problems_of, trial,
};

use super::*;
use crate::community::network_aware::WORKLOAD_LABEL;

fn app_group(name: &str, made: i64, turns: &[(&str, i64)]) -> Value {
    let turn = |(name, index): &(&str, i64)| json!({ "workload": { "name": name, "selector": name }, "index": index });
    json!({
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1", "kind": "AppGroup",
        "metadata": { "namespace": "default", "name": name, "creationTimestamp": Timestamp::from_seconds(made).to_string() },
        "status": { "topologyOrder": turns.iter().map(turn).collect::<Vec<_>>() },
    })
}

fn member(name: &str, group: &str, workload: &str) -> PodBuilder {
    pod(name).label(APP_GROUP_LABEL, group).label(WORKLOAD_LABEL, workload)
}

fn scene() -> TestCluster {
    let reads = trial::<TopologicalSort>().profile.plugins()[0].reads.clone();
    cluster()
        .reading_for(&reads)
        .counting(&reads)
        .with(app_group("shop", 100, &[("cart", 2), ("db", 3), ("web", 1)]))
        .with(app_group("late", 900, &[("web", 1)]))
}

#[test]
fn it_is_what_it_declares() {
    check_points!(TopologicalSort);
    ReadsCheck::of::<TopologicalSort>().object(app_group("shop", 100, &[("web", 1)])).check();
}

/// Which of two pods goes first, here and by upstream's comparison.
fn goes_first(a: (PodBuilder, i64), b: (PodBuilder, i64)) -> [(bool, bool); 2] {
    let mut scene = scene();
    let mut queued = |(pod, seconds): (PodBuilder, i64)| QueuedPod {
        pod: scene.pod(pod),
        queued_at: Timestamp::from_seconds(seconds),
        first_attempt_at: None,
        attempts: 0,
    };
    let (a, b) = (queued(a), queued(b));
    let plugin = trial::<TopologicalSort>().profile.queue_sort.remove(0).plugin;
    let context = scene.context();
    let both = |less: &dyn Fn(&QueuedPod, &QueuedPod) -> bool| (less(&a, &b), less(&b, &a));
    [both(&|a, b| plugin.less(&context, a, b)), both(&|a, b| plugin.less_upstream(&context, a, b))]
}

#[test]
fn workloads_go_in_their_turns() {
    const FIRST: (bool, bool) = (true, false);
    for (what, a, b, ours, upstream) in [
        ("by turn", (member("a", "shop", "web"), 9), (member("b", "shop", "db"), 1), FIRST, FIRST),
        (
            "one workload",
            (member("a", "shop", "web"), 1),
            (member("b", "shop", "web"), 2),
            FIRST,
            (true, true),
        ),
        (
            "priority within a group",
            (member("a", "shop", "db").priority(5), 9),
            (member("b", "shop", "web"), 1),
            FIRST,
            (false, true),
        ),
        ("without a turn", (member("a", "shop", "other"), 9), (member("b", "shop", "web"), 1), FIRST, FIRST),
        (
            "two groups",
            (member("a", "shop", "db"), 950),
            (member("b", "late", "web"), 940),
            FIRST,
            (false, true),
        ),
        ("a group and none", (member("a", "shop", "db"), 950), (pod("b"), 940), FIRST, (false, true)),
        ("no groups", (pod("a"), 1), (pod("b"), 2), FIRST, FIRST),
        ("priority", (pod("a").priority(1), 9), (member("b", "shop", "web"), 1), FIRST, FIRST),
        (
            "a group that is not there",
            (member("a", "gone", "db"), 1),
            (member("b", "gone", "web"), 2),
            FIRST,
            FIRST,
        ),
    ] {
        assert_eq!(goes_first(a, b), [ours, upstream], "{what}");
    }
}

#[test]
fn only_other_turns_put_all_pods_in_order_again() {
    let object = |group: Value| scene().object(group);
    let before = || app_group("shop", 100, &[("web", 1)]);
    let mut running = before();
    running["status"]["runningWorkloads"] = 3.into();
    let changes = trial::<TopologicalSort>().profile.queue_sort.remove(0).plugin.changes();
    for (what, after, is_other) in [
        ("how many run", running, false),
        ("turns", app_group("shop", 100, &[("web", 2)]), true),
        ("made anew", app_group("shop", 101, &[("web", 1)]), true),
    ] {
        let (before, after) = (object(before()), object(after));
        let change = Change::Object { old: Some(&before), new: Some(&after) };
        assert_eq!(changes.concern(&change), is_other, "{what}");
        assert!(changes.concern(&Change::Object { old: None, new: Some(&after) }), "it came");
        assert!(changes.concern(&Change::Object { old: Some(&after), new: None }), "it went");
    }
}

#[test]
fn definitions_without_a_status_of_their_own_will_do() {
    let answered = |subresource, conclusion: &Conclusion| {
        let key = ObjectKey { namespace: "default".into(), name: "shop".into() };
        let order = Effect::Patch { kind: AppGroup::ID, key, subresource, patch: json!({ "status": {} }) };
        trial::<TopologicalSort>().answered(&mut scene(), &order, conclusion)
    };
    let gone = Conclusion::Gone { error: "the server could not find the requested resource".to_owned() };
    assert_eq!(answered(Some("status"), &gone), ["order: patch appgroups default/shop"]);
    assert_eq!(answered(None, &gone), [""; 0]);
    assert_eq!(answered(Some("status"), &Conclusion::Done), [""; 0]);
    let away = answered(Some("status"), &Conclusion::not_done("away"));
    assert!(away.len() == 1 && away[0].starts_with("wake: "), "{away:?}");
}

#[test]
fn arguments_have_defaults_and_no_others() {
    assert_eq!(args_of::<TopologicalSort>(json!({})), json!({ "namespaces": ["default"] }));
    assert_eq!(problems_of::<TopologicalSort>(json!({ "x": 1 })).len(), 1);
}
