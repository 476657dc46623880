//! What has to be written below `plugins` today, so that the same plugins run with the same weights as before.
//!
//! Only differences from today's defaults are written. Plugins that did not exist back then stay on: they look at what
//! no pod or node had. Order is kept where it decides something: among plugins that the user wrote.

use std::collections::BTreeMap;

use supercargo_framework::Point;

use super::release::Release;
use super::tables::{self, Fate};
use super::wanted::{Entry, Wanted};
use crate::codes;
use crate::defaults::default_weight;
use crate::problem::Problems;
use crate::types::{Plugin, PluginSet, Plugins, Slot};

/// The plugins of today. `written` is what the user wrote, for what was disabled with `*` or to be moved.
pub(super) fn today(
    wanted: &Wanted,
    written: &Plugins,
    release: &Release,
    path: &str,
    problems: &mut Problems,
) -> Plugins {
    let mut sets: BTreeMap<Point, PluginSet> = BTreeMap::new();
    for point in Point::ALL {
        let list = wanted.points.get(&point).map_or(&[][..], Vec::as_slice);
        let before = written.get(Slot::Point(point));
        let set = if before.disables("*") {
            PluginSet { enabled: list.iter().map(plugin).collect(), disabled: vec![named("*")] }
        } else {
            difference(wanted, list, before, point, release)
        };
        if point == Point::Score && !before.disables("*") {
            note_weights(list, &set, release, path, problems);
        }
        sets.insert(point, set);
    }
    let mut plugins = Plugins { multi_point: disabled_everywhere(&mut sets), ..Plugins::default() };
    for (point, set) in sets {
        *at(&mut plugins, point) = set;
    }
    plugins
}

fn difference(
    wanted: &Wanted,
    list: &[Entry],
    before: &PluginSet,
    point: Point,
    release: &Release,
) -> PluginSet {
    let mut set = PluginSet::default();
    for (name, points) in tables::POINTS.iter().filter(|(_, points)| points.contains(&point)) {
        match list.iter().find(|entry| entry.name == *name) {
            None if is_missed(wanted, name, points, point, release) => set.disabled.push(named(name)),
            None => {}
            Some(entry) if point == Point::Score => {
                let weight = weight_of(entry);
                if weight != default_weight(name).unwrap_or(1) {
                    set.enabled.push(Plugin { name: (*name).to_owned(), weight: Some(weight) });
                }
            }
            // Disabled and enabled again means moved to the end, where it goes with the others below.
            Some(entry) if entry.path.is_some() && before.disables(name) && list.len() > 1 => {
                set.disabled.push(named(name));
            }
            Some(_) => {}
        }
    }
    let theirs = list.iter().filter(|entry| {
        let ours = tables::points(&entry.name).is_some_and(|points| points.contains(&point));
        !ours || set.disables(&entry.name)
    });
    set.enabled.extend(theirs.map(plugin).collect::<Vec<_>>());
    set
}

/// Whether a default plugin of today has to be disabled, because the old release knew it and did not run it. At points
/// that are new for a plugin it goes with what it is there for: scoring, or else filtering.
fn is_missed(wanted: &Wanted, name: &str, points: &[Point], point: Point, release: &Release) -> bool {
    if knew(release, name, point) {
        return true;
    }
    let purpose = match point {
        Point::PreFilter => Point::Filter,
        Point::PreScore if knew(release, name, Point::Score) => Point::Score,
        Point::PreScore | Point::Score | Point::Reserve | Point::PreBind => Point::Filter,
        _ => return false,
    };
    points.contains(&purpose) && knew(release, name, purpose) && wanted.get(purpose, name).is_none()
}

fn knew(release: &Release, name: &str, point: Point) -> bool {
    release.defaults(point).iter().any(|(known, _)| {
        *known == name || name == "NodeResourcesFit" && matches!(tables::fate(known), Some(Fate::Strategy(_)))
    })
}

fn note_weights(list: &[Entry], set: &PluginSet, release: &Release, path: &str, problems: &mut Problems) {
    let kept = set.enabled.iter().filter(|plugin| {
        default_weight(&plugin.name).is_some()
            && list.iter().any(|entry| entry.name == plugin.name && entry.path.is_none())
    });
    let kept: Vec<String> = kept
        .map(|plugin| {
            let (old, new) = (plugin.weight.unwrap_or(1), default_weight(&plugin.name).unwrap_or(1));
            format!("{} {old} (today {new})", plugin.name)
        })
        .collect();
    if !kept.is_empty() {
        let message = format!(
            "the default weights of Kubernetes {} were written down: {}",
            release.kubernetes,
            kept.join(", ")
        );
        problems.add(&codes::WEIGHTS_KEPT, path, message);
    }
}

/// Plugins that are disabled at all of several points are disabled at `multiPoint`, which is shorter.
fn disabled_everywhere(sets: &mut BTreeMap<Point, PluginSet>) -> PluginSet {
    let mut everywhere = PluginSet::default();
    for (name, points) in tables::POINTS {
        let disabled =
            |point: &Point| sets.get(point).is_some_and(|set| set.disables(name) && !set.enables(name));
        if points.len() > 1 && points.iter().all(disabled) {
            everywhere.disabled.push(named(name));
            for point in points {
                if let Some(set) = sets.get_mut(point) {
                    set.disabled.retain(|plugin| plugin.name != name);
                }
            }
        }
    }
    everywhere
}

fn plugin(entry: &Entry) -> Plugin {
    Plugin { name: entry.name.clone(), weight: entry.weight.filter(|weight| *weight != 0) }
}

/// Absent and 0 meant 1.
fn weight_of(entry: &Entry) -> i32 {
    entry.weight.filter(|weight| *weight != 0).unwrap_or(1)
}

fn named(name: &str) -> Plugin {
    Plugin { name: name.to_owned(), weight: None }
}

/// What stands at a key, to be changed.
pub(super) fn at(plugins: &mut Plugins, point: Point) -> &mut PluginSet {
    match point {
        Point::PreEnqueue => &mut plugins.pre_enqueue,
        Point::QueueSort => &mut plugins.queue_sort,
        Point::PreFilter => &mut plugins.pre_filter,
        Point::Filter => &mut plugins.filter,
        Point::PostFilter => &mut plugins.post_filter,
        Point::PreScore => &mut plugins.pre_score,
        Point::Score => &mut plugins.score,
        Point::Reserve => &mut plugins.reserve,
        Point::Permit => &mut plugins.permit,
        Point::PreBind => &mut plugins.pre_bind,
        Point::Bind => &mut plugins.bind,
        Point::PostBind => &mut plugins.post_bind,
    }
}
