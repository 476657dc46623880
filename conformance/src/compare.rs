//! What differs between two verdicts.

use serde::Serialize;
use serde_json::Value;

use crate::verdict::{CaseVerdict, Verdict};

/// A part of a verdict that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The case.
    pub case: String,
    /// The pod, or empty if the case as a whole differs.
    pub pod: String,
    /// Which part.
    pub part: &'static str,
    /// What the oracle says, as JSON.
    pub expected: String,
    /// What we say, as JSON.
    pub actual: String,
}

/// The parts in which two verdicts on one case differ. That something is an error counts, not how the error reads.
pub fn compare(expected: &CaseVerdict, actual: &CaseVerdict) -> Vec<Difference> {
    let case = &expected.name;
    let difference = |pod: &str, part, expected: String, actual: String| Difference {
        case: case.clone(),
        pod: pod.to_owned(),
        part,
        expected,
        actual,
    };
    if expected.error.is_empty() != actual.error.is_empty() {
        return vec![difference("", "error", expected.error.clone(), actual.error.clone())];
    }
    let mut differences = Vec::new();
    for ((part, expected), (_, actual)) in case_parts(expected).into_iter().zip(case_parts(actual)) {
        if expected != actual {
            differences.push(difference("", part, expected.to_string(), actual.to_string()));
        }
    }
    let none = Verdict::default();
    let ours = actual.verdicts.as_deref().unwrap_or_default();
    for theirs in expected.verdicts.as_deref().unwrap_or_default() {
        let ours = ours.iter().find(|verdict| verdict.pod == theirs.pod).unwrap_or(&none);
        for ((part, expected), (_, actual)) in parts(theirs).into_iter().zip(parts(ours)) {
            let same = match part {
                "error" => (expected == "") == (actual == ""),
                _ => expected == actual,
            };
            if !same {
                differences.push(difference(&theirs.pod, part, expected.to_string(), actual.to_string()));
            }
        }
    }
    differences
}

fn case_parts(verdict: &CaseVerdict) -> [(&'static str, Value); 4] {
    [
        ("order", value(&verdict.order)),
        ("less", value(&verdict.less)),
        ("orderAfter", value(&verdict.order_after)),
        ("waiting", value(&verdict.waiting)),
    ]
}

fn parts(verdict: &Verdict) -> [(&'static str, Value); 16] {
    [
        ("error", value(&verdict.error)),
        ("preFilter", value(&verdict.pre_filter)),
        ("rejected", value(&verdict.rejected)),
        ("feasible", value(&verdict.feasible)),
        ("scores", value(&verdict.scores)),
        ("total", value(&verdict.total)),
        ("best", value(&verdict.best)),
        ("chosen", value(&verdict.chosen)),
        ("message", value(&verdict.message)),
        ("nominated", value(&verdict.nominated)),
        ("victims", value(&verdict.victims)),
        ("permit", value(&verdict.permit)),
        ("activated", value(&verdict.activated)),
        ("released", value(&verdict.released)),
        ("rejectedWaiting", value(&verdict.rejected_waiting)),
        ("expired", value(&verdict.expired)),
    ]
}

fn value(part: &impl Serialize) -> Value {
    without_gaps(serde_json::to_value(part).unwrap_or(Value::Null))
}

/// Upstream prints the amounts that a group of pods lacks as the inside of a Go structure: only that it lacks something counts.
fn without_gaps(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_gap(text)),
        Value::Array(values) => values.into_iter().map(without_gaps).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, without_gaps(value))).collect()
        }
        value => value,
    }
}

fn without_gap(text: String) -> String {
    const GAP: &str = "resource gap: map[";
    match (text.find(GAP), text.rfind(']')) {
        // Amounts have brackets of their own: the last one ends the list.
        (Some(start), Some(end)) => format!("{}resource gap{}", &text[..start], &text[end + 1..]),
        _ => text,
    }
}
