use serde_json::json;

use super::*;

fn run_post_filters<const N: usize>(scripts: [Value; N]) -> Evaluation {
    let mut scripts = scripts.map(|script| json!({ "postFilter": script[0], "nominate": script[1] }));
    if let Some(first) = scripts.first_mut() {
        first["filter"] = json!({ "n1": "unschedulable: full" });
    }
    let profile = profile_at(&[Point::Filter, Point::PostFilter], scripts);
    run(&profile, &mut nodes(["n1"]), pod("p"), Rules::LIVE)
}

#[test]
fn post_filters_are_asked_one_after_the_other_as_upstream_does() {
    let nominated = |node: &str| Nomination::Node(node.into());
    for (what, evaluation, suffix, nomination) in [
        (
            "success ends it",
            run_post_filters([json!(["ok", "n1"]), json!(["error: never asked", null])]),
            "",
            nominated("n1"),
        ),
        (
            "unschedulable lets the next try",
            run_post_filters([json!(["unschedulable: a", null]), json!(["ok", "n1"])]),
            "",
            nominated("n1"),
        ),
        (
            "all reasons are told if none succeeds, and the last word on the node counts",
            run_post_filters([
                json!(["unschedulable: a", "clear"]),
                json!(["unschedulable: b", "n1"]),
                json!(["unschedulable: c", null]),
            ]),
            " a, b, c",
            nominated("n1"),
        ),
        (
            "nobody says a word on the node",
            run_post_filters([json!(["unschedulable: a", null]), json!(["pending: b", null])]),
            " a, b",
            Nomination::Keep,
        ),
        (
            "unresolvable ends it with its own word",
            run_post_filters([
                json!(["unschedulable: a", "n1"]),
                json!(["unresolvable: b", "clear"]),
                json!(["ok", "n1"]),
            ]),
            " b",
            Nomination::Clear,
        ),
        (
            "an error ends it and leaves the node as it was",
            run_post_filters([
                json!(["unschedulable: a", "clear"]),
                json!(["error: not found", "n1"]),
                json!(["ok", "n1"]),
            ]),
            " not found",
            Nomination::Keep,
        ),
    ] {
        assert_eq!(evaluation.message, format!("0/1 nodes are available: 1 full.{suffix}"), "{what}");
        assert_eq!(evaluation.nomination, nomination, "{what}");
        assert_eq!(evaluation.error, None, "{what}: the pod is unschedulable, whatever PostFilter says");
    }
}

#[test]
fn without_post_filters_the_nomination_is_taken_back() {
    let profile = profile([json!({ "filter": { "n1": "unschedulable: full" } })]);
    let evaluation = run(&profile, &mut nodes(["n1"]), pod("p").nominated("n1"), Rules::LIVE);
    assert_eq!(evaluation.nomination, Nomination::Clear);
}

/// Takes all pods off the first node and says whether the pod would fit then.
struct Emptier;

impl Plugin for Emptier {
    const NAME: &'static str = "Emptier";
    type Args = supercargo_framework::NoArgs;

    fn new(_: Self::Args) -> Self {
        Emptier
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.post_filter()
    }
}

impl PostFilter for Emptier {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        _: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        let row = cycle.cluster().rows()[0];
        let pods = cycle.cluster().node(row).pods();
        let mut stage = rehearsal.node(row);
        let removed = pods.iter().map(|pod| stage.remove_pod(pod)).find(|status| !status.is_success());
        assert_eq!(removed, None);
        assert!(stage.as_node().pods().is_empty() && !pods.is_empty(), "nothing of it is real");
        let fits = stage.filter().is_success();
        let again = stage.remove_pod(&pods[0]);
        assert_eq!(again.message(), "no corresponding pod there in pods of node n1");
        assert!(stage.add_pod(&pods[0]).is_success() && !stage.filter().is_success());
        let status = if fits { Status::success() } else { Status::unschedulable("no use") };
        PostFilterResult { status, victims: pods.to_vec(), ..PostFilterResult::default() }
    }
}

#[test]
fn a_post_filter_can_try_out_a_node_without_its_pods() {
    let mut profile = profile([json!({ "room": 1 })]);
    let emptier = supercargo_testkit::trial::<Emptier>().profile;
    assert!(profile.add(&emptier.plugins()[0], Point::PostFilter, 1));
    let mut cluster = nodes(["n1"]).with(pod("there").on("n1"));
    let evaluation = run(&profile, &mut cluster, pod("p"), Rules::LIVE);
    assert_eq!(evaluation.message, "0/1 nodes are available: 1 full.");
    assert_eq!(evaluation.victims.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["there"]);

    let held = &mut cluster.with(pod("waiting").nominated("n1"));
    let evaluation = run(&profile, held, pod("p"), Rules::LIVE);
    assert_eq!(
        evaluation.message, "0/1 nodes are available: 1 full. no use",
        "its room is promised to another"
    );
}
