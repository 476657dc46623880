//! The `supercargo` program as a library: one subcommand a file, and the [`Process`] that schedules.
//!
//! A plugin author's own `main` is one call. Every subcommand then knows the plugins that the closure adds to Kubernetes'
//! own: `run` schedules with them, `explain` explains them, `config check` accepts them, `rbac` prints what they read.
//!
//! ```no_run
//! use std::process::ExitCode;
//! # use supercargo_sdk::prelude::*;
//! # struct MyPlugin;
//! # impl Plugin for MyPlugin {
//! #     const NAME: &'static str = "MyPlugin";
//! #     type Args = NoArgs;
//! #     fn new(_: NoArgs) -> Self { MyPlugin }
//! #     fn extensions(points: Extensions<Self>) -> Extensions<Self> { points }
//! # }
//!
//! fn main() -> ExitCode {
//!     supercargo::main_with(|plugins| plugins.add::<MyPlugin>())
//! }
//! ```
//!
//! Plugins are written with the crate `supercargo-sdk`.

#![warn(missing_docs)]

mod ask;
mod bench;
mod capacity;
mod cluster_files;
mod config_check;
mod config_convert;
mod config_default;
mod config_file;
mod crds;
mod dump;
mod expected;
mod explain;
mod extender;
mod gather;
mod input;
mod live;
mod loaded_config;
mod named;
mod new_plugin;
mod outcome;
mod progress;
mod qos;
mod rbac;
mod run;
mod scheduling;
mod serving;
mod shadow;
mod side_by_side;
mod unread_record;
mod verdicts;

#[cfg(test)]
mod linkers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::bench::DecideOptions;
use crate::bench::extender::ExtenderBenchOptions;
use crate::bench::schedule::ScheduleOptions;
use crate::capacity::CapacityArguments;
use crate::config_check::CheckOptions;
use crate::config_convert::ConvertOptions;
use crate::config_default::DefaultOptions;
use crate::crds::CrdsOptions;
use crate::dump::DumpOptions;
use crate::explain::ExplainOptions;
use crate::extender::ExtenderOptions;
use crate::new_plugin::NewPluginOptions;
use crate::qos::QosOptions;
use crate::rbac::RbacOptions;
use crate::shadow::ShadowOptions;
use crate::verdicts::VerdictsOptions;
use supercargo_framework::Registry;
use supercargo_operations::flags::RunFlags;

pub use crate::outcome::Outcome;
pub use crate::run::process::{Ended, Process, Surroundings};
pub use supercargo_plugins::{Plugins, TakenName};

/// Runs the command line of this process with the plugins of Kubernetes and those that `add` adds, and returns the exit
/// code: 0 for success, 1 for failure, 2 for wrong usage.
pub fn main_with(add: impl FnOnce(&mut Plugins) -> Result<(), TakenName>) -> ExitCode {
    let outcome = match Plugins::with(add) {
        Ok(registry) => match parse(std::env::args_os().collect()) {
            Ok(line) => run(line, &registry),
            Err(answer) => return outcome::report_usage(&answer),
        },
        Err(error) => Outcome::failure(&error.into()),
    };
    outcome.report()
}

/// Runs a command line as [`main_with`] does, but returns what it comes to instead of printing it: for tests, where
/// thousands of processes would take too long. `dump`, whose output may not fit into memory, still prints it.
pub fn outcome_of(
    words: impl IntoIterator<Item = impl Into<OsString>>,
    add: impl FnOnce(&mut Plugins) -> Result<(), TakenName>,
) -> Outcome {
    let registry = match Plugins::with(add) {
        Ok(registry) => registry,
        Err(error) => return Outcome::failure(&error.into()),
    };
    match parse(words.into_iter().map(Into::into).collect()) {
        Ok(line) => run(line, &registry).printable(),
        Err(answer) => Outcome::usage(&answer),
    }
}

