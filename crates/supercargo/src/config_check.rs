//! `supercargo config check`.

use std::path::Path;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use serde::Serialize;
use supercargo_config::{Problem, Problems};
use supercargo_framework::Registry;

use crate::config_file;
use crate::input;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// The files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// How to print the problems
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One problem a line, its hint below it
    #[default]
    Text,
    /// A list of objects
    Json,
}

pub(crate) fn run(options: &CheckOptions, registry: &Registry) -> Outcome {
    let check = |file: &'_ String| match input::read(file) {
        Ok(text) => check(&text, registry),
        Err(error) => Problem::unreadable_file(format!("{error:#}")).into(),
    };
    let found: Vec<(&str, Problems)> =
        options.files.iter().map(|file| (input::display_name(file), check(file))).collect();
    let has_errors = found.iter().any(|(_, problems)| problems.has_errors());
    let stdout = match options.output {
        Format::Text => found.iter().map(|(file, problems)| lines(file, problems)).collect(),
        Format::Json => json(&found),
    };
    Outcome { stdout, code: u8::from(has_errors), ..Outcome::default() }
}

/// Everything that is wrong with a file: what cannot be read or was changed by its conversion, then what is wrong with what it
/// comes to, then files that it names and that are not there.
fn check(text: &str, registry: &Registry) -> Problems {
    let reading = config_file::read(text);
    let files = reading.check_files(|file| Path::new(file).exists());
    reading.check(registry).and(files)
}

/// The problems of a file, one a line.
pub(crate) fn lines(file: &str, problems: &Problems) -> String {
    problems.iter().map(|problem| problem.in_file(file) + "\n").collect()
}

/// Why a file is of no use, with all of its problems.
pub(crate) fn unusable(file: &str, problems: &Problems) -> anyhow::Error {
    anyhow!("{file} is not a usable configuration:\n{}", problems.in_file(file))
}

fn json(found: &[(&str, Problems)]) -> String {
    #[derive(Serialize)]
    struct Found<'a> {
        file: String,
        #[serde(flatten)]
        problem: &'a Problem,
    }
    let found_in = |file, problem: &'_ Problem| problem.file.as_deref().unwrap_or(file).to_owned();
    let list: Vec<Found<'_>> = found
        .iter()
        .flat_map(|(file, problems)| {
            problems.iter().map(move |problem| Found { file: found_in(file, problem), problem })
        })
        .collect();
    let text = serde_json::to_string_pretty(&list).expect("strings can always be written as JSON");
    text + "\n"
}
