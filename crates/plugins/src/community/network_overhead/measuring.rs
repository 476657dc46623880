//! The controller of NetworkTopologies: costs from measurements, written among the weights of each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Conclusion, Context, Effect, Memory, Observe,
};
use supercargo_model::{Kind, KindId, NodeRef, Object, ObjectKey, Quantity};

use super::NetworkOverhead;
use crate::community::controllers::{OLD_API_GROUP, old_api_group};
use crate::community::network_aware::paths::{Measurement, Nodes, ORIGIN, PLACES_MAX, measurement, weights};
use crate::community::network_aware::stale::{
    KeepsTrue, Problem, StaleObjects, Told, begin_anew, mark_stale, take_stale, tell, write, written,
};
use crate::community::network_aware::{
    APP_GROUP_LABEL, AppGroup, NETPERF_COSTS, NetworkTopology, OldAppGroup, OldNetworkTopology, Place,
    WeightSet, Weights, label_of, workload_of,
};

/// How long after a change of nodes, measurements or the NetworkTopology itself costs are worked out.
const COSTS_PAUSE: Duration = Duration::from_secs(1);
/// How long after pods have come or gone the bandwidth that they ask for is added up.
const BANDWIDTH_PAUSE: Duration = Duration::from_secs(60);
/// So many places are named of which nobody knows what the network between them costs.
const UNKNOWN_NAMED_MAX: usize = 3;
/// The `reportingController` of events on NetworkTopologies, as upstream's.
const REPORTER: &str = "NetworkTopologyController";
/// So many bytes all weights may have. etcd takes objects of up to 1.5 MiB, and there is more in one than these.
const WEIGHTS_BYTES_MAX: usize = 1_400_000;
/// What people write by hand.
const USER_DEFINED: &str = "UserDefined";

/// A ConfigMap, as far as it has measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MeasurementMap {
    /// What `data` has of measurements.
    #[serde(deserialize_with = "measured_only")]
    data: BTreeMap<Box<str>, Box<str>>,
}

/// The entries of a ConfigMap that are measurements: all others, of all ConfigMaps there are, need not be kept.
fn measured_only<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<Box<str>, Box<str>>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = BTreeMap<Box<str>, Box<str>>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a map of texts")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut data = BTreeMap::new();
            while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                if key.starts_with(ORIGIN) {
                    data.insert(key.into(), map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(data)
        }
    }
    deserializer.deserialize_any(Entries)
}

#[cfg(test)]
impl MeasurementMap {
    /// What was measured.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.data.keys().map(|key| &**key)
    }
}

impl Kind for MeasurementMap {
    const ID: KindId = KindId { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
}

/// The names of NetworkTopologies whose costs may not be true any more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CostMemory(StaleObjects);

impl Memory for CostMemory {
    const NAME: &'static str = "NetworkOverhead/Costs";

    fn clock_was_set(&mut self, seconds: i64) {
        self.0.clock_was_set(seconds);
    }
}

impl KeepsTrue for CostMemory {
    fn objects(&self) -> &StaleObjects {
        &self.0
    }

    fn objects_mut(&mut self) -> &mut StaleObjects {
        &mut self.0
    }
}

impl Observe for NetworkOverhead {
    fn events(&self) -> Vec<ClusterEvent> {
        let mut events = vec![
            ClusterEvent::node(Actions::ALL),
            ClusterEvent::kind(NetworkTopology::ID, Actions::ALL),
            ClusterEvent::kind(OldNetworkTopology::ID, Actions::ALL),
        ];
        if self.args.calculates_costs() {
            events.push(ClusterEvent::pod(Actions::ALL));
            events.push(ClusterEvent::kind(MeasurementMap::ID, Actions::ALL));
        }
        events
    }

