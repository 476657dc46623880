//! `supercargo bench decide`, and `bench schedule` beside it.
//!
//! The timer starts at a parsed pod and ends when the pod is assumed on its node. Each decision is measured from the end
//! of the one before, so that one look at the clock a decision is enough; what happens between two decisions, such as a
//! node that changes, counts as part of the earlier one.

mod check;
mod community;
pub(crate) mod extender;
mod figures;
mod nodes;
mod objects;
mod pods;
mod report;
mod scene;
pub(crate) mod schedule;
mod workloads;

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, value_parser};
use supercargo_framework::{Profile, Registry};
use supercargo_model::Row;

use crate::loaded_config::{DEFAULT_SCHEDULER, LoadedConfig};
use crate::outcome::Outcome;
use check::{Check, Checked};
use figures::{Collected, Measured, Memory, clock, nanoseconds, ratio};
use report::{Report, table};
use scene::{NOW, Plan, engine_options};
use workloads::{WORKLOADS, Workload};

/// A workload is run on so many fresh clusters at least, so that its rate has a median.
const RUNS_MIN: usize = 3;
/// No further cluster is set up after so many times the time that is to be measured, for each number of nodes.
const SETTING_UP_MAX: u32 = 20;
/// How long `--long` measures, in seconds.
const LONG_SECONDS: u32 = 20;
/// More seconds are taken for a mistake.
const SECONDS_MAX: i64 = 86_400;
/// Larger clusters are taken for a mistake.
const NODES_MAX: i64 = 10_000_000;
/// More pods are taken for a mistake.
const PODS_MAX: i64 = 100_000_000;

#[derive(Debug, Args)]
pub(crate) struct DecideOptions {
    /// The configuration whose first profile decides, `-` for standard input; the default one if not given
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// How many nodes the cluster has. With several numbers, such as `5000 100000`, runs take turns, and RATIO says how many times
    /// as fast it is on the first
    #[arg(
        long, value_name = "N", default_values_t = [5000], num_args = 1.., value_delimiter = ',',
        value_parser = value_parser!(u32).range(1..=NODES_MAX)
    )]
    nodes: Vec<u32>,
    /// The workloads to run; all if none is named
    #[arg(long = "workload", value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = names())]
    workloads: Vec<String>,
    /// Score only this share of the nodes, as `percentageOfNodesToScore`; 0 means all, as 100 does
    #[arg(long, value_name = "P", default_value_t = 0, value_parser = value_parser!(u8).range(0..=100))]
    percent: u8,
    /// How many pods to place before anything is measured, instead of the workload's own number; `preemption` fills all
    /// nodes in any case
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(0..=PODS_MAX))]
    init: Option<u32>,
    /// How many pods to measure, instead of the workload's own number
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=PODS_MAX))]
    pods: Option<u32>,
    /// How long to compare decisions with plain evaluations, for each workload; 0 compares none
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    check_seconds: u32,
    /// How long to measure each workload, on as many fresh clusters as that takes
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = value_parser!(u32).range(1..=SECONDS_MAX))]
    seconds: u32,
    /// Measure for 20 seconds each: for figures that are to be compared
    #[arg(long, conflicts_with = "seconds")]
    long: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// The names that `--workload` takes.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        WORKLOADS.iter().map(|workload| PossibleValue::new(workload.name).help(workload.description)),
    )
}

pub(crate) fn run(options: &DecideOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let mut reports = Vec::new();
    let result = run_all(options, registry, &mut io::stdout(), &mut reports);
    // What was measured before something went wrong is still worth seeing.
    let mut outcome = result.map_or_else(|error| Outcome::failure(&error), |()| Outcome::default());
    if !options.json {
        outcome.stdout = table(&reports);
    }
    Ok(outcome)
}

/// Runs the workloads that were asked for, and writes each result as soon as it is there if it is to be JSON.
fn run_all(
    options: &DecideOptions,
    registry: &Registry,
    output: &mut impl Write,
    reports: &mut Vec<Report>,
) -> anyhow::Result<()> {
    let profile = profile(options.config.as_deref(), options.percent, registry)?;
    let percent = profile.percentage_of_nodes_to_score.unwrap_or(0);
    let progress = Progress { is_shown: io::stderr().is_terminal() };
    for workload in chosen(&options.workloads) {
        let [init, pods] = [options.init, options.pods].map(|count| count.map(|count| count as usize));
        let plan = |nodes: &u32| Plan::new(workload, &profile, *nodes as usize, init, pods);
        let plans = options.nodes.iter().map(plan).collect::<anyhow::Result<Vec<_>>>()?;
        let result = measure(&plans, percent, options.extent(), &progress);
        progress.clear();
        for report in result? {
            if options.json {
                let line = serde_json::to_string(&report)? + "\n";
                match output.write_all(line.as_bytes()).and_then(|()| output.flush()) {
                    // Whoever read along has seen enough.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                    written => written.context("cannot write a result")?,
                }
            }
            reports.push(report);
        }
    }
    Ok(())
}

/// How much is measured, and how much of it is checked.
#[derive(Clone, Copy, Debug)]
struct Extent {
    measured: Duration,
    checked: Duration,
}

