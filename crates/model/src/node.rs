//! Nodes: what the scheduler reads of them.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::cluster::{ImageId, LabelPair};
use crate::intern::Interned;
use crate::labels::Labels;
use crate::object::MetadataWords;
use crate::protobuf::message;
use crate::raw::RawObject;
use crate::resources::{ResourceList, Resources};
use crate::taints::Taint;
use crate::wire::null_default;

/// A node's facts, as they stand in the node table: label keys, label values and images are numbers there.
#[derive(Clone, Debug, Default, PartialEq)]
// What every decision reads comes first, and is one line of the processor's cache.
#[repr(C)]
pub struct Node {
    /// `metadata.name`
    pub name: Arc<str>,
    /// `status.allocatable.pods`
    pub allowed_pods: i64,
    /// `status.allocatable`, without the number of pods.
    pub allocatable: Resources,
    pub(crate) labels: Box<[LabelPair]>,
    /// `metadata.annotations`
    pub annotations: Interned<Labels>,
    /// `spec.taints`
    pub taints: Box<[Taint]>,
    /// `spec.unschedulable`
    pub unschedulable: bool,
    /// `status.capacity`, as it is written; nodes of one type share it.
    pub capacity: Interned<ResourceList>,
    /// The addresses of type `InternalIP` among `status.addresses`.
    pub internal_addresses: Arc<[Box<str>]>,
    pub(crate) images: Box<[ImageId]>,
    /// `status.declaredFeatures`
    pub declared_features: Box<[Box<str>]>,
    /// The status of each of `status.conditions`, by type.
    pub conditions: Interned<Labels>,
    /// The object as it came, if somebody asked for it to be kept.
    pub raw: Option<Arc<RawObject>>,
}

/// A node as it is written; [`crate::Cluster::put_node`] takes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeWords {
    #[serde(deserialize_with = "null_default")]
    pub(crate) metadata: MetadataWords,
    #[serde(deserialize_with = "null_default")]
    pub(crate) spec: NodeSpecWords,
    #[serde(deserialize_with = "null_default")]
    pub(crate) status: NodeStatusWords,
    /// The object as it came, if it is to be kept.
    #[serde(skip)]
    pub raw: Option<Arc<RawObject>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpecWords {
    #[serde(deserialize_with = "null_default")]
    pub(crate) taints: Box<[Taint]>,
    #[serde(deserialize_with = "null_default")]
    pub(crate) unschedulable: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeStatusWords {
    #[serde(deserialize_with = "null_default")]
    pub(crate) allocatable: ResourceList,
    #[serde(deserialize_with = "null_default")]
    pub(crate) capacity: ResourceList,
    #[serde(deserialize_with = "null_default")]
    pub(crate) addresses: Vec<AddressWords>,
    #[serde(deserialize_with = "null_default")]
    pub(crate) images: Vec<ImageWords>,
    #[serde(deserialize_with = "null_default")]
    pub(crate) declared_features: Box<[Box<str>]>,
    #[serde(deserialize_with = "conditions")]
    pub(crate) conditions: Labels,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AddressWords {
    #[serde(rename = "type", deserialize_with = "null_default")]
    kind: Box<str>,
    #[serde(deserialize_with = "null_default")]
    address: Box<str>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ImageWords {
    #[serde(deserialize_with = "null_default")]
    pub(crate) names: Vec<Box<str>>,
    #[serde(deserialize_with = "null_default")]
    pub(crate) size_bytes: i64,
}

/// Reads a list of conditions as what each of them says, without since when and why.
fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Condition {
        #[serde(rename = "type", deserialize_with = "null_default")]
        kind: String,
        #[serde(deserialize_with = "null_default")]
        status: String,
    }
    let conditions: Vec<Condition> = null_default(deserializer)?;
    Ok(conditions.into_iter().map(|condition| (condition.kind, condition.status)).collect())
}

message!(NodeWords { 1 => metadata, 2 => spec, 3 => status });
message!(NodeSpecWords { 4 => unschedulable, 5 => taints });
message!(NodeStatusWords {
    1 => capacity,
    2 => allocatable,
    5 => addresses,
    8 => images,
    14 => declared_features,
} pairs { 4 => conditions });
message!(AddressWords { 1 => kind, 2 => address });
message!(ImageWords { 1 => names, 2 => size_bytes });

impl NodeStatusWords {
    /// The addresses by which the node is reached from within the cluster.
    pub(crate) fn internal_addresses(&self) -> Arc<[Box<str>]> {
        let internal = self.addresses.iter().filter(|address| *address.kind == *"InternalIP");
        internal.map(|address| address.address.clone()).collect()
    }
}

impl NodeWords {
    /// `metadata.name`
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// `metadata`
    pub fn metadata(&self) -> &MetadataWords {
        &self.metadata
    }

    /// `metadata`, for whoever makes many nodes of one.
    pub fn metadata_mut(&mut self) -> &mut MetadataWords {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use crate::Cluster;

    #[test]
    fn nodes_know_their_capacity_and_internal_addresses() {
        let node = |name: &str| {
            let text = format!(
                r#"{{"metadata":{{"name":"{name}"}},"status":{{"capacity":{{"cpu":"64","memory":"1Gi"}},"addresses":[
                    {{"type":"Hostname","address":"{name}"}},{{"type":"InternalIP","address":"10.0.0.1"}},
                    {{"type":"ExternalIP","address":"1.2.3.4"}},{{"type":"InternalIP","address":"fd00::1"}}]}}}}"#
            );
            serde_json::from_str(&text).expect("a node")
        };
        let mut cluster = Cluster::default();
        let rows = ["a", "b"].map(|name| cluster.put_node(&node(name)));
        let [a, b] = rows.map(|row| cluster.snapshot().node(row).facts().clone());
        assert_eq!((a.capacity.amount("cpu"), a.capacity.amount("memory")), (64_000, 1 << 30));
        assert!(a.capacity.is_same(&b.capacity), "nodes of one type share it");
        assert_eq!(*a.internal_addresses, ["10.0.0.1".into(), "fd00::1".into()]);
    }
}
