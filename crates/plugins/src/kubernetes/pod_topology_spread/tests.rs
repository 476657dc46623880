use serde_json::{Value, json};
use supercargo_framework::Fixes;
use supercargo_testkit::{
    PodBuilder, TestCluster, added, args_of, cluster, deleted, node, pod, problems_of, trial, trial_with,
    updated,
};

use super::*;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

fn constraint(key: &str, max_skew: i32, when: &str) -> Value {
    let web = json!({ "matchLabels": { "app": "web" } });
    json!({ "topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": when, "labelSelector": web })
}

fn hard(key: &str, max_skew: i32) -> Value {
    constraint(key, max_skew, "DoNotSchedule")
}

fn soft(key: &str, max_skew: i32) -> Value {
    constraint(key, max_skew, "ScheduleAnyway")
}

fn with(mut constraint: Value, field: &str, value: Value) -> Value {
    constraint[field] = value;
    constraint
}

fn web(name: &str) -> PodBuilder {
    pod(name).label("app", "web")
}

/// Nodes a1 and a2 in zone a, b1 in zone b, lost without a zone; two web pods on a1.
fn zones() -> TestCluster {
    cluster()
        .with(node("a1").zone("a"))
        .with(node("a2").zone("a").label("disk", "ssd"))
        .with(node("b1").zone("b").taint("dedicated", "x", "NoSchedule"))
        .with(node("lost"))
        .with(web("w1").on("a1"))
        .with(web("w2").on("a1"))
}

#[test]
fn hard_constraints_reject_nodes() {
    let name = |pod: PodBuilder| pod.label("app", "web");
    let missing = "missing label";
    let in_zone_a = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": ["a"] }] }],
    } } });
    for (what, mut cluster, pod, said) in [
        ("zone a is ahead", zones(), pod("p").spread(hard(ZONE, 1)), ["skewed", "skewed", "ok", missing]),
        (
            "a skew of two is fine without itself",
            zones(),
            pod("p").spread(hard(ZONE, 2)),
            ["ok", "ok", "ok", missing],
        ),
        ("but not with itself", zones(), web("p").spread(hard(ZONE, 2)), ["skewed", "skewed", "ok", missing]),
        ("a skew of three is", zones(), web("p").spread(hard(ZONE, 3)), ["ok", "ok", "ok", missing]),
        ("by node", zones(), web("p").spread(hard(HOSTNAME, 1)), ["skewed", "ok", "ok", "ok"]),
        (
            "both constraints hold",
            zones(),
            web("p").spread(hard(ZONE, 3)).spread(hard(HOSTNAME, 1)),
            ["skewed", "ok", "ok", missing],
        ),
        (
            "other namespaces do not count",
            zones(),
            name(pod("p")).namespace("x").spread(hard(ZONE, 1)),
            ["ok", "ok", "ok", missing],
        ),
        (
            "terminating pods do not count",
            zones().with(web("w1").on("a1").terminating()).with(web("w2").on("a1").terminating()),
            web("p").spread(hard(ZONE, 1)),
            ["ok", "ok", "ok", missing],
        ),
        (
            "its own node affinity leaves zone b out",
            zones(),
            web("p").spread(hard(ZONE, 1)).affinity(in_zone_a.clone()),
            ["ok", "ok", "ok", missing],
        ),
        (
            "unless that is ignored",
            zones(),
            web("p").spread(with(hard(ZONE, 1), "nodeAffinityPolicy", json!("Ignore"))).affinity(in_zone_a),
            ["skewed", "skewed", "ok", missing],
        ),
        (
            "taints leave zone b out if they are honoured",
            zones(),
            web("p").spread(with(hard(ZONE, 1), "nodeTaintsPolicy", json!("Honor"))),
            ["ok", "ok", "ok", missing],
        ),
        (
            "too few domains count as an empty one",
            zones().with(web("w3").on("b1")).with(web("w4").on("b1")),
            web("p").spread(with(hard(ZONE, 2), "minDomains", json!(3))),
            ["skewed", "skewed", "skewed", missing],
        ),
        (
            "only pods of its own version count",
            zones().with(web("w1").label("v", "2").on("a1")),
            web("p").label("v", "2").spread(with(hard(ZONE, 1), "matchLabelKeys", json!(["v", "absent"]))),
            ["skewed", "skewed", "ok", missing],
        ),
        (
            "no selector counts nothing",
            zones(),
            web("p").spread(with(hard(ZONE, 1), "labelSelector", Value::Null)),
            ["ok", "ok", "ok", missing],
        ),
        (
            "an empty one counts the pod itself only",
            zones(),
            web("p").spread(with(hard(ZONE, 1), "labelSelector", json!({}))),
            ["ok", "ok", "ok", missing],
        ),
    ] {
        let said: Vec<String> = ["a1", "a2", "b1", "lost"]
            .into_iter()
            .zip(said)
            .map(|(node, said)| match said {
                "skewed" => format!("{node}: unschedulable: node(s) didn't match pod topology spread constraints"),
                "missing label" => format!(
                    "{node}: unresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
                ),
                other => format!("{node}: {other}"),
            })
            .collect();
        let mut actual = trial::<PodTopologySpread>().filter(&mut cluster, pod);
        actual.sort();
        assert_eq!(actual, said, "{what}");
    }
}

