//! TargetLoadPacking: nodes whose cpu is used as much as wanted, and not more.

mod recent;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Acts, Args, Change, ClusterEvent, Context, Cycle, Extensions, FieldProblems, MAX_NODE_SCORE,
    NodeField, Normalization, Observe, Plugin, PodField, Reads, Score, Status,
};
use supercargo_model::names::resource;
use supercargo_model::{Kind, NodeRef, Quantity};

use super::args::MetricProvider;
use super::load::NodeLoad;
use crate::community::go_number;
use recent::{Demand, RecentPods};

/// The wanted use of a node's cpu, in percent, if nobody says.
const TARGET: i64 = 40;
/// What a pod is expected to use for each part of a core that it requests, if nobody says.
const MULTIPLIER: &str = "1.5";
/// What a container is expected to use that names neither limit nor request, in thousandths of a core, if nobody says.
const DEFAULT_MILLI_CPU: i64 = 1_000;

/// # What
/// Packs pods onto nodes up to a wanted use of their cpu, and spreads them beyond it: a node whose cpu would be used exactly as wanted
/// gets 100 points, an idle one as many as the wanted percentage is, one that would be full none. A pod is expected to use the limits
/// of its containers, or else their requests times a factor, or else a default. Pods that came to the node since it was measured are
/// expected to use as much on top of what was measured.
///
/// # Why
/// Nodes that are used well cost less than many that idle, and leave some room for load that was not foreseen.
///
/// # Arguments
/// `watcherAddress` or `metricProvider`, as LoadVariationRiskBalancing has them; `targetUtilization` (40), in percent;
/// `defaultRequestsMultiplier` (`"1.5"`); `defaultRequests` (`cpu: 1000m`).
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: TargetLoadPacking, weight: 1}], disabled: [{name: NodeResourcesBalancedAllocation}]}
/// pluginConfig:
/// - name: TargetLoadPacking
///   args: {watcherAddress: "http://load-watcher.monitoring:2020", targetUtilization: 50}
/// ```
/// With a target of 40 %, a node of 10 cores of which 25 % is used gets 100 points for a pod that requests a core.
///
/// # Difference from upstream
/// A measurement counts for five minutes after it was made, where upstream keeps the last one for ever. A pod counts on top of what was measured until
/// a measurement covers it, not for some minutes; and pods that were scheduled before this scheduler started count from then, where
/// upstream takes all of them to have come when it started. Each profile has arguments of its own, where upstream's last profile has them
/// for all. A load below -10 % is left out. As upstream, a target above 100, or a load below 0 with a small target, gives points that no node may
/// have, and pods cannot be scheduled; the fix `targetLoadPoints` keeps points within 0 and 100. As upstream, memory does not count; nor do
/// sidecars and what pods ask for as a whole, unless the fix `loadSidecars` is asked for.
#[derive(Debug)]
pub struct TargetLoadPacking {
    args: TargetLoadPackingArgs,
    multiplier: f64,
    default_milli_cpu: i64,
    target: f64,
}

/// Arguments of [`TargetLoadPacking`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TargetLoadPackingArgs {
    /// Where load-watcher is.
    pub watcher_address: Option<String>,
    /// Who measures, if load-watcher does not.
    pub metric_provider: MetricProvider,
    /// What a container is expected to use that names neither limit nor request; only its `cpu` counts. Nothing, if this names no `cpu`.
    pub default_requests: Option<BTreeMap<String, Quantity>>,
    /// What requests are multiplied by.
    pub default_requests_multiplier: Option<String>,
    /// The wanted use, in percent.
    pub target_utilization: Option<i64>,
}

impl Args for TargetLoadPackingArgs {
    fn complete(&mut self) {
        self.metric_provider.complete(self.watcher_address.as_deref());
        // As upstream, who names none says that such containers use nothing.
        self.default_requests.get_or_insert_with(|| {
            BTreeMap::from([(resource::CPU.to_owned(), Quantity::milli(DEFAULT_MILLI_CPU))])
        });
        self.default_requests_multiplier.get_or_insert_with(|| MULTIPLIER.to_owned());
        let target = self.target_utilization.filter(|target| *target > 0);
        self.target_utilization = Some(target.unwrap_or(TARGET));
    }

