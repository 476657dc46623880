use serde_json::json;
use supercargo_testkit::status_text;

use super::*;

#[test]
fn a_node_is_rejected_by_the_first_that_says_no() {
    let scripts = [
        json!({ "filter": { "n2": "unschedulable: a" } }),
        json!({ "filter": { "n2": "unresolvable: b", "n3": "pending: later" } }),
    ];
    let mut cluster = nodes(["n1", "n2", "n3"]);
    let evaluation = run(&profile(scripts), &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!(names(&cluster, &evaluation.feasible), ["n1"]);
    let said = |name: &str| status_text(evaluation.diagnosis.status(cluster.row(name)));
    assert_eq!([said("n2"), said("n3")], ["unschedulable: a", "pending: later"]);
    assert!(evaluation.diagnosis.unschedulable_plugins.iter().eq(&["A", "B"]));
    assert!(evaluation.diagnosis.pending_plugins.iter().eq(&["B"]));
}

#[test]
fn an_error_ends_the_attempt_live_and_counts_against_the_node_in_conformance() {
    for said in ["error: broken", "skip: broken"] {
        let profile = profile([json!({ "filter": { "n1": said } })]);
        let mut cluster = nodes(["n1", "n2"]);
        let live = run(&profile, &mut cluster, pod("p"), Rules::LIVE);
        assert_eq!(live.error.as_deref(), Some(r#"running "A" filter plugin: broken"#), "{said}");
        assert!(live.chosen.is_none() && live.feasible.is_empty());

        let conformance = run(&profile, &mut cluster, pod("p"), Rules::CONFORMANCE);
        assert_eq!(conformance.error, None);
        assert_eq!(names(&cluster, &conformance.feasible), ["n2"]);
        let said = status_text(conformance.diagnosis.status(cluster.row("n1")));
        assert_eq!(said, r#"error: running "A" filter plugin: broken"#);
        assert!(conformance.diagnosis.unschedulable_plugins.is_empty(), "a failure is no rejection");
    }
}

/// One node with room for one pod, and pods nominated to it.
fn nominated<const N: usize>(pods: [PodBuilder; N]) -> TestCluster {
    pods.into_iter().fold(nodes(["n1"]), |cluster, pod| cluster.with(pod.nominated("n1")))
}

#[test]
fn nominated_pods_of_no_lower_priority_keep_their_room() {
    let room_for_one = || profile([json!({ "room": 1 })]);
    for (what, mut cluster, feasible) in [
        ("nobody is nominated", nominated([]), 1),
        ("a lower one does not count", nominated([pod("other").priority(4)]), 1),
        ("an equal one does", nominated([pod("other").priority(5)]), 0),
        ("a higher one does", nominated([pod("other").priority(6)]), 0),
        ("the pod itself does not", nominated([pod("p").priority(5)]), 1),
        ("an old object of the pod does not", nominated([pod("other").uid("p").priority(9)]), 1),
        ("one of two is enough", nominated([pod("low").priority(1), pod("high").priority(9)]), 0),
    ] {
        let evaluation = run(&room_for_one(), &mut cluster, pod("p").priority(5), Rules::LIVE);
        assert_eq!(evaluation.feasible.len(), feasible, "{what}");
    }
}

/// Wants company: rejects nodes without pods.
struct Sociable;

impl Plugin for Sociable {
    const NAME: &'static str = "Sociable";
    type Args = supercargo_framework::NoArgs;

    fn new(_: Self::Args) -> Self {
        Sociable
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for Sociable {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if node.pods().is_empty() { Status::unschedulable("lonely") } else { Status::success() }
    }
}

#[test]
fn a_pod_must_fit_without_the_nominated_pods_too() {
    let sociable = supercargo_testkit::trial::<Sociable>().profile;
    let mut cluster = nominated([pod("other")]);
    let evaluation = run(&sociable, &mut cluster, pod("p"), Rules::LIVE);
    let said = status_text(evaluation.diagnosis.status(cluster.row("n1")));
    assert_eq!(said, "unschedulable: lonely", "the nominated pod may never come");
    cluster.put(pod("there").on("n1"));
    assert_eq!(run(&sociable, &mut cluster, pod("p"), Rules::LIVE).feasible.len(), 1);
}

#[test]
fn bringing_the_state_up_to_date_may_fail() {
    let profile = profile([json!({ "addPod": "error: lost" })]);
    let mut cluster = nominated([pod("other")]).with(node("n2"));
    let evaluation = run(&profile, &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!(evaluation.error.as_deref(), Some(r#"running AddPod on PreFilter plugin "A": lost"#));
    let skips = json!({ "preFilter": "skip", "addPod": "error: never asked" });
    let evaluation = run(&super::profile([skips]), &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!((evaluation.error, evaluation.feasible.len()), (None, 2));
}

#[test]
fn the_nominated_node_is_tried_first_and_taken_if_it_will_do() {
    let scripts = || [json!({ "scores": { "n2": 100 } })];
    let mut cluster = nodes(["n1", "n2"]);
    for (rules, chosen) in [(Rules::LIVE, "n1"), (Rules::CONFORMANCE, "n2")] {
        let evaluation = run(&profile(scripts()), &mut cluster, pod("p").nominated("n1"), rules);
        assert_eq!(names(&cluster, evaluation.chosen.as_slice()), [chosen]);
    }
    let gone = run(&profile(scripts()), &mut cluster, pod("p").nominated("gone"), Rules::LIVE);
    assert_eq!(names(&cluster, gone.chosen.as_slice()), ["n2"]);
    for said in ["unschedulable: no", "error: broken"] {
        let script = json!({ "filter": { "n3": said }, "preFilter": "only: n1 n2", "scores": { "n2": 100 } });
        let mut cluster = nodes(["n1", "n2", "n3"]);
        let evaluation = run(&profile([script]), &mut cluster, pod("p").nominated("n3"), Rules::LIVE);
        assert_eq!(evaluation.error, None, "{said}: what is wrong with the nominated node ends nothing");
        assert_eq!(names(&cluster, evaluation.chosen.as_slice()), ["n2"]);
    }
}

#[test]
fn what_was_said_about_the_nominated_node_stands_where_the_search_does_not_come_to_it() {
    let a = json!({ "preFilter": "only: n1" });
    let b = json!({ "filter": { "n1": "unschedulable: full", "n2": "unresolvable: tainted" } });
    let mut cluster = nodes(["n1", "n2", "n3"]);
    let evaluation = run(&profile([a, b]), &mut cluster, pod("p").nominated("n2"), Rules::LIVE);
    assert_eq!(
        evaluation.message,
        "0/3 nodes are available: 1 full, 1 node(s) didn't satisfy plugin(s) [A B], 1 tainted."
    );
}

#[test]
fn a_sample_stops_at_the_first_too_many_and_goes_on_from_there() {
    let names: Vec<String> = (0..300).map(|number| format!("n{number:03}")).collect();
    let mut cluster = names.iter().fold(cluster(), |cluster, name| cluster.with(node(name)));
    // Every third node is full.
    let full: serde_json::Map<String, Value> =
        names.iter().step_by(3).map(|name| (name.clone(), json!("unschedulable: full"))).collect();
    let mut profile = profile([json!({ "filter": full })]);
    let pod = cluster.pod(pod("p"));
    let search = |profile: &Profile, rules: Rules, start: &mut usize| {
        let evaluation = evaluate(profile, cluster.context(), &pod, rules, Thoroughness::default(), start);
        (evaluation.feasible.len(), evaluation.diagnosis.nodes.len())
    };
    let mut start = 0;
    assert_eq!(search(&profile, Rules::LIVE, &mut start), (200, 100), "all, if nobody asks for less");
    assert_eq!(start, 0, "once round");

    profile.percentage_of_nodes_to_score = Some(40);
    // 120 are wanted: after 180 nodes, the 181st is full and the 182nd is one too many.
    assert_eq!(search(&profile, Rules::LIVE, &mut start), (120, 61));
    assert_eq!(start, 181);
    // From the 182nd on, which is the second of its three, and round the end.
    assert_eq!(search(&profile, Rules::LIVE, &mut start), (120, 60));
    assert_eq!(start, 61);
    assert_eq!(search(&profile, Rules::CONFORMANCE, &mut start), (200, 100), "vectors are not samples");

    profile.percentage_of_nodes_to_score = Some(1);
    start = 299;
    assert_eq!(search(&profile, Rules::LIVE, &mut start), (100, 50), "a hundred at least");
    assert_eq!(start, 149);

    profile.score.clear();
    start = 0;
    assert_eq!(search(&profile, Rules::LIVE, &mut start), (1, 1), "one, if nothing tells them apart");
    assert_eq!(start, 2);
}

#[test]
fn without_filters_every_node_will_do() {
    let profile = profile_at(&[Point::Score], [json!({ "scores": { "n2": 9 } })]);
    let mut cluster = nominated([pod("other").priority(9)]).with(node("n2"));
    let evaluation = run(&profile, &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!(evaluation.feasible.len(), 2);
    assert_eq!(names(&cluster, evaluation.chosen.as_slice()), ["n2"]);
}

/// What is asked thoroughly has the same answer, and its words know of nominated pods.
#[test]
fn every_word_says_no_other_than_the_first_rejection() {
    let scripts = || {
        [
            json!({ "filter": { "n2": "unschedulable: a", "n3": "error: broken" } }),
            json!({ "room": 1, "filter": { "n2": "unresolvable: b" } }),
        ]
    };
    let mut cluster = nominated([pod("other").priority(5)]).with(node("n2")).with(node("n3"));
    let p = cluster.pod(pod("p").priority(5));
    let profile = profile(scripts());
    let ask =
        |thoroughness| evaluate(&profile, cluster.context(), &p, Rules::CONFORMANCE, thoroughness, &mut 0);
    let (first, every) = (ask(Thoroughness::FirstRejection), ask(Thoroughness::EveryWord));
    assert_eq!(every.diagnosis.nodes, first.diagnosis.nodes);
    assert_eq!(every.message, first.message);
    let words: Vec<Vec<String>> = (every.words.iter())
        .map(|(_, words)| words.iter().map(|word| status_text(&word.status)).collect())
        .collect();
    assert_eq!(words[0], ["ok", "unschedulable: full"], "the nominated pod takes the room");
    assert_eq!(words[1], ["unschedulable: a", "unresolvable: b"]);
    assert_eq!(words[2], [r#"error: running "A" filter plugin: broken"#, "ok"]);
}

#[test]
fn nodes_can_be_asked_about_alone() {
    let script = json!({ "preFilter": "only: n1 n2", "filter": { "n2": "unschedulable: full" } });
    let mut cluster = nodes(["n1", "n2", "n3"]);
    let p = cluster.pod(pod("p"));
    let among = |profile: &Profile, wanted: &[&str]| {
        let rows: Vec<Row> = wanted.iter().map(|name| cluster.row(name)).collect();
        names(&cluster, &crate::feasible_among(profile, cluster.context(), &p, &rows))
    };
    assert_eq!(among(&profile([script.clone()]), &["n3", "n2", "n1"]), ["n1"]);
    assert!(among(&profile([script]), &["n2", "n3"]).is_empty());
    let rejects = profile([json!({ "preFilter": "unschedulable: no" })]);
    assert!(among(&rejects, &["n1"]).is_empty());
}

#[test]
fn each_of_some_nodes_gets_its_word_and_its_score() {
    let mut cluster = nodes(["n1", "n2", "n3"]);
    let p = cluster.pod(pod("p"));
    let rows: Vec<Row> = ["n3", "n1", "n2"].iter().map(|name| cluster.row(name)).collect();
    let words = |script| {
        let words = crate::filter_among(&profile([script]), cluster.context(), &p, &rows);
        words.iter().map(status_text).collect::<Vec<_>>()
    };
    let script = json!({ "preFilter": "only: n1 n2", "filter": { "n2": "unschedulable: full" } });
    let left_out = "unresolvable: node(s) didn't satisfy plugin(s) [A]";
    assert_eq!(words(script), [left_out, "ok", "unschedulable: full"]);
    assert_eq!(words(json!({ "preFilter": "unresolvable: no" })), ["unresolvable: no"; 3]);
    assert_eq!(
        words(json!({ "filter": { "n1": "error: broken" } })),
        ["ok", r#"error: running "A" filter plugin: broken"#, "ok"]
    );

    let scores = |script| crate::score_among(&profile([script]), cluster.context(), &p, &rows);
    let found = scores(json!({ "scores": { "n1": 7, "n3": 100 }, "preFilter": "unschedulable: no" }));
    let found = found.expect("a rejection is no reason not to score");
    assert_eq!((found.totals, found.highest_possible), (vec![100, 7, 0], 100));
    let broken = scores(json!({ "preFilter": "error: broken" })).expect_err("nothing can be said");
    assert_eq!(broken, r#"running PreFilter plugin "A": broken"#);
    assert!(scores(json!({ "scores": { "n1": "error: broken" } })).is_err());
}
