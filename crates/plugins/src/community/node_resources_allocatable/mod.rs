//! NodeResourcesAllocatable: small nodes, or large ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, NodeField, NodeScore, Normalization, Plugin, Reads, Score, Status,
};
use supercargo_model::names::resource;
use supercargo_model::{NodeRef, Resources};

use super::normalize::by_range;

/// A core counts as much as a gibibyte, less what there is to a thousandth of it: upstream's weight of a thousandth of a core.
const CPU_WEIGHT: i64 = 1 << 20;

/// # What
/// Prefers nodes that have little to give away altogether, whoever has taken it, or those that have much: what they have of each
/// resource, times its weight, divided by the sum of the weights. The smallest of the feasible nodes gets 100 points and the largest 0,
/// or the other way round; where all are the same, they get 0.
///
/// # Why
/// Small pods on small nodes leave the large ones free for large pods.
///
/// # Arguments
/// `mode`: `Least` (the default) prefers small nodes, `Most` large ones. `resources`: names and weights; thousandths of a `cpu` with
/// 1048576 and bytes of `memory` with 1 by default. Weights are above 0. A resource that nodes do not count weighs, and has nothing.
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: NodeResourcesAllocatable, weight: 1}]}
/// pluginConfig:
/// - name: NodeResourcesAllocatable
///   args:
///     mode: Least
///     resources: [{name: cpu, weight: 1048576}, {name: memory, weight: 1}]
/// ```
/// Nodes of 1, 2 and 3 cores with 1000, 2000 and 3000 MiB get 100, 50 and 0 points.
///
/// # Difference from upstream
/// Weights and amounts whose product is more than 64 bits hold are added up exactly, where upstream wraps around.
#[derive(Debug)]
pub struct NodeResourcesAllocatable {
    sign: i128,
    weights: BTreeMap<Box<str>, i64>,
    /// The sum of all weights.
    weight: i128,
}

/// Arguments of [`NodeResourcesAllocatable`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeResourcesAllocatableArgs {
    /// The resources that count.
    pub resources: Vec<ResourceWeight>,
    /// `Least`, or `Most`.
    pub mode: String,
}

/// A resource, and how much it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ResourceWeight {
    /// Its name.
    pub name: String,
    /// How much it counts.
    pub weight: i64,
}

impl Args for NodeResourcesAllocatableArgs {
    fn complete(&mut self) {
        if self.resources.is_empty() {
            let weighed = [(resource::CPU, CPU_WEIGHT), (resource::MEMORY, 1)];
            self.resources =
                weighed.map(|(name, weight)| ResourceWeight { name: name.to_owned(), weight }).into();
        }
        if self.mode.is_empty() {
            "Least".clone_into(&mut self.mode);
        }
    }

    fn validate(&self, problems: &mut FieldProblems) {
        for (index, ResourceWeight { name, weight }) in self.resources.iter().enumerate() {
            if *weight <= 0 {
                let detail = format!("resource weight of {name} should be a positive value, got :{weight}");
                problems.invalid(format!("resources[{index}].weight"), weight, detail);
            }
        }
        if !matches!(&*self.mode, "Least" | "Most") {
            problems.invalid("mode", &self.mode, "invalid support ModeType");
        }
    }
}

impl Plugin for NodeResourcesAllocatable {
    const NAME: &'static str = "NodeResourcesAllocatable";
    type Args = NodeResourcesAllocatableArgs;

    fn new(args: NodeResourcesAllocatableArgs) -> Self {
        // Of two weights of a resource the later one counts, as upstream.
        let weights: BTreeMap<Box<str>, i64> =
            args.resources.into_iter().map(|resource| (resource.name.into(), resource.weight)).collect();
        let weight = weights.values().map(|weight| i128::from(*weight)).sum();
        NodeResourcesAllocatable { sign: if args.mode == "Most" { 1 } else { -1 }, weights, weight }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Allocatable])
    }
}

impl Score for NodeResourcesAllocatable {
    fn score(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let weighed = self
            .weights
            .iter()
            .map(|(name, weight)| i128::from(amount(node.allocatable(), name)) * i128::from(*weight));
        let sum = weighed.fold(0, i128::saturating_add);
        let mean = self.sign.saturating_mul(sum) / self.weight;
        Ok(i64::try_from(mean).unwrap_or(if mean < 0 { i64::MIN } else { i64::MAX }))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        by_range(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRange
    }
}

fn amount(allocatable: &Resources, name: &str) -> i64 {
    match name {
        resource::CPU => allocatable.milli_cpu,
        resource::MEMORY => allocatable.memory,
        resource::EPHEMERAL_STORAGE => allocatable.ephemeral_storage,
        name => allocatable.scalar(name).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