    fn is_controller(&self) -> bool {
        self.args.calculates_costs()
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        begin_anew::<CostMemory>(acts);
        mark_all(context, COSTS_PAUSE, acts);
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        match change {
            Change::Pod { old, new } => {
                let moves = old.map(|pod| &pod.node_name) != new.map(|pod| &pod.node_name);
                if moves && [*old, *new].into_iter().flatten().any(|pod| label_of(pod).is_some()) {
                    mark_all(context, BANDWIDTH_PAUSE, acts);
                }
            }
            Change::Node { old, new } => {
                let place = |node: &NodeRef<'_>| {
                    let labels = node.labels().filter(|(key, _)| key.starts_with("topology.kubernetes.io/"));
                    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect::<Vec<_>>()
                };
                if old.as_ref().map(place) != new.as_ref().map(place) {
                    mark_all(context, COSTS_PAUSE, acts);
                }
            }
            Change::Object { old, new } => {
                let Some(object) = new.or(*old) else { return };
                if object.kind == MeasurementMap::ID {
                    let is_meant = |(_, key, topology): &(KindId, &ObjectKey, &NetworkTopology)| {
                        topology.spec.configmap_name == object.key.name
                            && key.namespace == object.key.namespace
                    };
                    let names: Vec<&str> =
                        all(context).filter(is_meant).map(|(_, key, _)| &*key.name).collect();
                    names.into_iter().for_each(|name| mark(context, name, COSTS_PAUSE, acts));
                } else if let Some(new) = new {
                    let spec = topology_of(new).map(|topology| &topology.spec);
                    if old.and_then(topology_of).map(|topology| &topology.spec) != spec {
                        mark(context, &new.key.name, COSTS_PAUSE, acts);
                    }
                }
            }
        }
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let names = take_stale::<CostMemory>(context, acts);
        let is_stale = |name: &str| names.binary_search_by(|known| (**known).cmp(name)).is_ok();
        let stale: Vec<_> = all(context).filter(|(_, key, _)| is_stale(&key.name)).collect();
        for (kind, key, topology) in stale {
            let mut problems = Vec::new();
            if self.args.calculates_costs() {
                calculate(context, kind, key, topology, &mut problems, acts);
            }
            if *key.name == *self.args.network_topology_name()
                && self.args.namespaces.iter().any(|namespace| **namespace == *key.namespace)
            {
                let weights = self.args.weights(topology, context.fixes);
                problems.extend(what_is_unknown(context, weights));
            }
            if kind == OldNetworkTopology::ID {
                let note = old_api_group(kind, NetworkTopology::ID, "NetworkTopology");
                problems.push(Problem { reason: OLD_API_GROUP, note });
            }
            let told = Told { reporter: REPORTER, kind, key, uid: &topology.metadata.uid };
            tell::<CostMemory>(&told, problems, acts);
        }
    }

    fn answered(&self, context: &Context<'_>, order: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        written::<CostMemory>(context, order, conclusion, acts);
    }
}

/// All NetworkTopologies, those of the old API group last.
fn all<'a>(context: &Context<'a>) -> impl Iterator<Item = (KindId, &'a ObjectKey, &'a NetworkTopology)> {
    let objects = context.cluster.objects();
    let new = objects.all::<NetworkTopology>().map(|(key, topology)| (NetworkTopology::ID, key, topology));
    let old = objects.all::<OldNetworkTopology>();
    new.chain(old.map(|(key, topology)| (OldNetworkTopology::ID, key, &topology.0)))
}

fn topology_of(object: &Object) -> Option<&NetworkTopology> {
    object.get::<NetworkTopology>().or_else(|| object.get::<OldNetworkTopology>().map(|old| &old.0))
}

fn mark(context: &Context<'_>, name: &str, pause: Duration, acts: &mut Acts<'_>) {
    mark_stale::<CostMemory>(context, name, pause, acts);
}

fn mark_all(context: &Context<'_>, pause: Duration, acts: &mut Acts<'_>) {
    let names: BTreeSet<&str> = all(context).map(|(_, key, _)| &*key.name).collect();
    names.into_iter().for_each(|name| mark(context, name, pause, acts));
}

/// Works out the costs of a NetworkTopology, and writes them if they are others.
fn calculate(
    context: &Context<'_>,
    kind: KindId,
    key: &ObjectKey,
    topology: &NetworkTopology,
    problems: &mut Vec<Problem>,
    acts: &mut Acts<'_>,
) {
    let cluster = context.cluster;
    let nodes: Nodes<'_> = cluster.nodes().map(|node| (&**node.name(), Place::of(cluster, node))).collect();
    let mut status = json!({});
    if topology.status.node_count != nodes.len() as i64 {
        status["nodeCount"] = nodes.len().into();
    }
    if let Some(measurements) = measurements(context, key, topology, &nodes, problems) {
        let set = |name: &str| topology.spec.weights.iter().find(|set| *set.name == *name);
        let calculated = weights(&nodes, &measurements, set(USER_DEFINED), &allocated(context));
        match calculated {
            None => {
                let note = format!(
                    "there are more than {PLACES_MAX} regions, or zones in a region, with measurements: costs are not worked out"
                );
                problems.push(Problem { reason: "TooManyPlaces", note });
            }
            Some(calculated) if set(NETPERF_COSTS) == Some(&calculated) => {}
            Some(calculated) => {
                let patch = weights_patch(topology, &calculated);
                let bytes = patch.to_string().len();
                if bytes > WEIGHTS_BYTES_MAX {
                    let note = format!(
                        "spec.weights would take {bytes} bytes with the costs that were worked out, and an object has room for \
                         {WEIGHTS_BYTES_MAX}: they are not written; measure between fewer regions, or zones in a region"
                    );
                    problems.push(Problem { reason: "TooManyPlaces", note });
                } else {
                    write::<CostMemory>(context, kind, key, None, patch, acts);
                    status["weightCalculationTime"] = context.now.to_string().into();
                }
            }
        }
    }
    if status != json!({}) {
        write::<CostMemory>(context, kind, key, Some("status"), json!({ "status": status }), acts);
    }
}

