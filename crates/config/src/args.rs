//! The arguments of plugins, checked against what the plugins take.

use serde_json::Value;
use supercargo_framework::{FieldProblem, PluginType, ProblemKind, Registry};

use crate::codes;
use crate::decode::{KUBE_API_VERSION, KUBE_GROUP};
use crate::fields::{below, duration_hint};
use crate::nearest::did_you_mean;
use crate::places::{is_within, parent};
use crate::plain_words;
use crate::problem::{Problem, Problems};
use crate::types::{KubeSchedulerConfiguration, PluginConfig};

/// How many values that cannot be read are told of the arguments of one plugin.
const UNREADABLE_MAX: usize = 32;

/// Why arguments were refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Whether they could not be read at all, which upstream minds even if the plugin is not enabled.
    pub(crate) unreadable: bool,
    pub(crate) problems: Problems,
}

/// What cannot be read among the arguments of all profiles: upstream finds that before it looks at plugins.
pub(crate) fn unreadable(config: &KubeSchedulerConfiguration, registry: &Registry) -> Problems {
    let mut problems = Problems::default();
    for (index, profile) in config.profiles.iter().enumerate() {
        for (position, entry) in profile.plugin_config.iter().enumerate() {
            let refused = read(entry, registry, &path(index, position)).err();
            if let Some(refusal) = refused.filter(|refusal| refusal.unreadable) {
                problems.extend(refusal.problems);
            }
        }
    }
    problems
}

pub(crate) fn path(profile: usize, position: usize) -> String {
    format!("profiles[{profile}].pluginConfig[{position}]")
}

/// The arguments as the plugin takes them; none if it takes none, does not exist, or nothing was written.
pub(crate) fn read(entry: &PluginConfig, registry: &Registry, path: &str) -> Result<Option<Value>, Refusal> {
    let path = below(path, "args");
    let Some(plugin) = registry.get(&entry.name) else { return Ok(None) };
    let Some(kind) = &plugin.args_kind else { return Ok(None) };
    let mut args = entry.args.clone();
    if let Value::Object(fields) = &mut args {
        let mut take = |name: &str| fields.remove(name).filter(|value| !value.is_null());
        let given = (take("apiVersion"), take("kind"));
        check_kind(&entry.name, kind, given, registry, &path)?;
    }
    let mut written = Some(args).filter(|args| !args.is_null());
    // A field that does not exist is refused even if it is null. What cannot be read is taken out, to find what else is wrong.
    let mut unread = Vec::new();
    while let Some(args) = &mut written
        && let Err(found) = plugin.read_args(Some(args))
        && is_unreadable(&found)
    {
        let is_gone = found.iter().all(|problem| remove(args, &problem.path));
        unread.extend(found);
        if !is_gone || unread.len() >= UNREADABLE_MAX {
            break;
        }
    }
    let args = written.as_ref().map(without_nulls);
    let found = plugin.read_args(args.as_ref());
    if unread.is_empty() {
        return match found {
            Ok(_) => Ok(args),
            Err(found) => Err(refusal(plugin, found, &path)),
        };
    }
    // What depends on something that could not be read says nothing new.
    let is_new = |problem: &FieldProblem| {
        problem.kind != ProblemKind::Unreadable
            && !unread.iter().any(|unread| {
                is_within(&problem.path, &unread.path) || is_within(&unread.path, &problem.path)
            })
    };
    let others: Vec<FieldProblem> = found.err().into_iter().flatten().filter(is_new).collect();
    Err(refusal(plugin, unread.into_iter().chain(others).collect(), &path))
}

/// Takes a field out of a value, or makes an item of a list null; whether it was there.
fn remove(value: &mut Value, path: &str) -> bool {
    let (outer, last) = path.split_at(parent(path).len());
    let Some(outer) = find(value, outer) else { return false };
    match (outer, item_index(last)) {
        (Value::Array(items), Some(index)) => {
            items.get_mut(index).is_some_and(|item| !std::mem::replace(item, Value::Null).is_null())
        }
        (Value::Object(fields), _) => fields.remove(last.trim_start_matches('.')).is_some(),
        _ => false,
    }
}

