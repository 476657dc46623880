//! What `supercargo shadow` counts.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::series::{Series, buckets};
use super::{Exposition, count};

/// All verdicts, to be there from the start: an alert on a rate wants to see the zero.
const VERDICTS: [&str; 5] = ["same", "tied", "better", "worse", "rejected"];

/// What an onlooker writes to.
#[derive(Clone, Debug)]
pub struct ShadowMetrics {
    pods: Series<1, Counter>,
    plugin_differences: Series<2, Counter>,
    plugin_points: Series<2, Counter>,
    rejections: Series<1, Counter>,
    agreement: Gauge<f64, AtomicU64>,
    lag: Series<0, Histogram>,
    missed: Series<0, Counter>,
    watch_restarts: Series<1, Counter>,
    nodes: Series<0, Gauge>,
    waiting: Series<0, Gauge>,
    held: Series<0, Gauge>,
    /// How many pods were compared, and for how many of them both agree.
    compared: u64,
    agreed: u64,
}

/// For whose node a plugin speaks.
const THEIRS: &str = "theirs";
const OURS: &str = "ours";

impl ShadowMetrics {
    /// All metrics, and what a scrape reads of them.
    pub fn new() -> (Self, Exposition) {
        let mut registry = Registry::default();
        let all = &mut registry;
        let agreement = Gauge::<f64, AtomicU64>::default();
        let mut metrics = ShadowMetrics {
            pods: Series::counter(
                all,
                "supercargo_shadow_pods",
                "Number of pods that another scheduler bound, by how its node compares with ours",
                ["verdict"],
            ),
            plugin_differences: Series::counter(
                all,
                "supercargo_shadow_plugin_differences",
                "Number of pods with a better or worse node for which a plugin gave the two nodes different scores, by the node that it gave more",
                ["favors", "plugin"],
            ),
            plugin_points: Series::counter(
                all,
                "supercargo_shadow_plugin_points",
                "How much more a plugin gave one of the two nodes, summed up over pods with a better or worse node, by the node that it gave more",
                ["favors", "plugin"],
            ),
            rejections: Series::counter(
                all,
                "supercargo_shadow_rejections",
                "Number of pods on nodes that a plugin would not have put them on; the plugin is empty where the node or the answer was missing",
                ["plugin"],
            ),
            agreement: agreement.clone(),
            lag: Series::histogram(
                all,
                "supercargo_shadow_lag_seconds",
                "Time from seeing a binding to having compared it, most of which it is held to find out the order",
                [],
                || buckets(0.25, 2.0, 12),
            ),
            missed: Series::counter(
                all,
                "supercargo_shadow_missed_pods",
                "Number of pods that were bound while a watch was broken, and so not compared",
                [],
            ),
            watch_restarts: Series::counter(
                all,
                "supercargo_watch_restarts",
                "Number of times a watch had to list everything again, by kind",
                ["kind"],
            ),
            nodes: Series::gauge(all, "supercargo_shadow_nodes", "Number of nodes", []),
            waiting: Series::gauge(
                all,
                "supercargo_shadow_waiting_pods",
                "Number of pods that wait for a node",
                [],
            ),
            held: Series::gauge(
                all,
                "supercargo_shadow_held_bindings",
                "Number of bindings that are held to find out the order in which they were decided",
                [],
            ),
            compared: 0,
            agreed: 0,
        };
        all.register(
            "supercargo_shadow_agreement_ratio",
            "Which part of the pods compared so far is on the node that we choose, or on one as good; 1 as long as there are none",
            agreement,
        );
        for verdict in VERDICTS {
            metrics.pods.of([verdict]);
        }
        metrics.agreement.set(1.0);
        metrics.lag.of([]);
        metrics.missed.of([]);
        (metrics, Exposition { registry: Arc::new(registry) })
    }

    /// A pod was compared so long after its binding was seen: `same`, `tied`, `better`, `worse` or `rejected`.
    pub fn compared(&mut self, verdict: &str, lag: Duration) {
        self.pods.of([verdict]).inc();
        self.lag.of([]).observe(lag.as_secs_f64());
        self.compared += 1;
        self.agreed += u64::from(matches!(verdict, "same" | "tied"));
        self.agreement.set(self.agreed as f64 / self.compared as f64);
    }

    /// A plugin gave the other scheduler's node so much more than ours, where one is better.
    pub fn difference(&mut self, plugin: &str, points: i64) {
        let favors = if points > 0 { THEIRS } else { OURS };
        self.plugin_differences.of([favors, plugin]).inc();
        self.plugin_points.of([favors, plugin]).inc_by(points.unsigned_abs());
    }

    /// A plugin would not have put a pod where it is.
    pub fn rejected(&mut self, plugin: &str) {
        self.rejections.of([plugin]).inc();
    }

    /// So many pods could not be compared, from the start on.
    pub fn missed(&mut self, pods: u64) {
        let counter = self.missed.of([]);
        counter.inc_by(pods.saturating_sub(counter.get()));
    }

    /// A watch had to list everything again.
    pub fn watch_restarted(&mut self, kind: &str) {
        self.watch_restarts.of([kind]).inc();
    }

    /// So many nodes there are, so many pods wait, and so many bindings are held.
    pub fn stands(&mut self, nodes: usize, waiting: usize, held: usize) {
        self.nodes.of([]).set(count(nodes));
        self.waiting.of([]).set(count(waiting));
        self.held.of([]).set(count(held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compared_is_counted() {
        let (mut metrics, exposition) = ShadowMetrics::new();
        let has = |line: &str| {
            let text = exposition.text();
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        };
        has(r#"supercargo_shadow_pods_total{verdict="worse"} 0"#);
        has("supercargo_shadow_agreement_ratio 1.0");
        for verdict in ["same", "tied", "worse", "rejected"] {
            metrics.compared(verdict, Duration::from_millis(600));
        }
        metrics.difference("NodeResourcesFit", -20);
        metrics.difference("NodeResourcesFit", -5);
        metrics.difference("ImageLocality", 2);
        metrics.rejected("TaintToleration");
        metrics.missed(3);
        metrics.missed(5);
        metrics.watch_restarted("pods");
        metrics.stands(7, 2, 1);
        for line in [
            r#"supercargo_shadow_pods_total{verdict="same"} 1"#,
            r#"supercargo_shadow_pods_total{verdict="better"} 0"#,
            r#"supercargo_shadow_plugin_differences_total{favors="ours",plugin="NodeResourcesFit"} 2"#,
            r#"supercargo_shadow_plugin_points_total{favors="ours",plugin="NodeResourcesFit"} 25"#,
            r#"supercargo_shadow_plugin_points_total{favors="theirs",plugin="ImageLocality"} 2"#,
            r#"supercargo_shadow_rejections_total{plugin="TaintToleration"} 1"#,
            "supercargo_shadow_agreement_ratio 0.5",
            r#"supercargo_shadow_lag_seconds_bucket{le="0.5"} 0"#,
            r#"supercargo_shadow_lag_seconds_bucket{le="1"} 4"#,
            "supercargo_shadow_missed_pods_total 5",
            r#"supercargo_watch_restarts_total{kind="pods"} 1"#,
            "supercargo_shadow_nodes 7",
            "supercargo_shadow_waiting_pods 2",
            "supercargo_shadow_held_bindings 1",
        ] {
            has(line);
        }
    }
}
