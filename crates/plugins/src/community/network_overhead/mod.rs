//! NetworkOverhead: pods go where the network to the pods that they call costs least.

mod args;
mod calls;
mod counted;
mod measuring;

use std::sync::Arc;

use supercargo_framework::{
    Actions, ClusterEvent, CountedFilter, CountedScore, Cycle, Enqueue, Extensions, Filter, NodeField,
    NodeScore, Normalization, Plugin, PodField, PreFilter, PreFilterResult, Reads, Score, Status, Writes,
};
use supercargo_model::{Kind, NodeRef, Pod};

use super::network_aware::{
    APP_GROUP_LABEL, AppGroup, NetworkTopology, OldAppGroup, OldNetworkTopology, Place, label_of,
};
use super::normalize::by_inverse_cost;
pub use args::NetworkOverheadArgs;
use calls::{NetworkState, Sums};
use counted::NetworkCounts;
use measuring::CostMemory;
pub use measuring::MeasurementMap;

/// # What
/// Pods with the label `appgroup.diktyo.x-k8s.io` belong to the AppGroup of that name, and are of the workload that their label
/// `appgroup.diktyo.x-k8s.io.workload` names. The AppGroup says which workloads a workload calls (`dependencies`), and what the network to
/// each may cost at most (`maxNetworkCost`); a NetworkTopology says what it costs between regions, and between the zones of a region.
///
/// - Where more of the pods that a pod calls are too far away than near enough, it does not go.
/// - Of the other nodes the one is best from which the network to all of them costs least. A pod on the same node costs 0, one in the same
///   zone 1, one of which nobody knows how far away it is 100.
/// - With `weightsName: NetperfCosts`, the costs are worked out here, by the scheduler that leads: from the ConfigMap that
///   `spec.configmapName` names, whose keys are `netperf.p90.latency.milliseconds.origin.NODE.destination.NODE`. What was measured between
///   two regions, or two zones of a region, is averaged, and the shortest way counts. The set is written into `spec.weights` when it is
///   another one, and `status` says when and for how many nodes.
///
/// # Why
/// Services that call each other often are slow when a region lies between them.
///
/// # Arguments
/// `namespaces` (`[default]`): where AppGroups and the NetworkTopology are looked for; `weightsName` (`UserDefined`): the set of weights
/// that counts; `networkTopologyName` (`nt-default`); `calculateCosts` (true): whether `NetperfCosts` are worked out here, if they count.
/// Then all ConfigMaps are read. Say false where upstream's controller does it. Of several profiles with the plugin, it is enough if they count
/// in one.
///
/// # Example
/// ```yaml
/// plugins:
///   queueSort: {disabled: [{name: "*"}], enabled: [{name: TopologicalSort}]}
///   multiPoint: {enabled: [{name: NetworkOverhead, weight: 5}]}
/// ---
/// apiVersion: appgroup.diktyo.x-k8s.io/v1alpha1
/// kind: AppGroup
/// metadata: {name: shop, namespace: default}
/// spec:
///   numMembers: 2
///   topologySortingAlgorithm: KahnSort
///   workloads:
///   - workload: {kind: Deployment, name: web, selector: web, apiVersion: apps/v1, namespace: default}
///     dependencies:
///     - workload: {kind: Deployment, name: db, selector: db, apiVersion: apps/v1, namespace: default}
///       maxNetworkCost: 20
///   - workload: {kind: Deployment, name: db, selector: db, apiVersion: apps/v1, namespace: default}
/// ---
/// apiVersion: networktopology.diktyo.x-k8s.io/v1alpha1
/// kind: NetworkTopology
/// metadata: {name: nt-default, namespace: default}
/// spec:
///   configmapName: netperf
///   weights:
///   - name: UserDefined
///     topologyList:
///     - topologyKey: topology.kubernetes.io/region
///       originList:
///       - {origin: east, costList: [{destination: west, networkCost: 50}]}
///       - {origin: west, costList: [{destination: east, networkCost: 50}]}
/// ```
/// A pod of `web` goes to the region in which most pods of `db` are, and best to the node of one.
///
/// # Difference from upstream
/// - Upstream crashes where the AppGroup of a pod, or the NetworkTopology, does not exist. Here the pod stays pending with a reason that
///   names what is missing, and is tried again when it comes.
/// - A pod whose node is gone does not count. Upstream fails for all pods of the group as long as there is one.
/// - Pods that were just given a node count at once.
/// - Filter and Score do without PreFilter in the profile, where upstream fails.
/// - Costs between regions without a measurement are unknown, where upstream's controller writes 0; several measurements are averaged, all
///   with the same weight. Other sets of weights stay, and so do fields that nobody here knows. Segments and statistics are not written.
/// - What is odd about a NetworkTopology is told by an event on it: a set of weights, costs or a ConfigMap that is missing, measurements
///   that are no numbers, and the API group's old name `networktopology.diktyo.k8s.io`, which is read, too.
/// - `minBandwidth`, `isAllowed`, unknown costs and namespaces are quirks with a fix each; see `docs/reference/quirks.md`.
#[derive(Debug)]
pub struct NetworkOverhead {
    args: NetworkOverheadArgs,
}

