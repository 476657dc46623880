//! What is remembered about nodes between two looks at their topologies: the pods that a topology has not counted yet.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Memory, SharedMap};
use supercargo_model::{Interned, PodSpec, ResourceList};

use super::topology::{NodeResourceTopology, Zone};

/// For so many pod specs it is remembered which nodes were compared already; with more the oldest is forgotten.
const SPECS_MAX: usize = 64;
/// Up to so many changes are looked up by their numbers; beyond that all entries are gone through instead.
const LOOK_UPS_MAX: u64 = 64;

/// What is remembered about nodes, by name. Nothing of it outlives the process: topologies count all pods in the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TopologyMemory {
    /// The nodes that have a topology, where pods are counted on top of it.
    #[serde(skip)]
    nodes: SharedMap<Arc<str>, KnownNode>,
    /// The nodes that were given to pods, by UID, which are not bound yet, where that makes a topology useless.
    #[serde(skip)]
    given: SharedMap<Arc<str>, Vec<Arc<str>>>,
    #[serde(skip)]
    changes: Changes,
}

impl Memory for TopologyMemory {
    const NAME: &'static str = "NodeResourceTopologyMatch/Nodes";
}

/// What is known about a node.
#[derive(Clone, Debug)]
pub(super) struct KnownNode {
    /// Its topology, as it was when all pods of the node were counted in it.
    pub(super) topology: Arc<NodeResourceTopology>,
    /// The same without what the pods ask for that came since, in every zone: nobody knows which one they are in.
    pub(super) left: Arc<NodeResourceTopology>,
    /// Those pods.
    assumed: Vec<AssumedPod>,
    /// Whether a pod did not fit, perhaps only because of what is not known.
    is_suspected: bool,
    /// Whether another scheduler gave it a pod, so that nobody knows what is left.
    pub(super) is_foreign: bool,
    /// Whether its newest topology has other policies.
    has_other_policies: bool,
    /// When it last became smaller; see [`Changes`].
    changed: Option<u64>,
}

#[derive(Clone, Debug)]
struct AssumedPod {
    uid: Arc<str>,
    requests: Arc<ResourceList>,
}

/// The nodes that pods came to, in that order, each once: there a pod that fitted before may not fit any more.
#[derive(Clone, Debug, Default)]
struct Changes {
    nodes: SharedMap<u64, Arc<str>>,
    next: u64,
    /// Pod specs, the oldest first, and up to which change each was compared with the nodes.
    seen: Vec<(Interned<PodSpec>, u64)>,
}

impl KnownNode {
    fn new(topology: Arc<NodeResourceTopology>, assumed: Vec<AssumedPod>) -> Self {
        let mut node = KnownNode {
            left: topology.clone(),
            topology,
            assumed,
            is_suspected: false,
            is_foreign: false,
            has_other_policies: false,
            changed: None,
        };
        node.work_out_left();
        node
    }

    /// Works out what is left without the assumed pods.
    fn work_out_left(&mut self) {
        self.left = self.topology.clone();
        if self.assumed.is_empty() {
            return;
        }
        let left = Arc::make_mut(&mut self.left);
        self.assumed.iter().for_each(|pod| take(&mut left.zones, &pod.requests));
    }

    /// Whether its newest topology is to be compared with its pods.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_foreign || self.is_suspected
    }

    /// Whether its newest topology counts at once: nothing was counted on top of the one before.
    fn is_settled(&self) -> bool {
        self.assumed.is_empty() && !self.is_foreign
    }
}

impl TopologyMemory {
    /// What is known about a node.
    pub(super) fn get(&self, node: &str) -> Option<&KnownNode> {
        self.nodes.find(|name| (**name).cmp(node)).map(|(_, known)| known)
    }

    /// Whether a pod is on its way to a node.
    pub(super) fn is_given(&self, node: &str) -> bool {
        self.given.find(|name| (**name).cmp(node)).is_some()
    }

    /// A node is given to a pod that is not bound yet.
    pub(super) fn give(&mut self, node: &Arc<str>, uid: &Arc<str>) {
        let pods = self.given.get_or_default(node);
        if !pods.contains(uid) {
            pods.push(uid.clone());
        }
    }

