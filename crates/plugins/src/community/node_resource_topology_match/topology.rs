//! NodeResourceTopology: a custom resource that says what is left in each NUMA zone of a node. It is named like the node.

use std::sync::Arc;

use serde::Deserialize;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, LabelLookup, MetadataWords, Quantity};

/// How many NUMA nodes a node has at most, if its topology does not say.
const NUMA_NODES_MAX: i64 = 8;
/// More than so many are not believed.
const NUMA_NODES_LIMIT: i64 = 1024;
/// The type of zones that are NUMA nodes.
const NUMA_ZONE: &str = "Node";
/// What the names of NUMA nodes begin with.
const NUMA_PREFIX: &str = "node-";
/// Attributes, and an annotation, of topologies and zones.
const SCOPE: &str = "topologyManagerScope";
const POLICY: &str = "topologyManagerPolicy";
const MAX_NUMA_NODES: &str = "topologyManagerMaxNUMANodes";
const FINGERPRINT: &str = "nodeTopologyPodsFingerprint";
const FINGERPRINT_METHOD: &str = "nodeTopologyPodsFingerprintMethod";
const FINGERPRINT_ANNOTATION: &str = "topology.node.k8s.io/fingerprint";
const PLACEMENT_METADATA: &str = "topology.node.k8s.io/numaplacement-metadata";
const PLACEMENT_VECTOR: &str = "topology.node.k8s.io/numaplacement-vector";
/// The method by which only pods that hold something exclusively are counted.
const EXCLUSIVE_METHOD: &str = "with-exclusive-resources";

/// What is left in each NUMA zone of a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "NodeResourceTopologyWords")]
pub struct NodeResourceTopology {
    /// What tells it from another one of its name.
    pub(super) uid: Box<str>,
    pub(super) manager: Manager,
    /// The NUMA nodes, in the order of their numbers.
    pub(super) zones: Vec<Zone>,
    pub(super) fingerprint: Option<ExpectedPods>,
    /// How the placement of pods is written down; the zones have the placements.
    pub(super) placement: Option<Box<str>>,
    /// Whether an attribute says, and not only a policy of old, that everything must come from one zone.
    pub(super) has_single_numa_attribute: bool,
}

/// How the kubelet places what containers ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) policy: Policy,
    pub(super) scope: Scope,
    /// How many NUMA nodes there are at most, as it is declared.
    declared_max: Option<i64>,
}

/// How much the kubelet insists on one zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Policy {
    #[default]
    None,
    BestEffort,
    Restricted,
    SingleNumaNode,
}

/// What must come from one zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scope {
    #[default]
    Container,
    Pod,
}

/// The pods that a topology has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExpectedPods {
    pub(super) fingerprint: Box<str>,
    /// Whether an annotation says so, as exporters of old do: then all pods are meant.
    pub(super) is_annotation: bool,
    /// Whether only pods are meant that hold something exclusively.
    pub(super) only_exclusive: bool,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Zone {
    pub(super) number: u32,
    /// In the order of their names.
    resources: Vec<ZoneResource>,
    /// How far other zones are, by number.
    costs: Vec<(u32, i64)>,
    /// Which containers are here.
    pub(super) placement: Option<Box<str>>,
}

/// What a zone has of a resource.
#[derive(Clone, Debug, PartialEq)]
struct ZoneResource {
    name: Arc<str>,
    allocatable: Quantity,
    available: Quantity,
}

/// A NodeResourceTopology as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeResourceTopologyWords {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
    /// How the kubelet places containers, by one word; of old.
    #[serde(deserialize_with = "null_default")]
    pub topology_policies: Vec<String>,
    /// The same and more, each by a name.
    #[serde(deserialize_with = "null_default")]
    pub attributes: Vec<AttributeWords>,
    /// The zones, NUMA nodes among them.
    #[serde(deserialize_with = "null_default")]
    pub zones: Vec<ZoneWords>,
}

/// See [`NodeResourceTopologyWords`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AttributeWords {
    /// What it is about.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// What it says.
    #[serde(deserialize_with = "null_default")]
    pub value: String,
}

