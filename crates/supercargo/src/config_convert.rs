//! `supercargo config convert`.

use clap::{Args, ValueEnum};
use supercargo_config::{Loaded, Problem, Problems, SupercargoConfiguration, minimal_json, minimal_yaml};

use crate::config_file;
use crate::input;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(crate) struct ConvertOptions {
    /// A configuration of any version, a Policy, or a ConfigMap with either; several files make one configuration, and
    /// `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// How to print the configuration
    #[arg(short, long, value_enum, default_value_t = ConvertFormat::Yaml)]
    pub(crate) output: ConvertFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertFormat {
    /// With the settings of our own as a second document, if there are any
    #[default]
    Yaml,
    /// Without the settings of our own
    Json,
}

pub(crate) fn run(options: &ConvertOptions) -> anyhow::Result<Outcome> {
    let texts =
        options.files.iter().map(|file| input::read(file)).collect::<anyhow::Result<Vec<String>>>()?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let names: Vec<&str> = options.files.iter().map(|file| input::display_name(file)).collect();
    Ok(match config_file::read_all(&texts).into_result() {
        Ok(loaded) => Outcome {
            stdout: print(&loaded, options.output),
            stderr: lines(&names, &loaded.conversion) + left_out(&loaded, options.output),
            code: 0,
        },
        Err(problems) => Outcome { stderr: lines(&names, &problems), code: 1, ..Outcome::default() },
    })
}

fn print(loaded: &Loaded, format: ConvertFormat) -> String {
    match format {
        ConvertFormat::Yaml => minimal_yaml(loaded),
        ConvertFormat::Json => minimal_json(loaded),
    }
}

fn left_out(loaded: &Loaded, format: ConvertFormat) -> &'static str {
    if format == ConvertFormat::Json && loaded.own != SupercargoConfiguration::default() {
        "warning: SupercargoConfiguration was left out: JSON has room for one document\n"
    } else {
        ""
    }
}

/// The problems, one a line, each behind the file that it is of; what is of no place is of all of them together.
fn lines(names: &[&str], problems: &Problems) -> String {
    let name = |problem: &Problem| match problem.position {
        Some(position) => names.get(position.file).map_or_else(String::new, |name| (*name).to_owned()),
        None => names.join("+"),
    };
    problems.iter().map(|problem| problem.in_file(&name(problem)) + "\n").collect()
}
