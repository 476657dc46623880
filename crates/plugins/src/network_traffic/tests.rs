use serde_json::{Value, json};
use supercargo_testkit::{TestCluster, cluster, node, pod, problems_of, trial_with};

use super::*;

/// An hour after the epoch, as all clusters of tests.
const NOW: f64 = 3600.0;

fn args(more: Value) -> Value {
    let mut args = json!({ "prometheusAddress": "http://prometheus:9090" });
    let (Value::Object(all), Value::Object(more)) = (&mut args, more) else {
        panic!("arguments are an object")
    };
    all.extend(more);
    args
}

fn four_nodes() -> TestCluster {
    let addressed = |name: &str, address: &str| {
        node(name).with(json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}}))
    };
    cluster()
        .with(addressed("a", "10.0.0.1"))
        .with(addressed("b", "10.0.0.2"))
        .with(node("c"))
        .with(node("d"))
}

/// What Prometheus answers: series with one label each, their ages and values.
fn vector(samples: &[(&str, &str, f64, &str)]) -> String {
    let series = |(label, node, age, value): &(&str, &str, f64, &str)| json!({"metric": {"device": "eth0", *label: node}, "value": [NOW - age, value]});
    let result: Vec<Value> = samples.iter().map(series).collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
}

#[test]
fn less_traffic_is_more_points() {
    for (raw, expected) in [
        (&[1, 15, 10, 13][..], &[94, 0, 34, 14][..]),
        (&[1, 15, 15, 13], &[94, 0, 0, 14]),
        (&[0, 0, 0], &[100, 100, 100]),
        (&[UNKNOWN, 0, 0], &[50, 100, 100]),
        (&[UNKNOWN, UNKNOWN], &[50, 50]),
        (&[UNKNOWN, 10, 5], &[50, 0, 50]),
        (&[i64::MAX, i64::MAX / 2, 0], &[0, 51, 100]),
        (&[], &[]),
    ] {
        let most = raw.iter().copied().max().unwrap_or(0);
        let points: Vec<i64> = raw.iter().map(|traffic| by_traffic(*traffic, most)).collect();
        assert_eq!(points, expected, "{raw:?}");
    }
}

#[test]
fn what_prometheus_answers_counts_if_it_makes_sense() {
    let (name, instance) = ("kubernetes_node", "instance");
    let plugin = trial_with::<NetworkTraffic>(args(json!({})));
    let mut cluster = four_nodes();
    for (samples, left_out, scores) in [
        (
            vec![
                (name, "a", 0.0, "1"),
                (name, "b", 0.0, "15"),
                (name, "c", 0.0, "10"),
                (name, "d", 0.0, "13.9"),
            ],
            "",
            ["a: 94", "b: 0", "c: 34", "d: 14"],
        ),
        (
            vec![(instance, "10.0.0.1:9100", 0.0, "0"), (instance, "10.0.0.2:9100", 0.0, "0")],
            "",
            ["a: 100", "b: 100", "c: 50", "d: 50"],
        ),
        (
            vec![
                (name, "a", 0.0, "-1"),
                (name, "b", 0.0, "1e300"),
                (name, "c", 600.0, "1"),
                (name, "d", 0.0, "7"),
            ],
            "1 too old, 2 no finite numbers",
            ["a: 50", "b: 50", "c: 50", "d: 0"],
        ),
        (
            vec![(name, "a", 0.0, "5"), (instance, "10.0.0.1:9100", 0.0, "6"), (name, "elsewhere", 0.0, "1")],
            "1 of unknown nodes, 2 of nodes that are told of twice",
            ["a: 50", "b: 50", "c: 50", "d: 50"],
        ),
        (vec![("job", "node-exporter", 0.0, "5")], "1 without a node", ["a: 50", "b: 50", "c: 50", "d: 50"]),
        (vec![], "", ["a: 50", "b: 50", "c: 50", "d: 50"]),
    ] {
        let said = plugin.answer(&mut cluster, "network-traffic", &vector(&samples));
        assert_eq!(said.as_deref(), Ok(left_out), "{samples:?}");
        assert_eq!(plugin.scores(&mut cluster, pod("web")), scores, "{samples:?}");
    }
    for broken in ["<html>busy</html>", "", "{", r#"{"status":"error","errorType":"bad_data","error":"no"}"#]
    {
        assert!(plugin.answer(&mut cluster, "network-traffic", broken).is_err(), "{broken}");
    }
    let by_instance = trial_with::<NetworkTraffic>(args(json!({ "nodeLabel": "instance" })));
    let both = json!({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"kubernetes_node": "b", "instance": "10.0.0.1:9100"}, "value": [NOW, "3"]},
    ]}});
    by_instance.answer(&mut cluster, "network-traffic", &both.to_string()).expect("it can be read");
    assert_eq!(by_instance.scores(&mut cluster, pod("web"))[..2], ["a: 0", "b: 50"]);
}

