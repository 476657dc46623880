//! The built-in kinds that plugins read, each with the fields they read.

mod shelves;
mod storage;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::labels::{LabelSelectorWords, Labels};
use crate::object::{Kind, KindId, MetadataWords};
use crate::wire::null_default;

pub use storage::{
    AccessMode, AttachmentSource, CSIDriver, CSIDriverSpec, CSINode, CSINodeDriver, CSINodeSpec,
    CSIStorageCapacity, ClaimReference, CsiVolume, InTreeDisk, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimSpec, PersistentVolumeSpec, PhaseStatus, RequiredNodes, StorageClass,
    TopologyRequirement, TopologyTerm, VolumeAttachment, VolumeAttachmentSpec, VolumeLimit,
    VolumeNodeAffinity,
};

/// A namespace: its labels decide which affinity terms reach it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
}

/// A service, by the pods it selects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: LabelSetSpec,
}

/// A replication controller, by the pods it selects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReplicationController {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: LabelSetSpec,
}

/// A replica set, by the pods it selects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: SelectorSpec,
}

/// A stateful set, by the pods it selects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: SelectorSpec,
}

/// A device class, by the extended resource it stands for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceClass {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: DeviceClassSpec,
}

/// A pod disruption budget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: SelectorSpec,
    /// `status`
    #[serde(deserialize_with = "null_default")]
    pub status: PodDisruptionBudgetStatus,
}

/// See [`PodDisruptionBudget`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodDisruptionBudgetStatus {
    /// How many more pods may go now.
    #[serde(deserialize_with = "null_default")]
    pub disruptions_allowed: i32,
    /// Pods whose eviction the API server has counted already, by name.
    #[serde(deserialize_with = "null_default")]
    pub disrupted_pods: BTreeMap<Box<str>, IgnoredAny>,
}

/// A selector written as a plain set of labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LabelSetSpec {
    /// The labels; none at all select nothing.
    pub selector: Option<Labels>,
}

/// A selector written in full.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SelectorSpec {
    /// The selector.
    pub selector: Option<LabelSelectorWords>,
}

/// See [`DeviceClass`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClassSpec {
    /// The extended resource that pods may ask for instead of making a claim.
    pub extended_resource_name: Option<Box<str>>,
}

macro_rules! kinds {
    ($($kind:ident in $group:literal $version:literal as $plural:literal $(on $shelves:ident)?),* $(,)?) => {$(
        impl Kind for $kind {
            const ID: KindId =
                KindId { group: $group, version: $version, kind: stringify!($kind), plural: $plural };

            $(fn shelves(&self) -> Vec<String> {
                self.$shelves()
            })?
        }
    )*};
}

kinds! {
    Namespace in "" "v1" as "namespaces",
    Service in "" "v1" as "services",
    ReplicationController in "" "v1" as "replicationcontrollers",
    ReplicaSet in "apps" "v1" as "replicasets",
    StatefulSet in "apps" "v1" as "statefulsets",
    PodDisruptionBudget in "policy" "v1" as "poddisruptionbudgets",
    DeviceClass in "resource.k8s.io" "v1" as "deviceclasses",
    PersistentVolume in "" "v1" as "persistentvolumes" on own_shelves,
    PersistentVolumeClaim in "" "v1" as "persistentvolumeclaims" on own_shelves,
    StorageClass in "storage.k8s.io" "v1" as "storageclasses",
    CSINode in "storage.k8s.io" "v1" as "csinodes",
    CSIDriver in "storage.k8s.io" "v1" as "csidrivers",
    CSIStorageCapacity in "storage.k8s.io" "v1" as "csistoragecapacities",
    VolumeAttachment in "storage.k8s.io" "v1" as "volumeattachments" on own_shelves,
}
