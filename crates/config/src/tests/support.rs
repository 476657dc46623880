//! Plugins that carry the in-tree names, points and some of the arguments, and do nothing.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Acts, Args, Bind, Context, Cycle, Extensions, FieldProblems, Filter, NoArgs, Normalization, Permit,
    PermitDecision, Plugin, PostBind, PostFilter, PostFilterResult, PreBind, PreEnqueue, PreFilter,
    PreFilterResult, PreScore, QueueSort, QueuedPod, Reads, Registry, Rehearsal, Rejections, Reserve, Score,
    Status, Step,
};
use supercargo_model::{NodeRef, Pod, Row};

/// A plugin of each in-tree name, and `Out`, which is none of them.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::default();
    register(&mut registry);
    registry
}

macro_rules! dummies {
    ($($name:ident($args:ty): $($point:ident)*;)*) => {
        fn register(registry: &mut Registry) {
            $(registry.register::<$name>().expect("each name stands here once");)*
        }
        $(
            pub(crate) struct $name;

            impl Plugin for $name {
                const NAME: &'static str = stringify!($name);
                type Args = $args;
                fn new(_: $args) -> Self { $name }
                fn extensions(points: Extensions<Self>) -> Extensions<Self> { points$(.$point())* }
                fn reads(&self) -> Reads { Reads::nothing() }
            }
            impl PreEnqueue for $name {
                fn pre_enqueue(&self, _: &Context<'_>, _: &Pod) -> Status { Status::success() }
            }
            impl QueueSort for $name {
                fn less(&self, _: &Context<'_>, _: &QueuedPod, _: &QueuedPod) -> bool { false }
            }
            impl PreFilter for $name {
                fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult { PreFilterResult::AllNodes }
            }
            impl Filter for $name {
                fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status { Status::success() }
            }
            impl PostFilter for $name {
                fn post_filter(&self, _: &Cycle<'_>, _: &dyn Rejections, _: &dyn Rehearsal) -> PostFilterResult {
                    PostFilterResult::default()
                }
            }
            impl PreScore for $name {
                fn pre_score(&self, _: &mut Cycle<'_>, _: &[Row]) -> Status { Status::success() }
            }
            impl Score for $name {
                fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> { Ok(0) }
                fn normalization(&self) -> Normalization { Normalization::None }
            }
            impl Reserve for $name {
                fn reserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
                    Status::success()
                }
                fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
            }
            impl Permit for $name {
                fn permit(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
                    PermitDecision::Allow
                }
            }
            impl PreBind for $name {
                fn pre_bind(&self, _: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
                    Step::Done(Status::success())
                }
            }
            impl Bind for $name {
                fn bind(&self, _: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
                    Step::Done(Status::success())
                }
            }
            impl PostBind for $name {
                fn post_bind(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
            }
        )*
    };
}

dummies! {
    SchedulingGates(NoArgs): pre_enqueue;
    PrioritySort(NoArgs): queue_sort;
    NodeUnschedulable(NoArgs): filter;
    NodeName(NoArgs): filter;
    TaintToleration(NoArgs): filter pre_score score;
    NodeAffinity(AnyArgs): pre_filter filter pre_score score;
    NodePorts(NoArgs): pre_filter filter;
    NodeResourcesFit(FitArgs): pre_filter filter pre_score score;
    VolumeRestrictions(NoArgs): pre_filter filter;
    NodeVolumeLimits(NoArgs): pre_filter filter;
    VolumeBinding(AnyArgs): pre_filter filter pre_score score reserve pre_bind;
    VolumeZone(NoArgs): pre_filter filter;
    PodTopologySpread(AnyArgs): pre_filter filter pre_score score;
    InterPodAffinity(InterPodAffinityArgs): pre_filter filter pre_score score;
    DynamicResources(AnyArgs): pre_enqueue pre_filter filter post_filter score reserve pre_bind;
    DefaultPreemption(AnyArgs): pre_enqueue post_filter;
    NodeResourcesBalancedAllocation(AnyArgs): pre_score score;
    ImageLocality(NoArgs): score;
    DefaultBinder(NoArgs): bind;
    NodeDeclaredFeatures(NoArgs): pre_filter filter;
    Out(NoArgs): queue_sort filter score bind permit post_bind;
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AnyArgs {
    text: Option<String>,
}

impl Args for AnyArgs {}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FitArgs {
    ignored_resources: Vec<String>,
    ignored_resource_groups: Vec<String>,
}

impl Args for FitArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        for (index, group) in self.ignored_resource_groups.iter().enumerate() {
            if group.contains('/') {
                let path = format!("ignoredResourceGroups[{index}]");
                problems.invalid(path, group, "resource group name can't contain '/'");
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct InterPodAffinityArgs {
    hard_pod_affinity_weight: i32,
}

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        InterPodAffinityArgs { hard_pod_affinity_weight: 1 }
    }
}

impl Args for InterPodAffinityArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        let weight = self.hard_pod_affinity_weight;
        if !(0..=100).contains(&weight) {
            problems.invalid("hardPodAffinityWeight", weight, "not in valid range [0-100]");
        }
    }
}
