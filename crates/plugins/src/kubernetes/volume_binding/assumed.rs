//! Which volumes are as good as taken: their pods have a node, but the API does not show it yet.

use serde::{Deserialize, Serialize};
use supercargo_framework::{Memory, SharedMap};
use supercargo_model::kinds::{ClaimReference, PersistentVolume, PersistentVolumeClaim};
use supercargo_model::{LabelLookup, Objects};

use super::binding::{PlannedBinding, PlannedBindings};

/// On a claim: the node for which its volume is to be made.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// What Reserve assumed of volumes and claims. It holds until the object has changed: from then on the object itself says
/// how it stands.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct AssumedVolumes {
    /// By name: the claim that each volume is to be bound to.
    volumes: SharedMap<String, Assumed<ClaimReference>>,
    /// By namespace and name: the node that each claim is to get a volume for.
    claims: SharedMap<String, Assumed<Box<str>>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Assumed<T> {
    /// The `resourceVersion` of the object that this was assumed of.
    version: Box<str>,
    value: T,
}

impl Memory for AssumedVolumes {
    const NAME: &'static str = "VolumeBinding";
}

impl AssumedVolumes {
    /// The claim that a volume is bound to, or is to be.
    pub(super) fn claim_of<'a>(&'a self, volume: &'a PersistentVolume) -> Option<&'a ClaimReference> {
        let assumed = self.volumes.get(&volume.metadata.name);
        let assumed = assumed.filter(|assumed| assumed.version == volume.metadata.resource_version);
        assumed.map(|assumed| &assumed.value).or(volume.spec.claim_ref.as_ref())
    }

    /// The node that a volume for the claim is made for, or is to be.
    pub(super) fn node_of<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
        let assumed = self.claims.get(&claim.key());
        let assumed = assumed.filter(|assumed| assumed.version == claim.metadata.resource_version);
        assumed.map(|assumed| &*assumed.value).or_else(|| claim.metadata.annotations.label(SELECTED_NODE))
    }

    pub(super) fn assume(&mut self, planned: &PlannedBindings, node: &str) {
        for PlannedBinding { volume, claim, .. } in &planned.bindings {
            let value = claim_reference(claim);
            let version = volume.metadata.resource_version.clone();
            self.volumes.insert(volume.metadata.name.clone(), Assumed { version, value });
        }
        for claim in &planned.provisions {
            let version = claim.metadata.resource_version.clone();
            self.claims.insert(claim.key(), Assumed { version, value: node.into() });
        }
    }

    pub(super) fn forget(&mut self, planned: &PlannedBindings) {
        for PlannedBinding { volume, .. } in &planned.bindings {
            self.volumes.remove(&volume.metadata.name);
        }
        for claim in &planned.provisions {
            self.claims.remove(&claim.key());
        }
    }

    /// Drops what objects that have changed or gone say themselves by now.
    pub(super) fn forget_outdated(&mut self, objects: &Objects) {
        self.volumes.retain(|name, assumed| {
            let volume: Option<&PersistentVolume> = objects.get("", name);
            volume.is_some_and(|volume| volume.metadata.resource_version == assumed.version)
        });
        self.claims.retain(|key, assumed| {
            let claim: Option<&PersistentVolumeClaim> =
                key.split_once('/').and_then(|(namespace, name)| objects.get(namespace, name));
            claim.is_some_and(|claim| claim.metadata.resource_version == assumed.version)
        });
    }
}

/// How a volume names the claim that it is bound to.
pub(super) fn claim_reference(claim: &PersistentVolumeClaim) -> ClaimReference {
    ClaimReference {
        namespace: claim.metadata.namespace.as_str().into(),
        name: claim.metadata.name.as_str().into(),
        uid: claim.metadata.uid.as_str().into(),
    }
}

/// Whether a volume that names a claim means this one. A reference without a UID means any claim of the name.
pub(super) fn means(reference: &ClaimReference, claim: &PersistentVolumeClaim) -> bool {
    let metadata = &claim.metadata;
    *reference.name == *metadata.name
        && *reference.namespace == *metadata.namespace
        && (reference.uid.is_empty() || *reference.uid == *metadata.uid)
}
