//! What is measured on a node, and how the answers of those who measure are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use supercargo_framework::{Answer, Fixes, LeftOutReason, NodeFacts, fact_kind};
use supercargo_model::names::resource;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, NodeRef, Pod, Timestamp};

use crate::community::requests::request_amounts;

/// A load below this, in percent, is nonsense. Upstream takes any number; one that is a little below 0 is counted as upstream does. What is
/// far below 0 would give points that no node may have, so that no pod that meets the node could be scheduled.
const LOAD_MIN: f64 = -10.0;

/// A measurement covers a pod that came so many seconds before its end.
const COVERED_AFTER: i64 = 60;

/// What is said of an answer without a window.
const NO_WINDOW: &str =
    "load-watcher does not say when its window ended: the load is taken to be measured now";

/// The load of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeLoad {
    /// Of its cpu, in percent.
    pub cpu: Measured,
    /// Of its memory, in percent.
    pub memory: Measured,
    /// What is used, if amounts and not percentages were measured.
    pub usage: Option<Usage>,
    /// Up to when it was measured, in Unix seconds.
    pub window_end: i64,
}

impl Kind for NodeLoad {
    const ID: KindId = fact_kind("NodeLoad", "nodeloads");
}

/// What is measured of one resource, in percent of what the node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Measured {
    /// The average, or else the latest value.
    pub average: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// Whether anything was measured.
    pub is_known: bool,
    /// The first average or latest value that was told.
    pub first: Option<f64>,
    /// The last one.
    pub last: Option<f64>,
}

/// What a node uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Usage {
    /// In thousandths of a core.
    pub milli_cpu: i64,
    /// In bytes.
    pub memory: i64,
}

/// How one provider's answer becomes loads of nodes.
pub(super) type Read = fn(&Answer, &mut NodeFacts<NodeLoad>) -> Result<(), String>;

/// Whether a measurement up to then covers a pod that came at some time; both in Unix seconds.
pub(super) fn is_covered(came: i64, window_end: i64) -> bool {
    came <= window_end && window_end.saturating_sub(came) >= COVERED_AFTER
}

impl NodeLoad {
    /// What is measured of the node's cpu.
    pub(super) fn cpu_of(&self, node: NodeRef<'_>) -> Measured {
        self.usage.map_or(self.cpu, |usage| Measured::share(usage.milli_cpu, node, resource::CPU))
    }

    /// What is measured of the node's memory.
    pub(super) fn memory_of(&self, node: NodeRef<'_>) -> Measured {
        self.usage.map_or(self.memory, |usage| Measured::share(usage.memory, node, resource::MEMORY))
    }

    /// What those pods of the node ask for, of cpu and memory, that the measurement does not cover: they have not started, or started
    /// too late for it.
    pub(super) fn unmeasured(&self, node: NodeRef<'_>, fixes: &Fixes) -> [i64; 2] {
        let covers = |pod: &Pod| pod.started_at.is_some_and(|at| is_covered(at.seconds(), self.window_end));
        node.pods().iter().filter(|pod| !covers(pod)).fold([0, 0], |[cpu, memory], pod| {
            let [more_cpu, more_memory] = request_amounts(&pod.spec, fixes);
            [cpu.saturating_add(more_cpu), memory.saturating_add(more_memory)]
        })
    }
}

impl Measured {
    /// What was used last, as a share of what the node has.
    fn share(used: i64, node: NodeRef<'_>, name: &str) -> Self {
        let capacity = node.facts().capacity.amount(name);
        if capacity <= 0 {
            return Measured::default();
        }
        let mut measured = Measured::default();
        measured.note("Latest", 100.0 * used as f64 / capacity as f64, &mut false);
        measured
    }

    /// Takes one measurement. An average counts more than the latest value, and of the same kind the later one.
    fn note(&mut self, operator: &str, value: f64, has_average: &mut bool) {
        self.is_known = true;
        match operator {
            "AVG" => (self.average, *has_average) = (value, true),
            "STD" => self.deviation = value,
            "Latest" | "" if !*has_average => self.average = value,
            _ => {}
        }
        if matches!(operator, "AVG" | "Latest") {
            self.first.get_or_insert(value);
            self.last = Some(value);
        }
    }
}

