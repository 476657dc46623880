//! `supercargo config default`.

use clap::Args;
use supercargo_config::{Loaded, Problems, effective, to_yaml};
use supercargo_framework::Registry;

use crate::config_check;
use crate::config_file;
use crate::input;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(crate) struct DefaultOptions {
    /// A configuration to complete; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
}

pub(crate) fn run(options: &DefaultOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let file = options.config.as_deref().map_or("", input::display_name);
    let (loaded, problems) = match &options.config {
        None => (Loaded::default(), Problems::default()),
        Some(path) => {
            let reading = config_file::read(&input::read(path)?);
            let problems = reading.check(registry);
            match reading.into_result() {
                Ok(loaded) if !problems.has_errors() => (loaded, problems),
                _ => {
                    let stderr = format!("error: {file} is not a configuration\n")
                        + &config_check::lines(file, &problems);
                    return Ok(Outcome { stderr, code: 1, ..Outcome::default() });
                }
            }
        }
    };
    let stdout = to_yaml(&effective(&loaded.kube, registry), &loaded.own);
    Ok(Outcome { stdout, stderr: config_check::lines(file, &problems), ..Outcome::default() })
}
