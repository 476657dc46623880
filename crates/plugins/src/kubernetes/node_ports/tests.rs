#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use serde_json::json;
use supercargo_testkit::{PodBuilder, added, cluster, deleted, node, pod, trial, updated};

use super::*;

fn with_port(name: &str, port: serde_json::Value) -> PodBuilder {
    pod(name).container(json!({ "ports": [port] }))
}

#[test]
fn a_port_is_taken_by_protocol_and_address() {
    let plugin = trial::<NodePorts>();
    let any = json!({ "hostPort": 80 });
    let local = json!({ "hostPort": 80, "hostIP": "127.0.0.1" });
    let other = json!({ "hostPort": 80, "hostIP": "10.0.0.1" });
    let udp = json!({ "hostPort": 80, "protocol": "UDP" });
    for (taken, wanted, free) in [
        (&any, &any, false),
        (&any, &local, false),
        (&local, &any, false),
        (&local, &local, false),
        (&local, &other, true),
        (&any, &udp, true),
        (&any, &json!({ "hostPort": 81 }), true),
        (&json!({ "hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP" }), &any, false),
    ] {
        let mut cluster = cluster().with(node("n")).with(with_port("there", taken.clone()).on("n"));
        let said = if free {
            "n: ok"
        } else {
            "n: unschedulable: node(s) didn't have free ports for the requested pod ports"
        };
        assert_eq!(plugin.filter(&mut cluster, with_port("p", wanted.clone())), [said], "{taken} {wanted}");
    }
}

#[test]
fn ports_of_containers_and_sidecars_count() {
    let plugin = trial::<NodePorts>();
    let init = |policy: serde_json::Value| {
        let ports = json!([{ "hostPort": 80 }]);
        pod("p").with(json!({ "spec": { "initContainers": [{ "ports": ports, "restartPolicy": policy }] } }))
    };
    let mut cluster = cluster().with(node("n"));
    for (pod, said) in [
        (pod("p"), "*: skip"),
        (with_port("p", json!({ "containerPort": 80 })), "*: skip"),
        (init(json!(null)), "*: skip"),
        (init(json!("Always")), "n: ok"),
        (pod("p").host_port(80), "n: ok"),
    ] {
        assert_eq!(plugin.filter(&mut cluster, pod), [said]);
    }
    let error = r#"error: reading "PreFilterNodePorts" from cycleState: not found"#;
    assert_eq!(plugin.unprepared(&mut cluster, pod("p")), [error]);
}

#[test]
fn a_pod_that_frees_a_port_helps() {
    let other = |port: u16| pod("other").host_port(port);
    trial::<NodePorts>().check_hints(
        &mut cluster(),
        pod("p").host_port(80),
        [
            ("the port is free", deleted(other(80).on("n")), Hint::Queue),
            ("it was promised only", deleted(other(80).nominated("n")), Hint::Queue),
            ("it was never taken", deleted(other(80)), Hint::Skip),
            ("another port", deleted(other(81).on("n")), Hint::Skip),
            ("no port", deleted(pod("other").on("n")), Hint::Skip),
            ("a new node", added(node("n")), Hint::Queue),
            ("taints", updated(Actions::UPDATE_NODE_TAINT, node("n"), node("n")), Hint::Queue),
            ("labels", updated(Actions::UPDATE_NODE_LABEL, node("n"), node("n")), Hint::Skip),
            ("a new pod", added(other(80).on("n")), Hint::Skip),
        ],
    );
}
