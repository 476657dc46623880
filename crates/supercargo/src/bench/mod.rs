//! `supercargo bench decide`, and `bench schedule` beside it.
//!
//! The timer starts at a parsed pod and ends when the pod is assumed on its node. Each decision is measured from the end
//! of the one before, so that one look at the clock a decision is enough; what happens between two decisions, such as a
//! node that changes, counts as part of the earlier one.

mod check;
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
use figures::{Collected, Measured, Memory, clock, nanoseconds};
use report::{Report, table};
use scene::{NOW, Plan, engine_options};
use workloads::{WORKLOADS, Workload};

/// A workload is run on fresh clusters until so much time has been measured.
const MEASURED_TIME_MIN: Duration = Duration::from_secs(1);
/// No further cluster is set up after so much time.
const RUNS_TIME_MAX: Duration = Duration::from_secs(20);
/// Larger clusters are taken for a mistake.
const NODES_MAX: i64 = 10_000_000;
/// More pods are taken for a mistake.
const PODS_MAX: i64 = 100_000_000;

#[derive(Debug, Args)]
pub(crate) struct DecideOptions {
    /// The configuration whose first profile decides, `-` for standard input; the default one if not given
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// How many nodes the cluster has
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = value_parser!(u32).range(1..=NODES_MAX))]
    nodes: u32,
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
        let plan = Plan::new(workload, &profile, options.nodes as usize, init, pods)?;
        let budget = Duration::from_secs(options.check_seconds.into());
        let result = measure(&plan, percent, budget, &progress);
        progress.clear();
        let report = result?;
        if options.json {
            let line = serde_json::to_string(&report)? + "\n";
            match output.write_all(line.as_bytes()).and_then(|()| output.flush()) {
                // Whoever read along has seen enough.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                written => written.context("cannot write a result")?,
            }
        }
        reports.push(report);
    }
    Ok(())
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

/// Runs a workload until there is enough to tell, and checks it.
fn measure(plan: &Plan, percent: u8, budget: Duration, progress: &Progress) -> anyhow::Result<Report> {
    let name = plan.workload.name;
    let begin = clock();
    let mut collected = Collected::default();
    let mut placed;
    loop {
        let text = || format!("{name}: run {}, {:.1?} measured", collected.runs + 1, collected.measured);
        progress.show(text);
        let run;
        (run, placed) = run_once(plan).with_context(|| format!("workload {name}"))?;
        collected.add(&run);
        if collected.measured >= MEASURED_TIME_MIN || begin.elapsed() >= RUNS_TIME_MAX {
            break;
        }
    }
    let check = Check { plan, placed: &placed, options: engine_options(), budget };
    let checked = if budget.is_zero() {
        Checked { compared: 0, decisions: placed.len() }
    } else {
        check.run(|step, steps| {
            if step.is_multiple_of(100) {
                progress.show(|| format!("{name}: checked up to decision {step} of {steps}"));
            }
        })?
    };
    Ok(Report::new(plan, percent, &collected.figures(), checked))
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
