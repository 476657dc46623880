//! `supercargo config default`.

use clap::Args;
use supercargo_config::{Loaded, effective, load, to_yaml};
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
    let loaded = match &options.config {
        None => Loaded::default(),
        Some(file) => match load(&input::read(file)?) {
            Ok(loaded) => loaded,
            Err(problems) => {
                let file = input::display_name(file);
                let mut stderr = format!("error: {file} is not a configuration\n");
                stderr.push_str(&config_check::text(&[(file, problems)]));
                return Ok(Outcome { stderr, code: 1, ..Outcome::default() });
            }
        },
    };
    let stdout = to_yaml(&effective(&loaded.kube, registry), &loaded.own);
    Ok(Outcome { stdout, ..Outcome::default() })
}
