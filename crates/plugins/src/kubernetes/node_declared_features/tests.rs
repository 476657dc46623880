use serde_json::json;
use supercargo_testkit::{PodBuilder, added, cluster, node, pod, trial, updated};

use super::*;

const USERS: &str = "UserNamespacesHostNetworkSupport";
const RESTARTS: &str = "RestartAllContainersOnContainerExits";

fn maps_users(host_network: bool, host_users: Option<bool>) -> PodBuilder {
    pod("p").with(json!({ "spec": { "hostNetwork": host_network, "hostUsers": host_users } }))
}

fn restarts_all() -> PodBuilder {
    pod("p").container(json!({ "restartPolicyRules": [{ "action": "RestartAllContainers" }] }))
}

#[test]
fn a_node_must_declare_what_a_pod_needs() {
    let mut cluster = cluster()
        .with(node("none"))
        .with(node("users").features(&[USERS]))
        .with(node("both").features(&["Another", RESTARTS, USERS]));
    let plugin = trial::<NodeDeclaredFeatures>();
    let lacks = |name: &str| format!("{name}: unresolvable: node(s) didn't match Pod's required features");
    let has = |name: &str| format!("{name}: ok");
    for (pod, said) in [
        (pod("p"), vec!["*: skip".to_owned()]),
        (maps_users(true, None), vec!["*: skip".to_owned()]),
        (maps_users(false, Some(false)), vec!["*: skip".to_owned()]),
        (maps_users(true, Some(true)), vec!["*: skip".to_owned()]),
        (maps_users(true, Some(false)), vec![lacks("none"), has("users"), has("both")]),
        (restarts_all(), vec![lacks("none"), lacks("users"), has("both")]),
    ] {
        assert_eq!(plugin.filter(&mut cluster, pod), said);
    }
    let error = r#"error: error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found"#;
    assert_eq!(plugin.unprepared(&mut cluster, pod("p")), [error]);
}

#[test]
fn new_features_help_and_so_do_lower_needs() {
    let feature = Actions::UPDATE_NODE_DECLARED_FEATURE;
    let needs = || maps_users(true, Some(false));
    trial::<NodeDeclaredFeatures>().check_hints(
        &mut cluster(),
        needs(),
        [
            ("a new node", added(node("n")), Hint::Queue),
            ("other features", updated(feature, node("n"), node("n").features(&["Any"])), Hint::Queue),
            (
                "the same features",
                updated(feature, node("n").features(&[USERS]), node("n").features(&[USERS])),
                Hint::Skip,
            ),
            ("taints", updated(Actions::UPDATE_NODE_TAINT, node("n"), node("n")), Hint::Queue),
            ("labels", updated(Actions::UPDATE_NODE_LABEL, node("n"), node("n")), Hint::Skip),
            ("it needs less", updated(Actions::UPDATE, needs(), pod("p")), Hint::Queue),
            (
                "it needs the same",
                updated(Actions::UPDATE_POD_LABEL, needs(), needs().label("a", "b")),
                Hint::Skip,
            ),
            ("another needs less", updated(Actions::UPDATE, needs().uid("o"), pod("p").uid("o")), Hint::Skip),
        ],
    );
}
