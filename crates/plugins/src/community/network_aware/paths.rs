//! Costs from measurements between nodes: shortest paths between regions, and between the zones of a region.

use std::collections::{BTreeMap, BTreeSet};

use super::network_topology::{Cost, CostsOfKey, CostsOfOrigin, NETPERF_COSTS, Place, WeightSet};
use super::{REGION, ZONE};

/// What the key of a measurement begins with, before the name of the node that it was made on.
pub(crate) const ORIGIN: &str = "netperf.p90.latency.milliseconds.origin.";
/// What stands between the names of the two nodes.
const DESTINATION: &str = ".destination.";
/// With more regions, or zones in a region, paths are not looked for: that would take too long between two decisions.
pub(crate) const PLACES_MAX: usize = 200;
/// The bandwidth between places of which nobody says how much there is.
const BANDWIDTH: i64 = 1_000_000_000;

/// What was measured between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measurement<'a> {
    pub(crate) origin: &'a str,
    pub(crate) destination: &'a str,
    pub(crate) cost: i64,
}

/// Where nodes are, by name.
pub(crate) type Nodes<'a> = BTreeMap<&'a str, Place<'a>>;

/// Reads an entry of the ConfigMap; none if it is no measurement, and why if it is one that cannot be read. Names of nodes may have
/// dots, so that it takes the nodes to tell where the first ends.
pub(crate) fn measurement<'a>(
    key: &'a str,
    value: &str,
    nodes: &Nodes<'_>,
) -> Option<Result<Measurement<'a>, String>> {
    let names = key.strip_prefix(ORIGIN)?;
    let splits = names
        .match_indices(DESTINATION)
        .map(|(start, _)| (&names[..start], &names[start + DESTINATION.len()..]));
    let (origin, destination) =
        splits.clone().find(|(origin, _)| nodes.contains_key(origin)).or_else(|| splits.clone().next())?;
    Some(match value.trim().parse::<i64>() {
        Ok(cost) if cost >= 0 => Ok(Measurement { origin, destination, cost }),
        _ => Err(format!("{key} is {value:?}, which is no whole number from 0 on")),
    })
}

/// The weights that follow from measurements; none if there are too many places. What `by_hand` says about permission and bandwidth
/// holds for them too, and what pods have asked for is `allocated`.
pub(crate) fn weights(
    nodes: &Nodes<'_>,
    measurements: &[Measurement<'_>],
    by_hand: Option<&WeightSet>,
    allocated: &BTreeMap<(String, String), i64>,
) -> Option<WeightSet> {
    let mut between_regions = Averages::new();
    let mut between_zones: BTreeMap<&str, Averages<'_>> = BTreeMap::new();
    for Measurement { origin, destination, cost } in measurements {
        let (Some(from), Some(to)) = (nodes.get(origin), nodes.get(destination)) else { continue };
        if from.region != to.region {
            note(&mut between_regions, from.region, to.region, *cost);
        } else if from.zone != to.zone {
            note(between_zones.entry(from.region).or_default(), from.zone, to.zone, *cost);
        }
    }
    let regions = shortest_paths(&between_regions)?;
    let mut zones = Paths::new();
    for averages in between_zones.values() {
        // Two regions may have zones of one name: the shorter way counts.
        for (pair, cost) in shortest_paths(averages)? {
            zones.entry(pair).and_modify(|known| *known = cost.min(*known)).or_insert(cost);
        }
    }
    let of_key = |key: &str, paths: &Paths<'_>| CostsOfKey {
        topology_key: key.into(),
        origin_list: origins(paths, by_hand.and_then(|set| costs_of(set, key)), allocated),
    };
    Some(WeightSet {
        name: NETPERF_COSTS.into(),
        topology_list: vec![of_key(REGION, &regions), of_key(ZONE, &zones)],
    })
}

/// The sum and the number of what was measured between two places, whichever way; the smaller name stands first.
type Averages<'a> = BTreeMap<(&'a str, &'a str), (i64, i64)>;
/// The costs of ways from place to place.
type Paths<'a> = BTreeMap<(&'a str, &'a str), i64>;

fn note<'a>(averages: &mut Averages<'a>, from: &'a str, to: &'a str, cost: i64) {
    if from.is_empty() || to.is_empty() {
        return;
    }
    let (sum, count) = averages.entry((from.min(to), from.max(to))).or_default();
    (*sum, *count) = (sum.saturating_add(cost), *count + 1);
}

/// The shortest ways between all places; none if there are too many of those.
fn shortest_paths<'a>(averages: &Averages<'a>) -> Option<Paths<'a>> {
    let places: BTreeSet<&str> = averages.keys().flat_map(|(a, b)| [*a, *b]).collect();
    let places: Vec<&str> = places.into_iter().collect();
    if places.len() > PLACES_MAX {
        return None;
    }
    let number = |place: &str| places.binary_search(&place).unwrap_or_default();
    let mut costs: Vec<Vec<Option<i64>>> = vec![vec![None; places.len()]; places.len()];
    for ((a, b), (sum, count)) in averages {
        let (a, b, cost) = (number(a), number(b), sum / count);
        (costs[a][b], costs[b][a]) = (Some(cost), Some(cost));
    }
    for over in 0..places.len() {
        for from in 0..places.len() {
            let Some(first) = costs[from][over] else { continue };
            let onward = costs[over].clone();
            for (known, second) in costs[from].iter_mut().zip(onward) {
                let Some(second) = second else { continue };
                let whole = first.saturating_add(second);
                if known.is_none_or(|known| whole < known) {
                    *known = Some(whole);
                }
            }
        }
    }
    let mut paths = Paths::new();
    for (from, row) in costs.iter().enumerate() {
        for (to, cost) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            paths.extend(cost.map(|cost| ((places[from], places[to]), cost)));
        }
    }
    Some(paths)
}

fn costs_of<'a>(set: &'a WeightSet, key: &str) -> Option<&'a CostsOfKey> {
    set.topology_list.iter().find(|costs| *costs.topology_key == *key)
}

/// Ways as costs by origin, in order of names.
fn origins(
    paths: &Paths<'_>,
    by_hand: Option<&CostsOfKey>,
    allocated: &BTreeMap<(String, String), i64>,
) -> Vec<CostsOfOrigin> {
    let said = |from: &str, to: &str| -> Option<&Cost> {
        let origin = by_hand?.origin_list.iter().find(|costs| *costs.origin == *from)?;
        origin.cost_list.iter().find(|cost| *cost.destination == *to)
    };
    let mut list: Vec<CostsOfOrigin> = Vec::new();
    for ((from, to), cost) in paths {
        let said = said(from, to);
        let capacity = said.and_then(|said| said.bandwidth_capacity.clone()).filter(|known| !known.is_zero());
        let asked_for = allocated.get(&((*from).to_owned(), (*to).to_owned())).copied().unwrap_or(0);
        let cost = Cost {
            destination: (*to).into(),
            is_allowed: Some(said.and_then(|said| said.is_allowed).unwrap_or(true)),
            bandwidth_capacity: Some(capacity.unwrap_or_else(|| BANDWIDTH.into())),
            bandwidth_allocated: Some(asked_for.into()),
            network_cost: *cost,
        };
        match list.last_mut().filter(|last| *last.origin == **from) {
            Some(last) => last.cost_list.push(cost),
            None => list.push(CostsOfOrigin { origin: (*from).into(), cost_list: vec![cost] }),
        }
    }
    list
}

#[cfg(test)]
mod tests;
