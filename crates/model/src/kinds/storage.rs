//! Volumes, the claims on them, and what CSI drivers say about nodes.

use serde::{Deserialize, Deserializer, Serialize};

use crate::labels::{LabelLookup, LabelSelector, LabelSelectorWords, RequirementWords, SelectorError};
use crate::node_selector::{NodeSelector, NodeSelectorWords};
use crate::object::MetadataWords;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceRequirements};
use crate::wire::null_default;

const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const STORAGE: &str = "storage";

/// A persistent volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: PersistentVolumeSpec,
    /// `status`
    #[serde(deserialize_with = "null_default")]
    pub status: PhaseStatus,
}

/// See [`PersistentVolume`]. At most one of the sources is there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct PersistentVolumeSpec {
    #[serde(deserialize_with = "null_default")]
    pub capacity: ResourceList,
    #[serde(deserialize_with = "null_default")]
    pub access_modes: Vec<AccessMode>,
    pub claim_ref: Option<ClaimReference>,
    #[serde(deserialize_with = "null_default")]
    pub storage_class_name: Box<str>,
    pub volume_attributes_class_name: Option<Box<str>>,
    pub volume_mode: Option<Box<str>>,
    pub node_affinity: Option<VolumeNodeAffinity>,
    pub csi: Option<CsiVolume>,
    pub gce_persistent_disk: Option<InTreeDisk>,
    pub aws_elastic_block_store: Option<InTreeDisk>,
    pub azure_disk: Option<InTreeDisk>,
    pub cinder: Option<InTreeDisk>,
    pub portworx_volume: Option<InTreeDisk>,
}

/// The name of an access mode.
pub type AccessMode = Box<str>;

/// The claim that a volume is meant for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct ClaimReference {
    #[serde(deserialize_with = "null_default")]
    pub namespace: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub name: Box<str>,
    /// Empty where the reference is to whatever claim will have the name.
    #[serde(deserialize_with = "null_default")]
    pub uid: Box<str>,
}

/// From which nodes a volume can be reached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    /// Absent: from all.
    pub required: Option<RequiredNodes>,
}

/// A node selector, read once for all nodes it will be asked about.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "NodeSelectorWords")]
pub struct RequiredNodes {
    /// As it is written: migration to CSI rewrites it.
    pub words: NodeSelectorWords,
    /// As it is used.
    pub selector: NodeSelector,
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct CsiVolume {
    #[serde(deserialize_with = "null_default")]
    pub driver: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub volume_handle: Box<str>,
}

/// The fields that name a disk of one of the plugins that were once built in; each has one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct InTreeDisk {
    #[serde(deserialize_with = "null_default")]
    pub pd_name: Box<str>,
    #[serde(rename = "volumeID", deserialize_with = "null_default")]
    pub volume_id: Box<str>,
    #[serde(rename = "diskURI", deserialize_with = "null_default")]
    pub disk_uri: Box<str>,
    pub kind: Option<Box<str>>,
}

/// How far a volume or a claim has come.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PhaseStatus {
    /// `phase`
    #[serde(deserialize_with = "null_default")]
    pub phase: Box<str>,
}

/// A claim on a persistent volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: PersistentVolumeClaimSpec,
    /// `status`
    #[serde(deserialize_with = "null_default")]
    pub status: PhaseStatus,
}

/// See [`PersistentVolumeClaim`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct PersistentVolumeClaimSpec {
    #[serde(deserialize_with = "null_default")]
    pub access_modes: Vec<AccessMode>,
    pub selector: Option<LabelSelectorWords>,
    #[serde(deserialize_with = "null_default")]
    pub resources: ResourceRequirements,
    #[serde(deserialize_with = "null_default")]
    pub volume_name: Box<str>,
    pub storage_class_name: Option<Box<str>>,
    pub volume_attributes_class_name: Option<Box<str>>,
    pub volume_mode: Option<Box<str>>,
}

/// A way to make volumes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct StorageClass {
    #[serde(deserialize_with = "null_default")]
    pub provisioner: Box<str>,
    pub volume_binding_mode: Option<Box<str>>,
    #[serde(deserialize_with = "null_default")]
    pub allowed_topologies: Vec<TopologyTerm>,
}

