use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::{Seed, Ties};

#[test]
fn totals_are_sums_of_scores_times_weights() {
    let mut profile =
        profile([json!({ "scores": { "n1": 10, "n2": 30 } }), json!({ "scores": { "n1": 100 } })]);
    for (index, weight) in [3, 2].into_iter().enumerate() {
        profile.score[index].1 = weight;
    }
    let mut cluster = nodes(["n1", "n2"]);
    let evaluation = run(&profile, &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!(evaluation.totals, [230, 90]);
    let scores: Vec<_> = evaluation
        .scores
        .iter()
        .map(|plugin| (plugin.plugin, plugin.weight, plugin.scores.clone()))
        .collect();
    assert_eq!(scores, [("A", 3, vec![30, 90]), ("B", 2, vec![200, 0])]);
    assert_eq!(names(&cluster, evaluation.chosen.as_slice()), ["n1"]);
}

#[test]
fn a_plugin_that_skips_in_pre_score_does_not_score() {
    let scripts = [json!({ "preScore": "skip", "scores": { "n1": 100 } }), json!({ "scores": { "n2": 1 } })];
    let evaluation = run(&profile(scripts), &mut nodes(["n1", "n2"]), pod("p"), Rules::LIVE);
    assert_eq!((evaluation.scores.len(), evaluation.totals), (1, vec![0, 1]));
}

#[test]
fn what_breaks_while_scoring_ends_the_attempt() {
    for (script, error) in [
        (json!({ "preScore": "error: lost" }), r#"running PreScore plugin "A": lost"#),
        (json!({ "preScore": "unschedulable: late" }), r#"running PreScore plugin "A": late"#),
        (
            json!({ "scores": { "n2": "error: broken" } }),
            r#"running Score plugins: plugin "A" failed with: broken"#,
        ),
        (
            json!({ "normalize": "error: odd" }),
            r#"running Normalize on Score plugins: plugin "A" failed with: odd"#,
        ),
        (
            json!({ "scores": { "n2": 101 } }),
            "applying score defaultWeights on Score plugins: plugin \"A\" returns an invalid score 101, it should in \
             the range of [0, 100] after normalizing",
        ),
        (
            json!({ "scores": { "n1": -1 } }),
            "applying score defaultWeights on Score plugins: plugin \"A\" returns an invalid score -1, it should in \
             the range of [0, 100] after normalizing",
        ),
    ] {
        let evaluation = run(&profile([script]), &mut nodes(["n1", "n2"]), pod("p"), Rules::LIVE);
        assert_eq!(evaluation.error.as_deref(), Some(error));
        assert_eq!((evaluation.chosen, evaluation.best.len()), (None, 0));
    }
}

#[test]
fn a_single_feasible_node_is_scored_for_vectors_only() {
    let script =
        || json!({ "filter": { "n2": "unschedulable: no" }, "scores": { "n1": "error: never asked" } });
    let live = run(&profile([script()]), &mut nodes(["n1", "n2"]), pod("p"), Rules::LIVE);
    assert_eq!((live.error, live.chosen.is_some(), live.totals), (None, true, vec![]));
    let conformance = run(&profile([script()]), &mut nodes(["n1", "n2"]), pod("p"), Rules::CONFORMANCE);
    assert!(conformance.error.is_some());
}

#[test]
fn ties_go_to_the_smallest_name_for_vectors() {
    let scores = json!({ "c": 7, "b": 7, "a": 6, "d": 7 });
    let mut cluster = nodes(["d", "c", "b", "a"]);
    let evaluation = run(&profile([json!({ "scores": scores })]), &mut cluster, pod("p"), Rules::CONFORMANCE);
    assert_eq!(names(&cluster, &evaluation.best), ["b", "c", "d"]);
    assert_eq!(names(&cluster, evaluation.chosen.as_slice()), ["b"]);
}

#[test]
fn ties_are_drawn_by_seed_and_spread_over_the_best() {
    let profile = profile([json!({ "scores": { "a": 5, "b": 5, "c": 5, "d": 4 } })]);
    let mut cluster = nodes(["a", "b", "c", "d"]);
    let mut draw = |seed: u64| {
        cluster.seed = seed;
        let evaluation = run(&profile, &mut cluster, pod("p"), Rules::LIVE);
        names(&cluster, evaluation.chosen.as_slice()).concat()
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for attempt in 0..600 {
        let seed = Seed(7).attempt(attempt);
        let chosen = draw(seed);
        assert_eq!(draw(seed), chosen, "the same seed, the same node");
        *counts.entry(chosen).or_default() += 1;
    }
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    // A node gets the share of those before it that are not among the best, here of the last one.
    let shares: Vec<usize> = counts.values().map(|count| (count + 75) / 150).collect();
    assert_eq!(shares, [2, 1, 1], "{counts:?}");
}

#[test]
fn without_score_plugins_all_nodes_are_as_good() {
    let profile = profile_at(&[Point::Filter], [json!({})]);
    let mut cluster = nodes(["a", "b"]);
    let evaluation = run(&profile, &mut cluster, pod("p"), Rules { ties: Ties::SmallestName, ..Rules::LIVE });
    assert_eq!(
        (evaluation.best.len(), names(&cluster, evaluation.chosen.as_slice()).concat()),
        (2, "a".to_owned())
    );
}
