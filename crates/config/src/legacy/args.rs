//! Arguments of plugins: what moved to another plugin, and what was a field of its own.

use serde_json::{Map, Value, json};

use super::release::Release;
use super::tables::{self, Fate};
use super::wanted::Wanted;
use crate::codes;
use crate::decode::{KUBE_API_VERSION, KUBE_GROUP};
use crate::fields::{Object, below, wrong_type};
use crate::problem::{Problem, Problems};
use crate::types::PluginConfig;

/// The arguments of one plugin in the old file.
#[derive(Clone, Debug)]
pub(super) struct OldArgs {
    pub(super) name: String,
    pub(super) args: Value,
    /// Where they stand.
    pub(super) path: String,
}

/// The arguments of today.
pub(super) fn today(
    old: Vec<OldArgs>,
    wanted: &Wanted,
    release: &Release,
    problems: &mut Problems,
) -> Vec<PluginConfig> {
    let mut list = Vec::new();
    let mut strategy_args = Object::new();
    let mut labels = Vec::new();
    for mut old in old {
        if !matches!(old.args, Value::Null | Value::Object(_)) {
            if tables::points(&old.name).is_some() || tables::fate(&old.name).is_some() {
                wrong_type(&old.args, "an object", &old.path, problems);
                continue;
            }
        } else {
            update_kind(&mut old, problems);
        }
        match tables::fate(&old.name) {
            None => {
                refuse_strategy(&old, release, problems);
                list.push(PluginConfig { name: old.name, args: old.args });
            }
            Some(Fate::Strategy(strategy)) if wanted.strategy == Some(strategy) => {
                strategy_args = scoring_strategy(strategy, &old, problems);
            }
            Some(Fate::AddedAffinity) if wanted.filters_labels => labels.push(old),
            Some(_) => {
                let message = format!("{} is not there any more, so its arguments were dropped", old.name);
                problems.add(&codes::ARGS_DROPPED, old.path, message);
            }
        }
    }
    // After NodeAffinity's own arguments, wherever those stand.
    for old in labels {
        add_affinity(&mut list, &old, problems);
    }
    match wanted.strategy {
        Some(strategy) if strategy != "LeastAllocated" || !strategy_args.is_empty() => {
            strategy_args.insert("type".to_owned(), strategy.into());
            args_of(&mut list, "NodeResourcesFit").insert("scoringStrategy".to_owned(), strategy_args.into());
        }
        _ => {}
    }
    default_constraints(&mut list, wanted, release);
    list.retain(|entry| tables::points(&entry.name).is_none() || !is_empty(&entry.args));
    list
}

/// Sets an argument unless it is set.
pub(super) fn set(list: &mut Vec<PluginConfig>, plugin: &str, name: &str, value: Value) -> bool {
    let args = args_of(list, plugin);
    let free = args.get(name).is_none_or(Value::is_null);
    if free {
        args.insert(name.to_owned(), value);
    }
    free
}

/// The arguments of a plugin, to be changed.
fn args_of<'l>(list: &'l mut Vec<PluginConfig>, name: &str) -> &'l mut Object {
    let index = list.iter().position(|entry| entry.name == name).unwrap_or_else(|| {
        list.push(PluginConfig { name: name.to_owned(), args: Value::Null });
        list.len() - 1
    });
    let args = &mut list[index].args;
    if !args.is_object() {
        *args = Value::Object(Map::new());
    }
    args.as_object_mut().expect("was made an object")
}

/// In-tree arguments need no kind, and the old version's would be refused. Plugins of others keep theirs, as v1.
fn update_kind(old: &mut OldArgs, problems: &mut Problems) {
    let Value::Object(fields) = &mut old.args else { return };
    let Some(version) = fields.get("apiVersion").and_then(Value::as_str) else { return };
    if version.split('/').next() != Some(KUBE_GROUP) || version == KUBE_API_VERSION {
        return;
    }
    if tables::points(&old.name).is_some() || tables::fate(&old.name).is_some() {
        fields.remove("apiVersion");
        fields.remove("kind");
    } else {
        let message = format!("{version} became {KUBE_API_VERSION}; see whether {} reads that", old.name);
        fields.insert("apiVersion".to_owned(), KUBE_API_VERSION.into());
        problems.add(&codes::ARGS_MOVED, below(&old.path, "apiVersion"), message);
    }
}

/// Versions in which strategies were plugins had no such field.
fn refuse_strategy(old: &OldArgs, release: &Release, problems: &mut Problems) {
    if old.name == "NodeResourcesFit"
        && !release.replaces_defaults
        && old.args.get("scoringStrategy").is_some()
    {
        let path = below(&old.path, "scoringStrategy");
        let hint = format!("{} has plugins instead, such as NodeResourcesMostAllocated", release.version);
        let problem = Problem::new(&codes::UNKNOWN_FIELD, path, "unknown field \"scoringStrategy\"");
        problems.push(problem.with_hint(hint));
    }
}

