use serde_json::{Value, json};
use supercargo_testkit::status_text;

use super::*;

/// What A and B say in PreFilter, and what becomes of it: the rejection, the message, who is to blame.
type Row = (&'static str, [&'static str; 2], &'static str, &'static str, &'static [&'static str]);

#[test]
fn what_pre_filter_plugins_say_is_merged_as_upstream_does() {
    let table: &[Row] = &[
        (
            "the last unschedulable counts, and the others are asked",
            ["unschedulable: a", "unschedulable: b"],
            "unschedulable: b",
            "0/3 nodes are available: b.",
            &["B"],
        ),
        (
            "unschedulable stays though another is fine",
            ["unschedulable: a", "skip"],
            "unschedulable: a",
            "0/3 nodes are available: a.",
            &["A"],
        ),
        (
            "who narrowed the nodes is to blame too",
            ["only: n1", "unschedulable: b"],
            "unschedulable: b",
            "0/3 nodes are available: b.",
            &["A", "B"],
        ),
        (
            "unresolvable ends it, and is the only one to blame",
            ["unresolvable: a", "error: never asked"],
            "unresolvable: a",
            "0/3 nodes are available: a.",
            &["A"],
        ),
        (
            "unresolvable outdoes an earlier unschedulable",
            ["only: n1", "unresolvable: b"],
            "unresolvable: b",
            "0/3 nodes are available: b.",
            &["B"],
        ),
        (
            "two that agree on no node",
            ["only: n1 n2", "only: n3"],
            "unresolvable: node(s) didn't satisfy plugin(s) [A B] simultaneously",
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.",
            &["A", "B"],
        ),
        (
            "several reasons make one message",
            ["unschedulable: a, b", "skip"],
            "unschedulable: a, b",
            "0/3 nodes are available: a, b.",
            &["A"],
        ),
    ];
    for (what, said, rejection, message, blamed) in table {
        let profile = profile(said.map(|said| json!({ "preFilter": said })));
        let evaluation = run(&profile, &mut nodes(["n1", "n2", "n3"]), pod("p"), Rules::LIVE);
        assert_eq!(evaluation.pre_filter.as_ref().map(status_text).as_deref(), Some(*rejection), "{what}");
        assert_eq!(evaluation.message, *message, "{what}");
        let plugins: Vec<&str> = evaluation.diagnosis.unschedulable_plugins.iter().copied().collect();
        assert_eq!(plugins, *blamed, "{what}");
        assert!(evaluation.feasible.is_empty() && evaluation.diagnosis.nodes.is_empty(), "{what}");
        let others = &evaluation.diagnosis.others;
        assert_eq!(status_text(others), *rejection, "{what}: all nodes share the rejection");
    }
}

#[test]
fn one_plugin_that_wants_no_node_is_named_alone() {
    let only_none = json!({ "preFilter": "only: " });
    let profile = profile([only_none]);
    let evaluation = run(&profile, &mut nodes(["n1"]), pod("p"), Rules::LIVE);
    // An empty name is the name of no node, but it is one name: nothing is left of the search, not of the set.
    assert!(evaluation.pre_filter.is_none());
    assert_eq!(evaluation.message, "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [A].");

    struct Nowhere;
    impl Plugin for Nowhere {
        const NAME: &'static str = "Nowhere";
        type Args = supercargo_framework::NoArgs;
        fn new(_: Self::Args) -> Self {
            Nowhere
        }
        fn extensions(points: Extensions<Self>) -> Extensions<Self> {
            points.pre_filter()
        }
    }
    impl PreFilter for Nowhere {
        fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult {
            PreFilterResult::OnlyNodes(std::collections::BTreeSet::new())
        }
    }
    let nowhere = supercargo_testkit::trial::<Nowhere>().profile;
    let evaluation = run(&nowhere, &mut nodes(["n1"]), pod("p"), Rules::LIVE);
    let rejection = evaluation.pre_filter.expect("rejected");
    assert_eq!(status_text(&rejection), "unresolvable: node(s) didn't satisfy plugin Nowhere");
    assert_eq!(rejection.plugin(), None, "the engine said it, not the plugin");
    assert!(evaluation.diagnosis.unschedulable_plugins.contains("Nowhere"));
}

#[test]
fn anything_else_is_an_error_and_ends_the_attempt() {
    for said in ["error: broken", "pending: broken"] {
        let profile = profile([json!({ "preFilter": said }), json!({})]);
        for rules in [Rules::LIVE, Rules::CONFORMANCE] {
            let evaluation = run(&profile, &mut nodes(["n1"]), pod("p"), rules);
            assert_eq!(
                evaluation.error.as_deref(),
                Some(r#"running PreFilter plugin "A": broken"#),
                "{said}"
            );
            assert!(evaluation.chosen.is_none() && evaluation.diagnosis.unschedulable_plugins.is_empty());
        }
    }
}

#[test]
fn a_plugin_that_skips_is_not_asked_about_nodes() {
    let reject = json!({ "n1": "unschedulable: no" });
    let asked = |said: Value| {
        let profile = profile([json!({ "preFilter": said, "filter": reject })]);
        run(&profile, &mut nodes(["n1"]), pod("p"), Rules::LIVE).feasible.len()
    };
    assert_eq!(asked(Value::Null), 0);
    assert_eq!(asked(json!("skip")), 1);
}

#[test]
fn only_the_nodes_that_all_plugins_want_are_looked_at() {
    let scripts = [json!({ "preFilter": "only: n1 n2 gone" }), json!({ "preFilter": "only: n2 n3 gone" })];
    let mut cluster = nodes(["n1", "n2", "n3"]);
    let evaluation = run(&profile(scripts.clone()), &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!(names(&cluster, &evaluation.feasible), ["n2"], "and only those that exist");

    let [a, mut b] = scripts;
    b["filter"] = json!({ "n2": "unschedulable: full" });
    let c = json!({});
    let profile = profile([a, b, c]);
    for (rules, blamed) in [(Rules::LIVE, "[A B]"), (Rules::CONFORMANCE, "[A B]")] {
        let evaluation = run(&profile, &mut cluster, pod("p"), rules);
        let message =
            format!("0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) {blamed}.");
        assert_eq!(evaluation.message, message);
        assert_eq!(evaluation.diagnosis.others.code(), Code::UnschedulableAndUnresolvable);
    }
}

#[test]
fn rules_differ_in_whom_they_blame_for_nodes_not_looked_at() {
    let scripts = [json!({ "preFilter": "only: n1" }), json!({ "filter": { "n1": "unschedulable: full" } })];
    let profile = profile(scripts);
    for (rules, blamed) in [(Rules::LIVE, "[A]"), (Rules::CONFORMANCE, "[A B]")] {
        let evaluation = run(&profile, &mut nodes(["n1", "n2"]), pod("p"), rules);
        let message =
            format!("0/2 nodes are available: 1 full, 1 node(s) didn't satisfy plugin(s) {blamed}.");
        assert_eq!(evaluation.message, message);
    }
}
