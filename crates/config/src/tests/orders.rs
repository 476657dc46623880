//! Which plugins run where, in which order, with which weight.

use supercargo_framework::{Named, Point, Profile};

use super::{HEAD, plugins, support};
use crate::{build_profile, build_profiles, load};

fn built(text: &str) -> Profile {
    let config = load(text).unwrap_or_else(|problems| panic!("{problems}")).kube;
    build_profile(&config, &support::registry(), 0).unwrap_or_else(|problems| panic!("{problems}"))
}

fn names<T: ?Sized>(list: &[Named<T>]) -> Vec<&'static str> {
    list.iter().map(|plugin| plugin.name).collect()
}

fn scores(text: &str) -> String {
    let profile = built(text);
    let scores: Vec<String> =
        profile.score.iter().map(|(plugin, weight)| format!("{} {weight}", plugin.name)).collect();
    scores.join(", ")
}

const OTHERS: &str = "NodeAffinity 2, NodeResourcesFit 1, VolumeBinding 1, PodTopologySpread 2, InterPodAffinity 2, \
                      DynamicResources 2, NodeResourcesBalancedAllocation 1";

#[test]
fn default_order_at_each_point() {
    let profile = built(HEAD);
    let pre_filter = [
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ];
    assert_eq!(names(&profile.pre_enqueue), ["SchedulingGates", "DynamicResources", "DefaultPreemption"]);
    assert_eq!(names(&profile.queue_sort), ["PrioritySort"]);
    assert_eq!(names(&profile.pre_filter), pre_filter);
    let filter = [&["NodeUnschedulable", "NodeName", "TaintToleration"][..], &pre_filter].concat();
    assert_eq!(names(&profile.filter), filter);
    assert_eq!(names(&profile.post_filter), ["DynamicResources", "DefaultPreemption"]);
    assert_eq!(
        names(&profile.pre_score),
        [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation"
        ]
    );
    assert_eq!(names(&profile.reserve), ["VolumeBinding", "DynamicResources"]);
    assert!(profile.permit.is_empty() && profile.post_bind.is_empty());
    assert_eq!(names(&profile.pre_bind), ["VolumeBinding", "DynamicResources"]);
    assert_eq!(names(&profile.bind), ["DefaultBinder"]);
    assert_eq!(profile.scheduler_name, "default-scheduler");
}

/// Specification, C.4, and the rules of merging and expanding around it.
#[test]
fn order_and_weights_of_scores() {
    let default = format!("TaintToleration 3, {OTHERS}, ImageLocality 1");
    for (written, expected) in [
        ("{}", default.clone()),
        (
            "{score: {enabled: [{name: ImageLocality, weight: 5}]}}",
            format!("ImageLocality 5, TaintToleration 3, {OTHERS}"),
        ),
        (
            "{score: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration}]}}",
            format!("{OTHERS}, ImageLocality 1, TaintToleration 1"),
        ),
        (
            "{score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 2}]}}",
            "NodeResourcesFit 2".to_owned(),
        ),
        (
            "{multiPoint: {enabled: [{name: NodeAffinity, weight: 10}], disabled: [{name: ImageLocality}]}}",
            format!("TaintToleration 3, {}", OTHERS.replace("NodeAffinity 2", "NodeAffinity 10")),
        ),
        (
            "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}, {name: ImageLocality}, \
             {name: PrioritySort}, {name: DefaultBinder}]}}",
            "NodeResourcesFit 1, ImageLocality 1".to_owned(),
        ),
        ("{score: {enabled: [{name: Out, weight: 4}]}}", format!("{default}, Out 4")),
        // Several overrides keep the order in which they are written, and go first.
        (
            "{score: {enabled: [{name: ImageLocality}, {name: Out}, {name: TaintToleration, weight: 7}]}}",
            format!("ImageLocality 1, TaintToleration 7, {OTHERS}, Out 1"),
        ),
        // A weight of 0 is a weight of 1.
        (
            "{multiPoint: {enabled: [{name: TaintToleration, weight: 0}]}}",
            format!("TaintToleration 1, {OTHERS}, ImageLocality 1"),
        ),
        // The point's weight goes before multiPoint's.
        (
            "{multiPoint: {enabled: [{name: ImageLocality, weight: 7}]}, score: {enabled: [{name: ImageLocality}]}}",
            format!("ImageLocality 1, TaintToleration 3, {OTHERS}"),
        ),
        // Disabled at the point: its weight is still there, but it does not run.
        ("{score: {disabled: [{name: TaintToleration}]}}", format!("{OTHERS}, ImageLocality 1")),
        // Disabling what is not there changes nothing.
        (
            "{score: {disabled: [{name: Unheard}]}, multiPoint: {disabled: [{name: Unheard}]}}",
            default.clone(),
        ),
        // Disabled and enabled at multiPoint moves to the end.
        (
            "{multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 3}]}}",
            format!("{OTHERS}, ImageLocality 1, TaintToleration 3"),
        ),
        // Twice at multiPoint does not matter where the point overrides it.
        (
            "{multiPoint: {enabled: [{name: ImageLocality, weight: 7}, {name: ImageLocality}]}, \
             score: {enabled: [{name: ImageLocality, weight: 2}]}}",
            format!("ImageLocality 2, TaintToleration 3, {OTHERS}"),
        ),
    ] {
        assert_eq!(scores(&plugins(written)), expected, "{written}");
    }
}

