//! What a pod calls, and what the network to it costs.

use std::collections::BTreeMap;

use supercargo_framework::{Context, Fixes, Status};
use supercargo_model::{Pod, PodSet, Quantity};

use super::NetworkOverheadArgs;
use crate::community::network_aware::{
    APP_GROUP_LABEL, Dependency, Found, Place, Weights, find_app_group, find_network_topology, label_of,
    workload_of,
};

/// What a pod on the node of the one that it calls costs.
pub(super) const SAME_NODE: i64 = 0;
/// What a pod in the same region and zone costs.
pub(super) const SAME_ZONE: i64 = 1;
/// What a pod costs of which nobody knows how far away it is.
pub(super) const UNKNOWN: i64 = 100;

/// What a pod calls, and where the costs stand.
pub(super) struct Calls<'a> {
    pub(super) group: Found<'a>,
    pub(super) dependencies: Vec<&'a Dependency>,
    pub(super) weights: Weights<'a>,
    fixes: Fixes,
}

/// How many of the pods that a pod calls are near enough, how many are not, and what the network to them costs in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) satisfied: i64,
    pub(super) violated: i64,
    pub(super) cost: i64,
}

/// How many pods there are of each workload that is called.
type Counts = Vec<i64>;

/// Where the pods are that a pod calls, and what that makes of the places where it could go itself.
#[derive(Clone, Debug, Default)]
pub(super) struct NetworkState {
    /// None if all nodes are as good.
    sums: Option<StateSums>,
}

#[derive(Clone, Debug)]
struct StateSums {
    /// The sums by region, then by zone, for a node that has none of the pods itself.
    by_place: BTreeMap<Box<str>, BTreeMap<Box<str>, Sums>>,
    /// How many of the pods are on a node.
    on_node: BTreeMap<Box<str>, i64>,
}

impl<'a> Calls<'a> {
    /// What a pod calls; none if it calls nothing, and a reason where that cannot be known.
    pub(super) fn of(
        context: &Context<'a>,
        pod: &'a Pod,
        args: &'a NetworkOverheadArgs,
    ) -> Result<Option<Self>, Status> {
        let Some(name) = label_of(pod) else { return Ok(None) };
        let missing = |kind: &str, name: &str, namespaces: String| {
            Status::unresolvable(format!("{kind} {name} was not found in {namespaces}"))
        };
        let namespaces = &args.namespaces;
        let looked_in = |own: bool| match (own, &namespaces[..]) {
            (true, _) => format!("namespace {}", pod.namespace),
            (false, [namespace]) => format!("namespace {namespace}"),
            (false, several) => format!("namespaces {}", several.join(", ")),
        };
        let Some(group) = find_app_group(context, pod, namespaces) else {
            return Err(missing("AppGroup", name, looked_in(context.fixes.app_group_namespaces)));
        };
        let topology_name = args.network_topology_name();
        let Some(topology) = find_network_topology(context, topology_name, namespaces) else {
            return Err(missing("NetworkTopology", topology_name, looked_in(false)));
        };
        let dependencies: Vec<_> = group.object.dependencies_of(workload_of(pod)).collect();
        let (weights, fixes) = (args.weights(topology, context.fixes), context.fixes);
        Ok((!dependencies.is_empty()).then_some(Calls { group, dependencies, weights, fixes }))
    }

    /// The pods of the group, wherever they stand.
    pub(super) fn members(&self, context: &Context<'a>, pod: &Pod) -> PodSet<'a> {
        let name = label_of(pod).unwrap_or_default();
        if self.fixes.app_group_namespaces {
            return context.pods().by_label_in(self.group.namespace, APP_GROUP_LABEL, name);
        }
        context.pods().by_label(APP_GROUP_LABEL, name)
    }
}

/// What it is to a pod on some other node in `from` that a pod which it calls is in `to`.
pub(super) fn between(
    weights: Weights<'_>,
    fixes: Fixes,
    dependency: &Dependency,
    from: Place<'_>,
    to: Place<'_>,
) -> Sums {
    let near = Sums { satisfied: 1, ..Sums::default() };
    let far = Sums { violated: 1, ..Sums::default() };
    if to.is_unknown() {
        return Sums { cost: UNKNOWN, ..far };
    }
    if from == to {
        return Sums { cost: SAME_ZONE, ..near };
    }
    match weights.between(from, to) {
        None if fixes.unknown_network_costs => Sums { cost: UNKNOWN, ..far },
        None => Sums { cost: UNKNOWN, ..Sums::default() },
        Some(link) => {
            let is_refused = fixes.network_permission && link.is_allowed == Some(false);
            let wanted = dependency.min_bandwidth.as_ref().map_or(0, Quantity::value);
            let lacks = |left| fixes.network_bandwidth && wanted > left;
            let is_narrow = link.bandwidth_left().is_some_and(lacks);
            let is_near = link.network_cost <= dependency.max_network_cost && !is_refused && !is_narrow;
            Sums { cost: link.network_cost, ..if is_near { near } else { far } }
        }
    }
}

impl Sums {
    /// So many more of the same.
    pub(super) fn add(&mut self, other: Sums, count: i64) {
        self.satisfied += other.satisfied * count;
        self.violated += other.violated * count;
        self.cost = self.cost.wrapping_add(other.cost.wrapping_mul(count));
    }

