//! LoadVariationRiskBalancing: nodes whose load is low and varies little.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, MAX_NODE_SCORE, NodeField, Normalization, Plugin, PodField,
    Reads, Score, Status,
};
use supercargo_model::NodeRef;

use super::args::MetricProvider;
use super::load::NodeLoad;
use super::statistics::{Statistics, clamped};
use crate::community::requests::request_amounts;

/// # What
/// Prefers nodes whose load is low and varies little, with the pod on top of it. The risk of a resource is the mean of the share that
/// would be used and of its standard deviation; a node gets 100 points for none. Of cpu and memory the riskier one counts.
///
/// # Why
/// A node whose load jumps will one day have too little for its pods, though on average there is room.
///
/// # Arguments
/// `watcherAddress` of load-watcher, or `metricProvider` with a `type` (`KubernetesMetricsServer`, which is the default, or
/// `Prometheus`), an `address` and a `token`; Prometheus' `cpuSeries`, `memorySeries` and `nodeLabel` may be named as well.
/// `safeVarianceMargin` (1) multiplies the deviation, `safeVarianceSensitivity` (1) is the root of it that counts. All plugins that go by the
/// load of nodes, in all profiles, ask the same source.
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: LoadVariationRiskBalancing, weight: 1}], disabled: [{name: NodeResourcesBalancedAllocation}]}
/// pluginConfig:
/// - name: LoadVariationRiskBalancing
///   args: {watcherAddress: "http://load-watcher.monitoring:2020", safeVarianceMargin: 1, safeVarianceSensitivity: 2}
/// ```
/// With a load of 40 % that deviates by 10 %, a node of 4 cores gets 63 points for a pod of 1 core.
///
/// # Difference from upstream
/// A measurement counts for five minutes after it was made, where upstream keeps the last one for ever. A load below -10 % is left out. Prometheus' series and the label that names the node can
/// be chosen, and nodes are found by their addresses as well. As upstream, percentages of what a node has are taken for percentages of what
/// it gives to pods, unless the fix `loadOfCapacity` is asked for; a node without a measurement gets no points; pods that came since
/// the last measurement do not count, unless the fix `recentPodsLoad` is asked for; and sidecars count as init containers that end, and what
/// pods ask for as a whole does not count, unless the fix `loadSidecars` is asked for.
#[derive(Debug)]
pub struct LoadVariationRiskBalancing {
    args: LoadVariationRiskBalancingArgs,
}

/// Arguments of [`LoadVariationRiskBalancing`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LoadVariationRiskBalancingArgs {
    /// Where load-watcher is.
    pub watcher_address: Option<String>,
    /// Who measures, if load-watcher does not.
    pub metric_provider: MetricProvider,
    /// What the deviation is multiplied by.
    pub safe_variance_margin: Option<f64>,
    /// Which root of the deviation counts.
    pub safe_variance_sensitivity: Option<f64>,
}

impl Args for LoadVariationRiskBalancingArgs {
    fn complete(&mut self) {
        self.metric_provider.complete(self.watcher_address.as_deref());
        for value in [&mut self.safe_variance_margin, &mut self.safe_variance_sensitivity] {
            *value = Some(value.filter(|value| *value >= 0.0).unwrap_or(1.0));
        }
    }

    fn validate(&self, problems: &mut FieldProblems) {
        self.metric_provider.validate(self.watcher_address.as_deref(), problems);
    }
}

impl Plugin for LoadVariationRiskBalancing {
    const NAME: &'static str = "LoadVariationRiskBalancing";
    type Args = LoadVariationRiskBalancingArgs;

    fn new(args: LoadVariationRiskBalancingArgs) -> Self {
        LoadVariationRiskBalancing { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Requests])
            .node(&[NodeField::Allocatable, NodeField::Capacity, NodeField::Pods])
            .query(self.args.metric_provider.query(self.args.watcher_address.as_deref()))
    }
}

impl LoadVariationRiskBalancing {
    /// The points of a node for one resource.
    fn points(&self, statistics: &Statistics) -> f64 {
        if statistics.capacity <= 0.0 {
            return 0.0;
        }
        let capacity = statistics.capacity;
        let (mean, deviation) = Statistics {
            capacity,
            requested: statistics.requested.max(0.0),
            used_average: clamped(statistics.used_average, capacity),
            used_deviation: clamped(statistics.used_deviation, capacity),
        }
        .mean_and_deviation();
        let sensitivity = self.args.safe_variance_sensitivity.unwrap_or(1.0);
        let margin = self.args.safe_variance_margin.unwrap_or(1.0);
        // The first root is the number itself, and roots take a while.
        let root = if sensitivity == 1.0 { deviation } else { deviation.powf(1.0 / sensitivity) };
        let deviation = clamped(root * margin, 1.0);
        (1.0 - f64::midpoint(mean, deviation)) * MAX_NODE_SCORE as f64
    }
}

impl Score for LoadVariationRiskBalancing {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let Some(load) = cycle.object_of::<NodeLoad>(node) else { return Ok(0) };
        let fixes = &cycle.context.fixes;
        let requested = request_amounts(&cycle.pod.spec, fixes);
        let statistics = Statistics::of_node(load, node, requested, fixes);
        let points = match statistics.map(|resource| resource.map(|resource| self.points(&resource))) {
            [Some(cpu), Some(memory)] => cpu.min(memory),
            [one, other] => one.or(other).unwrap_or(0.0).max(0.0),
        };
        Ok(points.round() as i64)
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

#[cfg(test)]
mod tests;