    fn validate(&self, problems: &mut FieldProblems) {
        self.metric_provider.validate(self.watcher_address.as_deref(), problems);
        let text = self.default_requests_multiplier.as_deref().unwrap_or(MULTIPLIER);
        if go_number::float(text).is_none() {
            let detail = "unable to parse DefaultRequestsMultiplier: it is no number";
            problems.invalid("defaultRequestsMultiplier", text, detail);
        }
    }
}

impl Plugin for TargetLoadPacking {
    const NAME: &'static str = "TargetLoadPacking";
    type Args = TargetLoadPackingArgs;

    fn new(args: TargetLoadPackingArgs) -> Self {
        let multiplier = args.default_requests_multiplier.as_deref().unwrap_or(MULTIPLIER);
        let default_cpu = args.default_requests.as_ref().and_then(|requests| requests.get(resource::CPU));
        TargetLoadPacking {
            multiplier: go_number::float(multiplier).expect("the arguments were validated"),
            default_milli_cpu: default_cpu.map_or(0, Quantity::milli_value),
            target: args.target_utilization.unwrap_or(TARGET) as f64,
            args,
        }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score().observe().remembers::<RecentPods>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Requests])
            .node(&[NodeField::Name, NodeField::Capacity])
            .progress_of_pods()
            .memory_of_node()
            .query(self.args.metric_provider.query(self.args.watcher_address.as_deref()))
    }
}

impl TargetLoadPacking {
    /// What a pod is expected to use, in thousandths of a core.
    fn prediction(&self, demand: &Demand) -> i64 {
        let requested =
            demand.requests.iter().map(|request| (*request as f64 * self.multiplier).round() as i64);
        let said: i64 = requested.fold(demand.fixed, i64::wrapping_add);
        said.wrapping_add(self.default_milli_cpu.wrapping_mul(demand.unsaid))
    }

    /// The points of a node, if that share of its cpu would be used, in percent.
    fn points(&self, used: f64) -> i64 {
        let (target, most) = (self.target, MAX_NODE_SCORE as f64);
        if used <= target {
            ((most - target) * used / target + target).round() as i64
        } else if used > most {
            0
        } else {
            (target * (most - used) / (most - target)).round() as i64
        }
    }
}

impl Score for TargetLoadPacking {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let Some(load) = cycle.object_of::<NodeLoad>(node) else { return Ok(0) };
        let Some(used) = load.cpu_of(node).last else { return Ok(0) };
        let capacity = node.facts().capacity.amount(resource::CPU) as f64;
        let recent = cycle.context.memories.get::<RecentPods>();
        let unmeasured = recent.map_or(0, |recent| {
            let demands = recent.since(node.name(), load.window_end);
            demands.map(|demand| self.prediction(demand)).fold(0, i64::wrapping_add)
        });
        let predicted = self.prediction(&Demand::of(&cycle.pod.spec, &cycle.context.fixes));
        let used = used / 100.0 * capacity;
        let used = if capacity == 0.0 {
            0.0
        } else {
            100.0 * (used + predicted as f64 + unmeasured as f64) / capacity
        };
        let points = self.points(used);
        let is_mended = cycle.context.fixes.target_load_points;
        Ok(if is_mended { points.clamp(0, MAX_NODE_SCORE) } else { points })
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

impl Observe for TargetLoadPacking {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::ADD.or(Actions::UPDATE).or(Actions::DELETE)),
            ClusterEvent::kind(NodeLoad::ID, Actions::ADD.or(Actions::UPDATE)),
        ]
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        *acts.memory::<RecentPods>() = RecentPods::of(context);
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        match change {
            Change::Pod { old, new } => {
                let is_on_node = |pod: &&supercargo_model::Pod| pod.node_name.is_some();
                match (old.filter(is_on_node), new.filter(is_on_node)) {
                    (None, Some(pod)) => acts.memory::<RecentPods>().came(pod, context.now, &context.fixes),
                    (Some(pod), None) => acts.memory::<RecentPods>().went(pod),
                    _ => {}
                }
            }
            Change::Object { new: Some(object), .. } => {
                if let Some(load) = object.get::<NodeLoad>() {
                    let node = &*object.key.name;
                    let is_known = acts.recall::<RecentPods>().is_some_and(|recent| recent.knows(node));
                    if is_known {
                        acts.memory::<RecentPods>().measured(node, load.window_end);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
