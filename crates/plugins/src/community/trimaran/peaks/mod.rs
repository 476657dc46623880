//! Peaks: nodes on which a pod adds little to the power that is drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, Fixes, NodeField, NodeScore, Normalization, Plugin, PodField,
    Reads, Score, Status,
};
use supercargo_model::names::resource;
use supercargo_model::{NodeRef, PodSpec};

use super::args::MetricProvider;
use super::exponential::exponential;
use super::load::NodeLoad;
use crate::community::normalize::by_inverse_cost_beside;

/// Power is compared in whole numbers of so small a part of a watt.
const PARTS_PER_WATT: f64 = 1e15;
/// The raw score of a node about which nothing can be said, where such nodes are not to be preferred.
const UNKNOWN: i64 = i64::MAX;

/// # What
/// Prefers nodes on which the pod adds least to the power that they draw, by a model of each node: `k0 + k1 × e^(k2 × u)` watts at a
/// use of its cpu of `u` percent. The node with the least gets 100 points, the one with the most 0.
///
/// # Why
/// The same work costs less energy on one node than on another, and less where the curve is flat.
///
/// # Arguments
/// `WatcherAddress` of load-watcher, and `NodePowerModel`: the model of each node by its name, with `k0`, `k1` and `k2`. Both are needed,
/// and written like that.
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: Peaks, weight: 1}]}
/// pluginConfig:
/// - name: Peaks
///   args:
///     WatcherAddress: "http://load-watcher.monitoring:2020"
///     NodePowerModel:
///       n1: {k0: 471.74, k1: -91.5, k2: -0.0718}
///       n2: {k0: 210.5, k1: -75.25, k2: -0.031}
/// ```
///
/// # Difference from upstream
/// The model stands in the arguments; upstream also reads a file that the environment variable `NODE_POWER_MODEL` names. A
/// measurement counts for five minutes after it was made, where upstream keeps the last one for ever. A load below -10 % is left out. As upstream, a node without a model or a measurement,
/// or that the pod would overload, counts as one where the pod costs nothing, which is best; the fix `peaksUnknownNodes` gives it 0 points.
/// More than 9,223 watts count as so many, where upstream's numbers overflow. As upstream, memory does not count, nor pods that came
/// since the last measurement, unless the fix `recentPodsLoad` is asked for.
#[derive(Debug)]
pub struct Peaks {
    args: PeaksArgs,
}

/// Arguments of [`Peaks`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "PascalCase")]
pub struct PeaksArgs {
    /// Where load-watcher is.
    pub watcher_address: String,
    /// The models of nodes, by name.
    pub node_power_model: BTreeMap<String, PowerModel>,
}

/// How much power a node draws at a use of its cpu of `u` percent: `k0 + k1 × e^(k2 × u)` watts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of the formula")]
pub struct PowerModel {
    pub k0: f64,
    pub k1: f64,
    pub k2: f64,
}

impl Args for PeaksArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        if self.watcher_address.is_empty() {
            problems
                .required("WatcherAddress", "the address of load-watcher; invalid MetricProvider.Type, got ");
        } else {
            MetricProvider::default().validate(Some(&self.watcher_address), problems);
        }
        if self.node_power_model.is_empty() {
            let detail = "the models of nodes by their names; a file that NODE_POWER_MODEL names is not read";
            problems.required("NodePowerModel", detail);
        }
    }
}

impl Plugin for Peaks {
    const NAME: &'static str = "Peaks";
    type Args = PeaksArgs;

    fn new(args: PeaksArgs) -> Self {
        Peaks { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Requests])
            .node(&[NodeField::Name, NodeField::Capacity, NodeField::Pods])
            .query(MetricProvider::default().query(Some(&self.args.watcher_address)))
    }
}

impl Peaks {
    /// What the pod would add to the power of a node; none if that cannot be said, or it does not fit.
    fn added_power(&self, load: &NodeLoad, node: NodeRef<'_>, milli_cpu: i64, fixes: &Fixes) -> Option<i64> {
        let mut used = load.cpu_of(node).first?;
        let capacity = node.facts().capacity.amount(resource::CPU) as f64;
        if fixes.recent_pods_load && capacity > 0.0 {
            let [unmeasured, _] = load.unmeasured(node, fixes);
            used += 100.0 * unmeasured as f64 / capacity;
        }
        // As upstream, a node without cpu would be idle.
        let predicted = if capacity == 0.0 {
            0.0
        } else {
            100.0 * (used / 100.0 * capacity + milli_cpu as f64) / capacity
        };
        if predicted > 100.0 {
            return None;
        }
        let PowerModel { k1, k2, .. } = self.args.node_power_model.get(&**node.name()).copied()?;
        let watts = k1 * (exponential(k2 * predicted) - exponential(k2 * used));
        Some((watts * PARTS_PER_WATT) as i64)
    }
}

impl Score for Peaks {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let fixes = &cycle.context.fixes;
        let unknown = if fixes.peaks_unknown_nodes { UNKNOWN } else { 0 };
        let load = cycle.object_of::<NodeLoad>(node);
        let added = load.and_then(|load| self.added_power(load, node, milli_cpu(&cycle.pod.spec), fixes));
        Ok(added.unwrap_or(unknown))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        by_inverse_cost_beside(scores, UNKNOWN);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRangeBeside(UNKNOWN)
    }
}

/// What the pod asks for; its overhead counts only if it asks for anything.
fn milli_cpu(spec: &PodSpec) -> i64 {
    let (asked, overhead) = (spec.requests.resources.milli_cpu, spec.overhead.amount(resource::CPU));
    if asked - overhead > 0 { asked } else { 0 }
}

#[cfg(test)]
mod tests;