#[test]
fn disabling_at_one_point_leaves_the_others() {
    let profile = built(&plugins("{score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}"));
    assert_eq!(profile.pre_score.len(), 7);
    assert!(profile.plugins().iter().all(|plugin| plugin.name != "ImageLocality"));
}

#[test]
fn points_alone_make_a_profile() {
    let profile = built(&plugins(
        "{multiPoint: {disabled: [{name: '*'}]}, queueSort: {enabled: [{name: Out}]}, \
         bind: {enabled: [{name: Out}, {name: DefaultBinder}]}, filter: {enabled: [{name: NodePorts}, {name: Out}]}}",
    ));
    assert_eq!(names(&profile.bind), ["Out", "DefaultBinder"]);
    assert_eq!(names(&profile.filter), ["NodePorts", "Out"]);
    assert!(profile.pre_filter.is_empty() && profile.score.is_empty());
}

#[test]
fn another_queue_order() {
    let profile = built(&plugins("{queueSort: {disabled: [{name: '*'}], enabled: [{name: Out}]}}"));
    assert_eq!(names(&profile.queue_sort), ["Out"]);
    assert!(Point::ALL.contains(&Point::QueueSort));
}

#[test]
fn percentages() {
    let percentage = |rest: &str| built(&format!("{HEAD}{rest}\n")).percentage_of_nodes_to_score;
    assert_eq!(percentage(""), None, "all nodes, where upstream adapts");
    assert_eq!(percentage("percentageOfNodesToScore: 0"), None);
    assert_eq!(percentage("percentageOfNodesToScore: 1"), Some(1));
    assert_eq!(percentage("percentageOfNodesToScore: 99"), Some(99));
    assert_eq!(percentage("percentageOfNodesToScore: 100"), None);
    assert_eq!(percentage("percentageOfNodesToScore: 50\nprofiles: [{percentageOfNodesToScore: 0}]"), None);
    assert_eq!(
        percentage("percentageOfNodesToScore: 50\nprofiles: [{percentageOfNodesToScore: 7}]"),
        Some(7)
    );
    // Only the validator minds these.
    assert_eq!(percentage("percentageOfNodesToScore: 101"), None);
    assert_eq!(percentage("percentageOfNodesToScore: -1"), None);
}

#[test]
fn profiles_are_made_in_their_order() {
    let config =
        load(&format!("{HEAD}profiles: [{{schedulerName: a}}, {{schedulerName: b}}]")).expect("is right");
    let profiles = build_profiles(&config.kube, &support::registry()).expect("is right");
    let names: Vec<&str> = profiles.iter().map(|profile| profile.scheduler_name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}
