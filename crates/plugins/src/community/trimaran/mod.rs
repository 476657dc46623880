//! Trimaran: nodes by the load that is measured on them.
//!
//! What is measured comes from load-watcher, from Prometheus or from the metrics API ([`MetricProvider`]), and is a fact about each node
//! ([`NodeLoad`]) while it is fresh. A node without one gets no points.

mod args;
mod exponential;
mod load;
mod load_variation_risk_balancing;
mod low_risk_over_commitment;
mod peaks;
mod statistics;
mod target_load_packing;

pub use args::{MetricProvider, Token};
pub use load::{Measured, NodeLoad, Usage};
pub use load_variation_risk_balancing::{LoadVariationRiskBalancing, LoadVariationRiskBalancingArgs};
pub use low_risk_over_commitment::{LowRiskOverCommitment, LowRiskOverCommitmentArgs};
pub use peaks::{Peaks, PeaksArgs, PowerModel};
pub use target_load_packing::{TargetLoadPacking, TargetLoadPackingArgs};

use supercargo_framework::{DuplicatePlugin, Registry};

pub(super) fn register(registry: &mut Registry) -> Result<(), DuplicatePlugin> {
    registry.register::<TargetLoadPacking>()?;
    registry.register::<LoadVariationRiskBalancing>()?;
    registry.register::<LowRiskOverCommitment>()?;
    registry.register::<Peaks>()
}

#[cfg(test)]
mod tests;
