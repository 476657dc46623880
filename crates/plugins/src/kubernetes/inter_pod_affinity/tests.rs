use serde_json::{Value, json};
use supercargo_framework::Fixes;
use supercargo_testkit::{
    PodBuilder, TestCluster, added, args_of, cluster, deleted, node, pod, problems_of, trial, trial_with,
    updated,
};

use super::*;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn term(app: &str, key: &str) -> Value {
    json!({ "labelSelector": { "matchLabels": { "app": app } }, "topologyKey": key })
}

fn near(terms: &[Value]) -> PodBuilder {
    pod("p").affinity(json!({ "podAffinity": { REQUIRED: terms } }))
}

fn far(terms: &[Value]) -> PodBuilder {
    pod("p").affinity(json!({ "podAntiAffinity": { REQUIRED: terms } }))
}

fn weighted(list: &str, terms: &[(i32, Value)]) -> Value {
    let terms: Vec<Value> =
        terms.iter().map(|(weight, term)| json!({ "weight": weight, "podAffinityTerm": term })).collect();
    json!({ list: { PREFERRED: terms } })
}

fn app(name: &str, app: &str) -> PodBuilder {
    pod(name).label("app", app)
}

/// a1 and a2 in zone a, b1 in zone b, lost in none; a web pod on a1 and a db pod on b1.
fn zones() -> TestCluster {
    let nodes = cluster().with(node("a1").zone("a")).with(node("a2").zone("a")).with(node("b1").zone("b"));
    nodes.with(node("lost")).with(app("web", "web").on("a1")).with(app("db", "db").on("b1"))
}

fn namespace(name: &str, team: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": { "team": team } } })
}

fn with(mut term: Value, field: &str, value: Value) -> Value {
    term[field] = value;
    term
}

fn check(what: &str, cluster: &mut TestCluster, pod: PodBuilder, said: [&str; 4]) {
    let said: Vec<String> = ["a1", "a2", "b1", "lost"]
        .into_iter()
        .zip(said)
        .map(|(node, said)| match said {
            "not near" => format!("{node}: unresolvable: node(s) didn't match pod affinity rules"),
            "too near" => format!("{node}: unschedulable: node(s) didn't match pod anti-affinity rules"),
            "unwanted" => {
                format!("{node}: unschedulable: node(s) didn't satisfy existing pods anti-affinity rules")
            }
            other => format!("{node}: {other}"),
        })
        .collect();
    let mut actual = trial::<InterPodAffinity>().filter(cluster, pod);
    actual.sort();
    assert_eq!(actual, said, "{what}");
}

#[test]
fn required_terms_reject_nodes() {
    let (no, too) = ("not near", "too near");
    let web = |key| term("web", key);
    for (what, pod, said) in [
        ("near web, by zone", near(&[web(ZONE)]), ["ok", "ok", no, no]),
        ("near web, by node", near(&[web(HOSTNAME)]), ["ok", no, no, no]),
        ("near web and db: no pod is both", near(&[web(ZONE), term("db", ZONE)]), [no; 4]),
        ("near nobody there is", near(&[term("x", ZONE)]), [no; 4]),
        ("the first of its kind", near(&[term("x", ZONE)]).label("app", "x"), ["ok", "ok", "ok", no]),
        ("far from web, by zone", far(&[web(ZONE)]), [too, too, "ok", "ok"]),
        ("far from web, by node", far(&[web(HOSTNAME)]), [too, "ok", "ok", "ok"]),
        ("far from web and db", far(&[web(ZONE), term("db", ZONE)]), [too, too, too, "ok"]),
        ("in another namespace", near(&[web(ZONE)]).namespace("x"), [no; 4]),
        (
            "web of a named namespace",
            near(&[with(web(ZONE), "namespaces", json!(["default"]))]).namespace("x"),
            ["ok", "ok", no, no],
        ),
        ("no selector means nobody", near(&[json!({ "topologyKey": ZONE })]), [no; 4]),
    ] {
        check(what, &mut zones(), pod, said);
    }
    let existing = || zones().with(app("shy", "shy").near(true, ("app", "web"), ZONE).on("b1"));
    check("a running pod wants no web", &mut existing(), app("p", "web"), ["ok", "ok", "unwanted", "ok"]);
    let plugin = trial::<InterPodAffinity>();
    assert_eq!(plugin.filter(&mut existing(), pod("p")), ["*: skip"], "it is not meant");
    assert_eq!(plugin.filter(&mut zones(), pod("p")), ["*: skip"]);
}

