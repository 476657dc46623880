//! What a copy of a pod is.

use std::sync::Arc;

use supercargo_model::kinds::PersistentVolumeClaim;
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Pod, Snapshot};

use crate::what_if::with_spec;

/// The only access mode that lets no second pod in.
const READ_WRITE_ONCE_POD: &str = "ReadWriteOncePod";

/// The pod as a template of others: without the volumes that are for it alone.
///
/// Nobody else can have its generic ephemeral volumes, or claims that are `ReadWriteOncePod`: another pod of the kind
/// comes with such claims of its own, which are bound wherever it goes. All other claims are shared by the copies.
pub fn template(cluster: &Snapshot, pod: &Arc<Pod>) -> Arc<Pod> {
    let is_its_own = |source: &VolumeSource| match source {
        VolumeSource::Ephemeral => true,
        VolumeSource::Claim(name) => {
            let claim = cluster.objects().get::<PersistentVolumeClaim>(&pod.namespace, name);
            claim.is_some_and(|claim| {
                claim.spec.access_modes.iter().any(|mode| **mode == *READ_WRITE_ONCE_POD)
            })
        }
        _ => false,
    };
    if !pod.spec.volumes.iter().any(|volume| is_its_own(&volume.source)) {
        return pod.clone();
    }
    with_spec(pod, |spec| {
        let volumes = std::mem::take(&mut spec.volumes).into_iter();
        spec.volumes = volumes.filter(|volume| !is_its_own(&volume.source)).collect();
    })
}
