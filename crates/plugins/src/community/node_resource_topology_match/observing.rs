//! What happens to nodes and topologies between decisions, and the look at topologies every few seconds: which of them have counted all pods?

use std::sync::Arc;

use supercargo_framework::{Actions, Acts, Change, ClusterEvent, Context, Observe};
use supercargo_model::pod::PodPhase;
use supercargo_model::{Kind, NodeRef, Pod, Row};

use super::NodeResourceTopologyMatch;
use super::args::{CacheMode, PodsMode};
use super::fingerprint::fingerprint;
use super::fitting::align;
use super::memory::TopologyMemory;
use super::topology::NodeResourceTopology;
use super::wants::{asks_for_zones, holds_exclusively};

impl Observe for NodeResourceTopologyMatch {
    fn events(&self) -> Vec<ClusterEvent> {
        let mut events = vec![
            ClusterEvent::kind(NodeResourceTopology::ID, Actions::ALL),
            ClusterEvent::node(Actions::ADD.or(Actions::DELETE)),
        ];
        if self.cache != CacheMode::Passthrough {
            events.push(ClusterEvent::pod(Actions::ADD.or(Actions::UPDATE).or(Actions::DELETE)));
        }
        events
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        self.look_for_odd_ones(context, acts);
        let CacheMode::OverReserve(period) = self.cache else { return };
        let topologies = context.cluster.objects();
        let gone = |name: &Arc<str>| topologies.get::<NodeResourceTopology>("", name).is_none();
        let gone = acts.memory::<TopologyMemory>().nodes().map(|(name, _)| name.clone()).filter(gone);
        for name in gone.collect::<Vec<_>>() {
            acts.memory::<TopologyMemory>().forget(&name);
        }
        // Pods may have gone while another configuration counted none.
        let known = acts.memory::<TopologyMemory>().nodes().map(|(name, _)| name.clone());
        for name in known.collect::<Vec<_>>() {
            let row = context.cluster.row_of(&name);
            let pods = row.map(|row| context.cluster.node(row).pods()).unwrap_or_default();
            let is_there = |uid: &Arc<str>| pods.iter().any(|pod| pod.uid == *uid);
            acts.memory::<TopologyMemory>().keep_assumed(&name, is_there);
        }
        let names = topologies.all::<NodeResourceTopology>().map(|(key, _)| Arc::from(&*key.name));
        for name in names.collect::<Vec<Arc<str>>>() {
            self.take_over(context, &name, acts);
        }
        acts.wake_by(context.now.after(period));
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        match change {
            Change::Pod { old, new } => self.observe_pod(context, *old, *new, acts),
            Change::Node { old, new } => {
                let node = new.as_ref().or(old.as_ref());
                node.into_iter().for_each(|node| self.doubt(context, node.name(), acts));
            }
            Change::Object { old, new } => {
                let Some(object) = new.or(*old) else { return };
                if object.get::<NodeResourceTopology>().is_none() {
                    return;
                }
                let name: Arc<str> = Arc::from(&*object.key.name);
                self.doubt(context, &name, acts);
                match (self.cache, new) {
                    (CacheMode::OverReserve(_), Some(_)) => self.take_over(context, &name, acts),
                    (CacheMode::OverReserve(_), None) => {
                        acts.memory::<TopologyMemory>().forget(&name);
                    }
                    _ => {}
                }
            }
        }
    }

    fn wants_rejections(&self) -> bool {
        matches!(self.cache, CacheMode::OverReserve(_))
    }

    fn doubts(&self, context: &Context<'_>, pod: &Arc<Pod>, acts: &mut Acts<'_>) -> Vec<Row> {
        let memory = context.memories.get::<TopologyMemory>().filter(|_| asks_for_zones(&pod.spec));
        let smaller = memory.map(|memory| memory.smaller_since(&pod.spec)).unwrap_or_default();
        if smaller.is_empty() {
            return Vec::new();
        }
        let is_misfit = |row: &Row| {
            let node = context.cluster.node(*row);
            let known = memory.and_then(|memory| memory.get(node.name()));
            known.is_some_and(|known| {
                align(&pod.spec, &known.left, node.allocatable(), context.fixes).is_err()
            })
        };
        let rows = smaller.into_iter().filter_map(|node| context.cluster.row_of(node));
        let misfits: Vec<Row> = rows.filter(is_misfit).collect();
        let memory = acts.memory::<TopologyMemory>();
        memory.saw(&pod.spec);
        if !context.fixes.numa_resync_pending_pods {
            // As upstream, a node where another plugin rejects the pod already is not suspected.
            return misfits;
        }
        misfits.iter().for_each(|row| memory.suspect(context.cluster.node(*row).name()));
        Vec::new()
    }

    fn rejected(&self, context: &Context<'_>, nodes: &[(Row, bool)], acts: &mut Acts<'_>) {
        let memory = acts.memory::<TopologyMemory>();
        for (row, is_rejected) in nodes {
            let node = context.cluster.node(*row).name();
            if *is_rejected {
                memory.suspect(node);
            } else {
                memory.note(node);
            }
        }
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        self.tell_of_odd_ones(context, acts);
        if let CacheMode::OverReserve(period) = self.cache {
            self.resync(context, acts);
            acts.wake_by(context.now.after(period));
        }
    }
}

