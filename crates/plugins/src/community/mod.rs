//! The plugins of kubernetes-sigs/scheduler-plugins, as they behave at its head of August 2026. None is on by default: a profile
//! switches them on.
//!
//! CrossNodePreemption is not among them: upstream has not compiled it since the preemption API moved.

pub mod capacity_scheduling;
pub mod coscheduling;
mod definitions;
mod qos_sort;
mod requests;

pub use capacity_scheduling::CapacityScheduling;
pub use coscheduling::Coscheduling;
pub use definitions::{Definition, definitions};
pub use qos_sort::QosSort;
pub use requests::plain_requests;

use supercargo_framework::{DuplicatePlugin, Registry};

pub(crate) fn register(registry: &mut Registry) -> Result<(), DuplicatePlugin> {
    registry.register::<CapacityScheduling>()?;
    registry.register::<Coscheduling>()?;
    registry.register::<QosSort>()
}
