//! `supercargo new-plugin`: writes a crate with a plugin that builds, and tests that pass.

mod names;
mod sources;
mod template;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use supercargo_framework::Registry;

use crate::outcome::Outcome;
use names::PluginNames;
use sources::Sources;

#[derive(Debug, Args)]
pub(crate) struct NewPluginOptions {
    /// The name of the crate, such as gpu-nodes; the plugin in it is GpuNodes then
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The folder to make; one named like the crate if not given. It must not be there yet
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// A checkout of Supercargo to build with; the one around the current folder if not given
    #[arg(long, value_name = "CHECKOUT", conflicts_with = "git")]
    pub(crate) path: Option<PathBuf>,
    /// A repository of Supercargo to build with, instead of a checkout
    #[arg(long, value_name = "URL")]
    pub(crate) git: Option<String>,
    /// The commit or tag of that repository; the newest commit if not given
    #[arg(long, value_name = "REVISION", requires = "git")]
    pub(crate) revision: Option<String>,
}

pub(crate) fn run(options: &NewPluginOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let names = PluginNames::from_crate(&options.name, registry)?;
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let sources = Sources::chosen(options, &here)?;
    let folder = options.folder.clone().unwrap_or_else(|| PathBuf::from(&names.crate_name));
    make(&folder, &template::files(&names, &sources))?;
    let stdout = format!(
        "wrote the crate {} with the plugin {} into {}\nnext: cd {} && cargo test\n",
        names.crate_name,
        names.plugin,
        folder.display(),
        folder.display(),
    );
    Ok(Outcome { stdout, ..Outcome::default() })
}

/// Makes a folder with these files. What was there before is left as it is; what cannot be finished is taken away again.
fn make(folder: &Path, files: &[(&'static str, String)]) -> anyhow::Result<()> {
    if fs::symlink_metadata(folder).is_ok() {
        bail!("{} is there already: choose another name, or another --folder", folder.display());
    }
    fs::create_dir(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let written = files.iter().try_for_each(|(name, text)| write(&folder.join(name), text));
    if written.is_err() {
        // The folder was made here a moment ago. That it stays behind is the lesser problem of the two.
        let _ = fs::remove_dir_all(folder);
    }
    written
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, text));
    written.with_context(|| format!("cannot write {}", file.display()))
}