fn scoring_strategy(strategy: &str, old: &OldArgs, problems: &mut Problems) -> Object {
    let mut args = Object::new();
    let Value::Object(given) = &old.args else { return args };
    let known = ["apiVersion", "kind", "resources", "shape"];
    crate::fields::report_unknown(given, &known, &old.path, problems);
    let is_ratio = strategy == "RequestedToCapacityRatio";
    if let Some(Value::Array(resources)) = given.get("resources") {
        let weightless = |resource: &Value| resource.get("weight").and_then(Value::as_i64) == Some(0);
        let resources: Vec<Value> = resources.iter().map(in_lower_case).collect();
        if !is_ratio && resources.iter().any(weightless) {
            let message = "resources of weight 0 did not count and were left out: 0 means 1 now";
            problems.add(&codes::ARGS_DROPPED, below(&old.path, "resources"), message);
        }
        let counted: Vec<Value> =
            resources.into_iter().filter(|resource| is_ratio || !weightless(resource)).collect();
        if !counted.is_empty() {
            args.insert("resources".to_owned(), counted.into());
        }
    }
    if let (true, Some(shape)) = (is_ratio, given.get("shape")) {
        let shape = match shape {
            Value::Array(points) => points.iter().map(in_lower_case).collect(),
            other => other.clone(),
        };
        args.insert("requestedToCapacityRatio".to_owned(), json!({ "shape": shape }));
    }
    let message = format!("became scoringStrategy {strategy} of NodeResourcesFit's arguments");
    problems.add(&codes::ARGS_MOVED, &old.path, message);
    args
}

/// The alpha versions took `Name` and `name`.
fn in_lower_case(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
        }
        other => other.clone(),
    }
}

/// Labels that nodes must have, or must not have, as a requirement of all pods.
fn add_affinity(list: &mut Vec<PluginConfig>, old: &OldArgs, problems: &mut Problems) {
    let mut requirements: Vec<Value> = Vec::new();
    for (field, operator) in [("presentLabels", "Exists"), ("absentLabels", "DoesNotExist")] {
        for label in old.args.get(field).and_then(Value::as_array).into_iter().flatten() {
            requirements.push(json!({ "key": label, "operator": operator }));
        }
    }
    for field in ["presentLabelsPreference", "absentLabelsPreference"] {
        if old.args.get(field).is_some_and(|labels| !is_empty(labels)) {
            let message = "labels that are only preferred have no counterpart and were dropped: pods may go to other nodes";
            problems.add(&codes::ARGS_DROPPED, below(&old.path, field), message);
        }
    }
    if requirements.is_empty() {
        return;
    }
    problems.add(&codes::ARGS_MOVED, &old.path, "became addedAffinity of NodeAffinity's arguments");
    let affinity = args_of(list, "NodeAffinity").entry("addedAffinity").or_insert_with(|| json!({}));
    if affinity.is_null() {
        *affinity = json!({});
    }
    let terms = affinity
        .pointer_mut("/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms")
        .and_then(Value::as_array_mut)
        .filter(|terms| !terms.is_empty());
    if let Some(terms) = terms {
        // One of the terms has to hold, so that each gets the requirements.
        for term in terms.iter_mut().filter_map(Value::as_object_mut) {
            let expressions = term.entry("matchExpressions").or_insert_with(|| json!([]));
            if let Value::Array(expressions) = expressions {
                expressions.extend(requirements.clone());
            }
        }
    } else if let Value::Object(affinity) = affinity {
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": requirements }] });
        affinity.insert("requiredDuringSchedulingIgnoredDuringExecution".to_owned(), terms);
    }
}

/// Writes down what PodTopologySpread took for granted.
fn default_constraints(list: &mut Vec<PluginConfig>, wanted: &Wanted, release: &Release) {
    let entry = list.iter().find(|entry| entry.name == "PodTopologySpread");
    let given = |name: &str| entry.and_then(|entry| entry.args.get(name)).filter(|value| !is_empty(value));
    let has_constraints = given("defaultConstraints").is_some();
    let scores = wanted.get(supercargo_framework::Point::Score, "PodTopologySpread").is_some();
    // Since v1beta2, constraints without the type have been an error, which stays one.
    let listed = if release.lists_constraints {
        has_constraints || scores && !wanted.spreads
    } else {
        has_constraints
    };
    if given("defaultingType").is_none() && listed && !(release.replaces_defaults && has_constraints) {
        set(list, "PodTopologySpread", "defaultingType", "List".into());
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
