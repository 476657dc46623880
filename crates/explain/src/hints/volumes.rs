//! Volumes that keep the pod from nodes.

use supercargo_framework::PodField;
use supercargo_model::kinds::PersistentVolumeClaim;
use supercargo_model::pod::{Volume, VolumeSource};

use super::Search;
use crate::remedy::{Hint, Remedy};
use crate::text::nodes;

impl Search<'_> {
    /// Nodes that would do but for one of the pod's volumes: it is elsewhere, in use, or one too many.
    pub(super) fn volumes(&self) -> Vec<Hint> {
        let hints = self.pod.spec.volumes.iter().filter_map(|volume| {
            let rows = self.opened(&[PodField::Volumes], |spec| {
                spec.volumes =
                    spec.volumes.iter().filter(|other| other.name != volume.name).cloned().collect();
            });
            let remedy = self.drop_volume(volume);
            let text = remedy.describe().replacen("no", "without its", 1);
            self.hint(remedy, &rows, |opens| format!("{text} {} would do", nodes(opens)))
        });
        hints.collect()
    }

    /// The remedy, with what the volume is.
    pub(super) fn drop_volume(&self, volume: &Volume) -> Remedy {
        let claim = match &volume.source {
            VolumeSource::Claim(name) => Some(name.to_string()),
            VolumeSource::Ephemeral => Some(format!("{}-{}", self.pod.name, volume.name)),
            _ => None,
        };
        let objects = self.explainer.context.cluster.objects();
        let bound = claim.as_ref().and_then(|claim| {
            let claim = objects.get::<PersistentVolumeClaim>(&self.pod.namespace, claim)?;
            Some(claim.spec.volume_name.to_string()).filter(|name| !name.is_empty())
        });
        Remedy::DropVolume { volume: volume.name.to_string(), claim, persistent_volume: bound }
    }
}
