//! The scoring strategies of NodeResourcesFit.

use serde::{Deserialize, Serialize};
use supercargo_framework::{FieldProblems, MAX_NODE_SCORE};
use supercargo_model::names::resource;
use supercargo_model::wire::null_default;

use super::Level;

/// The highest score that a shape may give; scaled to [`MAX_NODE_SCORE`].
const MAX_SHAPE_SCORE: i32 = 10;
const MAX_UTILIZATION: i64 = 100;

/// How a node is scored by its resources.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ScoringStrategy {
    /// Which strategy.
    #[serde(rename = "type", deserialize_with = "null_default")]
    pub kind: ScoringStrategyType,
    /// Which resources, with their weights; cpu and memory if none are named.
    #[serde(deserialize_with = "null_default")]
    pub resources: Vec<ResourceSpec>,
    /// The function of utilization, for `RequestedToCapacityRatio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
}

/// Which nodes a strategy prefers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ScoringStrategyType {
    /// Nodes with much left over: spreads pods.
    LeastAllocated,
    /// Nodes with little left over: packs pods.
    MostAllocated,
    /// As a function of utilization says.
    RequestedToCapacityRatio,
    /// None of them.
    #[default]
    #[serde(rename = "")]
    Missing,
    /// None of them.
    #[serde(untagged)]
    Unknown(String),
}

/// A resource and its weight in the sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceSpec {
    /// The resource's name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Its weight, 1 if unset.
    #[serde(deserialize_with = "null_default")]
    pub weight: i64,
}

/// See [`ScoringStrategy::requested_to_capacity_ratio`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestedToCapacityRatio {
    /// Points of a function that is linear in between.
    #[serde(deserialize_with = "null_default")]
    pub shape: Vec<UtilizationShapePoint>,
}

/// A point of the function of utilization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct UtilizationShapePoint {
    /// Utilization in percent.
    #[serde(deserialize_with = "null_default")]
    pub utilization: i32,
    /// The score there, 0 to 10.
    #[serde(deserialize_with = "null_default")]
    pub score: i32,
}

impl Default for ScoringStrategy {
    /// What stands in the fields that a written strategy leaves out: nothing.
    fn default() -> Self {
        ScoringStrategy {
            kind: ScoringStrategyType::Missing,
            resources: Vec::new(),
            requested_to_capacity_ratio: None,
        }
    }
}

impl ScoringStrategy {
    pub(super) fn least_allocated() -> Self {
        ScoringStrategy { kind: ScoringStrategyType::LeastAllocated, ..Self::default() }
    }

    pub(super) fn complete(&mut self) {
        complete_resources(&mut self.resources);
    }

    pub(super) fn validate(&self, problems: &mut FieldProblems) {
        const KNOWN: [&str; 3] = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
        if matches!(self.kind, ScoringStrategyType::Missing | ScoringStrategyType::Unknown(_)) {
            problems.unsupported("scoringStrategy.type", &self.kind, &KNOWN);
        }
        for (index, spec) in self.resources.iter().enumerate() {
            if !(1..=100).contains(&spec.weight) {
                let detail = format!("resource weight of {} not in valid range (0, 100]", spec.name);
                let path = format!("scoringStrategy.resources[{index}].weight");
                problems.invalid(path, spec.weight, detail);
            }
        }
        let path = "scoringStrategy.requestedToCapacityRatio";
        match (&self.kind, &self.requested_to_capacity_ratio) {
            (ScoringStrategyType::RequestedToCapacityRatio, None) => {
                problems.required(path, "must be specified when type is RequestedToCapacityRatio");
            }
            (ScoringStrategyType::RequestedToCapacityRatio, Some(ratio)) => {
                validate_shape(&ratio.shape, &format!("{path}.shape"), problems);
            }
            (_, Some(_)) => problems.forbidden(path, "must be nil when type is not RequestedToCapacityRatio"),
            (_, None) => {}
        }
    }

    /// The score of a node, from the levels of the resources in the order in which they are named.
    pub(super) fn score(&self, levels: impl Iterator<Item = Option<Level>>) -> i64 {
        let weighted =
            self.resources.iter().zip(levels).filter_map(|(spec, level)| Some((spec.weight, level?)));
        match &self.requested_to_capacity_ratio {
            Some(ratio) => {
                // A resource that scores 0 does not count at all.
                let scores = weighted
                    .map(|(weight, level)| (weight, shape_score(&ratio.shape, level)))
                    .filter(|(_, score)| *score > 0);
                let (sum, weights) = sum(scores);
                if weights == 0 { 0 } else { (sum as f64 / weights as f64).round() as i64 }
            }
            None => {
                let score = if self.kind == ScoringStrategyType::MostAllocated { most } else { least };
                let (sum, weights) = sum(weighted.map(|(weight, level)| (weight, score(level))));
                if weights == 0 { 0 } else { sum.wrapping_div(weights) }
            }
        }
    }
}

/// Fills in what a list of resources leaves out.
pub(super) fn complete_resources(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = [resource::CPU, resource::MEMORY]
            .map(|name| ResourceSpec { name: name.to_owned(), weight: 1 })
            .to_vec();
    }
    for spec in resources {
        if spec.weight == 0 {
            spec.weight = 1;
        }
    }
}

