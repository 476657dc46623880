//! Which plugins an old release would have run, in the words of today.

use std::collections::BTreeMap;

use supercargo_framework::Point;

use super::release::Release;
use super::tables::{self, Fate};
use crate::codes;
use crate::problem::{Problem, Problems};
use crate::types::{PluginSet, Plugins, Slot};

/// What a profile of an old release comes to.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The plugins of each point, by today's names.
    pub(super) points: BTreeMap<Point, Vec<Entry>>,
    /// How resources are scored, if they are: one of NodeResourcesFit's strategies.
    pub(super) strategy: Option<&'static str>,
    /// Whether pods without constraints are spread.
    pub(super) spreads: bool,
    /// Whether NodeLabel filtered.
    pub(super) filters_labels: bool,
}

/// A plugin at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) weight: Option<i32>,
    /// Where it stands in the file; none if it was there by default.
    pub(super) path: Option<String>,
}

impl Wanted {
    /// What the plugins of a profile come to. Plugins that nobody in Kubernetes knows stay as they are.
    pub(super) fn of(plugins: &Plugins, release: &Release, path: &str, problems: &mut Problems) -> Self {
        let mut old = BTreeMap::new();
        for point in Point::ALL {
            let set = plugins.get(Slot::Point(point));
            let path = format!("{path}.{}", point.config_name());
            let list = merge(set, point, release, &path, problems);
            note_limits(set, &list, &path, problems);
            old.insert(point, list);
        }
        Wanted::from_old(old, path, problems)
    }

    /// Puts today's plugins in the place of those that are gone.
    pub(super) fn from_old(old: BTreeMap<Point, Vec<Entry>>, path: &str, problems: &mut Problems) -> Self {
        let mut wanted = Wanted::default();
        for (point, list) in old {
            let mut today: Vec<Entry> = Vec::new();
            let mut strategies = Vec::new();
            let mut spreading = None;
            for entry in list {
                match tables::fate(&entry.name) {
                    None if takes_part(&entry, point, problems) => today.push(entry),
                    None => {}
                    Some(Fate::Strategy(strategy)) => strategies.push((strategy, entry)),
                    Some(Fate::SystemSpreading) => spreading = Some(entry),
                    // NodeVolumeLimits itself was on by default, too.
                    Some(Fate::VolumeLimits) if entry.path.is_none() => {}
                    Some(Fate::VolumeLimits) => {
                        replaced(&entry, "NodeVolumeLimits", problems);
                        today.push(Entry { name: "NodeVolumeLimits".to_owned(), ..entry });
                    }
                    Some(Fate::AddedAffinity) if point == Point::Filter => wanted.filters_labels = true,
                    Some(Fate::AddedAffinity) => {
                        let why = "NodeAffinity's addedAffinity can prefer labels for all pods, but weighs them otherwise";
                        gone(&entry, why, path, problems);
                    }
                    Some(Fate::Gone(why)) => gone(&entry, why, path, problems),
                }
            }
            if let Some((strategy, entry)) = one_strategy(strategies, problems) {
                wanted.strategy = Some(strategy);
                today.push(entry);
            }
            if let Some(entry) = spreading {
                if point == Point::Score {
                    wanted.spreads = true;
                    note_spreading(&entry, path, problems);
                }
                today.push(Entry { name: "PodTopologySpread".to_owned(), ..entry });
            }
            // A plugin that several became goes with the weight of the first, which is the one that kept its name.
            let mut names = std::collections::BTreeSet::new();
            today.retain(|entry| names.insert(entry.name.clone()));
            wanted.points.insert(point, today);
        }
        wanted.enable_added_affinity(path, problems);
        wanted
    }

    /// NodeLabel's filter needs NodeAffinity's.
    fn enable_added_affinity(&mut self, path: &str, problems: &mut Problems) {
        if !self.filters_labels || self.get(Point::Filter, "NodeAffinity").is_some() {
            return;
        }
        let message = "NodeLabel's filter is part of NodeAffinity now, which was enabled for it: it looks at the pods' \
                       own node selectors as well";
        problems.add(&codes::PLUGIN_REPLACED, path, message);
        for point in [Point::PreFilter, Point::Filter] {
            let entry = Entry { name: "NodeAffinity".to_owned(), weight: None, path: None };
            self.points.entry(point).or_default().push(entry);
        }
    }

    pub(super) fn get(&self, point: Point, name: &str) -> Option<&Entry> {
        self.points.get(&point)?.iter().find(|entry| entry.name == name)
    }
}

