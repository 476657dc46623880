//! Feature gates: upstream has them, we have not, and people's command lines name them.

/// Gates of kube-scheduler 1.36 that change what a scheduler does, and whether they are on there by default. That default
/// is how Supercargo behaves.
const GATES: &[(&str, bool)] = &[
    ("ClearingNominatedNodeNameAfterBinding", true),
    ("ComponentFlagz", true),
    ("ComponentStatusz", true),
    ("CoordinatedLeaderElection", false),
    ("DRAAdminAccess", true),
    ("DRAConsumableCapacity", true),
    ("DRADeviceBindingConditions", true),
    ("DRADeviceTaintRules", false),
    ("DRADeviceTaints", true),
    ("DRAExtendedResource", true),
    ("DRAListTypeAttributes", false),
    ("DRANodeAllocatableResources", false),
    ("DRAPartitionableDevices", true),
    ("DRAPrioritizedList", true),
    ("DRAResourceClaimDeviceStatus", true),
    ("DRASchedulerFilterTimeout", true),
    ("DRAWorkloadResourceClaims", false),
    ("DynamicResourceAllocation", true),
    ("GangScheduling", false),
    ("GenericWorkload", false),
    ("InPlacePodLevelResourcesVerticalScaling", true),
    ("InPlacePodVerticalScaling", true),
    ("MatchLabelKeysInPodAffinity", true),
    ("MatchLabelKeysInPodTopologySpread", true),
    ("MatchLabelKeysInPodTopologySpreadSelectorMerge", true),
    ("MutableCSINodeAllocatableCount", true),
    ("NodeDeclaredFeatures", true),
    ("NodeInclusionPolicyInPodTopologySpread", true),
    ("NominatedNodeNameForExpectation", true),
    ("OpportunisticBatching", true),
    ("PodLevelResources", true),
    ("PodObservedGenerationTracking", true),
    ("SchedulerAsyncAPICalls", false),
    ("SchedulerAsyncPreemption", true),
    ("SchedulerPopFromBackoffQ", true),
    ("SchedulerQueueingHints", true),
    ("SidecarContainers", true),
    ("StorageCapacityScoring", false),
    ("TaintTolerationComparisonOperators", false),
    ("TopologyAwareWorkloadScheduling", false),
    ("VolumeAttributesClass", true),
    ("VolumeLimitScaling", false),
    ("WorkloadAwarePreemption", false),
];

/// What to say about the gates that a command line names.
pub(super) fn warnings(given: &[String]) -> Vec<String> {
    let pairs = given.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|pair| !pair.is_empty());
    pairs.filter_map(warning).collect()
}

fn warning(pair: &str) -> Option<String> {
    let Some((name, value)) = pair.split_once('=') else {
        return Some(format!("--feature-gates: {pair:?} is no pair such as Name=true; ignored"));
    };
    // With several components' gates on one line, ours come behind `kube:`.
    let name = name.trim().trim_start_matches("kube:");
    let Ok(value) = super::go_bool(value.trim()) else {
        return Some(format!("--feature-gates: {value:?} of {name} is neither true nor false; ignored"));
    };
    match GATES.iter().find(|(known, _)| *known == name) {
        None => Some(format!("--feature-gates: {name} is not known; ignored")),
        Some((_, default)) if *default != value => Some(format!(
            "--feature-gates: {name}={value} is ignored: Supercargo behaves as kube-scheduler does with {name}={default}"
        )),
        Some(_) => None,
    }
}
