//! A score by what Prometheus says.

use supercargo_sdk::prelude::*;
use supercargo_sdk::{Endpoint, GoDuration, PrometheusSource, Query, fact_kind};

/// Prefers nodes with less load. A node of which nobody knows the load counts as half loaded: neither preferred nor avoided.
#[derive(Debug)]
pub struct ByLoad {
    args: ByLoadArgs,
}

/// Arguments of [`ByLoad`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde", default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ByLoadArgs {
    /// Where Prometheus is.
    pub prometheus: Endpoint,
    /// What says how loaded a node is, from 0 to 1.
    pub expression: String,
    /// The label that names the node, by its name or its address, with or without a port.
    pub label: String,
    /// How often Prometheus is asked.
    pub interval: GoDuration,
}

impl Default for ByLoadArgs {
    fn default() -> Self {
        ByLoadArgs {
            prometheus: Endpoint::new("http://prometheus-k8s.monitoring:9090"),
            expression: "instance:node_cpu:ratio".to_owned(),
            label: "instance".to_owned(),
            interval: GoDuration::from_seconds(15),
        }
    }
}

impl Args for ByLoadArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        self.prometheus.validate("prometheus", problems);
    }
}

/// How loaded a node is, in thousandths. A number that is not finer than the score needs changes less often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(crate = "supercargo_sdk::serde")]
pub struct Load {
    /// From 0 to 1000.
    pub thousandths: i64,
}

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

impl Plugin for ByLoad {
    const NAME: &'static str = "ByLoad";
    type Args = ByLoadArgs;

    fn new(args: ByLoadArgs) -> Self {
        ByLoad { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        let ByLoadArgs { prometheus, expression, label, interval } = &self.args;
        let source = PrometheusSource::new(prometheus.clone(), expression);
        let load = Query::per_node::<Load>("load", source, |answer, nodes| {
            let load = |ratio: f64| Load { thousandths: (ratio.clamp(0.0, 1.0) * 1000.0).round() as i64 };
            nodes.put_latest(answer.series()?, answer.parameter("label"), load);
            Ok(())
        });
        let interval = Duration::from_nanos(interval.0.max(0).unsigned_abs());
        Reads::nothing().query(load.with("label", label).every(interval).within(Duration::from_secs(5)))
    }
}

impl Score for ByLoad {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let load = cycle.object_of::<Load>(node);
        Ok(MAX_NODE_SCORE - load.map_or(500, |load| load.thousandths) / 10)
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}
