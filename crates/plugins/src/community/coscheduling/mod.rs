//! Coscheduling: pods of a group go to their nodes together, or not at all.

mod admitting;
mod args;
mod background;
mod memory;
mod pod_group;
mod queueing;
mod resources;
mod spans;
mod status;
mod yielding;

use supercargo_framework::{Extensions, NodeField, Plugin, PodField, Reads, Writes};
use supercargo_model::Pod;

pub use args::CoschedulingArgs;
use memory::GroupMemory;
use pod_group::{LABELS, label_of};
pub use pod_group::{
    OLD_POD_GROUP_LABEL, OldPodGroup, POD_GROUP_LABEL, PodGroup, PodGroupSpec, PodGroupStatus,
};

/// # What
/// Pods with the label `scheduling.x-k8s.io/pod-group` belong to the PodGroup of that name in their namespace. Those that were given a
/// node wait at Permit until `minMember` of them have one, and then go together. If one of them fits nowhere, or has waited for too
/// long, all that wait give their nodes back.
///
/// - No member is tried before there are `minMember` of them, nor before the cluster has `minResources` left, all nodes taken together.
/// - Pods are tried by priority; of equal priority, those of the older group first, and after a failure of a group behind those that
///   wait since before that. Pods without a group go by when they were first ready.
/// - The first member that is given a node has all others tried at once.
/// - A group that fails gives its nodes back at once, unless only few percent of it are missing: then room for the others may be found.
/// - `status` of each PodGroup says how far it is: Pending, Scheduling, Running, Finished, Failed; and how many of its pods run,
///   succeeded and failed.
///
/// # Why
/// A training job of 64 workers that gets 63 nodes does nothing, and keeps others from doing something.
///
/// # Arguments
/// `permitWaitingTimeSeconds` (60): how long members wait for each other, unless the group has `scheduleTimeoutSeconds`, and 15
/// minutes at most; `podGroupBackoffSeconds` (0): how long no member is tried after the group failed; `podGroupRejectPercentage` (10):
/// a group of which no more are missing keeps its nodes when a member does not fit; `halfAdmittedGroupsYield` (true): see below.
///
/// # Example
/// ```yaml
/// plugins:
///   queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
///   multiPoint: {enabled: [{name: Coscheduling}]}
/// pluginConfig:
/// - name: Coscheduling
///   args: {permitWaitingTimeSeconds: 120}
/// ---
/// apiVersion: scheduling.x-k8s.io/v1alpha1
/// kind: PodGroup
/// metadata: {name: training, namespace: team-a}
/// spec: {minMember: 64, minResources: {nvidia.com/gpu: "512"}}
/// ```
///
/// # Difference from upstream
/// - Groups that have nodes for some members, and cannot have them for the others, do not wait for each other: a second after that is
///   seen, all but the first give their nodes back. `halfAdmittedGroupsYield: false` lets them wait until their time is over.
/// - Members count as placed from what the scheduler itself knows, so none is let go because of one that was rejected meanwhile, and
///   nothing is kept of groups that are gone. After a restart, bound members count.
/// - A pod that waits for room which preemption makes does not fail its group, in whatever order the two plugins are, and however often it
///   is tried before the room is there.
/// - A member keeps its place among the pods that are ready when its group fails; the failure counts when it comes back.
/// - When the backoff of a group ends, its members are tried again; upstream they wait for something to happen.
/// - A group of which only some members fit pauses for some seconds after 16 failures in a row; upstream it fails as fast as it is tried, and for
///   ever, unless `podGroupBackoffSeconds` stops it. A group that gives way to another does not pause for that.
/// - Backoffs and pauses last as long as they would have when the clock is set.
/// - Members of a group that lacks some are not tried again before it has enough, whatever else happens.
/// - The status counts the members of the group's own namespace. `occupiedBy` names the controller of a pod, not all its owners.
///   Statuses are written a second after a change. What is odd about a group is told by an event: a `minMember` below 1 or above
///   65,535, a time-out below 0, and the API group's old name `scheduling.sigs.k8s.io`, which is read, too, with its label.
/// - Waiting members that name another scheduler are not known. All members of a group carry one of the labels, the new or the old: one that
///   carries both belongs to the group that the new one names.
/// - As upstream: members that have completed do not count, and the first member that waits has the others tried only if none is bound (the fix
///   `completedMembers` counts them, and has them tried in any case); a group with quorum of which one pod failed is Failed for ever
///   (`podGroupQuorum`). Preemption looks at one member at a time, members of different priorities are tried apart, and `minResources` is compared
///   with all nodes together, whatever their taints and however it is scattered.
#[derive(Debug)]
pub struct Coscheduling {
    args: CoschedulingArgs,
}

impl Plugin for Coscheduling {
    const NAME: &'static str = "Coscheduling";
    type Args = CoschedulingArgs;

    fn new(args: CoschedulingArgs) -> Self {
        Coscheduling { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        let points = points.queue_sort().pre_filter().post_filter().reserve().permit();
        points.enqueue().observe().remembers::<GroupMemory>()
    }

    fn reads(&self) -> Reads {
        let reads = LABELS.into_iter().fold(Reads::nothing(), Reads::pods_by_label);
        let of_pod = [
            PodField::Name,
            PodField::Namespace,
            PodField::Labels,
            PodField::Controller,
            PodField::Priority,
            PodField::SchedulingGates,
            PodField::Requests,
            PodField::Status,
            PodField::Progress,
        ];
        let of_node = [NodeField::Name, NodeField::Allocatable, NodeField::Requested, NodeField::Pods];
        let reads = reads.pod(&of_pod).node(&of_node).all_nodes().topology();
        reads.finished_pods().time().memory().kind::<PodGroup>().optional_kind::<OldPodGroup>()
    }

    fn writes(&self) -> Writes {
        let writes = Writes::nothing().patch_status::<PodGroup>().patch_status::<OldPodGroup>();
        writes.because("How far the groups of pods are.")
    }

    fn concerns(&self, pod: &Pod) -> bool {
        label_of(pod).is_some()
    }

    fn subject(&self) -> &'static str {
        "groups of pods"
    }
}

#[cfg(test)]
mod tests;
