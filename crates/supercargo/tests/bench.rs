//! `bench decide`, as its user runs it.

mod support;

use serde_json::Value;
use support::{check, supercargo};

fn bench(arguments: &[&str]) -> std::process::Output {
    supercargo(&[&["bench", "decide"], arguments].concat(), "")
}

#[test]
fn json_has_the_fields_of_the_peer_and_ours() {
    let output =
        bench(&["--nodes", "12", "--pods", "100", "--init", "3", "--workload", "basic,churn", "--json"]);
    check(&output, 0, &[]);
    assert!(output.stderr.is_empty(), "progress is for terminals");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    for (line, kind) in lines.iter().zip(["basic", "churn"]) {
        assert_eq!(line["kind"], kind);
        for (field, value) in [("nodes", 12), ("percent", 0), ("init", 3), ("pods", 100), ("checked", 103)] {
            assert_eq!(line[field], value, "{field} in {line}");
        }
        assert_eq!(line["decisions"], 103);
        assert!(line["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{line}");
        let number = |field: &str| line[field].as_u64().unwrap_or_else(|| panic!("{field} in {line}"));
        assert!(number("p50_ns") <= number("p99_ns") && number("p99_ns") <= number("max_ns"), "{line}");
        assert!(number("first_ns") > 0 && number("runs") > 0, "{line}");
        for field in ["rss_bytes", "peak_rss_bytes"] {
            assert_eq!(line[field].is_u64(), cfg!(target_os = "linux"), "{field} in {line}");
        }
    }
}

#[test]
fn a_table_for_people() {
    let output = bench(&[
        "--nodes",
        "12",
        "--pods",
        "4",
        "--workload",
        "classes",
        "--percent",
        "50",
        "--check-seconds",
        "0",
    ]);
    check(&output, 1, &["workload classes: pod sched-0/basic-", "--nodes"]);
    let output = bench(&["--nodes", "12", "--pods", "100", "--init", "0", "--workload", "classes"]);
    check(
        &output,
        0,
        &[
            "WORKLOAD",
            "DECISIONS/S",
            "QUARTILES",
            "without the first decision of each",
            "FIRST",
            "classes",
            "100 of 100",
        ],
    );
}

#[test]
fn several_sizes_take_turns() {
    let output = bench(&[
        "--nodes",
        "12",
        "24",
        "--pods",
        "210",
        "--init",
        "0",
        "--workload",
        "basic",
        "--json",
        "--check-seconds",
        "0",
    ]);
    check(&output, 0, &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.iter().map(|line| line["nodes"].as_u64()).collect::<Vec<_>>(), [Some(12), Some(24)]);
    assert_eq!(lines[0]["ratio"], 1.0, "{}", lines[0]);
    assert_eq!(lines[0]["runs"], lines[1]["runs"]);
    for line in &lines {
        assert_eq!(line["left_out"], 100);
        let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field} in {line}"));
        assert!(number("ratio") > 0.0 && number("runs") >= 3.0, "{line}");
        assert!(number("rate_q1") <= number("rate") && number("rate") <= number("rate_q3"), "{line}");
    }
}

#[test]
fn wrong_usage_says_what_is_right() {
    for (arguments, expected) in [
        (&["--workload", "basc"][..], &["'basc'", "a similar value exists: 'basic'", "preferred-spread"][..]),
        (&["--workload"], &["--workload <NAME>"]),
        (&["--nodes", "0"], &["'0'", "--nodes", "1..=10000000"]),
        (&["--nodes", "many"], &["'many'", "--nodes"]),
        (&["--percent", "101"], &["'101'", "--percent", "0..=100"]),
        (&["--pods", "0"], &["'0'", "--pods"]),
        (&["--seconds", "0"], &["'0'", "--seconds"]),
        (&["--seconds", "2", "--long"], &["--seconds", "--long", "cannot be used with"]),
        (&["basic"], &["unexpected argument 'basic'"]),
    ] {
        check(&bench(arguments), 2, expected);
    }
    check(&supercargo(&["bench"], ""), 2, &["decide"]);
    check(
        &bench(&["--help"]),
        0,
        &["--percent", "nodes take 39 volumes", "preemption:", "all nodes full of 20 pods each", "FIRST"],
    );
}
