//! How good a node is for a pod by what is left in its zones.

use std::sync::Arc;

use supercargo_framework::{Fixes, MAX_NODE_SCORE};
use supercargo_model::{PodSpec, Quantity, ResourceList};

use super::NodeResourceTopologyMatchArgs;
use super::args::Strategy;
use super::least_numa_nodes;
use super::topology::{NodeResourceTopology, Policy, Scope, Zone};
use super::wants::{all_containers, pod_requests};

/// The points of a node for a guaranteed pod.
pub(super) fn points(
    args: &NodeResourceTopologyMatchArgs,
    spec: &PodSpec,
    topology: &NodeResourceTopology,
    fixes: Fixes,
) -> i64 {
    let strategy = args.strategy();
    if strategy == Strategy::LeastNumaNodes {
        return least_numa_nodes::points(spec, topology, fixes);
    }
    if topology.manager.policy != Policy::SingleNumaNode {
        return 0;
    }
    let of_request = |requests: &ResourceList| {
        least_of_zones(&topology.zones, |zone| zone_points(args, strategy, requests, zone))
    };
    match topology.manager.scope {
        Scope::Pod => match pod_requests(spec, fixes) {
            requests if requests.is_empty() => MAX_NODE_SCORE,
            requests => of_request(&requests),
        },
        Scope::Container => {
            let requests = all_containers(spec).map(|container| &container.resources.requests);
            // Who asks for nothing fits everywhere, and says nothing about zones.
            let requests = requests.filter(|requests| !requests.is_empty());
            let points: Vec<f64> = requests.map(|requests| of_request(requests) as f64).collect();
            if points.is_empty() {
                return MAX_NODE_SCORE;
            }
            (points.iter().sum::<f64>() / points.len() as f64) as i64
        }
    }
}

/// The lowest points of a zone that has any: the kubelet may take it. 0 if none has.
fn least_of_zones(zones: &[Zone], points: impl Fn(&Zone) -> i64) -> i64 {
    zones.iter().map(points).filter(|points| *points != 0).min().unwrap_or(0)
}

fn zone_points(
    args: &NodeResourceTopologyMatchArgs,
    strategy: Strategy,
    requests: &ResourceList,
    zone: &Zone,
) -> i64 {
    if strategy == Strategy::BalancedAllocation {
        return balanced_points(requests, zone);
    }
    let (mut sum, mut weights) = (0i64, 0i64);
    for (name, wanted) in requests.iter() {
        let weight = args.weight_of(name);
        let points = match zone.available(name).filter(|left| !left.is_zero() && *wanted <= **left) {
            None => 0,
            Some(left) => {
                // Whole units, cores too.
                let (left, wanted) = (left.value(), wanted.value());
                let kept =
                    if strategy == Strategy::MostAllocated { wanted } else { left.wrapping_sub(wanted) };
                kept.wrapping_mul(MAX_NODE_SCORE).checked_div(left).unwrap_or(0)
            }
        };
        sum = sum.wrapping_add(points.wrapping_mul(weight));
        weights = weights.wrapping_add(weight);
    }
    sum.checked_div(weights).unwrap_or(0).clamp(0, MAX_NODE_SCORE)
}

/// The more alike the shares are that a pod takes of each resource, the more points.
fn balanced_points(requests: &ResourceList, zone: &Zone) -> i64 {
    let share = |(name, wanted): (&Arc<str>, &Quantity)| {
        let left = zone.available(name).map_or(0, Quantity::value);
        if left == 0 { 1.0 } else { wanted.value() as f64 / left as f64 }
    };
    let shares: Vec<f64> = requests.iter().map(share).collect();
    if shares.iter().any(|share| *share > 1.0) {
        return 0;
    }
    // An exporter may say that less than nothing is left. Upstream goes below 0 then, and fails the pod.
    (((1.0 - variance(&shares)) * MAX_NODE_SCORE as f64) as i64).clamp(0, MAX_NODE_SCORE)
}

/// The variance of a sample, as gonum computes it. A single value varies by nothing.
fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    let (mut squares, mut compensation) = (0.0, 0.0);
    for value in values {
        let difference = value - mean;
        squares += difference * difference;
        compensation += difference;
    }
    (squares - compensation * compensation / count) / (count - 1.0)
}
