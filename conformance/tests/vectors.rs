//! Our verdicts beside the oracle's: every part of every pod's verdict must be the same.

mod vector_files;

use serde_json::value::RawValue;
use supercargo_conformance::{Case, CaseVerdict, Difference, Judge, compare};
use vector_files::{lines, report, vectors};

#[test]
fn our_verdicts_are_the_oracles() {
    let registry = supercargo_plugins::registry();
    // With the index on as well: whatever it decides otherwise is an error of the case.
    let mut judge = Judge::new(&registry).checking_index();
    let mut pods = 0;
    let mut differences: Vec<Difference> = Vec::new();
    let mut cases = lines(&vectors().join("cases.jsonl.gz"));
    for verdict in lines(&vectors().join("verdicts.jsonl.gz")) {
        let case = cases.next().expect("there is a case for every verdict");
        let case = serde_json::from_str(&case).expect("a case");
        let expected: CaseVerdict = serde_json::from_str(&verdict).expect("a verdict");
        let actual = judge.judge(&case);
        assert_eq!(expected.name, actual.name, "cases and verdicts go in step");
        pods += expected.verdicts.as_ref().map_or(1, Vec::len);
        differences.extend(compare(&expected, &actual));
    }
    assert!(pods > 1_000, "only {pods} verdicts were compared: are the vectors there?");
    assert!(differences.is_empty(), "{} over {pods} pods", report(&differences));
}

/// A profile that has NetworkTraffic and QosAware beside the default plugins.
const WITH_OTHERS: &str = r#"{
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{
        "plugins": {
            "queueSort": {"enabled": [{"name": "QosAware"}], "disabled": [{"name": "*"}]},
            "score": {"enabled": [{"name": "NetworkTraffic", "weight": 3}]},
            "reserve": {"enabled": [{"name": "NetworkTraffic"}, {"name": "QosAware"}]},
            "preBind": {"enabled": [{"name": "QosAware"}]},
            "postBind": {"enabled": [{"name": "QosAware"}]}
        },
        "pluginConfig": [{"name": "NetworkTraffic", "args": {"prometheusAddress": "http://prometheus:9090"}}]
    }]
}"#;
/// What NetworkTraffic gives every node as long as Prometheus says nothing, by its weight.
const UNKNOWN_TRAFFIC: i64 = 3 * 50;

#[test]
fn the_others_say_the_same_beside_network_traffic_and_qos_aware() {
    let registry = supercargo_plugins::registry();
    let mut judge = Judge::new(&registry).checking_index();
    let config: Box<RawValue> = serde_json::from_str(WITH_OTHERS).expect("a configuration");
    let (mut pods, mut differences) = (0, Vec::new());
    let cases = lines(&vectors().join("cases.jsonl.gz"));
    for (case, expected) in cases.zip(lines(&vectors().join("verdicts.jsonl.gz"))) {
        let mut case: Case<'_> = serde_json::from_str(&case).expect("a case");
        let expected: CaseVerdict = serde_json::from_str(&expected).expect("a verdict");
        if case.config.is_some() {
            continue;
        }
        case.config = Some(&config);
        let mut actual = judge.judge(&case);
        for verdict in actual.verdicts.iter_mut().flatten() {
            let traffic = verdict.scores.remove("NetworkTraffic").unwrap_or_default();
            pods += usize::from(!traffic.is_empty());
            for (node, points) in traffic {
                assert_eq!(points, UNKNOWN_TRAFFIC);
                verdict.total.entry(node).and_modify(|total| *total -= points);
            }
        }
        differences.extend(compare(&expected, &actual));
    }
    assert!(pods > 1_000, "NetworkTraffic scored for only {pods} pods");
    assert!(differences.is_empty(), "{} over {pods} pods", report(&differences));
}

#[test]
fn a_wrong_verdict_is_noticed() {
    let verdict = lines(&vectors().join("verdicts.jsonl.gz"))
        .map(|line| serde_json::from_str::<CaseVerdict>(&line).expect("a verdict"))
        .find(|verdict| verdict.verdicts.iter().flatten().any(|verdict| !verdict.chosen.is_empty()))
        .expect("some pod fits");
    assert_eq!(compare(&verdict, &verdict), []);

    let mut wrong = verdict.clone();
    for verdict in wrong.verdicts.iter_mut().flatten() {
        verdict.chosen.push('x');
        verdict.message.push('x');
    }
    let parts: Vec<&str> = compare(&verdict, &wrong).iter().map(|difference| difference.part).collect();
    assert!(parts.contains(&"chosen") && parts.contains(&"message"), "{parts:?}");

    let failed = CaseVerdict { error: "broken".to_owned(), verdicts: None, ..verdict.clone() };
    assert_eq!(compare(&verdict, &failed)[0].part, "error");
    let silent = CaseVerdict { verdicts: None, ..verdict.clone() };
    assert!(!compare(&verdict, &silent).is_empty(), "a verdict that is missing differs");
}
