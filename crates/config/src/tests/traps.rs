//! Warnings.

use supercargo_framework::Acts;
use supercargo_framework::{
    Cycle, Extensions, NoArgs, NodeField, Normalization, Plugin, PodField, PostBind, Reads, Score, Status,
};
use supercargo_model::NodeRef;

use super::{HEAD, check, check_hint, plugin_config, plugins, problems_of, support};

#[test]
fn scoring_without_what_was_worked_out_before() {
    let failing = |name: &str| {
        format!(
            "W001 profiles[0].plugins.preScore: {name} scores without its preScore: every pod with two or more \
             feasible nodes will fail"
        )
    };
    let all = ["TaintToleration", "PodTopologySpread", "InterPodAffinity"].map(failing);
    check(&plugins("{preScore: {disabled: [{name: '*'}]}}"), &all.each_ref().map(String::as_str));
    for name in ["TaintToleration", "PodTopologySpread", "InterPodAffinity"] {
        check(&plugins(&format!("{{preScore: {{disabled: [{{name: {name}}}]}}}}")), &[&failing(name)]);
        check(
            &plugins(&format!(
                "{{preScore: {{disabled: [{{name: {name}}}]}}, score: {{disabled: [{{name: {name}}}]}}}}"
            )),
            &[],
        );
    }
    // These work it out themselves.
    for name in ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"] {
        check(&plugins(&format!("{{preScore: {{disabled: [{{name: {name}}}]}}}}")), &[]);
    }
    check_hint(
        &plugins("{preScore: {disabled: [{name: TaintToleration}]}}"),
        "disable TaintToleration at score too, or enable it at preScore",
    );
}

#[test]
fn later_points_without_what_pre_filter_worked_out() {
    let failing = |name: &str, points: &str| {
        format!(
            "W002 profiles[0].plugins.preFilter: {name} runs at {points} without its preFilter: every pod will fail"
        )
    };
    check(
        &plugins("{preFilter: {disabled: [{name: '*'}]}}"),
        &[
            &failing("NodePorts", "filter"),
            &failing("NodeResourcesFit", "filter"),
            &failing("VolumeRestrictions", "filter"),
            &failing("VolumeBinding", "filter, preScore, score, reserve, preBind"),
            &failing("PodTopologySpread", "filter"),
            &failing("InterPodAffinity", "filter"),
            &failing("DynamicResources", "filter, score, reserve, preBind"),
            &failing("NodeDeclaredFeatures", "filter"),
        ],
    );
    check(
        &plugins(
            "{preFilter: {disabled: [{name: NodeAffinity}, {name: VolumeZone}, {name: NodeVolumeLimits}]}}",
        ),
        &[],
    );
    let only_score = "{preFilter: {disabled: [{name: DynamicResources}]}, filter: {disabled: [{name: \
                      DynamicResources}]}, reserve: {disabled: [{name: DynamicResources}]}, \
                      preBind: {disabled: [{name: DynamicResources}]}}";
    check(
        &plugins(only_score),
        &[
            "W002 profiles[0].plugins.preFilter: DynamicResources runs at score without its preFilter: every pod with two \
         or more feasible nodes will fail",
        ],
    );
}

#[test]
fn default_weights_are_lost() {
    check(
        &plugins(
            "{score: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration}, {name: ImageLocality}]}}",
        ),
        &["W003 profiles[0].plugins.score.enabled[0]: TaintToleration gets weight 1, not its default of 3"],
    );
    check(
        &plugins("{multiPoint: {enabled: [{name: NodeAffinity}]}}"),
        &["W003 profiles[0].plugins.multiPoint.enabled[0]: NodeAffinity gets weight 1, not its default of 2"],
    );
    check_hint(&plugins("{score: {enabled: [{name: NodeAffinity}]}}"), "write `weight: 2` to keep it");
    // Somebody else says the weight, or it does not score, or 1 was meant.
    check(
        &plugins(
            "{multiPoint: {enabled: [{name: NodeAffinity}]}, score: {enabled: [{name: NodeAffinity, weight: 5}]}}",
        ),
        &[],
    );
    check(
        &plugins(
            "{multiPoint: {enabled: [{name: NodeAffinity}]}, score: {disabled: [{name: NodeAffinity}]}}",
        ),
        &[],
    );
    check(&plugins("{score: {enabled: [{name: NodeAffinity, weight: 1}]}}"), &[]);
}

#[test]
fn arguments_without_effect() {
    check(
        &plugin_config(
            "[{name: NodeName, args: {a: 1}}, {name: ImageLocality, args: {}}, {name: PrioritySort}]",
        ),
        &["W004 profiles[0].pluginConfig[0].args: NodeName takes no arguments, so these are ignored"],
    );
    check(
        &plugin_config("[{name: NodeResourceFit}]"),
        &[
            "W006 profiles[0].pluginConfig[0].name: there is no plugin \"NodeResourceFit\", so its arguments have no effect",
        ],
    );
    check_hint(&plugin_config("[{name: NodeResourceFit}]"), "did you mean \"NodeResourcesFit\"?");
    check(
        &plugin_config("[{name: Out}]"),
        &["W005 profiles[0].pluginConfig[0].name: Out is not enabled, so its arguments have no effect"],
    );
}

#[test]
fn nothing_to_disable() {
    check(
        &plugins(
            "{score: {disabled: [{name: ImageLocalty}, {name: NodePorts}]}, multiPoint: {disabled: [{name: Foo}]}}",
        ),
        &[
            "W007 profiles[0].plugins.score.disabled[0].name: there is no plugin \"ImageLocalty\" to disable",
            "W007 profiles[0].plugins.score.disabled[1].name: NodePorts takes no part in score, so there is nothing to \
             disable",
            "W007 profiles[0].plugins.multiPoint.disabled[0].name: there is no plugin \"Foo\" to disable",
        ],
    );
    check_hint(&plugins("{score: {disabled: [{name: ImageLocalty}]}}"), "did you mean \"ImageLocality\"?");
}

