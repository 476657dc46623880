use serde_json::json;
use supercargo_testkit::{ReadsCheck, check_points, cluster, node, pod, problems_of, trial_with};

use super::*;

fn args(source: &str, kind: &str, strategy: &str) -> serde_json::Value {
    json!({ "metadataKey": "rank", "metadataSource": source, "metadataType": kind, "scoringStrategy": strategy })
}

#[test]
fn it_is_what_it_declares() {
    check_points!(NodeMetadata);
    for source in ["Label", "Annotation"] {
        ReadsCheck::with_args::<NodeMetadata>(args(source, "Number", "Highest")).check();
    }
}

#[test]
fn fractions_count_if_they_are_asked_to() {
    for (is_mended, expected) in [(false, ["a: 1", "b: 1", "c: 1"]), (true, ["a: 23", "b: 100", "c: 1"])] {
        let mut scene = cluster();
        scene.fixes.node_metadata_fractions = is_mended;
        for (name, value) in [("a", "1.2"), ("b", "1.9"), ("c", "1")] {
            scene = scene.with(node(name).label("rank", value));
        }
        let plugin = trial_with::<NodeMetadata>(args("Label", "Number", "Highest"));
        assert_eq!(plugin.scores(&mut scene, pod("web")), expected, "mended: {is_mended}");
    }
}

#[test]
fn numbers_and_times_decide() {
    for (kind, strategy, values, expected) in [
        ("Number", "Highest", ["10", "55", "100", "-"], [1, 50, 100, 0]),
        ("Number", "Lowest", ["10", "55", "100", "-"], [100, 50, 1, 0]),
        ("Number", "Highest", ["7", "7", "-", "-"], [1, 1, 0, 0]),
        ("Number", "Highest", ["2.9", "2.1", "2", "-"], [1, 1, 1, 0]),
        ("Number", "Highest", ["-9e18", "9e18", "0", "-"], [1, 100, 50, 0]),
        ("Number", "Highest", ["-", "-", "-", "-"], [0, 0, 0, 0]),
        ("Timestamp", "Oldest", ["2025-11-01T00:00:00Z", "2025-12-01T00:00:00Z", "-", "-"], [100, 1, 0, 0]),
        ("Timestamp", "Oldest", ["0001-11-01T00:00:00Z", "0900-12-01T00:00:00Z", "-", "-"], [1, 1, 0, 0]),
        (
            "Timestamp",
            "Newest",
            ["2000-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "-"],
            [1, 9, 100, 0],
        ),
        ("Timestamp", "Oldest", ["2900-01-01T00:00:00Z", "9999-12-01T00:00:00Z", "-", "-"], [1, 1, 0, 0]),
        ("Timestamp", "Newest", ["2025-11-01T00:00:00Z", "2025-12-01T00:00:00Z", "-", "-"], [1, 100, 0, 0]),
    ] {
        for source in ["Label", "Annotation"] {
            let mut scene = cluster();
            for (index, value) in values.into_iter().enumerate() {
                let node = node(&index.to_string());
                scene = scene.with(match source {
                    "Label" => node.label("rank", value),
                    _ => node.annotation("rank", value),
                });
            }
            let plugin = trial_with::<NodeMetadata>(args(source, kind, strategy));
            let expected = [0, 1, 2, 3].map(|index| format!("{index}: {}", expected[index]));
            assert_eq!(
                plugin.scores(&mut scene, pod("web")),
                expected,
                "{source} {kind} {strategy} {values:?}"
            );
        }
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let problems = |args| problems_of::<NodeMetadata>(args);
    assert_eq!(problems(args("Label", "Number", "Highest")), [""; 0]);
    assert_eq!(problems(json!({})).len(), 4);
    let wrong = problems(args("Label", "Number", "Newest"));
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].contains("are only valid for metadataType \"Timestamp\""), "{wrong:?}");
    assert!(
        problems(args("Label", "Timestamp", "Lowest"))[0].contains("only valid for metadataType \"Number\"")
    );
    assert!(problems(args("Field", "Text", "Middle")).len() == 3);
}
