//! Volumes that keep the pod from nodes.

use supercargo_framework::PodField;
use supercargo_model::kinds::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use supercargo_model::pod::{Volume, VolumeSource};
use supercargo_model::{Objects, Quantity};

use super::Search;
use crate::remedy::{Hint, Remedy};
use crate::text::nodes;

/// The provisioner of classes whose volumes people make.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// What a volume has room for, among its resources.
const STORAGE: &str = "storage";

impl Search<'_> {
    /// Nodes that would do but for one of the pod's volumes: it is elsewhere, in use, or one too many.
    pub(super) fn volumes(&self) -> Vec<Hint> {
        let hints = self.pod.spec.volumes.iter().filter_map(|volume| {
            let rows = self.opened(&[PodField::Volumes], |spec| {
                spec.volumes =
                    spec.volumes.iter().filter(|other| other.name != volume.name).cloned().collect();
            });
            let remedy = self.drop_volume(volume);
            let text = match self.what_it_lacks(volume) {
                Some(lack) => format!("{lack}; but for that"),
                None => remedy.describe().replacen("no", "without its", 1),
            };
            self.hint(remedy, &rows, |opens| format!("{text} {} would do", nodes(opens)))
        });
        hints.collect()
    }

    /// The remedy, with what the volume is.
    pub(super) fn drop_volume(&self, volume: &Volume) -> Remedy {
        let claim = self.claim_name(volume);
        let objects = self.explainer.context.cluster.objects();
        let bound = claim.as_ref().and_then(|claim| {
            let claim = objects.get::<PersistentVolumeClaim>(&self.pod.namespace, claim)?;
            Some(claim.spec.volume_name.to_string()).filter(|name| !name.is_empty())
        });
        Remedy::DropVolume { volume: volume.name.to_string(), claim, persistent_volume: bound }
    }

    /// The claim that a volume stands for.
    fn claim_name(&self, volume: &Volume) -> Option<String> {
        match &volume.source {
            VolumeSource::Claim(name) => Some(name.to_string()),
            VolumeSource::Ephemeral => Some(format!("{}-{}", self.pod.name, volume.name)),
            _ => None,
        }
    }

    /// What is not there that the volume needs, and what to do about it; none if everything is there.
    fn what_it_lacks(&self, volume: &Volume) -> Option<String> {
        let objects = self.explainer.context.cluster.objects();
        let (namespace, name) = (&self.pod.namespace, self.claim_name(volume)?);
        let Some(claim) = objects.get::<PersistentVolumeClaim>(namespace, &name) else {
            return Some(match volume.source {
                VolumeSource::Ephemeral => {
                    format!(
                        "the claim {namespace}/{name} of its volume {} has not been made yet",
                        volume.name
                    )
                }
                _ => format!("create the claim {namespace}/{name}"),
            });
        };
        let bound = &*claim.spec.volume_name;
        if !bound.is_empty() {
            let is_there = objects.get::<PersistentVolume>("", bound).is_some();
            return (!is_there).then(|| {
                format!("the claim {namespace}/{name} is bound to the PersistentVolume {bound}, which is not there")
            });
        }
        self.what_unbound_lacks(objects, &format!("{namespace}/{name}"), claim)
    }

    fn what_unbound_lacks(
        &self,
        objects: &Objects,
        name: &str,
        claim: &PersistentVolumeClaim,
    ) -> Option<String> {
        let class_name = claim.spec.storage_class_name.as_deref().unwrap_or_default();
        let class = objects.get::<StorageClass>("", class_name);
        if class.is_none() && !class_name.is_empty() {
            return Some(format!("create the StorageClass {class_name}, which the claim {name} asks for"));
        }
        let provisioner = class.map(|class| &*class.provisioner).filter(|name| *name != NO_PROVISIONER);
        if let Some(provisioner) = provisioner {
            // Where a volume can be made is the plugin's to say; here nobody has made one yet.
            let waits = class
                .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
            return (!waits).then(|| {
                format!("the claim {name} waits for {provisioner} to make its volume (class {class_name})")
            });
        }
        let mut volumes = objects.all::<PersistentVolume>().map(|(_, volume)| volume);
        if volumes.any(|volume| suits(volume, claim, class_name)) {
            return None;
        }
        let wanted = [size(claim).map(Quantity::to_string), modes(claim)];
        let wanted: Vec<String> = wanted.into_iter().flatten().collect();
        let wanted = if wanted.is_empty() { String::new() } else { format!(" ({})", wanted.join(", ")) };
        Some(match class {
            None => format!(
                "create a PersistentVolume without a class{wanted} for the claim {name}: none is available"
            ),
            Some(_) => format!(
                "no PersistentVolume of class {class_name}{wanted} is available for the claim {name}, and the class has \
                 no provisioner: create one"
            ),
        })
    }
}

fn size(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.resources.requests.get(STORAGE)
}

/// The access modes as kubectl shortens them.
fn modes(claim: &PersistentVolumeClaim) -> Option<String> {
    let short = claim.spec.access_modes.iter().map(|mode| match &**mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    });
    let short: Vec<&str> = short.collect();
    (!short.is_empty()).then(|| short.join("+"))
}

/// Whether a volume is free and may be what the claim asks for.
fn suits(volume: &PersistentVolume, claim: &PersistentVolumeClaim, class_name: &str) -> bool {
    let (has, wants) = (&volume.spec, &claim.spec);
    let is_free = has.claim_ref.as_ref().is_none_or(|owner| {
        *owner.name == *claim.metadata.name && *owner.namespace == *claim.metadata.namespace
    });
    let has_modes = wants.access_modes.iter().all(|mode| has.access_modes.contains(mode));
    is_free
        && *has.storage_class_name == *class_name
        && has.capacity.amount(STORAGE) >= wants.resources.requests.amount(STORAGE)
        && has_modes
}
