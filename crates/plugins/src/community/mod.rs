//! The plugins of kubernetes-sigs/scheduler-plugins, as they behave at its head of August 2026. None is on by default: a profile
//! switches them on.
//!
//! CrossNodePreemption is not among them: upstream has not compiled it since the preemption API moved.

mod capacity_scheduling;
mod controllers;
pub mod coscheduling;
mod definitions;
mod go_number;
pub mod network_aware;
mod network_overhead;
mod node_metadata;
mod node_resource_topology_match;
mod node_resources_allocatable;
mod normalize;
mod pod_state;
mod preempting;
mod preemption_toleration;
mod qos_sort;
mod requests;
mod sysched;
mod topological_sort;
mod trimaran;
mod turns;

pub use capacity_scheduling::{
    CapacityScheduling, ElasticQuota, ElasticQuotaSpec, ElasticQuotaStatus, OldElasticQuota,
};
pub use coscheduling::Coscheduling;
pub use definitions::{Definition, definitions};
pub use network_overhead::{MeasurementMap, NetworkOverhead, NetworkOverheadArgs};
pub use node_metadata::{NodeMetadata, NodeMetadataArgs};
pub use node_resource_topology_match::{
    NodeResourceTopology, NodeResourceTopologyMatch, NodeResourceTopologyMatchArgs, TopologyCacheArgs,
    TopologyScoringStrategy,
};
pub use node_resources_allocatable::{
    NodeResourcesAllocatable, NodeResourcesAllocatableArgs, ResourceWeight,
};
pub use pod_state::PodState;
pub use preemption_toleration::{PreemptionToleration, PriorityClass};
pub use qos_sort::QosSort;
pub use requests::plain_requests;
pub use sysched::{ClusterSeccompProfile, SeccompProfile, SySched, SySchedArgs};
pub use topological_sort::{TopologicalSort, TopologicalSortArgs};
pub use trimaran::{
    LoadVariationRiskBalancing, LoadVariationRiskBalancingArgs, LowRiskOverCommitment,
    LowRiskOverCommitmentArgs, Measured, MetricProvider, NodeLoad, Peaks, PeaksArgs, PowerModel,
    TargetLoadPacking, TargetLoadPackingArgs, Token, Usage,
};

use supercargo_framework::{DuplicatePlugin, Registry};

pub(crate) fn register(registry: &mut Registry) -> Result<(), DuplicatePlugin> {
    registry.register::<CapacityScheduling>()?;
    registry.register::<Coscheduling>()?;
    registry.register::<QosSort>()?;
    registry.register::<NodeMetadata>()?;
    registry.register::<NodeResourceTopologyMatch>()?;
    registry.register::<PodState>()?;
    registry.register::<NodeResourcesAllocatable>()?;
    registry.register::<PreemptionToleration>()?;
    registry.register::<SySched>()?;
    registry.register::<NetworkOverhead>()?;
    registry.register::<TopologicalSort>()?;
    trimaran::register(registry)
}
