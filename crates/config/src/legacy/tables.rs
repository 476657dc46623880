//! What old releases had by default, and what became of plugins that are gone.

use supercargo_framework::Point::{
    self, Bind, Filter, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve, Score,
};

/// A plugin and its weight; weights count at `score` only.
pub(crate) type Default = (&'static str, i32);

/// The plugins of each point that a release enabled by default.
pub(crate) type Defaults = &'static [(Point, &'static [Default])];

/// What became of a plugin that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// One of NodeResourcesFit's ways to score.
    Strategy(&'static str),
    /// Part of NodeVolumeLimits, which counts migrated volumes too.
    VolumeLimits,
    /// PodTopologySpread's system defaults do it.
    SystemSpreading,
    /// Its filter is NodeAffinity's `addedAffinity`; its score has no successor.
    AddedAffinity,
    /// Nothing does it any more; what was it?
    Gone(&'static str),
}

/// The plugins that are gone. DefaultPodTopologySpread is what SelectorSpread was called in 1.18.
const FATES: [(&str, Fate); 13] = [
    ("NodeResourcesLeastAllocated", Fate::Strategy("LeastAllocated")),
    ("NodeResourcesMostAllocated", Fate::Strategy("MostAllocated")),
    ("RequestedToCapacityRatio", Fate::Strategy("RequestedToCapacityRatio")),
    ("EBSLimits", Fate::VolumeLimits),
    ("GCEPDLimits", Fate::VolumeLimits),
    ("AzureDiskLimits", Fate::VolumeLimits),
    ("CinderLimits", Fate::VolumeLimits),
    ("SelectorSpread", Fate::SystemSpreading),
    ("DefaultPodTopologySpread", Fate::SystemSpreading),
    ("NodeLabel", Fate::AddedAffinity),
    (
        "ServiceAffinity",
        Fate::Gone(
            "nothing keeps the pods of a service on nodes with the same labels; podAffinity in the pods does",
        ),
    ),
    (
        "NodePreferAvoidPods",
        Fate::Gone(
            "the annotation scheduler.alpha.kubernetes.io/preferAvoidPods of nodes is not looked at any more; taints do that",
        ),
    ),
    ("NodeResourceLimits", Fate::Gone("limits of pods are not looked at any more")),
];

pub(crate) fn fate(name: &str) -> Option<Fate> {
    FATES.iter().find(|(known, _)| *known == name).map(|(_, fate)| *fate)
}

/// Where the plugins of 1.36 take part.
pub(crate) const POINTS: [(&str, &[Point]); 20] = [
    ("SchedulingGates", &[PreEnqueue]),
    ("PrioritySort", &[QueueSort]),
    ("NodeUnschedulable", &[Filter]),
    ("NodeName", &[Filter]),
    ("TaintToleration", &[Filter, PreScore, Score]),
    ("NodeAffinity", &[PreFilter, Filter, PreScore, Score]),
    ("NodePorts", &[PreFilter, Filter]),
    ("NodeResourcesFit", &[PreFilter, Filter, PreScore, Score]),
    ("VolumeRestrictions", &[PreFilter, Filter]),
    ("NodeVolumeLimits", &[PreFilter, Filter]),
    ("VolumeBinding", &[PreFilter, Filter, PreScore, Score, Reserve, PreBind]),
    ("VolumeZone", &[PreFilter, Filter]),
    ("PodTopologySpread", &[PreFilter, Filter, PreScore, Score]),
    ("InterPodAffinity", &[PreFilter, Filter, PreScore, Score]),
    ("DynamicResources", &[PreEnqueue, PreFilter, Filter, PostFilter, Reserve, PreBind, Score]),
    ("DefaultPreemption", &[PreEnqueue, PostFilter]),
    ("NodeResourcesBalancedAllocation", &[PreScore, Score]),
    ("ImageLocality", &[Score]),
    ("DefaultBinder", &[Bind]),
    ("NodeDeclaredFeatures", &[PreFilter, Filter]),
];

/// The points of a plugin of 1.36; none if it is not one of them.
pub(super) fn points(name: &str) -> Option<&'static [Point]> {
    POINTS.iter().find(|(known, _)| *known == name).map(|(_, points)| *points)
}

