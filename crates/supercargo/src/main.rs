//! `supercargo`: one subcommand a file.

mod config_check;
mod config_default;
mod input;
mod outcome;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use supercargo_framework::Registry;

use crate::config_check::CheckOptions;
use crate::config_default::DefaultOptions;
use crate::outcome::Outcome;

/// A Kubernetes scheduler, and what people who shape scheduling need around it.
#[derive(Debug, Parser)]
#[command(name = "supercargo", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check configurations, or see what they come to
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Find everything that is wrong with configuration files, and everything that looks wrong
    Check(CheckOptions),
    /// Print the whole configuration, with nothing left to defaults
    Default(DefaultOptions),
}

fn main() -> ExitCode {
    run(CommandLine::parse()).report()
}

fn run(line: CommandLine) -> Outcome {
    let registry = registry();
    let result = match line.command {
        Command::Config(ConfigCommand::Check(options)) => Ok(config_check::run(&options, &registry)),
        Command::Config(ConfigCommand::Default(options)) => config_default::run(&options, &registry),
    };
    result.unwrap_or_else(|error| Outcome::failure(&error))
}

/// The plugins of this scheduler.
fn registry() -> Registry {
    supercargo_plugins::registry()
}
