//! The nodes of the workloads.

use serde_json::{Value, json};
use supercargo_conformance::samples::NodeLoad;
use supercargo_model::{Decoded, Decoder, NodeWords, Object};
use supercargo_plugins::network_traffic::Traffic;

/// What nodes have besides a name, a zone, and room for pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Nothing.
    Plain,
    /// Of four nodes in a row one keeps pods away, and one would rather not have them.
    Tainted,
    /// A rack.
    Racked,
    /// One of three sizes, and a cost.
    Various,
    /// One of three regions, each of three zones.
    Regional,
}

/// The label that is a node's own.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The label that says in which zone a node is.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
/// The label that says in which region a node is.
pub(super) const REGION: &str = "topology.kubernetes.io/region";
/// The label that says in which rack a node is.
pub(super) const RACK: &str = "example.com/rack";
/// The taint that only some pods tolerate.
pub(super) const DEDICATED: (&str, &str) = ("example.com/dedicated", "batch");
/// The label that says what a node costs.
pub(super) const COST: &str = "example.com/cost";
const RACKS: usize = 1000;
/// How many zones there are, in each region if there are regions.
pub(super) const ZONES: usize = 3;
/// How many regions there are.
pub(super) const REGIONS: usize = 3;

/// Makes the nodes of one kind. Their texts are read once: a million nodes are copies with names of their own.
#[derive(Debug)]
pub(super) struct NodeMaker {
    kind: NodeKind,
    models: Vec<NodeWords>,
}

impl NodeMaker {
    pub(super) fn new(kind: NodeKind) -> Self {
        let taint =
            |key: &str, value: &str, effect: &str| json!([{ "key": key, "value": value, "effect": effect }]);
        let models = match kind {
            NodeKind::Plain | NodeKind::Racked | NodeKind::Various | NodeKind::Regional => vec![json!([])],
            NodeKind::Tainted => vec![
                taint(DEDICATED.0, DEDICATED.1, "NoSchedule"),
                taint("example.com/spot", "true", "PreferNoSchedule"),
                json!([]),
                json!([]),
            ],
        };
        let sizes: &[&str] = if kind == NodeKind::Various { &["4", "6", "8"] } else { &["4"] };
        let sized = models.iter().flat_map(|taints| sizes.iter().map(|cpu| model(taints, cpu)));
        NodeMaker { kind, models: sized.collect() }
    }

    /// The node of that number.
    pub(super) fn node(&self, number: usize) -> NodeWords {
        self.labelled(number, None)
    }

    /// The same after so many changes, the last of which its label says.
    pub(super) fn changed_node(&self, number: usize, generation: usize) -> NodeWords {
        self.labelled(number, Some(("generation".to_owned(), generation.to_string())))
    }

    fn labelled(&self, number: usize, more: Option<(String, String)>) -> NodeWords {
        let mut words = self.models[number % self.models.len()].clone();
        let name = node_name(number);
        let rack = (self.kind == NodeKind::Racked).then(|| format!("rack-{}", number % RACKS));
        let region = (self.kind == NodeKind::Regional).then_some(number / ZONES % REGIONS);
        let zone = match region {
            Some(region) => zone_name(region, number % ZONES),
            None => format!("moon-{}", number % ZONES + 1),
        };
        let region = region.map(|region| (REGION.to_owned(), region_name(region)));
        let labels = [(HOSTNAME.to_owned(), name.clone()), (ZONE.to_owned(), zone)];
        let rack = rack.map(|rack| (RACK.to_owned(), rack));
        let cost = (self.kind == NodeKind::Various).then(|| (COST.to_owned(), (number % 977).to_string()));
        let metadata = words.metadata_mut();
        metadata.labels = labels.into_iter().chain(region).chain(rack).chain(cost).chain(more).collect();
        metadata.name = name;
        words
    }
}

/// What somebody outside says about a node the so-manieth time: no two nodes have the same traffic.
pub(super) fn load(number: usize, round: usize) -> Object {
    let load = ((number * 37 + round * 61) % 101) as i64;
    Object::new("", &node_name(number), NodeLoad { load, traffic: bytes(number, round) })
}

/// What Prometheus says about a node the so-manieth time, as the plugin NetworkTraffic keeps it.
pub(super) fn traffic(number: usize, round: usize) -> Object {
    Object::new("", &node_name(number), Traffic(bytes(number, round)))
}

fn bytes(number: usize, round: usize) -> i64 {
    (number * 7919 + round) as i64
}

/// The name of a region.
pub(super) fn region_name(region: usize) -> String {
    format!("region-{region}")
}

/// The name of a zone in a region.
pub(super) fn zone_name(region: usize, zone: usize) -> String {
    format!("region-{region}-zone-{zone}")
}

pub(super) fn node_name(number: usize) -> String {
    format!("node-{number:07}")
}

fn model(taints: &Value, cpu: &str) -> NodeWords {
    let room = json!({ "cpu": cpu, "memory": "32Gi", "pods": "110" });
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "spec": { "taints": taints },
        "status": { "allocatable": room, "capacity": room },
    });
    match Decoder::default().decode(&node.to_string()) {
        Ok(Decoded::Node(words)) => *words,
        other => unreachable!("the text of a node was read as {other:?}"),
    }
}
