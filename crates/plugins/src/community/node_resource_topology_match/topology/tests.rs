use serde_json::{Value, json};

use super::*;

fn read(object: &Value) -> NodeResourceTopology {
    serde_json::from_value(object.clone()).expect("a topology")
}

#[test]
fn attributes_count_before_policies_of_old_and_nonsense_does_not() {
    let attribute = |name: &str, value: &str| json!({ "name": name, "value": value });
    for (policies, attributes, policy, scope) in [
        (json!([]), json!([]), Policy::None, Scope::Container),
        (json!(null), json!(null), Policy::None, Scope::Container),
        (json!(["SingleNUMANodePodLevel", "None"]), json!([]), Policy::SingleNumaNode, Scope::Pod),
        (json!(["None", "SingleNUMANodePodLevel"]), json!([]), Policy::None, Scope::Container),
        (json!(["Restricted"]), json!([]), Policy::None, Scope::Container),
        (json!(["RestrictedPodLevel"]), json!([attribute(POLICY, "odd")]), Policy::Restricted, Scope::Pod),
        (
            json!(["BestEffortPodLevel"]),
            json!([attribute(POLICY, "single-numa-node"), attribute(SCOPE, "container")]),
            Policy::SingleNumaNode,
            Scope::Container,
        ),
    ] {
        let topology = read(&json!({ "topologyPolicies": policies, "attributes": attributes }));
        assert_eq!(
            (topology.manager.policy, topology.manager.scope),
            (policy, scope),
            "{policies} {attributes}"
        );
    }
}

#[test]
fn the_number_of_numa_nodes_has_bounds() {
    for (declared, upstream, fixed) in
        [("", 8, 8), ("x", 8, 8), ("0", 8, 8), ("-3", 8, 8), ("1", 8, 1), ("2", 2, 2), ("5000", 1_024, 1_024)]
    {
        let topology = read(&json!({ "attributes": [{ "name": MAX_NUMA_NODES, "value": declared }] }));
        let numbers = (topology.manager.max_numa_nodes(false), topology.manager.max_numa_nodes(true));
        assert_eq!(numbers, (upstream, fixed), "{declared}");
    }
}

#[test]
fn zones_are_known_by_their_numbers() {
    let zone = |name: &str, kind: &str, cpu: &str| {
        let cpu = json!({ "name": "cpu", "capacity": "99", "allocatable": "99", "available": cpu });
        json!({ "name": name, "type": kind, "resources": [cpu] })
    };
    let topology = read(&json!({ "zones": [
        zone("node-70", "Node", "7"),
        zone("numa-node-0", "Node", "99"),
        zone("node-x", "Node", "99"),
        zone("node--1", "Node", "99"),
        zone("socket-0", "Socket", "99"),
        zone("node-2", "Node", "2"),
        zone("node-2", "Node", "99"),
        zone("node-1", "Socket", "99"),
    ] }));
    let zones: Vec<(u32, i64)> = topology
        .zones
        .iter()
        .map(|zone| (zone.number, zone.available("cpu").map_or(0, Quantity::value)))
        .collect();
    assert_eq!(zones, [(2, 2), (70, 7)]);
    assert!(topology.lists("cpu") && !topology.lists("memory"));
}

#[test]
fn a_fingerprint_is_an_attribute_or_else_an_annotation() {
    let annotated = json!({ "annotations": { "topology.node.k8s.io/fingerprint": "old" } });
    let attributes = json!([
        { "name": "nodeTopologyPodsFingerprint", "value": "new" },
        { "name": "nodeTopologyPodsFingerprintMethod", "value": "with-exclusive-resources" },
    ]);
    let of = |metadata: &Value, attributes: &Value| {
        read(&json!({ "metadata": metadata, "attributes": attributes })).fingerprint
    };
    assert_eq!(of(&json!({}), &json!([])), None);
    let old = ExpectedPods { fingerprint: "old".into(), is_annotation: true, only_exclusive: false };
    assert_eq!(of(&annotated, &json!([])), Some(old));
    let new = ExpectedPods { fingerprint: "new".into(), is_annotation: false, only_exclusive: true };
    assert_eq!(of(&annotated, &attributes), Some(new));
}

#[test]
fn what_is_no_quantity_is_no_topology() {
    let resource = json!({ "name": "cpu", "capacity": "8", "allocatable": "8", "available": "a lot" });
    let object = json!({ "zones": [{ "name": "node-0", "type": "Node", "resources": [resource] }] });
    assert!(serde_json::from_value::<NodeResourceTopology>(object).is_err());
}
