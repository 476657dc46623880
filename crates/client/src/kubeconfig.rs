//! Kubeconfig files, as client-go reads them (`tools/clientcmd`).

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::words::{ClusterWords, ContextWords, KubeconfigWords, UserWords};

/// No kubeconfig is larger: one with a thousand clusters has a few megabytes.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// How many files `$KUBECONFIG` may name.
const FILES_MAX: usize = 256;
/// How many names are listed where one is not found.
const NAMES_SHOWN_MAX: usize = 10;

/// One file, or several in which the first value for a name counts.
#[derive(Clone, Default)]
pub(crate) struct Kubeconfig {
    clusters: BTreeMap<String, Entry<ClusterWords>>,
    contexts: BTreeMap<String, Entry<ContextWords>>,
    users: BTreeMap<String, Entry<UserWords>>,
    current_context: String,
    /// The files that were read.
    files: Vec<PathBuf>,
}

/// Something with the file that it stands in, from which its relative paths count.
#[derive(Clone)]
pub(crate) struct Entry<T> {
    pub(crate) words: T,
    pub(crate) file: PathBuf,
}

/// What is wrong with a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) file: PathBuf,
    pub(crate) reason: String,
}

/// Why there is no kubeconfig of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoKubeconfig {
    /// None of the files is there; this says which.
    Missing(String),
    /// One is there and is wrong.
    Faulty(Fault),
}

/// A context with what it names.
pub(crate) struct Choice<'a> {
    pub(crate) name: &'a str,
    pub(crate) context: &'a Entry<ContextWords>,
    pub(crate) cluster: &'a Entry<ClusterWords>,
    /// None for a context without a user: nobody in particular.
    pub(crate) user: Option<&'a Entry<UserWords>>,
}

impl Kubeconfig {
    /// A file that has to be there.
    pub(crate) fn from_file(path: &Path) -> Result<Self, Fault> {
        let mut kubeconfig = Kubeconfig::default();
        match kubeconfig.add(path)? {
            Found::Yes => Ok(kubeconfig),
            Found::No => Err(fault(path, "there is no such file")),
        }
    }

    /// The kubeconfig of the user: the files that `$KUBECONFIG` lists, of which those that are missing are passed over, or
    /// else `~/.kube/config`.
    pub(crate) fn of_user(environment: &Environment) -> Result<Self, NoKubeconfig> {
        let mut kubeconfig = Kubeconfig::default();
        let Some(list) = &environment.kubeconfig else {
            let Some(home) = &environment.home else {
                return Err(NoKubeconfig::Missing("neither $KUBECONFIG nor $HOME is set".to_owned()));
            };
            let path = home.join(".kube").join("config");
            return match kubeconfig.add(&path).map_err(NoKubeconfig::Faulty)? {
                Found::Yes => Ok(kubeconfig),
                Found::No => Err(NoKubeconfig::Missing(format!(
                    "$KUBECONFIG is not set, and there is no {}",
                    path.display()
                ))),
            };
        };
        // As client-go does, a file that is named twice is read once.
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        if paths.len() > FILES_MAX {
            let first = paths.swap_remove(0);
            let reason = format!("$KUBECONFIG names more than {FILES_MAX} files");
            return Err(NoKubeconfig::Faulty(fault(&first, &reason)));
        }
        for path in &paths {
            kubeconfig.add(path).map_err(NoKubeconfig::Faulty)?;
        }
        if kubeconfig.files.is_empty() {
            return Err(NoKubeconfig::Missing(match &paths[..] {
                [] => "$KUBECONFIG names no file".to_owned(),
                [only] => format!("$KUBECONFIG names {}, and there is no such file", only.display()),
                _ => format!("$KUBECONFIG names {list}, and none of these files is there"),
            }));
        }
        Ok(kubeconfig)
    }

    /// Adds what a file says and the files before it did not.
    fn add(&mut self, path: &Path) -> Result<Found, Fault> {
        let Some(text) = read(path)? else { return Ok(Found::No) };
        let words = parse(&text).map_err(|reason| fault(path, &reason))?;
        let KubeconfigWords { clusters, contexts, users, current_context } = words;
        let clusters = clusters.into_iter().map(|entry| (entry.name, entry.cluster));
        merge(&mut self.clusters, clusters, path, "clusters")?;
        let contexts = contexts.into_iter().map(|entry| (entry.name, entry.context));
        merge(&mut self.contexts, contexts, path, "contexts")?;
        let users = users.into_iter().map(|entry| (entry.name, entry.user));
        merge(&mut self.users, users, path, "users")?;
        if self.current_context.is_empty() {
            self.current_context = current_context;
        }
        self.files.push(path.to_owned());
        Ok(Found::Yes)
    }

