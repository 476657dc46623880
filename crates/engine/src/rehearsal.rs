//! What would be if other pods ran on a node.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;

use supercargo_framework::{Context, Cycle, NodeRehearsal, Profile, Rehearsal, Status};
use supercargo_model::cluster::Usage;
use supercargo_model::{NodeRef, Pod, Row};

use crate::filtering::{Filters, pre_filter};
use crate::index::Findings;

/// Where PostFilter plugins try out nodes without the pods on them.
pub(crate) trait Rehearsing {
    /// Starts with a node as it is.
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_>;

    /// What was found out before, if that is kept.
    fn findings(&self) -> Option<Findings<'_>> {
        None
    }
}

/// The same for one plugin: what it finds out is kept apart from what others do.
#[derive(Clone, Copy)]
pub(crate) struct RehearsalOf<'a> {
    rehearsing: &'a dyn Rehearsing,
    findings: Option<Findings<'a>>,
    plugin: usize,
}

/// The usual place, after PreFilter has run.
pub(crate) struct Stage<'a, 'c> {
    filters: &'a Filters<'a>,
    cycle: &'a Cycle<'c>,
    findings: Option<Findings<'a>>,
}

/// The same, where PreFilter has not run for the pod: it does when a node is first tried out.
pub(crate) struct LateStage<'a> {
    profile: &'a Profile,
    pod: &'a Arc<Pod>,
    context: Context<'a>,
    prepared: OnceCell<(Cycle<'a>, Filters<'a>)>,
}

impl<'a, 'c> Stage<'a, 'c> {
    pub(crate) fn new(filters: &'a Filters<'a>, cycle: &'a Cycle<'c>) -> Self {
        Stage { filters, cycle, findings: None }
    }

    /// A stage that remembers what was found out on it.
    pub(crate) fn with_findings(
        filters: &'a Filters<'a>,
        cycle: &'a Cycle<'c>,
        findings: Findings<'a>,
    ) -> Self {
        Stage { filters, cycle, findings: Some(findings) }
    }
}

impl<'a> LateStage<'a> {
    pub(crate) fn new(profile: &'a Profile, pod: &'a Arc<Pod>, context: Context<'a>) -> Self {
        LateStage { profile, pod, context, prepared: OnceCell::new() }
    }
}

struct NodeStage<'a, 'c> {
    filters: &'a Filters<'a>,
    /// A copy of its own: what is tried out here shows nowhere else.
    cycle: Cycle<'c>,
    row: Row,
    usage: Usage,
}

impl<'a> RehearsalOf<'a> {
    /// For the plugin of that number in its profile.
    pub(crate) fn new(rehearsing: &'a dyn Rehearsing, plugin: usize) -> Self {
        RehearsalOf { rehearsing, findings: rehearsing.findings(), plugin }
    }
}

impl Rehearsal for RehearsalOf<'_> {
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_> {
        self.rehearsing.node(row)
    }

    fn recall(&self, row: Row) -> Option<Arc<dyn Any + Send + Sync>> {
        self.findings?.recall(self.plugin, row)
    }

    fn remember(&self, row: Row, finding: Arc<dyn Any + Send + Sync>) {
        if let Some(findings) = self.findings {
            findings.remember(self.plugin, row, finding);
        }
    }
}

impl Rehearsing for Stage<'_, '_> {
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_> {
        NodeStage::boxed(self.filters, self.cycle, row)
    }

    fn findings(&self) -> Option<Findings<'_>> {
        self.findings
    }
}

impl Rehearsing for LateStage<'_> {
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_> {
        let (cycle, filters) = self.prepared.get_or_init(|| {
            let mut cycle = Cycle::new(self.pod, self.context.clone());
            let filters = pre_filter(self.profile, &mut cycle).filters;
            (cycle, filters)
        });
        NodeStage::boxed(filters, cycle, row)
    }
}

impl<'a, 'c: 'a> NodeStage<'a, 'c> {
    fn boxed(filters: &'a Filters<'a>, cycle: &Cycle<'c>, row: Row) -> Box<dyn NodeRehearsal + 'a> {
        let usage = cycle.cluster().node(row).usage().clone();
        Box::new(NodeStage { filters, cycle: cycle.clone(), row, usage })
    }
}

impl NodeRehearsal for NodeStage<'_, '_> {
    fn as_node(&self) -> NodeRef<'_> {
        self.cycle.cluster().node_with(self.row, &self.usage)
    }

    fn cycle(&self) -> &Cycle<'_> {
        &self.cycle
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
