use supercargo_framework::{Actions, Change, ClusterEvent, Context, Enqueue, Hint};
use supercargo_model::kinds::{CSINode, PersistentVolumeClaim, VolumeAttachment};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Kind, Object, Pod};

use super::{NodeVolumeLimits, limits};
use crate::kubernetes::storage::{InTreePlugin, has_claim, inline_driver, is_attachable};
use crate::kubernetes::takes_room;

impl Enqueue for NodeVolumeLimits {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::kind(CSINode::ID, Actions::ADD.or(Actions::UPDATE)),
            ClusterEvent::pod(Actions::DELETE),
            ClusterEvent::kind(PersistentVolumeClaim::ID, Actions::ADD),
            ClusterEvent::kind(VolumeAttachment::ID, Actions::DELETE),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        Hint::queue_if(match change {
            Change::Pod { old: Some(deleted), new: None } => {
                takes_room(deleted) && has_attachable_volume(deleted)
            }
            Change::Object { old, new: Some(object) } => {
                if let Some(claim) = object.get() {
                    has_claim(pod, claim)
                } else if let Some(node) = object.get() {
                    old.and_then(Object::get).is_none_or(|before| raises_a_limit(before, node))
                } else {
                    true
                }
            }
            Change::Object { old: Some(object), new: None } => {
                object.get().is_none_or(|detached| may_need_detached(pod, detached))
            }
            _ => true,
        })
    }
}

fn has_attachable_volume(pod: &Pod) -> bool {
    pod.spec.volumes.iter().any(|volume| is_attachable(pod, volume))
}

/// A driver that is not limited counts as one that takes nothing, as upstream.
fn raises_a_limit(before: &CSINode, after: &CSINode) -> bool {
    let before = limits(before);
    limits(after).into_iter().any(|(driver, limit)| limit > before.get(driver).copied().unwrap_or(0))
}

/// Whether the room that a detached volume leaves may be what the pod lacks.
fn may_need_detached(pod: &Pod, detached: &VolumeAttachment) -> bool {
    pod.spec.volumes.iter().any(|volume| match &volume.source {
        VolumeSource::Claim(_) => true,
        // One that cannot be translated is tried again, since nobody knows what it lacks.
        source => inline_driver(source).is_some_and(|driver| {
            driver == &*detached.spec.attacher
                || (InTreePlugin::of_inline(source).is_some() && InTreePlugin::inline_handle(source).is_err())
        }),
    })
}
