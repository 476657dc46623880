//! DynamicResources: holds back pods with resource claims, for which nothing is allocated yet.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Acts, Args, ClusterEvent, Context, Cycle, Enqueue, Extensions, FieldProblems, Filter, NodeScore,
    Normalization, Plugin, PodField, PostFilter, PostFilterResult, PreBind, PreEnqueue, PreFilter,
    PreFilterResult, Reads, Rehearsal, Rejections, Reserve, Score, Status, Step,
};
use supercargo_model::kinds::DeviceClass;
use supercargo_model::{GoDuration, Kind, NodeRef, Objects, Pod};

use super::normalize;

/// Every DeviceClass stands for the extended resource that is its name behind this.
pub(super) const IMPLICIT_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

const REASON_CLAIMS: &str = "pod has resource claims, and Supercargo does not allocate devices yet; \
     let a scheduler that does take it: run kube-scheduler beside this one, and set spec.schedulerName to its profile";

/// # What
/// Will allocate devices for a pod's resource claims. For now it holds back pods that need any, so that they are
/// never placed where their devices are not; all other pods get the answers they get upstream.
///
/// # Why
/// GPUs and other devices that are shared, partitioned or chosen by their attributes.
///
/// # Arguments
/// `filterTimeout` (10s) and `bindingTimeout` (10m), as upstream.
///
/// # Example
/// ```yaml
/// spec:
///   resourceClaims:
///   - {name: gpu, resourceClaimTemplateName: one-gpu}   # held back, with a reason
/// ```
///
/// # Difference from upstream
/// Pods with `resourceClaims`, and pods that ask for an extended resource which a DeviceClass stands for, are not
/// scheduled.
#[derive(Debug)]
pub struct DynamicResources;

/// Arguments of [`DynamicResources`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DynamicResourcesArgs {
    /// How long the search for devices may take on one node (10s); 0 for as long as it needs.
    pub filter_timeout: Option<GoDuration>,
    /// How long a device may take to become ready (10m).
    pub binding_timeout: Option<GoDuration>,
}

/// Left behind by PreFilter: upstream's PostFilter fails without it.
#[derive(Clone)]
struct NoClaims;

impl Args for DynamicResourcesArgs {
    fn complete(&mut self) {
        self.filter_timeout.get_or_insert(GoDuration::from_seconds(10));
        self.binding_timeout.get_or_insert(GoDuration::from_seconds(600));
    }

    fn validate(&self, problems: &mut FieldProblems) {
        if let Some(timeout) = self.filter_timeout.filter(|timeout| *timeout < GoDuration::ZERO) {
            problems.invalid("filterTimeout", timeout, "must be zero or positive");
        }
        if let Some(timeout) = self.binding_timeout.filter(|timeout| *timeout < GoDuration::from_seconds(1)) {
            problems.invalid("bindingTimeout", timeout, "must be at least 1 second");
        }
    }
}

impl Plugin for DynamicResources {
    const NAME: &'static str = "DynamicResources";
    type Args = DynamicResourcesArgs;

    fn new(_: DynamicResourcesArgs) -> Self {
        DynamicResources
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue().pre_filter().filter().post_filter().score().reserve().pre_bind().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::ResourceClaims, PodField::Requests]).kind::<DeviceClass>()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        !pod.spec.resource_claims.is_empty() || pod.spec.requests.resources.scalars().next().is_some()
    }

    fn subject(&self) -> &'static str {
        "devices"
    }
}

impl PreEnqueue for DynamicResources {
    fn pre_enqueue(&self, _: &Context<'_>, pod: &Pod) -> Status {
        if pod.spec.resource_claims.is_empty() {
            Status::success()
        } else {
            Status::unresolvable(REASON_CLAIMS)
        }
    }

    fn is_told(&self) -> bool {
        true
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        if !cycle.pod.spec.resource_claims.is_empty() {
            return PreFilterResult::Reject(Status::unresolvable(REASON_CLAIMS));
        }
        if let Some(name) = device_backed_resource(cycle.pod, cycle.cluster().objects()) {
            return PreFilterResult::Reject(Status::unresolvable(format!(
                "pod requests {name}, which a DeviceClass stands for, and Supercargo does not allocate devices yet"
            )));
        }
        cycle.put(NoClaims);
        PreFilterResult::Skip
    }
}

impl Filter for DynamicResources {
    fn filter(&self, cycle: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        match cycle.get::<NoClaims>() {
            Some(_) => Status::success(),
            None => Status::error("not found"),
        }
    }
}

impl PostFilter for DynamicResources {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        _: &dyn Rehearsal,
    ) -> PostFilterResult {
        let pre_filter_stopped = rejections.pre_filter_message().is_some();
        let status = match cycle.get::<NoClaims>() {
            Some(_) => Status::unschedulable("no new claims to deallocate"),
            None if pre_filter_stopped && cycle.context.fixes.post_filter_after_pre_filter_stop => {
                Status::unschedulable("no new claims to deallocate")
            }
            None => Status::error("not found"),
        };
        PostFilterResult { status, ..PostFilterResult::default() }
    }
}

impl Score for DynamicResources {
    fn score(&self, cycle: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        match cycle.get::<NoClaims>() {
            Some(_) => Ok(0),
            None => Err(Status::error("not found")),
        }
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        normalize::by_maximum(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByValues
    }
}

impl Reserve for DynamicResources {
    fn reserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

impl PreBind for DynamicResources {
    fn pre_bind(&self, _: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        Step::Done(Status::skip())
    }
}

impl Enqueue for DynamicResources {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::kind(DeviceClass::ID, Actions::DELETE.or(Actions::UPDATE))]
    }
}

/// An extended resource that the pod asks for and a DeviceClass stands for.
fn device_backed_resource<'a>(pod: &'a Pod, objects: &Objects) -> Option<&'a str> {
    let requested = pod.spec.requests.resources.scalars().filter(|(_, amount)| *amount > 0);
    { requested.map(|(name, _)| name) }.find(|name| is_device_backed(name, objects))
}

/// Whether a DeviceClass stands for the extended resource.
pub(super) fn is_device_backed(resource: &str, objects: &Objects) -> bool {
    objects.all::<DeviceClass>().any(|(key, class)| {
        class.spec.extended_resource_name.as_deref() == Some(resource)
            || resource.strip_prefix(IMPLICIT_PREFIX) == Some(&*key.name)
    })
}

#[cfg(test)]
mod tests;