#[test]
fn an_empty_selector_counts_everybody_with_the_fix() {
    let pod = || web("p").spread(with(hard(HOSTNAME, 1), "labelSelector", json!({})));
    let mut cluster = zones();
    let rejected = |cluster: &mut TestCluster| {
        let said = trial::<PodTopologySpread>().filter(cluster, pod());
        said.iter().filter(|said| !said.ends_with(": ok")).count()
    };
    assert_eq!(rejected(&mut cluster), 0);
    cluster.fixes = Fixes { empty_spread_selector: true, ..Fixes::default() };
    assert_eq!(rejected(&mut cluster), 1);
}

#[test]
fn without_constraints_or_state() {
    let plugin = trial::<PodTopologySpread>();
    assert_eq!(plugin.filter(&mut zones(), web("p")), ["*: skip"]);
    assert_eq!(plugin.filter(&mut zones(), web("p").spread(soft(ZONE, 1))), ["*: skip"]);
    assert_eq!(plugin.scores(&mut zones(), web("p").spread(hard(ZONE, 1))), ["*: skip"]);
    assert_eq!(
        plugin.unprepared(&mut zones(), web("p")),
        [
            r#"error: reading "PreFilterPodTopologySpread" from cycleState: not found"#,
            r#"error: error reading "PreScorePodTopologySpread" from cycleState: not found"#,
        ]
    );
    let unreadable = json!({ "matchExpressions": [{ "key": "a", "operator": "Nope" }] });
    let said = plugin.filter(&mut zones(), web("p").spread(with(hard(ZONE, 1), "labelSelector", unreadable)));
    assert!(said[0].starts_with("*: error: get constraints from pod: obtaining pod's hard"), "{said:?}");
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "selector": { "app": "web" } },
    })
}

fn three_nodes() -> TestCluster {
    let nodes = cluster().with(node("n1").zone("a")).with(node("n2").zone("a")).with(node("n3").zone("b"));
    nodes.with(web("1").on("n1")).with(web("2").on("n1")).with(web("3").on("n2")).with(web("4").on("n3"))
}

#[test]
fn pods_of_a_service_spread_softly_by_default() {
    let plugin = trial::<PodTopologySpread>();
    let sorted = |mut scores: Vec<String>| {
        scores.sort();
        scores
    };
    assert_eq!(
        plugin.scores(&mut three_nodes(), web("p")),
        ["*: skip"],
        "nothing says what belongs together"
    );
    let scores = ["n1: 69", "n2: 76", "n3: 100"];
    assert_eq!(sorted(plugin.scores(&mut three_nodes().with(service()), web("p"))), scores);
    assert_eq!(
        plugin.scores(&mut three_nodes().with(service()), pod("p")),
        ["*: skip"],
        "it is not of the service"
    );

    let owner = |kind: &str, api_version: &str, selector: Value| {
        let metadata = json!({ "name": "owner", "namespace": "default" });
        json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": { "selector": selector } })
    };
    let labels = json!({ "app": "web" });
    for (kind, api_version, selector) in [
        ("ReplicaSet", "apps/v1", json!({ "matchLabels": labels })),
        ("StatefulSet", "apps/v1", json!({ "matchLabels": labels })),
        ("ReplicationController", "v1", labels.clone()),
    ] {
        let mut cluster = three_nodes().with(owner(kind, api_version, selector));
        let owned = web("p").controller(api_version, kind, "owner");
        assert_eq!(sorted(plugin.scores(&mut cluster, owned)), scores, "{kind}");
        let orphan = web("p").controller(api_version, kind, "gone");
        assert_eq!(plugin.scores(&mut cluster, orphan), ["*: skip"], "{kind}");
    }
    let none = trial_with::<PodTopologySpread>(json!({ "defaultingType": "List" }));
    assert_eq!(none.scores(&mut three_nodes().with(service()), web("p")), ["*: skip"]);
    let mut one = constraint(ZONE, 1, "DoNotSchedule");
    one.as_object_mut().expect("an object").remove("labelSelector");
    let one =
        trial_with::<PodTopologySpread>(json!({ "defaultingType": "List", "defaultConstraints": [one] }));
    let said = one.filter(&mut three_nodes().with(service()), web("p"));
    assert_eq!(said.iter().filter(|said| said.ends_with(": ok")).collect::<Vec<_>>(), ["n3: ok"]);
}