#[test]
fn an_agent_is_asked_first_and_traffic_counts_where_it_says_too_little() {
    let plugin = trial_with::<NetworkTraffic>(args(json!({ "agentAddress": "localhost:8765" })));
    let suggested = |points: &[(&str, i64)]| {
        Suggestion::from(
            points
                .iter()
                .map(|(node, points)| ((*node).into(), *points))
                .collect::<BTreeMap<Box<str>, i64>>(),
        )
    };
    let traffic = ["a: 94", "b: 0", "c: 34", "d: 14"];
    for (what, points, scores) in [
        (
            "the agent's own",
            &[("a", 1), ("b", 10), ("c", 1), ("d", 1)][..],
            ["a: 10", "b: 100", "c: 10", "d: 10"],
        ),
        ("none is better", &[("a", 0), ("b", 0), ("c", 0), ("d", 0)], ["a: 0", "b: 0", "c: 0", "d: 0"]),
        ("below nothing", &[("a", -5), ("b", 4), ("c", 2), ("d", 1)], ["a: 0", "b: 100", "c: 50", "d: 25"]),
        (
            "large",
            &[("a", i64::MAX), ("b", 0), ("c", i64::MAX / 2), ("d", 1)],
            ["a: 100", "b: 0", "c: 49", "d: 0"],
        ),
        ("partial", &[("a", 1), ("b", 10), ("c", 1)], traffic),
        ("of others", &[("x", 10)], traffic),
    ] {
        let mut cluster = four_nodes().answer_about("default", "web", suggested(points));
        for (node, received) in [("a", 1), ("b", 15), ("c", 10), ("d", 13)] {
            cluster = cluster.fact(node, Traffic(received));
        }
        assert_eq!(plugin.scores(&mut cluster, pod("web")), scores, "{what}");
        assert_eq!(plugin.scores(&mut cluster, pod("another")), traffic, "{what}, for another pod");
    }
}

#[test]
fn one_question_is_about_all_nodes() {
    let asked = |more: Value| {
        let mut args: NetworkTrafficArgs = serde_json::from_value(args(more)).expect("it can be read");
        supercargo_framework::Args::complete(&mut args);
        args.source().expression
    };
    for (more, expression) in [
        (json!({}), r#"sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])"#),
        (
            json!({ "networkInterface": "" }),
            r#"sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])"#,
        ),
        (
            json!({ "networkInterface": "eth0", "timeRangeInMinutes": 3, "measure": "Rate" }),
            r#"rate(node_network_receive_bytes_total{device="eth0"}[3m])"#,
        ),
    ] {
        assert_eq!(asked(more), expression);
    }
}

#[test]
fn arguments_that_cannot_be_are_named() {
    let problems = |args: Value| problems_of::<NetworkTraffic>(args).join("; ");
    for (given, expected) in [
        (json!({}), "prometheusAddress: Required value: the address of Prometheus"),
        (json!({ "prometheusAddress": "prometheus:9090" }), "an address begins with http:// or https://"),
        (
            args(json!({ "prometheus": { "url": "http://other" } })),
            "prometheusAddress: Invalid value: \"http://prometheus:9090\": must be the same",
        ),
        (args(json!({ "networkInterface": "eth0\"}" })), "networkInterface: Invalid value"),
        (
            args(json!({ "timeRangeInMinutes": 0 })),
            "timeRangeInMinutes: Invalid value: 0: must be from 1 to 20160",
        ),
        (args(json!({ "timeRangeInMinutes": -5 })), "timeRangeInMinutes: Invalid value: -5"),
        (args(json!({ "nodeLabel": "a-b" })), "nodeLabel: Invalid value: \"a-b\": is no name of a label"),
        (args(json!({ "queryInterval": "0s" })), "an interval of 0ns is not from 100ms"),
        (
            args(json!({ "agentAddress": "localhost:8765", "agentTimeout": "1h" })),
            "a deadline of 3600s is not from",
        ),
    ] {
        let said = problems(given.clone());
        assert!(said.contains(expected), "{given}: {said}");
    }
    assert_eq!(problems(args(json!({}))), "");
}

#[test]
fn what_it_declares_is_what_it_reads() {
    supercargo_testkit::ReadsCheck::with_args::<NetworkTraffic>(args(json!({}))).check();
}

proptest::proptest! {
    /// The framework refuses every other score, and then the pod fails.
    #[test]
    fn every_score_is_from_0_to_100(
        traffic in proptest::collection::vec(proptest::option::of(0..=i64::MAX), 1..20),
        points in proptest::collection::vec(proptest::option::weighted(0.95, proptest::num::i64::ANY), 1..20),
    ) {
        let raw: Vec<i64> = traffic.iter().map(|traffic| traffic.unwrap_or(UNKNOWN)).collect();
        let most = raw.iter().copied().max().unwrap_or(0);
        let scores: Vec<i64> = raw.iter().map(|traffic| by_traffic(*traffic, most)).collect();
        assert!(scores.iter().all(|score| (0..=100).contains(score)), "{raw:?}: {scores:?}");
        // Whoever has less is not worse off.
        for (one, other) in (0..raw.len()).flat_map(|one| (0..raw.len()).map(move |other| (one, other))) {
            let are_known = raw[one] != UNKNOWN && raw[other] != UNKNOWN;
            assert!(!are_known || raw[one] > raw[other] || scores[one] >= scores[other], "{raw:?}: {scores:?}");
        }
        let suggestion = Suggestion::from(BTreeMap::new());
        let scaled = suggestion.scaled(points.iter().copied());
        assert_eq!(scaled.is_some(), points.iter().all(Option::is_some), "{points:?}");
        let scaled = scaled.unwrap_or_default();
        assert!(scaled.iter().all(|score| (0..=100).contains(score)), "{points:?}: {scaled:?}");
        assert!(scaled.is_empty() || points.iter().flatten().all(|points| *points <= 0) || scaled.contains(&100));
    }
}
