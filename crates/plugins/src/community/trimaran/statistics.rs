//! The load of a node as a share of what it has, with a pod on top of it.

use supercargo_model::NodeRef;
use supercargo_model::names::resource;

use super::load::Measured;

/// Memory is counted in mebibytes, as upstream.
const MEBIBYTE: f64 = 1.0 / 1024.0 / 1024.0;

/// What there is of a resource, what is used of it, and what a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Statistics {
    pub(super) capacity: f64,
    pub(super) requested: f64,
    pub(super) used_average: f64,
    pub(super) used_deviation: f64,
}

impl Statistics {
    /// Of cpu; none if nothing was measured. Percentages are of what the node gives to pods, as upstream, or of all that it has.
    pub(super) fn of_cpu(
        measured: Measured,
        node: NodeRef<'_>,
        requested: i64,
        of_capacity: bool,
    ) -> Option<Self> {
        let allocatable = node.allocatable().milli_cpu as f64;
        let whole =
            if of_capacity { node.facts().capacity.amount(resource::CPU) as f64 } else { allocatable };
        Self::of(measured, allocatable, whole, requested as f64)
    }

    /// Of memory, in the same way.
    pub(super) fn of_memory(
        measured: Measured,
        node: NodeRef<'_>,
        requested: i64,
        of_capacity: bool,
    ) -> Option<Self> {
        let allocatable = node.allocatable().memory as f64 * MEBIBYTE;
        let whole = if of_capacity {
            node.facts().capacity.amount(resource::MEMORY) as f64 * MEBIBYTE
        } else {
            allocatable
        };
        Self::of(measured, allocatable, whole, requested as f64 * MEBIBYTE)
    }

    fn of(measured: Measured, capacity: f64, whole: f64, requested: f64) -> Option<Self> {
        measured.is_known.then(|| Statistics {
            capacity,
            requested,
            used_average: measured.average * whole / 100.0,
            used_deviation: measured.deviation * whole / 100.0,
        })
    }

    /// The share that would be used, and by how much that varies; both from 0 to 1.
    pub(super) fn mean_and_deviation(&self) -> (f64, f64) {
        if self.capacity <= 0.0 {
            return (0.0, 0.0);
        }
        let mean = (self.used_average + self.requested) / self.capacity;
        let deviation = self.used_deviation / self.capacity;
        (clamped(mean, 1.0), clamped(deviation, 1.0))
    }
}

/// A number that is not below 0 nor above a limit.
pub(super) fn clamped(value: f64, limit: f64) -> f64 {
    value.min(limit).max(0.0)
}