impl DecideOptions {
    fn extent(&self) -> Extent {
        let seconds = if self.long { LONG_SECONDS } else { self.seconds };
        Extent {
            measured: Duration::from_secs(seconds.into()),
            checked: Duration::from_secs(self.check_seconds.into()),
        }
    }
}

/// The workloads of these names, all if there are none, in their own order.
fn chosen(names: &[String]) -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter().filter(|workload| names.is_empty() || names.iter().any(|name| *name == workload.name))
}

/// The profile that decides, for the pods of the workloads. A share of the nodes that is asked for counts more than the
/// configuration's own.
fn profile(config: Option<&str>, percent: u8, registry: &Registry) -> anyhow::Result<Profile> {
    let profiles = LoadedConfig::from_file(config, registry)?.profiles;
    let mut profile = profiles.into_iter().next().context("a configuration has a profile")?;
    if percent > 0 || config.is_none() {
        profile.percentage_of_nodes_to_score = (percent > 0).then_some(percent);
    }
    DEFAULT_SCHEDULER.clone_into(&mut profile.scheduler_name);
    Ok(profile)
}

/// Runs a workload until there is enough to tell, at several sizes in turn, and checks it.
fn measure(plans: &[Plan], percent: u8, extent: Extent, progress: &Progress) -> anyhow::Result<Vec<Report>> {
    let begin = clock();
    let time_max = extent.measured * SETTING_UP_MAX * u32::try_from(plans.len()).unwrap_or(u32::MAX);
    let mut collected: Vec<Collected> = plans.iter().map(|_| Collected::default()).collect();
    let mut placed: Vec<Vec<Option<Row>>> = vec![Vec::new(); plans.len()];
    loop {
        for ((plan, collected), placed) in plans.iter().zip(&mut collected).zip(&mut placed) {
            let name = plan.workload.name;
            let (run, measured) = (collected.runs + 1, collected.measured);
            progress.show(|| format!("{name}, {} nodes: run {run}, {measured:.1?} measured", plan.nodes));
            let run;
            (run, *placed) = run_once(plan).with_context(|| format!("workload {name}"))?;
            collected.add(&run);
        }
        let is_enough =
            |collected: &Collected| collected.measured >= extent.measured && collected.runs >= RUNS_MIN;
        if collected.iter().all(is_enough) || begin.elapsed() >= time_max {
            break;
        }
    }
    let first = collected[0].rates.clone();
    let mut reports = Vec::with_capacity(plans.len());
    for ((plan, collected), placed) in plans.iter().zip(collected).zip(&placed) {
        let ratio = if plans.len() > 1 { ratio(&first, &collected.rates) } else { None };
        let checked = check(plan, placed, extent.checked, progress)?;
        reports.push(Report::new(plan, percent, &collected.figures(), ratio, checked));
    }
    Ok(reports)
}

/// Compares a run with plain evaluations.
fn check(
    plan: &Plan,
    placed: &[Option<Row>],
    budget: Duration,
    progress: &Progress,
) -> anyhow::Result<Checked> {
    if budget.is_zero() {
        return Ok(Checked { compared: 0, decisions: placed.len() });
    }
    let check = Check { plan, placed, options: engine_options(), budget };
    check.run(|step, steps| {
        if step.is_multiple_of(100) {
            let name = plan.workload.name;
            progress.show(|| format!("{name}: checked up to decision {step} of {steps}"));
        }
    })
}

/// One run on a fresh cluster: what it measured, and where the pods went.
fn run_once(plan: &Plan) -> anyhow::Result<(Measured, Vec<Option<Row>>)> {
    let mut scene = plan.scene()?;
    let steps = scene.steps();
    let mut placed = Vec::with_capacity(steps);
    let mut latencies = Vec::with_capacity(plan.pods);
    let mut earlier_first = None;
    for step in 0..scene.unmeasured {
        let before = clock();
        placed.push(scene.step(step, |engine, pod| Ok(engine.decide(pod, NOW)?))?);
        if step == 0 && !plan.starts_cold() {
            earlier_first = Some(nanoseconds(before.elapsed()));
        }
    }
    let begin = clock();
    let mut before = begin;
    for step in scene.unmeasured..steps {
        placed.push(scene.step(step, |engine, pod| Ok(engine.decide(pod, NOW)?))?);
        let after = clock();
        latencies.push(nanoseconds(after - before));
        before = after;
    }
    let memory = Memory::now();
    let plain = scene.engine.take_plain_decisions();
    let time = before - begin;
    Ok((Measured { time, latencies, earlier_first, memory, all_decisions: steps, plain }, placed))
}

/// A line that says how far things are, on a terminal.
#[derive(Debug)]
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn show(&self, text: impl FnOnce() -> String) {
        if self.is_shown {
            Self::write(&text());
        }
    }

    fn clear(&self) {
        if self.is_shown {
            Self::write("");
        }
    }

    /// Replaces the line. If it cannot be written, nobody misses it.
    fn write(text: &str) {
        let mut stream = io::stderr();
        let _ = write!(stream, "\r\x1b[2K{text}").and_then(|()| stream.flush());
    }
}
