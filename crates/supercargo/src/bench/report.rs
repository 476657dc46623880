//! How results are printed.

use std::time::Duration;

use serde::Serialize;
use supercargo_engine::PlainReason;

use super::check::Checked;
use super::figures::{Figures, left_out, nanoseconds};
use super::scene::Plan;

/// What is known of one workload in the end. The first six fields are those of the peer `decide`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    nodes: usize,
    percent: u8,
    init: usize,
    pods: usize,
    /// Decisions a second: the median over the clusters, without the first decisions of each.
    rate: f64,
    /// The quartiles of those rates.
    rate_q1: f64,
    rate_q3: f64,
    /// How many decisions of each cluster are not in its rate.
    left_out: usize,
    /// How many times as fast it was at the first of several sizes.
    ratio: Option<f64>,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    /// The first decision for such a pod, which is not among the others.
    first_ns: u64,
    rss_bytes: Option<u64>,
    peak_rss_bytes: Option<u64>,
    /// How many fresh clusters were measured.
    runs: usize,
    /// How many decisions were compared with plain evaluations, and found equal.
    checked: usize,
    /// How many there were to compare.
    decisions: usize,
    /// What was decided by asking every plugin about every node.
    plain: Vec<Plain>,
}

/// A share of the decisions that was made by asking every plugin about every node.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Plain {
    /// The plugin because of which it was so; empty if it was not because of one.
    plugin: &'static str,
    reason: &'static str,
    /// How many of a hundred decisions.
    percent: f64,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        percent: u8,
        figures: &Figures,
        ratio: Option<f64>,
        checked: Checked,
    ) -> Self {
        Report {
            kind: plan.workload.name,
            nodes: plan.nodes,
            percent,
            init: plan.init,
            pods: plan.pods,
            rate: figures.rate,
            rate_q1: figures.quartiles[0],
            rate_q3: figures.quartiles[1],
            left_out: left_out(plan.pods),
            ratio,
            p50_ns: nanoseconds(figures.p50),
            p99_ns: nanoseconds(figures.p99),
            max_ns: nanoseconds(figures.max),
            first_ns: nanoseconds(figures.first),
            rss_bytes: figures.memory.resident,
            peak_rss_bytes: figures.memory.peak,
            runs: figures.runs,
            checked: checked.compared,
            decisions: checked.decisions,
            plain: (figures.plain.iter())
                .map(|(PlainReason { plugin, why }, percent)| Plain {
                    plugin,
                    reason: why,
                    percent: *percent,
                })
                .collect(),
        }
    }

    /// Lines that say what was decided by asking every plugin about every node, and why.
    fn plain_lines(&self) -> impl Iterator<Item = String> {
        self.plain.iter().map(|Plain { plugin, reason, percent }| {
            let because = if plugin.is_empty() { String::new() } else { format!("{plugin}: ") };
            format!("{}: {percent:.1} % decided the plain way: {because}{reason}\n", self.kind)
        })
    }
}

/// A table for people; empty if there is nothing to tell.
pub(super) fn table(reports: &[Report]) -> String {
    const HEAD: [&str; 13] = [
        "WORKLOAD",
        "NODES",
        "PODS",
        "RUNS",
        "DECISIONS/S",
        "QUARTILES",
        "RATIO",
        "P50",
        "P99",
        "MAX",
        "FIRST",
        "RESIDENT",
        "CHECKED",
    ];
    if reports.is_empty() {
        return String::new();
    }
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(reports.iter().map(|report| {
        let time = |nanoseconds| duration(Duration::from_nanos(nanoseconds));
        [
            report.kind.to_owned(),
            grouped(report.nodes as u64),
            grouped(report.pods as u64),
            grouped(report.runs as u64),
            grouped(report.rate as u64),
            format!("{} to {}", grouped(report.rate_q1 as u64), grouped(report.rate_q3 as u64)),
            report.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            time(report.p50_ns),
            time(report.p99_ns),
            time(report.max_ns),
            time(report.first_ns),
            report.rss_bytes.map_or_else(|| "-".to_owned(), mebibytes),
            format!("{} of {}", grouped(report.checked as u64), grouped(report.decisions as u64)),
        ]
    }));
    let text = aligned(&lines);
    let text = text + &notes(reports);
    let text = text + &reports.iter().flat_map(Report::plain_lines).collect::<String>();
    let peak = reports.iter().filter_map(|report| report.peak_rss_bytes).max();
    text + &peak.map(|peak| format!("most memory at any time: {}\n", mebibytes(peak))).unwrap_or_default()
}

