//! `algorithmSource`: a provider, or a Policy that lives elsewhere.

use std::fmt;

use serde_json::Value;

use super::release::Release;
use crate::codes;
use crate::fields::{Object, Read, below, read_object};
use crate::problem::{Problem, Problems};

/// The field.
pub(crate) const NAME: &str = "algorithmSource";
/// What to do about a Policy that is not there.
pub(crate) const HOW_TO_GIVE: &str = "give it as well: supercargo config convert CONFIG POLICY";

/// Which defaults count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Algorithm {
    #[default]
    Default,
    /// Fills nodes up instead of spreading over them.
    ClusterAutoscaler,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Source {
    provider: Option<String>,
    policy: Option<PolicySource>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct PolicySource {
    file: Option<FileSource>,
    config_map: Option<ConfigMapSource>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct FileSource {
    path: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct ConfigMapSource {
    namespace: String,
    name: String,
}

read_object!(Source { provider: "provider", policy: "policy" });
read_object!(PolicySource { file: "file", config_map: "configMap" });
read_object!(FileSource { path: "path" });
read_object!(ConfigMapSource { namespace: "namespace", name: "name" });

/// Where a configuration says that its Policy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyPlace {
    /// `algorithmSource.policy.file`
    File {
        /// `path`
        path: String,
    },
    /// `algorithmSource.policy.configMap`
    ConfigMap {
        /// `namespace`, or kube-system
        namespace: String,
        /// `name`
        name: String,
    },
}

impl PolicyPlace {
    /// The field that names it, below `algorithmSource`.
    pub(crate) fn field(&self) -> &'static str {
        match self {
            PolicyPlace::File { .. } => "policy.file.path",
            PolicyPlace::ConfigMap { .. } => "policy.configMap",
        }
    }
}

impl fmt::Display for PolicyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyPlace::File { path } => write!(f, "the file {path}"),
            PolicyPlace::ConfigMap { namespace, name } => write!(f, "the ConfigMap {namespace}/{name}"),
        }
    }
}

impl PolicySource {
    /// The one place that is named; none if none is, or both are.
    fn place(self) -> Option<PolicyPlace> {
        match (self.file, self.config_map) {
            (Some(FileSource { path }), None) => Some(PolicyPlace::File { path }),
            (None, Some(ConfigMapSource { namespace, name })) => {
                let namespace = if namespace.is_empty() { "kube-system".to_owned() } else { namespace };
                Some(PolicyPlace::ConfigMap { namespace, name })
            }
            _ => None,
        }
    }
}

/// Where a configuration says that its Policy is, if that is what it goes by.
pub(crate) fn policy_place(fields: &Object, release: &Release) -> Option<PolicyPlace> {
    let value = source(fields, release)?;
    // What is wrong with it is said when it is converted.
    let source = Source::read(value, "", &mut Problems::default())?;
    let has_provider = source.provider.is_some_and(|provider| !provider.is_empty());
    source.policy.filter(|_| !has_provider)?.place()
}

fn source<'a>(fields: &'a Object, release: &Release) -> Option<&'a Value> {
    fields.get(NAME).filter(|value| !value.is_null() && release.fields.contains(&NAME))
}

/// Reads where the algorithm comes from; if from a Policy, it must have been given.
pub(super) fn read(
    fields: &Object,
    release: &Release,
    has_policy: bool,
    path: &str,
    problems: &mut Problems,
) -> Algorithm {
    let Some(value) = source(fields, release) else { return Algorithm::Default };
    let path = below(path, NAME);
    let source = Source::read(value, &path, problems).unwrap_or_default();
    let mut refuse = |path: String, message: String, hint: Option<String>| {
        problems.push(Problem::new(&codes::ALGORITHM_SOURCE, path, message).with_hint(hint));
    };
    match (source.provider.filter(|provider| !provider.is_empty()), source.policy) {
        (Some(_), Some(_)) => {
            refuse(path, "provider and policy are both set".to_owned(), Some("keep one of them".to_owned()));
        }
        (None, Some(PolicySource { file: Some(_), config_map: Some(_) })) => {
            let path = below(&path, "policy");
            refuse(path, "file and configMap are both set".to_owned(), Some("keep one of them".to_owned()));
        }
        (None, Some(source)) if !has_policy => {
            let Some(place) = source.place() else {
                refuse(below(&path, "policy"), "no file and no configMap is given".to_owned(), None);
                return Algorithm::Default;
            };
            let path = below(&path, place.field());
            let message = format!("the plugins are chosen by a Policy in {place}, which was not given");
            let hint = HOW_TO_GIVE.to_owned();
            problems.push(Problem::new(&codes::NO_POLICY, path, message).with_hint(hint));
        }
        (None, Some(_)) => {
            let message = "the Policy was turned into plugins, so that nothing has to be read from there";
            problems.add(&codes::FIELD_MOVED, below(&path, "policy"), message);
        }
        (Some(provider), None) => return by_provider(&provider, &below(&path, "provider"), problems),
        (None, None) => {}
    }
    Algorithm::Default
}

fn by_provider(provider: &str, path: &str, problems: &mut Problems) -> Algorithm {
    match provider {
        "DefaultProvider" => Algorithm::Default,
        "ClusterAutoscalerProvider" => {
            let message =
                "ClusterAutoscalerProvider became scoringStrategy MostAllocated of NodeResourcesFit";
            problems.add(&codes::FIELD_MOVED, path, message);
            Algorithm::ClusterAutoscaler
        }
        other => {
            let message = format!("algorithm provider {other:?} is not registered");
            let hint = "DefaultProvider and ClusterAutoscalerProvider are known".to_owned();
            problems.push(Problem::new(&codes::ALGORITHM_SOURCE, path, message).with_hint(hint));
            Algorithm::Default
        }
    }
}
