use supercargo_framework::Hint;
use supercargo_testkit::{added, cluster, deleted, node, pod, trial, updated};

use super::*;

#[test]
fn a_pod_that_names_a_node_goes_nowhere_else() {
    let mut cluster = cluster().with(node("n1")).with(node("n2"));
    let plugin = trial::<NodeName>();
    assert_eq!(plugin.filter(&mut cluster, pod("p")), ["n1: ok", "n2: ok"]);
    let said = ["n1: ok", "n2: unresolvable: node(s) didn't match the requested node name"];
    assert_eq!(plugin.filter(&mut cluster, pod("p").on("n1")), said);
}

#[test]
fn any_new_node_helps_and_any_change_of_taints() {
    trial::<NodeName>().check_hints(
        &mut cluster(),
        pod("p"),
        [
            ("a new node", added(node("n")), Hint::Queue),
            ("taints", updated(Actions::UPDATE_NODE_TAINT, node("n"), node("n")), Hint::Queue),
            ("labels", updated(Actions::UPDATE_NODE_LABEL, node("n"), node("n")), Hint::Skip),
            ("a node goes", deleted(node("n")), Hint::Skip),
            ("a pod goes", deleted(pod("other").on("n")), Hint::Skip),
        ],
    );
}
