//! The Policy, which chose predicates and priorities until Kubernetes 1.22.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use supercargo_framework::Point;

use super::args::{self, OldArgs};
use super::old::{OldProfile, Settings};
use super::policy_words::{Policy, PredicateArgument, PredicatePolicy, PriorityArgument, PriorityPolicy};
use super::release::Release;
use super::tables;
use super::wanted::{Entry, Wanted};
use super::{Document, extenders, plugins};
use crate::codes;
use crate::defaults;
use crate::fields::{Read, below};
use crate::nearest::did_you_mean;
use crate::problem::{Problem, Problems};
use crate::types::{Extender, KubeSchedulerConfiguration, KubeSchedulerProfile, Plugins};

pub(super) const RELEASE: Release = Release {
    version: "Policy",
    kubernetes: "1.22",
    fields: &[],
    points: &[],
    defaults: tables::POLICY,
    replaces_defaults: false,
    lists_constraints: true,
    loose_extenders: true,
};

/// A Policy, read.
#[derive(Debug)]
pub(super) struct OldPolicy {
    plugins: BTreeMap<Point, Vec<Entry>>,
    args: Vec<OldArgs>,
    pub(super) extenders: Vec<Extender>,
    hard_pod_affinity_weight: i32,
    path: String,
}

/// A configuration that consists of nothing but a Policy.
pub(super) fn convert(document: &Document, problems: &mut Problems) -> KubeSchedulerConfiguration {
    let policy = read(document, false, problems);
    let profile = policy.profile(None, &Settings::default(), problems);
    let mut config = KubeSchedulerConfiguration {
        profiles: vec![profile],
        extenders: policy.extenders,
        ..KubeSchedulerConfiguration::default()
    };
    defaults::complete(&mut config, true, false);
    config
}

/// A Policy chooses all plugins, so that profiles could not choose as well.
pub(super) fn refuse_plugins(profiles: &[OldProfile], problems: &mut Problems) {
    for profile in profiles {
        if profile.plugins != Plugins::default() || !profile.args.is_empty() {
            let message = "plugins and pluginConfig cannot be combined with a Policy";
            problems.add(&codes::POLICY_COMBINED, &profile.path, message);
        }
    }
}

/// Reads a Policy. Beside a configuration of 1.18 or before, the weights of 1.18 count.
pub(super) fn read(document: &Document, beside_alpha: bool, problems: &mut Problems) -> OldPolicy {
    let path = document.path.clone();
    let policy = Policy::read(&Value::Object(document.fields.clone()), &path, problems).unwrap_or_default();
    if policy.always_check_all_predicates {
        let message = "had an effect on messages only, and has none now";
        problems.add(&codes::FIELD_DROPPED, below(&path, "alwaysCheckAllPredicates"), message);
    }
    let mut old = OldPolicy {
        plugins: BTreeMap::new(),
        args: Vec::new(),
        extenders: extenders::read(&document.fields, &path, problems),
        hard_pod_affinity_weight: policy.hard_pod_affinity_symmetric_weight,
        path: path.clone(),
    };
    for point in [Point::QueueSort, Point::PostFilter, Point::Bind] {
        old.plugins.insert(point, defaults_at(point));
    }
    let filters = match &policy.predicates {
        None => defaults_at(Point::Filter),
        Some(list) => old.predicates(list, &below(&path, "predicates"), problems),
    };
    let binds_volumes = filters.iter().any(|entry| entry.name == "VolumeBinding");
    for point in [Point::Reserve, Point::PreBind] {
        old.plugins.insert(point, if binds_volumes { defaults_at(point) } else { Vec::new() });
    }
    old.plugins.insert(Point::Filter, filters);
    let scores = match &policy.priorities {
        None => {
            let mut defaults = defaults_at(Point::Score);
            let spread = defaults.iter_mut().find(|entry| entry.name == "PodTopologySpread");
            if let (true, Some(entry)) = (beside_alpha, spread) {
                entry.weight = Some(1);
            }
            defaults
        }
        Some(list) => old.priorities(list, &below(&path, "priorities"), problems),
    };
    old.plugins.insert(Point::Score, scores);
    old
}

fn defaults_at(point: Point) -> Vec<Entry> {
    let weight = |weight: i32| (point == Point::Score).then_some(weight);
    let defaults = RELEASE.defaults(point).iter();
    defaults.map(|(name, of)| Entry { name: (*name).to_owned(), weight: weight(*of), path: None }).collect()
}

impl OldPolicy {
    /// The profile that it comes to.
    pub(super) fn profile(
        &self,
        scheduler_name: Option<String>,
        settings: &Settings,
        problems: &mut Problems,
    ) -> KubeSchedulerProfile {
        let wanted = Wanted::from_old(self.plugins.clone(), &self.path, problems);
        let mut profile = KubeSchedulerProfile {
            scheduler_name: scheduler_name.unwrap_or_default(),
            percentage_of_nodes_to_score: None,
            plugins: plugins::today(&wanted, &Plugins::default(), &RELEASE, &self.path, problems),
            plugin_config: args::today(self.args.clone(), &wanted, &RELEASE, problems),
        };
        let (name, weight) = ("hardPodAffinitySymmetricWeight", self.hard_pod_affinity_weight);
        // 0 stood for the default.
        if ![0, 1].contains(&weight) {
            args::set(&mut profile.plugin_config, "InterPodAffinity", "hardPodAffinityWeight", weight.into());
            let message = "became hardPodAffinityWeight of InterPodAffinity's arguments";
            problems.add(&codes::FIELD_MOVED, below(&self.path, name), message);
        }
        settings.apply(&mut profile, problems);
        profile
    }

