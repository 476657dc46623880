//! What NetworkOverhead and TopologicalSort have in common: AppGroups, NetworkTopologies, and how the parts of both that are
//! worked out are kept true.

mod app_group;
mod network_topology;
pub(super) mod order;
pub(super) mod paths;
pub(super) mod stale;

pub use app_group::{
    APP_GROUP_LABEL, AppGroup, AppGroupSpec, AppGroupStatus, Dependency, OldAppGroup, OrderedWorkload,
    WORKLOAD_LABEL, Workload, WorkloadDependencies,
};
pub(super) use app_group::{Found, find_app_group, label_of, workload_of};
pub use network_topology::{
    Cost, CostsOfKey, CostsOfOrigin, NETPERF_COSTS, NetworkTopology, NetworkTopologySpec,
    NetworkTopologyStatus, OldNetworkTopology, WeightSet,
};
pub(super) use network_topology::{DEFAULT_NAMESPACES, Place, Weights, find_network_topology};

/// The label of nodes that says in which region they are.
pub(super) const REGION: &str = "topology.kubernetes.io/region";
/// The label of nodes that says in which zone they are.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
