//! What the volume plugins have in common: which claims a pod has, and what upstream says where one is missing.

mod migration;
#[cfg(test)]
pub(super) mod scene;

use std::borrow::Cow;
use std::sync::Arc;

use supercargo_model::kinds::{PersistentVolumeClaim, StorageClass};
use supercargo_model::pod::{Volume, VolumeSource};
use supercargo_model::{Kind, Objects, Pod};

pub(super) use migration::{InTreePlugin, MIGRATED_PLUGINS_ANNOTATION, inline_driver, is_in_tree_plugin};

/// A claim that one of a pod's volumes stands for.
pub(super) struct PodClaim<'a> {
    pub(super) name: Cow<'a, str>,
    /// Whether the claim is made for the pod, from a template in it.
    pub(super) is_ephemeral: bool,
}

/// The claim that a volume stands for, if it does for one.
pub(super) fn claim_of<'a>(pod: &Pod, volume: &'a Volume) -> Option<PodClaim<'a>> {
    match &volume.source {
        VolumeSource::Claim(name) => Some(PodClaim { name: (&**name).into(), is_ephemeral: false }),
        VolumeSource::Ephemeral => {
            let name = format!("{}-{}", pod.name, volume.name);
            Some(PodClaim { name: name.into(), is_ephemeral: true })
        }
        _ => None,
    }
}

/// The claims that a pod's volumes stand for, in their order.
pub(super) fn claims_of(pod: &Pod) -> impl Iterator<Item = PodClaim<'_>> {
    pod.spec.volumes.iter().filter_map(|volume| claim_of(pod, volume))
}

/// Whether the volume is one that a CSI driver may attach.
pub(super) fn is_attachable(pod: &Pod, volume: &Volume) -> bool {
    claim_of(pod, volume).is_some() || inline_driver(&volume.source).is_some()
}

/// Whether the claim is one of the pod's, ephemeral ones included.
pub(super) fn has_claim(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    *claim.metadata.namespace == *pod.namespace && claims_of(pod).any(|own| own.name == claim.metadata.name)
}

/// Whether the pod names the claim in its spec; ephemeral ones do not count.
pub(super) fn names_claim(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    *claim.metadata.namespace == *pod.namespace
        && pod.spec.claim_names().any(|name| *name == *claim.metadata.name)
}

/// The pod's claim of that name, or upstream's words for its absence.
pub(super) fn find_claim(
    objects: &Objects,
    pod: &Pod,
    name: &str,
) -> Result<Arc<PersistentVolumeClaim>, String> {
    objects.get_shared(&pod.namespace, name).ok_or_else(|| not_found::<PersistentVolumeClaim>(name))
}

/// The storage class of that name, or upstream's words for its absence.
pub(super) fn find_class<'a>(objects: &'a Objects, name: &str) -> Result<&'a StorageClass, String> {
    objects.get("", name).ok_or_else(|| not_found::<StorageClass>(name))
}

/// What upstream's listers say of an object that is not there.
pub(super) fn not_found<K: Kind>(name: &str) -> String {
    let kind = K::ID.kind.to_lowercase();
    let dot = if K::ID.group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{} {name:?} not found", K::ID.group)
}

/// Whether a claim for an ephemeral volume was made for this pod, and not for an earlier one or by hand.
pub(super) fn check_owner(pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), String> {
    let controller = claim.metadata.owner_references.iter().find(|owner| owner.controller);
    if controller.is_some_and(|owner| *owner.uid == *pod.uid) {
        return Ok(());
    }
    Err(format!("PVC {} was not created for pod {} (pod is not owner)", claim.key(), pod.key()))
}
