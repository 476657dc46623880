//! NodeMetadata: nodes by a number or a time in a label or an annotation.

mod go_time;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, MAX_NODE_SCORE, NodeField, NodeScore, Normalization, Plugin,
    Reads, Score, Status,
};
use supercargo_model::{LabelLookup, NodeRef};

use crate::community::go_number;
use go_time::Layout;

/// The raw score of a node that does not have the label or the annotation, or has something else in it.
const UNKNOWN: i64 = i64::MIN;
/// What of a number counts, if its fractions are to.
const THOUSANDTHS: f64 = 1_000.0;
/// The layout of times if the arguments name none: RFC 3339.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
/// A time in 1733, in Unix seconds. Upstream's ages are no more than 292 years, so it sees no difference between times before that; a layout
/// without a year means the year 0.
const OLDEST: i64 = -7_456_000_000;
/// A time in 2318, as far ahead of us as the oldest is behind: upstream's ages are as short.
const LATEST: i64 = OLDEST + 2 * (i64::MAX / 1_000_000_000);

/// # What
/// Prefers nodes by a label or an annotation that holds a number, the highest or the lowest, or a time, the newest or the oldest. The
/// best of the feasible nodes gets 100 points, the worst 1, the others in between; those that do not say get 0. Where all that say
/// something say the same, they get 1.
///
/// # Why
/// What a node costs, how old it is, when it is to be drained: whatever somebody writes on nodes can decide between them.
///
/// # Arguments
/// All but the last are needed: `metadataKey`; `metadataSource`: `Label` or `Annotation`; `metadataType`: `Number` or `Timestamp`;
/// `scoringStrategy`: `Highest` or `Lowest` of numbers, `Newest` or `Oldest` of times; `timestampFormat`: a layout of Go's package
/// `time`, RFC 3339 by default.
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: NodeMetadata, weight: 2}]}
/// pluginConfig:
/// - name: NodeMetadata
///   args:
///     metadataKey: example.com/cost-per-hour
///     metadataSource: Annotation
///     metadataType: Number
///     scoringStrategy: Lowest
/// ```
/// With 10, 55 and 100, and a fourth node that does not say: 100, 50, 1 and 0 points.
///
/// # Difference from upstream
/// As upstream, fractions of numbers and of seconds are lost; the fix `nodeMetadataFractions` counts thousandths of numbers. As upstream, a label
/// cannot hold an RFC 3339 time, which has colons: name another `timestampFormat`, or an annotation. Numbers that are far apart do not overflow. Times are compared with each
/// other and not with a clock, so that equal ones always get equal points.
#[derive(Debug)]
pub struct NodeMetadata {
    args: NodeMetadataArgs,
    layout: Layout,
}

/// Arguments of [`NodeMetadata`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeMetadataArgs {
    /// The label or annotation.
    pub metadata_key: String,
    /// `Label`, or `Annotation`.
    pub metadata_source: String,
    /// `Number`, or `Timestamp`.
    pub metadata_type: String,
    /// `Highest`, `Lowest`, `Newest` or `Oldest`.
    pub scoring_strategy: String,
    /// How times are written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub timestamp_format: String,
}

impl Args for NodeMetadataArgs {
    fn complete(&mut self) {
        if self.metadata_type == "Timestamp" && self.timestamp_format.is_empty() {
            LAYOUT.clone_into(&mut self.timestamp_format);
        }
    }

    fn validate(&self, problems: &mut FieldProblems) {
        if self.metadata_key.is_empty() {
            problems.invalid("metadataKey", "", "metadataKey cannot be empty");
        }
        if !matches!(&*self.metadata_source, "Label" | "Annotation") {
            let detail = "metadataSource must be either \"Label\" or \"Annotation\"";
            problems.invalid("metadataSource", &self.metadata_source, detail);
        }
        if !matches!(&*self.metadata_type, "Number" | "Timestamp") {
            let detail = "metadataType must be either \"Number\" or \"Timestamp\"";
            problems.invalid("metadataType", &self.metadata_type, detail);
        }
        let strategy = &*self.scoring_strategy;
        let detail = match (&*self.metadata_type, strategy) {
            ("Number", "Newest" | "Oldest") => {
                "scoringStrategy \"Newest\" and \"Oldest\" are only valid for metadataType \"Timestamp\""
            }
            ("Timestamp", "Highest" | "Lowest") => {
                "scoringStrategy \"Highest\" and \"Lowest\" are only valid for metadataType \"Number\""
            }
            (_, "Highest" | "Lowest" | "Newest" | "Oldest") => return,
            _ => "scoringStrategy must be one of \"Highest\", \"Lowest\", \"Newest\", or \"Oldest\"",
        };
        problems.invalid("scoringStrategy", strategy, detail);
    }
}

impl Plugin for NodeMetadata {
    const NAME: &'static str = "NodeMetadata";
    type Args = NodeMetadataArgs;

    fn new(args: NodeMetadataArgs) -> Self {
        NodeMetadata { layout: Layout::new(&args.timestamp_format), args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        let field = if self.is_label() { NodeField::Labels } else { NodeField::Annotations };
        Reads::nothing().node(&[field])
    }
}

impl NodeMetadata {
    fn is_label(&self) -> bool {
        self.args.metadata_source == "Label"
    }

    /// What a text says, the better the greater; none if it says nothing.
    fn value(&self, text: &str, fractions: bool) -> Option<i64> {
        let value = if self.args.metadata_type == "Number" {
            go_number::parse(text, if fractions { THOUSANDTHS } else { 1.0 })?
        } else {
            self.layout.parse(text)?.clamp(OLDEST, LATEST)
        };
        match &*self.args.scoring_strategy {
            "Lowest" | "Oldest" => Some(-value),
            _ => Some(value),
        }
    }
}

impl Score for NodeMetadata {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let fractions = cycle.context.fixes.node_metadata_fractions;
        let key = &*self.args.metadata_key;
        let text = if self.is_label() { node.label(key) } else { node.annotations().label(key) };
        Ok(text.and_then(|text| self.value(text, fractions)).unwrap_or(UNKNOWN))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        let known =
            || scores.iter().map(|score| i128::from(score.score)).filter(|score| *score != UNKNOWN.into());
        let (lowest, highest) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        for score in scores {
            score.score = match (score.score, highest - lowest) {
                (UNKNOWN, _) => 0,
                (_, 0) => 1,
                (value, range) => {
                    ((i128::from(value) - lowest) * i128::from(MAX_NODE_SCORE - 1) / range) as i64 + 1
                }
            };
        }
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRangeBeside(UNKNOWN)
    }
}

#[cfg(test)]
mod tests;
