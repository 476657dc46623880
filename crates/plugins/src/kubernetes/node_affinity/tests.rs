use serde_json::{Value, json};
use supercargo_testkit::{
    PodBuilder, TestCluster, added, args_of, cluster, node, pod, problems_of, trial, trial_with, updated,
};

use super::*;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] })
}

fn named(operator: &str, name: &str) -> Value {
    json!({ "matchFields": [{ "key": "metadata.name", "operator": operator, "values": [name] }] })
}

fn requires(terms: &[Value]) -> PodBuilder {
    pod("p").affinity(json!({ "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": terms } } }))
}

fn prefers(terms: &[(i32, Value)]) -> PodBuilder {
    let terms: Vec<Value> =
        terms.iter().map(|(weight, term)| json!({ "weight": weight, "preference": term })).collect();
    pod("p").affinity(json!({ "nodeAffinity": { PREFERRED: terms } }))
}

fn three() -> TestCluster {
    cluster()
        .with(node("a").label("disk", "ssd").label("cores", "8"))
        .with(node("b").label("disk", "hdd").label("cores", "many"))
        .with(node("c"))
}

#[test]
fn a_node_must_match_the_selector_and_one_of_the_terms() {
    let ssd = || expression("disk", "In", &["ssd"]);
    for (what, pod, admitted) in [
        ("selector", pod("p").node_selector("disk", "ssd"), &["a"][..]),
        ("an empty value is a value", pod("p").node_selector("disk", ""), &[]),
        ("one term", requires(&[ssd()]), &["a"]),
        ("either term", requires(&[ssd(), expression("disk", "DoesNotExist", &[])]), &["a", "c"]),
        ("selector and term", requires(&[ssd()]).node_selector("disk", "hdd"), &[]),
        ("not in", requires(&[expression("disk", "NotIn", &["ssd"])]), &["b", "c"]),
        ("exists", requires(&[expression("disk", "Exists", &[])]), &["a", "b"]),
        ("greater", requires(&[expression("cores", "Gt", &["4"])]), &["a"]),
        ("less", requires(&[expression("cores", "Lt", &["8"])]), &[]),
        ("not this node", requires(&[named("NotIn", "a")]), &["b", "c"]),
        ("no term matches nothing", requires(&[]), &[]),
        ("an empty term matches nothing", requires(&[json!({}), ssd()]), &["a"]),
        ("an unreadable term matches nothing", requires(&[expression("disk", "Gt", &["x"]), ssd()]), &["a"]),
    ] {
        let said: Vec<String> = ["a", "b", "c"]
            .iter()
            .map(|name| match admitted.contains(name) {
                true => format!("{name}: ok"),
                false => format!("{name}: unresolvable: node(s) didn't match Pod's node affinity/selector"),
            })
            .collect();
        assert_eq!(trial::<NodeAffinity>().filter(&mut three(), pod), said, "{what}");
    }
    assert_eq!(trial::<NodeAffinity>().filter(&mut three(), pod("p")), ["*: skip"]);
    assert_eq!(trial::<NodeAffinity>().filter(&mut three(), prefers(&[(1, ssd())])), ["*: skip"]);
}

#[test]
fn terms_that_all_name_nodes_narrow_the_search() {
    let both = json!({ "matchFields": [
        { "key": "metadata.name", "operator": "In", "values": ["a"] },
        { "key": "metadata.name", "operator": "In", "values": ["b"] },
    ] });
    let plugin = trial::<NodeAffinity>();
    assert_eq!(
        plugin.filter(&mut three(), requires(&[named("In", "a")])),
        ["a: ok", "b: excluded", "c: excluded"]
    );
    let either = requires(&[named("In", "a"), named("In", "c")]);
    assert_eq!(plugin.filter(&mut three(), either), ["a: ok", "b: excluded", "c: ok"]);
    let conflict = ["*: unresolvable: pod affinity terms conflict"];
    assert_eq!(plugin.filter(&mut three(), requires(&[both])), conflict);
    let one_does_not = requires(&[named("In", "a"), expression("disk", "Exists", &[])]);
    assert!(
        plugin.filter(&mut three(), one_does_not)[1].ends_with("ok"),
        "the other term may match anything"
    );
}

#[test]
fn an_affinity_of_the_profile_holds_for_all_pods() {
    let ssd = expression("disk", "In", &["ssd"]);
    let plugin = trial_with::<NodeAffinity>(json!({ "addedAffinity": {
        REQUIRED: { "nodeSelectorTerms": [expression("disk", "Exists", &[])] },
        PREFERRED: [{ "weight": 3, "preference": ssd }],
    } }));
    let enforced = "c: unresolvable: node(s) didn't match scheduler-enforced node affinity";
    assert_eq!(plugin.filter(&mut three(), pod("p")), ["a: ok", "b: ok", enforced]);
    let own = "b: unresolvable: node(s) didn't match Pod's node affinity/selector";
    assert_eq!(plugin.filter(&mut three(), pod("p").node_selector("disk", "ssd")), ["a: ok", own, enforced]);
    assert_eq!(plugin.scores(&mut three(), pod("p")), ["a: 100", "b: 0", "c: 0"]);
    let own = prefers(&[(1, expression("disk", "In", &["hdd"]))]);
    assert_eq!(plugin.scores(&mut three(), own), ["a: 100", "b: 33", "c: 0"]);
}

