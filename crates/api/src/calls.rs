//! The requests that carry out an effect.

use serde_json::Value;
use supercargo_framework::{Effect, Nomination, PodCondition};
use supercargo_model::{KindId, ObjectKey, Pod, Timestamp};

use crate::call::{Call, MERGE_PATCH, STRATEGIC_MERGE_PATCH};
use crate::{bodies, path};

/// The requests that carry out an effect, one after the other. There are none for what is not written to the API server as it is:
/// questions to extenders, and notices, which a [`Recorder`](crate::Recorder) makes events of.
pub fn calls(effect: &Effect, now: Timestamp) -> Vec<Call> {
    match effect {
        Effect::Bind { pod, node } => vec![bind(pod, node)],
        Effect::Create { kind, namespace, object } => vec![create(*kind, namespace, object)],
        Effect::Patch { kind, key, subresource, patch: words } => {
            vec![patch(*kind, key, *subresource, words)]
        }
        Effect::Delete { kind, key, uid } => vec![delete(*kind, key, uid)],
        Effect::Evict { victim, preemptor } => {
            disrupt(victim, preemptor, now).into_iter().chain([delete_pod(victim)]).collect()
        }
        Effect::UpdateStatus { pod, condition, nomination } => {
            update_status(pod, condition.as_ref(), nomination).into_iter().collect()
        }
        Effect::LookUp { pod } => vec![look_up(pod)],
        Effect::Ask { .. } | Effect::Record(_) => Vec::new(),
    }
}

/// Binds a pod to a node.
pub fn bind(pod: &Pod, node: &str) -> Call {
    let path = path::of_pod(&pod.namespace, &pod.name, Some("binding"));
    Call::post(path, bodies::binding(pod, node))
}

/// Reads a pod as the API server holds it: a request that names no resourceVersion is answered from etcd.
pub fn look_up(pod: &Pod) -> Call {
    Call::get(path::of_pod(&pod.namespace, &pod.name, None))
}

/// Changes what a pod says about its scheduling; none if nothing changes.
pub fn update_status(pod: &Pod, condition: Option<&PodCondition>, nomination: &Nomination) -> Option<Call> {
    bodies::status(pod, condition, nomination).map(|body| patch_status(pod, body))
}

/// Says on a pod that it is evicted; none if the scheduler has said so before.
pub fn disrupt(victim: &Pod, preemptor: &Pod, now: Timestamp) -> Option<Call> {
    let is_told = victim.status.as_ref().is_some_and(|status| status.preempted_by_scheduler);
    (!is_told).then(|| patch_status(victim, bodies::disruption(victim, preemptor, now)))
}

/// Makes an object, in no namespace if that is empty.
pub fn create(kind: KindId, namespace: &str, object: &Value) -> Call {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    Call::post(path::of_kind_in(kind, namespace), bodies::created(kind, object))
}

/// Changes an object by a merge patch.
pub fn patch(kind: KindId, key: &ObjectKey, subresource: Option<&str>, patch: &Value) -> Call {
    Call::patch(path::of_object(kind, key, subresource), MERGE_PATCH, patch.to_string().into_bytes())
}

/// Deletes a pod, and no other of its name.
pub fn delete_pod(pod: &Pod) -> Call {
    Call::delete(path::of_pod(&pod.namespace, &pod.name, None), bodies::deletion(&pod.uid))
}

/// Deletes the object with this UID, and no other of its name.
pub fn delete(kind: KindId, key: &ObjectKey, uid: &str) -> Call {
    Call::delete(path::of_object(kind, key, None), bodies::deletion(uid))
}

fn patch_status(pod: &Pod, body: Vec<u8>) -> Call {
    let path = path::of_pod(&pod.namespace, &pod.name, Some("status"));
    Call::patch(path, STRATEGIC_MERGE_PATCH, body)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use supercargo_model::pod::PodStatus;

    use super::*;

    #[test]
    fn effects_become_requests() {
        let pod = Arc::new(Pod {
            name: "web".into(),
            namespace: "shop".into(),
            uid: "1-2".into(),
            ..Pod::default()
        });
        let told = Arc::new(Pod {
            status: Some(PodStatus { preempted_by_scheduler: true, ..PodStatus::default() }.into()),
            ..(*pod).clone()
        });
        let volume =
            KindId { group: "", version: "v1", kind: "PersistentVolume", plural: "persistentvolumes" };
        let key = ObjectKey { namespace: "".into(), name: "v".into() };
        let status = |nomination| Effect::UpdateStatus { pod: pod.clone(), condition: None, nomination };
        let evict = |victim: &Arc<Pod>| Effect::Evict { victim: victim.clone(), preemptor: pod.clone() };
        let table = [
            (
                Effect::Bind { pod: pod.clone(), node: "n".into() },
                "POST /api/v1/namespaces/shop/pods/web/binding",
            ),
            (Effect::LookUp { pod: pod.clone() }, "GET /api/v1/namespaces/shop/pods/web"),
            (status(Nomination::Keep), ""),
            (status(Nomination::Clear), "PATCH /api/v1/namespaces/shop/pods/web/status"),
            (
                evict(&pod),
                "PATCH /api/v1/namespaces/shop/pods/web/status, DELETE /api/v1/namespaces/shop/pods/web",
            ),
            (evict(&told), "DELETE /api/v1/namespaces/shop/pods/web"),
            (
                Effect::Create { kind: volume, namespace: "".into(), object: json!({}) },
                "POST /api/v1/persistentvolumes",
            ),
            (
                Effect::Patch {
                    kind: volume,
                    key: key.clone(),
                    subresource: Some("status"),
                    patch: json!({}),
                },
                "PATCH /api/v1/persistentvolumes/v/status",
            ),
            (Effect::Delete { kind: volume, key, uid: "u".into() }, "DELETE /api/v1/persistentvolumes/v"),
        ];
        for (effect, expected) in table {
            let made = calls(&effect, Timestamp::from_seconds(0));
            let made: Vec<_> = made.iter().map(|call| format!("{} {}", call.method, call.path)).collect();
            assert_eq!(made.join(", "), expected, "{effect:?}");
        }
    }
}