/// Where volumes can be made; all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologyTerm {
    /// The requirements; without any the term fits nowhere.
    #[serde(deserialize_with = "null_default")]
    pub match_label_expressions: Vec<TopologyRequirement>,
}

/// The label must have one of the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct TopologyRequirement {
    #[serde(deserialize_with = "null_default")]
    pub key: String,
    #[serde(deserialize_with = "null_default")]
    pub values: Vec<Box<str>>,
}

/// What CSI drivers say about a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSINode {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: CSINodeSpec,
}

/// See [`CSINode`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSINodeSpec {
    /// The drivers on the node.
    #[serde(deserialize_with = "null_default")]
    pub drivers: Vec<CSINodeDriver>,
}

/// A CSI driver on a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct CSINodeDriver {
    #[serde(deserialize_with = "null_default")]
    pub name: Box<str>,
    pub allocatable: Option<VolumeLimit>,
}

/// How many volumes of a driver a node takes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeLimit {
    /// Absent: any number.
    pub count: Option<i32>,
}

/// A CSI driver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSIDriver {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: CSIDriverSpec,
}

/// See [`CSIDriver`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CSIDriverSpec {
    /// Whether the driver says how much room there is, by [`CSIStorageCapacity`] objects.
    #[serde(deserialize_with = "null_default")]
    pub storage_capacity: bool,
}

/// How much room there is for volumes of a class, for some of the nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CSIStorageCapacity {
    /// The class.
    #[serde(default, deserialize_with = "null_default")]
    pub storage_class_name: Box<str>,
    /// The nodes, by their labels.
    #[serde(default = "no_nodes", deserialize_with = "read_selector")]
    pub node_topology: Result<LabelSelector, SelectorError>,
    /// The room in all.
    #[serde(default)]
    pub capacity: Option<Quantity>,
    /// The room for one volume.
    #[serde(default)]
    pub maximum_volume_size: Option<Quantity>,
}

/// A volume that is attached to a node, or is to be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: VolumeAttachmentSpec,
}

/// See [`VolumeAttachment`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct VolumeAttachmentSpec {
    /// The driver.
    #[serde(deserialize_with = "null_default")]
    pub attacher: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub node_name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub source: AttachmentSource,
}

/// What is attached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AttachmentSource {
    /// A volume by name; absent where the volume is written in a pod.
    pub persistent_volume_name: Option<Box<str>>,
}

impl PersistentVolume {
    /// The class it belongs to: the old annotation counts before the field.
    pub fn class(&self) -> &str {
        self.metadata.annotations.label(BETA_STORAGE_CLASS).unwrap_or(&self.spec.storage_class_name)
    }

    /// How large it is.
    pub fn size(&self) -> Quantity {
        self.spec.capacity.get(STORAGE).cloned().unwrap_or_default()
    }
}

impl PersistentVolumeClaim {
    /// The class it asks for, empty if none: the old annotation counts before the field.
    pub fn class(&self) -> &str {
        let annotation = self.metadata.annotations.label(BETA_STORAGE_CLASS);
        annotation.or(self.spec.storage_class_name.as_deref()).unwrap_or_default()
    }

    /// How much it asks for, if it says.
    pub fn request(&self) -> Option<&Quantity> {
        self.spec.resources.requests.get(STORAGE)
    }

    /// `namespace/name`, as people write it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }
}

impl StorageClass {
    /// Whether volumes are bound only when a pod needs them.
    pub fn waits_for_consumer(&self) -> bool {
        self.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
    }

    /// The terms of `allowedTopologies` that can match at all; none if there are no terms, which allows every node.
    pub fn topologies(&self) -> Option<Vec<LabelSelector>> {
        let terms = self.allowed_topologies.iter().filter(|term| !term.match_label_expressions.is_empty());
        (!self.allowed_topologies.is_empty()).then(|| terms.filter_map(|term| term.selector().ok()).collect())
    }
}

impl TopologyTerm {
    fn selector(&self) -> Result<LabelSelector, SelectorError> {
        let requirement = |words: &TopologyRequirement| RequirementWords {
            key: words.key.clone(),
            operator: "In".to_owned(),
            values: words.values.clone(),
        };
        LabelSelector::parse(Some(&LabelSelectorWords {
            match_expressions: self.match_label_expressions.iter().map(requirement).collect(),
            ..LabelSelectorWords::default()
        }))
    }
}

