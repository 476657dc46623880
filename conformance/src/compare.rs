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

fn parts(verdict: &Verdict) -> [(&'static str, Value); 11] {
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
    ]
}

fn value(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or(Value::Null)
}
