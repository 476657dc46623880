//! What workloads with the community's plugins add to the default profile and to the cluster.

use serde_json::{Value, json};
use supercargo_conformance::samples::add_with;
use supercargo_framework::Profile;
use supercargo_plugins::community::{
    LoadVariationRiskBalancing, LowRiskOverCommitment, NetworkOverhead, NodeMetadata,
    NodeResourceTopologyMatch, NodeResourcesAllocatable, Peaks, PreemptionToleration, TargetLoadPacking,
};

use super::nodes::{COST, REGION, REGIONS, ZONE, ZONES, node_name, region_name, zone_name};
use super::pods::{APPLICATION, CALLING_SERVICES, calling_service};
use super::workloads::Sizes;

/// Nobody is asked: the load of the nodes is among the objects.
const LOAD_WATCHER: &str = "http://load-watcher:2020";
/// A pod of these workloads has so many nodes with a model to choose from.
const MODELS: usize = 1000;

/// Prefers small nodes.
pub(super) fn add_allocatable(profile: &mut Profile) {
    add_with::<NodeResourcesAllocatable>(profile, 1, Some(&json!({ "mode": "Least" })));
}

/// Prefers cheap nodes.
pub(super) fn add_metadata(profile: &mut Profile) {
    let args = json!({
        "metadataKey": COST,
        "metadataSource": "Label",
        "metadataType": "Number",
        "scoringStrategy": "Lowest",
    });
    add_with::<NodeMetadata>(profile, 1, Some(&args));
}

/// Takes the place of DefaultPreemption.
pub(super) fn add_toleration(profile: &mut Profile) {
    profile.post_filter.clear();
    add_with::<PreemptionToleration>(profile, 1, Some(&json!({})));
}

/// Packs by load.
pub(super) fn add_packing(profile: &mut Profile) {
    add_with::<TargetLoadPacking>(profile, 1, Some(&json!({ "watcherAddress": LOAD_WATCHER })));
}

/// Balances by load and how it varies.
pub(super) fn add_variation(profile: &mut Profile) {
    add_with::<LoadVariationRiskBalancing>(profile, 1, Some(&json!({ "watcherAddress": LOAD_WATCHER })));
}

/// Avoids nodes whose pods may need more than there is.
pub(super) fn add_low_risk(profile: &mut Profile) {
    add_with::<LowRiskOverCommitment>(profile, 1, Some(&json!({ "watcherAddress": LOAD_WATCHER })));
}

/// Saves energy.
pub(super) fn add_peaks(profile: &mut Profile) {
    let model = |number: usize| {
        let k1 = -30.0 - (number % 50) as f64;
        (node_name(number), json!({ "k0": 150.0, "k1": k1, "k2": -0.02 }))
    };
    let models: serde_json::Map<String, Value> = (0..MODELS).map(model).collect();
    add_with::<Peaks>(profile, 1, Some(&json!({ "WatcherAddress": LOAD_WATCHER, "NodePowerModel": models })));
}

/// Puts services near those that they call.
pub(super) fn add_network(profile: &mut Profile) {
    add_with::<NetworkOverhead>(profile, 1, Some(&json!({})));
}