    /// The context of this name, or else the current one.
    pub(crate) fn choose<'a>(&'a self, context: Option<&'a str>) -> Result<Choice<'a>, Fault> {
        let whole = |reason: String| fault(self.files.first().map_or(Path::new(""), |file| file), &reason);
        let name = context.unwrap_or(&self.current_context);
        if name.is_empty() {
            return Err(whole(format!(
                "it has no current-context; choose one with --context, or with kubectl config use-context: {}",
                names(&self.contexts)
            )));
        }
        let Some(context) = self.contexts.get(name) else {
            return Err(whole(format!("there is no context {name:?} in it: {}", names(&self.contexts))));
        };
        let inside = |reason: String| fault(&context.file, &format!("the context {name:?} {reason}"));
        let ContextWords { cluster, user, .. } = &context.words;
        let Some(found) = self.clusters.get(cluster) else {
            return Err(inside(format!(
                "names the cluster {cluster:?}, which is not there: {}",
                names(&self.clusters)
            )));
        };
        let found_user = self.users.get(user);
        if found_user.is_none() && !user.is_empty() {
            return Err(inside(format!("names the user {user:?}, who is not there: {}", names(&self.users))));
        }
        Ok(Choice { name, context, cluster: found, user: found_user })
    }
}

impl<T> Entry<T> {
    /// A path that stands in the entry.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        // An absolute path stays as it is.
        self.file.parent().map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
    }
}

enum Found {
    Yes,
    No,
}

fn fault(file: &Path, reason: &str) -> Fault {
    Fault { file: file.to_owned(), reason: reason.to_owned() }
}

/// What a file holds; none if it is not there.
fn read(path: &Path) -> Result<Option<String>, Fault> {
    let failed = |error: std::io::Error| fault(path, &error.to_string());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fault(path, &format!("it has more than {FILE_BYTES_MAX} bytes, and is no kubeconfig")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| fault(path, "it is not text, and so no kubeconfig"))
}

/// Reads the first document, as client-go does. What is wrong is said without a word of the file: there are secrets in it.
fn parse(text: &str) -> Result<KubeconfigWords, String> {
    let options: serde_saphyr::Options = serde_saphyr::options! { with_snippet: false };
    let documents: Vec<KubeconfigWords> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| complaint(&error))?;
    Ok(documents.into_iter().next().unwrap_or_default())
}

fn complaint(error: &serde_saphyr::Error) -> String {
    let place = match error.location() {
        Some(location) => format!("line {}, column {}", location.line(), location.column()),
        None => "somewhere in it".to_owned(),
    };
    use serde_saphyr::Error;
    match error {
        Error::Unexpected { expected, .. } => {
            format!("{place}: a {} is expected there", expected.trim_end_matches(" start"))
        }
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            format!("{place}: {expected} is expected there")
        }
        Error::DuplicateMappingKey { .. } => format!("{place}: a key stands there a second time"),
        _ => format!("{place}: this is not YAML, or not the YAML of a kubeconfig"),
    }
}

fn merge<T>(
    all: &mut BTreeMap<String, Entry<T>>,
    entries: impl Iterator<Item = (String, T)>,
    file: &Path,
    what: &str,
) -> Result<(), Fault> {
    for (name, words) in entries {
        match all.get(&name) {
            Some(first) if first.file == file => {
                return Err(fault(file, &format!("{what}: the name {name:?} stands there twice")));
            }
            Some(_) => {}
            None => _ = all.insert(name, Entry { words, file: file.to_owned() }),
        }
    }
    Ok(())
}

/// The names that there are, for people who have mistyped one.
fn names<T>(entries: &BTreeMap<String, T>) -> String {
    if entries.is_empty() {
        return "there is none".to_owned();
    }
    let shown: Vec<&str> = entries.keys().take(NAMES_SHOWN_MAX).map(String::as_str).collect();
    let others = entries.len() - shown.len();
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("known: {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests;