#[test]
fn a_written_weight_of_zero() {
    for point in ["multiPoint", "score"] {
        check(
            &plugins(&format!("{{{point}: {{enabled: [{{name: NodeAffinity, weight: 0}}]}}}}")),
            &[&format!(
                "C039 profiles[0].plugins.{point}.enabled[0].weight: Invalid value: 0: NodeAffinity would count with \
                 weight 1, not 0"
            )],
        );
    }
}

#[test]
fn ignored_weights() {
    check(
        &plugins(
            "{filter: {enabled: [{name: NodePorts, weight: 2}, {name: Out, weight: 0}]}, \
             multiPoint: {enabled: [{name: NodeName, weight: 3}]}}",
        ),
        &[
            "W008 profiles[0].plugins.filter.enabled[0].weight: the weight is ignored: weights count at score, not at \
             filter",
            "W008 profiles[0].plugins.multiPoint.enabled[0].weight: NodeName has no scores, so its weight is ignored",
        ],
    );
}

#[test]
fn zero_percent() {
    let message =
        "0 means all nodes here, where kube-scheduler looks at a share that depends on the cluster's size";
    check(
        &format!("{HEAD}percentageOfNodesToScore: 0\nprofiles: [{{percentageOfNodesToScore: 0}}]"),
        &[
            &format!("W009 percentageOfNodesToScore: {message}"),
            &format!("W009 profiles[0].percentageOfNodesToScore: {message}"),
        ],
    );
}

#[test]
fn no_preemption() {
    let warning = "W010 profiles[0].plugins.postFilter: no plugin preempts: pods of high priority will wait like all \
                   others";
    for written in [
        "{postFilter: {disabled: [{name: '*'}]}}",
        "{postFilter: {disabled: [{name: DefaultPreemption}]}}",
        "{multiPoint: {disabled: [{name: DefaultPreemption}]}}",
    ] {
        check(&plugins(written), &[warning]);
    }
    check(&plugins("{postFilter: {disabled: [{name: DynamicResources}]}}"), &[]);
}

#[test]
fn points_that_are_not_run() {
    check(
        &plugins("{placementScore: {enabled: [{name: NodeResourcesFit, weight: 2}]}}"),
        &[
            "W011 profiles[0].plugins.placementScore.enabled: placementScore is alpha in kube-scheduler and is not run",
        ],
    );
}

#[test]
fn ignored_resources_are_replaced() {
    let extenders =
        "extenders: [{urlPrefix: 'http://x', managedResources: [{name: x.y/z, ignoredByScheduler: true}]}]";
    let fit = |args: &str| {
        format!("{}{extenders}\n", plugin_config(&format!("[{{name: NodeResourcesFit, args: {args}}}]")))
    };
    check(
        &fit("{ignoredResources: [a.b/c]}"),
        &["W012 profiles[0].pluginConfig[0].args.ignoredResources: extenders replace these by x.y/z"],
    );
    check(&fit("{ignoredResources: []}"), &[]);
}

/// Scores by what the pod is called, by its first letter, or by nothing; `PostBind` besides, where it does not matter.
struct Called<const BY: char>;

const NAME: char = 'n';
const LETTER: char = 'l';
const NOTHING: char = '-';
/// By nothing either, but it does not say how its scores are normalised.
const SILENT: char = '?';

impl<const BY: char> Plugin for Called<BY> {
    const NAME: &'static str = match BY {
        NAME => "Called",
        LETTER => "Initial",
        SILENT => "Silent",
        _ => "Uncalled",
    };
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Called
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score().post_bind()
    }

    fn reads(&self) -> Reads {
        let reads = Reads::nothing().node(&[NodeField::Name]);
        match BY {
            NAME => reads.pod(&[PodField::Name]),
            LETTER => reads.pod(&[PodField::Name]).alike(),
            _ => reads,
        }
    }
}

impl<const BY: char> Score for Called<BY> {
    fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        Ok(0)
    }

    fn normalization(&self) -> Normalization {
        if BY == SILENT { Normalization::Unknown } else { Normalization::None }
    }
}

impl<const BY: char> PostBind for Called<BY> {
    fn post_bind(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

#[test]
fn a_plugin_whose_answers_cannot_be_kept() {
    let mut registry = support::registry();
    registry.register::<Called<NAME>>().expect("the name is free");
    registry.register::<Called<LETTER>>().expect("the name is free");
    registry.register::<Called<NOTHING>>().expect("the name is free");
    registry.register::<Called<SILENT>>().expect("the name is free");
    for (enabled, is_warned) in [
        ("{multiPoint: {enabled: [{name: Called}]}}", true),
        ("{score: {enabled: [{name: Called}]}}", true),
        ("{postBind: {enabled: [{name: Called}]}}", false),
        ("{multiPoint: {enabled: [{name: Silent}]}}", true),
        ("{multiPoint: {enabled: [{name: Initial}]}}", false),
        ("{multiPoint: {enabled: [{name: Uncalled}]}}", false),
    ] {
        let problems = problems_of(&plugins(enabled), &registry);
        let codes: Vec<(&str, &str)> =
            problems.iter().map(|problem| (problem.code, problem.path.as_str())).collect();
        let expected: &[(&str, &str)] = if is_warned { &[("W021", "profiles[0].plugins")] } else { &[] };
        assert_eq!(codes, expected, "{enabled}");
    }
}
