//! PostFilter, tried out: the pod fits nowhere by what the plugin's own filter says and by what the nodes have left.

use std::sync::Arc;

use serde_json::Value;
use supercargo_framework::{
    Cycle, Diagnosis, NodeRehearsal, Nomination, PreFilterResult, Profile, Rehearsal, Status,
};
use supercargo_model::cluster::Usage;
use supercargo_model::{NodeRef, Pod, Resources, Row};

use crate::cluster::TestCluster;
use crate::trial::{Trial, listed, status_text};

impl Trial {
    /// What PostFilter says, then `nominated: NODE` or `no longer nominated`, then `evicts: POD` for each victim.
    ///
    /// A node is not feasible if the plugin's own filter rejects it, or if it has too little cpu, memory, room for pods or other
    /// resources left: a pod that is to fit nowhere may simply ask for a lot.
    pub fn post_filter(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> Vec<String> {
        let pod = cluster.pod(pod);
        let mut cycle = cluster.cycle(&pod);
        let mut diagnosis = Diagnosis::default();
        for named in &self.profile.pre_filter {
            if let PreFilterResult::Reject(status) = named.plugin.pre_filter(&mut cycle) {
                diagnosis.pre_filter_message = Some(status.message());
                diagnosis.others = status;
            }
        }
        let stage = Stage { profile: &self.profile, cycle: &cycle };
        if diagnosis.others.is_success() {
            diagnosis.nodes =
                cluster.snapshot().rows().iter().map(|row| (*row, stage.node(*row).filter())).collect();
        }
        if let Some((row, _)) = diagnosis.nodes.iter().find(|(_, status)| status.is_success()) {
            return vec![format!("not asked: {} is feasible", cluster.snapshot().node(*row).name())];
        }
        let named = listed(&self.profile, &self.profile.post_filter, ".post_filter()");
        let result = named.plugin.post_filter(&cycle, &diagnosis, &stage);
        let nomination = match &result.nomination {
            Nomination::Keep => None,
            Nomination::Clear => Some("no longer nominated".to_owned()),
            Nomination::Node(node) => Some(format!("nominated: {node}")),
        };
        let victims = result.victims.iter().map(|victim| format!("evicts: {}", victim.name));
        std::iter::once(status_text(&result.status)).chain(nomination).chain(victims).collect()
    }
}

struct Stage<'a, 'c> {
    profile: &'a Profile,
    cycle: &'a Cycle<'c>,
}

struct NodeStage<'a, 'c> {
    profile: &'a Profile,
    cycle: Cycle<'c>,
    row: Row,
    usage: Usage,
}

impl Rehearsal for Stage<'_, '_> {
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_> {
        let usage = self.cycle.cluster().node(row).usage().clone();
        Box::new(NodeStage { profile: self.profile, cycle: self.cycle.clone(), row, usage })
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
        let told = self.profile.pre_filter.iter();
        first_failure(told.map(|named| named.plugin.add_pod(&mut self.cycle, pod, node)))
    }

    fn remove_pod(&mut self, pod: &Arc<Pod>) -> Status {
        if self.usage.remove(&pod.uid).is_none() {
            return Status::error(format!("{} is not on {}", pod.key(), self.as_node().name()));
        }
        let node = self.cycle.cluster().node_with(self.row, &self.usage);
        let told = self.profile.pre_filter.iter();
        first_failure(told.map(|named| named.plugin.remove_pod(&mut self.cycle, pod, node)))
    }

    fn filter(&self) -> Status {
        let node = self.as_node();
        let own = self.profile.filter.iter().map(|named| named.plugin.filter(&self.cycle, node));
        first_failure(own.chain([has_room(node, self.cycle.pod)]))
    }
}

fn first_failure(mut statuses: impl Iterator<Item = Status>) -> Status {
    statuses.find(|status| !status.is_success()).unwrap_or_default()
}

/// Whether a node has left what a pod asks for.
fn has_room(node: NodeRef<'_>, pod: &Pod) -> Status {
    let (has, mut wanted): (&Resources, Resources) = (node.allocatable(), node.usage().requested().clone());
    wanted.add(&pod.requests().resources);
    let amounts = [
        ("cpu", has.milli_cpu, wanted.milli_cpu),
        ("memory", has.memory, wanted.memory),
        ("ephemeral-storage", has.ephemeral_storage, wanted.ephemeral_storage),
    ];
    let scalars = wanted.scalars().map(|(name, wanted)| (name, has.scalar(name).unwrap_or(0), wanted));
    if node.pods().len() as i64 >= node.allowed_pods() {
        return Status::unschedulable("Too many pods");
    }
    match amounts.into_iter().chain(scalars).find(|(_, has, wanted)| wanted > has) {
        None => Status::success(),
        Some((name, ..)) => Status::unschedulable(format!("Insufficient {name}")),
    }
}
