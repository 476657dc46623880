//! `kubescheduler.config.k8s.io/v1beta3`, read by Kubernetes 1.23 to 1.28.
//!
//! It is v1 with some plugins that are gone.

use supercargo_framework::Point;

use super::args::{self, OldArgs};
use super::release::Release;
use super::tables::{self, Fate};
use super::wanted::Wanted;
use crate::codes;
use crate::problem::Problems;
use crate::types::{Plugin, PluginConfig, PluginSet, Plugins, Slot};

pub(super) const RELEASE: Release = Release {
    version: "v1beta3",
    kubernetes: "1.28",
    fields: &["parallelism"],
    points: &["preEnqueue", "postFilter", "preScore", "multiPoint"],
    defaults: &[],
    replaces_defaults: true,
    lists_constraints: false,
    loose_extenders: false,
};

/// Puts plugins that are left in the place of those that are gone.
pub(super) fn plugins(mut plugins: Plugins, path: &str, problems: &mut Problems) -> Plugins {
    let defaults_are_off = plugins.multi_point.disables("*");
    for slot in Slot::all() {
        let path = format!("{path}.{}", slot.config_name());
        let set = match slot {
            Slot::Point(point) => super::plugins::at(&mut plugins, point),
            Slot::MultiPoint => &mut plugins.multi_point,
            Slot::PlacementGenerate | Slot::PlacementScore => continue,
        };
        enabled(set, slot, defaults_are_off, &path, problems);
        disabled(set, &path, problems);
    }
    plugins
}

/// The arguments of today.
pub(super) fn plugin_config(
    old: Vec<OldArgs>,
    release: &Release,
    problems: &mut Problems,
) -> Vec<PluginConfig> {
    args::today(old, &Wanted::default(), release, problems)
}

fn enabled(set: &mut PluginSet, slot: Slot, defaults_are_off: bool, path: &str, problems: &mut Problems) {
    let mut today: Vec<Plugin> = Vec::new();
    for (index, plugin) in std::mem::take(&mut set.enabled).into_iter().enumerate() {
        let path = format!("{path}.enabled[{index}]");
        let successor = match tables::fate(&plugin.name) {
            Some(Fate::VolumeLimits) => "NodeVolumeLimits",
            Some(Fate::SystemSpreading) => "PodTopologySpread",
            _ => {
                today.push(plugin);
                continue;
            }
        };
        let message = format!("{} is part of {successor} now", plugin.name);
        problems.add(&codes::PLUGIN_REPLACED, path, message);
        let implements = match slot {
            Slot::Point(point) => tables::points(successor).is_some_and(|points| points.contains(&point)),
            _ => true,
        };
        // Where the defaults are on, the successor is there already.
        if implements && (defaults_are_off || set.disables("*")) {
            today.push(Plugin { name: successor.to_owned(), ..plugin });
        }
    }
    let mut names = std::collections::BTreeSet::new();
    let replaced =
        |plugin: &Plugin| ["NodeVolumeLimits", "PodTopologySpread"].contains(&plugin.name.as_str());
    today.retain(|plugin| !replaced(plugin) || names.insert(plugin.name.clone()));
    set.enabled = today;
}

fn disabled(set: &mut PluginSet, path: &str, problems: &mut Problems) {
    let entries = std::mem::take(&mut set.disabled);
    let all = entries.iter().any(|plugin| plugin.name == "*");
    for (index, plugin) in entries.into_iter().enumerate() {
        let gone = matches!(tables::fate(&plugin.name), Some(Fate::VolumeLimits | Fate::SystemSpreading));
        if !gone {
            set.disabled.push(plugin);
        } else if tables::fate(&plugin.name) == Some(Fate::VolumeLimits) && !all {
            let filter = Point::Filter.config_name();
            let message = format!(
                "{} cannot be disabled by itself: NodeVolumeLimits counts those volumes too, and stays at {filter}",
                plugin.name
            );
            problems.add(&codes::PLUGIN_GONE, format!("{path}.disabled[{index}]"), message);
        }
    }
}
