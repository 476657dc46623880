//! What sources answer, read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use supercargo_model::{Quantity, Timestamp, printable};

use super::Freshness;
use super::facts::{LeftOut, LeftOutReason, judged};
use super::source::QuerySource;

/// So many characters of an answer that cannot be read are shown.
const EXCERPT_CHARACTERS_MAX: usize = 80;
/// So many warnings of a source are kept, and so many characters of each.
const WARNINGS_MAX: usize = 4;
const WARNING_CHARACTERS_MAX: usize = 200;

/// What a source answers, read. Samples that are too old, from the future, or no finite numbers are not in it.
#[derive(Clone, Debug)]
pub struct Answer {
    body: Body,
    parameters: BTreeMap<String, String>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug)]
enum Body {
    Series(Vec<Series>),
    NodeMetrics(Vec<NodeUsage>),
    Text(String),
}

/// A series of Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    labels: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

/// A value, and when it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it was measured.
    pub at: Timestamp,
    /// The value; never infinite, and always a number.
    pub value: f64,
}

/// What a node uses, by the metrics API.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUsage {
    /// The node's name.
    pub node: String,
    /// In thousandths of a core.
    pub milli_cpu: i64,
    /// In bytes.
    pub memory: i64,
    /// When it was measured.
    pub at: Timestamp,
}

impl Answer {
    /// Reads what a source has sent.
    pub(super) fn read(
        source: &QuerySource,
        body: &[u8],
        freshness: Freshness,
        left_out: &mut LeftOut,
    ) -> Result<Self, String> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err("the answer is empty".to_owned());
        }
        let mut warnings = Vec::new();
        let body = match source {
            QuerySource::Prometheus(_) => Body::Series(series(body, freshness, left_out, &mut warnings)?),
            QuerySource::NodeMetrics => Body::NodeMetrics(node_metrics(body, freshness, left_out)?),
            QuerySource::Http(_) | QuerySource::Line(_) => Body::Text(text(body)?.to_owned()),
        };
        Ok(Answer { body, parameters: BTreeMap::new(), warnings })
    }

    pub(super) fn with_parameters(self, parameters: BTreeMap<String, String>) -> Self {
        Answer { parameters, ..self }
    }

    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    /// The series that Prometheus answers. Each has at least one sample.
    pub fn series(&self) -> Result<&[Series], String> {
        match &self.body {
            Body::Series(series) => Ok(series),
            _ => Err("only Prometheus answers with series: the plugin expects another source".to_owned()),
        }
    }

    /// What the metrics API answers.
    pub fn node_metrics(&self) -> Result<&[NodeUsage], String> {
        match &self.body {
            Body::NodeMetrics(nodes) => Ok(nodes),
            _ => Err("only the metrics API answers with what nodes use: the plugin expects another source"
                .to_owned()),
        }
    }

    /// What another source answers.
    pub fn text(&self) -> Result<&str, String> {
        match &self.body {
            Body::Text(text) => Ok(text),
            _ => {
                Err("the source answers with no text that a plugin reads: the plugin expects another source"
                    .to_owned())
            }
        }
    }

    /// The same, as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        json(self.text()?.as_bytes())
    }

    /// A parameter of the query; empty if it has no such parameter.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// When the series ended that ended first; none if nobody says.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        match &self.body {
            Body::Series(series) => series.iter().filter_map(|series| Some(series.latest()?.at)).min(),
            Body::NodeMetrics(nodes) => nodes.iter().map(|node| node.at).min(),
            Body::Text(_) => None,
        }
    }
}

