//! What no profile can be made of: the texts are upstream's.

use serde_json::json;
use supercargo_framework::{Args, Extensions, FieldProblems, Filter, Plugin, Registry};

use super::{HEAD, plugin_config, plugins, support};
use crate::{build_profile, build_profiles, load};

/// Checks the error that upstream would stop at.
#[track_caller]
fn check_first(text: &str, expected: &str) {
    let config = load(text).unwrap_or_else(|problems| panic!("{problems}")).kube;
    let problems = build_profile(&config, &support::registry(), 0).expect_err("something is wrong");
    let first = problems.iter().next().expect("has a reason");
    assert_eq!(format!("{} {}: {}", first.code, first.path, first.message), expected, "of:\n{text}");
}

#[track_caller]
fn check_fine(text: &str) {
    let config = load(text).unwrap_or_else(|problems| panic!("{problems}")).kube;
    build_profile(&config, &support::registry(), 0)
        .unwrap_or_else(|problems| panic!("{problems}\nof:\n{text}"));
}

#[test]
fn plugins_that_cannot_be_there() {
    for (written, expected) in [
        (
            "{score: {enabled: [{name: Foo}]}}",
            "C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"Foo\" does not exist",
        ),
        (
            "{score: {enabled: [{name: '*'}]}}",
            "C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"*\" does not exist",
        ),
        // At multiPoint it is the first point that upstream fills, and does not skip, which misses it.
        (
            "{multiPoint: {enabled: [{name: NodeName}, {name: Foo}]}}",
            "C030 profiles[0].plugins.multiPoint.enabled[1].name: PreFilterPlugin \"Foo\" does not exist",
        ),
        (
            "{preFilter: {disabled: [{name: '*'}]}, multiPoint: {enabled: [{name: Foo}]}}",
            "C030 profiles[0].plugins.multiPoint.enabled[0].name: FilterPlugin \"Foo\" does not exist",
        ),
        (
            "{score: {enabled: [{name: NodePorts}]}}",
            "C031 profiles[0].plugins.score.enabled[0].name: plugin \"NodePorts\" does not extend ScorePlugin plugin",
        ),
        (
            "{placementScore: {enabled: [{name: ImageLocality}]}}",
            "C031 profiles[0].plugins.placementScore.enabled[0].name: plugin \"ImageLocality\" does not extend \
             PlacementScorePlugin plugin",
        ),
        (
            "{placementGenerate: {enabled: [{name: NodeName}]}}",
            "C031 profiles[0].plugins.placementGenerate.enabled[0].name: plugin \"NodeName\" does not extend \
             PlacementGeneratePlugin plugin",
        ),
        (
            "{score: {enabled: [{name: Out}, {name: Out}]}}",
            "C032 profiles[0].plugins.score.enabled[1].name: plugin \"Out\" already registered as \"ScorePlugin\"",
        ),
        (
            "{multiPoint: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}",
            "C032 profiles[0].plugins.multiPoint.enabled[1].name: plugin \"ImageLocality\" already registered as \
             \"ScorePlugin\"",
        ),
    ] {
        check_first(&plugins(written), expected);
    }
    check_fine(&plugins("{placementScore: {enabled: [{name: NodeResourcesFit}]}}"));
}

#[test]
fn an_unknown_plugin_is_found_even_if_all_points_are_off() {
    let all: Vec<String> = crate::Slot::FILLED
        .iter()
        .map(|slot| format!("{}: {{disabled: [{{name: '*'}}]}}", slot.config_name()))
        .collect();
    check_first(
        &plugins(&format!("{{{}, multiPoint: {{enabled: [{{name: Foo}}]}}}}", all.join(", "))),
        "C030 profiles[0].plugins.multiPoint.enabled[0].name: PreFilterPlugin \"Foo\" does not exist",
    );
}

#[test]
fn a_queue_has_one_order_and_somebody_binds() {
    let queue_sort = |count| {
        format!(
            "C033 profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name \
             \"default-scheduler\", but got {count}"
        )
    };
    for written in [
        "{queueSort: {disabled: [{name: '*'}]}}",
        "{queueSort: {disabled: [{name: PrioritySort}]}}",
        "{multiPoint: {disabled: [{name: PrioritySort}]}}",
        "{multiPoint: {disabled: [{name: '*'}]}}",
        "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}, {name: ImageLocality}]}}",
    ] {
        check_first(&plugins(written), &queue_sort(0));
    }
    check_first(&plugins("{queueSort: {enabled: [{name: Out}]}}"), &queue_sort(2));
    for written in ["{bind: {disabled: [{name: '*'}]}}", "{multiPoint: {disabled: [{name: DefaultBinder}]}}"]
    {
        check_first(
            &plugins(written),
            "C034 profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name \
             \"default-scheduler\"",
        );
    }
}

