//! LowRiskOverCommitment: nodes on which pods will hardly need more than there is.

mod beta;
mod risk;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, Fixes, MAX_NODE_SCORE, NodeField, Normalization, Plugin,
    PodField, PreScore, Reads, Score, Status,
};
use supercargo_model::names::resource;
use supercargo_model::{NodeRef, PodSpec, Row};

use super::args::MetricProvider;
use super::load::NodeLoad;
use super::statistics::Statistics;
use crate::community::requests::{limit_amounts, request_amounts};
use risk::{Committed, Weighing};

/// How many samples the deviation is taken over, if nobody says.
const WINDOW_SIZE: i64 = 5;
/// How much the risk of limits counts against that of load, if nobody says.
const LIMIT_WEIGHT: f64 = 0.5;

/// # What
/// Prefers nodes where the risk is low that pods need more than there is. There are two risks of each resource: that the pods together use
/// what their limits allow beyond what the node has, and that the measured load, as it varies, goes beyond what pods have requested.
/// Both are weighed, the riskier one of cpu and memory counts, and a node gets 100 points for none.
///
/// # Why
/// Limits above requests are a promise that a node cannot keep to everybody at once. Where the load is low and steady it need not.
///
/// # Arguments
/// `watcherAddress` or `metricProvider`, as LoadVariationRiskBalancing has them; `smoothingWindowSize` (5): how many samples the
/// deviation is taken over; `riskLimitWeights` (`cpu: 0.5, memory: 0.5`): how much the risk of limits counts, from 0 to 1.
///
/// # Example
/// ```yaml
/// plugins:
///   multiPoint: {enabled: [{name: LowRiskOverCommitment, weight: 1}]}
/// pluginConfig:
/// - name: LowRiskOverCommitment
///   args: {watcherAddress: "http://load-watcher.monitoring:2020", riskLimitWeights: {cpu: 0.3, memory: 0.7}}
/// ```
///
/// # Difference from upstream
/// A measurement counts for five minutes after it was made, where upstream keeps the last one for ever. A load below -10 % is left out. As upstream, percentages of what a node has are taken
/// for percentages of what it gives to pods, unless the fix `loadOfCapacity` is asked for; a node without a measurement gets no points;
/// pods that came since the last measurement do not count as load, unless the fix `recentPodsLoad` is asked for; and sidecars count as init
/// containers that end, and what pods ask for as a whole does not count, unless the fix `loadSidecars` is asked for.
#[derive(Debug)]
pub struct LowRiskOverCommitment {
    args: LowRiskOverCommitmentArgs,
    /// What counts how much, for cpu and for memory.
    weighings: [Weighing; 2],
}

/// Arguments of [`LowRiskOverCommitment`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LowRiskOverCommitmentArgs {
    /// Where load-watcher is.
    pub watcher_address: Option<String>,
    /// Who measures, if load-watcher does not.
    pub metric_provider: MetricProvider,
    /// How many samples the deviation is taken over.
    pub smoothing_window_size: Option<i64>,
    /// How much the risk of limits counts, by resource.
    pub risk_limit_weights: BTreeMap<String, f64>,
}

impl Args for LowRiskOverCommitmentArgs {
    fn complete(&mut self) {
        self.metric_provider.complete(self.watcher_address.as_deref());
        let size = self.smoothing_window_size.filter(|size| *size > 0);
        self.smoothing_window_size = Some(size.unwrap_or(WINDOW_SIZE));
        for name in [resource::CPU, resource::MEMORY] {
            self.risk_limit_weights.entry(name.to_owned()).or_insert(LIMIT_WEIGHT);
        }
        for weight in self.risk_limit_weights.values_mut().filter(|weight| !(0.0..=1.0).contains(*weight)) {
            *weight = LIMIT_WEIGHT;
        }
    }

    fn validate(&self, problems: &mut FieldProblems) {
        self.metric_provider.validate(self.watcher_address.as_deref(), problems);
    }
}

impl Plugin for LowRiskOverCommitment {
    const NAME: &'static str = "LowRiskOverCommitment";
    type Args = LowRiskOverCommitmentArgs;

    fn new(args: LowRiskOverCommitmentArgs) -> Self {
        let samples = args.smoothing_window_size.unwrap_or(WINDOW_SIZE) as f64;
        let weight = |name| args.risk_limit_weights.get(name).copied().unwrap_or(LIMIT_WEIGHT);
        let weighings =
            [resource::CPU, resource::MEMORY].map(|name| Weighing { limits: weight(name), samples });
        LowRiskOverCommitment { args, weighings }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_score().score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Requests])
            .node(&[NodeField::Allocatable, NodeField::Capacity, NodeField::Pods, NodeField::Requested])
            .query(self.args.metric_provider.query(self.args.watcher_address.as_deref()))
    }
}

impl PreScore for LowRiskOverCommitment {
    /// What the pod asks for is worked out with each score: that takes no longer than finding it again. As upstream, the plugin may be
    /// enabled here, and need not be.
    fn pre_score(&self, _: &mut Cycle<'_>, _: &[Row]) -> Status {
        Status::success()
    }
}

impl Score for LowRiskOverCommitment {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let fixes = &cycle.context.fixes;
        let own @ (requests, limits) = requests_and_limits(&cycle.pod.spec, fixes);
        if requests == [0, 0] && limits == [0, 0] {
            return Ok(0);
        }
        let Some(load) = cycle.object_of::<NodeLoad>(node) else { return Ok(0) };
        let (mut others, mut other_limits) = ([0, 0], [0, 0]);
        // Many pods of a node have the same spec, and often that of the pod.
        let mut last = (&cycle.pod.spec, own);
        for pod in node.pods() {
            if !pod.spec.is_same(last.0) {
                last = (&pod.spec, requests_and_limits(&pod.spec, fixes));
            }
            let (requests, limits) = last.1;
            for index in 0..2 {
                others[index] = i64::wrapping_add(others[index], requests[index]);
                other_limits[index] = i64::wrapping_add(other_limits[index], limits[index]);
            }
        }
        let committed = |index: usize, capacity: i64| Committed {
            capacity,
            request: others[index].wrapping_add(requests[index]),
            limit: other_limits[index].wrapping_add(limits[index]),
            request_before: others[index],
            limit_before: other_limits[index],
        };
        let allocatable = node.allocatable();
        let [cpu, memory] = Statistics::of_node(load, node, [0, 0], fixes);
        let cpu = risk::of(committed(0, allocatable.milli_cpu), cpu, self.weighings[0]);
        let memory = risk::of(committed(1, allocatable.memory), memory, self.weighings[1]);
        Ok(((1.0 - cpu.max(memory)) * MAX_NODE_SCORE as f64).round() as i64)
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

/// What a pod asks for and what it may use; a limit is at least the request.
fn requests_and_limits(spec: &PodSpec, fixes: &Fixes) -> ([i64; 2], [i64; 2]) {
    let (requests, limits) = (request_amounts(spec, fixes), limit_amounts(spec, fixes));
    (requests, [limits[0].max(requests[0]), limits[1].max(requests[1])])
}

#[cfg(test)]
mod tests;