/// A Kubernetes scheduler, and what people who shape scheduling need around it.
#[derive(Debug, Parser)]
#[command(name = "supercargo", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Schedule a cluster: instead of kube-scheduler, or beside it under another schedulerName
    Run(Box<RunFlags>),
    /// Check configurations, or see what they come to
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Say where each pending pod would go and why there, or why nowhere and what would help
    Explain(ExplainOptions),
    /// Say how many more of a pod fit, where, and what stops the next one
    Capacity(CapacityArguments),
    /// Print the roles that a scheduler with a configuration needs, as YAML
    ///
    /// What is read comes from what the enabled plugins declare, custom resources included; what is written, from the
    /// mode. Nothing else is allowed.
    Rbac(RbacOptions),
    /// Print the definitions of the custom resources that plugins read, as YAML
    ///
    /// Those that come with the program, in `deploy/crds` too. `crds | kubectl apply -f -` installs them; a scheduler that runs finds
    /// them within half a minute.
    Crds(CrdsOptions),
    /// Write down what a scheduler reads of a live cluster, for `explain` and `capacity`
    Dump(DumpOptions),
    /// Look on while another scheduler works, and say what would have been decided here; writes nothing
    Shadow(ShadowOptions),
    /// Answer a kube-scheduler that stays as it is: filter, prioritize, preempt and bind with the plugins of a profile
    Extender(Box<ExtenderOptions>),
    /// Print how the controllers of pods do that a scheduler with QosAware on this host has measured
    Qos(QosOptions),
    /// Measure how fast decisions are made
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Write a crate with a plugin of your own, which builds and whose tests pass
    NewPlugin(NewPluginOptions),
    /// Judge conformance cases: one case a line in, one verdict a line out
    Verdicts(VerdictsOptions),
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Count the decisions a second, from a parsed pod to a placed one, on clusters of many kinds
    ///
    /// Each workload is run on fresh clusters until a second has been measured, then once more beside the plain
    /// evaluation, which asks every plugin about every node, to check that the decisions are the same: all of them, or
    /// as many as --check-seconds allows. A difference is an error.
    ///
    /// The time of a decision begins with a parsed pod and ends when the pod is assumed on its node. FIRST is the first
    /// decision for such a pod, when nothing is known of its kind yet; it is not among the others. RESIDENT is the
    /// memory of the whole process: run a workload alone to see what it needs.
    Decide(DecideOptions),
    /// Count the pods a second that go through the whole scheduler, from the queue to the order to bind them
    ///
    /// All pods come and wait; then they are taken out of the queue in order, decided for, reserved, permitted and assumed. The
    /// order in which they are tried is compared with a plain sort of the same moment; a difference is an error. PODS/S is the
    /// median over the runs, from the first pod that comes to the last that is assumed.
    Schedule(ScheduleOptions),
    /// Count the questions a second that `supercargo extender` answers: filter and then prioritize, by names, over HTTP
    ///
    /// A pair is both questions about all nodes, one after the other; P50 and P99 are how long a client waits for both answers. Clients run in the
    /// same process and take their part of the processors.
    Extender(ExtenderBenchOptions),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Find everything that is wrong with configuration files, and everything that looks wrong
    Check(CheckOptions),
    /// Turn a configuration of an older version, or a Policy, into one that kube-scheduler 1.36 reads
    Convert(ConvertOptions),
    /// Print the whole configuration, with nothing left to defaults
    Default(DefaultOptions),
}

/// Reads the command line; where it is wrong, or asks for help, what to say about it.
fn parse(words: Vec<OsString>) -> Result<CommandLine, clap::Error> {
    let program = program_name(words.first());
    let command = command(&program);
    let words = with_subcommand(words, &program, &command);
    let matches = command.clone().try_get_matches_from(words)?;
    let mut line = CommandLine::from_arg_matches(&matches)?;
    if let (Command::Run(flags), Some((name, matches))) = (&mut line.command, matches.subcommand())
        && let Some(command) = command.find_subcommand(name)
    {
        flags.shown = flag_values(command, matches);
        flags.given = given_flags(command, matches);
    }
    match &mut line.command {
        Command::Rbac(options) => options.program = program,
        Command::Extender(options) => options.program = program,
        _ => {}
    }
    Ok(line)
}

/// The name of the program that `supercargo run` takes the place of. Manifests start it with flags alone.
const KUBE_SCHEDULER: &str = "kube-scheduler";