/// Replaces the calculated set, and leaves all others as they are written. If somebody has changed the object meanwhile, nothing is
/// written.
fn weights_patch(topology: &NetworkTopology, calculated: &WeightSet) -> Value {
    let mut sets: Vec<Value> = topology.written_weights.clone();
    let calculated = json!(calculated);
    match sets.iter_mut().find(|set| set["name"] == calculated["name"]) {
        Some(set) => *set = calculated,
        None => sets.push(calculated),
    }
    let mut patch = json!({ "spec": { "weights": sets } });
    if !topology.metadata.resource_version.is_empty() {
        patch["metadata"] = json!({ "resourceVersion": topology.metadata.resource_version });
    }
    patch
}

/// What was measured; none if there is no such ConfigMap.
fn measurements<'a>(
    context: &Context<'a>,
    key: &ObjectKey,
    topology: &NetworkTopology,
    nodes: &Nodes<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Measurement<'a>>> {
    let name = &topology.spec.configmap_name;
    let Some(map) = context.cluster.objects().get::<MeasurementMap>(&key.namespace, name) else {
        let note = format!(
            "spec.configmapName: there is no ConfigMap {name:?} in namespace {}; the costs stay as they are",
            key.namespace
        );
        problems.push(Problem { reason: "ConfigMapNotFound", note });
        return None;
    };
    let entries = map.data.iter().filter_map(|(entry, value)| measurement(entry, value, nodes));
    let (read, unread): (Vec<_>, Vec<_>) = entries.partition(Result::is_ok);
    if let Some(Err(first)) = unread.first() {
        let count = unread.len();
        let note = format!(
            "ConfigMap {name}: {count} measurements cannot be read and do not count, such as {first}"
        );
        problems.push(Problem { reason: "InvalidMeasurements", note });
    }
    Some(read.into_iter().flatten().collect())
}

/// The bandwidth that pods of all AppGroups ask for between regions, and between zones of a region: for each pod that calls, and each
/// that it calls elsewhere.
fn allocated(context: &Context<'_>) -> BTreeMap<(String, String), i64> {
    let mut allocated: BTreeMap<(String, String), i64> = BTreeMap::new();
    let (cluster, objects) = (context.cluster, context.cluster.objects());
    let old = objects.all::<OldAppGroup>().map(|(key, group)| (key, &group.0));
    for (key, group) in objects.all::<AppGroup>().chain(old) {
        let mut pods: BTreeMap<(&str, Place<'_>), i64> = BTreeMap::new();
        let members = match context.fixes.app_group_namespaces {
            true => context.pods().by_label_in(&key.namespace, APP_GROUP_LABEL, &key.name),
            false => context.pods().by_label(APP_GROUP_LABEL, &key.name),
        };
        for known in members.iter().filter(|known| known.standing.has_node()) {
            if let Some(row) = known.node.as_ref().and_then(|node| cluster.row_of(node)) {
                *pods.entry((workload_of(&known.pod), Place::of(cluster, cluster.node(row)))).or_default() +=
                    1;
            }
        }
        for entry in &group.spec.workloads {
            for dependency in &entry.dependencies {
                let bandwidth = dependency.min_bandwidth.as_ref().map_or(0, Quantity::value);
                let of = |selector: &str| {
                    let selector = selector.to_owned();
                    pods.iter().filter(move |((workload, _), _)| **workload == *selector)
                };
                for ((_, from), callers) in of(&entry.workload.selector) {
                    for ((_, to), called) in of(&dependency.workload.selector) {
                        let (origin, destination) = from.ends(*to);
                        if origin != destination {
                            let ends = (origin.to_owned(), destination.to_owned());
                            let sum = allocated.entry(ends).or_default();
                            let more = bandwidth.saturating_mul(*callers).saturating_mul(*called);
                            *sum = sum.saturating_add(more);
                        }
                    }
                }
            }
        }
    }
    allocated
}

/// What nobody knows about the places of nodes: what the network between two of them costs.
fn what_is_unknown(context: &Context<'_>, weights: Weights<'_>) -> Option<Problem> {
    let name = weights.name;
    if !weights.topology.spec.weights.iter().any(|set| *set.name == *name) {
        let note = format!("spec.weights has no set named {name:?}: all places count as equally far away");
        return Some(Problem { reason: "WeightsNotFound", note });
    }
    let cluster = context.cluster;
    let places: BTreeSet<Place<'_>> = cluster.nodes().map(|node| Place::of(cluster, node)).collect();
    let mut pairs: BTreeSet<(&str, &str)> = BTreeSet::new();
    for from in places.iter().filter(|place| !place.is_unknown()).take(PLACES_MAX) {
        for to in places.iter().filter(|to| !to.is_unknown() && *to != from).take(PLACES_MAX) {
            if weights.between(*from, *to).is_none() {
                pairs.insert(from.ends(*to));
            }
        }
    }
    let named: Vec<String> =
        pairs.iter().take(UNKNOWN_NAMED_MAX).map(|(from, to)| format!("{from:?} to {to:?}")).collect();
    (!pairs.is_empty()).then(|| Problem {
        reason: "UnknownCosts",
        note: format!(
            "the weights {name:?} lack {} costs between places of nodes, such as from {}: pods there count as far away",
            pairs.len(),
            named.join(", ")
        ),
    })
}
