//! The definition of NodeResourceTopology.

use serde_json::{Value, json};
use supercargo_model::Kind;

use super::super::node_resource_topology_match::NodeResourceTopology;
use super::{Definition, described, list, object, quantity, required, text};

pub(super) fn node_resource_topology() -> Definition {
    let attributes = |what: &str| {
        let attribute = object([("name", text("What it is about.")), ("value", text("What it says."))]);
        list(what, &required(attribute, &["name", "value"]))
    };
    let distance =
        json!({ "description": "How far it is, such as 20.", "type": "integer", "format": "int64" });
    let cost = object([("name", text("The other zone.")), ("value", distance)]);
    let resource = object([
        ("allocatable", described("What there is for pods.", quantity())),
        ("available", described("What is left for pods.", quantity())),
        ("capacity", described("What there is altogether.", quantity())),
        ("name", text("The resource.")),
    ]);
    let resource = required(resource, &["allocatable", "available", "capacity", "name"]);
    let zone = object([
        ("attributes", attributes("What else is known of the zone.")),
        ("costs", list("How far it is to which zone.", &required(cost, &["name", "value"]))),
        ("name", text("Which zone it is: node-0 for the first NUMA node.")),
        ("parent", text("The zone that it is a part of.")),
        ("resources", list("What the zone has.", &resource)),
        ("type", text("What kind of zone it is: Node for a NUMA node.")),
    ]);
    let policies = "How the kubelet places containers, by one word; attributes say it today.";
    Definition {
        kind: NodeResourceTopology::ID,
        short_names: &["node-res-topo"],
        approved: "https://github.com/kubernetes/enhancements/pull/1870",
        description: "What is left in each NUMA zone of the node of the same name.",
        spec: Value::Null,
        status: Value::Null,
        whole: Some(object([
            ("attributes", attributes("How the kubelet places containers, and which pods are counted.")),
            ("topologyPolicies", list(policies, &json!({ "type": "string" }))),
            ("zones", list("The zones of the node.", &required(zone, &["name", "type"]))),
        ])),
        columns: &[],
    }
}