#[test]
fn a_score_that_looks_like_the_mark_of_ignored_nodes_is_taken_for_it() {
    let mut cluster = cluster().with(node("a").label("zone", "a")).with(node("b").label("zone", "b"));
    let plugin = trial::<PodTopologySpread>();
    for (max_skew, score) in [(1, 100), (0, 0), (-1, 100)] {
        let constraints = json!({ "spec": { "topologySpreadConstraints": [soft("zone", max_skew)] } });
        let expected = [format!("a: {score}"), format!("b: {score}")];
        assert_eq!(plugin.scores(&mut cluster, web("p").with(constraints)), expected, "{max_skew}");
    }
}

#[test]
fn nodes_without_a_key_are_ignored_unless_the_constraints_are_the_systems() {
    let plugin = trial::<PodTopologySpread>();
    let mut cluster =
        cluster().with(node("a").zone("a")).with(node("lost")).with(web("w").on("a")).with(service());
    let own = || web("p").spread(soft(ZONE, 1)).spread(soft(HOSTNAME, 1));
    assert_eq!(plugin.scores(&mut cluster, own()), ["a: 100", "lost: 0"]);
    assert_eq!(plugin.scores(&mut cluster, web("p")), ["a: 22", "lost: 100"]);
    let nothing_yet = &mut crate::kubernetes::pod_topology_spread::tests::cluster()
        .with(node("x").zone("a"))
        .with(node("y").zone("b"));
    assert_eq!(plugin.scores(nothing_yet, web("p").spread(soft(ZONE, 1))), ["x: 100", "y: 100"]);
}

#[test]
fn pods_that_change_the_counts_help() {
    let (label, toleration) = (Actions::UPDATE_POD_LABEL, Actions::UPDATE_POD_TOLERATION);
    let plain = || pod("other").on("n");
    let waits = || web("p").spread(hard(ZONE, 1));
    let tolerant = |pod: PodBuilder| pod.toleration("a", "", "");
    let plugin = trial::<PodTopologySpread>();
    plugin.check_hints(
        &mut cluster(),
        waits(),
        [
            ("one more", added(web("other").on("n")), Hint::Queue),
            ("one less", deleted(web("other").on("n")), Hint::Queue),
            ("one promised less", deleted(web("other").nominated("n")), Hint::Queue),
            ("another kind of pod", added(plain()), Hint::Skip),
            ("another kind of pod goes", deleted(plain()), Hint::Skip),
            ("another namespace", added(web("other").namespace("x").on("n")), Hint::Skip),
            ("a pending pod", added(web("other")), Hint::Skip),
            ("it counts now", updated(label, plain(), plain().label("app", "web")), Hint::Queue),
            ("it does not count any more", updated(label, plain().label("app", "web"), plain()), Hint::Queue),
            ("other labels", updated(label, plain(), plain().label("x", "y")), Hint::Skip),
            ("its own labels", updated(label, pod("p"), web("p")), Hint::Queue),
            ("its own, but others", updated(label, web("p"), web("p").label("x", "y")), Hint::Skip),
            ("its tolerations", updated(toleration, waits(), tolerant(waits())), Hint::Skip),
        ],
    );
    let honors = || web("p").spread(with(hard(ZONE, 1), "nodeTaintsPolicy", json!("Honor")));
    plugin.check_hints(
        &mut cluster(),
        honors(),
        [
            ("taints count", updated(toleration, honors(), tolerant(honors())), Hint::Queue),
            (
                "another's tolerations",
                updated(toleration, web("other").on("n"), tolerant(web("other").on("n"))),
                Hint::Skip,
            ),
        ],
    );
    let unreadable = json!({ "matchExpressions": [{ "key": "a", "operator": "Nope" }] });
    plugin.check_hints(
        &mut cluster(),
        web("p").spread(with(hard(ZONE, 1), "labelSelector", unreadable)),
        [
            ("nobody can tell", added(plain()), Hint::Queue),
            ("it is not involved anyway", added(pod("other")), Hint::Skip),
        ],
    );
}

