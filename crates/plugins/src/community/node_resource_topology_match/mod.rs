//! NodeResourceTopologyMatch: pods whose cpus, memory and devices must come from one NUMA zone go where one zone has them all.

mod args;
mod background;
mod fingerprint;
mod fitting;
mod least_numa_nodes;
mod memory;
mod observing;
mod odd;
mod placement;
mod preempting;
mod scoring;
pub(super) mod topology;
mod wants;
mod xxh64;

use std::sync::Arc;

use supercargo_framework::{
    Actions, Acts, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, MAX_NODE_SCORE, NodeField,
    Normalization, Plugin, PodField, PostBind, PreFilter, PreFilterResult, Reads, Reserve, Score, Status,
};
use supercargo_model::{Kind, NodeRef, Pod};

use args::CacheMode;
pub use args::{NodeResourceTopologyMatchArgs, TopologyCacheArgs, TopologyScoringStrategy};
use memory::TopologyMemory;
use odd::OddTopologies;
use preempting::Victims;
pub use topology::NodeResourceTopology;
use wants::{asks_for_zones, is_guaranteed, pod_requests};

/// What people read where nobody knows what is left in the zones of a node.
const STALE: &str = "invalid node topology data";

/// # What
/// A kubelet with the topology manager's policy `single-numa-node` takes a pod only if what each of its containers asks for, or all of them
/// together (scope `pod`), is left in one NUMA zone. This plugin keeps pods off nodes whose kubelet would refuse them. What is left it
/// reads from the NodeResourceTopology that is named like the node, which an exporter on the node writes (NFD's topology-updater, or the
/// resource-topology-exporter). Nodes without one pass, and so do pods that ask neither for a device nor for anything that is promised to
/// them.
///
/// Guaranteed pods also have a preference: for nodes whose zones have most left (`LeastAllocated`), or least (`MostAllocated`), or whose resources
/// would be used evenly (`BalancedAllocation`); or, under any policy, for nodes where the pod needs the fewest zones, near to each other
/// (`LeastNUMANodes`). All other pods get 100 points everywhere.
///
/// # Why
/// A scheduler that looks at whole nodes sends pods where the kubelet refuses them, again and again; and memory that is far away is slow.
///
/// # Arguments
/// - `scoringStrategy`: `type`, one of the four above (`LeastAllocated`), and `resources`, names and weights (cpu and memory 1, as all others);
///   the last two strategies do not weigh.
/// - `cacheResyncPeriodSeconds` (0): above 0, what pods ask for that were placed since a topology was written is taken off all zones of their node, as
///   nobody knows in which of them they are. Every so many seconds the topologies are looked at of nodes where a pod did not fit, or that another
///   scheduler gave a pod: one that says by a fingerprint that it has counted the pods of its node counts from then on. Meanwhile
///   nodes with pods of other schedulers get none.
/// - `cache`: `foreignPodsDetect`: which pods of other schedulers count (`All`, `None`, `OnlyExclusiveResources`). `resyncMethod`: which pods a fingerprint is made of
///   (`Autodetect`, as the topology says; `All`; `OnlyExclusiveResources`). `informerMode`: whether pods count that are not pending
///   (`Dedicated`) or that run (`Shared`). `resyncScope`: whether a changed policy of a node counts at the next look, whatever its pods are (`All`, or
///   `OnlyResources`).
/// - `discardReservedNodes` (false): instead, a node gets no other pod from the moment that it is given to one until that is bound.
/// - `preemptionMode` (`Disabled`): `Enabled` lets preemption, with a resync period, give zones back what its victims hold in them, if the topology says
///   where containers are.
///
/// # Example
/// ```yaml
/// plugins:
///   multiPoint: {enabled: [{name: NodeResourceTopologyMatch}]}
/// pluginConfig:
/// - name: NodeResourceTopologyMatch
///   args: {scoringStrategy: {type: MostAllocated}, cacheResyncPeriodSeconds: 5}
/// ---
/// apiVersion: topology.node.k8s.io/v1alpha2
/// kind: NodeResourceTopology
/// metadata: {name: n1}
/// attributes: [{name: topologyManagerPolicy, value: single-numa-node}, {name: topologyManagerScope, value: container}]
/// zones:
/// - {name: node-0, type: Node, resources: [{name: cpu, capacity: "8", allocatable: "8", available: "3"}]}
/// - {name: node-1, type: Node, resources: [{name: cpu, capacity: "8", allocatable: "8", available: "3"}]}
/// ```
/// A guaranteed pod of 4 cores does not fit on n1, which has 6 left.
///
/// # Difference from upstream
/// - Topologies come from a watch: those of nodes that join later are known, and no decision costs a request. With a resync period, a changed topology
///   counts at once where no pod was placed since the last one.
/// - Zones are known by their numbers, whichever there are and in whatever order; of two with one number the first counts. Upstream
///   crashes, or mistakes one for another, if they do not count up from 0, and above 63.
/// - Containers that ask for nothing, and pods with a single resource, get points where upstream divides by zero. As upstream, a
///   pod fails that meets a node with more zones than it says; the fix `numaNodePoints` gives such a node no points.
/// - LeastNUMANodes looks at 65536 sets of zones of one size at most: with some twenty zones or more, a pod that needs many gets no points.
/// - A pod that is gone is no longer taken off its node's zones, and if it was the last, the newest topology counts. A node without pods is
///   believed by the fingerprint of no pods; upstream leaves it alone for ever if another scheduler gave it a pod once. Pods that have run
///   their course count for no fingerprint. Pods that the plugin rejected are tried again when a topology counts, or a node is free, again.
/// - What preemption would free is worked out by the pods that the node has, and not by those that it had at the last look, nor only after
///   the first look. Victims that have not started free nothing.
/// - `BalancedAllocation` gives a node 0 points where less than nothing is left in a zone, so that upstream would go below 0 and fail the pod.
/// - What is odd about a topology is told by an event on it: there is no node of its name, no zone counts, or, for `LeastNUMANodes`, nobody
///   says how far zones are from each other. At most 100 are named.
/// - The class of a pod (`Guaranteed`) is what follows from its requests and limits.
/// - Profiles share what is remembered, by the arguments of the first that has the plugin. Upstream has a cache for each, which knows nothing of the
///   others.
/// - Under the policy `restricted` every pod passes, as upstream.
#[derive(Debug)]
pub struct NodeResourceTopologyMatch {
    args: NodeResourceTopologyMatchArgs,
    cache: CacheMode,
}