/// See [`NodeResourceTopologyWords`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ZoneWords {
    /// `node-0` for a NUMA node.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// `Node` for a NUMA node.
    #[serde(rename = "type", deserialize_with = "null_default")]
    pub kind: String,
    /// The zone that it is a part of.
    #[serde(deserialize_with = "null_default")]
    pub parent: String,
    /// How far it is to which zone.
    #[serde(deserialize_with = "null_default")]
    pub costs: Vec<CostWords>,
    /// What else is known.
    #[serde(deserialize_with = "null_default")]
    pub attributes: Vec<AttributeWords>,
    /// What it has.
    #[serde(deserialize_with = "null_default")]
    pub resources: Vec<ZoneResourceWords>,
}

/// See [`ZoneWords`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CostWords {
    /// The other zone.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// How far it is.
    #[serde(deserialize_with = "null_default")]
    pub value: i64,
}

/// See [`ZoneWords`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ZoneResourceWords {
    /// The resource.
    #[serde(deserialize_with = "null_default")]
    pub name: Box<str>,
    /// What there is altogether.
    #[serde(deserialize_with = "null_default")]
    pub capacity: Quantity,
    /// What there is for pods.
    #[serde(deserialize_with = "null_default")]
    pub allocatable: Quantity,
    /// What is left for pods.
    #[serde(deserialize_with = "null_default")]
    pub available: Quantity,
}

impl Kind for NodeResourceTopology {
    const ID: KindId = KindId {
        group: "topology.node.k8s.io",
        version: "v1alpha2",
        kind: "NodeResourceTopology",
        plural: "noderesourcetopologies",
    };
}

impl From<NodeResourceTopologyWords> for NodeResourceTopology {
    fn from(words: NodeResourceTopologyWords) -> Self {
        let mut manager = Manager::default();
        if let Some(policy) = words.topology_policies.first() {
            manager.read_policy_of_old(policy);
        }
        let mut has_single_numa_attribute = false;
        for AttributeWords { name, value } in &words.attributes {
            manager.read_attribute(name, value);
            if name == POLICY {
                has_single_numa_attribute = Policy::parse(value) == Some(Policy::SingleNumaNode);
            }
        }
        let attribute = |name: &str| value_of(&words.attributes, name);
        let annotated = words.metadata.annotations.label(FINGERPRINT_ANNOTATION);
        let fingerprint = attribute(FINGERPRINT).or(annotated).map(|fingerprint| ExpectedPods {
            fingerprint: fingerprint.into(),
            is_annotation: attribute(FINGERPRINT).is_none(),
            only_exclusive: attribute(FINGERPRINT_METHOD) == Some(EXCLUSIVE_METHOD),
        });
        let mut zones: Vec<Zone> = words.zones.iter().filter_map(Zone::read).collect();
        // Of two zones of one number, the first counts.
        zones.sort_by_key(|zone| zone.number);
        zones.dedup_by_key(|zone| zone.number);
        NodeResourceTopology {
            uid: words.metadata.uid.into(),
            manager,
            zones,
            fingerprint,
            placement: attribute(PLACEMENT_METADATA).map(Into::into),
            has_single_numa_attribute,
        }
    }
}

impl NodeResourceTopology {
    /// Whether any zone has a resource, be nothing left of it.
    pub(super) fn lists(&self, name: &str) -> bool {
        self.zones.iter().any(|zone| zone.available(name).is_some())
    }
}

impl Manager {
    /// One word for policy and scope; words without a scope change nothing.
    fn read_policy_of_old(&mut self, word: &str) {
        let (policy, scope) = match word {
            "SingleNUMANodePodLevel" => (Policy::SingleNumaNode, Scope::Pod),
            "SingleNUMANodeContainerLevel" => (Policy::SingleNumaNode, Scope::Container),
            "BestEffortPodLevel" => (Policy::BestEffort, Scope::Pod),
            "BestEffortContainerLevel" => (Policy::BestEffort, Scope::Container),
            "RestrictedPodLevel" => (Policy::Restricted, Scope::Pod),
            "RestrictedContainerLevel" => (Policy::Restricted, Scope::Container),
            _ => return,
        };
        *self = Manager { policy, scope, ..*self };
    }