const fn plain<const N: usize>(names: [&'static str; N]) -> [Default; N] {
    let mut list = [("", 1); N];
    let mut index = 0;
    while index < N {
        list[index].0 = names[index];
        index += 1;
    }
    list
}

const FILTERS: &[Default] = &plain([
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "EBSLimits",
    "GCEPDLimits",
    "NodeVolumeLimits",
    "AzureDiskLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
]);
const VOLUME_BINDING: &[Default] = &plain(["VolumeBinding"]);

/// Kubernetes 1.18, the last one that read the alpha versions. Preemption was no plugin yet; it is one here, so that it
/// can be disabled.
pub(super) const ALPHA: Defaults = &[
    (QueueSort, &plain(["PrioritySort"])),
    (PreFilter, &plain(["NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity"])),
    (Filter, FILTERS),
    (PostFilter, &plain(["DefaultPreemption"])),
    (
        PreScore,
        &plain(["InterPodAffinity", "PodTopologySpread", "DefaultPodTopologySpread", "TaintToleration"]),
    ),
    (
        Score,
        &[
            ("NodeResourcesBalancedAllocation", 1),
            ("ImageLocality", 1),
            ("InterPodAffinity", 1),
            ("NodeResourcesLeastAllocated", 1),
            ("NodeAffinity", 1),
            ("NodePreferAvoidPods", 10000),
            ("PodTopologySpread", 1),
            ("DefaultPodTopologySpread", 1),
            ("TaintToleration", 1),
        ],
    ),
    (Reserve, VOLUME_BINDING),
    (PreBind, VOLUME_BINDING),
    (Bind, &plain(["DefaultBinder"])),
];

/// Kubernetes 1.22, the last one that read v1beta1. In 1.19, SelectorSpread did the spreading.
pub(super) const V1BETA1: Defaults = &[
    (QueueSort, &plain(["PrioritySort"])),
    (
        PreFilter,
        &plain([
            "NodeResourcesFit",
            "NodePorts",
            "PodTopologySpread",
            "InterPodAffinity",
            "VolumeBinding",
            "NodeAffinity",
        ]),
    ),
    (Filter, FILTERS),
    (PostFilter, &plain(["DefaultPreemption"])),
    (PreScore, &plain(["InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"])),
    (
        Score,
        &[
            ("NodeResourcesBalancedAllocation", 1),
            ("ImageLocality", 1),
            ("InterPodAffinity", 1),
            ("NodeResourcesLeastAllocated", 1),
            ("NodeAffinity", 1),
            ("NodePreferAvoidPods", 10000),
            ("PodTopologySpread", 2),
            ("TaintToleration", 1),
        ],
    ),
    (Reserve, VOLUME_BINDING),
    (PreBind, VOLUME_BINDING),
    (Bind, &plain(["DefaultBinder"])),
];

/// Kubernetes 1.22 to 1.27.
pub(crate) const V1BETA2: Defaults = &[
    (PreEnqueue, &plain(["SchedulingGates"])),
    (QueueSort, &plain(["PrioritySort"])),
    (
        PreFilter,
        &plain([
            "NodeResourcesFit",
            "NodePorts",
            "VolumeRestrictions",
            "PodTopologySpread",
            "InterPodAffinity",
            "VolumeBinding",
            "VolumeZone",
            "NodeAffinity",
        ]),
    ),
    (Filter, FILTERS),
    (PostFilter, &plain(["DefaultPreemption"])),
    (PreScore, &plain(["InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"])),
    (
        Score,
        &[
            ("NodeResourcesBalancedAllocation", 1),
            ("ImageLocality", 1),
            ("InterPodAffinity", 1),
            ("NodeResourcesFit", 1),
            ("NodeAffinity", 1),
            ("PodTopologySpread", 2),
            ("TaintToleration", 1),
        ],
    ),
    (Reserve, VOLUME_BINDING),
    (PreBind, VOLUME_BINDING),
    (Bind, &plain(["DefaultBinder"])),
];

/// What a Policy could choose from in Kubernetes 1.22, the last one that read it. What plugins work out before filtering
/// and scoring came with them.
pub(super) const POLICY: Defaults = &[
    (QueueSort, &plain(["PrioritySort"])),
    (Filter, FILTERS),
    (PostFilter, &plain(["DefaultPreemption"])),
    (
        Score,
        &[
            ("NodeResourcesBalancedAllocation", 1),
            ("ImageLocality", 1),
            ("InterPodAffinity", 1),
            ("NodeResourcesLeastAllocated", 1),
            ("NodeAffinity", 1),
            ("NodePreferAvoidPods", 10000),
            ("PodTopologySpread", 2),
            ("SelectorSpread", 1),
            ("TaintToleration", 1),
        ],
    ),
    (Reserve, VOLUME_BINDING),
    (PreBind, VOLUME_BINDING),
    (Bind, &plain(["DefaultBinder"])),
];

/// The plugins behind each predicate. The node conditions became taints in 1.12.
pub(super) const PREDICATES: [(&str, &[&str]); 25] = [
    ("CheckNodeUnschedulable", &["NodeUnschedulable"]),
    ("GeneralPredicates", &["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"]),
    ("HostName", &["NodeName"]),
    ("PodFitsHostPorts", &["NodePorts"]),
    ("PodFitsPorts", &["NodePorts"]),
    ("MatchNodeSelector", &["NodeAffinity"]),
    ("PodFitsResources", &["NodeResourcesFit"]),
    ("NoDiskConflict", &["VolumeRestrictions"]),
    ("PodToleratesNodeTaints", &["TaintToleration"]),
    ("CheckNodeLabelPresence", &["NodeLabel"]),
    ("CheckServiceAffinity", &["ServiceAffinity"]),
    ("MaxEBSVolumeCount", &["EBSLimits"]),
    ("MaxGCEPDVolumeCount", &["GCEPDLimits"]),
    ("MaxCSIVolumeCountPred", &["NodeVolumeLimits"]),
    ("MaxAzureDiskVolumeCount", &["AzureDiskLimits"]),
    ("MaxCinderVolumeCount", &["CinderLimits"]),
    ("CheckVolumeBinding", &["VolumeBinding"]),
    ("NoVolumeZoneConflict", &["VolumeZone"]),
    ("EvenPodsSpread", &["PodTopologySpread"]),
    ("MatchInterPodAffinity", &["InterPodAffinity"]),
    ("CheckNodeCondition", &["TaintToleration"]),
    ("CheckNodeMemoryPressure", &["TaintToleration"]),
    ("CheckNodeDiskPressure", &["TaintToleration"]),
    ("CheckNodePIDPressure", &["TaintToleration"]),
    ("PodToleratesNodeNoExecuteTaints", &["TaintToleration"]),
];

/// What a Policy could not do without.
pub(super) const MANDATORY: [&str; 2] = ["NodeUnschedulable", "TaintToleration"];

/// The plugin behind each priority; none for the one that made no difference. RequestedToCapacityRatio is not among
/// them: its argument makes it, whatever its name.
pub(super) const PRIORITIES: [(&str, Option<&str>); 13] = [
    ("EvenPodsSpreadPriority", Some("PodTopologySpread")),
    ("SelectorSpreadPriority", Some("SelectorSpread")),
    ("ServiceSpreadingPriority", Some("SelectorSpread")),
    ("InterPodAffinityPriority", Some("InterPodAffinity")),
    ("LeastRequestedPriority", Some("NodeResourcesLeastAllocated")),
    ("MostRequestedPriority", Some("NodeResourcesMostAllocated")),
    ("BalancedResourceAllocation", Some("NodeResourcesBalancedAllocation")),
    ("NodePreferAvoidPodsPriority", Some("NodePreferAvoidPods")),
    ("NodeAffinityPriority", Some("NodeAffinity")),
    ("TaintTolerationPriority", Some("TaintToleration")),
    ("ImageLocalityPriority", Some("ImageLocality")),
    ("ResourceLimitsPriority", Some("NodeResourceLimits")),
    ("EqualPriority", None),
];
