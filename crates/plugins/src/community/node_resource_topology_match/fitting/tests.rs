//! The search for a zone beside a naive one, which intersects the zones that have each resource, as the specification says it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use supercargo_testkit::{cluster, pod};

use super::*;

const RESOURCES: [&str; 5] = ["cpu", "memory", "hugepages-2Mi", "example.com/nic", "ephemeral-storage"];

/// Amounts by resource.
type Amounts = BTreeMap<&'static str, u8>;

fn amounts() -> impl Strategy<Value = Amounts> {
    btree_map(proptest::sample::select(&RESOURCES[..]), 0u8..5, 0..5)
}

/// The zones that have a request, by number; none if no zone is needed.
fn naive(
    zones: &[Amounts],
    on_node: &Amounts,
    request: &Amounts,
    is_guaranteed: bool,
) -> Result<Option<usize>, ()> {
    let mut left: BTreeSet<usize> = (0..64).collect();
    let mut is_constrained = false;
    for (name, wanted) in request.iter().filter(|(_, wanted)| **wanted > 0) {
        let is_everywhere = matches!(*name, "cpu" | "memory" | "ephemeral-storage");
        if !is_everywhere && !on_node.contains_key(name) {
            return Err(());
        }
        let is_affine = matches!(*name, "cpu" | "memory" | "hugepages-2Mi");
        let listing: BTreeSet<usize> =
            (0..zones.len()).filter(|number| zones[*number].contains_key(name)).collect();
        if listing.is_empty() && !is_affine {
            continue;
        }
        is_constrained = true;
        let has = |number: &usize| (!is_guaranteed && is_affine) || zones[*number][name] >= *wanted;
        left = left.intersection(&listing.into_iter().filter(has).collect()).copied().collect();
        if left.is_empty() {
            return Err(());
        }
    }
    Ok(is_constrained.then(|| *left.first().expect("some are left")))
}

fn naive_containers(zones: &[Amounts], on_node: &Amounts, requests: &[Amounts], is_guaranteed: bool) -> bool {
    let mut zones = zones.to_vec();
    requests.iter().all(|request| match naive(&zones, on_node, request, is_guaranteed) {
        Err(()) => false,
        Ok(None) => true,
        Ok(Some(number)) => {
            for (name, wanted) in request {
                let is_affine = matches!(*name, "cpu" | "memory" | "hugepages-2Mi");
                if let Some(left) = zones[number].get_mut(name).filter(|_| is_guaranteed || !is_affine) {
                    *left -= wanted;
                }
            }
            true
        }
    })
}

fn quantities(amounts: &Amounts) -> Value {
    amounts
        .iter()
        .map(|(name, amount)| ((*name).to_owned(), json!(amount.to_string())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

proptest! {
    #[test]
    fn a_zone_is_found_where_a_naive_search_finds_one(
        zones in vec(amounts(), 0..4),
        on_node in amounts(),
        requests in vec(amounts(), 1..4),
        is_guaranteed: bool,
    ) {
        // Cpu and memory make a pod guaranteed, if they are its limits as well.
        let requests: Vec<Amounts> = requests
            .into_iter()
            .map(|mut request| {
                for name in ["cpu", "memory"] {
                    let amount = request.entry(name).or_insert(1);
                    *amount = (*amount).max(1);
                }
                request
            })
            .collect();
        let zone = |(number, amounts): (usize, &Amounts)| {
            let resource = |(name, left): (&&str, &u8)| json!({ "name": name, "available": left.to_string() });
            let resources: Vec<Value> = amounts.iter().map(resource).collect();
            json!({ "name": format!("node-{number}"), "type": "Node", "resources": resources })
        };
        let topology: NodeResourceTopology = serde_json::from_value(json!({
            "topologyPolicies": ["SingleNUMANodeContainerLevel"],
            "zones": zones.iter().enumerate().map(zone).collect::<Vec<_>>(),
        })).expect("a topology");
        let container = |request: &Amounts| {
            let requests = quantities(request);
            let limits = if is_guaranteed { requests.clone() } else { json!({}) };
            json!({ "resources": { "requests": requests, "limits": limits } })
        };
        let containers: Vec<Value> = requests.iter().map(container).collect();
        let pod = cluster().pod(pod("a").with(json!({ "spec": { "containers": containers } })));
        let on_node_list: ResourceList = serde_json::from_value(quantities(&on_node)).expect("quantities");
        let allocatable = Resources::from_list(&on_node_list);
        let fits = align(&pod.spec, &topology, &allocatable, Fixes::default()).is_ok();
        prop_assert_eq!(fits, naive_containers(&zones, &on_node, &requests, is_guaranteed));
    }
}
