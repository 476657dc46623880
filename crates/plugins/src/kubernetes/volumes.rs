//! The volume plugins, as far as pods without volumes go.
//!
//! A pod that mounts a claim or a disk is held back with a reason, so that it is never placed where its data is not.
//! All other pods get the answers they get upstream, errors for misconfigured profiles included.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, Filter, Memories, NoArgs, Plugin, PodField, PreBind, PreFilter,
    PreFilterResult, PreScore, Reads, Reserve, Score, Status, Step,
};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{NodeRef, Pod, Row};

const REASON: &str = "pod mounts persistent volumes, and Supercargo does not place volumes yet";

fn needs_volume(pod: &Pod) -> bool {
    pod.spec
        .volumes
        .iter()
        .any(|volume| !matches!(volume.source, VolumeSource::Image(_) | VolumeSource::Csi { .. }))
}

fn reads_volumes() -> Reads {
    Reads::nothing().pod(&[PodField::Volumes])
}

/// # What
/// Will keep pods apart that cannot share a disk. For now it has nothing to say.
///
/// # Why
/// Some disks can be attached to one node only, or be written by one pod only.
///
/// # Arguments
/// None.
///
/// # Example
/// A claim with `ReadWriteOncePod` that another pod uses.
///
/// # Difference from upstream
/// Pods with volumes are held back by [`VolumeBinding`].
#[derive(Debug)]
pub struct VolumeRestrictions;

impl Plugin for VolumeRestrictions {
    const NAME: &'static str = "VolumeRestrictions";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        VolumeRestrictions
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter()
    }

    fn reads(&self) -> Reads {
        reads_volumes()
    }
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult {
        PreFilterResult::Skip
    }
}

impl Filter for VolumeRestrictions {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::error(r#"cannot read "PreFilterVolumeRestrictions" from cycleState"#)
    }
}

/// # What
/// Will keep pods off nodes that cannot attach more volumes. For now it has nothing to say.
///
/// # Why
/// A machine takes only so many disks.
///
/// # Arguments
/// None.
///
/// # Example
/// A node whose CSI driver reports 25 volumes at most.
///
/// # Difference from upstream
/// Pods with volumes are held back by [`VolumeBinding`].
#[derive(Debug)]
pub struct NodeVolumeLimits;

impl Plugin for NodeVolumeLimits {
    const NAME: &'static str = "NodeVolumeLimits";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        NodeVolumeLimits
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter()
    }

    fn reads(&self) -> Reads {
        reads_volumes()
    }
}

impl PreFilter for NodeVolumeLimits {
    fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult {
        PreFilterResult::Skip
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}

/// # What
/// Will find or make the volumes for a pod's claims. For now it holds back pods that need any.
///
/// # Why
/// A pod must run where its data is, or can be.
///
/// # Arguments
/// `bindTimeoutSeconds` (600), as upstream; `shape` must be absent, since its feature gate is off by default.
///
/// # Example
/// ```yaml
/// volumes:
/// - {name: data, persistentVolumeClaim: {claimName: data}}   # held back, with a reason
/// ```
///
/// # Difference from upstream
/// Pods with volumes are not scheduled.
#[derive(Debug)]
pub struct VolumeBinding;

/// Arguments of [`VolumeBinding`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeBindingArgs {
    /// How long binding volumes may take, in seconds (600).
    pub bind_timeout_seconds: Option<i64>,
    /// How storage capacity is scored; must be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<serde_json::Value>>,
}

impl Args for VolumeBindingArgs {
    fn complete(&mut self) {
        self.bind_timeout_seconds.get_or_insert(600);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        if let Some(seconds) = self.bind_timeout_seconds.filter(|seconds| *seconds < 0) {
            let detail = "invalid BindTimeoutSeconds, should not be a negative value";
            problems.invalid("bindTimeoutSeconds", seconds, detail);
        }
        if let Some(shape) = &self.shape {
            let detail =
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";
            problems.invalid("shape", shape, detail);
        }
    }
}

impl Plugin for VolumeBinding {
    const NAME: &'static str = "VolumeBinding";
    type Args = VolumeBindingArgs;

    fn new(_: VolumeBindingArgs) -> Self {
        VolumeBinding
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().pre_score().score().reserve().pre_bind()
    }

    fn reads(&self) -> Reads {
        reads_volumes()
    }
}

impl PreFilter for VolumeBinding {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        if needs_volume(cycle.pod) {
            return PreFilterResult::Reject(Status::unresolvable(REASON));
        }
        PreFilterResult::Skip
    }
}

impl Filter for VolumeBinding {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::error("not found")
    }
}

impl PreScore for VolumeBinding {
    fn pre_score(&self, _: &mut Cycle<'_>, _: &[Row]) -> Status {
        Status::skip()
    }
}

impl Score for VolumeBinding {
    fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        Ok(0)
    }
}

impl Reserve for VolumeBinding {
    fn reserve(&self, _: &mut Cycle<'_>, _: &mut Memories, _: NodeRef<'_>) -> Status {
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Memories, _: NodeRef<'_>) {}
}

impl PreBind for VolumeBinding {
    fn pre_bind(&self, _: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        Step::Done(Status::skip())
    }
}

/// # What
/// Will keep pods in the zone of their volumes. For now it has nothing to say.
///
/// # Why
/// A disk in one zone cannot be attached in another.
///
/// # Arguments
/// None.
///
/// # Example
/// A volume labelled `topology.kubernetes.io/zone: a`.
///
/// # Difference from upstream
/// Pods with volumes are held back by [`VolumeBinding`].
#[derive(Debug)]
pub struct VolumeZone;

impl Plugin for VolumeZone {
    const NAME: &'static str = "VolumeZone";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        VolumeZone
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter()
    }

    fn reads(&self) -> Reads {
        reads_volumes()
    }
}

impl PreFilter for VolumeZone {
    fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult {
        PreFilterResult::Skip
    }
}

impl Filter for VolumeZone {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}
