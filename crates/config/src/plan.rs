//! Which plugins run where, in which order and with which weight: everything about a profile but the making of it.
//!
//! The rules and the texts are upstream's (`framework/runtime/framework.go` in 1.36). Upstream stops at the first
//! problem; we go on, in the same order, so that our first problem is upstream's.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use supercargo_framework::{MAX_NODE_SCORE, PluginType, Point, Registry};

use crate::args;
use crate::codes;
use crate::merge::merged_plugins;
use crate::nearest::did_you_mean;
use crate::problem::{Problem, Problems};
use crate::types::{KubeSchedulerProfile, PluginSet, Plugins, Slot};

/// What a profile comes to.
#[derive(Debug, Default)]
pub(crate) struct Plan<'r> {
    /// The plugins of each point, in the order in which they run.
    pub(crate) points: BTreeMap<Slot, Vec<&'r PluginType>>,
    /// The weights of plugins that score.
    pub(crate) weights: BTreeMap<&'static str, i64>,
    /// The plugins that are enabled anywhere, with their arguments.
    pub(crate) args: BTreeMap<&'static str, Option<Value>>,
}

/// In-tree plugins that upstream has at the points for groups of pods, which the SDK does not know.
const PLACEMENT_GENERATORS: [&str; 1] = ["TopologyPlacementGenerator"];
const PLACEMENT_SCORERS: [&str; 2] = ["NodeResourcesFit", "PodGroupPodsCount"];

impl<'r> Plan<'r> {
    pub(crate) fn of(
        profile: &KubeSchedulerProfile,
        index: usize,
        registry: &'r Registry,
        problems: &mut Problems,
    ) -> Plan<'r> {
        let merged = merged_plugins(&profile.plugins);
        let mut planner = Planner {
            profile,
            path: format!("profiles[{index}]"),
            index,
            merged: &merged,
            registry,
            problems,
            plan: Plan::default(),
            doubtful: BTreeSet::new(),
        };
        planner.read_args();
        planner.fill_points();
        planner.expand_multi_point();
        planner.check_counts();
        planner.weigh();
        planner.plan
    }

    /// Whether the plugin runs at the point.
    pub(crate) fn runs(&self, name: &str, point: Point) -> bool {
        self.names(point).any(|known| known == name)
    }

    /// The names of the plugins at a point.
    pub(crate) fn names(&self, point: Point) -> impl Iterator<Item = &'static str> {
        self.points.get(&Slot::Point(point)).into_iter().flatten().map(|plugin| plugin.name)
    }
}

/// Whether the plugin can be enabled at the key.
pub(crate) fn implements(plugin: &PluginType, slot: Slot) -> bool {
    match slot {
        Slot::Point(point) => plugin.points().contains(&point),
        Slot::MultiPoint => true,
        Slot::PlacementGenerate => PLACEMENT_GENERATORS.contains(&plugin.name),
        Slot::PlacementScore => PLACEMENT_SCORERS.contains(&plugin.name),
    }
}

struct Planner<'a, 'r> {
    profile: &'a KubeSchedulerProfile,
    index: usize,
    path: String,
    merged: &'a Plugins,
    registry: &'r Registry,
    problems: &'a mut Problems,
    plan: Plan<'r>,
    /// Points with problems: counting what is left would only repeat them.
    doubtful: BTreeSet<Slot>,
}

impl Planner<'_, '_> {
    fn read_args(&mut self) {
        let mut seen = BTreeSet::new();
        for (position, entry) in self.profile.plugin_config.iter().enumerate() {
            if !seen.insert(&entry.name) {
                let path = format!("{}.name", args::path(self.index, position));
                let message = format!("repeated config for plugin {}", entry.name);
                self.problems.add(&codes::REPEATED_CONFIG, path, message);
            }
        }
        for plugin in self.registry.iter().filter(|plugin| self.merged.enables(plugin.name)) {
            let entry =
                self.profile.plugin_config.iter().enumerate().find(|(_, entry)| entry.name == plugin.name);
            let read = entry
                .map(|(position, entry)| args::read(entry, self.registry, &args::path(self.index, position)));
            let args = match read {
                None => None,
                Some(Ok(args)) => args,
                // What cannot be read has been reported for all profiles together.
                Some(Err(refusal)) if refusal.unreadable => None,
                Some(Err(refusal)) => {
                    self.problems.extend(refusal.problems);
                    None
                }
            };
            self.plan.args.insert(plugin.name, args);
        }
    }

