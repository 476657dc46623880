//! Feature gates: upstream has them, we have not, and people's command lines name them.

use super::known_gates;

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

/// What to say about the gates that a command line names, all of which kube-scheduler takes.
pub(super) fn warnings(given: &[String]) -> Vec<String> {
    read(given).filter_map(Result::ok).filter_map(|(name, value)| warning(name, value)).collect()
}

/// Refuses what kube-scheduler refuses, in its words.
pub(super) fn check(given: &[String]) -> Result<(), String> {
    for gate in read(given) {
        let (name, value) = gate?;
        let is_in = |names: &str| names.split(' ').any(|known| known == name);
        let locked = match value {
            false => is_in(known_gates::LOCKED_ON),
            true => is_in(known_gates::LOCKED_OFF),
        };
        if locked {
            return Err(format!(
                "cannot set feature gate {name} to {value}, feature is locked to {}",
                !value
            ));
        }
        if ![known_gates::FREE, known_gates::LOCKED_ON, known_gates::LOCKED_OFF].into_iter().any(is_in) {
            return Err(format!("unrecognized feature gate: {name}"));
        }
    }
    Ok(())
}

/// The gates and whether they shall be on.
fn read(given: &[String]) -> impl Iterator<Item = Result<(&str, bool), String>> {
    let pairs = given.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        // With several components' gates on one line, ours come behind `kube:`.
        let pair = match pair.split_once(':') {
            None => pair,
            Some(("kube", pair)) => pair,
            Some((component, _)) => return Err(format!("component not registered: {component}")),
        };
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("missing bool value for {pair}"))?;
        let (name, value) = (name.trim(), value.trim());
        let invalid = |_| {
            format!(
                "invalid value of {name}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
            )
        };
        Ok((name, super::go_bool(value).map_err(invalid)?))
    })
}

fn warning(name: &str, value: bool) -> Option<String> {
    let (_, default) = GATES.iter().find(|(known, _)| *known == name)?;
    (*default != value).then(|| {
        format!(
            "--feature-gates: {name}={value} is ignored: Supercargo behaves as kube-scheduler does with {name}={default}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_that_change_scheduling_are_known() {
        for (name, default) in GATES {
            assert_eq!(check(&[format!("{name}={default}")]), Ok(()), "{name}");
        }
    }
}
