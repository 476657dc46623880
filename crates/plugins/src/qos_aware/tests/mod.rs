mod histories;
mod limits;
mod pages;

use serde_json::{Value, json};
use supercargo_testkit::{cluster, pod, problems_of, trial_with};

use super::*;

#[test]
fn arguments_that_cannot_be_are_named() {
    for (given, expected) in [
        (json!({ "safetyMargin": "-1s" }), "safetyMargin: Invalid value: \"-1s\": must not be negative"),
        (
            json!({ "minimumRunningTime": "-10m" }),
            "minimumRunningTime: Invalid value: \"-10m0s\": must not be negative",
        ),
        (json!({ "safetyMargin": "soon" }), "safetyMargin: time: invalid duration \"soon\""),
        (
            json!({ "acceptablePreemptionOverhead": 1.5 }),
            "acceptablePreemptionOverhead: Invalid value: 1.5: must be from 0 to 1",
        ),
        (json!({ "debugAddress": "localhost:10000" }), "debugAddress: Invalid value: \"localhost:10000\""),
        (json!({ "debugAddress": "127.0.0.1:0" }), "needs a port other than 0"),
        (json!({ "slo": 1 }), "unknown field `slo`"),
        (json!({}), ""),
        (
            json!({ "safetyMargin": "20s", "minimumRunningTime": "10m", "acceptablePreemptionOverhead": 0.5 }),
            "",
        ),
        (json!({ "debugAddress": "" }), ""),
    ] {
        let said = problems_of::<QosAware>(given.clone()).join("; ");
        assert!(said.contains(expected) && expected.is_empty() == said.is_empty(), "{given}: {said}");
    }
}

#[test]
fn annotations_that_cannot_be_count_as_if_they_were_not_there() {
    let of = |annotations: Value, owner: &str| {
        let mut pod = pod("web").with(json!({ "metadata": { "annotations": annotations } }));
        if !owner.is_empty() {
            pod = pod.controller("apps/v1", owner, "web");
        }
        let pod = cluster().pod(pod);
        let terms = terms::Terms::of(&pod);
        let problems = terms::Terms::problems(&pod);
        let names = problems.iter().map(|problem| problem.name).collect::<Vec<_>>().join(",");
        (terms.controller.to_owned(), terms.slo, terms.approach, terms.acceptable_overhead, names)
    };
    let (independent, average, aggregate) = (Approach::Independent, Approach::Average, Approach::Aggregate);
    for (annotations, owner, controller, slo, approach, overhead, wrong) in [
        (json!({}), "", "", 0.8, independent, None, ""),
        (json!({}), "ReplicaSet", "", 0.8, average, None, ""),
        (json!({}), "Job", "", 0.8, aggregate, None, ""),
        (json!({ "controller": "a", "slo": "1" }), "StatefulSet", "a", 1.0, average, None, ""),
        (json!({ "slo": "0", "qosMeasuring": "concurrent" }), "Job", "", 0.0, Approach::Concurrent, None, ""),
        (
            json!({ "slo": "0.95", "acceptablePreemptionOverhead": "0.1" }),
            "",
            "",
            0.95,
            independent,
            Some(0.1),
            "",
        ),
        (json!({ "slo": "2" }), "", "", 0.8, independent, None, "slo"),
        (json!({ "slo": "-0.5" }), "", "", 0.8, independent, None, "slo"),
        (json!({ "slo": "NaN" }), "", "", 0.8, independent, None, "slo"),
        (json!({ "slo": "inf" }), "", "", 0.8, independent, None, "slo"),
        (json!({ "slo": "ninety" }), "", "", 0.8, independent, None, "slo"),
        (json!({ "slo": "" }), "", "", 0.8, independent, None, "slo"),
        (
            json!({ "acceptablePreemptionOverhead": "-1", "qosMeasuring": "best" }),
            "Job",
            "",
            0.8,
            aggregate,
            None,
            "acceptablePreemptionOverhead,qosMeasuring",
        ),
        (json!({ "controller": "x".repeat(254) }), "", "", 0.8, independent, None, "controller"),
    ] {
        let expected = (controller.to_owned(), slo, approach, overhead, wrong.to_owned());
        assert_eq!(of(annotations.clone(), owner), expected, "{annotations} of {owner:?}");
    }
}

#[test]
fn people_are_told_once_what_is_wrong_with_the_annotations_of_a_controller() {
    let trial = trial_with::<QosAware>(json!({}));
    let mut cluster = cluster();
    let mut tell = |name: &str, slo: &str| {
        let pod = pod(name).annotation("controller", "batch").annotation("slo", slo);
        trial.observed(&mut cluster, &supercargo_testkit::added(pod))
    };
    let first = tell("a", "2");
    assert_eq!(first, ["count: invalid_annotations{annotation=slo}", "order: tell an event on pods a"]);
    assert_eq!(tell("b", "-1"), ["count: invalid_annotations{annotation=slo}"]);
    assert_eq!(tell("c", "0.5"), [""; 0]);
}

#[test]
fn what_it_declares_is_what_it_reads() {
    supercargo_testkit::check_points!(QosAware);
    supercargo_testkit::check_reads::<QosAware>();
}
