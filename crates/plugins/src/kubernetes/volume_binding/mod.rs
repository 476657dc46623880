//! VolumeBinding: volumes for a pod's claims, and nodes that reach them.

mod args;
mod assumed;
mod binding;
mod candidates;
mod claims;
mod finding;
mod hints;
mod likeness;

#[cfg(test)]
mod tests;

use std::time::Duration;

use supercargo_framework::{
    Acts, Cycle, Extensions, Filter, Likeness, News, NodeField, Plan, Plugin, PodField, PreBind, PreFilter,
    PreFilterResult, PreScore, Reads, Reserve, Score, Status, Step, Touched, Unread, Writes,
};
use supercargo_model::cluster::ObjectChange;
use supercargo_model::kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
};
use supercargo_model::{NodeRef, Pod, Row, Snapshot};

use super::storage::claims_of;

pub use args::VolumeBindingArgs;
pub use binding::{PlannedBinding, PlannedBindings};

use assumed::AssumedVolumes;
use claims::PodClaims;
use finding::find_volumes;

/// # What
/// Finds volumes for a pod's claims. A claim that is bound keeps the pod on nodes that reach its volume. One of a class
/// that waits for its first consumer gets the smallest available volume that fits and that the node reaches; if there is
/// none, the class must be able to make one there, and the driver must have room for it.
///
/// Reserve notes what was found, so that the next pod does not count on the same volume, and PreBind has it bound.
///
/// # Why
/// A pod must run where its data is, or can be.
///
/// # Arguments
/// `bindTimeoutSeconds` (600): how long binding may take before the pod is tried elsewhere. `shape` must be absent, since
/// its feature gate is off by default.
///
/// # Example
/// ```yaml
/// kind: StorageClass
/// provisioner: kubernetes.io/no-provisioner   # volumes are made by hand, each on a disk of one node
/// volumeBindingMode: WaitForFirstConsumer     # so pod and volume are placed together
/// ```
///
/// # Difference from upstream
/// Among available volumes of one size the first by name is taken; upstream takes any. PreBind reacts to events, where
/// upstream looks once a second.
#[derive(Debug)]
pub struct VolumeBinding {
    bind_timeout: Duration,
}

impl Plugin for VolumeBinding {
    const NAME: &'static str = "VolumeBinding";
    type Args = VolumeBindingArgs;

    fn new(args: VolumeBindingArgs) -> Self {
        VolumeBinding { bind_timeout: args.bind_timeout() }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points
            .pre_filter()
            .filter()
            .pre_score()
            .score()
            .reserve()
            .pre_bind()
            .enqueue()
            .remembers::<AssumedVolumes>()
    }

    fn writes(&self) -> Writes {
        Writes::nothing()
            .because("Volumes that wait for their first consumer.")
            .patch::<PersistentVolumeClaim>()
            .patch::<PersistentVolume>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Volumes, PodField::Namespace])
            .node(&[NodeField::Name, NodeField::Labels])
            .kind::<PersistentVolume>()
            .kind::<PersistentVolumeClaim>()
            .kind::<StorageClass>()
            .of_node::<CSINode>()
            .kind::<CSIDriver>()
            .kind::<CSIStorageCapacity>()
            .memory()
            .resolved()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        !pod.spec.volumes.is_empty()
    }

    fn depends_on(&self, _: &Unread, pod: &Pod, _: &Snapshot) -> bool {
        claims_of(pod).next().is_some()
    }

    fn subject(&self) -> &'static str {
        "volumes"
    }
}

impl PreFilter for VolumeBinding {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let assumed = cycle.context.memories.get::<AssumedVolumes>().cloned().unwrap_or_default();
        match PodClaims::of_pod(cycle.cluster().objects(), cycle.pod, &assumed) {
            Err(status) => PreFilterResult::Reject(status),
            Ok(None) => {
                // Reserve must be able to tell a pod without claims from one that PreFilter never saw.
                cycle.put(PodClaims::default());
                PreFilterResult::Skip
            }
            Ok(Some(claims)) => {
                cycle.put(claims);
                PreFilterResult::AllNodes
            }
        }
    }

    fn resolve(
        &self,
        cycle: &mut Cycle<'_>,
        likeness: &mut Likeness,
    ) -> Result<PreFilterResult, &'static str> {
        let result = self.pre_filter(cycle);
        if let (PreFilterResult::AllNodes, Some(claims)) = (&result, cycle.get::<PodClaims>()) {
            claims.write(likeness)?;
        }
        Ok(result)
    }

    fn touched(&self, _: &Snapshot, _: &ObjectChange) -> Touched {
        // Filter reads the node, its CSINode, and what PreFilter left.
        Touched::NOTHING
    }
}

impl Filter for VolumeBinding {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(claims) = cycle.get::<PodClaims>() else { return not_found() };
        match find_volumes(claims, cycle, node) {
            Ok(_) => Status::success(),
            Err(status) => status,
        }
    }
}

impl PreScore for VolumeBinding {
    fn pre_score(&self, _: &mut Cycle<'_>, _: &[Row]) -> Status {
        // Scoring is behind a feature gate that is off.
        Status::skip()
    }
}

impl Score for VolumeBinding {
    fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        Ok(0)
    }
}

impl Reserve for VolumeBinding {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> Status {
        let Some(claims) = cycle.get::<PodClaims>() else { return not_found() };
        // Filter has found the same, but may have done so for every node.
        match find_volumes(claims, cycle, node) {
            Err(status) => status,
            Ok(planned) => {
                let assumed: &mut AssumedVolumes = acts.memory();
                assumed.forget_outdated(cycle.cluster().objects());
                assumed.assume(&planned, node.name());
                cycle.put(planned);
                Status::success()
            }
        }
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        if let Some(planned) = cycle.get::<PlannedBindings>() {
            acts.memory::<AssumedVolumes>().forget(planned);
        }
    }
}

impl PreBind for VolumeBinding {
    fn plan(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Vec<Plan> {
        let Some(claims) = cycle.get::<PodClaims>() else { return Vec::new() };
        find_volumes(claims, cycle, node).map_or(Vec::new(), |planned| planned.plans())
    }

    fn pre_bind(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>) -> Step {
        let (pod, objects) = (cycle.pod, cycle.context.cluster.objects());
        let deadline = cycle.context.now.after(self.bind_timeout);
        match cycle.get_mut::<PlannedBindings>() {
            None => Step::Done(not_found()),
            Some(planned) => planned.start(objects, pod, node, deadline),
        }
    }

    fn resume(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>, news: &News<'_>) -> Step {
        match cycle.get::<PlannedBindings>() {
            None => Step::Done(not_found()),
            Some(planned) => planned.go_on(cycle, node, news),
        }
    }
}

/// Upstream's words for state that PreFilter did not leave.
fn not_found() -> Status {
    Status::error("not found")
}
