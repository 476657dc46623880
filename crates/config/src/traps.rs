//! Warnings: what is allowed, and hardly meant.

use serde_json::Value;
use supercargo_framework::{Point, Registry};

use crate::args;
use crate::build::ignored_by_scheduler;
use crate::codes;
use crate::defaults::{default_weight, is_default_plugin};
use crate::merge::merged_plugins;
use crate::nearest::did_you_mean;
use crate::plan::{Plan, implements};
use crate::problem::{Problem, Problems};
use crate::types::{KubeSchedulerConfiguration, KubeSchedulerProfile, Slot};

/// Plugins whose Score fails without what their PreScore worked out. NodeAffinity, NodeResourcesFit and
/// NodeResourcesBalancedAllocation work it out themselves when it is missing.
const NEED_PRE_SCORE: [&str; 3] = ["TaintToleration", "PodTopologySpread", "InterPodAffinity"];

/// Plugins and their points that fail without what their PreFilter worked out. NodeAffinity and VolumeZone work it
/// out themselves, NodeVolumeLimits does without.
const NEED_PRE_FILTER: [(&str, &[Point]); 8] = [
    ("NodePorts", &[Point::Filter]),
    ("NodeResourcesFit", &[Point::Filter]),
    ("VolumeRestrictions", &[Point::Filter]),
    ("VolumeBinding", &[Point::Filter, Point::PreScore, Point::Score, Point::Reserve, Point::PreBind]),
    ("PodTopologySpread", &[Point::Filter]),
    ("InterPodAffinity", &[Point::Filter]),
    ("DynamicResources", &[Point::Filter, Point::Score, Point::Reserve, Point::PreBind]),
    ("NodeDeclaredFeatures", &[Point::Filter]),
];

