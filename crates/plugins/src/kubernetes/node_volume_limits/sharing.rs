//! Whether anybody else has a pod's volumes, and where it shows if an object changes.

use std::sync::Arc;

use supercargo_framework::Touched;
use supercargo_model::cluster::ObjectChange;
use supercargo_model::kinds::{PersistentVolume, PersistentVolumeClaim, VolumeAttachment};
use supercargo_model::{Kind, ObjectKey, Pod, Row, Snapshot};

use super::Needed;
use super::attachable::{AttachedVolumes, Migration, PodAge, add_volumes_of};
use crate::kubernetes::storage::{InTreePlugin, claim_of, is_attachable};

/// Whether no pod on a node, and none that is nominated to one, has any of the volumes that a pod needs. False also if that is not
/// easily known.
pub(super) fn is_shared_with_none(cluster: &Snapshot, pod: &Pod, needed: &[Needed; 2]) -> bool {
    let is_unused = |volume| {
        claim_of(pod, volume).is_some_and(|named| is_claim_unused(cluster, &pod.namespace, &named.name))
    };
    let drivers = needed.iter().filter_map(Needed::volumes).flat_map(AttachedVolumes::values);
    pod.spec.volumes.iter().filter(|volume| is_attachable(pod, volume)).all(is_unused)
        && (!has_disks_of_old_plugins(cluster) || !{ drivers }.any(|driver| InTreePlugin::is_driver(driver)))
        && !is_nominated(cluster, pod, needed)
}

/// About which nodes something else may be said after an object has changed.
pub(super) fn touched(cluster: &Snapshot, change: &ObjectChange) -> Touched {
    let Some(object) = change.new.as_ref().or(change.old.as_ref()) else { return Touched::NOTHING };
    let mut rows = Vec::new();
    match object.kind {
        PersistentVolumeClaim::ID => add_users(cluster, &object.key, &mut rows),
        PersistentVolume::ID => {
            let name = &object.key.name;
            for (key, _) in claims_on(cluster, name) {
                add_users(cluster, key, &mut rows);
            }
            let shelf = VolumeAttachment::shelf_of_volume(name);
            for (_, attachment) in cluster.objects().on_shelf::<VolumeAttachment>(&shelf) {
                rows.extend(cluster.row_of(&attachment.spec.node_name));
            }
        }
        VolumeAttachment::ID => {
            let attachments = change.sides::<VolumeAttachment>();
            rows.extend(attachments.filter_map(|attachment| cluster.row_of(&attachment.spec.node_name)));
        }
        // Nobody keeps which claims are of a class and not bound yet.
        _ => return Touched::All,
    }
    Touched::Rows(rows)
}

fn add_users(cluster: &Snapshot, claim: &ObjectKey, rows: &mut Vec<Row>) {
    rows.extend(cluster.claim_users(&claim.namespace, &claim.name).rows());
}

/// The claims that name a volume.
fn claims_on<'a>(
    cluster: &'a Snapshot,
    volume: &str,
) -> impl Iterator<Item = (&'a ObjectKey, Arc<PersistentVolumeClaim>)> + use<'a> {
    let shelf = PersistentVolumeClaim::shelf_of_volume(volume);
    cluster.objects().on_shelf(&shelf)
}

/// Whether no pod on a node has the volume of a claim, be it by another claim.
fn is_claim_unused(cluster: &Snapshot, namespace: &str, name: &str) -> bool {
    let objects = cluster.objects();
    if !cluster.claim_users(namespace, name).is_empty() {
        return false;
    }
    let Some(claim) = objects.get::<PersistentVolumeClaim>(namespace, name) else { return false };
    let Some(volume) = objects.get::<PersistentVolume>("", &claim.spec.volume_name) else {
        // Its volume will be a new one.
        return true;
    };
    let Some(csi) = &volume.spec.csi else { return false };
    let shelf = PersistentVolume::shelf_of_handle(&csi.driver, &csi.volume_handle);
    // Most often it is the one volume with its handle, and this its one claim.
    { objects.on_shelf::<PersistentVolume>(&shelf) }.all(|(key, _)| {
        let is_other = |claim: &ObjectKey| *claim.name != *name || *claim.namespace != *namespace;
        let mut others = claims_on(cluster, &key.name).filter(|(claim, _)| is_other(claim));
        others.all(|(claim, _)| cluster.claim_users(&claim.namespace, &claim.name).is_empty())
    })
}

/// Whether there may be disks that are known by a driver's handles though no volume says so.
fn has_disks_of_old_plugins(cluster: &Snapshot) -> bool {
    let without_driver =
        cluster.objects().count_on_shelf::<PersistentVolume>(PersistentVolume::WITHOUT_DRIVER);
    cluster.has_pods_with_own_disks() || without_driver > 0
}

/// Whether a pod that is nominated to a node has one of the volumes.
fn is_nominated(cluster: &Snapshot, pod: &Pod, needed: &[Needed; 2]) -> bool {
    let nominated = cluster.nominated().flat_map(|(_, pods)| pods);
    let mut others = nominated.filter(|other| other.uid != pod.uid && !other.spec.volumes.is_empty());
    others.any(|other| {
        [true, false].into_iter().any(|migrates| {
            let mut volumes = AttachedVolumes::new();
            let migration = &mut Migration::new(migrates);
            let added = add_volumes_of(cluster.objects(), other, PodAge::Placed, migration, &mut volumes);
            let is_needed = |volume: &String| {
                needed.iter().filter_map(Needed::volumes).any(|needed| needed.contains_key(volume))
            };
            added.is_err() || volumes.keys().any(is_needed)
        })
    })
}