/// What is to be said about rates and ratios.
fn notes(reports: &[Report]) -> String {
    let most = reports.iter().map(|report| report.left_out).max().unwrap_or(0);
    let mut text = match most {
        0 => String::new(),
        1 => "rates are medians over the runs, without the first decision of each\n".to_owned(),
        most => format!("rates are medians over the runs, without the first {most} decisions of each\n"),
    };
    if reports.iter().any(|report| report.ratio.is_some()) {
        text +=
            "a ratio says how many times as fast it was on the first number of nodes, run by run in turn\n";
    }
    text
}

/// Lines of as many cells, the first of each to the left and all others to the right.
pub(super) fn aligned<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let mut text = String::new();
    for line in lines {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let cell = if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            text.push_str(&cell);
        }
        text.push('\n');
    }
    text
}

/// Three digits, and a unit.
fn duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos() as f64;
    let (value, unit) = match nanoseconds {
        ..1e3 => return format!("{nanoseconds} ns"),
        ..1e6 => (nanoseconds / 1e3, "µs"),
        ..1e9 => (nanoseconds / 1e6, "ms"),
        _ => (nanoseconds / 1e9, "s"),
    };
    let decimals = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", grouped(bytes.div_ceil(1 << 20)))
}

/// With a comma before every three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_people_can_read() {
        for (nanoseconds, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (54_321, "54.3 µs"),
            (999_400, "999 µs"),
            (1_500_000, "1.50 ms"),
            (12_000_000_000, "12.0 s"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanoseconds)), expected);
        }
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(mebibytes((1 << 20) + 1), "2 MiB");
    }

    #[test]
    fn a_table_is_aligned() {
        let report = Report {
            kind: "basic",
            nodes: 5000,
            percent: 0,
            init: 1000,
            pods: 10_000,
            rate: 1_234_567.8,
            rate_q1: 1_000_000.0,
            rate_q3: 1_300_000.9,
            left_out: 100,
            ratio: None,
            p50_ns: 700,
            p99_ns: 1_900,
            max_ns: 60_000,
            first_ns: 75_000,
            rss_bytes: Some(50 << 20),
            peak_rss_bytes: Some(60 << 20),
            runs: 100,
            checked: 11_000,
            decisions: 11_000,
            plain: Vec::new(),
        };
        let expected = "\
WORKLOAD           NODES    PODS  RUNS  DECISIONS/S               QUARTILES  RATIO     P50      P99      MAX    FIRST  RESIDENT           CHECKED
basic              5,000  10,000   100    1,234,567  1,000,000 to 1,300,000      -  700 ns  1.90 µs  60.0 µs  75.0 µs    50 MiB  11,000 of 11,000
preferred-spread  50,000  10,000   100    1,234,567  1,000,000 to 1,300,000   1.46  700 ns  1.90 µs  60.0 µs  75.0 µs         -  11,000 of 11,000
rates are medians over the runs, without the first 100 decisions of each
a ratio says how many times as fast it was on the first number of nodes, run by run in turn
preferred-spread: 2.5 % decided the plain way: Mine: it reads the time
most memory at any time: 60 MiB
";
        let plain = vec![Plain { plugin: "Mine", reason: "it reads the time", percent: 2.5 }];
        let other = Report {
            kind: "preferred-spread",
            nodes: 50_000,
            ratio: Some(1.456),
            rss_bytes: None,
            plain,
            ..report.clone()
        };
        assert_eq!(table(&[report, other]), expected);
        assert_eq!(table(&[]), "");
    }
}
