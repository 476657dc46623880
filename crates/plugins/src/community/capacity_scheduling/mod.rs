//! CapacityScheduling: namespaces share a cluster, each with a guarantee, and lend each other what they do not use.

mod amounts;
mod background;
mod elastic_quota;
mod findings;
mod guaranteed;
mod preempting;
mod status;
mod usage;

use std::sync::Arc;

use supercargo_framework::{
    Actions, Acts, ClusterEvent, Context, Cycle, Enqueue, Extensions, NoArgs, NodeField, Plugin, PodField,
    PreFilter, PreFilterResult, Reads, Reserve, Status, Writes,
};
use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{Kind, NodeRef, Pod};

pub use elastic_quota::{ElasticQuota, ElasticQuotaSpec, ElasticQuotaStatus, OldElasticQuota};
use elastic_quota::{QUOTA_KINDS, quota_of};
use status::QuotaMemory;
use usage::QuotaState;

/// # What
/// An ElasticQuota gives the pods of its namespace a guarantee (`min`) and a limit (`max`). A namespace may take more than its `min` as
/// long as all namespaces with quotas together take no more than the sum of all `min`: it borrows what others do not use. A pod of a
/// namespace that has not got its `min` makes room among pods of namespaces that have borrowed, whatever their priority is; one of a
/// namespace that has, among less important pods of its own.
///
/// `status.used` of each quota says what the running pods of its namespace ask for.
///
/// # Why
/// Fixed quotas leave what one team does not use idle while another waits.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// plugins:
///   multiPoint: {enabled: [{name: CapacityScheduling}]}
///   postFilter: {disabled: [{name: "*"}], enabled: [{name: CapacityScheduling}]}
/// ---
/// apiVersion: scheduling.x-k8s.io/v1alpha1
/// kind: ElasticQuota
/// metadata: {name: quota, namespace: team-a}
/// spec: {min: {cpu: "4", memory: 8Gi}, max: {cpu: "6", memory: 12Gi}}
/// ```
/// With the same quota in team-b, which uses 2 cores: team-a may take 6. When team-b wants 2 more, a pod of team-a goes.
///
/// # Difference from upstream
/// - What a namespace uses is counted from the pods that have a node, always: also those that ran before their quota was made, and after
///   one of two quotas is gone.
/// - Of several quotas in a namespace the one whose name comes first counts. That, a `min` above the `max`, and the API group's old name
///   `scheduling.sigs.k8s.io`, which is read, too, are told by events on the quota.
/// - Where pods may go on more than 100 nodes, the best of the first 100 of them is taken. Upstream looks at all.
/// - Amounts that 64 bits do not hold count as their limit, where upstream's sums wrap around and become less than nothing.
/// - Where there are more than 100 nodes, a pod that nobody goes for is told how many nodes were tried, and not the name of each.
/// - `status.used` has the overhead of pods, is written a second after a change, and what it was told with is the quota's own name.
/// - Where the API server does not have the definition of ElasticQuota, upstream does not start. Here there are no quotas until it is
///   installed, which the log and `/readyz?verbose` say.
/// - As upstream: sidecars count as init containers that end, and requests at pod level do not count (the fix `quotaSidecars` counts both as
///   NodeResourcesFit does, in `status.used` too). `status.used` counts running pods, while pods count against a quota as soon as they have a
///   node (the fix `quotaStatusPlaced` makes both the same); a resource that a quota does not name counts as 0 (`unlistedQuotaResources`); a victim
///   that only the quota asks for does not count against budgets (`quotaBudgetViolations`); a node fails where the filters have a victim go while
///   nominated pods exceed the quota (`quotaEvictions`). Guarantees are not compared with what nodes have, what is lent goes to whoever comes first,
///   and victims are looked for on one node.
#[derive(Debug)]
pub struct CapacityScheduling;

impl Plugin for CapacityScheduling {
    const NAME: &'static str = "CapacityScheduling";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        CapacityScheduling
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().post_filter().reserve().enqueue().observe().remembers::<QuotaMemory>()
    }

    fn reads(&self) -> Reads {
        let of_pod = [
            PodField::Name,
            PodField::Namespace,
            PodField::Priority,
            PodField::PreemptionPolicy,
            PodField::Requests,
            PodField::Status,
            PodField::Progress,
        ];
        Reads::nothing()
            .pod(&of_pod)
            .node(&[NodeField::Name, NodeField::Pods, NodeField::Requested])
            // What a namespace uses is used on any node.
            .topology()
            .placed_requests_with(&QUOTA_KINDS)
            // The sum of what quotas guarantee.
            .memory()
            .kind::<PodDisruptionBudget>()
            .required_kind::<ElasticQuota>()
            .optional_kind::<OldElasticQuota>()
    }

    fn writes(&self) -> Writes {
        let writes = Writes::nothing().evictions();
        let writes = writes.patch_status::<ElasticQuota>().patch_status::<OldElasticQuota>();
        writes.because("What namespaces use of their quotas, and pods that go for others.")
    }

    fn subject(&self) -> &'static str {
        "quotas of namespaces"
    }
}

impl PreFilter for CapacityScheduling {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let (context, pod) = (cycle.context.clone(), cycle.pod);
        let state = QuotaState::of(&context, pod);
        let reason = quota_of(&context, &pod.namespace).and_then(|quota| {
            if state.exceeds_max(&context, &pod.namespace, quota, &state.in_quota) {
                Some(format!("ElasticQuota {} is more than Max", pod.namespace))
            } else if state.exceeds_total(&state.in_all) {
                Some("total ElasticQuota used is more than min".to_owned())
            } else {
                None
            }
        });
        cycle.put(state);
        match reason {
            None => PreFilterResult::AllNodes,
            Some(reason) => {
                let reason = format!("Pod {} is rejected in PreFilter because {reason}", pod.key());
                PreFilterResult::Reject(Status::unschedulable(reason))
            }
        }
    }

    fn background(&self, context: &Context<'_>, pod: &Pod) -> Option<String> {
        background::background(context, pod)
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        count(cycle, pod, true)
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        count(cycle, pod, false)
    }
}

fn count(cycle: &mut Cycle<'_>, pod: &Pod, comes: bool) -> Status {
    let context = cycle.context.clone();
    if let Some(state) = cycle.get_mut::<QuotaState>() {
        state.count(&context, pod, comes);
    }
    Status::success()
}

/// Upstream counts here; what a pod takes that has a node is known to the cluster.
impl Reserve for CapacityScheduling {
    fn reserves(&self, _: &Pod) -> bool {
        false
    }

    fn reserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

impl Enqueue for CapacityScheduling {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::DELETE),
            ClusterEvent::kind(ElasticQuota::ID, Actions::ALL),
            ClusterEvent::kind(OldElasticQuota::ID, Actions::ALL),
        ]
    }
}

#[cfg(test)]
mod tests;