    /// The same where so many of the pods are on the node itself, which were taken for others in its place.
    #[must_use]
    pub(super) fn with_own(mut self, count: i64, place_is_unknown: bool) -> Self {
        let taken_for = match place_is_unknown {
            true => Sums { satisfied: 0, violated: 1, cost: UNKNOWN },
            false => Sums { satisfied: 1, violated: 0, cost: SAME_ZONE },
        };
        self.add(taken_for, -count);
        self.add(Sums { satisfied: 1, violated: 0, cost: SAME_NODE }, count);
        self
    }

    /// Why a node with these sums is rejected; none if it is not.
    pub(super) fn rejection(&self, node: &str) -> Option<Status> {
        let Sums { satisfied, violated, .. } = self;
        (violated > satisfied).then(|| {
            Status::unschedulable(format!(
                "Node {node} does not meet several network requirements from Workload dependencies: \
                 Satisfied: {satisfied} Violated: {violated}"
            ))
        })
    }
}

impl NetworkState {
    /// Looks at where the pods are that a pod calls. Those whose node is gone do not count.
    pub(super) fn of(context: &Context<'_>, pod: &Pod, args: &NetworkOverheadArgs) -> Result<Self, Status> {
        let Some(calls) = Calls::of(context, pod, args)? else { return Ok(Self::default()) };
        let cluster = context.cluster;
        let mut by_place: BTreeMap<Place<'_>, Counts> = BTreeMap::new();
        let mut on_node: BTreeMap<Box<str>, i64> = BTreeMap::new();
        let mut has_placed = false;
        for known in calls.members(context, pod).iter().filter(|known| known.standing.has_node()) {
            has_placed = true;
            let Some(row) = known.node.as_ref().and_then(|name| cluster.row_of(name)) else { continue };
            let node = cluster.node(row);
            let workload = workload_of(&known.pod);
            for (number, dependency) in calls.dependencies.iter().enumerate() {
                if *dependency.workload.selector == *workload {
                    let counts = by_place.entry(Place::of(cluster, node));
                    counts.or_insert_with(|| vec![0; calls.dependencies.len()])[number] += 1;
                    *on_node.entry((**node.name()).into()).or_default() += 1;
                }
            }
        }
        if !has_placed {
            return Ok(Self::default());
        }
        let mut sums: BTreeMap<Box<str>, BTreeMap<Box<str>, Sums>> = BTreeMap::new();
        for node in cluster.nodes() {
            let from = Place::of(cluster, node);
            if sums.get(from.region).is_some_and(|zones| zones.contains_key(from.zone)) {
                continue;
            }
            let mut all = Sums::default();
            for (to, counts) in &by_place {
                for (dependency, count) in calls.dependencies.iter().zip(counts) {
                    if *count > 0 {
                        all.add(between(calls.weights, calls.fixes, dependency, from, *to), *count);
                    }
                }
            }
            sums.entry(from.region.into()).or_default().insert(from.zone.into(), all);
        }
        Ok(NetworkState { sums: Some(StateSums { by_place: sums, on_node }) })
    }

    /// What holds for a node; none if all are as good.
    pub(super) fn sums(&self, node: &str, place: Place<'_>) -> Option<Sums> {
        let StateSums { by_place, on_node } = self.sums.as_ref()?;
        let sums = by_place.get(place.region).and_then(|zones| zones.get(place.zone));
        let sums = sums.copied().unwrap_or_default();
        Some(match on_node.get(node) {
            Some(own) => sums.with_own(*own, place.is_unknown()),
            None => sums,
        })
    }
}
