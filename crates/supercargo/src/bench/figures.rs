//! What was measured, and what it comes to.

use std::fs;
use std::time::{Duration, Instant};

use supercargo_engine::{PlainDecisions, PlainReason};

/// So many decisions of a cluster are left out of its rate, unless there are fewer than twice as many: caches are cold, and tables grow.
pub(super) const WARM_UP: usize = 100;

/// What a workload came to, over all its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) runs: usize,
    /// Decisions a second, without those at the beginning: the median over the runs.
    pub(super) rate: f64,
    /// A quarter of the runs had lower rates than the first, a quarter higher ones than the second.
    pub(super) quartiles: [f64; 2],
    /// Of the decisions other than the first: half of them took no longer.
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
    /// The first decision for a pod of the measured kind: the median over the runs.
    pub(super) first: Duration,
    pub(super) memory: Memory,
    /// How many of a hundred decisions were made by asking every plugin about every node, and why.
    pub(super) plain: Vec<(PlainReason, f64)>,
}

/// What the process has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// At the end of the first run, with its cluster in place; none where nobody says.
    pub(super) resident: Option<u64>,
    /// The most since the process began, so earlier workloads count.
    pub(super) peak: Option<u64>,
}

/// Collects what runs measure.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) runs: usize,
    pub(super) measured: Duration,
    /// Decisions a second, run by run.
    pub(super) rates: Vec<f64>,
    firsts: Vec<u64>,
    /// Nanoseconds.
    latencies: Vec<u64>,
    memory: Memory,
    all_decisions: usize,
    plain: PlainDecisions,
}

/// What one run measured.
#[derive(Debug)]
pub(super) struct Measured {
    /// From the first measured decision to the last.
    pub(super) time: Duration,
    /// Each measured decision, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// The first decision, if it came before those that were measured; then all of them are warm.
    pub(super) earlier_first: Option<u64>,
    pub(super) memory: Memory,
    /// How many decisions there were in all.
    pub(super) all_decisions: usize,
    /// How many of them were made by asking every plugin about every node.
    pub(super) plain: PlainDecisions,
}

impl Collected {
    pub(super) fn add(&mut self, run: &Measured) {
        if self.runs == 0 {
            self.memory = run.memory;
        }
        self.runs += 1;
        self.all_decisions += run.all_decisions;
        for (reason, decisions) in &run.plain {
            *self.plain.entry(*reason).or_default() += decisions;
        }
        // The first one may have to work out what all others use: it is reported by itself.
        let (first, rest) = match &*run.latencies {
            [] => return,
            // A single decision is the first and all there is.
            [first] => (*first, &*run.latencies),
            [first, rest @ ..] => (*first, rest),
        };
        let warm = &run.latencies[left_out(run.latencies.len())..];
        self.rates.push(rate(warm.len(), Duration::from_nanos(warm.iter().sum())));
        self.measured += run.time;
        self.latencies.extend(rest);
        self.firsts.push(run.earlier_first.unwrap_or(first));
    }

    pub(super) fn figures(mut self) -> Figures {
        self.latencies.sort_unstable();
        self.firsts.sort_unstable();
        self.rates.sort_unstable_by(f64::total_cmp);
        let of = |values: &[u64], share: f64| Duration::from_nanos(percentile(values, share));
        Figures {
            runs: self.runs,
            rate: quantile(&self.rates, 0.5),
            quartiles: [0.25, 0.75].map(|share| quantile(&self.rates, share)),
            p50: of(&self.latencies, 0.50),
            p99: of(&self.latencies, 0.99),
            max: of(&self.latencies, 1.0),
            first: of(&self.firsts, 0.50),
            memory: self.memory,
            plain: (self.plain.iter())
                .map(|(reason, decisions)| {
                    (*reason, *decisions as f64 * 100.0 / self.all_decisions.max(1) as f64)
                })
                .collect(),
        }
    }
}

/// How many decisions at the beginning of so many are left out of the rate.
pub(super) fn left_out(decisions: usize) -> usize {
    if decisions >= 2 * WARM_UP { WARM_UP } else { decisions.saturating_sub(1).min(1) }
}

/// How many times as fast the first was as the second, run by run in turn: the median.
pub(super) fn ratio(first: &[f64], second: &[f64]) -> Option<f64> {
    let both = first.iter().zip(second).filter(|(_, second)| **second > 0.0);
    let mut ratios: Vec<f64> = both.map(|(first, second)| first / second).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    (!ratios.is_empty()).then(|| quantile(&ratios, 0.5))
}

