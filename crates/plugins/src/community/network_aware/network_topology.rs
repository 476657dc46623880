//! NetworkTopology: a custom resource that says what the network between regions and between zones costs.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use supercargo_framework::Context;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, MetadataWords, NodeRef, Quantity, Snapshot, Timestamp};

use super::{REGION, ZONE};

/// The set of weights that is worked out from measurements.
pub const NETPERF_COSTS: &str = "NetperfCosts";
/// Where AppGroups and NetworkTopologies are looked for if the arguments do not say.
pub(crate) const DEFAULT_NAMESPACES: [&str; 1] = ["default"];

/// What the network between regions and between zones costs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "NetworkTopologyWords")]
pub struct NetworkTopology {
    /// `metadata`
    pub metadata: MetadataWords,
    /// `spec`
    pub spec: NetworkTopologySpec,
    /// `status`
    pub status: NetworkTopologyStatus,
    /// `spec.weights` as they are written, fields that nobody reads included.
    pub(crate) written_weights: Vec<Value>,
}

/// See [`NetworkTopology`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkTopologySpec {
    /// The ConfigMap that has the measurements, in the namespace of the NetworkTopology.
    #[serde(deserialize_with = "null_default")]
    pub configmap_name: Box<str>,
    /// The costs, in sets that plugins choose from by name.
    #[serde(deserialize_with = "null_default")]
    pub weights: Vec<WeightSet>,
}

/// A set of costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WeightSet {
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: Box<str>,
    /// The costs by topology key.
    #[serde(deserialize_with = "null_default")]
    pub topology_list: Vec<CostsOfKey>,
}

/// The costs between the values of a topology key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CostsOfKey {
    /// The key.
    #[serde(deserialize_with = "null_default")]
    pub topology_key: Box<str>,
    /// The costs by where a connection begins.
    #[serde(deserialize_with = "null_default")]
    pub origin_list: Vec<CostsOfOrigin>,
}

/// The costs from one region or zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CostsOfOrigin {
    /// The region or zone.
    #[serde(deserialize_with = "null_default")]
    pub origin: Box<str>,
    /// The costs to others.
    #[serde(deserialize_with = "null_default")]
    pub cost_list: Vec<Cost>,
}

/// What the network to a region or zone costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cost {
    /// The region or zone.
    #[serde(deserialize_with = "null_default")]
    pub destination: Box<str>,
    /// Whether pods here may call pods there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_allowed: Option<bool>,
    /// The bandwidth that there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_capacity: Option<Quantity>,
    /// The bandwidth that pods have asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_allocated: Option<Quantity>,
    /// What it costs.
    #[serde(deserialize_with = "null_default")]
    pub network_cost: i64,
}

impl Cost {
    /// The bandwidth that is left; none if nobody says how much there is.
    pub(crate) fn bandwidth_left(&self) -> Option<i64> {
        let allocated = self.bandwidth_allocated.as_ref().map_or(0, Quantity::value);
        Some(self.bandwidth_capacity.as_ref()?.value().saturating_sub(allocated))
    }
}

/// See [`NetworkTopology`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkTopologyStatus {
    /// How many nodes there are.
    #[serde(deserialize_with = "null_default")]
    pub node_count: i64,
    /// When costs were worked out last.
    pub weight_calculation_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NetworkTopologyWords {
    #[serde(deserialize_with = "null_default")]
    metadata: MetadataWords,
    #[serde(deserialize_with = "null_default")]
    spec: WrittenSpec,
    #[serde(deserialize_with = "null_default")]
    status: NetworkTopologyStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WrittenSpec {
    #[serde(deserialize_with = "null_default")]
    configmap_name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    weights: Vec<Value>,
}

impl TryFrom<NetworkTopologyWords> for NetworkTopology {
    type Error = serde_json::Error;

    fn try_from(words: NetworkTopologyWords) -> Result<Self, serde_json::Error> {
        let NetworkTopologyWords { metadata, spec: WrittenSpec { configmap_name, weights }, status } = words;
        let read = weights.iter().map(WeightSet::deserialize).collect::<Result<_, _>>()?;
        let spec = NetworkTopologySpec { configmap_name, weights: read };
        Ok(NetworkTopology { metadata, spec, status, written_weights: weights })
    }
}

/// A NetworkTopology of the API group's old name, which upstream had up to release 0.24.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct OldNetworkTopology(pub NetworkTopology);

impl Kind for NetworkTopology {
    const ID: KindId = KindId {
        group: "networktopology.diktyo.x-k8s.io",
        version: "v1alpha1",
        kind: "NetworkTopology",
        plural: "networktopologies",
    };
}

impl Kind for OldNetworkTopology {
    const ID: KindId = KindId { group: "networktopology.diktyo.k8s.io", ..NetworkTopology::ID };
}

/// The NetworkTopology of a name: the first in these namespaces.
pub(crate) fn find_network_topology<'a>(
    context: &Context<'a>,
    name: &str,
    namespaces: &[String],
) -> Option<&'a NetworkTopology> {
    let objects = context.cluster.objects();
    namespaces.iter().find_map(|namespace| {
        let new = objects.get::<NetworkTopology>(namespace, name);
        new.or_else(|| objects.get::<OldNetworkTopology>(namespace, name).map(|old| &old.0))
    })
}

