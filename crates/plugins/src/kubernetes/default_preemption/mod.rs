//! DefaultPreemption: makes room for a pod by evicting pods of lower priority.

use serde::{Deserialize, Serialize};
use supercargo_framework::preemption::{self, PreemptionRules, no_victims, preempt};
use supercargo_framework::{
    Actions, Args, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, FieldProblems, Hint, NodeField,
    Plugin, PodField, PostFilter, PostFilterResult, PreEnqueue, Reads, Rehearsal, Rejections, Status, Writes,
};
use supercargo_model::Pod;
use supercargo_model::kinds::PodDisruptionBudget;

/// # What
/// When a pod fits nowhere, looks for a node where it would fit if pods of lower priority went, picks the node where
/// that costs least, and nominates the pod to it.
///
/// A node costs less the fewer disruption budgets are violated; then the lower the highest priority of its victims;
/// then the smaller the sum of their priorities; then the fewer they are; then the later the first of the most
/// important ones was started.
///
/// # Why
/// Important pods should not wait for unimportant ones to finish.
///
/// # Arguments
/// `minCandidateNodesPercentage` (10) and `minCandidateNodesAbsolute` (100): how many nodes to find before picking
/// one, as a share of those that come into question and as a number; the larger counts.
///
/// # Example
/// ```yaml
/// spec:
///   priorityClassName: critical
///   preemptionPolicy: Never   # wait rather than evict anybody
/// ```
///
/// # Difference from upstream
/// Ties that upstream leaves to chance go to the smaller name: among nodes that cost the same, and among victims that
/// are equally important.
#[derive(Debug)]
pub struct DefaultPreemption {
    min_candidate_nodes_percentage: i32,
    min_candidate_nodes_absolute: i32,
}

/// Arguments of [`DefaultPreemption`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DefaultPreemptionArgs {
    /// How many nodes to find, in percent of those that come into question.
    pub min_candidate_nodes_percentage: Option<i32>,
    /// How many nodes to find at least.
    pub min_candidate_nodes_absolute: Option<i32>,
}

impl Args for DefaultPreemptionArgs {
    fn complete(&mut self) {
        self.min_candidate_nodes_percentage.get_or_insert(preemption::MIN_CANDIDATE_NODES_PERCENTAGE);
        self.min_candidate_nodes_absolute.get_or_insert(preemption::MIN_CANDIDATE_NODES_ABSOLUTE);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        let (percentage, absolute) = (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute);
        if let Some(percentage) = percentage.filter(|percentage| !(0..=100).contains(percentage)) {
            problems.invalid("minCandidateNodesPercentage", percentage, "not in valid range [0, 100]");
        }
        if let Some(absolute) = absolute.filter(|absolute| *absolute < 0) {
            problems.invalid("minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)");
        }
        if percentage == Some(0) && absolute == Some(0) {
            for (path, other) in [
                ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
                ("minCandidateNodesAbsolute", "minCandidateNodesPercentage"),
            ] {
                problems.invalid(path, 0, format!("cannot be zero at the same time as {other}"));
            }
        }
    }
}

impl Plugin for DefaultPreemption {
    const NAME: &'static str = "DefaultPreemption";
    type Args = DefaultPreemptionArgs;

    fn new(args: DefaultPreemptionArgs) -> Self {
        DefaultPreemption {
            min_candidate_nodes_percentage: args.min_candidate_nodes_percentage.expect("was filled in"),
            min_candidate_nodes_absolute: args.min_candidate_nodes_absolute.expect("was filled in"),
        }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue().post_filter().enqueue()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().evictions()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Priority, PodField::PreemptionPolicy, PodField::Status])
            .node(&[NodeField::Name, NodeField::Pods])
            .kind::<PodDisruptionBudget>()
    }

    fn subject(&self) -> &'static str {
        "evictions"
    }
}

impl PreEnqueue for DefaultPreemption {
    /// A pod whose victims are being evicted has to wait; but that is nothing to decide here: whoever evicts holds it back.
    fn pre_enqueue(&self, _: &Context<'_>, _: &Pod) -> Status {
        Status::success()
    }
}

impl PostFilter for DefaultPreemption {
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

/// The rules are upstream's; what is added saves work.
impl PreemptionRules for DefaultPreemption {
    fn candidates_wanted(&self, nodes: usize) -> usize {
        let (percentage, absolute) = (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute);
        preemption::candidates_wanted(percentage, absolute, nodes)
    }

    fn nobody_may_go(&self, cycle: &Cycle<'_>) -> Option<Status> {
        let lowest = cycle.cluster().lowest_priority();
        lowest.is_none_or(|lowest| lowest >= cycle.pod.priority()).then(no_victims)
    }

    fn findings_depend_on(&self, _: &Cycle<'_>) -> Option<Vec<u64>> {
        Some(Vec::new())
    }
}

impl Enqueue for DefaultPreemption {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::DELETE)]
    }

    /// The plugins that rejected the pod know better what helps it.
    fn hint(&self, _: &Context<'_>, _: &Pod, _: &Change<'_>) -> Hint {
        Hint::Skip
    }
}

#[cfg(test)]
mod tests;