pub(crate) fn warn(
    config: &KubeSchedulerConfiguration,
    plans: &[Plan<'_>],
    registry: &Registry,
    problems: &mut Problems,
) {
    warn_of_all_nodes(config.percentage_of_nodes_to_score, "", problems);
    for (index, (profile, plan)) in config.profiles.iter().zip(plans).enumerate() {
        let path = format!("profiles[{index}]");
        warn_of_all_nodes(profile.percentage_of_nodes_to_score, &format!("{path}."), problems);
        warn_of_missing_state(plan, &path, problems);
        warn_of_no_preemption(plan, &path, problems);
        warn_of_unkept(plan, registry, &path, problems);
        for slot in Slot::all() {
            warn_of_enabled(profile, plan, slot, registry, &path, problems);
            warn_of_disabled(profile, slot, registry, &path, problems);
        }
        warn_of_args(config, index, registry, problems);
    }
}

fn warn_of_all_nodes(percentage: Option<i32>, path: &str, problems: &mut Problems) {
    if percentage == Some(0) {
        let message = "0 means all nodes here, where kube-scheduler looks at a share that depends on the cluster's size";
        problems.add(&codes::ALL_NODES, format!("{path}percentageOfNodesToScore"), message);
    }
}

fn warn_of_missing_state(plan: &Plan<'_>, path: &str, problems: &mut Problems) {
    for name in NEED_PRE_SCORE {
        if plan.runs(name, Point::Score) && !plan.runs(name, Point::PreScore) {
            let message = format!(
                "{name} scores without its preScore: every pod with two or more feasible nodes will fail"
            );
            let hint = format!("disable {name} at score too, or enable it at preScore");
            let path = format!("{path}.plugins.preScore");
            problems.push(Problem::new(&codes::PRE_SCORE_MISSING, path, message).with_hint(hint));
        }
    }
    for (name, points) in NEED_PRE_FILTER {
        let failing: Vec<&str> =
            points.iter().filter(|point| plan.runs(name, **point)).map(|point| point.config_name()).collect();
        if !failing.is_empty() && !plan.runs(name, Point::PreFilter) {
            let points = failing.join(", ");
            // With one feasible node there is nothing to choose, and scoring is left out.
            let whom = if failing.iter().all(|point| ["preScore", "score"].contains(point)) {
                "every pod with two or more feasible nodes"
            } else {
                "every pod"
            };
            let message = format!("{name} runs at {points} without its preFilter: {whom} will fail");
            let hint = format!("disable {name} at {points} too, or enable it at preFilter");
            let path = format!("{path}.plugins.preFilter");
            problems.push(Problem::new(&codes::PRE_FILTER_MISSING, path, message).with_hint(hint));
        }
    }
}

fn warn_of_no_preemption(plan: &Plan<'_>, path: &str, problems: &mut Problems) {
    // DynamicResources only takes claims back. Any other plugin may well preempt.
    if plan.names(Point::PostFilter).all(|name| name == "DynamicResources") {
        let message = "no plugin preempts: pods of high priority will wait like all others";
        problems.add(&codes::NO_PREEMPTION, format!("{path}.plugins.postFilter"), message);
    }
}

/// Our own plugins of the default profile are left out: they concern few pods, or count.
fn warn_of_unkept(plan: &Plan<'_>, registry: &Registry, path: &str, problems: &mut Problems) {
    for (name, args) in plan.args.iter().filter(|(name, _)| !is_default_plugin(name)) {
        // Arguments that are wrong have been told of.
        let made = registry.get(name).and_then(|plugin| plugin.make(args.as_ref()).ok());
        let Some(why) = made.and_then(|plugin| plugin.unkept(|point| plan.runs(name, point))) else {
            continue;
        };
        let message = format!(
            "{name} is slow: {why}, so all plugins are asked about every node for each pod that it concerns"
        );
        problems.push(Problem::new(&codes::SLOW_PLUGIN, format!("{path}.plugins"), message));
    }
}

fn warn_of_enabled(
    profile: &KubeSchedulerProfile,
    plan: &Plan<'_>,
    slot: Slot,
    registry: &Registry,
    path: &str,
    problems: &mut Problems,
) {
    let key = slot.config_name();
    let set = profile.plugins.get(slot);
    if matches!(slot, Slot::PlacementGenerate | Slot::PlacementScore) && !set.enabled.is_empty() {
        let message = format!("{key} is alpha in kube-scheduler and is not run");
        problems.add(&codes::PLACEMENT_NOT_RUN, format!("{path}.plugins.{key}.enabled"), message);
    }
    for (position, entry) in set.enabled.iter().enumerate() {
        let name = entry.name.as_str();
        let path = format!("{path}.plugins.{key}.enabled[{position}]");
        let Some(plugin) = registry.get(name) else { continue };
        let scores = match slot {
            Slot::Point(Point::Score) | Slot::PlacementScore => true,
            Slot::MultiPoint => plugin.points().contains(&Point::Score),
            _ => false,
        };
        let given = entry.weight.filter(|weight| *weight != 0);
        if given.is_some() && !scores {
            let message = if slot == Slot::MultiPoint {
                format!("{name} has no scores, so its weight is ignored")
            } else {
                format!("the weight is ignored: weights count at score, not at {key}")
            };
            problems.add(&codes::WEIGHT_IGNORED, format!("{path}.weight"), message);
        }
        if entry.weight == Some(0) && scores {
            let hint = "disable it at score to leave it out, or leave the weight out to give it 1".to_owned();
            let message = format!("Invalid value: 0: {name} would count with weight 1, not 0");
            problems
                .push(Problem::new(&codes::ZERO_WEIGHT, format!("{path}.weight"), message).with_hint(hint));
            continue;
        }
        let default = default_weight(name).filter(|weight| *weight > 1);
        let effective = plan.weights.get(name).copied();
        if let Some(default) = default
            && given.is_none()
            && matches!(slot, Slot::Point(Point::Score) | Slot::MultiPoint)
            && effective == Some(1)
            && plan.runs(name, Point::Score)
        {
            let message = format!("{name} gets weight 1, not its default of {default}");
            let hint = format!("write `weight: {default}` to keep it");
            problems.push(Problem::new(&codes::DEFAULT_WEIGHT_LOST, path, message).with_hint(hint));
        }
    }
}

fn warn_of_disabled(
    profile: &KubeSchedulerProfile,
    slot: Slot,
    registry: &Registry,
    path: &str,
    problems: &mut Problems,
) {
    let key = slot.config_name();
    for (position, entry) in profile.plugins.get(slot).disabled.iter().enumerate() {
        let name = entry.name.as_str();
        let (message, hint) = match registry.get(name) {
            _ if name == "*" => continue,
            None => {
                let hint = did_you_mean(name, registry.iter().map(|plugin| plugin.name));
                (format!("there is no plugin {name:?} to disable"), hint)
            }
            Some(plugin) if !implements(plugin, slot) => {
                (format!("{name} takes no part in {key}, so there is nothing to disable"), None)
            }
            Some(_) => continue,
        };
        let path = format!("{path}.plugins.{key}.disabled[{position}].name");
        problems.push(Problem::new(&codes::DISABLED_NOTHING, path, message).with_hint(hint));
    }
}

fn warn_of_args(
    config: &KubeSchedulerConfiguration,
    index: usize,
    registry: &Registry,
    problems: &mut Problems,
) {
    let profile = &config.profiles[index];
    let merged = merged_plugins(&profile.plugins);
    let replaced = ignored_by_scheduler(config);
    for (position, entry) in profile.plugin_config.iter().enumerate() {
        let name = entry.name.as_str();
        let path = args::path(index, position);
        let Some(plugin) = registry.get(name) else {
            let hint = did_you_mean(name, registry.iter().map(|plugin| plugin.name));
            let message = format!("there is no plugin {name:?}, so its arguments have no effect");
            let problem = Problem::new(&codes::CONFIG_OF_UNKNOWN, format!("{path}.name"), message);
            problems.push(problem.with_hint(hint));
            continue;
        };
        if !merged.enables(name) {
            let message = format!("{name} is not enabled, so its arguments have no effect");
            problems.add(&codes::CONFIG_WITHOUT_PLUGIN, format!("{path}.name"), message);
        }
        let path = format!("{path}.args");
        let empty = entry.args.is_null() || entry.args.as_object().is_some_and(serde_json::Map::is_empty);
        if plugin.args_kind.is_none() && !empty {
            let message = format!("{name} takes no arguments, so these are ignored");
            problems.add(&codes::ARGS_IGNORED, path, message);
        } else if name == "NodeResourcesFit"
            && !replaced.is_empty()
            && entry
                .args
                .get("ignoredResources")
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
        {
            let message = format!("extenders replace these by {}", replaced.join(", "));
            problems.add(&codes::IGNORED_RESOURCES_REPLACED, format!("{path}.ignoredResources"), message);
        }
    }
}