fn sum(scores: impl Iterator<Item = (i64, i64)>) -> (i64, i64) {
    scores.fold((0, 0), |(sum, weights), (weight, score)| {
        (i64::wrapping_add(sum, score.wrapping_mul(weight)), i64::wrapping_add(weights, weight))
    })
}

fn least(level: Level) -> i64 {
    if level.requested > level.allocatable {
        return 0;
    }
    level
        .allocatable
        .wrapping_sub(level.requested)
        .wrapping_mul(MAX_NODE_SCORE)
        .wrapping_div(level.allocatable)
}

fn most(level: Level) -> i64 {
    level.requested.min(level.allocatable).wrapping_mul(MAX_NODE_SCORE).wrapping_div(level.allocatable)
}

fn shape_score(shape: &[UtilizationShapePoint], level: Level) -> i64 {
    let utilization = if level.requested > level.allocatable {
        MAX_UTILIZATION
    } else {
        level.requested.wrapping_mul(MAX_UTILIZATION).wrapping_div(level.allocatable)
    };
    let scale = MAX_NODE_SCORE / i64::from(MAX_SHAPE_SCORE);
    let at = |index: usize| {
        let point: &UtilizationShapePoint = &shape[index];
        (i64::from(point.utilization), i64::from(point.score) * scale)
    };
    match shape.iter().position(|point| utilization <= i64::from(point.utilization)) {
        Some(0) => at(0).1,
        Some(index) => {
            let ((x0, y0), (x1, y1)) = (at(index - 1), at(index));
            y0 + (y1 - y0) * (utilization - x0) / (x1 - x0)
        }
        None => at(shape.len() - 1).1,
    }
}

fn validate_shape(shape: &[UtilizationShapePoint], path: &str, problems: &mut FieldProblems) {
    if shape.is_empty() {
        problems.required(path, "at least one point must be specified");
    }
    let unsorted = shape.windows(2).position(|pair| pair[0].utilization >= pair[1].utilization);
    if let Some(index) = unsorted.map(|index| index + 1) {
        let path = format!("{path}[{index}].utilization");
        problems.invalid(path, shape[index].utilization, "values must be sorted in increasing order");
    }
    for (index, point) in shape.iter().enumerate() {
        if !(0..=100).contains(&point.utilization) {
            let path = format!("{path}[{index}].utilization");
            problems.invalid(path, point.utilization, "not in valid range [0, 100]");
        }
        if !(0..=MAX_SHAPE_SCORE).contains(&point.score) {
            problems.invalid(format!("{path}[{index}].score"), point.score, "not in valid range [0, 10]");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GI: i64 = 1 << 30;

    fn level(allocatable: i64, requested: i64) -> Option<Level> {
        Some(Level { allocatable, allocated: 0, requested })
    }

    fn strategy(kind: ScoringStrategyType, weights: [i64; 2], shape: &[(i32, i32)]) -> ScoringStrategy {
        let point = |(utilization, score): &(i32, i32)| UtilizationShapePoint {
            utilization: *utilization,
            score: *score,
        };
        let ratio = RequestedToCapacityRatio { shape: shape.iter().map(point).collect() };
        ScoringStrategy {
            kind,
            resources: weights.map(|weight| ResourceSpec { name: String::new(), weight }).to_vec(),
            requested_to_capacity_ratio: (!shape.is_empty()).then_some(ratio),
        }
    }

    #[test]
    fn allocation_vectors() {
        // A pod without requests counts 100m and 200Mi on a node of 4000m and 8Gi with 1000m and 1Gi taken.
        let levels = [level(4000, 1100), level(8 * GI, GI + 200 * (1 << 20))];
        let least = strategy(ScoringStrategyType::LeastAllocated, [1, 1], &[]);
        assert_eq!(least.score(levels.into_iter()), 78);
        let most = strategy(ScoringStrategyType::MostAllocated, [1, 1], &[]);
        assert_eq!(most.score(levels.into_iter()), 20);
        assert_eq!(least.score([None, None].into_iter()), 0, "nothing to look at");
        assert_eq!(least.score([level(10, 11), level(10, 0)].into_iter()), 50, "over-full counts 0");
    }

    #[test]
    fn ratio_vectors() {
        let kind = ScoringStrategyType::RequestedToCapacityRatio;
        let linear = strategy(kind.clone(), [1, 3], &[(0, 0), (100, 10)]);
        assert_eq!(linear.score([level(100, 50), level(100, 50)].into_iter()), 50);
        assert_eq!(linear.score([level(100, 50), level(100, 0)].into_iter()), 50, "0 drops out of the mean");
        let bent = strategy(kind, [1, 1], &[(20, 1), (70, 9)]);
        for (requested, expected) in [(0, 10), (20, 10), (45, 50), (70, 90), (99, 90), (101, 90)] {
            let levels = [level(100, requested), None];
            assert_eq!(bent.score(levels.into_iter()), expected, "utilization {requested}");
        }
    }
}
