//! PreemptionToleration: preemption that pods of some priority classes tolerate for a while, or at all.

mod policy;

use supercargo_framework::preemption::{self, PreemptionRules, preempt};
use supercargo_framework::{
    Cycle, Extensions, NodeField, Plugin, PodField, PostFilter, PostFilterResult, Reads, Rehearsal,
    Rejections, Status, Writes,
};
use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{NodeRef, Pod};

use super::preempting::no_victims;
use crate::kubernetes::DefaultPreemptionArgs;
pub use policy::PriorityClass;

/// # What
/// Makes room for a pod that fits nowhere as DefaultPreemption does, but spares pods whose PriorityClass says so: those are evicted only
/// for pods of at least a certain priority, or when they have run for a certain time.
///
/// # Why
/// A long computation of low priority should not lose its work to whatever comes next, but yield to what really matters.
///
/// # Arguments
/// `minCandidateNodesPercentage` (10) and `minCandidateNodesAbsolute` (100), as DefaultPreemption has them.
///
/// # Example
/// ```yaml
/// apiVersion: scheduling.k8s.io/v1
/// kind: PriorityClass
/// metadata:
///   name: batch
///   annotations:
///     preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: "10000"
///     preemption-toleration.scheduling.x-k8s.io/toleration-seconds: "3600"   # -1: for ever
/// value: 8000
/// ---
/// plugins:
///   postFilter: {enabled: [{name: PreemptionToleration}], disabled: [{name: DefaultPreemption}]}
/// ```
/// Pods of priority 9999 evict pods of this class when those have been scheduled for an hour, pods of priority 10000 at once.
///
/// # Difference from upstream
/// All pods of one decision are judged at one time, where upstream's time may be that of another decision. As upstream, a less important pod
/// whose PriorityClass is gone keeps everybody on its node, unless the fix `gonePriorityClass` is asked for; pods without a PriorityClass are
/// not spared; and the time runs from when a pod was scheduled, not from when its containers started. Where there are more than 100 nodes, a pod that
/// nobody goes for is told how many nodes were tried, and not the name of each.
#[derive(Debug)]
pub struct PreemptionToleration {
    min_candidate_nodes_percentage: i32,
    min_candidate_nodes_absolute: i32,
}

impl Plugin for PreemptionToleration {
    const NAME: &'static str = "PreemptionToleration";
    type Args = DefaultPreemptionArgs;

    fn new(args: DefaultPreemptionArgs) -> Self {
        PreemptionToleration {
            min_candidate_nodes_percentage: args.min_candidate_nodes_percentage.expect("was filled in"),
            min_candidate_nodes_absolute: args.min_candidate_nodes_absolute.expect("was filled in"),
        }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.post_filter()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().evictions()
    }

    fn reads(&self) -> Reads {
        let pod = [
            PodField::Name,
            PodField::Namespace,
            PodField::Priority,
            PodField::PreemptionPolicy,
            PodField::PriorityClass,
            PodField::Status,
        ];
        Reads::nothing()
            .pod(&pod)
            .node(&[NodeField::Name, NodeField::Pods])
            .progress_of_pods()
            .kind::<PodDisruptionBudget>()
            .kind::<PriorityClass>()
            .time()
    }

    fn subject(&self) -> &'static str {
        "evictions"
    }
}

impl PostFilter for PreemptionToleration {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        preempt(self, cycle, rejections, rehearsal)
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }
}

impl PreemptionRules for PreemptionToleration {
    /// Upstream has kept an older rule: a pod waits for any pod of lower priority that is leaving, whatever evicted it.
    fn waits_for(&self, cycle: &Cycle<'_>, leaving: &Pod) -> bool {
        leaving.priority() < cycle.pod.priority()
    }

    fn may_evict(&self, cycle: &Cycle<'_>, pod: &Pod) -> Result<bool, Status> {
        Ok(pod.priority() < cycle.pod.priority() && !policy::is_spared(cycle, pod)?)
    }

    fn candidates_wanted(&self, nodes: usize) -> usize {
        let (percentage, absolute) = (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute);
        preemption::candidates_wanted(percentage, absolute, nodes)
    }

    fn no_victims(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        no_victims(cycle, node)
    }

    fn message_prefix(&self) -> &'static str {
        ""
    }

    fn findings_depend_on(&self, cycle: &Cycle<'_>) -> Option<Vec<u64>> {
        policy::findings_depend_on(cycle)
    }
}

#[cfg(test)]
mod tests;
