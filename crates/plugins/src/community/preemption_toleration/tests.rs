use serde_json::{Value, json};
use supercargo_engine::{Rules, Thoroughness, evaluate};
use supercargo_framework::Point;
use supercargo_testkit::{
    PodBuilder, ReadsCheck, TestCluster, check_points, cluster, node, pod, problems_of, trial,
};

use super::*;
use crate::kubernetes::NodeResourcesFit;

/// The time of trials, as `cluster()` has it.
const NOW: i64 = 3_600;

fn class(value: i32, annotations: &Value) -> Value {
    let metadata = json!({ "name": "batch", "annotations": annotations });
    json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value })
}

fn annotations(minimum: &str, seconds: &str) -> Value {
    json!({
        "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority": minimum,
        "preemption-toleration.scheduling.x-k8s.io/toleration-seconds": seconds,
    })
}

fn victim(seconds_ago: i64) -> PodBuilder {
    let scheduled = supercargo_model::Timestamp::from_seconds(NOW - seconds_ago).to_string();
    let condition = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled });
    let spec = json!({ "priorityClassName": "batch" });
    pod("victim")
        .cpu("1")
        .priority(8_000)
        .on("n1")
        .with(json!({ "spec": spec, "status": { "conditions": [condition] } }))
}

/// Who goes for a pod that needs a whole node, and what is said.
fn preempts(mut scene: TestCluster, preemptor: PodBuilder) -> (Vec<String>, String) {
    let mut profile = trial::<NodeResourcesFit>().profile;
    profile.score.clear();
    profile.pre_score.clear();
    let plugin = trial::<PreemptionToleration>().profile.plugins()[0].clone();
    assert!(profile.add(&plugin, Point::PostFilter, 1));
    let pod = scene.pod(preemptor.cpu("1"));
    let (context, rules) = (scene.context(), Rules::CONFORMANCE);
    let evaluation = evaluate(&profile, context, &pod, rules, Thoroughness::FirstRejection, &mut 0);
    let victims = evaluation.victims.iter().map(|pod| pod.name.to_string()).collect();
    (victims, evaluation.error.unwrap_or(evaluation.message))
}

fn scene() -> TestCluster {
    let plugin = trial::<PreemptionToleration>().profile.plugins()[0].clone();
    cluster().reading_for(&plugin.reads).with(node("n1").cpu("1"))
}

#[test]
fn it_is_what_it_declares() {
    check_points!(PreemptionToleration);
    ReadsCheck::of::<PreemptionToleration>()
        .object(class(8_000, &annotations("10000", "3600")))
        .pod_value(PodField::PriorityClass, json!({ "spec": { "priorityClassName": "batch" } }))
        .check();
}

#[test]
fn a_class_spares_its_pods_for_a_time() {
    for (what, class, victim, preemptor, goes) in [
        ("inside the time", class(8_000, &annotations("10000", "3600")), victim(3_599), 9_999, false),
        ("at its end", class(8_000, &annotations("10000", "3600")), victim(3_600), 9_999, true),
        ("important enough", class(8_000, &annotations("10000", "3600")), victim(0), 10_000, true),
        ("for ever", class(8_000, &annotations("10000", "-1")), victim(3_600), 9_999, false),
        ("without annotations", class(8_000, &json!({})), victim(0), 8_001, true),
        ("an unreadable minimum", class(8_000, &annotations("many", "-1")), victim(0), 8_001, true),
        (
            "not known to be scheduled",
            class(8_000, &annotations("10000", "1")),
            victim(0).with(json!({ "status": { "conditions": [] } })),
            9_999,
            false,
        ),
        (
            "another class",
            json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "batch" }, "value": 8_000 }),
            victim(0).with(json!({ "spec": { "priorityClassName": "" } })),
            8_001,
            true,
        ),
    ] {
        let (victims, said) = preempts(scene().with(class).with(victim), pod("web").priority(preemptor));
        assert_eq!(victims == ["victim"], goes, "{what}: {victims:?} {said}");
    }
}

#[test]
fn a_class_that_is_gone_is_an_error_of_the_node() {
    let (victims, said) = preempts(scene().with(victim(0)), pod("web").priority(9_000));
    assert!(victims.is_empty(), "{victims:?}");
    assert!(said.contains("priorityclass.scheduling.k8s.io \"batch\" not found"), "{said}");
    let mut mended = scene().with(victim(0));
    mended.fixes.gone_priority_class = true;
    let (victims, said) = preempts(mended, pod("web").priority(9_000));
    assert_eq!(victims, ["victim"], "{said}");
}

#[test]
fn arguments_are_those_of_default_preemption() {
    let problems = problems_of::<PreemptionToleration>(json!({ "minCandidateNodesPercentage": 101 }));
    assert_eq!(problems, ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"]);
}
