//! `supercargo config check`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use supercargo_config::{Problem, Problems, load, validate};
use supercargo_framework::Registry;

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
    let mut outcome = Outcome::default();
    let mut found = Vec::new();
    for file in &options.files {
        match input::read(file) {
            Ok(text) => found.push((input::display_name(file), check(&text, registry))),
            Err(error) => {
                outcome.stderr.push_str(&format!("error: {error:#}\n"));
                outcome.code = 1;
            }
        }
    }
    if found.iter().any(|(_, problems)| problems.has_errors()) {
        outcome.code = 1;
    }
    outcome.stdout = match options.output {
        Format::Text => text(&found),
        Format::Json => json(&found),
    };
    outcome
}

/// Everything that is wrong with a file.
pub(crate) fn check(text: &str, registry: &Registry) -> Problems {
    match load(text) {
        Ok(loaded) => validate(&loaded.kube, registry),
        Err(problems) => problems,
    }
}

pub(crate) fn text(found: &[(&str, Problems)]) -> String {
    let mut text = String::new();
    for (file, problems) in found {
        for problem in problems.iter() {
            text.push_str(&format!("{file}: {problem}\n"));
        }
    }
    text
}

fn json(found: &[(&str, Problems)]) -> String {
    #[derive(Serialize)]
    struct Found<'a> {
        file: &'a str,
        #[serde(flatten)]
        problem: &'a Problem,
    }
    let list: Vec<Found<'_>> = found
        .iter()
        .flat_map(|(file, problems)| problems.iter().map(move |problem| Found { file, problem }))
        .collect();
    let text = serde_json::to_string_pretty(&list).expect("strings can always be written as JSON");
    text + "\n"
}