    /// A pod is bound, or will not be. Whether the node is free again by that.
    pub(super) fn give_up(&mut self, node: &Arc<str>, uid: &Arc<str>) -> bool {
        if !self.given.get(node).is_some_and(|pods| pods.contains(uid)) {
            return false;
        }
        let is_last = self.given.get_mut(node).is_some_and(|pods| {
            pods.retain(|pod| pod != uid);
            pods.is_empty()
        });
        if is_last {
            self.given.remove(node);
        }
        is_last
    }

    /// A pod is assumed to be on a node, if the node has a topology.
    pub(super) fn assume(&mut self, node: &Arc<str>, uid: &Arc<str>, requests: ResourceList) {
        let Some(known) = self.nodes.get_mut(node) else { return };
        if known.assumed.iter().any(|pod| pod.uid == *uid) {
            known.assumed.retain(|pod| pod.uid != *uid);
            known.work_out_left();
        }
        take(&mut Arc::make_mut(&mut known.left).zones, &requests);
        known.assumed.push(AssumedPod { uid: uid.clone(), requests: Arc::new(requests) });
        if !known.is_suspected {
            known.changed = Some(self.changes.note(node, known.changed));
        }
    }

    /// Puts a node among the changed ones again: another plugin rejected the pod first, so this one has not been heard.
    pub(super) fn note(&mut self, node: &Arc<str>) {
        if let Some(known) = self.nodes.get_mut(node).filter(|known| !known.is_suspected) {
            known.changed = Some(self.changes.note(node, known.changed));
        }
    }

    /// A pod is not on a node after all, or not any more. Whether a newer topology counts at once by that.
    pub(super) fn forget_pod(&mut self, node: &Arc<str>, uid: &Arc<str>) -> bool {
        self.keep_assumed(node, |assumed| assumed != uid)
    }

    /// Of the pods that are assumed to be on a node, only some are. Whether a newer topology counts at once by that.
    pub(super) fn keep_assumed(&mut self, node: &Arc<str>, is_there: impl Fn(&Arc<str>) -> bool) -> bool {
        let is_wrong = |known: &KnownNode| known.assumed.iter().any(|pod| !is_there(&pod.uid));
        if !self.nodes.get(node).is_some_and(is_wrong) {
            return false;
        }
        let Some(known) = self.nodes.get_mut(node) else { return false };
        known.assumed.retain(|pod| is_there(&pod.uid));
        known.work_out_left();
        known.is_settled()
    }

    /// Whether a topology that has all pods of its node counted, but for some of those that were assumed, says anything new.
    pub(super) fn is_news(
        &self,
        node: &str,
        topology: &NodeResourceTopology,
        is_missing: impl Fn(&str) -> bool,
    ) -> bool {
        self.get(node).is_none_or(|known| {
            known.is_foreign
                || *known.topology != *topology
                || known.assumed.iter().any(|pod| !is_missing(&pod.uid))
        })
    }

    /// The topology that was looked at says nothing new, nor are its policies other ones any more: a node without assumed pods is suspected
    /// no longer.
    pub(super) fn trust(&mut self, node: &Arc<str>) {
        let is_sure = |known: &KnownNode| known.is_suspected && known.assumed.is_empty();
        if self.nodes.get(node).is_some_and(|known| is_sure(known) || known.has_other_policies)
            && let Some(known) = self.nodes.get_mut(node)
        {
            known.is_suspected &= !known.assumed.is_empty();
            known.has_other_policies = false;
        }
    }

    /// A topology has all pods of its node counted, but for some of those that were assumed.
    pub(super) fn learn(
        &mut self,
        node: &Arc<str>,
        topology: Arc<NodeResourceTopology>,
        is_missing: impl Fn(&str) -> bool,
    ) {
        let mut assumed = Vec::new();
        if let Some(known) = self.forget(node) {
            assumed = known.assumed.into_iter().filter(|pod| is_missing(&pod.uid)).collect();
        }
        let mut known = KnownNode::new(topology, assumed);
        if !known.assumed.is_empty() {
            known.changed = Some(self.changes.note(node, None));
        }
        self.nodes.insert(node.clone(), known);
    }