    /// Values that nobody knows are left out.
    fn read_attribute(&mut self, name: &str, value: &str) {
        match (name, value) {
            (SCOPE, "container") => self.scope = Scope::Container,
            (SCOPE, "pod") => self.scope = Scope::Pod,
            (POLICY, _) => self.policy = Policy::parse(value).unwrap_or(self.policy),
            (MAX_NUMA_NODES, _) => {
                let declared = value.parse().ok().filter(|max| *max > 0);
                self.declared_max = declared.or(self.declared_max);
            }
            _ => {}
        }
    }

    /// How many NUMA nodes the node has at most. Upstream does not believe in nodes with one.
    pub(super) fn max_numa_nodes(&self, believes_in_one: bool) -> i64 {
        let least = if believes_in_one { 1 } else { 2 };
        self.declared_max.filter(|max| *max >= least).unwrap_or(NUMA_NODES_MAX).min(NUMA_NODES_LIMIT)
    }
}

impl Policy {
    fn parse(value: &str) -> Option<Self> {
        Some(match value {
            "none" => Policy::None,
            "best-effort" => Policy::BestEffort,
            "restricted" => Policy::Restricted,
            "single-numa-node" => Policy::SingleNumaNode,
            _ => return None,
        })
    }
}

impl Zone {
    /// A zone that is a NUMA node; none if it is something else.
    fn read(words: &ZoneWords) -> Option<Self> {
        let number =
            Some(&words.name).filter(|_| words.kind == NUMA_ZONE).and_then(|name| number_of(name))?;
        let mut resources: Vec<ZoneResource> = words
            .resources
            .iter()
            .map(|words| ZoneResource {
                name: words.name.clone().into(),
                allocatable: words.allocatable.clone(),
                available: words.available.clone(),
            })
            .collect();
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        resources.dedup_by(|a, b| a.name == b.name);
        let cost = |cost: &CostWords| Some((number_of(&cost.name)?, cost.value));
        Some(Zone {
            number,
            resources,
            costs: words.costs.iter().filter_map(cost).collect(),
            placement: value_of(&words.attributes, PLACEMENT_VECTOR).map(Into::into),
        })
    }

    /// What is left of a resource, if the zone lists it.
    pub(super) fn available(&self, name: &str) -> Option<&Quantity> {
        self.find(name).map(|index| &self.resources[index].available)
    }

    /// The same, to change it.
    pub(super) fn available_mut(&mut self, name: &str) -> Option<&mut Quantity> {
        self.find(name).map(|index| &mut self.resources[index].available)
    }

    /// Whether more is left of a resource than there is for pods.
    pub(super) fn has_too_much_of(&self, name: &str) -> bool {
        let resource = self.find(name).map(|index| &self.resources[index]);
        resource.is_some_and(|resource| resource.available > resource.allocatable)
    }

    /// Takes something away, down to nothing.
    pub(super) fn take(&mut self, name: &str, quantity: &Quantity) {
        if let Some(available) = self.available_mut(name) {
            if *available < *quantity {
                *available = Quantity::default();
            } else {
                *available -= quantity;
            }
        }
    }

    /// Whether it is known of any zone how far it is.
    pub(super) fn has_costs(&self) -> bool {
        !self.costs.is_empty()
    }

    /// How far a zone is, if that is known.
    pub(super) fn cost_of(&self, number: u32) -> Option<i64> {
        // The last word counts, where there are several.
        self.costs.iter().rev().find(|(other, _)| *other == number).map(|(_, cost)| *cost)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.resources.binary_search_by(|resource| (*resource.name).cmp(name)).ok()
    }
}

/// The number of a NUMA node, by its name.
fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix(NUMA_PREFIX)?.parse().ok()
}

fn value_of<'a>(attributes: &'a [AttributeWords], name: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &*attribute.value)
}

#[cfg(test)]
mod tests;
