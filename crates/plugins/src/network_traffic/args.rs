//! The arguments of NetworkTraffic.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, Endpoint, FieldProblems, PrometheusSource};
use supercargo_model::GoDuration;
use supercargo_model::wire::null_default;

/// The interface whose traffic counts if none is named.
const INTERFACE: &str = "ens192";
/// How long a range of time may be: Prometheus keeps two weeks as it is installed.
const RANGE_MINUTES_MAX: i64 = 14 * 24 * 60;
/// The longest name of an interface that Linux takes is 15 bytes; other systems take longer ones.
const INTERFACE_BYTES_MAX: usize = 63;

/// Arguments of [`NetworkTraffic`](super::NetworkTraffic).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NetworkTrafficArgs {
    /// Where Prometheus is, such as `http://prometheus-k8s.monitoring:9090`.
    pub prometheus_address: String,
    /// How Prometheus is talked to, if an address is not enough: headers, a token, TLS.
    pub prometheus: Endpoint,
    /// The network interface of the nodes whose traffic counts; `ens192` if it is empty.
    pub network_interface: String,
    /// How far back traffic counts.
    pub time_range_in_minutes: i64,
    /// What counts as traffic.
    #[serde(deserialize_with = "null_default")]
    pub measure: TrafficMeasure,
    /// The label that says which node a series is about, by its name or its internal address; `kubernetes_node`, or else `instance`,
    /// if it is empty.
    pub node_label: String,
    /// How often Prometheus is asked.
    pub query_interval: GoDuration,
    /// How long Prometheus may take to answer.
    pub query_timeout: GoDuration,
    /// `host:port` of an agent that suggests nodes for a pod; none if it is empty.
    pub agent_address: String,
    /// How long the agent may take to answer.
    pub agent_timeout: GoDuration,
}

/// What counts as the traffic of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrafficMeasure {
    /// The sum of what the counter of received bytes has shown: what the original takes. It grows with the time that a node is up.
    #[default]
    CounterSum,
    /// Bytes received a second.
    Rate,
}

impl Default for NetworkTrafficArgs {
    fn default() -> Self {
        NetworkTrafficArgs {
            prometheus_address: String::new(),
            prometheus: Endpoint::default(),
            network_interface: INTERFACE.to_owned(),
            time_range_in_minutes: 5,
            measure: TrafficMeasure::default(),
            node_label: String::new(),
            query_interval: GoDuration::from_seconds(15),
            query_timeout: GoDuration::from_seconds(5),
            agent_address: String::new(),
            agent_timeout: GoDuration(100_000_000),
        }
    }
}

impl Args for NetworkTrafficArgs {
    fn complete(&mut self) {
        if self.network_interface.is_empty() {
            INTERFACE.clone_into(&mut self.network_interface);
        }
        if self.prometheus.url.is_empty() {
            self.prometheus.url.clone_from(&self.prometheus_address);
        }
    }

    fn validate(&self, problems: &mut FieldProblems) {
        let is_named_twice =
            !self.prometheus_address.is_empty() && self.prometheus.url != self.prometheus_address;
        if is_named_twice {
            problems.invalid(
                "prometheusAddress",
                &self.prometheus_address,
                "must be the same as prometheus.url",
            );
        }
        if self.prometheus.url.is_empty() {
            problems
                .required("prometheusAddress", "the address of Prometheus, such as http://prometheus:9090");
        } else {
            let path = if self.prometheus_address.is_empty() { "prometheus" } else { "prometheusAddress" };
            self.prometheus.validate(path, problems);
        }
        let is_plain = |character: char| character.is_ascii_graphic() && !matches!(character, '"' | '\\');
        if self.network_interface.len() > INTERFACE_BYTES_MAX || !self.network_interface.chars().all(is_plain)
        {
            problems.invalid(
                "networkInterface",
                &self.network_interface,
                "is no name of a network interface",
            );
        }
        if !(1..=RANGE_MINUTES_MAX).contains(&self.time_range_in_minutes) {
            let range = format!("must be from 1 to {RANGE_MINUTES_MAX}");
            problems.invalid("timeRangeInMinutes", self.time_range_in_minutes, range);
        }
        let is_label = |label: &str| {
            label.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        };
        if !is_label(&self.node_label) {
            problems.invalid("nodeLabel", &self.node_label, "is no name of a label");
        }
    }
}

impl NetworkTrafficArgs {
    /// What Prometheus is asked: one question about all nodes.
    pub(super) fn source(&self) -> PrometheusSource {
        let (interface, minutes) = (&self.network_interface, self.time_range_in_minutes);
        let function = match self.measure {
            TrafficMeasure::CounterSum => "sum_over_time",
            TrafficMeasure::Rate => "rate",
        };
        let expression =
            format!("{function}(node_network_receive_bytes_total{{device=\"{interface}\"}}[{minutes}m])");
        PrometheusSource::new(self.prometheus.clone(), expression)
    }
}

pub(super) fn duration(of: GoDuration) -> Duration {
    Duration::from_nanos(of.0.max(0).unsigned_abs())
}