/// Where a node is; empty where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place<'a> {
    /// Its region.
    pub(crate) region: &'a str,
    /// Its zone.
    pub(crate) zone: &'a str,
}

impl<'a> Place<'a> {
    /// Where a node is.
    pub(crate) fn of(cluster: &'a Snapshot, node: NodeRef<'_>) -> Self {
        let value = |key| node.domain_named(key).map_or("", |pair| cluster.labels().value(pair));
        Place { region: value(REGION), zone: value(ZONE) }
    }

    /// What the network between two places is looked up by: their regions, or within one region their zones.
    pub(crate) fn ends(self, to: Place<'a>) -> (&'a str, &'a str) {
        if self.region == to.region { (self.zone, to.zone) } else { (self.region, to.region) }
    }

    /// Whether the node says neither its region nor its zone.
    pub(crate) fn is_unknown(&self) -> bool {
        self.region.is_empty() && self.zone.is_empty()
    }
}

/// One set of weights of a NetworkTopology.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    /// The NetworkTopology.
    pub(crate) topology: &'a NetworkTopology,
    /// The name of the set.
    pub(crate) name: &'a str,
    /// Whether the set is searched as it stands: it was worked out, and so is taken to be in order.
    pub(crate) is_in_order: bool,
}

impl<'a> Weights<'a> {
    /// What the network between two places costs, none of which is the other; none if nobody says.
    ///
    /// As upstream, the costs of the region and of the zone are looked up in one table, where those of the zone have the last word.
    pub(crate) fn between(&self, from: Place<'_>, to: Place<'_>) -> Option<&'a Cost> {
        let (origin, destination) = from.ends(to);
        if origin.is_empty() {
            return None;
        }
        let sets = self.topology.spec.weights.iter().filter(|set| *set.name == *self.name);
        sets.rev().find_map(|set| {
            let of = |place: &str, key| (place == origin).then(|| self.cost(set, key, origin, destination));
            of(from.zone, ZONE).flatten().or_else(|| of(from.region, REGION).flatten())
        })
    }

    fn cost(&self, set: &'a WeightSet, key: &str, origin: &str, destination: &str) -> Option<&'a Cost> {
        let of_key = self.search(&set.topology_list, |costs| &costs.topology_key, key)?;
        let of_origin = self.search(&of_key.origin_list, |costs| &costs.origin, origin)?;
        of_origin.cost_list.iter().rev().find(|cost| *cost.destination == *destination)
    }

    /// Finds an entry of a list by halves. What is written by hand is put in order first.
    fn search<T>(&self, list: &'a [T], name: impl Fn(&T) -> &str, wanted: &str) -> Option<&'a T> {
        let mut sorted: Vec<&T> = list.iter().collect();
        if !self.is_in_order {
            sorted.sort_by(|a, b| name(a).cmp(name(b)));
        }
        search_by_halves(&sorted, |entry| name(entry), wanted).copied()
    }
}

/// Finds an entry of a list by its name. Where the list is not in order, what is found is what upstream finds.
pub(crate) fn search_by_halves<'a, T>(
    list: &'a [T],
    name: impl Fn(&T) -> &str,
    wanted: &str,
) -> Option<&'a T> {
    let (mut low, mut high) = (0, list.len());
    while low < high {
        let middle = (low + high - 1) / 2;
        match name(&list[middle]).cmp(wanted) {
            Ordering::Equal => return Some(&list[middle]),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    None
}