#[test]
fn namespaces_are_picked_by_their_labels() {
    let by =
        |selector: Value| near(&[with(term("web", ZONE), "namespaceSelector", selector)]).namespace("mine");
    let requirement = |operator: &str| json!({ "matchExpressions": [{ "key": "team", "operator": operator, "values": ["x"] }] });
    let all = || zones().with(namespace("default", "x")).with(namespace("mine", "y"));
    check(
        "by label",
        &mut all(),
        by(json!({ "matchLabels": { "team": "x" } })),
        ["ok", "ok", "not near", "not near"],
    );
    check("by another label", &mut all(), by(json!({ "matchLabels": { "team": "y" } })), ["not near"; 4]);
    check("all of them", &mut all(), by(json!({})), ["ok", "ok", "not near", "not near"]);
    check(
        "all but one, as upstream takes it",
        &mut all(),
        by(requirement("NotIn")),
        ["ok", "ok", "not near", "not near"],
    );
    let mut fixed = all();
    fixed.fixes = Fixes { namespace_selector_absence: true, ..Fixes::default() };
    check("all but one", &mut fixed, by(requirement("NotIn")), ["not near"; 4]);
}

#[test]
fn preferences_of_both_sides_add_up() {
    let plugin = trial::<InterPodAffinity>();
    let sorted = |mut scores: Vec<String>| {
        scores.sort();
        scores
    };
    let wants =
        |list: &str, weight: i32, app: &str| pod("p").affinity(weighted(list, &[(weight, term(app, ZONE))]));
    let fond = |weight: i32| {
        app("fond", "x").affinity(weighted("podAffinity", &[(weight, term("web", ZONE))])).on("b1")
    };
    let needy = || app("needy", "x").near(false, ("app", "web"), ZONE).on("b1");
    let both = json!({
        "podAffinity": weighted("podAffinity", &[(7, term("web", ZONE))])["podAffinity"],
        "podAntiAffinity": weighted("podAntiAffinity", &[(5, term("db", ZONE))])["podAntiAffinity"],
    });
    for (what, mut cluster, pod, scores) in [
        ("towards web", zones(), wants("podAffinity", 5, "web"), [100, 100, 0, 0]),
        ("away from web", zones(), wants("podAntiAffinity", 5, "web"), [0, 0, 100, 100]),
        ("both: 7, 7, −5, 0", zones(), pod("p").affinity(both), [100, 100, 0, 41]),
        ("a running pod is fond of web", zones().with(fond(9)), app("p", "web"), [0, 0, 100, 0]),
        ("a running pod needs web", zones().with(needy()), app("p", "web"), [0, 0, 100, 0]),
        (
            "one and the other",
            zones().with(fond(9)),
            app("p", "web").affinity(weighted("podAffinity", &[(3, term("web", ZONE))])),
            [33, 33, 100, 0],
        ),
    ] {
        let expected: Vec<String> = ["a1", "a2", "b1", "lost"]
            .iter()
            .zip(scores)
            .map(|(node, score)| format!("{node}: {score}"))
            .collect();
        assert_eq!(sorted(plugin.scores(&mut cluster, pod)), expected, "{what}");
    }
    assert_eq!(plugin.scores(&mut zones(), pod("p")), ["*: skip"], "nobody has any");
    assert_eq!(plugin.scores(&mut zones(), wants("podAffinity", 5, "x")), ["*: skip"], "nobody is meant");
    let scores = |args: Value, cluster: TestCluster| {
        trial_with::<InterPodAffinity>(args).scores(&mut { cluster }, app("p", "web")).len()
    };
    let ignoring = json!({ "ignorePreferredTermsOfExistingPods": true });
    assert_eq!(scores(ignoring, zones().with(fond(9))), 1, "skipped");
    assert_eq!(scores(json!({ "hardPodAffinityWeight": 0 }), zones().with(needy())), 1, "skipped");
}

#[test]
fn unreadable_terms_and_missing_state() {
    let unreadable = json!({ "labelSelector": { "matchExpressions": [{ "key": "a", "operator": "Nope" }] } });
    let plugin = trial::<InterPodAffinity>();
    let said = plugin.filter(&mut zones(), near(std::slice::from_ref(&unreadable)));
    assert!(said[0].starts_with("*: unresolvable: parsing pod: requiredAffinityTerms: "), "{said:?}");
    assert_eq!(
        plugin.unprepared(&mut zones(), pod("p")),
        [
            r#"error: error reading "PreFilterInterPodAffinity" from cycleState: not found"#,
            r#"error: failed to read "PreScoreInterPodAffinity" from cycleState: not found"#,
        ]
    );
    plugin.check_hints(
        &mut cluster(),
        near(&[unreadable]),
        [
            ("nobody can tell", added(pod("other").on("n")), Hint::Queue),
            ("nobody can tell", added(node("n")), Hint::Queue),
            ("it takes no room anyway", added(pod("other")), Hint::Skip),
        ],
    );
}

