//! A configuration with nothing in it that would be there anyway.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::decode::{KUBE_API_VERSION, KUBE_KIND, Loaded, OWN_API_VERSION, OWN_KIND};
use crate::effective::{print_yaml, typed};
use crate::own::SupercargoConfiguration;
use crate::types::KubeSchedulerConfiguration;

/// What has to be written to get this configuration, as YAML. The settings of our own follow if they say something.
pub fn minimal_yaml(loaded: &Loaded) -> String {
    let mut text = print_yaml(&kube(&loaded.kube));
    if loaded.own != SupercargoConfiguration::default() {
        let own = differing(&loaded.own, &SupercargoConfiguration::default());
        text.push_str("---\n");
        text.push_str(&print_yaml(&typed(OWN_API_VERSION, OWN_KIND, Value::Object(own))));
    }
    text
}

/// The same as JSON, which has room for one document: the settings of our own are left out.
pub fn minimal_json(loaded: &Loaded) -> String {
    serde_json::to_string_pretty(&kube(&loaded.kube)).expect("values can always be written as JSON") + "\n"
}

fn kube(config: &KubeSchedulerConfiguration) -> Value {
    let default = KubeSchedulerConfiguration::default();
    let mut fields = differing(config, &default);
    // It follows enableProfiling, so that it says something if and only if it does not.
    if config.enable_contention_profiling == config.enable_profiling {
        fields.remove("enableContentionProfiling");
    } else {
        fields.insert("enableContentionProfiling".to_owned(), config.enable_contention_profiling.into());
    }
    for name in ["profiles", "extenders"] {
        if let Some(Value::Array(items)) = fields.get_mut(name) {
            items.iter_mut().for_each(remove_empty);
        }
    }
    typed(KUBE_API_VERSION, KUBE_KIND, Value::Object(fields))
}

/// The fields that are not as in the default, also within objects.
fn differing(value: &impl Serialize, default: &impl Serialize) -> Map<String, Value> {
    let fields =
        |value: serde_json::Result<Value>| match value.expect("our types hold nothing that JSON cannot") {
            Value::Object(fields) => fields,
            other => unreachable!("configurations are objects, not {other}"),
        };
    without(fields(serde_json::to_value(value)), &fields(serde_json::to_value(default)))
}

fn without(fields: Map<String, Value>, default: &Map<String, Value>) -> Map<String, Value> {
    let differs = fields.into_iter().filter(|(name, value)| default.get(name) != Some(value));
    differs
        .map(|(name, value)| match (value, default.get(&name)) {
            (Value::Object(fields), Some(Value::Object(default))) => {
                (name, Value::Object(without(fields, default)))
            }
            (value, _) => (name, value),
        })
        .collect()
}

/// Removes points at which nothing is said, and a timeout that stands for the default.
fn remove_empty(item: &mut Value) {
    let Value::Object(fields) = item else { return };
    if let Some(Value::Object(points)) = fields.get_mut("plugins") {
        points.retain(|_, set| set.as_object().is_none_or(|set| !set.is_empty()));
        if points.is_empty() {
            fields.remove("plugins");
        }
    }
    if fields.get("httpTimeout").is_some_and(|timeout| timeout == "0s") {
        fields.remove("httpTimeout");
    }
}
