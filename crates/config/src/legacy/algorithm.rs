//! `algorithmSource`: a provider, or a Policy that lives elsewhere.

use super::release::Release;
use crate::codes;
use crate::fields::{Object, Read, below, read_object};
use crate::problem::{Problem, Problems};

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

/// Reads where the algorithm comes from; if from a Policy, it must have been given.
pub(super) fn read(
    fields: &Object,
    release: &Release,
    has_policy: bool,
    path: &str,
    problems: &mut Problems,
) -> Algorithm {
    let name = "algorithmSource";
    let Some(value) = fields.get(name).filter(|value| !value.is_null() && release.fields.contains(&name))
    else {
        return Algorithm::Default;
    };
    let path = below(path, name);
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
            let (path, place) = match (source.file, source.config_map) {
                (Some(file), _) => (below(&path, "policy.file.path"), format!("the file {}", file.path)),
                (None, Some(map)) => {
                    let namespace = if map.namespace.is_empty() { "kube-system" } else { &map.namespace };
                    (below(&path, "policy.configMap"), format!("the ConfigMap {namespace}/{}", map.name))
                }
                (None, None) => {
                    refuse(below(&path, "policy"), "no file and no configMap is given".to_owned(), None);
                    return Algorithm::Default;
                }
            };
            let message = format!("the plugins are chosen by a Policy in {place}, which was not given");
            let hint = "give it as well: supercargo config convert CONFIG POLICY".to_owned();
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