#[test]
fn weights_that_overflow() {
    // The largest weights of all plugins together are far from it.
    check_fine(&plugins(
        "{score: {enabled: [{name: ImageLocality, weight: 2147483647}, {name: NodeAffinity, weight: 2147483647}]}}",
    ));
    let overflow =
        "C035 profiles[0].plugins.score: score plugins: total score of Score plugins could overflow";
    check_first(&plugins("{score: {enabled: [{name: ImageLocality, weight: -1}]}}"), overflow);
    // Nothing comes after it, so upstream's arithmetic does not wrap.
    check_fine(&plugins(
        "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, \
         {name: ImageLocality, weight: -1}]}}",
    ));
}

#[test]
fn arguments() {
    for (config, expected) in [
        (
            "[{name: Foo}, {name: Foo}]",
            "C023 profiles[0].pluginConfig[1].name: repeated config for plugin Foo",
        ),
        (
            "[{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]",
            "C022 profiles[0].pluginConfig[0].args.hardPodAffinityWeight: initializing plugin \"InterPodAffinity\": \
             Invalid value: 101: not in valid range [0-100]",
        ),
        (
            "[{name: NodeResourcesFit, args: {ignoredResourceGroups: [a, b/c]}}]",
            "C022 profiles[0].pluginConfig[0].args.ignoredResourceGroups[1]: initializing plugin \
             \"NodeResourcesFit\": Invalid value: \"b/c\": resource group name can't contain '/'",
        ),
        (
            "[{name: NodeResourcesFit, args: {ignoredResource: [a]}}]",
            "C021 profiles[0].pluginConfig[0].args.ignoredResource: decoding args for plugin NodeResourcesFit: \
             unknown field \"ignoredResource\"",
        ),
        (
            "[{name: NodeResourcesFit, args: {ignoredResource: null}}]",
            "C021 profiles[0].pluginConfig[0].args.ignoredResource: decoding args for plugin NodeResourcesFit: \
             unknown field \"ignoredResource\"",
        ),
        (
            "[{name: NodeResourcesFit, args: []}]",
            "C021 profiles[0].pluginConfig[0].args: decoding args for plugin NodeResourcesFit: expected an \
             object, got a list",
        ),
        (
            "[{name: NodeResourcesFit, args: {ignoredResources: [5]}}]",
            "C021 profiles[0].pluginConfig[0].args.ignoredResources[0]: decoding args for plugin NodeResourcesFit: \
             expected a string, got the number 5",
        ),
        (
            "[{name: NodeResourcesFit, args: words}]",
            "C021 profiles[0].pluginConfig[0].args: decoding args for plugin NodeResourcesFit: expected an object, \
             got the string \"words\"",
        ),
        (
            "[{name: NodeResourcesFit, args: {kind: InterPodAffinityArgs}}]",
            "C020 profiles[0].pluginConfig[0].args.kind: args for plugin NodeResourcesFit were not of type \
             NodeResourcesFitArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
        ),
        (
            "[{name: NodeResourcesFit, args: {kind: FooArgs}}]",
            "C020 profiles[0].pluginConfig[0].args.kind: decoding args for plugin NodeResourcesFit: no kind \
             \"FooArgs\" is registered for version \"kubescheduler.config.k8s.io/v1\"",
        ),
        (
            "[{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1beta3}}]",
            "C020 profiles[0].pluginConfig[0].args.apiVersion: decoding args for plugin NodeResourcesFit: no kind \
             \"NodeResourcesFitArgs\" is registered for version \"kubescheduler.config.k8s.io/v1beta3\"",
        ),
        (
            "[{name: NodeResourcesFit, args: {kind: 5}}]",
            "C020 profiles[0].pluginConfig[0].args.kind: expected a string, got 5",
        ),
    ] {
        check_first(&plugin_config(config), expected);
    }
    for config in [
        "[{name: NodeResourcesFit}]",
        "[{name: NodeResourcesFit, args: null}]",
        "[{name: NodeResourcesFit, args: {ignoredResources: null}}]",
        "[{name: NodeResourcesFit, args: {ignoredResources: [null]}}]",
        "[{name: NodeResourcesFit, args: {kind: null, apiVersion: ''}}]",
        "[{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeResourcesFitArgs}}]",
        "[{name: Foo, args: words}]",
        "[{name: NodeName, args: words}]",
        "[{name: ImageLocality, args: {a: 1}}]",
        "[{}]",
    ] {
        check_fine(&plugin_config(config));
    }
}

