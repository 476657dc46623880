//! Disks of the plugins that were once built in, in the terms of the CSI drivers that took their place.

use std::collections::BTreeSet;

use supercargo_model::kinds::{CSINode, PersistentVolume};
use supercargo_model::labels::RequirementWords;
use supercargo_model::node_selector::{NodeSelectorWords, TermWords};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{LabelLookup, NodeSelector};

/// The annotation of a CSINode that lists the plugins whose disks the node hands to a CSI driver.
pub(in crate::kubernetes) const MIGRATED_PLUGINS_ANNOTATION: &str =
    "storage.alpha.kubernetes.io/migrated-plugins";

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const ZONE_DELIMITER: &str = "__";
const UNSPECIFIED: &str = "UNSPECIFIED";

/// A plugin whose disks a CSI driver can take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kubernetes) enum InTreePlugin {
    AwsEbs,
    GcePd,
    AzureDisk,
    Cinder,
    Portworx,
}

/// Whether the name is that of a plugin which was built in once. For two of them the scheduler knows no migration.
pub(in crate::kubernetes) fn is_in_tree_plugin(name: &str) -> bool {
    InTreePlugin::named(name).is_some()
        || ["kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"].contains(&name)
}

/// The CSI driver for a volume that is written in a pod, if it belongs to such a plugin.
pub(in crate::kubernetes) fn inline_driver(source: &VolumeSource) -> Option<&'static str> {
    match source {
        VolumeSource::AzureFile => Some("file.csi.azure.com"),
        VolumeSource::VsphereVolume => Some("csi.vsphere.vmware.com"),
        source => InTreePlugin::of_inline(source).map(InTreePlugin::driver),
    }
}

impl InTreePlugin {
    const ALL: [Self; 5] = [Self::AwsEbs, Self::GcePd, Self::AzureDisk, Self::Cinder, Self::Portworx];

    /// The plugin of that name.
    pub(in crate::kubernetes) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// Whether a CSI driver took the place of one of them.
    pub(in crate::kubernetes) fn is_driver(name: &str) -> bool {
        Self::ALL.into_iter().any(|plugin| plugin.driver() == name)
    }

    /// The plugin of a volume that is written in a pod.
    pub(in crate::kubernetes) fn of_inline(source: &VolumeSource) -> Option<Self> {
        Some(match source {
            VolumeSource::AwsElasticBlockStore { .. } => Self::AwsEbs,
            VolumeSource::GcePersistentDisk { .. } => Self::GcePd,
            VolumeSource::AzureDisk { .. } => Self::AzureDisk,
            VolumeSource::Cinder { .. } => Self::Cinder,
            VolumeSource::Portworx { .. } => Self::Portworx,
            _ => return None,
        })
    }

    /// The plugin of a persistent volume.
    pub(in crate::kubernetes) fn of_volume(volume: &PersistentVolume) -> Option<Self> {
        let spec = &volume.spec;
        let sources = [
            (&spec.aws_elastic_block_store, Self::AwsEbs),
            (&spec.gce_persistent_disk, Self::GcePd),
            (&spec.azure_disk, Self::AzureDisk),
            (&spec.cinder, Self::Cinder),
            (&spec.portworx_volume, Self::Portworx),
        ];
        sources.into_iter().find(|(source, _)| source.is_some()).map(|(_, plugin)| plugin)
    }

