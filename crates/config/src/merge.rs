//! The user's plugins together with the default ones.

use crate::defaults::default_plugins;
use crate::types::{PluginSet, Plugins};

/// The plugins that a profile means: the default ones as the user changed them. `multiPoint` is not expanded, and
/// `disabled` stays, because the expansion needs it.
pub fn merged_plugins(custom: &Plugins) -> Plugins {
    // By default only multiPoint has something to merge with.
    Plugins { multi_point: merge(default_plugins().multi_point, &custom.multi_point), ..custom.clone() }
}

fn merge(default: PluginSet, custom: &PluginSet) -> PluginSet {
    let all_disabled = custom.disables("*");
    let mut replaced = Vec::new();
    let mut enabled = Vec::new();
    for plugin in default.enabled.into_iter().filter(|plugin| !all_disabled && !custom.disables(&plugin.name))
    {
        // Of several entries the last one replaces the default; the others are appended and fail later.
        match custom.enabled.iter().rposition(|entry| entry.name == plugin.name) {
            Some(index) => {
                replaced.push(index);
                enabled.push(custom.enabled[index].clone());
            }
            None => enabled.push(plugin),
        }
    }
    let rest = custom.enabled.iter().enumerate().filter(|(index, _)| !replaced.contains(index));
    enabled.extend(rest.map(|(_, plugin)| plugin.clone()));
    PluginSet { enabled, disabled: custom.disabled.clone() }
}