/// What is known about the zones of a node.
enum View<'a> {
    /// Nothing that can be relied on.
    Stale,
    /// There is no topology.
    Unknown,
    Known(&'a NodeResourceTopology),
}

impl Plugin for NodeResourceTopologyMatch {
    const NAME: &'static str = "NodeResourceTopologyMatch";
    type Args = NodeResourceTopologyMatchArgs;

    fn new(args: NodeResourceTopologyMatchArgs) -> Self {
        NodeResourceTopologyMatch { cache: args.cache_mode(), args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        let points = points.pre_filter().filter().score().reserve().post_bind();
        points.enqueue().observe().remembers::<TopologyMemory>().remembers::<OddTopologies>()
    }

    fn reads(&self) -> Reads {
        let mut reads = Reads::nothing()
            .pod(&[PodField::Requests])
            .node(&[NodeField::Name, NodeField::Allocatable])
            .of_node::<NodeResourceTopology>();
        match self.cache {
            CacheMode::Passthrough => reads,
            CacheMode::DiscardReserved => reads.memory_of_node(),
            CacheMode::OverReserve(_) => {
                // As upstream, which lists topologies when it starts.
                reads.required.push(NodeResourceTopology::ID);
                reads.memory_of_node().progress_of_pods()
            }
        }
    }

    fn subject(&self) -> &'static str {
        "NUMA zones of nodes"
    }
}