impl Series {
    /// The value of a label; none if it is not there or empty, which is the same to Prometheus.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The samples, as they came: the oldest first.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The newest sample.
    pub fn latest(&self) -> Option<Sample> {
        self.samples.iter().copied().max_by_key(|sample| sample.at)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrometheusWords {
    status: String,
    data: Option<DataWords>,
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum DataWords {
    Vector(Vec<SeriesWords>),
    Matrix(Vec<SeriesWords>),
    Scalar(SampleWords),
    String(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct SeriesWords {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    value: Option<SampleWords>,
    #[serde(default)]
    values: Vec<SampleWords>,
}

/// Seconds since the epoch, and the value as a text, which may be `NaN` or `+Inf`.
#[derive(Deserialize)]
struct SampleWords(f64, String);

fn series(
    body: &[u8],
    freshness: Freshness,
    left_out: &mut LeftOut,
    warnings: &mut Vec<String>,
) -> Result<Vec<Series>, String> {
    let words: PrometheusWords = json(body)?;
    if words.status != "success" {
        let (kind, error) =
            (cut(&words.error_type, EXCERPT_CHARACTERS_MAX), cut(&words.error, WARNING_CHARACTERS_MAX));
        return Err(format!(
            "Prometheus says {:?}: {kind}: {error}",
            cut(&words.status, EXCERPT_CHARACTERS_MAX)
        ));
    }
    warnings.extend(words.warnings.iter().take(WARNINGS_MAX).map(|text| cut(text, WARNING_CHARACTERS_MAX)));
    let found = match words.data.ok_or("Prometheus says that all went well, and sends no data")? {
        DataWords::Vector(found) | DataWords::Matrix(found) => found,
        DataWords::Scalar(sample) => {
            vec![SeriesWords { metric: BTreeMap::new(), value: Some(sample), values: Vec::new() }]
        }
        DataWords::String(_) => {
            return Err("Prometheus answers with a string and no number: use another expression".to_owned());
        }
    };
    Ok(found.into_iter().filter_map(|words| words.checked(freshness, left_out)).collect())
}

impl SeriesWords {
    /// The series without what does not count; none if nothing is left, or if the newest sample is too old.
    fn checked(self, freshness: Freshness, left_out: &mut LeftOut) -> Option<Series> {
        if self.values.is_empty() && self.value.is_none() {
            // A native histogram, or nothing at all.
            left_out.count(LeftOutReason::NotFinite, 1);
        }
        let mut samples = Vec::with_capacity(self.values.len() + 1);
        let mut newest = Err(LeftOutReason::NotFinite);
        for SampleWords(seconds, value) in self.values.into_iter().chain(self.value) {
            let at = time(seconds);
            let reason = match (value.parse::<f64>(), judged(at, freshness)) {
                (Ok(value), judged) if value.is_finite() => match judged {
                    Err(LeftOutReason::Future) => Some(LeftOutReason::Future),
                    Err(_) => {
                        // What is old belongs to a range, as long as something newer follows.
                        samples.push(Sample { at, value });
                        newest = newest.or(Err(LeftOutReason::Old));
                        None
                    }
                    Ok(at) => {
                        samples.push(Sample { at, value });
                        newest = Ok(());
                        None
                    }
                },
                _ => Some(LeftOutReason::NotFinite),
            };
            left_out.count(reason.unwrap_or(LeftOutReason::NotFinite), u64::from(reason.is_some()));
        }
        match newest {
            Ok(()) => Some(Series { labels: self.metric, samples }),
            Err(_) if samples.is_empty() => None,
            Err(reason) => {
                left_out.count(reason, samples.len() as u64);
                None
            }
        }
    }
}

#[derive(Deserialize)]
struct NodeMetricsList<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct NodeMetricsWords {
    metadata: NameWords,
    timestamp: Timestamp,
    usage: UsageWords,
}

#[derive(Deserialize)]
struct NameWords {
    name: String,
}

#[derive(Deserialize)]
struct UsageWords {
    cpu: Quantity,
    memory: Quantity,
}

fn node_metrics(body: &[u8], freshness: Freshness, left_out: &mut LeftOut) -> Result<Vec<NodeUsage>, String> {
    let list: NodeMetricsList<'_> = json(body)?;
    let mut nodes = Vec::with_capacity(list.items.len());
    for item in list.items {
        // One node whose metrics are not whole costs no other node its own.
        let Ok(item) = serde_json::from_str::<NodeMetricsWords>(item.get()) else {
            left_out.count(LeftOutReason::Unreadable, 1);
            continue;
        };
        match judged(item.timestamp, freshness) {
            Ok(at) => nodes.push(NodeUsage {
                node: item.metadata.name,
                milli_cpu: item.usage.cpu.milli_value(),
                memory: item.usage.memory.value(),
                at,
            }),
            Err(reason) => left_out.count(reason, 1),
        }
    }
    Ok(nodes)
}

/// Seconds since the epoch, with parts of them.
fn time(seconds: f64) -> Timestamp {
    // Casts saturate: what is out of range is far in the past or in the future, and is left out.
    let milliseconds = (seconds * 1e3).round() as i64;
    Timestamp::from_nanoseconds(milliseconds.saturating_mul(1_000_000))
}

fn text(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body)
        .map_err(|_| format!("the answer is no text: it begins with {:?}", excerpt(body)))
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| {
        format!("the answer is not what it should be: {error}; it begins with {:?}", excerpt(body))
    })
}

fn excerpt(body: &[u8]) -> String {
    // No character has more than four bytes.
    let part = &body[..body.len().min(4 * EXCERPT_CHARACTERS_MAX)];
    cut(&String::from_utf8_lossy(part), EXCERPT_CHARACTERS_MAX)
}

fn cut(text: &str, characters_max: usize) -> String {
    let part: String = text.chars().take(characters_max).collect();
    printable(&part).into_owned()
}