/// An application of ten services, and what the network between nine zones of three regions costs.
pub(super) fn application(_: Sizes) -> Vec<Value> {
    let workload = |number: usize| {
        let name = calling_service(number);
        json!({ "kind": "Deployment", "name": name, "selector": name })
    };
    let entry = |number: usize| {
        let called = (number + 1..CALLING_SERVICES).take(2);
        let dependency = |called| json!({ "workload": workload(called), "maxNetworkCost": 100 });
        json!({ "workload": workload(number), "dependencies": called.map(dependency).collect::<Vec<_>>() })
    };
    let app_group = json!({
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": { "name": APPLICATION, "namespace": "default" },
        "spec": {
            "numMembers": CALLING_SERVICES,
            "topologySortingAlgorithm": "KahnSort",
            "workloads": (0..CALLING_SERVICES).map(entry).collect::<Vec<_>>(),
        },
    });
    let costs = |key: &str, names: &[String], cost: usize| {
        let to = |from: &String| {
            let others = names.iter().filter(|name| *name != from).enumerate();
            let cost = |(number, name): (usize, &String)| json!({ "destination": name, "networkCost": cost + number });
            json!({ "origin": from, "costList": others.map(cost).collect::<Vec<_>>() })
        };
        json!({ "topologyKey": key, "originList": names.iter().map(to).collect::<Vec<_>>() })
    };
    let regions: Vec<String> = (0..REGIONS).map(region_name).collect();
    let zones = (0..REGIONS).flat_map(|region| (0..ZONES).map(move |zone| zone_name(region, zone)));
    let zones: Vec<String> = zones.collect();
    let topology = json!({
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": { "name": "nt-default", "namespace": "default" },
        "spec": {
            "configmapName": "netperf",
            "weights": [{
                "name": "UserDefined",
                "topologyList": [costs(REGION, &regions, 50), costs(ZONE, &zones, 5)],
            }],
        },
    });
    vec![app_group, topology]
}

/// Keeps pods in one NUMA zone, and prefers zones that have much left.
pub(super) fn add_topologies(profile: &mut Profile) {
    add_with::<NodeResourceTopologyMatch>(profile, 1, Some(&json!({})));
}

/// Two NUMA zones of each node, of which no two neighbours have the same left. A zone in ten is too small for a pod of a core.
pub(super) fn topologies(sizes: Sizes) -> Vec<Value> {
    let left = |node: usize, zone: usize| {
        let milli_cores = if (node + zone).is_multiple_of(10) { 900 } else { 1_000 + node * 37 % 11 * 100 };
        [milli_cores, 12_000 + node * 53 % 17 * 256]
    };
    (0..sizes.nodes).map(|node| topology(node, ["2", "16Gi"], left)).collect()
}

/// Two NUMA zones of each node that are free, each with as much as the node: pods are taken off both.
pub(super) fn free_topologies(sizes: Sizes) -> Vec<Value> {
    (0..sizes.nodes).map(|node| topology(node, ["4", "32Gi"], |_, _| [4_000, 32 << 10])).collect()
}

/// The topology of a node, in whose zones so many thousandths of a core and so many mebibytes are left.
fn topology(node: usize, capacity: [&str; 2], left: impl Fn(usize, usize) -> [usize; 2]) -> Value {
    let zone = |number: usize| {
        let [milli_cores, mebibytes] = left(node, number);
        let left = [format!("{milli_cores}m"), format!("{mebibytes}Mi")];
        let resource = |name: &str, index: usize| json!({ "name": name, "capacity": capacity[index], "allocatable": capacity[index], "available": left[index] });
        json!({
            "name": format!("node-{number}"),
            "type": "Node",
            "costs": [{ "name": "node-0", "value": 10 + 11 * number }, { "name": "node-1", "value": 21 - 11 * number }],
            "resources": [resource("cpu", 0), resource("memory", 1)],
        })
    };
    json!({
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": { "name": node_name(node) },
        "attributes": [
            { "name": "topologyManagerPolicy", "value": "single-numa-node" },
            { "name": "topologyManagerScope", "value": "container" },
        ],
        "zones": [zone(0), zone(1)],
    })
}

/// The load of all nodes, of which no two neighbours have the same.
pub(super) fn loads(sizes: Sizes) -> Vec<Value> {
    let load = |number: usize| {
        let measured = |percent: usize| {
            let percent = percent as f64;
            json!({ "average": percent, "deviation": 5.0, "isKnown": true, "first": percent, "last": percent })
        };
        json!({
            "apiVersion": "facts.supercargo.dev/v1alpha1",
            "kind": "NodeLoad",
            "metadata": { "name": node_name(number) },
            "cpu": measured(number * 37 % 60),
            "memory": measured(number * 53 % 60),
            "windowEnd": 1_800_000_000,
        })
    };
    (0..sizes.nodes).map(load).collect()
}
