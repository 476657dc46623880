//! The last stage: the plugins themselves, in their places.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use supercargo_framework::{Needs, PluginInstance, Point, Profile, Query, Registry};

use crate::args;
use crate::codes;
use crate::plan::Plan;
use crate::problem::Problems;
use crate::types::{KubeSchedulerConfiguration, KubeSchedulerProfile, Slot};

const FIT: &str = "NodeResourcesFit";

/// Makes all profiles, as a scheduler that starts does.
pub fn build_profiles(
    config: &KubeSchedulerConfiguration,
    registry: &Registry,
) -> Result<Vec<Profile>, Problems> {
    let mut problems = args::unreadable(config, registry);
    let mut plans = plan_all(config, registry, &mut problems);
    check_names(config, &mut problems);
    check_queue_sort(config, &plans, &mut problems);
    apply_extenders(config, registry, &mut plans, &mut problems);
    problems.into_result(())?;
    make_all(config, &plans, registry)
}

/// Makes all profiles as they are planned.
pub(crate) fn make_all(
    config: &KubeSchedulerConfiguration,
    plans: &[Plan<'_>],
    registry: &Registry,
) -> Result<Vec<Profile>, Problems> {
    let made = plans.iter().enumerate().map(|(index, plan)| make(config, index, plan, registry));
    let profiles: Vec<Profile> = made.collect::<Result<_, _>>()?;
    check_queries(&profiles)?;
    Ok(profiles)
}

/// There is one cluster, so that two queries cannot tell of the same facts.
fn check_queries(profiles: &[Profile]) -> Result<(), Problems> {
    let needs = Needs::of(profiles);
    let Some((one, other)) = needs.colliding_queries() else { return Ok(()) };
    let asks = |query: &Query, profile: &Profile| {
        profile.plugins().iter().find(|plugin| plugin.reads.queries.contains(query)).map(|plugin| plugin.name)
    };
    let asking = |query: &Query| {
        let mut found = profiles.iter().enumerate();
        found.find_map(|(index, profile)| Some((index, asks(query, profile)?))).unwrap_or_default()
    };
    let ((_, first), (index, second)) = (asking(one), asking(other));
    let message = format!(
        "{second} asks {other:?}, and {first} asks {one:?}: both would tell of objects of kind {}, or have one name",
        other.kind().id.kind
    );
    let mut problems = Problems::default();
    problems.add(&codes::QUERIES_COLLIDE, format!("profiles[{index}]"), message);
    Err(problems)
}

/// Makes one profile, as upstream's framework constructor does: what only the validator or the other profiles mind
/// does not matter, and extenders play no part. Arguments must be readable in all profiles all the same, because
/// upstream reads the whole file first.
///
/// # Panics
///
/// If there is no profile of that index; a loaded configuration has at least one.
pub fn build_profile(
    config: &KubeSchedulerConfiguration,
    registry: &Registry,
    index: usize,
) -> Result<Profile, Problems> {
    let mut problems = args::unreadable(config, registry);
    let plan = Plan::of(&config.profiles[index], index, registry, &mut problems);
    problems.into_result(())?;
    make(config, index, &plan, registry)
}

pub(crate) fn plan_all<'r>(
    config: &KubeSchedulerConfiguration,
    registry: &'r Registry,
    problems: &mut Problems,
) -> Vec<Plan<'r>> {
    let profiles = config.profiles.iter().enumerate();
    profiles.map(|(index, profile)| Plan::of(profile, index, registry, problems)).collect()
}

/// A pod's `schedulerName` must lead to one profile.
pub(crate) fn check_names(config: &KubeSchedulerConfiguration, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, profile) in config.profiles.iter().enumerate() {
        let name = &profile.scheduler_name;
        let path = format!("profiles[{index}].schedulerName");
        if name.is_empty() {
            problems.add(&codes::NO_SCHEDULER_NAME, path, "Required value: scheduler name is needed");
        } else if !seen.insert(name) {
            let message = format!("duplicate profile with scheduler name {name:?}");
            problems.add(&codes::DUPLICATE_PROFILE, path, message);
        }
    }
}

