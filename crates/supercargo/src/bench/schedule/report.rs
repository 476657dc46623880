//! How results are printed.

use std::time::Duration;

use serde::Serialize;

use super::super::figures::quantile;
use super::super::report::{aligned, grouped};

/// What is known of one workload in the end.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    nodes: usize,
    pods: usize,
    runs: usize,
    /// Pods a second: half of the runs were slower.
    rate: f64,
    /// A quarter of the runs were slower.
    rate_q1: f64,
    /// A quarter of the runs were faster.
    rate_q3: f64,
    /// How many attempts were compared with a plain sort, and found in order: all of them.
    checked: usize,
}

impl Report {
    pub(super) fn new(
        kind: &'static str,
        nodes: usize,
        pods: usize,
        times: &[Duration],
        checked: usize,
    ) -> Self {
        let mut rates: Vec<f64> =
            times.iter().map(|time| pods as f64 / time.as_secs_f64().max(1e-9)).collect();
        rates.sort_by(f64::total_cmp);
        let [rate_q1, rate, rate_q3] = [0.25, 0.5, 0.75].map(|share| quantile(&rates, share));
        Report { kind, nodes, pods, runs: times.len(), rate, rate_q1, rate_q3, checked }
    }
}

/// One JSON object a line.
pub(super) fn lines(reports: &[Report]) -> serde_json::Result<String> {
    reports.iter().map(|report| Ok(serde_json::to_string(report)? + "\n")).collect()
}

/// A table for people; empty if there is nothing to tell.
pub(super) fn table(reports: &[Report]) -> String {
    if reports.is_empty() {
        return String::new();
    }
    let head = ["WORKLOAD", "NODES", "PODS", "RUNS", "PODS/S", "QUARTILES", "CHECKED"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(reports.iter().map(|report| {
        [
            report.kind.to_owned(),
            grouped(report.nodes as u64),
            grouped(report.pods as u64),
            grouped(report.runs as u64),
            grouped(report.rate as u64),
            format!("{} to {}", grouped(report.rate_q1 as u64), grouped(report.rate_q3 as u64)),
            grouped(report.checked as u64),
        ]
    }));
    aligned(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_runs() {
        for (values, share, expected) in [
            (&[][..], 0.5, 0.0),
            (&[7.0], 0.25, 7.0),
            (&[1.0, 3.0], 0.5, 2.0),
            (&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0),
            (&[1.0, 2.0, 3.0, 4.0, 5.0], 0.75, 4.0),
        ] {
            assert!((quantile(values, share) - expected).abs() < 1e-9, "{share} of {values:?}");
        }
    }

    #[test]
    fn a_table_is_aligned() {
        let times = [250, 200, 250].map(Duration::from_millis);
        let report = Report::new("default", 5000, 50_000, &times, 150_000);
        let expected = "\
WORKLOAD  NODES    PODS  RUNS   PODS/S           QUARTILES  CHECKED
default   5,000  50,000     3  200,000  200,000 to 225,000  150,000
";
        assert_eq!(table(&[report]), expected);
        assert_eq!(table(&[]), "");
    }
}
