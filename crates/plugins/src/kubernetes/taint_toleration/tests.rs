#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use serde_json::json;
use supercargo_testkit::{PodBuilder, added, cluster, node, pod, trial, updated};

use super::*;

fn tolerating(toleration: serde_json::Value) -> PodBuilder {
    pod("p").with(json!({ "spec": { "tolerations": [toleration] } }))
}

#[test]
fn untolerated_taints_keep_pods_away() {
    let mut cluster = cluster()
        .with(node("plain"))
        .with(node("dedicated").taint("dedicated", "a", "NoSchedule"))
        .with(node("dying").taint("dying", "", "NoExecute"))
        .with(node("meh").taint("dedicated", "a", "PreferNoSchedule"));
    let plugin = trial::<TaintToleration>();
    for (what, pod, rejected) in [
        ("nothing tolerated", pod("p"), &["dedicated", "dying"][..]),
        ("value and effect", pod("p").toleration("dedicated", "a", "NoSchedule"), &["dying"]),
        ("another value", pod("p").toleration("dedicated", "b", "NoSchedule"), &["dedicated", "dying"]),
        ("another effect", pod("p").toleration("dedicated", "a", "NoExecute"), &["dedicated", "dying"]),
        ("any effect", tolerating(json!({ "key": "dedicated", "value": "a" })), &["dying"]),
        ("any value", tolerating(json!({ "key": "dying", "operator": "Exists" })), &["dedicated"]),
        ("anything", tolerating(json!({ "operator": "Exists" })), &[]),
        ("any key with that value", tolerating(json!({ "value": "a" })), &["dying"]),
        (
            "no such operator",
            tolerating(json!({ "key": "dedicated", "operator": "Gt", "value": "a" })),
            &["dedicated", "dying"],
        ),
    ] {
        let said: Vec<String> = ["plain", "dedicated", "dying", "meh"]
            .iter()
            .map(|name| match rejected.contains(name) {
                true => format!("{name}: unresolvable: node(s) had untolerated taint(s)"),
                false => format!("{name}: ok"),
            })
            .collect();
        assert_eq!(plugin.filter(&mut cluster, pod), said, "{what}");
    }
}

#[test]
fn nodes_with_fewer_untolerated_preferences_score_higher() {
    let tainted = |name: &str, count: usize| {
        (0..count).fold(node(name), |node, number| node.taint(&format!("t{number}"), "", "PreferNoSchedule"))
    };
    let mut cluster = cluster().with(tainted("n0", 0)).with(tainted("n1", 1)).with(tainted("n3", 3));
    let plugin = trial::<TaintToleration>();
    assert_eq!(plugin.scores(&mut cluster, pod("p")), ["n0: 100", "n1: 67", "n3: 0"]);
    let tolerant = |effect: &str| pod("p").toleration("t0", "", effect);
    for (effect, scores) in [
        ("PreferNoSchedule", ["n0: 100", "n1: 100", "n3: 0"]),
        ("", ["n0: 100", "n1: 100", "n3: 0"]),
        ("NoSchedule", ["n0: 100", "n1: 67", "n3: 0"]),
    ] {
        assert_eq!(plugin.scores(&mut cluster, tolerant(effect)), scores, "{effect}");
    }
    assert_eq!(
        plugin.unprepared(&mut cluster, pod("p")),
        ["ok", r#"error: failed to read "PreScoreTaintToleration" from cycleState: not found"#]
    );
}

#[test]
fn a_node_that_is_tolerated_now_helps_and_so_do_own_tolerations() {
    let (plain, tainted) = (|| node("n"), |key: &str| node("n").taint(key, "", "NoSchedule"));
    let (taint, toleration) = (Actions::UPDATE_NODE_TAINT, Actions::UPDATE_POD_TOLERATION);
    let tolerant = || pod("p").toleration("a", "", "NoSchedule");
    trial::<TaintToleration>().check_hints(
        &mut cluster(),
        tolerant(),
        [
            ("a new node", added(plain()), Hint::Queue),
            ("a new node, tolerated", added(tainted("a")), Hint::Queue),
            ("a new node, not tolerated", added(tainted("b")), Hint::Skip),
            ("tolerated from now on", updated(taint, tainted("b"), tainted("a")), Hint::Queue),
            ("tolerated before too", updated(taint, tainted("a"), plain()), Hint::Skip),
            ("not tolerated any more", updated(taint, tainted("a"), tainted("b")), Hint::Skip),
            ("never tolerated", updated(taint, tainted("b"), tainted("c")), Hint::Skip),
            ("its own tolerations", updated(toleration, pod("p"), tolerant()), Hint::Queue),
            ("another's", updated(toleration, pod("p").uid("o"), tolerant().uid("o")), Hint::Skip),
        ],
    );
}
