//! NetworkTraffic: nodes with little network traffic, or those that a learning agent suggests.

mod args;

use std::collections::BTreeMap;

use serde::Deserialize;
use supercargo_framework::{
    Acts, Answer, Cycle, Extensions, LeftOutReason, LineSource, MAX_NODE_SCORE, NodeFacts, NodeField,
    NodeScore, Normalization, Plugin, PodField, Query, Question, Reads, Reserve, Score, Status, fact_kind,
};
use supercargo_model::taints::find_forbidding;
use supercargo_model::{Kind, KindId, NodeRef, Pod};

use args::duration;
pub use args::{NetworkTrafficArgs, TrafficMeasure};

/// The labels that say which node a series is about: the original's, and node exporter's own.
const NODE_LABELS: [&str; 2] = ["kubernetes_node", "instance"];
/// The raw score of a node whose traffic nobody knows.
const UNKNOWN: i64 = -1;
/// The final score of such a node: it is neither preferred nor avoided.
const UNKNOWN_SCORE: i64 = MAX_NODE_SCORE / 2;

/// # What
/// Prefers nodes that receive little over the network, as Prometheus knows it: the node with most traffic gets 0 points, one without
/// any gets 100. If there is an agent that suggests nodes, pods go by its suggestion instead, and by traffic when it has none.
///
/// # Why
/// Pods that serve many requests share the network of their node with all the others there.
///
/// # Arguments
/// `prometheusAddress`, which is needed, or `prometheus` with headers, a token and TLS besides the `url`; `networkInterface` (`ens192`);
/// `timeRangeInMinutes` (5); `measure`: `CounterSum`, which the original takes, or `Rate`, which is bytes a second; `nodeLabel`
/// (`kubernetes_node`, or else `instance`), by a node's name or internal address; `queryInterval` (15s) and `queryTimeout` (5s);
/// `agentAddress`, such as `localhost:8765`, and `agentTimeout` (100ms).
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: NetworkTraffic, weight: 3}]}
/// pluginConfig:
/// - name: NetworkTraffic
///   args: {prometheusAddress: "http://prometheus-k8s.monitoring:9090", networkInterface: eth0}
/// ```
/// With 1, 15, 10 and 13 bytes on four nodes: 94, 0, 34 and 14 points.
///
/// # Difference from upstream
/// All nodes are asked about at once, now and then, and no decision waits for it. A node that Prometheus does not know, or of which it
/// has no fresh sample, gets 50 points, where the original fails the pod; where nobody has any traffic, all get 100, where it divides by
/// 0. The points of the agent are scaled so that its best node gets 100. An answer that is late, malformed, or does not name every
/// node that is feasible counts for nothing, and the pod goes by traffic. Enabled at Reserve as well, the plugin counts pods by what
/// the agent said: `suggestion` if it named every node whose taints the pod tolerates, `partial` if it left some of them out, and
/// `traffic` if it named none, or gave no answer in time. Only `getSuggestion` is sent: the original's later `setResourceValues` tells the
/// agent of a pod in one connection and asks in another, and another pod's answer may come in between.
#[derive(Debug)]
pub struct NetworkTraffic {
    args: NetworkTrafficArgs,
}

/// What a node has received, as the measure has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Traffic(pub i64);

impl Kind for Traffic {
    const ID: KindId = fact_kind("NetworkTraffic", "networktraffics");
}

/// The points that the agent gives to nodes, for a pod.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Suggestion(BTreeMap<Box<str>, i64>);

impl From<BTreeMap<Box<str>, i64>> for Suggestion {
    fn from(points: BTreeMap<Box<str>, i64>) -> Self {
        Suggestion(points)
    }
}

impl Kind for Suggestion {
    const ID: KindId = fact_kind("NetworkTrafficSuggestion", "networktrafficsuggestions");
}

impl Plugin for NetworkTraffic {
    const NAME: &'static str = "NetworkTraffic";
    type Args = NetworkTrafficArgs;

