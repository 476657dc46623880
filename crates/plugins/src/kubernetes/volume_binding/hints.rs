//! VolumeBinding: which events may help a pod that it rejected.

use supercargo_framework::{Actions, Change, ClusterEvent, Context, Enqueue, Hint};
use supercargo_model::kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Kind, LabelLookup, Object, Pod};

use super::VolumeBinding;
use crate::kubernetes::storage::{MIGRATED_PLUGINS_ANNOTATION, has_claim};

impl Enqueue for VolumeBinding {
    fn events(&self) -> Vec<ClusterEvent> {
        let added_or_changed = Actions::ADD.or(Actions::UPDATE);
        vec![
            ClusterEvent::kind(StorageClass::ID, added_or_changed),
            ClusterEvent::kind(PersistentVolumeClaim::ID, added_or_changed),
            ClusterEvent::kind(PersistentVolume::ID, added_or_changed),
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_LABEL)),
            ClusterEvent::kind(CSINode::ID, added_or_changed),
            ClusterEvent::kind(CSIDriver::ID, Actions::UPDATE),
            ClusterEvent::kind(CSIStorageCapacity::ID, added_or_changed),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let Change::Object { old, new: Some(object) } = change else { return Hint::Queue };
        if let Some(claim) = object.get() {
            return Hint::queue_if(has_claim(pod, claim));
        }
        Hint::queue_if(old.is_none_or(|old| update_may_help(pod, old, object)))
    }
}

fn update_may_help(pod: &Pod, old: &Object, new: &Object) -> bool {
    if let (Some(old), Some(new)) = (old.get::<StorageClass>(), new.get::<StorageClass>()) {
        old.allowed_topologies != new.allowed_topologies
    } else if let (Some(old), Some(new)) = (old.get::<CSINode>(), new.get::<CSINode>()) {
        // An absent annotation is like an empty one.
        let migrated = |node: &CSINode| {
            node.metadata.annotations.label(MIGRATED_PLUGINS_ANNOTATION).unwrap_or_default().to_owned()
        };
        migrated(old) != migrated(new)
    } else if let (Some(before), Some(after)) = (old.get::<CSIDriver>(), new.get::<CSIDriver>()) {
        let stops_counting = before.spec.storage_capacity && !after.spec.storage_capacity;
        stops_counting && has_inline_volume(pod, &new.key.name)
    } else if let (Some(old), Some(new)) = (old.get::<CSIStorageCapacity>(), new.get::<CSIStorageCapacity>())
    {
        let before = old.limit().map(supercargo_model::Quantity::value);
        new.limit().is_some_and(|after| before.is_none_or(|before| after.value() > before))
    } else {
        true
    }
}

fn has_inline_volume(pod: &Pod, driver: &str) -> bool {
    let mut volumes = pod.spec.volumes.iter();
    volumes.any(|volume| matches!(&volume.source, VolumeSource::Csi { driver: own } if **own == *driver))
}
