//! `supercargo config default`.

use clap::Args;
use supercargo_config::{Loaded, effective, read, to_yaml};
use supercargo_framework::Registry;

use crate::config_check;
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
    let loaded = match &options.config {
        None => Loaded::default(),
        Some(path) => {
            let reading = read(&input::read(path)?);
            let problems = reading.check(registry);
            match reading.into_result() {
                Ok(loaded) => loaded,
                Err(_) => {
                    let stderr = format!("error: {file} is not a configuration\n")
                        + &config_check::lines(file, &problems);
                    return Ok(Outcome { stderr, code: 1, ..Outcome::default() });
                }
            }
        }
    };
    let stdout = to_yaml(&effective(&loaded.kube, registry), &loaded.own);
    let stderr = config_check::lines(file, &loaded.conversion);
    Ok(Outcome { stdout, stderr, ..Outcome::default() })
}