    /// A topology has changed: it counts at once if nothing was counted on top of the one before.
    pub(super) fn update(
        &mut self,
        node: &Arc<str>,
        topology: Arc<NodeResourceTopology>,
        takes_over_policies: bool,
    ) {
        match self.nodes.get(node) {
            Some(known) if !known.is_settled() => {
                if takes_over_policies
                    && known.topology.manager != topology.manager
                    && let Some(known) = self.nodes.get_mut(node)
                {
                    known.has_other_policies = true;
                }
            }
            _ => self.learn(node, topology, |_| false),
        }
    }

    /// A node has no topology any more.
    pub(super) fn forget(&mut self, node: &Arc<str>) -> Option<KnownNode> {
        let known = self.nodes.remove(node)?;
        if let Some(change) = known.changed {
            self.changes.nodes.remove(&change);
        }
        Some(known)
    }

    /// Another scheduler gave a node a pod, or a pod of another one changed there.
    pub(super) fn suspect_foreign(&mut self, node: &Arc<str>) {
        if let Some(known) = self.nodes.get_mut(node) {
            known.is_foreign = true;
        }
    }

    /// A pod does not fit on a node, perhaps only because of what is not known.
    pub(super) fn suspect(&mut self, node: &Arc<str>) {
        let Some(known) = self.nodes.get_mut(node) else { return };
        known.is_suspected = true;
        if let Some(change) = known.changed.take() {
            self.changes.nodes.remove(&change);
        }
    }

    /// The nodes that were given pods since [`saw`](Self::saw) was last called for this spec.
    pub(super) fn smaller_since(&self, spec: &Interned<PodSpec>) -> Vec<&Arc<str>> {
        self.changes.since(spec)
    }

    /// Pods of this spec have been compared with every change so far.
    pub(super) fn saw(&mut self, spec: &Interned<PodSpec>) {
        self.changes.saw(spec);
    }

    /// All nodes that have a topology.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, &KnownNode)> {
        self.nodes.iter()
    }

    /// Those whose newest topology is to be looked at, and whether it counts without a look at its pods.
    pub(super) fn doubtful(&self) -> Vec<(Arc<str>, bool)> {
        let doubtful = self.nodes.iter().filter(|(_, known)| known.is_doubtful() || known.has_other_policies);
        doubtful.map(|(name, known)| (name.clone(), known.has_other_policies)).collect()
    }
}

/// Takes what a pod asks for off all zones.
fn take(zones: &mut [Zone], requests: &ResourceList) {
    for zone in zones {
        requests.iter().for_each(|(name, quantity)| zone.take(name, quantity));
    }
}

impl Changes {
    /// A node became smaller. Its earlier change, if any, is dropped: the new one stands for both.
    fn note(&mut self, node: &Arc<str>, earlier: Option<u64>) -> u64 {
        if let Some(earlier) = earlier {
            self.nodes.remove(&earlier);
        }
        let number = self.next;
        self.nodes.insert(number, node.clone());
        self.next += 1;
        number
    }

    fn since(&self, spec: &Interned<PodSpec>) -> Vec<&Arc<str>> {
        let first = self.seen.iter().find(|(seen, _)| seen == spec).map_or(0, |(_, next)| *next);
        if self.next - first <= LOOK_UPS_MAX {
            (first..self.next).filter_map(|number| self.nodes.get(&number)).collect()
        } else {
            self.nodes.iter().filter(|(number, _)| **number >= first).map(|(_, node)| node).collect()
        }
    }

    fn saw(&mut self, spec: &Interned<PodSpec>) {
        let next = self.next;
        match self.seen.iter_mut().find(|(seen, _)| seen == spec) {
            Some((_, seen)) => *seen = next,
            None => {
                if self.seen.len() >= SPECS_MAX {
                    self.seen.remove(0);
                }
                self.seen.push((spec.clone(), next));
            }
        }
    }
}

#[cfg(test)]
mod tests;
