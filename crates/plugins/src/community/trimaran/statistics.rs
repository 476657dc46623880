//! The load of a node as a share of what it has, with a pod on top of it.

use supercargo_framework::Fixes;
use supercargo_model::NodeRef;
use supercargo_model::names::resource;

use super::load::{Measured, NodeLoad};

/// Cpu is counted in thousandths of a core, and memory in mebibytes, as upstream.
const UNITS: [f64; 2] = [1.0, 1.0 / 1024.0 / 1024.0];

/// What there is of a resource, what is used of it, and what a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Statistics {
    pub(super) capacity: f64,
    pub(super) requested: f64,
    pub(super) used_average: f64,
    pub(super) used_deviation: f64,
}

impl Statistics {
    /// Of cpu and of memory; none of what was not measured. Percentages are of what the node gives to pods, as upstream, or of all that it
    /// has, and pods that came since the measurement count, if those fixes are asked for.
    pub(super) fn of_node(
        load: &NodeLoad,
        node: NodeRef<'_>,
        requested: [i64; 2],
        fixes: &Fixes,
    ) -> [Option<Self>; 2] {
        let allocatable = [node.allocatable().milli_cpu, node.allocatable().memory];
        let whole = if fixes.load_of_capacity {
            [resource::CPU, resource::MEMORY].map(|name| node.facts().capacity.amount(name))
        } else {
            allocatable
        };
        let unmeasured = if fixes.recent_pods_load { load.unmeasured(node, fixes) } else { [0, 0] };
        let measured = [load.cpu_of(node), load.memory_of(node)];
        [0, 1].map(|index| {
            let amount = |amounts: [i64; 2]| amounts[index] as f64 * UNITS[index];
            let Measured { average, deviation, .. } = measured[index];
            measured[index].is_known.then(|| Statistics {
                capacity: amount(allocatable),
                requested: amount(requested),
                used_average: average * amount(whole) / 100.0 + amount(unmeasured),
                used_deviation: deviation * amount(whole) / 100.0,
            })
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