    /// Takes what is enabled at the points themselves.
    fn fill_points(&mut self) {
        for slot in Slot::FILLED {
            let interface = slot.interface_name();
            for (position, entry) in self.merged.get(slot).enabled.iter().enumerate() {
                let name = &entry.name;
                let path = format!("{}.plugins.{}.enabled[{position}].name", self.path, slot.config_name());
                let list = self.plan.points.entry(slot).or_default();
                let problem = match self.registry.get(name) {
                    None => no_such_plugin(&interface, name, path, self.registry),
                    Some(plugin) if !implements(plugin, slot) => {
                        let message = format!("plugin {name:?} does not extend {interface} plugin");
                        let points: Vec<&str> =
                            plugin.points().iter().map(|point| point.config_name()).collect();
                        Problem::new(&codes::POINT_NOT_IMPLEMENTED, path, message)
                            .with_hint(format!("it implements {}", points.join(", ")))
                    }
                    Some(plugin) if list.iter().any(|known| known.name == plugin.name) => {
                        already_registered(&interface, name, path)
                    }
                    Some(plugin) => {
                        list.push(plugin);
                        continue;
                    }
                };
                self.doubtful.insert(slot);
                self.problems.push(problem);
            }
        }
    }

    /// Adds what is enabled everywhere, and puts each point in its final order.
    fn expand_multi_point(&mut self) {
        let multi_point = &self.merged.multi_point.enabled;
        let mut reported = BTreeSet::new();
        for slot in Slot::FILLED.into_iter().filter(|slot| !self.merged.get(*slot).disables("*")) {
            let set = self.merged.get(slot);
            let mut overridden = BTreeSet::new();
            let mut added: Vec<&PluginType> = Vec::new();
            for (position, entry) in multi_point.iter().enumerate() {
                let name = entry.name.as_str();
                let Some(plugin) = self.registry.get(name) else {
                    if reported.insert(name) {
                        let path = self.multi_point_path(position);
                        let problem = no_such_plugin(&slot.interface_name(), name, path, self.registry);
                        self.problems.push(problem);
                        // It may have been meant to be the queue's order, or to bind.
                        self.doubtful.extend([Slot::Point(Point::QueueSort), Slot::Point(Point::Bind)]);
                    }
                    continue;
                };
                if !implements(plugin, slot) || set.disables(name) {
                } else if set.enables(name) {
                    overridden.insert(name);
                } else if !added.iter().any(|known| known.name == name) {
                    added.push(plugin);
                } else if reported.insert(name) {
                    let path = self.multi_point_path(position);
                    self.problems.push(already_registered(&slot.interface_name(), name, path));
                }
            }
            let written = self.plan.points.remove(&slot).unwrap_or_default();
            let (mut list, rest): (Vec<_>, Vec<_>) =
                written.into_iter().partition(|plugin| overridden.contains(plugin.name));
            list.extend(added);
            list.extend(rest);
            self.plan.points.insert(slot, list);
        }
        // Upstream crashes on an unknown plugin if all points have disabled everything.
        for (position, entry) in multi_point.iter().enumerate() {
            if self.registry.get(&entry.name).is_none() && reported.insert(&entry.name) {
                let (interface, path) = (Slot::FILLED[0].interface_name(), self.multi_point_path(position));
                self.problems.push(no_such_plugin(&interface, &entry.name, path, self.registry));
            }
        }
    }

