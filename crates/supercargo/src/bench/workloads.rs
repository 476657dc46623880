//! What is measured: which pods come to which cluster, and what happens between two of them.
//!
//! The first ten are those of the peer `decide`, which measures kube-scheduler: the same nodes, pods and phases, so
//! that rates can be compared. The rest are ours.

use serde_json::{Value, json};
use supercargo_conformance::samples;
use supercargo_framework::Profile;
use supercargo_model::Object;
use supercargo_plugins::community::CapacityScheduling;
use supercargo_plugins::network_traffic::NetworkTraffic;

use super::nodes::{self, NodeKind};
use super::{community, objects, pods, pods::PodKind};

/// One workload.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// In a few words, for `--help`.
    pub(super) description: &'static str,
    pub(super) nodes: NodeKind,
    /// Objects of other kinds that are there from the start.
    pub(super) objects: fn(Sizes) -> Vec<Value>,
    /// The pods that are there before anything is measured.
    pub(super) init: Init,
    /// How many pods are measured.
    pub(super) pods: usize,
    /// What they are.
    pub(super) pod: &'static PodKind,
    pub(super) course: Course,
    /// Adds plugins of others to the profile.
    pub(super) adds: fn(&mut Profile),
    /// What [`Course::Load`] says about a node the so-manieth time.
    pub(super) fact: fn(usize, usize) -> Object,
}

/// How large a cluster is, and how many pods come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) nodes: usize,
    /// Pods that are there before anything is measured.
    pub(super) init: usize,
    /// Pods that are measured.
    pub(super) pods: usize,
}

/// How pods come to be there before anything is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Init {
    /// So many are decided for, one after the other.
    Decided(usize, &'static PodKind),
    /// Every node gets so many.
    OnEveryNode(usize, &'static PodKind),
}

/// What follows a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// The pod is placed.
    Place,
    /// The pod fits nowhere, and that is all.
    Reject,
    /// The pod is placed; then a node changes a label, and the oldest pod goes.
    Churn,
    /// The victims go, the pod is nominated, decided for again, and placed.
    Preempt,
    /// The pod is placed. Every so many pods, so many nodes get another load, or all of them.
    Load { every: usize, nodes: Nodes },
    /// The pod is placed, and a plugin remembers it.
    Remember,
}

/// How many nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nodes {
    One,
    All,
}

/// A workload on plain nodes, with nothing but pods; the others say where they differ.
const PLAIN: Workload = Workload {
    name: "",
    description: "",
    nodes: NodeKind::Plain,
    objects: |_| Vec::new(),
    init: Init::Decided(1000, &pods::BASIC),
    pods: 2000,
    pod: &pods::BASIC,
    course: Course::Place,
    adds: |_| {},
    fact: nodes::load,
};

/// Quotas of namespaces, with their own preemption.
fn add_quotas(profile: &mut Profile) {
    profile.post_filter.clear();
    samples::add::<CapacityScheduling>(profile, 0);
}