impl Plugin for NetworkOverhead {
    const NAME: &'static str = "NetworkOverhead";
    type Args = NetworkOverheadArgs;

    fn new(args: NetworkOverheadArgs) -> Self {
        NetworkOverhead { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().score().enqueue().observe().remembers::<CostMemory>()
    }

    fn reads(&self) -> Reads {
        let reads = Reads::nothing()
            .pod(&[PodField::Labels, PodField::Namespace])
            .node(&[NodeField::Name, NodeField::Labels])
            .all_nodes()
            .topology()
            .pods_by_label(APP_GROUP_LABEL)
            .kind::<AppGroup>()
            .optional_kind::<OldAppGroup>()
            .kind::<NetworkTopology>()
            .optional_kind::<OldNetworkTopology>();
        if self.args.calculates_costs() { reads.kind::<MeasurementMap>() } else { reads }
    }

    fn writes(&self) -> Writes {
        if !self.args.calculates_costs() {
            return Writes::nothing();
        }
        let writes = Writes::nothing().patch::<NetworkTopology>().patch_status::<NetworkTopology>();
        let writes = writes.patch::<OldNetworkTopology>().patch_status::<OldNetworkTopology>();
        writes.because("What the network between regions and zones costs, by what was measured.")
    }

    fn concerns(&self, pod: &Pod) -> bool {
        label_of(pod).is_some()
    }

    fn subject(&self) -> &'static str {
        "the network between pods"
    }
}

impl NetworkOverhead {
    /// What holds for a node; none if all are as good. Where PreFilter is not in the profile, everything is looked at here.
    fn sums(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<Option<Sums>, Status> {
        let place = Place::of(cycle.cluster(), node);
        match cycle.get::<NetworkState>() {
            Some(state) => Ok(state.sums(node.name(), place)),
            None => Ok(NetworkState::of(&cycle.context, cycle.pod, &self.args)?.sums(node.name(), place)),
        }
    }
}

impl PreFilter for NetworkOverhead {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        match NetworkState::of(&cycle.context, cycle.pod, &self.args) {
            Ok(state) => {
                cycle.put(state);
                PreFilterResult::AllNodes
            }
            Err(status) => PreFilterResult::Reject(status),
        }
    }
}

impl Filter for NetworkOverhead {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match self.sums(cycle, node) {
            Ok(sums) => sums.and_then(|sums| sums.rejection(node.name())).unwrap_or_default(),
            Err(status) => status,
        }
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedFilter>> {
        NetworkCounts::of_filter(cycle, &self.args)
    }
}

impl Score for NetworkOverhead {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        self.sums(cycle, node).map(|sums| sums.map_or(0, |sums| sums.cost))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        by_inverse_cost(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRange
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedScore>> {
        NetworkCounts::of_score(cycle, &self.args)
    }
}

/// A pod waits for room near others, so any pod that comes or goes may help, and any node; and for objects that are not there yet.
impl Enqueue for NetworkOverhead {
    fn events(&self) -> Vec<ClusterEvent> {
        let changes = Actions::ADD.or(Actions::UPDATE);
        vec![
            ClusterEvent::pod(Actions::ALL),
            ClusterEvent::node(Actions::ALL),
            ClusterEvent::kind(AppGroup::ID, changes),
            ClusterEvent::kind(OldAppGroup::ID, changes),
            ClusterEvent::kind(NetworkTopology::ID, changes),
            ClusterEvent::kind(OldNetworkTopology::ID, changes),
        ]
    }
}

#[cfg(test)]
mod tests;
