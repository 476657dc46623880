//! Which volumes a claim may be bound to.

use std::sync::Arc;

use supercargo_model::kinds::{PersistentVolume, PersistentVolumeClaim};
use supercargo_model::{LabelSelector, Objects};

use super::assumed::{AssumedVolumes, means};

/// The volumes that a claim may be bound to, as far as that does not depend on the node.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// Volumes that name the claim already: one of them or none.
    reserved: Vec<Arc<PersistentVolume>>,
    /// Volumes that are free, the smallest first.
    free: Vec<Arc<PersistentVolume>>,
}

impl Candidates {
    pub(super) fn for_claim(
        objects: &Objects,
        claim: &PersistentVolumeClaim,
        assumed: &AssumedVolumes,
    ) -> Result<Self, String> {
        let selector = match &claim.spec.selector {
            None => LabelSelector::everything(),
            Some(words) => LabelSelector::parse(Some(words)).map_err(|error| {
                format!("error creating internal label selector for claim: {}: {error}", claim.key())
            })?,
        };
        let class = claim.class();
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        // A volume that names another claim, or is of another class, is neither reserved nor free.
        let shelves =
            [PersistentVolume::shelf_of_claim(namespace, name), PersistentVolume::shelf_of_class(class)];
        let mut fitting: Vec<Arc<PersistentVolume>> = (shelves.iter())
            .flat_map(|shelf| objects.on_shelf::<PersistentVolume>(shelf))
            .map(|(_, volume)| volume)
            .filter(|volume| *volume.class() == *class && fits(claim, volume))
            .collect();
        fitting.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let (reserved, rest): (Vec<_>, Vec<_>) = fitting
            .into_iter()
            .partition(|volume| assumed.claim_of(volume).is_some_and(|reference| means(reference, claim)));
        let is_free = |volume: &Arc<PersistentVolume>| {
            assumed.claim_of(volume).is_none()
                && *volume.status.phase == *"Available"
                && selector.matches(&volume.metadata.labels)
                && offers_access_modes(claim, volume)
        };
        let mut free: Vec<_> = rest.into_iter().filter(is_free).collect();
        // Stable: volumes of one size stay in the order of their names.
        free.sort_by_cached_key(|volume| volume.size());
        Ok(Candidates { reserved, free })
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.reserved.is_empty() && self.free.is_empty()
    }

    /// The volume to be bound on a node: the smallest that the node `reaches` and that is not `taken` by another claim
    /// of the pod. If a volume is reserved for the claim it is that one or none.
    pub(super) fn choose(
        &self,
        reaches: impl Fn(&PersistentVolume) -> bool,
        taken: impl Fn(&PersistentVolume) -> bool,
    ) -> Option<&Arc<PersistentVolume>> {
        match self.reserved.iter().find(|volume| !taken(volume)) {
            Some(reserved) => Some(reserved).filter(|volume| reaches(volume)),
            None => self.free.iter().find(|volume| !taken(volume) && reaches(volume)),
        }
    }
}

/// What every volume must have that a claim is bound to, even one that is reserved for it.
fn fits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    const FILESYSTEM: &str = "Filesystem";
    let mode = |mode: &Option<Box<str>>| mode.as_deref().unwrap_or(FILESYSTEM).to_owned();
    let attributes = |class: &Option<Box<str>>| class.as_deref().unwrap_or_default().to_owned();
    volume.size() >= claim.request().cloned().unwrap_or_default()
        && mode(&volume.spec.volume_mode) == mode(&claim.spec.volume_mode)
        && attributes(&volume.spec.volume_attributes_class_name)
            == attributes(&claim.spec.volume_attributes_class_name)
        && volume.metadata.deletion_timestamp.is_none()
}

fn offers_access_modes(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}