/// All of them, in the order in which they run.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "basic",
        description: "pods that ask for cpu and memory, no more",
        pods: 10_000,
        pod: &pods::BASIC,
        ..PLAIN
    },
    Workload {
        name: "anti",
        description: "required anti-affinity: one pod a node",
        init: Init::Decided(1000, &pods::ANTI),
        pod: &pods::ANTI,
        ..PLAIN
    },
    Workload {
        name: "affinity",
        description: "required affinity: all in one zone",
        init: Init::Decided(5000, &pods::AFFINITY),
        pod: &pods::AFFINITY,
        ..PLAIN
    },
    Workload {
        name: "preferred-affinity",
        description: "preferred affinity to nodes that run such pods",
        init: Init::Decided(5000, &pods::PREFERRED_AFFINITY),
        pod: &pods::PREFERRED_AFFINITY,
        ..PLAIN
    },
    Workload {
        name: "spread",
        description: "spread over zones, required",
        init: Init::Decided(5000, &pods::BASIC),
        pod: &pods::SPREAD,
        ..PLAIN
    },
    Workload {
        name: "preferred-spread",
        description: "spread over zones, preferred",
        init: Init::Decided(5000, &pods::BASIC),
        pod: &pods::PREFERRED_SPREAD,
        ..PLAIN
    },
    Workload {
        name: "node-affinity",
        description: "required node affinity to two of three zones",
        pod: &pods::NODE_AFFINITY,
        ..PLAIN
    },
    Workload {
        name: "mixed",
        description: "1,000 classes of pods with 50 different requests",
        pods: 4000,
        pod: &pods::MIXED,
        ..PLAIN
    },
    Workload {
        name: "unschedulable",
        description: "pods that fit nowhere",
        pods: 1000,
        pod: &pods::UNSCHEDULABLE,
        course: Course::Reject,
        ..PLAIN
    },
    Workload {
        name: "churn",
        description: "after each decision a node changes a label and the oldest pod goes",
        init: Init::Decided(5000, &pods::BASIC),
        pod: &pods::CHURN,
        course: Course::Churn,
        ..PLAIN
    },
    Workload {
        name: "taints",
        description: "half of the nodes are tainted, half of the pods tolerate it",
        nodes: NodeKind::Tainted,
        pod: &pods::TOLERANT,
        ..PLAIN
    },
    Workload {
        name: "deployments",
        description: "1,000 deployments with 20 different requests, each spread over nodes and zones, preferred",
        pods: 10_000,
        pod: &pods::DEPLOYMENT,
        ..PLAIN
    },
    Workload {
        name: "classes",
        description: "every pod with labels and requests of its own",
        pod: &pods::OWN_CLASS,
        ..PLAIN
    },
    Workload {
        name: "namespace-anti",
        description: "required anti-affinity to pods of namespaces chosen by label",
        objects: objects::namespaces,
        init: Init::Decided(1000, &pods::NAMESPACE_ANTI),
        pod: &pods::NAMESPACE_ANTI,
        ..PLAIN
    },
    Workload {
        name: "default-spread",
        description: "pods of 50 services, spread by default",
        objects: objects::services,
        pod: &pods::SERVED,
        ..PLAIN
    },
    Workload {
        name: "racks",
        description: "spread over 1,000 racks, required and preferred",
        nodes: NodeKind::Racked,
        init: Init::Decided(5000, &pods::BASIC),
        pod: &pods::RACK_SPREAD,
        ..PLAIN
    },
    Workload {
        name: "preemption",
        description: "all nodes full of 20 pods each, five of which have to go for each pod that comes",
        init: Init::OnEveryNode(pods::FILLERS_A_NODE, &pods::FILLER),
        pods: 1000,
        pod: &pods::PREEMPTOR,
        course: Course::Preempt,
        ..PLAIN
    },
    Workload {
        name: "volumes",
        description: "a claim each, half of them bound to a CSI volume of one zone and half waiting for the pod; \
                      nodes take 39 volumes",
        objects: objects::volumes,
        init: Init::Decided(1000, &pods::CLAIMING),
        pod: &pods::CLAIMING,
        ..PLAIN
    },
    Workload {
        name: "own-filter",
        description: "a Filter of an author's own behind the default ones: nodes of a zone are avoided",
        pods: 10_000,
        pod: &pods::AVOIDING,
        adds: |profile| samples::add::<samples::AvoidZone>(profile, 0),
        ..PLAIN
    },
    Workload {
        name: "own-verdict",
        description: "a PreFilter of an author's own, with a memory that changes with every pod",
        pods: 10_000,
        course: Course::Remember,
        adds: |profile| samples::add::<samples::Budget>(profile, 0),
        ..PLAIN
    },
    Workload {
        name: "query-score",
        description: "a Score by a query's answers per node, which all change every 100,000 pods",
        pods: 400_000,
        pod: &pods::SMALL,
        course: Course::Load { every: 100_000, nodes: Nodes::All },
        adds: |profile| samples::add::<samples::LeastLoaded>(profile, 1),
        ..PLAIN
    },
    Workload {
        name: "object-score",
        description: "a Score by an object per node, of which one changes every 10 pods",
        pods: 10_000,
        course: Course::Load { every: 10, nodes: Nodes::One },
        adds: |profile| samples::add::<samples::LeastLoaded>(profile, 1),
        ..PLAIN
    },
    Workload {
        name: "node-number",
        description: "a Score by the last digits of the names of pod and node",
        pods: 10_000,
        adds: |profile| samples::add::<samples::NodeNumber>(profile, 1),
        ..PLAIN
    },
    Workload {
        name: "traffic",
        description: "a different amount of traffic on every node, normalised by the lowest and the highest",
        pods: 10_000,
        course: Course::Load { every: 1000, nodes: Nodes::One },
        adds: |profile| samples::add::<samples::LeastTraffic>(profile, 1),
        ..PLAIN
    },
    Workload {
        name: "network-traffic",
        description: "NetworkTraffic beside the default plugins, with what Prometheus says of every node, which all changes every 100,000 pods",
        pods: 400_000,
        pod: &pods::SMALL,
        course: Course::Load { every: 100_000, nodes: Nodes::All },
        adds: add_network_traffic,
        fact: nodes::traffic,
        ..PLAIN
    },
    Workload {
        name: "quotas",
        description: "CapacityScheduling with ten quotas, and pods of two of the namespaces",
        objects: objects::quotas,
        pods: 10_000,
        adds: add_quotas,
        ..PLAIN
    },
    Workload {
        name: "quota-preemption",
        description: "all nodes full of pods of a namespace that has borrowed everything, five of which have to go for each \
                      pod of the namespace that has lent it",
        objects: objects::lent_quota,
        init: Init::OnEveryNode(pods::FILLERS_A_NODE, &pods::FILLER),
        pods: 1000,
        pod: &pods::PREEMPTOR,
        course: Course::Preempt,
        adds: add_quotas,
        ..PLAIN
    },
    Workload {
        name: "even-racks",
        description: "a Filter and a Score of an author's own, by the counts of 1,000 racks",
        nodes: NodeKind::Racked,
        pods: 10_000,
        adds: |profile| samples::add::<samples::EvenRacks>(profile, 1),
        ..PLAIN
    },
    Workload {
        name: "allocatable",
        description: "NodeResourcesAllocatable on nodes of three sizes",
        nodes: NodeKind::Various,
        pods: 10_000,
        adds: community::add_allocatable,
        ..PLAIN
    },
    Workload {
        name: "metadata",
        description: "NodeMetadata by a label of which there are 977 values",
        nodes: NodeKind::Various,
        pods: 10_000,
        adds: community::add_metadata,
        ..PLAIN
    },
    Workload {
        name: "toleration",
        description: "PreemptionToleration instead of DefaultPreemption, with pods that fit",
        pods: 10_000,
        adds: community::add_toleration,
        ..PLAIN
    },
    Workload {
        name: "load-packing",
        description: "TargetLoadPacking, with a load on every node",
        objects: community::loads,
        pods: 10_000,
        adds: community::add_packing,
        ..PLAIN
    },
    Workload {
        name: "load-variation",
        description: "LoadVariationRiskBalancing, with a load on every node",
        objects: community::loads,
        pods: 10_000,
        adds: community::add_variation,
        ..PLAIN
    },
    Workload {
        name: "low-risk",
        description: "LowRiskOverCommitment, with a load on every node",
        objects: community::loads,
        pods: 10_000,
        adds: community::add_low_risk,
        ..PLAIN
    },
    Workload {
        name: "peaks",
        description: "Peaks, with a load on every node and 1,000 models",
        objects: community::loads,
        pods: 10_000,
        adds: community::add_peaks,
        ..PLAIN
    },
    Workload {
        name: "network",
        description: "NetworkOverhead with ten services that call each other, on nodes in nine zones of three regions",
        nodes: NodeKind::Regional,
        objects: community::application,
        init: Init::Decided(1000, &pods::CALLING),
        pods: 10_000,
        pod: &pods::CALLING,
        adds: community::add_network,
        ..PLAIN
    },
];

/// NetworkTraffic as a configuration has it that names only a Prometheus.
fn add_network_traffic(profile: &mut Profile) {
    let args = json!({ "prometheusAddress": "http://prometheus:9090" });
    samples::add_with::<NetworkTraffic>(profile, 1, Some(&args));
}
