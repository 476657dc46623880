//! AppGroup: a custom resource that says which workloads make up an application, and which of them call which.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use supercargo_framework::Context;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, LabelLookup, MetadataWords, Pod, Quantity, Timestamp};

use super::network_topology::search_by_halves;

/// The label of pods that says which AppGroup they belong to.
pub const APP_GROUP_LABEL: &str = "appgroup.diktyo.x-k8s.io";
/// The label of pods that says which workload of it they are of.
pub const WORKLOAD_LABEL: &str = "appgroup.diktyo.x-k8s.io.workload";

/// The workloads of an application, and which of them call which.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AppGroup {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: AppGroupSpec,
    /// `status`
    #[serde(deserialize_with = "null_default")]
    pub status: AppGroupStatus,
}

/// See [`AppGroup`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AppGroupSpec {
    /// How many pods belong to it.
    #[serde(deserialize_with = "null_default")]
    pub num_members: i64,
    /// How its workloads are put in order.
    #[serde(deserialize_with = "null_default")]
    pub topology_sorting_algorithm: Box<str>,
    /// Its workloads.
    #[serde(deserialize_with = "null_default")]
    pub workloads: Vec<WorkloadDependencies>,
}

/// A workload of an AppGroup, and what it calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct WorkloadDependencies {
    /// The workload.
    #[serde(deserialize_with = "null_default")]
    pub workload: Workload,
    /// What it calls.
    #[serde(deserialize_with = "null_default")]
    pub dependencies: Vec<Dependency>,
}

/// A workload that another one calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Dependency {
    /// The workload.
    #[serde(deserialize_with = "null_default")]
    pub workload: Workload,
    /// The bandwidth that is needed between the two.
    pub min_bandwidth: Option<Quantity>,
    /// What the network between the two may cost at most.
    #[serde(deserialize_with = "null_default")]
    pub max_network_cost: i64,
}

/// A workload, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Workload {
    /// Its kind, such as Deployment.
    #[serde(deserialize_with = "null_default")]
    pub kind: Box<str>,
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: Box<str>,
    /// The value of [`WORKLOAD_LABEL`] that its pods have.
    #[serde(deserialize_with = "null_default")]
    pub selector: Box<str>,
    /// The version of its kind.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "str::is_empty")]
    pub api_version: Box<str>,
    /// Its namespace.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "str::is_empty")]
    pub namespace: Box<str>,
}

/// See [`AppGroup`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AppGroupStatus {
    /// How many of its pods run.
    #[serde(deserialize_with = "null_default")]
    pub running_workloads: i64,
    /// When its first pod was given a node.
    pub schedule_start_time: Option<Timestamp>,
    /// When the order was worked out.
    pub topology_calculation_time: Option<Timestamp>,
    /// Its workloads by selector, and which is tried when.
    #[serde(deserialize_with = "null_default")]
    pub topology_order: Vec<OrderedWorkload>,
    /// What others say about its network; nobody here reads it.
    pub app_group_statistics: IgnoredAny,
}

/// A workload, and its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderedWorkload {
    /// The workload.
    #[serde(deserialize_with = "null_default")]
    pub workload: Workload,
    /// Its turn: the lower, the earlier.
    #[serde(deserialize_with = "null_default")]
    pub index: i64,
}

/// An AppGroup of the API group's old name, which upstream had up to release 0.24.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct OldAppGroup(pub AppGroup);

impl Kind for AppGroup {
    const ID: KindId = KindId {
        group: "appgroup.diktyo.x-k8s.io",
        version: "v1alpha1",
        kind: "AppGroup",
        plural: "appgroups",
    };
}

impl Kind for OldAppGroup {
    const ID: KindId = KindId { group: "appgroup.diktyo.k8s.io", ..AppGroup::ID };
}

/// An AppGroup, and where it was found.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    /// The namespace that has it.
    pub(crate) namespace: &'a str,
    /// The AppGroup.
    pub(crate) object: &'a AppGroup,
}

/// The name of the AppGroup that a pod belongs to; none if it belongs to none.
pub(crate) fn label_of(pod: &Pod) -> Option<&str> {
    pod.labels.label(APP_GROUP_LABEL).filter(|name| !name.is_empty())
}

/// The workload that a pod is of; empty if it does not say.
pub(crate) fn workload_of(pod: &Pod) -> &str {
    pod.labels.label(WORKLOAD_LABEL).unwrap_or_default()
}

/// The AppGroup that a pod belongs to: the first of that name in these namespaces, or the one in the pod's own where that is asked for.
pub(crate) fn find_app_group<'a>(
    context: &Context<'a>,
    pod: &'a Pod,
    namespaces: &'a [String],
) -> Option<Found<'a>> {
    let name = label_of(pod)?;
    let in_namespace = |namespace: &'a str| {
        let objects = context.cluster.objects();
        let new = objects.get::<AppGroup>(namespace, name);
        let object = new.or_else(|| objects.get::<OldAppGroup>(namespace, name).map(|old| &old.0))?;
        Some(Found { namespace, object })
    };
    if context.fixes.app_group_namespaces {
        return in_namespace(&pod.namespace);
    }
    namespaces.iter().find_map(|namespace| in_namespace(namespace))
}

impl AppGroup {
    /// What a workload calls, in all entries that it has.
    pub(crate) fn dependencies_of(&self, workload: &str) -> impl Iterator<Item = &Dependency> {
        let of_workload =
            self.spec.workloads.iter().filter(move |entry| *entry.workload.selector == *workload);
        of_workload.flat_map(|entry| &entry.dependencies)
    }

    /// The turn of a workload; -1 if it has none. As upstream, the order is searched as one that is sorted by selector.
    pub(crate) fn index_of(&self, workload: &str) -> i64 {
        let found = search_by_halves(&self.status.topology_order, |entry| &entry.workload.selector, workload);
        found.map_or(-1, |entry| entry.index)
    }
}
