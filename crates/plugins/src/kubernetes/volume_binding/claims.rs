//! A pod's claims, and everything about them that does not depend on the node.

use std::sync::Arc;

use supercargo_framework::Status;
use supercargo_model::kinds::{
    CSIDriver, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
};
use supercargo_model::{LabelLookup, LabelSelector, NodeSelector, Objects, Pod};

use super::assumed::AssumedVolumes;
use super::candidates::Candidates;
use crate::kubernetes::storage::{InTreePlugin, check_owner, claims_of, find_claim};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const UNBOUND_IMMEDIATE: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The claims of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct PodClaims {
    /// The volumes of claims that are bound; none for one that is not there.
    pub(super) bound: Vec<Option<BoundVolume>>,
    /// Claims that wait for a pod to decide about their volume.
    pub(super) waiting: Vec<WaitingClaim>,
}

/// A volume that a claim is bound to.
#[derive(Clone, Debug)]
pub(super) struct BoundVolume {
    pub(super) volume: Arc<PersistentVolume>,
    /// What holds instead on nodes that hand the volume to a CSI driver.
    pub(super) migrated: Option<MigratedVolume>,
}

/// A volume of a plugin that was once built in, as its CSI driver sees it.
#[derive(Clone, Debug)]
pub(super) struct MigratedVolume {
    pub(super) plugin: InTreePlugin,
    /// The nodes that reach it; none for all.
    pub(super) required: Result<Option<NodeSelector>, String>,
}

/// A claim that waits for a pod to decide about its volume.
#[derive(Clone, Debug)]
pub(super) struct WaitingClaim {
    pub(super) claim: Arc<PersistentVolumeClaim>,
    /// The node for which a volume is being made already.
    pub(super) selected_node: Option<Box<str>>,
    /// The volumes it may be bound to; an error if its selector is useless.
    pub(super) candidates: Result<Candidates, String>,
    pub(super) provisioning: Provisioning,
}

/// Whether and where a volume can be made for a claim.
#[derive(Clone, Debug)]
pub(super) enum Provisioning {
    /// The class makes none.
    Never,
    Possible {
        /// Nodes must match one of these; none where all do.
        topologies: Option<Vec<LabelSelector>>,
        /// Nodes must have access to one of these, which all are large enough; none where nobody keeps count.
        capacities: Option<Vec<Arc<CSIStorageCapacity>>>,
    },
}

impl PodClaims {
    /// The claims of a pod; none if it has no claims. An error is the reason why it cannot be placed at all.
    pub(super) fn of_pod(
        objects: &Objects,
        pod: &Pod,
        assumed: &AssumedVolumes,
    ) -> Result<Option<Self>, Status> {
        let claims = usable_claims(objects, pod).map_err(Status::unresolvable)?;
        if claims.is_empty() {
            return Ok(None);
        }
        let mut sorted = PodClaims::default();
        let mut immediate = false;
        for claim in claims {
            if is_bound(&claim) {
                sorted.bound.push(BoundVolume::find(objects, &claim));
                continue;
            }
            match class_of(objects, &claim)? {
                Some(class) if class.waits_for_consumer() && claim.spec.volume_name.is_empty() => {
                    sorted.waiting.push(WaitingClaim::new(objects, claim, class, assumed));
                }
                _ => immediate = true,
            }
        }
        if immediate { Err(Status::unresolvable(UNBOUND_IMMEDIATE)) } else { Ok(Some(sorted)) }
    }
}

/// Whether the claim has its volume, and the controller is done with it.
pub(super) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    !claim.spec.volume_name.is_empty() && claim.metadata.annotations.label(BIND_COMPLETED).is_some()
}

/// The pod's claims, or what makes one of them unusable.
fn usable_claims(objects: &Objects, pod: &Pod) -> Result<Vec<Arc<PersistentVolumeClaim>>, String> {
    let mut claims = Vec::new();
    for named in claims_of(pod) {
        let name = &*named.name;
        let claim = find_claim(objects, pod, name).map_err(|not_found| {
            if named.is_ephemeral {
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                )
            } else {
                not_found
            }
        })?;
        if *claim.status.phase == *"Lost" {
            let volume = &claim.spec.volume_name;
            return Err(format!(
                "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
            ));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if named.is_ephemeral {
            check_owner(pod, &claim)?;
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// The class of a claim, if it has one that is there.
fn class_of<'a>(
    objects: &'a Objects,
    claim: &PersistentVolumeClaim,
) -> Result<Option<&'a StorageClass>, Status> {
    let name = claim.class();
    let class: Option<&StorageClass> = if name.is_empty() { None } else { objects.get("", name) };
    match class {
        Some(class) if class.volume_binding_mode.is_none() => {
            Err(Status::error(format!("VolumeBindingMode not set for StorageClass {name:?}")))
        }
        class => Ok(class),
    }
}

impl BoundVolume {
    fn find(objects: &Objects, claim: &PersistentVolumeClaim) -> Option<Self> {
        let volume: Arc<PersistentVolume> = objects.get_shared("", &claim.spec.volume_name)?;
        let migrated = MigratedVolume::of(&volume);
        Some(BoundVolume { volume, migrated })
    }
}

impl MigratedVolume {
    pub(super) fn of(volume: &PersistentVolume) -> Option<Self> {
        let plugin = InTreePlugin::of_volume(volume)?;
        Some(MigratedVolume { plugin, required: plugin.required_nodes(volume) })
    }
}

impl WaitingClaim {
    fn new(
        objects: &Objects,
        claim: Arc<PersistentVolumeClaim>,
        class: &StorageClass,
        assumed: &AssumedVolumes,
    ) -> Self {
        WaitingClaim {
            selected_node: assumed.node_of(&claim).map(Into::into),
            candidates: Candidates::for_claim(objects, &claim, assumed),
            provisioning: Provisioning::new(objects, &claim, class),
            claim,
        }
    }
}

impl Provisioning {
    fn new(objects: &Objects, claim: &PersistentVolumeClaim, class: &StorageClass) -> Self {
        if class.provisioner.is_empty() || *class.provisioner == *NO_PROVISIONER {
            return Provisioning::Never;
        }
        let driver: Option<&CSIDriver> = objects.get("", &class.provisioner);
        let keeps_count = driver.is_some_and(|driver| driver.spec.storage_capacity);
        let capacities = claim.request().filter(|_| keeps_count).map(|request| {
            let (class_name, size) = (claim.class(), request.value());
            objects.all_shared(|capacity: &CSIStorageCapacity| {
                *capacity.storage_class_name == *class_name
                    && capacity.limit().is_some_and(|limit| limit.value() >= size)
            })
        });
        Provisioning::Possible { topologies: class.topologies(), capacities }
    }
}
