//! Plugins of Kubernetes whose feature gates are off by default.
//!
//! A configuration may name them; with their gates off they have nothing to say, here as upstream.

use supercargo_framework::{
    Acts, Context, Cycle, Extensions, NoArgs, Permit, PermitDecision, Plugin, PreEnqueue, Reads, Status,
};
use supercargo_model::{NodeRef, Pod};

/// # What
/// Will place the pods of a `scheduling.k8s.io` PodGroup together or not at all. Says nothing: its gate is off.
///
/// # Why
/// A training job with one worker missing only wastes the others.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// plugins:
///   multiPoint:
///     enabled: [{name: GangScheduling}]   # accepted, without effect
/// ```
///
/// # Difference from upstream
/// None while the gates `GenericWorkload` and `GangScheduling` are off, as they are by default.
#[derive(Debug)]
pub struct GangScheduling;

impl Plugin for GangScheduling {
    const NAME: &'static str = "GangScheduling";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        GangScheduling
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue().permit()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl PreEnqueue for GangScheduling {
    fn pre_enqueue(&self, _: &Context<'_>, _: &Pod) -> Status {
        Status::success()
    }
}

impl Permit for GangScheduling {
    fn permit(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        PermitDecision::Allow
    }
}

/// # What
/// Will try each topology domain for a whole PodGroup. Says nothing: its gate is off.
///
/// # Why
/// Workers that talk to each other belong in one rack.
///
/// # Arguments
/// None.
///
/// # Example
/// `placementGenerate.enabled: [{name: TopologyPlacementGenerator}]` is accepted, without effect.
///
/// # Difference from upstream
/// None while the gate `TopologyAwareWorkloadScheduling` is off, as it is by default.
#[derive(Debug)]
pub struct TopologyPlacementGenerator;

impl Plugin for TopologyPlacementGenerator {
    const NAME: &'static str = "TopologyPlacementGenerator";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        TopologyPlacementGenerator
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

/// # What
/// Will prefer the placement that takes most pods of a PodGroup. Says nothing: its gate is off.
///
/// # Why
/// The more of a group fit together, the better.
///
/// # Arguments
/// None.
///
/// # Example
/// `placementScore.enabled: [{name: PodGroupPodsCount}]` is accepted, without effect.
///
/// # Difference from upstream
/// None while the gate `TopologyAwareWorkloadScheduling` is off, as it is by default.
#[derive(Debug)]
pub struct PodGroupPodsCount;

impl Plugin for PodGroupPodsCount {
    const NAME: &'static str = "PodGroupPodsCount";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        PodGroupPodsCount
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}
