use serde_json::json;
use supercargo_testkit::{PodBuilder, cluster, pod, status_text, trial, updated};

use super::*;

fn gated(gates: &[&str]) -> PodBuilder {
    let gates: Vec<_> = gates.iter().map(|name| json!({ "name": name })).collect();
    pod("p").with(json!({ "spec": { "schedulingGates": gates } }))
}

#[test]
fn a_pod_with_gates_waits_for_them() {
    let gates = trial::<SchedulingGates>();
    for (pod, said) in [
        (gated(&[]), "ok"),
        (gated(&["a"]), "unresolvable: waiting for scheduling gates: [a]"),
        (gated(&["a", "b"]), "unresolvable: waiting for scheduling gates: [a b]"),
    ] {
        let mut cluster = cluster();
        let pod = cluster.pod(pod);
        let status = gates.profile.pre_enqueue[0].plugin.pre_enqueue(&cluster.context(), &pod);
        assert_eq!(status_text(&status), said);
    }
}

#[test]
fn the_end_of_its_own_gates_helps_a_pod() {
    let gone = Actions::UPDATE_POD_GATES_ELIMINATED;
    trial::<SchedulingGates>().check_hints(
        &mut cluster(),
        gated(&["a"]),
        [
            ("its own gates", updated(gone, gated(&["a"]), gated(&[])), Hint::Queue),
            (
                "another's gates",
                updated(gone, gated(&["a"]).uid("other"), gated(&[]).uid("other")),
                Hint::Skip,
            ),
            ("its labels", updated(Actions::UPDATE_POD_LABEL, gated(&["a"]), gated(&["a"])), Hint::Skip),
        ],
    );
}