#[test]
fn nodes_that_change_the_domains_help() {
    let (label, taint) = (Actions::UPDATE_NODE_LABEL, Actions::UPDATE_NODE_TAINT);
    let (lost, a, b) = (|| node("n"), || node("n").zone("a"), || node("n").zone("b"));
    let tainted = || a().taint("x", "", "NoSchedule");
    let waits = web("p").spread(hard(ZONE, 1)).spread(hard(HOSTNAME, 1));
    trial::<PodTopologySpread>().check_hints(
        &mut cluster(),
        waits,
        [
            ("a new node with all keys", added(a()), Hint::Queue),
            ("a new node without", added(lost()), Hint::Skip),
            ("a node with all keys goes", deleted(a()), Hint::Queue),
            ("a node without goes", deleted(lost()), Hint::Skip),
            ("it has all keys now", updated(label, lost(), a()), Hint::Queue),
            ("it has not any more", updated(label, a(), lost()), Hint::Queue),
            ("it moves", updated(label, a(), b()), Hint::Queue),
            ("other labels", updated(label, a(), a().label("x", "y")), Hint::Skip),
            ("taints", updated(taint, a(), tainted()), Hint::Queue),
            ("the same taints", updated(taint, tainted(), tainted()), Hint::Skip),
            (
                "taints of a node without",
                updated(taint, lost(), lost().taint("x", "", "NoSchedule")),
                Hint::Skip,
            ),
            ("more room", updated(Actions::UPDATE_NODE_ALLOCATABLE, a(), b()), Hint::Skip),
        ],
    );
}

#[test]
fn arguments() {
    assert_eq!(args_of::<PodTopologySpread>(json!({})), json!({ "defaultingType": "System" }));
    let plain = || json!({ "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway" });
    let list = |constraints: &[Value]| json!({ "defaultingType": "List", "defaultConstraints": constraints });
    let supported = r#"supported values: "DoNotSchedule", "ScheduleAnyway""#;
    for (args, problems) in [
        (list(&[plain(), hard_default()]), vec![]),
        (json!({ "defaultConstraints": [plain()] }), vec![
            "defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty".to_owned(),
        ]),
        (json!({ "defaultingType": "Best" }), vec![
            r#"defaultingType: Unsupported value: "Best": supported values: "System", "List""#.to_owned(),
        ]),
        (list(&[with(plain(), "maxSkew", json!(0))]), vec![
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)".to_owned(),
        ]),
        (list(&[with(plain(), "topologyKey", json!(""))]), vec![
            "defaultConstraints[0].topologyKey: Required value: can not be empty".to_owned(),
        ]),
        (list(&[with(plain(), "whenUnsatisfiable", json!(""))]), vec![
            "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty".to_owned(),
        ]),
        (list(&[with(plain(), "whenUnsatisfiable", json!("Never"))]), vec![format!(
            "defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": {supported}"
        )]),
        (list(&[with(plain(), "labelSelector", json!({}))]), vec![
            "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for \
             each pod"
                .to_owned(),
        ]),
        (list(&[plain(), plain()]), vec![format!(
            "defaultConstraints[1]: Duplicate value: \"{{{ZONE}, ScheduleAnyway}}\""
        )]),
    ] {
        assert_eq!(problems_of::<PodTopologySpread>(args), problems);
    }
    let odd = problems_of::<PodTopologySpread>(list(&[with(plain(), "topologyKey", json!("a b"))]));
    assert!(
        odd[0].starts_with("defaultConstraints[0].topologyKey: Invalid value: \"a b\": name part"),
        "{odd:?}"
    );
}

fn hard_default() -> Value {
    json!({ "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule" })
}
