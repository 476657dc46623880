//! Where the crates come from that a plugin is built with: until they are published, a checkout or a repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::NewPluginOptions;

/// By this file a checkout is known.
const SDK: &str = "crates/sdk/Cargo.toml";

/// Where the crates come from.
#[derive(Clone, Debug)]
pub(super) enum Sources {
    /// A folder on this machine, and the versions of all crates that it was tested with.
    Checkout { folder: String, lock: Option<String> },
    /// A repository, at some commit.
    Git { url: String, revision: Option<String> },
}

impl Sources {
    /// What the command line asks for; or else the checkout around the current folder.
    pub(super) fn chosen(options: &NewPluginOptions, here: &Path) -> anyhow::Result<Self> {
        match (&options.git, &options.path) {
            (Some(url), _) => {
                for (flag, text) in [("--git", Some(url)), ("--revision", options.revision.as_ref())] {
                    if text.is_some_and(|text| text.is_empty() || text.contains(char::is_control)) {
                        bail!("{flag} {:?} cannot stand in a manifest", text.map_or("", String::as_str));
                    }
                }
                Ok(Sources::Git { url: url.clone(), revision: options.revision.clone() })
            }
            (None, Some(folder)) if !folder.join(SDK).is_file() => {
                bail!("{} is no checkout of Supercargo: there is no {SDK} in it", folder.display())
            }
            (None, Some(folder)) => Sources::checkout(folder),
            (None, None) => match here.ancestors().find(|folder| folder.join(SDK).is_file()) {
                Some(folder) => Sources::checkout(folder),
                None => bail!(
                    "the crates that a plugin is built with are not published yet: name a checkout of Supercargo with \
                     --path, or its repository with --git"
                ),
            },
        }
    }

    fn checkout(folder: &Path) -> anyhow::Result<Self> {
        let name = folder.display();
        let folder: PathBuf = folder.canonicalize().with_context(|| format!("cannot find {name}"))?;
        let lock = fs::read_to_string(folder.join("Cargo.lock")).ok();
        match folder.into_os_string().into_string() {
            Ok(folder) => Ok(Sources::Checkout { folder, lock }),
            Err(_) => bail!("the name of {name} is no text in UTF-8, and cannot stand in a manifest"),
        }
    }

    /// What a manifest says about one of the crates: a table in one line.
    pub(super) fn dependency(&self, folder_of_crate: &str, features: &[&str]) -> String {
        let mut fields = match self {
            Sources::Checkout { folder, .. } => vec![field("path", &format!("{folder}/{folder_of_crate}"))],
            Sources::Git { url, revision } => {
                let mut fields = vec![field("git", url)];
                fields.extend(revision.as_ref().map(|revision| field("rev", revision)));
                fields
            }
        };
        if !features.is_empty() {
            let quoted: Vec<String> = features.iter().map(|feature| format!("{feature:?}")).collect();
            fields.push(format!("features = [{}]", quoted.join(", ")));
        }
        format!("{{ {} }}", fields.join(", "))
    }

    /// The versions of crates to begin with: those that the checkout was tested with.
    pub(super) fn lock(&self) -> Option<&str> {
        match self {
            Sources::Checkout { lock, .. } => lock.as_deref(),
            Sources::Git { .. } => None,
        }
    }

    /// What the README says about it.
    pub(super) fn note(&self) -> &'static str {
        match self {
            Sources::Checkout { .. } => {
                "Supercargo's crates are not published yet: `Cargo.toml` names them in a checkout on this machine, and `Cargo.lock` begins\n\
                 with the versions that the checkout was tested with. To build elsewhere, name the repository instead: `git = \"…\"`, with a\n\
                 `rev`, in place of each `path`."
            }
            Sources::Git { .. } => {
                "Supercargo's crates are not published yet: `Cargo.toml` names them in a git repository, and `Cargo.lock` keeps the commit.\n\
                 To build with changes of your own, name a checkout instead: `path = \"…/crates/sdk\"` in place of `git`."
            }
        }
    }
}

/// A field of a manifest. Of what Rust escapes, names of files without control characters have only what TOML escapes alike.
fn field(key: &str, value: &str) -> String {
    format!("{key} = \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