    pub(in crate::kubernetes) fn name(self) -> &'static str {
        match self {
            Self::AwsEbs => "kubernetes.io/aws-ebs",
            Self::GcePd => "kubernetes.io/gce-pd",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::Cinder => "kubernetes.io/cinder",
            Self::Portworx => "kubernetes.io/portworx-volume",
        }
    }

    /// The CSI driver that took the plugin's place.
    pub(in crate::kubernetes) fn driver(self) -> &'static str {
        match self {
            Self::AwsEbs => "ebs.csi.aws.com",
            Self::GcePd => "pd.csi.storage.gke.io",
            Self::AzureDisk => "disk.csi.azure.com",
            Self::Cinder => "cinder.csi.openstack.org",
            Self::Portworx => "pxd.portworx.com",
        }
    }

    /// The node label by which the driver knows zones.
    fn zone_label(self) -> Option<&'static str> {
        match self {
            Self::AwsEbs => Some("topology.ebs.csi.aws.com/zone"),
            Self::GcePd => Some("topology.gke.io/zone"),
            Self::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
            Self::AzureDisk | Self::Portworx => None,
        }
    }

    /// Whether the node hands the plugin's disks to the driver, as far as [`CSINode`] says.
    pub(in crate::kubernetes) fn is_migrated_on(self, node: Option<&CSINode>) -> bool {
        let annotation = node.and_then(|node| node.metadata.annotations.label(MIGRATED_PLUGINS_ANNOTATION));
        annotation.is_some_and(|names| names.split(',').any(|name| name == self.name()))
    }

    /// What the driver calls a volume that is written in a pod.
    pub(in crate::kubernetes) fn inline_handle(source: &VolumeSource) -> Result<String, String> {
        match source {
            VolumeSource::AwsElasticBlockStore { volume_id } => ebs_handle(volume_id),
            VolumeSource::GcePersistentDisk { name, .. } => Ok(zonal_disk(UNSPECIFIED, name)),
            VolumeSource::AzureDisk { uri, kind } => azure_handle(uri, kind.as_deref()),
            VolumeSource::Cinder { volume_id } | VolumeSource::Portworx { volume_id } => {
                Ok(volume_id.to_string())
            }
            _ => Err("could not find in-tree plugin translation logic".to_owned()),
        }
    }

    /// What the driver calls a persistent volume of the plugin.
    pub(in crate::kubernetes) fn handle(self, volume: &PersistentVolume) -> Result<String, String> {
        let spec = &volume.spec;
        let source = match self {
            Self::AwsEbs => &spec.aws_elastic_block_store,
            Self::GcePd => &spec.gce_persistent_disk,
            Self::AzureDisk => &spec.azure_disk,
            Self::Cinder => &spec.cinder,
            Self::Portworx => &spec.portworx_volume,
        };
        let disk = source.as_ref().ok_or("the volume is not one of this plugin")?;
        match self {
            Self::AwsEbs => ebs_handle(&disk.volume_id),
            Self::GcePd => gce_handle(volume, &disk.pd_name),
            Self::AzureDisk => azure_handle(&disk.disk_uri, disk.kind.as_deref()),
            Self::Cinder | Self::Portworx => Ok(disk.volume_id.to_string()),
        }
    }

    /// The nodes from which the driver reaches a persistent volume of the plugin; none for all nodes.
    pub(in crate::kubernetes) fn required_nodes(
        self,
        volume: &PersistentVolume,
    ) -> Result<Option<NodeSelector>, String> {
        self.handle(volume)?;
        let affinity = volume.spec.node_affinity.as_ref();
        let mut words =
            affinity.and_then(|affinity| affinity.required.as_ref()).map(|nodes| nodes.words.clone());
        if let Some(zone_label) = self.zone_label() {
            translate_topology(volume, &mut words, zone_label);
        }
        Ok(words.as_ref().map(NodeSelector::parse))
    }
}

/// Puts the driver's own zone label in the place of the common one, or adds it from the volume's labels.
fn translate_topology(volume: &PersistentVolume, words: &mut Option<NodeSelectorWords>, zone_label: &str) {
    let (zone, is_beta) = zone_label_of(volume, words.as_ref());
    if has_values(words.as_ref(), zone) {
        replace_key(words, zone, zone_label);
    } else if let Some(value) = volume.metadata.labels.label(zone) {
        let zones: BTreeSet<&str> =
            value.split(ZONE_DELIMITER).map(str::trim).filter(|zone| !zone.is_empty()).collect();
        if !zones.is_empty() {
            add_zones(words.get_or_insert_default(), zone_label, &zones);
        }
    }
    // New nodes have no beta labels any more.
    if is_beta && has_values(words.as_ref(), BETA_REGION) {
        replace_key(words, BETA_REGION, REGION);
    }
}