    fn new(args: NetworkTrafficArgs) -> Self {
        NetworkTraffic { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score().reserve()
    }

    fn reads(&self) -> Reads {
        let traffic = Query::per_node::<Traffic>("network-traffic", self.args.source(), read_traffic)
            .with("label", &self.args.node_label)
            .every(duration(self.args.query_interval))
            .within(duration(self.args.query_timeout));
        let reads = Reads::nothing().query(traffic);
        if self.args.agent_address.is_empty() {
            return reads;
        }
        let agent = self.args.agent_address.clone();
        let ask = move |_: &Pod| Some(LineSource::new(&*agent, "getSuggestion").into());
        let suggestion = Question::per_node::<Suggestion, i64>("suggestion", ask, |answer, nodes| {
            for (node, points) in answer.json::<BTreeMap<String, i64>>()? {
                nodes.put(&node, points);
            }
            Ok(())
        });
        reads
            .question(suggestion.within(duration(self.args.agent_timeout)))
            .pod(&[PodField::Tolerations])
            .node(&[NodeField::Name, NodeField::Taints, NodeField::Unschedulable])
    }
}

/// Takes the newest sample of each series for the traffic of the node that its label names.
fn read_traffic(answer: &Answer, nodes: &mut NodeFacts<Traffic>) -> Result<(), String> {
    let chosen = answer.parameter("label");
    let labels: &[&str] = if chosen.is_empty() { &NODE_LABELS } else { &[chosen] };
    for series in answer.series()? {
        let node = labels.iter().find_map(|label| series.label(label));
        match (node, series.latest()) {
            // What is less than nothing, or more than counters hold, is nonsense.
            (Some(_), Some(sample)) if !(0.0..9.2e18).contains(&sample.value) => {
                nodes.leave_out(LeftOutReason::NotFinite);
            }
            (Some(node), Some(sample)) => nodes.put_at(node, Traffic(sample.value as i64), sample.at),
            _ => nodes.leave_out(LeftOutReason::NoNode),
        }
    }
    Ok(())
}

impl NetworkTraffic {
    /// What the agent suggests for the pod of a cycle.
    fn suggestion<'a>(&self, cycle: &Cycle<'a>) -> Option<&'a Suggestion> {
        if self.args.agent_address.is_empty() {
            return None;
        }
        cycle.cluster().objects().get::<Suggestion>(&cycle.pod.namespace, &cycle.pod.name)
    }

    /// Whether the agent has said enough about the pod of a cycle. Which nodes were feasible nobody knows any more when a pod is
    /// counted; nodes that keep the pod away, such as control planes, are none that an agent has to name.
    fn said_about(&self, cycle: &Cycle<'_>) -> &'static str {
        let Some(suggestion) = self.suggestion(cycle) else { return "traffic" };
        let mut nodes = cycle.cluster().nodes().filter(|node| is_open_to(cycle.pod, *node));
        if nodes.all(|node| suggestion.of(node.name()).is_some()) { "suggestion" } else { "partial" }
    }
}

/// Whether a node takes such pods at all.
fn is_open_to(pod: &Pod, node: NodeRef<'_>) -> bool {
    !node.is_unschedulable() && find_forbidding(node.taints(), &pod.spec.tolerations).is_none()
}

impl Suggestion {
    /// The points of nodes, scaled so that the best of them gets 100; none if not all of them are named.
    fn scaled(&self, nodes: impl Iterator<Item = Option<i64>>) -> Option<Vec<i64>> {
        let points: Vec<i64> =
            nodes.map(|points| points.map(|points| points.max(0))).collect::<Option<_>>()?;
        let best = points.iter().copied().max().unwrap_or(0);
        let scale = |points: i64| i128::from(points) * i128::from(MAX_NODE_SCORE) / i128::from(best.max(1));
        Some(points.into_iter().map(|points| scale(points) as i64).collect())
    }

    fn of(&self, node: &str) -> Option<i64> {
        self.0.get(node).copied()
    }
}

impl Score for NetworkTraffic {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(cycle.object_of::<Traffic>(node).map_or(UNKNOWN, |traffic| traffic.0))
    }

    fn normalize(&self, cycle: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        if let Some(suggestion) = self.suggestion(cycle) {
            let cluster = cycle.cluster();
            let named = scores.iter().map(|score| suggestion.of(cluster.node(score.row).name()));
            if let Some(points) = suggestion.scaled(named) {
                scores.iter_mut().zip(points).for_each(|(score, points)| score.score = points);
                return Status::success();
            }
        }
        let most = scores.iter().map(|score| score.score).max().unwrap_or(0);
        for score in scores {
            score.score = by_traffic(score.score, most);
        }
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        if self.args.agent_address.is_empty() { Normalization::ByRange } else { Normalization::Unknown }
    }
}

/// The points of a node with that much traffic, where the most that a node has is that.
fn by_traffic(traffic: i64, most: i64) -> i64 {
    match traffic {
        UNKNOWN => UNKNOWN_SCORE,
        _ if most <= 0 => MAX_NODE_SCORE,
        _ => MAX_NODE_SCORE - (i128::from(traffic) * i128::from(MAX_NODE_SCORE) / i128::from(most)) as i64,
    }
}

impl Reserve for NetworkTraffic {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        if !self.args.agent_address.is_empty() {
            acts.count("decisions", &[("by", self.said_about(cycle))]);
        }
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

#[cfg(test)]
mod tests;
