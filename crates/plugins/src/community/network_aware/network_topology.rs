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
    /// The lists of each set of `spec.weights` in order.
    orders: Vec<SetOrder>,
}

/// The positions of a set's lists in the order of their names. What is written by hand may be in any order, and is searched by halves.
#[derive(Clone, Debug, Default)]
struct SetOrder {
    keys: Vec<usize>,
    /// Those of the list of each key.
    origins: Vec<Vec<usize>>,
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
        let orders = spec.weights.iter().map(SetOrder::of).collect();
        Ok(NetworkTopology { metadata, spec, status, written_weights: weights, orders })
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

impl NetworkTopology {
    /// The same without what has nothing to do with costs.
    pub(crate) fn costs(&self) -> Self {
        NetworkTopology { spec: self.spec.clone(), orders: self.orders.clone(), ..Self::default() }
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
        let NetworkTopology { spec, orders, .. } = self.topology;
        let sets = spec.weights.iter().zip(orders).filter(|(set, _)| *set.name == *self.name);
        sets.rev().find_map(|(set, order)| {
            let of =
                |place: &str, key| (place == origin).then(|| self.cost(set, order, key, origin, destination));
            of(from.zone, ZONE).flatten().or_else(|| of(from.region, REGION).flatten())
        })
    }

    fn cost(
        &self,
        set: &'a WeightSet,
        order: &SetOrder,
        key: &str,
        origin: &str,
        destination: &str,
    ) -> Option<&'a Cost> {
        let list = &set.topology_list;
        let place = self.search(list.len(), &order.keys, |place| &list[place].topology_key, key)?;
        let (list, order) = (&list[place].origin_list, &order.origins[place]);
        let place = self.search(list.len(), order, |place| &list[place].origin, origin)?;
        list[place].cost_list.iter().rev().find(|cost| *cost.destination == *destination)
    }

    /// Finds the place of an entry of a list by halves: as it stands, or in order.
    fn search<'n>(
        &self,
        count: usize,
        order: &[usize],
        name: impl Fn(usize) -> &'n str,
        wanted: &str,
    ) -> Option<usize> {
        if self.is_in_order {
            return place_by_halves(count, name, wanted);
        }
        place_by_halves(count, |place| name(order[place]), wanted).map(|place| order[place])
    }
}

impl SetOrder {
    fn of(set: &WeightSet) -> Self {
        let list = &set.topology_list;
        let origins = |costs: &CostsOfKey| {
            places_in_order(costs.origin_list.len(), |place| &costs.origin_list[place].origin)
        };
        SetOrder {
            keys: places_in_order(list.len(), |place| &list[place].topology_key),
            origins: list.iter().map(origins).collect(),
        }
    }
}

fn places_in_order<'n>(count: usize, name: impl Fn(usize) -> &'n str) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| name(*a).cmp(name(*b)));
    places
}

/// Finds an entry of a list by its name. Where the list is not in order, what is found is what upstream finds.
pub(crate) fn search_by_halves<'a, T>(
    list: &'a [T],
    name: impl Fn(&T) -> &str,
    wanted: &str,
) -> Option<&'a T> {
    place_by_halves(list.len(), |place| name(&list[place]), wanted).map(|place| &list[place])
}

fn place_by_halves<'n>(count: usize, name: impl Fn(usize) -> &'n str, wanted: &str) -> Option<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high - 1) / 2;
        match name(middle).cmp(wanted) {
            Ordering::Equal => return Some(middle),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    None
}