/// The zone label that the volume uses, and whether it is the beta one.
fn zone_label_of(volume: &PersistentVolume, words: Option<&NodeSelectorWords>) -> (&'static str, bool) {
    let in_affinity = |key: &str| expressions(words).any(|expression| expression.key == key);
    let in_labels = |key: &str| volume.metadata.labels.label(key).is_some();
    let is_beta = if in_affinity(ZONE) || in_affinity(BETA_ZONE) {
        !in_affinity(ZONE)
    } else {
        !in_labels(ZONE) && in_labels(BETA_ZONE)
    };
    (if is_beta { BETA_ZONE } else { ZONE }, is_beta)
}

fn expressions(words: Option<&NodeSelectorWords>) -> impl Iterator<Item = &RequirementWords> {
    words.into_iter().flat_map(|words| &words.node_selector_terms).flat_map(|term| &term.match_expressions)
}

fn has_values(words: Option<&NodeSelectorWords>, key: &str) -> bool {
    expressions(words).any(|expression| expression.key == key && !expression.values.is_empty())
}

fn replace_key(words: &mut Option<NodeSelectorWords>, old: &str, new: &str) {
    let terms = words.iter_mut().flat_map(|words| &mut words.node_selector_terms);
    for expression in terms.flat_map(|term| &mut term.match_expressions) {
        if expression.key == old {
            new.clone_into(&mut expression.key);
        }
    }
}

fn add_zones(words: &mut NodeSelectorWords, key: &str, zones: &BTreeSet<&str>) {
    if words.node_selector_terms.is_empty() {
        words.node_selector_terms.push(TermWords::default());
    }
    for term in &mut words.node_selector_terms {
        term.match_expressions.push(RequirementWords {
            key: key.to_owned(),
            operator: "In".to_owned(),
            values: zones.iter().map(|zone| (*zone).into()).collect(),
        });
    }
}

/// The volume's own ID where it is written as `aws://zone/id`.
fn ebs_handle(id: &str) -> Result<String, String> {
    let Some(address) = id.strip_prefix("aws://") else { return Ok(id.to_owned()) };
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let path = address.split_once('/').map_or("", |(_, path)| path).trim_matches('/');
    if path.starts_with("vol-") && !path.contains('/') {
        return Ok(path.to_owned());
    }
    Err(format!("failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({id})"))
}

fn azure_handle(uri: &str, kind: Option<&str>) -> Result<String, String> {
    match kind {
        Some(kind) if !kind.eq_ignore_ascii_case("Managed") => {
            Err(format!("kind({kind}) is not supported in csi migration"))
        }
        _ => Ok(uri.to_owned()),
    }
}

fn gce_handle(volume: &PersistentVolume, disk: &str) -> Result<String, String> {
    let label = |key: &str| volume.metadata.labels.label(key).filter(|value| !value.is_empty());
    let zones: Vec<&str> =
        label(BETA_ZONE).or_else(|| label(ZONE)).unwrap_or_default().split(ZONE_DELIMITER).collect();
    match &zones[..] {
        [""] | [] => Ok(zonal_disk(UNSPECIFIED, disk)),
        [zone] => Ok(zonal_disk(zone, disk)),
        zones => Ok(format!("projects/{UNSPECIFIED}/regions/{}/disks/{disk}", gce_region(zones)?)),
    }
}

fn zonal_disk(zone: &str, disk: &str) -> String {
    format!("projects/{UNSPECIFIED}/zones/{zone}/disks/{disk}")
}

