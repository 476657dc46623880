//! NodeVolumeLimits: which events may help a pod that it rejected.

use supercargo_framework::{Actions, Change, ClusterEvent, Context, Enqueue, Hint};
use supercargo_model::kinds::{CSINode, PersistentVolumeClaim, VolumeAttachment};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Kind, Object, Pod};

use super::{NodeVolumeLimits, limit_of, limits};
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
    limits(after)
        .filter_map(|(driver, _)| Some((driver, limit_of(after, driver)?)))
        .any(|(driver, limit)| limit > limit_of(before, driver).unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kubernetes::storage::scene::{
        hint, hint_added, hint_pod_deleted, hint_updated, object, pod, pod_with_claims,
    };

    #[test]
    fn limits_that_rise_wake_pods() {
        let pod = pod_with_claims("web", &["data"]);
        let csi_node = |drivers: Value| {
            object::<CSINode>(json!({"metadata": {"name": "n"}, "spec": {"drivers": drivers}}))
        };
        let driver = |name: &str, count: i64| json!({"name": name, "allocatable": {"count": count}});
        let unlimited = json!({"name": "a"});
        for (old, new, expected) in [
            (json!([driver("a", 1)]), json!([driver("a", 2)]), Hint::Queue),
            (json!([driver("a", 2)]), json!([driver("a", 2)]), Hint::Skip),
            (json!([driver("a", 2)]), json!([driver("a", 1)]), Hint::Skip),
            (json!([driver("a", 2)]), json!([driver("a", 2), driver("b", 1)]), Hint::Queue),
            (json!([driver("a", 2)]), json!([unlimited]), Hint::Skip),
            (json!([{"name": "a"}]), json!([driver("a", 1)]), Hint::Queue),
        ] {
            let (old, new) = (csi_node(old), csi_node(new.clone()));
            assert_eq!(hint_updated(&NodeVolumeLimits, &pod, &old, &new), expected, "{new:?}");
            assert_eq!(hint_added(&NodeVolumeLimits, &pod, &new), Hint::Queue);
        }
    }

    #[test]
    fn pods_that_leave_volumes_behind_wake_others() {
        let waiting = pod_with_claims("waiting", &["data"]);
        let placed = |volumes: Value| Pod { node_name: Some("n".into()), ..(*pod("gone", &volumes)).clone() };
        let claim = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "other"}}]);
        for (deleted, expected) in [
            (placed(claim.clone()), Hint::Queue),
            (placed(json!([{"name": "v", "ephemeral": {}}])), Hint::Queue),
            (placed(json!([{"name": "v", "vsphereVolume": {"volumePath": "p"}}])), Hint::Queue),
            (placed(json!([{"name": "v", "csi": {"driver": "d"}}])), Hint::Skip),
            (placed(json!([])), Hint::Skip),
            ((*pod("gone", &claim)).clone(), Hint::Skip),
        ] {
            let volumes = &deleted.spec.volumes;
            assert_eq!(hint_pod_deleted(&NodeVolumeLimits, &waiting, &deleted), expected, "{volumes:?}");
        }
    }

    #[test]
    fn detached_volumes_wake_pods_that_may_need_the_room() {
        let detached = object::<VolumeAttachment>(
            json!({"metadata": {"name": "a"}, "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "n"}}),
        );
        for (volume, expected) in [
            (json!({"persistentVolumeClaim": {"claimName": "data"}}), Hint::Queue),
            (json!({"ephemeral": {}}), Hint::Skip),
            (json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}), Hint::Queue),
            (json!({"gcePersistentDisk": {"pdName": "pd"}}), Hint::Skip),
            (json!({"azureDisk": {"diskURI": "u", "kind": "Shared"}}), Hint::Queue),
        ] {
            let pod = pod("web", &json!([volume]));
            let change = Change::Object { old: Some(&detached), new: None };
            assert_eq!(hint(&NodeVolumeLimits, &pod, &change), expected, "{volume}");
        }
        let ephemeral = pod("web", &json!([{"name": "scratch", "ephemeral": {}}]));
        let claim = |name: &str| {
            object::<PersistentVolumeClaim>(json!({"metadata": {"name": name, "namespace": "default"}}))
        };
        assert_eq!(hint_added(&NodeVolumeLimits, &ephemeral, &claim("web-scratch")), Hint::Queue);
        assert_eq!(hint_added(&NodeVolumeLimits, &ephemeral, &claim("scratch")), Hint::Skip);
    }
}
