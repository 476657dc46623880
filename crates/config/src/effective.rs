//! The whole of a configuration, with nothing left to defaults.

use serde_json::{Map, Value};
use supercargo_framework::Registry;

use crate::args;
use crate::decode::{KUBE_API_VERSION, KUBE_KIND, OWN_API_VERSION, OWN_KIND};
use crate::merge::merged_plugins;
use crate::own::SupercargoConfiguration;
use crate::types::{KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig, Plugins};

/// The configuration as kube-scheduler's `--write-config-to` shows it: plugins merged with the default ones, and the
/// arguments of all enabled plugins, by name. Arguments that cannot be read stay as they are.
pub fn effective(config: &KubeSchedulerConfiguration, registry: &Registry) -> KubeSchedulerConfiguration {
    let mut config = config.clone();
    config.percentage_of_nodes_to_score.get_or_insert(0);
    for profile in &mut config.profiles {
        let merged = merged_plugins(&profile.plugins);
        profile.plugin_config = all_args(profile, &merged, registry);
        profile.plugins = merged;
    }
    config
}

/// Both documents as YAML; keys are sorted, as upstream sorts them.
pub fn to_yaml(kube: &KubeSchedulerConfiguration, own: &SupercargoConfiguration) -> String {
    let kube = document(KUBE_API_VERSION, KUBE_KIND, serde_json::to_value(kube));
    let own = document(OWN_API_VERSION, OWN_KIND, serde_json::to_value(own));
    format!("{kube}---\n{own}")
}

fn all_args(profile: &KubeSchedulerProfile, merged: &Plugins, registry: &Registry) -> Vec<PluginConfig> {
    let enabled = registry.iter().filter(|plugin| merged.enables(plugin.name));
    enabled
        .filter_map(|plugin| {
            let written = profile.plugin_config.iter().find(|entry| entry.name == plugin.name);
            let args = match (&plugin.args_kind, written) {
                (None, None) => return None,
                (None, Some(entry)) => entry.args.clone(),
                (Some(kind), entry) => {
                    let read = entry.map_or(Ok(None), |entry| args::read(entry, registry, ""));
                    match read.ok().and_then(|args| plugin.read_args(args.as_ref()).ok()) {
                        // Upstream leaves out what is not set, and so the file stays readable.
                        Some(args) => typed(KUBE_API_VERSION, kind, args::without_nulls(&args)),
                        None => entry?.args.clone(),
                    }
                }
            };
            Some(PluginConfig { name: plugin.name.to_owned(), args })
        })
        .filter(|entry| !entry.args.is_null())
        .collect()
}

pub(crate) fn typed(api_version: &str, kind: &str, value: Value) -> Value {
    let mut fields = match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    Value::Object(fields)
}

fn document(api_version: &str, kind: &str, value: serde_json::Result<Value>) -> String {
    print_yaml(&typed(api_version, kind, value.expect("our types hold nothing that JSON cannot")))
}

/// A value as YAML, as the configuration is printed.
pub fn print_yaml(value: &Value) -> String {
    let options = serde_saphyr::ser_options! { compact_list_indent: true };
    serde_saphyr::to_string_with_options(value, options).expect("YAML can hold whatever JSON can")
}
