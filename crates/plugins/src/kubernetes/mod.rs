//! The plugins of Kubernetes' default profile, with the answers of kube-scheduler v1.36.

mod alpha;
mod default_binder;
mod default_preemption;
mod dynamic_resources;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources;
mod node_unschedulable;
mod node_volume_limits;
mod normalize;
mod pod_topology_spread;
mod priority_sort;
mod scheduling_gates;
mod storage;
mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;

pub use alpha::{GangScheduling, PodGroupPodsCount, TopologyPlacementGenerator};
pub use default_binder::DefaultBinder;
pub use default_preemption::{DefaultPreemption, DefaultPreemptionArgs};
pub use dynamic_resources::{DynamicResources, DynamicResourcesArgs};
pub use image_locality::ImageLocality;
pub use inter_pod_affinity::{InterPodAffinity, InterPodAffinityArgs};
pub use node_affinity::{NodeAffinity, NodeAffinityArgs};
pub use node_declared_features::NodeDeclaredFeatures;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources::{
    NodeResourcesBalancedAllocation, NodeResourcesBalancedAllocationArgs, NodeResourcesFit,
    NodeResourcesFitArgs,
};
pub use node_unschedulable::NodeUnschedulable;
pub use node_volume_limits::NodeVolumeLimits;
pub use pod_topology_spread::{PodTopologySpread, PodTopologySpreadArgs};
pub use priority_sort::PrioritySort;
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;
pub use volume_binding::{PlannedBinding, PlannedBindings, VolumeBinding, VolumeBindingArgs};
pub use volume_restrictions::VolumeRestrictions;
pub use volume_zone::VolumeZone;

use supercargo_framework::{DuplicatePlugin, Registry};
use supercargo_model::Pod;

pub(crate) fn register(registry: &mut Registry) -> Result<(), DuplicatePlugin> {
    registry.register::<SchedulingGates>()?;
    registry.register::<PrioritySort>()?;
    registry.register::<NodeUnschedulable>()?;
    registry.register::<NodeName>()?;
    registry.register::<TaintToleration>()?;
    registry.register::<NodeAffinity>()?;
    registry.register::<NodePorts>()?;
    registry.register::<NodeResourcesFit>()?;
    registry.register::<VolumeRestrictions>()?;
    registry.register::<NodeVolumeLimits>()?;
    registry.register::<VolumeBinding>()?;
    registry.register::<VolumeZone>()?;
    registry.register::<PodTopologySpread>()?;
    registry.register::<InterPodAffinity>()?;
    registry.register::<DynamicResources>()?;
    registry.register::<DefaultPreemption>()?;
    registry.register::<NodeResourcesBalancedAllocation>()?;
    registry.register::<ImageLocality>()?;
    registry.register::<DefaultBinder>()?;
    registry.register::<NodeDeclaredFeatures>()?;
    registry.register::<GangScheduling>()?;
    registry.register::<TopologyPlacementGenerator>()?;
    registry.register::<PodGroupPodsCount>()
}

/// Whether the pod takes room somewhere, or is about to: only then can its going help others.
fn takes_room(pod: &Pod) -> bool {
    pod.node_name.is_some() || pod.nominated_node_name().is_some()
}

#[cfg(test)]
mod tests;