#[test]
fn arguments_of_other_plugins_and_profiles_must_be_readable_but_not_right() {
    let idle = |args: &str| {
        format!(
            "{HEAD}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: InterPodAffinity}}]}}}}, \
             pluginConfig: [{{name: InterPodAffinity, args: {args}}}]}}]"
        )
    };
    check_fine(&idle("{hardPodAffinityWeight: 101}"));
    check_first(
        &idle("{hardPodAffinityWeight: x}"),
        "C021 profiles[0].pluginConfig[0].args.hardPodAffinityWeight: decoding args for plugin InterPodAffinity: \
         expected an integer of 32 bits, got the string \"x\"",
    );
    let second = |args: &str| {
        format!("{HEAD}profiles: [{{}}, {{pluginConfig: [{{name: InterPodAffinity, args: {args}}}]}}]")
    };
    check_fine(&second("{hardPodAffinityWeight: 101}"));
    check_first(
        &second("{kind: FooArgs}"),
        "C020 profiles[1].pluginConfig[0].args.kind: decoding args for plugin InterPodAffinity: no kind \"FooArgs\" \
         is registered for version \"kubescheduler.config.k8s.io/v1\"",
    );
}

#[test]
fn what_only_the_validator_minds_does_not_stop_the_constructor() {
    for rest in [
        "percentageOfNodesToScore: 101",
        "parallelism: -1",
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        "profiles: [{schedulerName: ''}]",
        "leaderElection: {resourceLock: x}",
        "extenders: [{prioritizeVerb: p}]",
        "profiles: [{}, {plugins: {queueSort: {disabled: [{name: '*'}]}}}]",
    ] {
        check_fine(&format!("{HEAD}{rest}"));
    }
}

#[test]
fn profiles_together() {
    let queue = "{queueSort: {disabled: [{name: '*'}], enabled: [{name: Out}]}}";
    for (profiles, expected) in [
        (
            format!("[{{schedulerName: a}}, {{schedulerName: b, plugins: {queue}}}]"),
            "different queue sort plugins for profile \"b\": \"Out\", first: \"PrioritySort\"",
        ),
        (
            "[{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: PrioritySort, args: {a: 1}}]}]"
                .to_owned(),
            "different queue sort plugin args for profile \"b\"",
        ),
        (
            "[{schedulerName: a}, {schedulerName: a}]".to_owned(),
            "duplicate profile with scheduler name \"a\"",
        ),
        ("[{}, {schedulerName: a}]".to_owned(), "Required value: scheduler name is needed"),
    ] {
        let config = load(&format!("{HEAD}profiles: {profiles}")).expect("is readable").kube;
        let problems = build_profiles(&config, &support::registry()).expect_err("something is wrong");
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, [expected], "{profiles}");
    }
}

/// Refuses all arguments, so that a test sees what it is given.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TellTale {
    ignored_resources: Vec<String>,
    other: String,
}

impl Args for TellTale {
    fn validate(&self, problems: &mut FieldProblems) {
        if self.ignored_resources.iter().any(|name| name == "tell/tale") {
            problems.invalid("", json!(self), "told");
        }
    }
}

struct Fit;

impl Plugin for Fit {
    const NAME: &'static str = "NodeResourcesFit";
    type Args = TellTale;

    fn new(_: TellTale) -> Self {
        Fit
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for Fit {
    fn filter(
        &self,
        _: &supercargo_framework::Cycle<'_>,
        _: supercargo_model::NodeRef<'_>,
    ) -> supercargo_framework::Status {
        supercargo_framework::Status::success()
    }
}

#[test]
fn resources_of_extenders_replace_ignored_ones() {
    let mut registry = Registry::default();
    registry.register::<Fit>().expect("is the first");
    registry.register::<support::PrioritySort>().expect("is the first");
    registry.register::<support::DefaultBinder>().expect("is the first");
    let extenders = "extenders: [{managedResources: [{name: a/b}, {name: tell/tale, ignoredByScheduler: true}]}, \
                     {managedResources: [{name: c/d, ignoredByScheduler: true}]}]";
    let build = |enabled: &str, config: &str| {
        let text = format!(
            "{HEAD}{extenders}\nprofiles: [{{plugins: {{multiPoint: {{disabled: [{{name: '*'}}], enabled: \
             [{{name: PrioritySort}}, {{name: DefaultBinder}}{enabled}]}}}}, pluginConfig: {config}}}]"
        );
        let config = load(&text).expect("is readable").kube;
        build_profile(&config, &registry, 0).expect("extenders play no part for one profile");
        build_profiles(&config, &registry).map(|_| ()).map_err(|problems| problems.to_string())
    };
    let args = "[{name: NodeResourcesFit, args: {ignoredResources: [x/y], other: o}}]";
    assert_eq!(
        build(", {name: NodeResourcesFit}", args).expect_err("tells"),
        "error C022 profiles[0].pluginConfig[0].args: initializing plugin \"NodeResourcesFit\": Invalid value: \
         {\"ignoredResources\":[\"tell/tale\",\"c/d\"],\"other\":\"o\"}: told"
    );
    assert!(
        build(", {name: NodeResourcesFit}", "[]").expect_err("tells").contains("[\"tell/tale\",\"c/d\"]")
    );
    assert_eq!(
        build("", "[]").expect_err("there is nobody to tell"),
        "error C054 profiles[0]: can't find NodeResourcesFitArgs in plugin config"
    );
    assert_eq!(build("", args), Ok(()), "arguments are enough");
}