    fn check_counts(&mut self) {
        let count = |slot: Slot| self.plan.points.get(&slot).map_or(0, Vec::len);
        let profile = format!("for profile with scheduler name {:?}", self.profile.scheduler_name);
        let (queue_sort, bind) = (Slot::Point(Point::QueueSort), Slot::Point(Point::Bind));
        let mut report = |slot: Slot, code, message: String, hint: &str| {
            if !self.doubtful.contains(&slot) {
                let path = format!("{}.plugins.{}", self.path, slot.config_name());
                self.problems.push(Problem::new(code, path, message).with_hint(hint.to_owned()));
            }
        };
        if count(queue_sort) != 1 {
            let message =
                format!("only one queue sort plugin required {profile}, but got {}", count(queue_sort));
            let hint = if count(queue_sort) == 0 {
                "enable PrioritySort at multiPoint or queueSort"
            } else {
                "disable PrioritySort at queueSort to have another order"
            };
            report(queue_sort, &codes::QUEUE_SORT_COUNT, message, hint);
        }
        if count(bind) == 0 {
            let message = format!("at least one bind plugin is needed {profile}");
            report(bind, &codes::NO_BIND, message, "enable DefaultBinder at multiPoint or bind");
        }
        if count(Slot::PlacementGenerate) > 1 {
            let message = format!("at most one placement generate plugin is allowed {profile}");
            report(Slot::PlacementGenerate, &codes::PLACEMENT_GENERATE_COUNT, message, "keep one of them");
        }
    }

    fn weigh(&mut self) {
        let score = Slot::Point(Point::Score);
        self.plan.weights = self.weights_at(score, "score plugins");
        self.weights_at(Slot::PlacementScore, "placement score plugins");
    }

    fn weights_at(&mut self, slot: Slot, what: &str) -> BTreeMap<&'static str, i64> {
        let mut weights = BTreeMap::new();
        let mut total = 0_i64;
        let everywhere: &PluginSet = &self.merged.multi_point;
        for entry in self.merged.get(slot).enabled.iter().chain(&everywhere.enabled) {
            let Some(plugin) = self.registry.get(&entry.name).filter(|plugin| implements(plugin, slot))
            else {
                continue;
            };
            // The first one counts: what the point says goes before what multiPoint says.
            if weights.contains_key(plugin.name) {
                continue;
            }
            let weight = i64::from(entry.weight.filter(|weight| *weight != 0).unwrap_or(1));
            weights.insert(plugin.name, weight);
            // The difference wraps in Go, so that any weight after a negative one fails too.
            if weight * MAX_NODE_SCORE > i64::MAX.wrapping_sub(total) {
                let path = format!("{}.plugins.{}", self.path, slot.config_name());
                let message = format!("{what}: total score of Score plugins could overflow");
                self.problems.add(&codes::SCORE_OVERFLOW, path, message);
                break;
            }
            total = total.wrapping_add(weight * MAX_NODE_SCORE);
        }
        weights
    }

    /// Where an entry of the merged multiPoint stands in the file; the list itself if it is a default one.
    fn multi_point_path(&self, position: usize) -> String {
        let merged = &self.merged.multi_point.enabled;
        let name = &merged[position].name;
        let before = merged[..position].iter().filter(|entry| entry.name == *name).count();
        let written = self.profile.plugins.multi_point.enabled.iter().enumerate();
        match written.filter(|(_, entry)| entry.name == *name).nth(before) {
            Some((position, _)) => format!("{}.plugins.multiPoint.enabled[{position}].name", self.path),
            None => format!("{}.plugins.multiPoint", self.path),
        }
    }
}

fn no_such_plugin(interface: &str, name: &str, path: String, registry: &Registry) -> Problem {
    let hint = did_you_mean(name, registry.iter().map(|plugin| plugin.name));
    Problem::new(&codes::NO_SUCH_PLUGIN, path, format!("{interface} {name:?} does not exist")).with_hint(hint)
}

fn already_registered(interface: &str, name: &str, path: String) -> Problem {
    let message = format!("plugin {name:?} already registered as {interface:?}");
    Problem::new(&codes::ALREADY_REGISTERED, path, message)
}