#[test]
fn preferred_terms_add_up_and_the_best_gets_a_hundred() {
    let (ssd, disk) = (|| expression("disk", "In", &["ssd"]), || expression("disk", "Exists", &[]));
    let plugin = trial::<NodeAffinity>();
    for (what, pod, scores) in [
        ("two terms", prefers(&[(2, ssd()), (1, disk())]), &["a: 100", "b: 33", "c: 0"][..]),
        ("nobody matches", prefers(&[(2, expression("x", "Exists", &[]))]), &["a: 0", "b: 0", "c: 0"]),
        ("worth nothing", prefers(&[(0, ssd())]), &["a: 0", "b: 0", "c: 0"]),
        ("an empty preference", prefers(&[(5, json!({})), (1, disk())]), &["a: 100", "b: 100", "c: 0"]),
        ("no preference", pod("p"), &["*: skip"]),
        ("an empty list is a list", prefers(&[]), &["a: 0", "b: 0", "c: 0"]),
    ] {
        assert_eq!(plugin.scores(&mut three(), pod), scores, "{what}");
    }
    let unreadable = plugin.scores(&mut three(), prefers(&[(1, expression("disk", "Gt", &["x"]))]));
    assert!(unreadable[0].starts_with("*: error: "), "{unreadable:?}");
}

#[test]
fn a_node_that_matches_from_now_on_helps() {
    let (ssd, hdd) = (|| node("n").label("disk", "ssd"), || node("n").label("disk", "hdd"));
    let label = Actions::UPDATE_NODE_LABEL;
    let wants_ssd = || requires(&[expression("disk", "In", &["ssd"])]);
    trial::<NodeAffinity>().check_hints(
        &mut cluster(),
        wants_ssd(),
        [
            ("a new node that matches", added(ssd()), Hint::Queue),
            ("a new node that does not", added(hdd()), Hint::Skip),
            ("it matches now", updated(label, hdd(), ssd()), Hint::Queue),
            ("it matched before too", updated(label, ssd(), ssd().label("x", "y")), Hint::Skip),
            ("it does not match any more", updated(label, ssd(), hdd()), Hint::Skip),
            ("taints", updated(Actions::UPDATE_NODE_TAINT, hdd(), hdd()), Hint::Queue),
        ],
    );
    let zone = json!({ REQUIRED: { "nodeSelectorTerms": [expression("zone", "Exists", &[])] } });
    trial_with::<NodeAffinity>(json!({ "addedAffinity": zone })).check_hints(
        &mut cluster(),
        wants_ssd(),
        [
            ("the profile forbids it", updated(label, hdd(), ssd()), Hint::Skip),
            ("both match", updated(label, hdd(), ssd().label("zone", "a")), Hint::Queue),
            ("only the profile's part is new", updated(label, ssd(), ssd().label("zone", "a")), Hint::Skip),
        ],
    );
    let unreadable = requires(&[expression("disk", "Gt", &["x"])]).node_selector("disk", "ssd");
    trial::<NodeAffinity>().check_hints(
        &mut cluster(),
        unreadable,
        [("nobody can tell", added(ssd()), Hint::Queue), ("the selector can", added(hdd()), Hint::Skip)],
    );
}

#[test]
fn arguments() {
    assert_eq!(args_of::<NodeAffinity>(json!({})), json!({}));
    let bad = json!([{ "matchExpressions": [{ "key": "a", "operator": "Nope" }] }]);
    let required = json!({ "addedAffinity": { REQUIRED: { "nodeSelectorTerms": bad } } });
    let preferred = json!({ "addedAffinity": { PREFERRED: [{ "weight": 1, "preference": bad[0] }] } });
    for (args, field) in [(required, REQUIRED), (preferred, PREFERRED)] {
        let problems = problems_of::<NodeAffinity>(args);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(&format!("addedAffinity.{field}")), "{problems:?}");
        assert!(problems[0].contains("\"Nope\""), "{problems:?}");
    }
    for (args, problem) in [
        (json!([]), "invalid type: sequence"),
        (json!({ "addedAffinity": { "other": null } }), "unknown field `other`"),
        (
            json!({ "addedAffinity": { REQUIRED: { "nodeSelectorTerms": [{ "x": null }] } } }),
            "unknown field \"x\"",
        ),
        (json!({ "addedAffinity": { REQUIRED: [[]] } }), "invalid type: sequence"),
        (json!({ "addedAffinity": { PREFERRED: [[1, {}]] } }), "invalid type: sequence"),
    ] {
        let problems = problems_of::<NodeAffinity>(args);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(problem), "{problems:?}");
    }
    for nothing in
        [json!({ PREFERRED: [null] }), json!({ PREFERRED: [{ "weight": null, "preference": null }] })]
    {
        let args = json!({ "addedAffinity": nothing });
        assert_eq!(args_of::<NodeAffinity>(args.clone()), args, "null is a term that says nothing");
    }
}
