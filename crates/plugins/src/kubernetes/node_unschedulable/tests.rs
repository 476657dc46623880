use serde_json::json;
use supercargo_testkit::{PodBuilder, added, cluster, node, pod, trial, updated};

use super::*;

fn tolerant(key: &str) -> PodBuilder {
    pod("p").with(json!({ "spec": { "tolerations": [{ "key": key, "operator": "Exists" }] } }))
}

#[test]
fn cordoned_nodes_take_only_pods_that_tolerate_it() {
    let mut cluster = cluster().with(node("open")).with(node("cordoned").unschedulable());
    let plugin = trial::<NodeUnschedulable>();
    let rejected = ["open: ok", "cordoned: unresolvable: node(s) were unschedulable"];
    let admitted = ["open: ok", "cordoned: ok"];
    for (pod, said) in [
        (pod("p"), rejected),
        (tolerant("other"), rejected),
        (tolerant(UNSCHEDULABLE_TAINT), admitted),
        (tolerant(""), admitted),
        (pod("p").toleration(UNSCHEDULABLE_TAINT, "", "NoExecute"), rejected),
        (pod("p").toleration(UNSCHEDULABLE_TAINT, "", "NoSchedule"), admitted),
    ] {
        assert_eq!(plugin.filter(&mut cluster, pod), said);
    }
}

#[test]
fn an_open_node_helps_and_so_does_a_new_toleration() {
    let (open, cordoned) = (|| node("n"), || node("n").unschedulable());
    let (taint, toleration) = (Actions::UPDATE_NODE_TAINT, Actions::UPDATE_POD_TOLERATION);
    let other = |pod: PodBuilder| pod.uid("other");
    trial::<NodeUnschedulable>().check_hints(
        &mut cluster(),
        pod("p"),
        [
            ("a new node", added(open()), Hint::Queue),
            ("a new node, cordoned", added(cordoned()), Hint::Skip),
            ("uncordoned", updated(taint, cordoned(), open()), Hint::Queue),
            ("cordoned", updated(taint, open(), cordoned()), Hint::Skip),
            ("open before and after", updated(taint, open(), open()), Hint::Skip),
            ("labels", updated(Actions::UPDATE_NODE_LABEL, cordoned(), open()), Hint::Skip),
            ("its own toleration", updated(toleration, pod("p"), tolerant(UNSCHEDULABLE_TAINT)), Hint::Queue),
            ("its own, of something else", updated(toleration, pod("p"), tolerant("other")), Hint::Skip),
            (
                "another's toleration",
                updated(toleration, other(pod("p")), other(tolerant(UNSCHEDULABLE_TAINT))),
                Hint::Skip,
            ),
        ],
    );
}
