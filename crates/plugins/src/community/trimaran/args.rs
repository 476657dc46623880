//! Where the load of nodes comes from.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Endpoint, FieldProblems, HttpSource, PrometheusSource, Query, QuerySource, QueryTls,
};

use super::load::{self, NodeLoad};

/// The name of the query that asks for the load of all nodes.
pub(super) const QUERY: &str = "node-load";
/// How often it is asked, as upstream.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer counts if no other follows. Upstream keeps the last one for ever.
const FRESHNESS: Duration = Duration::from_secs(5 * 60);
/// How long an answer may be: load-watcher and the metrics API write some KiB about a node.
const BYTES_MAX: usize = 256 << 20;
/// The time over which Prometheus takes averages.
const WINDOW: &str = "15m";
/// Where Prometheus is if nobody says.
const PROMETHEUS: &str = "http://prometheus-k8s:9090";

/// Who measures the load of nodes, if load-watcher does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct MetricProvider {
    /// `KubernetesMetricsServer`, or `Prometheus`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    pub address: Option<String>,
    /// The token to ask it with.
    pub token: Option<Token>,
    /// Whether its certificate is not looked at.
    pub insecure_skip_verify: Option<bool>,
    /// Prometheus' series of the share of its cpu that a node uses; `instance:node_cpu:ratio` if it is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_series: String,
    /// The same of its memory; `instance:node_memory_utilisation:ratio` if it is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory_series: String,
    /// The label that names the node, by its name or its internal address; `instance` if it is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_label: String,
}

/// A token, which is not for everybody's eyes.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "none" } else { "***" })
    }
}

impl MetricProvider {
    /// Fills in what is not said.
    pub(super) fn complete(&mut self, watcher_address: Option<&str>) {
        if watcher_address.is_none() && self.kind.is_empty() {
            "KubernetesMetricsServer".clone_into(&mut self.kind);
        }
        if self.kind == "Prometheus" {
            self.insecure_skip_verify.get_or_insert(true);
        }
    }

    pub(super) fn validate(&self, watcher_address: Option<&str>, problems: &mut FieldProblems) {
        if let Some(address) = watcher_address.filter(|address| !address.is_empty()) {
            Endpoint::new(address).validate("watcherAddress", problems);
            return;
        }
        match &*self.kind {
            "KubernetesMetricsServer" => {}
            "Prometheus" => {
                self.endpoint().validate("metricProvider.address", problems);
                let is_plain = |text: &str| text.chars().all(|one| one.is_ascii_graphic());
                for (field, series) in
                    [("cpuSeries", &self.cpu_series), ("memorySeries", &self.memory_series)]
                {
                    if !is_plain(series) {
                        let detail = "a series has neither blanks nor control characters in its name";
                        problems.invalid(format!("metricProvider.{field}"), series, detail);
                    }
                }
            }
            "SignalFx" => {
                let detail = "SignalFx is asked by load-watcher only: run it, and name it as watcherAddress";
                problems.invalid("metricProvider.type", &self.kind, detail);
            }
            other => {
                let detail = format!("invalid MetricProvider.Type, got {other}");
                problems.invalid("metricProvider.type", other, detail);
            }
        }
    }

    /// The query that asks for the load of all nodes.
    pub(super) fn query(&self, watcher_address: Option<&str>) -> Query {
        let of = |source: QuerySource, read: load::Read| Query::per_node::<NodeLoad>(QUERY, source, read);
        let query = match watcher_address.filter(|address| !address.is_empty()) {
            Some(address) => {
                let url = format!("{}/watcher", address.trim_end_matches('/'));
                of(HttpSource::get(Endpoint::new(url)).into(), load::read_watcher)
            }
            None if self.kind == "Prometheus" => {
                let source = PrometheusSource::new(self.endpoint(), self.expression());
                // Only Prometheus has labels: plugins that ask another source ask the same whatever label they name.
                of(source.into(), load::read_prometheus).with("label", named(&self.node_label, "instance"))
            }
            None => of(QuerySource::NodeMetrics, load::read_node_metrics),
        };
        query.every(INTERVAL).within(TIMEOUT).fresh_for(FRESHNESS).at_most(BYTES_MAX)
    }

    fn endpoint(&self) -> Endpoint {
        let endpoint = Endpoint::new(self.address.as_deref().unwrap_or(PROMETHEUS));
        let endpoint = match &self.token {
            Some(Token(token)) if !token.is_empty() => {
                endpoint.header("Authorization", format!("Bearer {token}"))
            }
            _ => endpoint,
        };
        if endpoint.is_https() && self.insecure_skip_verify == Some(true) {
            return endpoint.tls(QueryTls { insecure_skip_verify: true, ..QueryTls::default() });
        }
        endpoint
    }

    /// One question for averages and deviations of both resources: each series says which of them it is.
    fn expression(&self) -> String {
        let cpu = named(&self.cpu_series, "instance:node_cpu:ratio");
        let memory = named(&self.memory_series, "instance:node_memory_utilisation:ratio");
        let term = |function: &str, series: &str, resource: &str, operator: &str| {
            let inner = format!("{function}({series}[{WINDOW}])");
            format!(
                r#"label_replace(label_replace({inner},"resource","{resource}","",""),"operator","{operator}","","")"#
            )
        };
        [
            term("avg_over_time", cpu, "CPU", "AVG"),
            term("stddev_over_time", cpu, "CPU", "STD"),
            term("avg_over_time", memory, "Memory", "AVG"),
            term("stddev_over_time", memory, "Memory", "STD"),
        ]
        .join(" or ")
    }
}

fn named<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}