/// The region of zones such as `europe-west1-b`, which must be one.
fn gce_region(zones: &[&str]) -> Result<String, String> {
    let mut regions = BTreeSet::new();
    for zone in zones {
        let &[locale, region, _] = &zone.split('-').collect::<Vec<_>>()[..] else {
            return Err(format!(
                "failed to get region from zones: zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, \
                 got: {zone}"
            ));
        };
        regions.insert(format!("{locale}-{region}"));
    }
    if regions.len() > 1 {
        let regions: Vec<String> = regions.iter().map(|region| format!("{region}:{{}}")).collect();
        return Err(format!(
            "failed to get region from zones: multiple or no regions gotten from zones, got: map[{}]",
            regions.join(" ")
        ));
    }
    Ok(regions.pop_first().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use supercargo_model::SelectableNode;

    use super::*;
    use crate::kubernetes::storage::scene::object;

    struct Labelled(&'static [(&'static str, &'static str)]);

    impl LabelLookup for Labelled {
        fn label(&self, key: &str) -> Option<&str> {
            self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
        }
    }

    impl SelectableNode for Labelled {
        fn name(&self) -> &str {
            ""
        }
    }

    fn volume(labels: &Value, spec: &Value) -> PersistentVolume {
        let object =
            object::<PersistentVolume>(json!({"metadata": {"name": "v", "labels": labels}, "spec": spec}));
        object.get::<PersistentVolume>().expect("a volume").clone()
    }

    fn handle(labels: &Value, spec: &Value) -> Result<String, String> {
        let volume = volume(labels, spec);
        InTreePlugin::of_volume(&volume).expect("a disk").handle(&volume)
    }

    #[test]
    fn ebs_volumes_are_known_by_their_own_id() {
        for (id, expected) in [
            ("vol-1", Some("vol-1")),
            ("anything", Some("anything")),
            ("aws://zone/vol-1", Some("vol-1")),
            ("aws:///vol-1/", Some("vol-1")),
            ("aws://vol-1", None),
            ("aws://zone/disk-1", None),
            ("aws://zone/a/vol-1", None),
        ] {
            let spec = json!({"awsElasticBlockStore": {"volumeID": id}});
            assert_eq!(handle(&json!({}), &spec).ok().as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn gce_disks_are_known_by_zone_or_region() {
        let disk = json!({"gcePersistentDisk": {"pdName": "pd"}});
        for (labels, expected) in [
            (json!({}), Ok("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd")),
            (json!({ZONE: "eu-west1-b"}), Ok("projects/UNSPECIFIED/zones/eu-west1-b/disks/pd")),
            (json!({BETA_ZONE: "", ZONE: "z"}), Ok("projects/UNSPECIFIED/zones/z/disks/pd")),
            (json!({BETA_ZONE: "a-b-c", ZONE: "z"}), Ok("projects/UNSPECIFIED/zones/a-b-c/disks/pd")),
            (json!({ZONE: "eu-west1-b__eu-west1-c"}), Ok("projects/UNSPECIFIED/regions/eu-west1/disks/pd")),
            (
                json!({ZONE: "eu-west1-b__us-east1-c"}),
                Err("failed to get region from zones: multiple or no regions gotten from zones, got: \
                     map[eu-west1:{} us-east1:{}]"),
            ),
        ] {
            let found = handle(&labels, &disk);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{labels}");
        }
    }

    #[test]
    fn zones_are_looked_for_under_the_drivers_label() {
        let affinity = |key: &str| {
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": key, "operator": "In", "values": ["a"]}]}]}})
        };
        const OWN: &str = "topology.ebs.csi.aws.com/zone";
        for (labels, key) in [
            (json!({}), Some(ZONE)),
            (json!({ZONE: "b"}), Some(BETA_ZONE)),
            (json!({ZONE: " a __b"}), None),
            (json!({BETA_ZONE: "a"}), None),
        ] {
            let mut spec = json!({"awsElasticBlockStore": {"volumeID": "vol-1"}});
            if let Some(key) = key {
                spec["nodeAffinity"] = affinity(key);
            }
            let nodes = InTreePlugin::AwsEbs.required_nodes(&volume(&labels, &spec));
            let nodes = nodes.expect("translated").expect("restricted");
            assert!(nodes.matches(&Labelled(&[(OWN, "a")])), "{labels}");
            assert!(!nodes.matches(&Labelled(&[(ZONE, "a"), (BETA_ZONE, "a")])), "{labels}");
        }
        let anywhere = volume(&json!({}), &json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}));
        assert_eq!(InTreePlugin::AwsEbs.required_nodes(&anywhere), Ok(None));
    }
}