impl CSIStorageCapacity {
    /// How large a volume can be: what the driver says of one volume is more exact than the room in all.
    pub fn limit(&self) -> Option<&Quantity> {
        self.maximum_volume_size.as_ref().or(self.capacity.as_ref())
    }
}

impl From<NodeSelectorWords> for RequiredNodes {
    fn from(words: NodeSelectorWords) -> Self {
        RequiredNodes { selector: NodeSelector::parse(&words), words }
    }
}

fn no_nodes() -> Result<LabelSelector, SelectorError> {
    Ok(LabelSelector::Nothing)
}

/// The outer result is serde's; the inner one is kept, since one bad selector makes one object useless, not all.
fn read_selector<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Result<LabelSelector, SelectorError>, D::Error> {
    let words = Option::<LabelSelectorWords>::deserialize(deserializer)?;
    Ok(LabelSelector::parse(words.as_ref()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::object::{Kind, Object, Objects, ReadableKind};

    fn read<K: Kind + Clone>(value: &Value) -> K {
        let object: Object = ReadableKind::of::<K>().read(&value.to_string()).expect("an object");
        object.get::<K>().expect("of this kind").clone()
    }

    #[test]
    fn the_old_annotation_names_the_class_first() {
        let annotated = json!({"annotations": {BETA_STORAGE_CLASS: "old"}});
        let spec = json!({"storageClassName": "new"});
        assert_eq!(read::<PersistentVolume>(&json!({"metadata": annotated, "spec": spec})).class(), "old");
        assert_eq!(
            read::<PersistentVolumeClaim>(&json!({"metadata": annotated, "spec": spec})).class(),
            "old"
        );
        assert_eq!(read::<PersistentVolumeClaim>(&json!({"spec": spec})).class(), "new");
        assert_eq!(read::<PersistentVolumeClaim>(&json!({})).class(), "");
    }

    #[test]
    fn terms_that_cannot_match_restrict_all_the_same() {
        let class = |terms: Value| read::<StorageClass>(&json!({"allowedTopologies": terms}));
        let term =
            |key: &str, values: Value| json!({"matchLabelExpressions": [{"key": key, "values": values}]});
        assert_eq!(class(Value::Null).topologies(), None);
        assert_eq!(class(json!([])).topologies(), None);
        assert_eq!(class(json!([{}])).topologies(), Some(Vec::new()));
        assert_eq!(class(json!([term("not a key", json!(["a"]))])).topologies(), Some(Vec::new()));
        assert_eq!(class(json!([term("zone", json!([]))])).topologies(), Some(Vec::new()));
        assert_eq!(
            class(json!([{}, term("zone", json!(["a"]))])).topologies().map(|terms| terms.len()),
            Some(1)
        );
    }

    #[test]
    fn capacity_without_nodes_is_for_none() {
        let capacity = |value: Value| read::<CSIStorageCapacity>(&value);
        let zone = [("zone", "a")].into_iter().collect::<crate::Labels>();
        let reaches =
            |capacity: &CSIStorageCapacity| capacity.node_topology.as_ref().is_ok_and(|s| s.matches(&zone));
        assert!(!reaches(&capacity(json!({}))));
        assert!(!reaches(&capacity(json!({"nodeTopology": null}))));
        assert!(reaches(&capacity(json!({"nodeTopology": {}}))));
        let odd = json!({"nodeTopology": {"matchExpressions": [{"key": "zone", "operator": "Odd"}]}});
        assert!(capacity(odd).node_topology.is_err());
        let limits = capacity(json!({"capacity": "9Gi", "maximumVolumeSize": "1Gi"}));
        assert_eq!(limits.limit(), limits.maximum_volume_size.as_ref());
        assert_eq!(capacity(json!({})).limit(), None);
    }

    #[test]
    fn objects_can_be_kept() {
        let mut objects = Objects::default();
        for (name, driver) in [("b", "x"), ("a", "x"), ("c", "y")] {
            let class = StorageClass { provisioner: driver.into(), ..StorageClass::default() };
            objects.put(Object::new("", name, class));
        }
        let shared = objects.get_shared::<StorageClass>("", "c");
        let of_x = objects.all_shared(|class: &StorageClass| *class.provisioner == *"x");
        drop(objects);
        assert_eq!(shared.map(|class| class.provisioner.clone()).as_deref(), Some("y"));
        assert_eq!(of_x.len(), 2);
    }
}
