//! NodeResourcesFit and NodeResourcesBalancedAllocation: what fits, and where it fits best.

mod balanced;
mod fit;
mod rows;
mod strategy;

pub use balanced::{NodeResourcesBalancedAllocation, NodeResourcesBalancedAllocationArgs};
pub use fit::{NodeResourcesFit, NodeResourcesFitArgs};
pub(super) use strategy::UtilizationShapePoint;

use supercargo_model::NodeRef;
use supercargo_model::names::resource;

/// A resource on a node, with and without the pod that is being placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    allocatable: i64,
    /// What the pods on the node take.
    allocated: i64,
    /// The same with the new pod.
    requested: i64,
}

/// Which sums of cpu and memory a score looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    /// What pods ask for.
    Requested,
    /// The same, with a default for containers that do not say.
    NonZero,
}

/// The level of one resource; none if the node does not have it, or if it is counted by name and the pod asks for
/// none of it.
fn level(node: NodeRef<'_>, name: &str, pod_request: i64, sums: Sums) -> Option<Level> {
    if pod_request == 0 && resource::is_scalar(name) {
        return None;
    }
    let (has, usage) = (node.allocatable(), node.usage());
    let (allocatable, allocated) = match (name, sums) {
        (resource::CPU, Sums::Requested) => (has.milli_cpu, usage.requested().milli_cpu),
        (resource::CPU, Sums::NonZero) => (has.milli_cpu, usage.non_zero_milli_cpu()),
        (resource::MEMORY, Sums::Requested) => (has.memory, usage.requested().memory),
        (resource::MEMORY, Sums::NonZero) => (has.memory, usage.non_zero_memory()),
        (resource::EPHEMERAL_STORAGE, _) => (has.ephemeral_storage, usage.requested().ephemeral_storage),
        (name, _) => (has.scalar(name)?, usage.requested().scalar(name).unwrap_or(0)),
    };
    // Amounts near the limit wrap around, as upstream's do.
    let requested = allocated.wrapping_add(pod_request);
    (allocatable != 0).then_some(Level { allocatable, allocated, requested })
}
