//! NodeResourcesBalancedAllocation: nodes whose resources are used evenly.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, ColumnResource, ColumnView, Cycle, Extensions, FieldProblems, MAX_NODE_SCORE, NodeField,
    Normalization, Plugin, PodField, PreScore, Reads, RowScore, Score, Status,
};
use supercargo_model::wire::null_default;
use supercargo_model::{NodeRef, Pod, Row};

use super::rows::{self, AskedColumn, AskedNumber};
use super::strategy::{ResourceSpec, complete_resources};
use super::{Level, Sums, level};

/// # What
/// Prefers nodes whose resources would be used evenly: it compares how far apart the shares of cpu, memory and so on
/// are with the pod and without it.
///
/// # Why
/// A node that is out of memory but has cores left over wastes the cores.
///
/// # Arguments
/// `resources`: which resources to balance, by default cpu and memory. All weights must be 1.
///
/// # Example
/// ```yaml
/// pluginConfig:
/// - name: NodeResourcesBalancedAllocation
///   args:
///     resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}, {name: example.com/gpu, weight: 1}]
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodeResourcesBalancedAllocation {
    resources: Vec<ResourceSpec>,
    /// Where the numbers of each resource are, for many nodes at once.
    columns: Vec<Option<ColumnResource>>,
}

/// Arguments of [`NodeResourcesBalancedAllocation`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeResourcesBalancedAllocationArgs {
    /// Which resources to balance.
    #[serde(deserialize_with = "null_default")]
    pub resources: Vec<ResourceSpec>,
}

/// What the pod requests of the balanced resources.
#[derive(Clone)]
struct Requests(Vec<i64>);

impl Args for NodeResourcesBalancedAllocationArgs {
    fn complete(&mut self) {
        complete_resources(&mut self.resources);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        for (index, spec) in self.resources.iter().enumerate() {
            if self.resources[..index].iter().any(|earlier| earlier.name == spec.name) {
                problems.duplicate(format!("resources[{index}].name"), &spec.name);
            }
            if spec.weight != 1 {
                problems.invalid(format!("resources[{index}].weight"), spec.weight, "must be 1");
            }
        }
    }
}

impl Plugin for NodeResourcesBalancedAllocation {
    const NAME: &'static str = "NodeResourcesBalancedAllocation";
    type Args = NodeResourcesBalancedAllocationArgs;

    fn new(args: NodeResourcesBalancedAllocationArgs) -> Self {
        let columns = rows::columns_of(&args.resources);
        NodeResourcesBalancedAllocation { resources: args.resources, columns }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_score().score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Requests]).node(&[NodeField::Allocatable, NodeField::Requested])
    }

    fn subject(&self) -> &'static str {
        "free resources"
    }
}

impl PreScore for NodeResourcesBalancedAllocation {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        match self.requests(cycle.pod) {
            None => Status::skip(),
            Some(requests) => {
                cycle.put(requests);
                Status::success()
            }
        }
    }
}

impl Score for NodeResourcesBalancedAllocation {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let computed;
        let Requests(requests) = match cycle.get() {
            Some(requests) => requests,
            None => match self.requests(cycle.pod) {
                None => return Ok(0),
                Some(requests) => {
                    computed = requests;
                    &computed
                }
            },
        };
        let levels: Vec<Level> = (self.resources.iter().zip(requests))
            .filter_map(|(spec, request)| level(node, &spec.name, *request, Sums::Requested))
            .collect();
        Ok(score(&levels))
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    fn score_rows(&self, cycle: &Cycle<'_>, columns: ColumnView<'_>, scores: &mut [i32]) -> bool {
        let Some(Requests(requests)) = cycle.get() else { return false };
        let mut asked = (self.columns.iter().zip(requests))
            .map(|(column, request)| AskedColumn::of(columns, *column, *request, Sums::Requested));
        let (Some(Some(one)), Some(Some(other)), None) = (asked.next(), asked.next(), asked.next()) else {
            return false;
        };
        rows::score_by_balance(one, other, scores);
        true
    }

    fn score_row(&self, cycle: &Cycle<'_>) -> Option<RowScore> {
        let Requests(requests) = cycle.get()?;
        let mut asked = (self.columns.iter().zip(requests))
            .map(|(column, request)| AskedNumber::of(*column, *request, Sums::Requested));
        match (asked.next(), asked.next(), asked.next()) {
            (Some(Some(one)), Some(Some(other)), None) => Some(rows::balance_score(one, other)),
            _ => None,
        }
    }
}

impl NodeResourcesBalancedAllocation {
    /// None if the pod requests nothing: it cannot change the balance.
    fn requests(&self, pod: &Pod) -> Option<Requests> {
        let list = &pod.requests().list;
        let amounts: Vec<i64> = self.resources.iter().map(|spec| list.amount(&spec.name)).collect();
        amounts.iter().any(|amount| *amount != 0).then_some(Requests(amounts))
    }
}

/// From 50, where the pod makes the balance as bad as it can, to 100, where it makes it as good as it can.
fn score(levels: &[Level]) -> i64 {
    let with_pod = balance(levels, |level| level.requested);
    let without_pod = balance(levels, |level| level.allocated);
    MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with_pod - without_pod) / 2
}

/// 100 if all resources are used to the same share, less the further the shares are apart.
fn balance(levels: &[Level], used: impl Fn(&Level) -> i64) -> i64 {
    let share = |level: &Level| (used(level) as f64 / level.allocatable as f64).min(1.0);
    let deviation = match levels {
        [] | [_] => 0.0,
        [first, second] => ((share(first) - share(second)) / 2.0).abs(),
        levels => {
            // Summed in the order of the resources: another order could differ in the last bit.
            let count = levels.len() as f64;
            let mean = levels.iter().fold(0.0, |sum, level| sum + share(level)) / count;
            let squares =
                levels.iter().fold(0.0, |sum, level| sum + (share(level) - mean) * (share(level) - mean));
            (squares / count).sqrt()
        }
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}

#[cfg(test)]
mod tests;