/// What load-watcher answers.
#[derive(Deserialize)]
struct WatcherWords {
    #[serde(default, deserialize_with = "null_default")]
    window: WindowWords,
    #[serde(deserialize_with = "null_default")]
    data: DataWords,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WindowWords {
    #[serde(deserialize_with = "null_default")]
    end: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DataWords {
    #[serde(rename = "NodeMetricsMap", deserialize_with = "null_default")]
    nodes: BTreeMap<String, NodeWords>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeWords {
    #[serde(deserialize_with = "null_default")]
    metrics: Vec<MetricWords>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetricWords {
    #[serde(rename = "type", deserialize_with = "null_default")]
    kind: String,
    #[serde(deserialize_with = "null_default")]
    operator: String,
    #[serde(deserialize_with = "null_default")]
    value: f64,
}

/// Reads what load-watcher says. A node about which it says nothing is as one that it does not name. It goes on telling what it was told
/// last while nobody tells it anything, so that it counts when the window ended, and not when it answers.
pub(super) fn read_watcher(answer: &Answer, nodes: &mut NodeFacts<NodeLoad>) -> Result<(), String> {
    let words: WatcherWords = answer.json()?;
    let end = words.window.end;
    let measured_at = if end > 0 {
        Timestamp::from_seconds(end)
    } else {
        nodes.warn(NO_WINDOW);
        nodes.now()
    };
    for (node, NodeWords { metrics }) in words.data.nodes {
        let (metrics, absurd): (Vec<_>, Vec<_>) =
            metrics.into_iter().partition(|metric| is_believable(metric.value));
        absurd.iter().for_each(|_| nodes.leave_out(LeftOutReason::OutOfRange));
        if metrics.is_empty() {
            continue;
        }
        let mut load = NodeLoad { window_end: measured_at.seconds(), ..NodeLoad::default() };
        let (mut has_cpu, mut has_memory) = (false, false);
        for MetricWords { kind, operator, value } in metrics {
            match &*kind {
                "CPU" => load.cpu.note(&operator, value, &mut has_cpu),
                "Memory" => load.memory.note(&operator, value, &mut has_memory),
                _ => {}
            }
        }
        nodes.put_at(&node, load, measured_at);
    }
    Ok(())
}

/// Whether a percentage can be meant.
fn is_believable(percent: f64) -> bool {
    percent >= LOAD_MIN
}

/// Reads the four series of each node that Prometheus is asked for.
pub(super) fn read_prometheus(answer: &Answer, nodes: &mut NodeFacts<NodeLoad>) -> Result<(), String> {
    let mut loads: BTreeMap<&str, (NodeLoad, Timestamp)> = BTreeMap::new();
    for series in answer.series()? {
        let (Some(node), Some(sample)) = (series.label(answer.parameter("label")), series.latest()) else {
            continue;
        };
        if !is_believable(sample.value * 100.0) {
            nodes.leave_out(LeftOutReason::OutOfRange);
            continue;
        }
        let (load, at) = loads.entry(node).or_insert((NodeLoad::default(), sample.at));
        (load.window_end, *at) = (sample.at.seconds(), sample.at);
        let measured = match series.label("resource") {
            Some("CPU") => &mut load.cpu,
            Some("Memory") => &mut load.memory,
            _ => continue,
        };
        measured.note(series.label("operator").unwrap_or_default(), sample.value * 100.0, &mut true);
    }
    for (node, (load, at)) in loads {
        nodes.put_at(node, load, at);
    }
    Ok(())
}

/// Reads what the metrics API says that nodes use.
pub(super) fn read_node_metrics(answer: &Answer, nodes: &mut NodeFacts<NodeLoad>) -> Result<(), String> {
    for used in answer.node_metrics()? {
        if used.milli_cpu < 0 || used.memory < 0 {
            nodes.leave_out(LeftOutReason::OutOfRange);
            continue;
        }
        let usage = Usage { milli_cpu: used.milli_cpu, memory: used.memory };
        let window_end = used.at.seconds();
        nodes.put_at(&used.node, NodeLoad { usage: Some(usage), window_end, ..NodeLoad::default() }, used.at);
    }
    Ok(())
}