impl NodeResourceTopologyMatch {
    /// A topology has come, or changed, or counts at once by now.
    pub(super) fn take_over(&self, context: &Context<'_>, name: &Arc<str>, acts: &mut Acts<'_>) {
        let Some(topology) = context.cluster.objects().get_shared::<NodeResourceTopology>("", name) else {
            return;
        };
        let is_new = acts.recall::<TopologyMemory>().is_none_or(|memory| memory.get(name).is_none());
        acts.memory::<TopologyMemory>().update(name, topology, self.args.takes_over_policies());
        if is_new && let Some(row) = context.cluster.row_of(name) {
            for pod in context.cluster.node(row).pods() {
                self.suspect_foreign(pod, acts);
            }
        }
    }

    /// A pod came, changed or went.
    fn observe_pod(&self, context: &Context<'_>, old: Option<&Pod>, new: Option<&Pod>, acts: &mut Acts<'_>) {
        let Some(pod) = new.or(old) else { return };
        let on_node = |pod: Option<&Pod>| pod.and_then(|pod| pod.node_name.clone());
        let Some(node) = on_node(new).or_else(|| on_node(old)) else { return };
        match self.cache {
            CacheMode::Passthrough => {}
            // It is bound, or gone, whether or not PostBind or Unreserve are called for it.
            CacheMode::DiscardReserved => self.give_up(&node, pod, acts),
            CacheMode::OverReserve(_) => {
                self.suspect_foreign(pod, acts);
                let is_known = |memory: &TopologyMemory| memory.get(&node).is_some();
                if new.is_none()
                    && acts.recall::<TopologyMemory>().is_some_and(is_known)
                    && acts.memory::<TopologyMemory>().forget_pod(&node, &pod.uid)
                {
                    self.take_over(context, &node, acts);
                }
            }
        }
    }

    /// A node that was given to a pod is perhaps free again.
    pub(super) fn give_up(&self, node: &Arc<str>, pod: &Pod, acts: &mut Acts<'_>) {
        let is_given = acts.recall::<TopologyMemory>().is_some_and(|memory| memory.is_given(node));
        if is_given && acts.memory::<TopologyMemory>().give_up(node, &pod.uid) {
            acts.node_changed(node);
        }
    }

    /// Notes a node that another scheduler gave a pod.
    fn suspect_foreign(&self, pod: &Pod, acts: &mut Acts<'_>) {
        let Some(node) = &pod.node_name else { return };
        let known = acts.recall::<TopologyMemory>().and_then(|memory| memory.get(node));
        let Some(known) = known.filter(|known| !known.is_foreign) else { return };
        let counts = match self.args.foreign_pods() {
            PodsMode::None => false,
            PodsMode::OnlyExclusive => holds_exclusively(&pod.spec, &known.topology),
            PodsMode::All | PodsMode::Autodetect => true,
        };
        if counts && !acts.has_a_say_in(&pod.spec.scheduler_name) {
            acts.memory::<TopologyMemory>().suspect_foreign(node);
        }
    }

    /// Looks at the topologies that are in doubt: one that has counted the pods of its node, and no others, counts.
    fn resync(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let doubtful = acts.recall::<TopologyMemory>().map(TopologyMemory::doubtful).unwrap_or_default();
        for (name, counts_at_once) in doubtful {
            let objects = context.cluster.objects();
            let Some(topology) = objects.get_shared::<NodeResourceTopology>("", &name) else { continue };
            let node = context.cluster.row_of(&name).map(|row| context.cluster.node(row));
            let pods: Vec<&Pod> = node.map(|node| self.counted_pods(node)).unwrap_or_default();
            // As upstream, one that has counted nobody does not count while all pods of the node are on their way.
            let are_on_their_way = pods.is_empty() && node.is_some_and(|node| !node.pods().is_empty());
            if !counts_at_once && (are_on_their_way || !self.has_counted(&topology, &pods)) {
                continue;
            }
            // As upstream, pods are forgotten that are bound and have not started yet, though the topology has not counted them.
            let is_missing = |uid: &str| {
                context.fixes.numa_resync_pending_pods && !pods.iter().any(|pod| *pod.uid == *uid)
            };
            let memory = acts.memory::<TopologyMemory>();
            if memory.is_news(&name, &topology, is_missing) {
                memory.learn(&name, topology, is_missing);
                acts.node_changed(&name);
            } else {
                memory.trust(&name);
            }
        }
    }

    /// The pods of a node that a topology should have counted.
    pub(super) fn counted_pods<'a>(&self, node: NodeRef<'a>) -> Vec<&'a Pod> {
        node.pods().iter().map(|pod| &**pod).filter(|pod| self.counts(pod)).collect()
    }

    /// Whether a topology should have counted a pod of its node.
    pub(super) fn counts(&self, pod: &Pod) -> bool {
        match pod.phase() {
            PodPhase::Running => true,
            PodPhase::Pending => false,
            _ => !self.args.only_running_pods(),
        }
    }

    /// Whether a topology has counted exactly these pods, as far as it says.
    fn has_counted(&self, topology: &NodeResourceTopology, pods: &[&Pod]) -> bool {
        let Some(expected) = &topology.fingerprint else { return false };
        let only_exclusive = !expected.is_annotation
            && match self.args.fingerprinted_pods() {
                PodsMode::OnlyExclusive => true,
                PodsMode::Autodetect => expected.only_exclusive,
                PodsMode::All | PodsMode::None => false,
            };
        let counts = |pod: &&&Pod| !only_exclusive || holds_exclusively(&pod.spec, topology);
        *expected.fingerprint == *fingerprint(pods.iter().filter(counts).copied())
    }
}