impl NodeResourceTopologyMatch {
    fn view<'a>(&self, context: &Context<'a>, node: NodeRef<'_>) -> View<'a> {
        let memory = || context.memories.get::<TopologyMemory>();
        match self.cache {
            CacheMode::DiscardReserved if memory().is_some_and(|memory| memory.is_given(node.name())) => {
                View::Stale
            }
            CacheMode::Passthrough | CacheMode::DiscardReserved => {
                context.cluster.object_of(node.row()).map_or(View::Unknown, View::Known)
            }
            CacheMode::OverReserve(_) => match memory().and_then(|memory| memory.get(node.name())) {
                // `explain` on a dump remembers nothing: the topology counts as it is.
                None => context.cluster.object_of(node.row()).map_or(View::Unknown, View::Known),
                Some(known) if known.is_foreign => View::Stale,
                Some(known) => View::Known(&known.left),
            },
        }
    }
}

impl PreFilter for NodeResourceTopologyMatch {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        if self.args.simulates_evictions() {
            cycle.put(Victims::default());
        }
        PreFilterResult::AllNodes
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        if let Some(victims) = cycle.get_mut::<Victims>() {
            victims.remove(pod);
        }
        Status::success()
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        if let Some(victims) = cycle.get_mut::<Victims>() {
            victims.insert(pod);
        }
        Status::success()
    }
}

impl Filter for NodeResourceTopologyMatch {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let spec = &cycle.pod.spec;
        if !asks_for_zones(spec) {
            return Status::success();
        }
        let topology = match self.view(&cycle.context, node) {
            View::Stale => return Status::unschedulable(STALE),
            View::Unknown => return Status::success(),
            View::Known(topology) => topology,
        };
        let simulated = match self.without_victims(cycle, node, topology) {
            Err(status) => return status,
            Ok(simulated) => simulated,
        };
        let topology = simulated.as_ref().unwrap_or(topology);
        match fitting::align(spec, topology, node.allocatable(), cycle.context.fixes) {
            Ok(()) => Status::success(),
            Err(misfit) => Status::unschedulable(misfit.reason),
        }
    }

    fn background(&self, context: &Context<'_>, pod: &Pod, node: NodeRef<'_>) -> Option<String> {
        background::background(self, context, pod, node)
    }
}

impl Score for NodeResourceTopologyMatch {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let spec = &cycle.pod.spec;
        if !is_guaranteed(spec) {
            return Ok(MAX_NODE_SCORE);
        }
        Ok(match self.view(&cycle.context, node) {
            View::Stale | View::Unknown => 0,
            View::Known(topology) => scoring::points(&self.args, spec, topology, cycle.context.fixes),
        })
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

impl Reserve for NodeResourceTopologyMatch {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> Status {
        let uid = &cycle.pod.uid;
        match self.cache {
            CacheMode::Passthrough => {}
            CacheMode::DiscardReserved => acts.memory::<TopologyMemory>().give(node.name(), uid),
            CacheMode::OverReserve(_) => {
                let requests = pod_requests(&cycle.pod.spec, cycle.context.fixes);
                acts.memory::<TopologyMemory>().assume(node.name(), uid, requests);
            }
        }
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) {
        match self.cache {
            CacheMode::Passthrough => {}
            CacheMode::DiscardReserved => self.give_up(node.name(), cycle.pod, acts),
            CacheMode::OverReserve(_) => {
                if acts.memory::<TopologyMemory>().forget_pod(node.name(), &cycle.pod.uid) {
                    self.take_over(&cycle.context, node.name(), acts);
                }
            }
        }
    }
}

impl PostBind for NodeResourceTopologyMatch {
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) {
        if self.cache == CacheMode::DiscardReserved {
            self.give_up(node.name(), cycle.pod, acts);
        }
    }
}

impl Enqueue for NodeResourceTopologyMatch {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::DELETE),
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_ALLOCATABLE)),
            ClusterEvent::kind(NodeResourceTopology::ID, Actions::ADD.or(Actions::UPDATE)),
        ]
    }
}

#[cfg(test)]
mod tests;
