//! What a converted profile runs, against a naive model of what v1beta2 would have run.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use supercargo_framework::Point;

use super::support;
use crate::legacy::tables;
use crate::plan::Plan;
use crate::{Problems, Slot, load};

/// What the user writes at a point: what is disabled, `*` perhaps, and what is enabled with which weight.
type Written = (Vec<&'static str>, bool, Vec<(&'static str, i32)>);

const POINTS: [Point; 8] = [
    Point::PreFilter,
    Point::Filter,
    Point::PostFilter,
    Point::PreScore,
    Point::Score,
    Point::Reserve,
    Point::PreBind,
    Point::Bind,
];

fn defaults(point: Point) -> BTreeMap<&'static str, i32> {
    let lists = tables::V1BETA2.iter().filter(|(known, _)| *known == point);
    lists
        .flat_map(|(_, list)| list.iter().copied())
        .filter(|(name, _)| tables::fate(name).is_none())
        .collect()
}

/// Names that may stand at a point: the default ones, and one of somebody else where it takes part.
fn names(point: Point) -> Vec<&'static str> {
    let theirs = [Point::Filter, Point::Score, Point::Bind].contains(&point).then_some("Out");
    defaults(point).into_keys().chain(theirs).collect()
}

fn written(point: Point) -> impl Strategy<Value = Written> {
    let all = names(point);
    let count = all.len();
    let disabled = prop::sample::subsequence(all.clone(), 0..=count);
    let enabled = prop::sample::subsequence(all, 0..=count).prop_shuffle();
    (disabled, prop::bool::weighted(0.2), enabled, prop::collection::vec(1..9_i32, count)).prop_map(
        |(disabled, star, enabled, weights)| (disabled, star, enabled.into_iter().zip(weights).collect()),
    )
}

/// The names and weights that v1beta2 comes to.
fn model(point: Point, (disabled, star, enabled): &Written) -> BTreeMap<&'static str, i32> {
    let mut wanted = if *star { BTreeMap::new() } else { defaults(point) };
    wanted.retain(|name, _| !disabled.contains(name));
    wanted.extend(enabled.iter().copied());
    wanted
}

fn document(profile: &BTreeMap<&'static str, Written>) -> String {
    let entries = |(disabled, star, enabled): &Written| {
        let all = star.then_some("*");
        let disabled: Vec<_> =
            disabled.iter().copied().chain(all).map(|name| json!({ "name": name })).collect();
        let enabled: Vec<_> =
            enabled.iter().map(|(name, weight)| json!({ "name": name, "weight": weight })).collect();
        json!({ "disabled": disabled, "enabled": enabled })
    };
    let plugins: serde_json::Map<_, _> =
        profile.iter().map(|(point, written)| ((*point).to_owned(), entries(written))).collect();
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1beta2",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{ "plugins": plugins }],
    })
    .to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_converted_profile_runs_what_it_ran(choices in POINTS.map(written)) {
        let profile = POINTS.iter().map(|point| point.config_name()).zip(choices.clone()).collect();
        let text = document(&profile);
        let config = load(&text).expect("is right").kube;
        let registry = support::registry();
        let plan = Plan::of(&config.profiles[0], 0, &registry, &mut Problems::default());
        for (point, written) in POINTS.into_iter().zip(&choices) {
            let wanted = model(point, written);
            let known = names(point);
            let runs: BTreeSet<&str> = plan.names(point).filter(|name| known.contains(name)).collect();
            prop_assert_eq!(runs, wanted.keys().copied().collect(), "{:?} of {}", point, &text);
            if point == Point::Score {
                for (name, weight) in wanted {
                    prop_assert_eq!(plan.weights.get(name), Some(&i64::from(weight)), "{} of {}", name, &text);
                }
            }
            let set = config.profiles[0].plugins.get(Slot::Point(point));
            prop_assert_eq!(set.disables("*"), written.1);
        }
    }
}