    fn predicates(&mut self, list: &[PredicatePolicy], path: &str, problems: &mut Problems) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut became = Vec::new();
        for (index, predicate) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let known = tables::PREDICATES.iter().find(|(name, _)| *name == predicate.name);
            let names = match (known, &predicate.argument) {
                (Some((_, names)), argument) => {
                    note_unused(argument.is_some(), &path, problems);
                    *names
                }
                (None, Some(PredicateArgument { labels_presence: Some(labels), service_affinity: None })) => {
                    let field = if labels.presence { "presentLabels" } else { "absentLabels" };
                    self.add_args("NodeLabel", json!({ field: labels.labels }), below(&path, "argument"));
                    &["NodeLabel"]
                }
                (None, Some(PredicateArgument { labels_presence: None, service_affinity: Some(_) })) => {
                    &["ServiceAffinity"]
                }
                (None, Some(_)) => {
                    problems.add(&codes::POLICY_ARGUMENT, path, "exactly 1 predicate argument is required");
                    continue;
                }
                (None, None) => {
                    let names = tables::PREDICATES.iter().map(|(name, _)| *name);
                    unknown("predicate", &predicate.name, names, &path, problems);
                    continue;
                }
            };
            became.push(format!("{} → {}", predicate.name, names.join(" + ")));
            entries.extend(names.iter().map(|name| Entry {
                name: (*name).to_owned(),
                weight: None,
                path: Some(path.clone()),
            }));
        }
        let mandatory =
            tables::MANDATORY.iter().filter(|name| entries.iter().all(|entry| entry.name != **name));
        let mandatory: Vec<Entry> =
            mandatory.map(|name| Entry { name: (*name).to_owned(), weight: None, path: None }).collect();
        entries.extend(mandatory);
        note(&became, path, problems);
        entries
    }

    fn priorities(&mut self, list: &[PriorityPolicy], path: &str, problems: &mut Problems) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut became = Vec::new();
        for (index, priority) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(name) = self.priority(priority, &path, problems) else { continue };
            let weight = i32::try_from(priority.weight).ok().filter(|weight| *weight > 0);
            let Some(weight) = weight else {
                let message =
                    format!("Priority {} should have a positive weight applied to it", priority.name);
                problems.add(&codes::POLICY_WEIGHT, below(&path, "weight"), message);
                continue;
            };
            became.push(format!("{} → {name}", priority.name));
            entries.push(Entry { name: name.to_owned(), weight: Some(weight), path: Some(path) });
        }
        // Where SelectorSpread and PodTopologySpread meet, the weight of the latter counts.
        entries.sort_by_key(|entry| entry.name != "PodTopologySpread");
        note(&became, path, problems);
        entries
    }

    /// The plugin behind a priority; none if there is none, or it is wrong.
    fn priority(
        &mut self,
        priority: &PriorityPolicy,
        path: &str,
        problems: &mut Problems,
    ) -> Option<&'static str> {
        let known = tables::PRIORITIES.iter().find(|(name, _)| *name == priority.name);
        match (known, &priority.argument) {
            (Some((_, None)), _) => {
                let message = format!("{} made no difference and was left out", priority.name);
                problems.add(&codes::FIELD_DROPPED, path, message);
                None
            }
            (Some((_, plugin)), argument) => {
                note_unused(argument.is_some(), path, problems);
                *plugin
            }
            (None, Some(argument)) => self.custom_priority(argument, path, problems),
            (None, None) => {
                let names = tables::PRIORITIES.iter().map(|(name, _)| *name);
                unknown("priority", &priority.name, names, path, problems);
                None
            }
        }
    }

    fn custom_priority(
        &mut self,
        argument: &PriorityArgument,
        path: &str,
        problems: &mut Problems,
    ) -> Option<&'static str> {
        let PriorityArgument { service_anti_affinity, label_preference, requested_to_capacity_ratio } =
            argument;
        match (service_anti_affinity, label_preference, requested_to_capacity_ratio) {
            (Some(_), None, None) => Some("ServiceAffinity"),
            (None, Some(_), None) => Some("NodeLabel"),
            (None, None, Some(args)) => {
                self.add_args("RequestedToCapacityRatio", args.clone(), below(path, "argument"));
                Some("RequestedToCapacityRatio")
            }
            _ => {
                problems.add(&codes::POLICY_ARGUMENT, path, "exactly 1 priority argument is required");
                None
            }
        }
    }

    fn add_args(&mut self, name: &str, args: Value, path: String) {
        self.args.push(OldArgs { name: name.to_owned(), args, path });
    }
}

fn note(became: &[String], path: &str, problems: &mut Problems) {
    if !became.is_empty() {
        problems.add(&codes::POLICY_CONVERTED, path, format!("became plugins: {}", became.join(", ")));
    }
}

/// Names that Kubernetes had itself were looked up before arguments.
fn note_unused(has_argument: bool, path: &str, problems: &mut Problems) {
    if has_argument {
        let message =
            "was dropped: it had no effect, because Kubernetes has a meaning of its own for the name";
        problems.add(&codes::ARGS_DROPPED, below(path, "argument"), message);
    }
}

fn unknown(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'static str>,
    path: &str,
    problems: &mut Problems,
) {
    let message = format!("{what} type not found for {name:?}");
    let problem = Problem::new(&codes::POLICY_NAME, below(path, "name"), message);
    problems.push(problem.with_hint(did_you_mean(name, known)));
}
