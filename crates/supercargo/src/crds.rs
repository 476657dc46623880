//! `supercargo crds`: the definitions of the custom resources that plugins read.

use clap::Args;
use supercargo_config::print_yaml;
use supercargo_framework::Registry;
use supercargo_model::KindId;
use supercargo_plugins::community::definitions;

use crate::loaded_config::LoadedConfig;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(crate) struct CrdsOptions {
    /// Only those that the plugins of this configuration read, `-` for standard input; all without it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
}

pub(crate) fn run(options: &CrdsOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let config = options.config.as_deref();
    let config = config.map(|file| LoadedConfig::from_file(Some(file), registry)).transpose()?;
    let read = config.map(|config| config.kinds());
    let wanted = |kind: &KindId| read.as_ref().is_none_or(|kinds| kinds.contains(kind));
    let definitions = definitions().into_iter().filter(|definition| wanted(&definition.kind));
    let stdout: String =
        definitions.map(|definition| format!("---\n{}", print_yaml(&definition.manifest()))).collect();
    let stderr = if stdout.is_empty() {
        "note: the plugins of this configuration read no custom resources that come with the program\n"
            .to_owned()
    } else {
        String::new()
    };
    Ok(Outcome { stdout, stderr, code: 0 })
}
