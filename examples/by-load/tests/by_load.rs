//! What the plugin makes of answers, and of none.

use by_load::{ByLoad, Load};
use supercargo_sdk::testkit::{TestCluster, check_reads, cluster, json, node, pod, problems_of, trial};

/// An hour after the epoch, as all clusters of tests.
const NOW: f64 = 3600.0;

fn three_nodes() -> TestCluster {
    let addressed =
        node("b").with(json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}));
    cluster().with(node("a")).with(addressed).with(node("c"))
}

fn vector(samples: &[(&str, f64, &str)]) -> String {
    let result: Vec<_> = samples
        .iter()
        .map(|(node, age, value)| json!({"metric": {"instance": node}, "value": [NOW - age, value]}))
        .collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
}

#[test]
fn less_load_is_better_and_no_answer_is_neither() {
    let mut cluster = three_nodes().fact("a", Load { thousandths: 100 }).fact("b", Load { thousandths: 987 });
    assert_eq!(trial::<ByLoad>().scores(&mut cluster, pod("web")), ["a: 90", "b: 2", "c: 50"]);
}

#[test]
fn what_prometheus_answers_counts_if_it_makes_sense() {
    let by_load = trial::<ByLoad>();
    let mut cluster = three_nodes();
    for (samples, left_out, scores) in [
        (vec![("a:9100", 0.0, "0.25"), ("10.0.0.2:9100", 1.0, "1.5")], "", ["a: 75", "b: 0", "c: 50"]),
        (
            vec![("a", 600.0, "0.25"), ("b", 0.0, "NaN")],
            "1 too old, 1 no finite numbers",
            ["a: 50", "b: 50", "c: 50"],
        ),
        (
            vec![("a", 0.0, "0.1"), ("a:9100", 0.0, "0.2")],
            "2 of nodes that are told of twice",
            ["a: 50", "b: 50", "c: 50"],
        ),
        (vec![("elsewhere", 0.0, "0.1")], "1 of unknown nodes", ["a: 50", "b: 50", "c: 50"]),
    ] {
        let said = by_load.answer(&mut cluster, "load", &vector(&samples));
        assert_eq!(said.as_deref(), Ok(left_out), "{samples:?}");
        assert_eq!(by_load.scores(&mut cluster, pod("web")), scores, "{samples:?}");
    }
    assert!(by_load.answer(&mut cluster, "load", "<html>").is_err());
}

#[test]
fn what_it_declares_is_what_it_reads() {
    check_reads::<ByLoad>();
}

#[test]
fn what_cannot_be_asked_is_said_beforehand() {
    let asked = |args| problems_of::<ByLoad>(args);
    assert_eq!(
        asked(json!({ "prometheus": { "url": "prometheus:9090" } })),
        ["prometheus.url: Invalid value: \"prometheus:9090\": an address begins with http:// or https://"]
    );
    let problems = asked(json!({ "interval": "0s" }));
    assert!(problems[0].contains("query \"load\": an interval of 0ns is not from 100ms"), "{problems:?}");
}

#[test]
fn the_configuration_is_right() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let checked =
        supercargo::outcome_of(["by-load", "config", "check", path], |plugins| plugins.add::<ByLoad>());
    assert_eq!((checked.stdout.as_str(), checked.code), ("", 0));
}