/// What stands at a path.
fn find<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    if path.is_empty() {
        return Some(value);
    }
    let (outer, last) = path.split_at(parent(path).len());
    match (find(value, outer)?, item_index(last)) {
        (Value::Array(items), Some(index)) => items.get_mut(index),
        (Value::Object(fields), _) => fields.get_mut(last.trim_start_matches('.')),
        _ => None,
    }
}

fn item_index(part: &str) -> Option<usize> {
    part.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

fn is_unreadable(found: &[FieldProblem]) -> bool {
    found.iter().any(|problem| problem.kind == ProblemKind::Unreadable)
}

/// What a plugin minds about its arguments.
pub(crate) fn refusal(plugin: &PluginType, found: Vec<FieldProblem>, path: &str) -> Refusal {
    let unreadable = is_unreadable(&found);
    let mut problems = Problems::default();
    for FieldProblem { path: below_args, kind, detail } in found {
        let words = if kind == ProblemKind::Unreadable { plain_words::of(&detail) } else { detail.clone() };
        let text = FieldProblem { path: String::new(), kind: kind.clone(), detail: words }.to_string();
        let path = if below_args.is_empty() { path.to_owned() } else { below(path, &below_args) };
        problems.push(if kind == ProblemKind::Unreadable {
            let message = format!("decoding args for plugin {}: {text}", plugin.name);
            Problem::new(&codes::ARGS_UNREADABLE, path, message).with_hint(field_hint(&detail))
        } else {
            Problem::new(&codes::ARGS_INVALID, path, format!("initializing plugin {:?}: {text}", plugin.name))
        });
    }
    Refusal { unreadable, problems }
}

fn check_kind(
    name: &str,
    kind: &str,
    (given_version, given_kind): (Option<Value>, Option<Value>),
    registry: &Registry,
    path: &str,
) -> Result<(), Refusal> {
    let refuse = |field: &str, message: String| {
        let mut problems = Problems::default();
        let hint = format!("leave `apiVersion` and `kind` out, or write {KUBE_API_VERSION} and {kind}");
        problems.push(Problem::new(&codes::ARGS_KIND, below(path, field), message).with_hint(hint));
        Err(Refusal { unreadable: true, problems })
    };
    let text = |given: Option<Value>, default: &str| match given {
        None => Ok(default.to_owned()),
        Some(Value::String(text)) if text.is_empty() => Ok(default.to_owned()),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(other),
    };
    let given_version = match text(given_version, KUBE_API_VERSION) {
        Ok(version) => version,
        Err(other) => return refuse("apiVersion", format!("expected a string, got {other}")),
    };
    let given_kind = match text(given_kind, kind) {
        Ok(kind) => kind,
        Err(other) => return refuse("kind", format!("expected a string, got {other}")),
    };
    let unregistered = format!(
        "decoding args for plugin {name}: no kind {given_kind:?} is registered for version {given_version:?}"
    );
    if given_version != KUBE_API_VERSION {
        return refuse("apiVersion", unregistered);
    }
    if given_kind == kind {
        return Ok(());
    }
    if registry.iter().all(|plugin| plugin.args_kind.as_ref() != Some(&given_kind)) {
        return refuse("kind", unregistered);
    }
    refuse(
        "kind",
        format!("args for plugin {name} were not of type {kind}.{KUBE_GROUP}, got {given_kind}.{KUBE_GROUP}"),
    )
}

/// Null is the same as absent for Go, but not for serde.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// What was meant by a field or a value that does not exist, or how a duration is written.
fn field_hint(detail: &str) -> Option<String> {
    if let Some((name, known)) = plain_words::names(detail, "unknown field `") {
        let all = || (!known.is_empty()).then(|| format!("the fields here are {}", known.join(", ")));
        return did_you_mean(name, known.iter().copied()).or_else(all);
    }
    if let Some((name, known)) = plain_words::names(detail, "unknown variant `") {
        return did_you_mean(name, known);
    }
    let duration = detail.strip_prefix("time: ")?.rsplit('"').nth(1)?;
    Some(duration_hint(duration))
}
