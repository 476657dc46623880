//! What would be if other pods ran on a node.

use std::sync::Arc;

use supercargo_framework::{Cycle, NodeRehearsal, Rehearsal, Status};
use supercargo_model::cluster::Usage;
use supercargo_model::{NodeRef, Pod, Row};

use crate::filtering::Filters;

/// Lets PostFilter plugins try out nodes without the pods on them.
pub(crate) struct Stage<'a, 'c> {
    pub(crate) filters: &'a Filters<'a>,
    pub(crate) cycle: &'a Cycle<'c>,
}

struct NodeStage<'a, 'c> {
    filters: &'a Filters<'a>,
    /// A copy of its own: what is tried out here shows nowhere else.
    cycle: Cycle<'c>,
    row: Row,
    usage: Usage,
}

impl Rehearsal for Stage<'_, '_> {
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_> {
        let usage = self.cycle.cluster().node(row).usage().clone();
        Box::new(NodeStage { filters: self.filters, cycle: self.cycle.clone(), row, usage })
    }
}

impl NodeRehearsal for NodeStage<'_, '_> {
    fn as_node(&self) -> NodeRef<'_> {
        self.cycle.cluster().node_with(self.row, &self.usage)
    }

    fn add_pod(&mut self, pod: &Arc<Pod>) -> Status {
        self.usage.add(pod.clone());
        let node = self.cycle.cluster().node_with(self.row, &self.usage);
        self.filters.add_pod(&mut self.cycle, pod, node)
    }

    fn remove_pod(&mut self, pod: &Arc<Pod>) -> Status {
        if self.usage.remove(&pod.uid).is_none() {
            let node = self.as_node().name().clone();
            return Status::error(format!("no corresponding pod {} in pods of node {node}", pod.name));
        }
        let node = self.cycle.cluster().node_with(self.row, &self.usage);
        self.filters.remove_pod(&mut self.cycle, pod, node)
    }

    fn filter(&self) -> Status {
        self.filters.run(&self.cycle, self.as_node())
    }
}