/// The words with `run` among them where they leave it out, as those do that start kube-scheduler, or a program that is kube-scheduler
/// with plugins of its own: under the name of kube-scheduler, or with one of its flags as the first word.
fn with_subcommand(mut words: Vec<OsString>, program: &str, command: &clap::Command) -> Vec<OsString> {
    let first = words.get(1).and_then(|word| word.to_str());
    let is_flag = |word: &str| {
        let name = word.strip_prefix("--").and_then(|flag| flag.split('=').next());
        let run = command.find_subcommand("run");
        run.into_iter()
            .flat_map(clap::Command::get_arguments)
            .any(|flag| name.is_some() && flag.get_long() == name)
    };
    let is_left_out = match first {
        None => program == KUBE_SCHEDULER,
        Some(word) if command.find_subcommand(word).is_some() || word == "help" => false,
        Some(word) => program == KUBE_SCHEDULER || is_flag(word),
    };
    if is_left_out {
        words.insert(1, "run".into());
    }
    words
}

/// The flags of a command by name, with their values as Go prints them: lists in brackets, nothing for what was left out.
fn flag_values(command: &clap::Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let named = command.get_arguments().filter_map(|argument| Some((argument.get_long()?, argument)));
    named
        .map(|(name, argument)| {
            let is_list = matches!(argument.get_action(), ArgAction::Append);
            let values = matches.try_get_raw(argument.get_id().as_str()).ok().flatten();
            let values: Vec<_> = values.into_iter().flatten().map(|value| value.to_string_lossy()).collect();
            let value = if is_list { format!("[{}]", values.join(",")) } else { values.join(",") };
            (name.to_owned(), value)
        })
        .collect()
}

/// The names of the flags that stand on the command line.
fn given_flags(command: &clap::Command, matches: &ArgMatches) -> BTreeSet<String> {
    let is_given = |argument: &&clap::Arg| {
        matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let given = command.get_arguments().filter(is_given);
    given.filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

/// kubectl runs the one when people type the other.
const KUBECTL_PLUGIN: (&str, &str) = ("kubectl-supercargo", "kubectl supercargo");

/// The name by which the program was called, as people type it.
fn program_name(program: Option<&OsString>) -> String {
    let name = program.and_then(|program| Path::new(program).file_name()?.to_str());
    match name.map(|name| name.strip_suffix(".exe").unwrap_or(name)) {
        None | Some("") => "supercargo".to_owned(),
        Some(name) if name == KUBECTL_PLUGIN.0 => KUBECTL_PLUGIN.1.to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// The commands, under that name where it is two words.
fn command(program: &str) -> clap::Command {
    let command = CommandLine::command().version(VERSION.as_str()).propagate_version(true);
    if program == KUBECTL_PLUGIN.1 { command.bin_name(program) } else { command }
}

/// What `--version` prints behind the name, with the commit if whoever built it named one.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = run::COMMIT.filter(|commit| !["", "unknown"].contains(commit));
    let commit = commit.map(|commit| format!(" (commit {commit})")).unwrap_or_default();
    format!("{}{commit}, decides as kube-scheduler {}", run::VERSION, run::EMULATED_VERSION)
});

fn run(line: CommandLine, registry: &Registry) -> Outcome {
    let result = match line.command {
        Command::Run(flags) => run::run(*flags, registry),
        Command::Config(ConfigCommand::Check(options)) => Ok(config_check::run(&options, registry)),
        Command::Config(ConfigCommand::Convert(options)) => config_convert::run(&options),
        Command::Config(ConfigCommand::Default(options)) => config_default::run(&options, registry),
        Command::Explain(options) => explain::run(&options, registry),
        Command::Capacity(options) => capacity::run(&options, registry),
        Command::Rbac(options) => rbac::run(&options, registry),
        Command::Crds(options) => crds::run(&options, registry),
        Command::Dump(options) => dump::run(&options, registry),
        Command::Shadow(options) => shadow::run(&options, registry),
        Command::Extender(options) => extender::run(&options, registry),
        Command::Qos(options) => qos::run(&options),
        Command::Bench(BenchCommand::Decide(options)) => bench::run(&options, registry),
        Command::Bench(BenchCommand::Schedule(options)) => bench::schedule::run(&options, registry),
        Command::Bench(BenchCommand::Extender(options)) => bench::extender::run(&options, registry),
        Command::NewPlugin(options) => new_plugin::run(&options, registry),
        Command::Verdicts(options) => verdicts::run(&options, registry),
    };
    result.unwrap_or_else(|error| Outcome::failure(&error))
}