#[test]
fn pods_that_come_near_or_go_away_help() {
    let label = Actions::UPDATE_POD_LABEL;
    let plain = || pod("other").on("n");
    let (web, db) = (|| app("other", "web").on("n"), || app("other", "db").on("n"));
    let plugin = trial::<InterPodAffinity>();
    plugin.check_hints(
        &mut cluster(),
        near(&[term("web", ZONE)]),
        [
            ("web comes", added(web()), Hint::Queue),
            ("web is promised", added(app("other", "web").nominated("n")), Hint::Queue),
            ("web is pending", added(app("other", "web")), Hint::Skip),
            ("db comes", added(db()), Hint::Skip),
            ("web of another namespace comes", added(web().namespace("x")), Hint::Skip),
            ("it is web now", updated(label, plain(), web()), Hint::Queue),
            ("it is web no more", updated(label, web(), plain()), Hint::Skip),
            ("it is pending", updated(label, pod("other"), app("other", "web")), Hint::Skip),
            ("web goes", deleted(web()), Hint::Skip),
            ("its own labels", updated(label, pod("p"), app("p", "x")), Hint::Queue),
            ("tolerations", updated(Actions::UPDATE_POD_TOLERATION, plain(), web()), Hint::Skip),
        ],
    );
    plugin.check_hints(
        &mut cluster(),
        near(&[term("web", ZONE), term("db", ZONE)]),
        [("one of two terms", added(web()), Hint::Skip)],
    );
    plugin.check_hints(
        &mut cluster(),
        far(&[term("web", ZONE)]).label("app", "x"),
        [
            ("web goes", deleted(web()), Hint::Queue),
            ("web was promised", deleted(app("other", "web").nominated("n")), Hint::Queue),
            ("web was pending", deleted(app("other", "web")), Hint::Skip),
            ("db goes", deleted(db()), Hint::Skip),
            ("it is web no more", updated(label, web(), db()), Hint::Queue),
            ("it is web now", updated(label, db(), web()), Hint::Skip),
            ("who did not want it goes", deleted(db().near(true, ("app", "x"), ZONE)), Hint::Queue),
            ("who did not want others goes", deleted(db().near(true, ("app", "y"), ZONE)), Hint::Skip),
            ("web comes", added(web()), Hint::Skip),
        ],
    );
    plugin.check_hints(&mut cluster(), pod("p"), [("it has no terms", added(web()), Hint::Skip)]);
}

#[test]
fn nodes_that_join_or_leave_a_domain_help() {
    let label = Actions::UPDATE_NODE_LABEL;
    let (lost, a, b) = (|| node("n"), || node("n").zone("a"), || node("n").zone("b"));
    let plugin = trial::<InterPodAffinity>();
    plugin.check_hints(
        &mut cluster(),
        near(&[term("web", ZONE)]),
        [
            ("a new node in a zone", added(a()), Hint::Queue),
            ("a new node in none", added(lost()), Hint::Skip),
            ("it joins a zone", updated(label, lost(), a()), Hint::Queue),
            ("it moves", updated(label, a(), b()), Hint::Queue),
            ("it leaves", updated(label, a(), lost()), Hint::Skip),
            ("other labels", updated(label, a(), a().label("x", "y")), Hint::Skip),
            ("taints", updated(Actions::UPDATE_NODE_TAINT, a(), a()), Hint::Queue),
            ("a node goes", deleted(a()), Hint::Skip),
        ],
    );
    plugin.check_hints(
        &mut cluster(),
        far(&[term("web", ZONE)]),
        [
            ("any new node", added(lost()), Hint::Queue),
            ("it joins a zone", updated(label, lost(), a()), Hint::Skip),
            ("it moves", updated(label, a(), b()), Hint::Queue),
            ("it leaves", updated(label, a(), lost()), Hint::Queue),
            ("other labels", updated(label, a(), a().label("x", "y")), Hint::Skip),
        ],
    );
    plugin.check_hints(&mut cluster(), pod("p"), [("it has no terms", added(a()), Hint::Skip)]);
}

#[test]
fn arguments() {
    let completed = json!({ "hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": false });
    assert_eq!(args_of::<InterPodAffinity>(json!({})), completed);
    for (weight, valid) in [(-1, false), (0, true), (100, true), (101, false)] {
        let problem = format!("hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]");
        let expected = if valid { vec![] } else { vec![problem] };
        assert_eq!(problems_of::<InterPodAffinity>(json!({ "hardPodAffinityWeight": weight })), expected);
    }
}