/// The old release's defaults, as the user changed them.
fn merge(
    set: &PluginSet,
    point: Point,
    release: &Release,
    path: &str,
    problems: &mut Problems,
) -> Vec<Entry> {
    let mut list: Vec<Entry> = Vec::new();
    if !set.disables("*") {
        let kept = release.defaults(point).iter().filter(|(name, _)| !set.disables(name));
        list.extend(kept.map(|(name, weight)| Entry {
            name: (*name).to_owned(),
            weight: (point == Point::Score).then_some(*weight),
            path: None,
        }));
    }
    for (index, plugin) in set.enabled.iter().enumerate() {
        let path = format!("{path}.enabled[{index}]");
        let entry = Entry { name: plugin.name.clone(), weight: plugin.weight, path: Some(path.clone()) };
        match list.iter_mut().find(|known| known.name == plugin.name) {
            None => list.push(entry),
            Some(known) if known.path.is_none() && release.replaces_defaults => *known = entry,
            Some(known) => {
                let interface = Slot::Point(point).interface_name();
                let message = format!("plugin {:?} already registered as {interface:?}", plugin.name);
                let hint = known.path.is_none().then(|| {
                    format!(
                        "it is on by default: in {} it had to be disabled to be enabled anew",
                        release.version
                    )
                });
                problems.push(Problem::new(&codes::ALREADY_REGISTERED, path, message).with_hint(hint));
            }
        }
    }
    list
}

/// Whether the plugin takes part in the point today. Plugins of others do as they like.
fn takes_part(entry: &Entry, point: Point, problems: &mut Problems) -> bool {
    let Some(points) = tables::points(&entry.name) else { return true };
    let takes_part = points.contains(&point);
    if let (false, Some(path)) = (takes_part, &entry.path) {
        let message =
            format!("{} takes no part in {} any more and was left out", entry.name, point.config_name());
        problems.add(&codes::POINT_LEFT, path, message);
    }
    takes_part
}

/// Resources are scored in one way at a time now: the heaviest stays, and of equals what the user wrote.
fn one_strategy(
    mut strategies: Vec<(&'static str, Entry)>,
    problems: &mut Problems,
) -> Option<(&'static str, Entry)> {
    let weight = |entry: &Entry| entry.weight.filter(|weight| *weight != 0).unwrap_or(1);
    strategies.sort_by_key(|(_, entry)| (weight(entry), entry.path.is_some()));
    let (strategy, entry) = strategies.pop()?;
    for (other, lost) in strategies {
        let path = lost.path.as_ref().or(entry.path.as_ref()).cloned().unwrap_or_default();
        let message = format!(
            "{} (weight {}) and {} (weight {}) scored side by side; NodeResourcesFit has one strategy, so {other} was \
             dropped: pods may go to other nodes",
            lost.name,
            weight(&lost),
            entry.name,
            weight(&entry),
        );
        problems.add(&codes::STRATEGY_LOST, path, message);
    }
    if let Some(path) = &entry.path {
        let message = format!("{} is scoringStrategy {strategy} of NodeResourcesFit now", entry.name);
        problems.add(&codes::PLUGIN_REPLACED, path, message);
    }
    let entry = Entry { name: "NodeResourcesFit".to_owned(), weight: Some(weight(&entry)), ..entry };
    Some((strategy, entry))
}

fn replaced(entry: &Entry, by: &str, problems: &mut Problems) {
    if let Some(path) = &entry.path {
        problems.add(&codes::PLUGIN_REPLACED, path, format!("{} is part of {by} now", entry.name));
    }
}

fn gone(entry: &Entry, why: &str, path: &str, problems: &mut Problems) {
    let by_default = if entry.path.is_none() { ", which was on by default," } else { "" };
    let message = format!("{}{by_default} is gone: {why}", entry.name);
    let path = entry.path.as_deref().unwrap_or(path);
    let known = problems.iter().any(|problem| problem.path == path && problem.message == message);
    if !known {
        problems.add(&codes::PLUGIN_GONE, path, message);
    }
}

fn note_spreading(entry: &Entry, path: &str, problems: &mut Problems) {
    let by_default = if entry.path.is_none() { ", which was on by default," } else { "" };
    let message = format!(
        "{}{by_default} is gone: PodTopologySpread spreads pods of a service or controller now, which scores a little \
         differently",
        entry.name
    );
    problems.add(&codes::SPREADING, entry.path.as_deref().unwrap_or(path), message);
}

/// Disabling the limits of one cloud provider while others stay has no counterpart.
fn note_limits(set: &PluginSet, list: &[Entry], path: &str, problems: &mut Problems) {
    let limits = |name: &str| tables::fate(name) == Some(Fate::VolumeLimits);
    let counted = list
        .iter()
        .any(|entry| entry.name == "NodeVolumeLimits" || entry.path.is_some() && limits(&entry.name));
    for (index, plugin) in set.disabled.iter().enumerate().filter(|(_, plugin)| limits(&plugin.name)) {
        if counted && !set.enables(&plugin.name) {
            let message = format!(
                "{} cannot be disabled by itself: NodeVolumeLimits counts those volumes too, and stays",
                plugin.name
            );
            problems.add(&codes::PLUGIN_GONE, format!("{path}.disabled[{index}]"), message);
        }
    }
}