/// The value below which this share of the sorted values lies, between two of them if need be; 0 if there are none.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = last as f64 * share;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// How many a second.
fn rate(count: usize, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

/// The smallest of the sorted values that is not below this share of them; 0 if there are none.
fn percentile(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

impl Memory {
    /// As it is now; Linux says so.
    pub(super) fn now() -> Self {
        fs::read_to_string("/proc/self/status").map(|status| Self::read(&status)).unwrap_or_default()
    }

    fn read(status: &str) -> Self {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kilobytes * 1024)
        };
        Memory { resident: bytes("VmRSS:"), peak: bytes("VmHWM:") }
    }
}

/// The clock that decisions are measured with.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; no decision depends on it")]
pub(super) fn clock() -> Instant {
    Instant::now()
}

/// A duration in nanoseconds.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(latencies: &[u64], earlier_first: Option<u64>) -> Measured {
        let time = Duration::from_nanos(latencies.iter().sum());
        Measured {
            time,
            latencies: latencies.to_vec(),
            earlier_first,
            memory: Memory::default(),
            all_decisions: latencies.len(),
            plain: PlainDecisions::default(),
        }
    }

    fn figures(runs: &[Measured]) -> Figures {
        let mut collected = Collected::default();
        runs.iter().for_each(|run| collected.add(run));
        collected.figures()
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        for (values, share, expected) in [
            (&hundred[..], 0.5, 50),
            (&hundred, 0.99, 99),
            (&hundred, 1.0, 100),
            (&[7], 0.5, 7),
            (&[7], 0.99, 7),
            (&[1, 9], 0.5, 1),
            (&[1, 9], 0.99, 9),
            (&[1, 2, 3], 0.5, 2),
            (&[], 0.5, 0),
        ] {
            assert_eq!(percentile(values, share), expected, "{share} of {values:?}");
        }
    }

    #[test]
    fn the_rate_is_the_median_of_runs_without_their_beginnings() {
        assert!((rate(500, Duration::from_millis(250)) - 2000.0).abs() < 1e-9);
        assert!(rate(5, Duration::ZERO).abs() < 1e-9);
        // Few decisions: only the first is left out.
        let runs =
            [&[3000, 500, 500][..], &[1000, 250, 250], &[1000, 1000, 1000]].map(|run_of| run(run_of, None));
        let few = figures(&runs);
        assert!((few.rate - 2e6).abs() < 1e-3, "{few:?}");
        assert!((few.quartiles[0] - 1.5e6).abs() < 1e-3 && (few.quartiles[1] - 3e6).abs() < 1e-3, "{few:?}");
        assert_eq!(few.runs, 3);
        // Enough of them.
        let cold = [vec![9000; WARM_UP], vec![500; WARM_UP]].concat();
        let many = figures(&[run(&cold, None)]);
        assert!((many.rate - 2e6).abs() < 1e-3, "{many:?}");
        assert_eq!(many.max, Duration::from_nanos(9000), "what is left out of the rate is among the rest");
        for (decisions, expected) in [(0, 0), (1, 0), (2, 1), (199, 1), (200, 100), (10_000, 100)] {
            assert_eq!(left_out(decisions), expected, "{decisions}");
        }
    }

    #[test]
    fn ratios_are_those_of_runs_side_by_side() {
        assert_eq!(ratio(&[10.0, 40.0, 9.0], &[5.0, 10.0, 3.0]), Some(3.0));
        assert_eq!(ratio(&[10.0, 40.0], &[5.0]), Some(2.0), "what has no neighbour is not compared");
        assert_eq!(ratio(&[10.0], &[0.0]), None);
    }

    #[test]
    fn the_first_decision_is_told_apart() {
        let [ns9, ns10, ns1000] = [9, 10, 1000].map(Duration::from_nanos);
        let cold = figures(&[run(&[1000, 9, 10, 10], None)]);
        assert_eq!((cold.first, cold.p50, cold.max), (ns1000, ns10, ns10));
        let warm = figures(&[run(&[10, 9, 9], Some(1000))]);
        assert_eq!((warm.first, warm.p50, warm.max), (ns1000, ns9, ns9));
        let single = figures(&[run(&[1000], None)]);
        assert_eq!((single.first, single.p50, single.max), (ns1000, ns1000, ns1000));
        assert_eq!(figures(&[]), Figures::default());
    }

    #[test]
    fn memory_as_linux_writes_it() {
        let status = "Name:\tsupercargo\nVmPeak:\t  999 kB\nVmHWM:\t   52 kB\nVmRSS:\t   48 kB\n";
        assert_eq!(Memory::read(status), Memory { resident: Some(48 * 1024), peak: Some(52 * 1024) });
        assert_eq!(Memory::read("VmRSS: many kB"), Memory::default());
    }
}