/// All profiles share a queue, so they must agree on its order.
pub(crate) fn check_queue_sort(
    config: &KubeSchedulerConfiguration,
    plans: &[Plan<'_>],
    problems: &mut Problems,
) {
    let queue_sort = |index: usize| {
        let plugin = plans[index].names(Point::QueueSort).next()?;
        let entry = config.profiles[index].plugin_config.iter().find(|entry| entry.name == plugin);
        Some((plugin, entry.map(|entry| &entry.args).filter(|args| !args.is_null())))
    };
    if plans.is_empty() {
        return;
    }
    let Some((first, first_args)) = queue_sort(0) else { return };
    for (index, profile) in config.profiles.iter().enumerate().skip(1) {
        let name = &profile.scheduler_name;
        let message = match queue_sort(index) {
            Some((plugin, _)) if plugin != first => {
                format!("different queue sort plugins for profile {name:?}: {plugin:?}, first: {first:?}")
            }
            Some((_, args)) if args != first_args => {
                format!("different queue sort plugin args for profile {name:?}")
            }
            _ => continue,
        };
        problems.add(&codes::QUEUE_SORT_DIFFERS, format!("profiles[{index}].plugins.queueSort"), message);
    }
}

/// Resources that extenders look after replace what NodeResourcesFit ignores.
pub(crate) fn apply_extenders(
    config: &KubeSchedulerConfiguration,
    registry: &Registry,
    plans: &mut [Plan<'_>],
    problems: &mut Problems,
) {
    let ignored = ignored_by_scheduler(config);
    if ignored.is_empty() {
        return;
    }
    for (index, (profile, plan)) in config.profiles.iter().zip(plans).enumerate() {
        let Some(args) = plan.args.get_mut(FIT) else {
            if !has_fit_args(profile) {
                let message = "can't find NodeResourcesFitArgs in plugin config";
                problems.add(&codes::NO_FIT_ARGS, format!("profiles[{index}]"), message);
            }
            continue;
        };
        let defaulted = registry.get(FIT).and_then(|plugin| plugin.read_args(args.as_ref()).ok());
        if let Some(Value::Object(mut fields)) = defaulted {
            fields.insert("ignoredResources".to_owned(), Value::from(ignored.clone()));
            *args = Some(Value::Object(fields));
        }
    }
}

pub(crate) fn ignored_by_scheduler(config: &KubeSchedulerConfiguration) -> Vec<String> {
    let resources = config.extenders.iter().flat_map(|extender| &extender.managed_resources);
    resources.filter(|resource| resource.ignored_by_scheduler).map(|resource| resource.name.clone()).collect()
}

fn has_fit_args(profile: &KubeSchedulerProfile) -> bool {
    profile.plugin_config.iter().any(|entry| entry.name == FIT)
}

fn make(
    config: &KubeSchedulerConfiguration,
    index: usize,
    plan: &Plan<'_>,
    registry: &Registry,
) -> Result<Profile, Problems> {
    let written = &config.profiles[index];
    let mut problems = Problems::default();
    let mut instances: BTreeMap<&str, PluginInstance> = BTreeMap::new();
    for (name, args) in &plan.args {
        let plugin = registry.get(name).expect("a plan holds plugins of the registry only");
        match plugin.make(args.as_ref()) {
            Ok(instance) => drop(instances.insert(name, instance)),
            Err(found) => {
                let position = written.plugin_config.iter().position(|entry| entry.name == *name);
                let path = position.map_or_else(
                    || format!("profiles[{index}]"),
                    |position| format!("{}.args", args::path(index, position)),
                );
                problems.extend(args::refusal(plugin, found, &path).problems);
            }
        }
    }
    problems.into_result(())?;

    let mut profile = Profile::new(&written.scheduler_name);
    profile.percentage_of_nodes_to_score = percentage(config, written);
    for point in Point::ALL {
        for plugin in plan.points.get(&Slot::Point(point)).into_iter().flatten() {
            let weight = plan.weights.get(plugin.name).copied().unwrap_or(1);
            let added = profile.add(&instances[plugin.name], point, weight);
            assert!(added, "{} is planned for {point:?}, which it does not implement", plugin.name);
        }
    }
    // A plugin that only observes, or only has a page, is at no point.
    for instance in instances.values() {
        profile.add_apart(instance);
    }
    Ok(profile)
}

/// Our one difference from upstream: absent and 0 mean all nodes, where upstream takes a share that shrinks as the
/// cluster grows. What is out of range, which validation refuses, means all nodes too.
fn percentage(config: &KubeSchedulerConfiguration, profile: &KubeSchedulerProfile) -> Option<u8> {
    let percentage = profile.percentage_of_nodes_to_score.or(config.percentage_of_nodes_to_score);
    percentage
        .and_then(|percentage| u8::try_from(percentage).ok())
        .filter(|percentage| (1..100).contains(percentage))
}
