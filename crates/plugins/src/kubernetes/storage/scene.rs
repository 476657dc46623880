//! A small cluster for the tests of the volume plugins.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_framework::{Change, Context, Enqueue, Fixes, Hint, Memories};
use supercargo_model::kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use supercargo_model::{
    Cluster, Decoded, Decoder, Interner, Kind, Object, Pod, ReadableKind, Snapshot, Timestamp,
};

/// A cluster with these objects.
pub(in crate::kubernetes) fn cluster(objects: &[Value]) -> Snapshot {
    let mut cluster = Cluster::default();
    for object in objects {
        let decoded = decoder().decode(&object.to_string()).expect("an object");
        assert!(!matches!(decoded, Decoded::Unread { .. }), "nobody reads {object}");
        cluster.add(decoded).expect("the cluster takes it");
    }
    cluster.snapshot().clone()
}

/// A pod of namespace `default` with these volumes.
pub(in crate::kubernetes) fn pod(name: &str, volumes: &Value) -> Arc<Pod> {
    let spec = json!({"volumes": volumes});
    let metadata = json!({"name": name, "namespace": "default", "uid": format!("uid-{name}")});
    let words = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    Arc::new(Interner::default().pod(serde_json::from_value(words).expect("a pod")))
}

/// A pod of namespace `default` that mounts claims.
pub(in crate::kubernetes) fn pod_with_claims(name: &str, claims: &[&str]) -> Arc<Pod> {
    let volume = |claim: &&str| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    pod(name, &claims.iter().map(volume).collect())
}

pub(in crate::kubernetes) fn node(name: &str) -> Value {
    let metadata = json!({"name": name, "labels": {"kubernetes.io/hostname": name}});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
}

/// An object of kind `K`, given without kind and version.
pub(in crate::kubernetes) fn written<K: Kind>(mut object: Value) -> Value {
    object["apiVersion"] = K::ID.api_version().into();
    object["kind"] = K::ID.kind.into();
    object
}

/// The same, read.
pub(in crate::kubernetes) fn object<K: Kind>(value: Value) -> Object {
    ReadableKind::of::<K>().read(&written::<K>(value).to_string()).expect("an object")
}

pub(in crate::kubernetes) fn context<'a>(cluster: &'a Snapshot, memories: &'a Memories) -> Context<'a> {
    let now = Timestamp::from_seconds(1000);
    Context { cluster, now, memories, seed: 0, fixes: Fixes::default() }
}

/// What a plugin makes of a change, where only the pod and the change matter.
pub(in crate::kubernetes) fn hint(plugin: &impl Enqueue, pod: &Pod, change: &Change<'_>) -> Hint {
    plugin.hint(&context(&Snapshot::default(), &Memories::default()), pod, change)
}

/// What a plugin makes of an object that came.
pub(in crate::kubernetes) fn hint_added(plugin: &impl Enqueue, pod: &Pod, new: &Object) -> Hint {
    hint(plugin, pod, &Change::Object { old: None, new: Some(new) })
}

/// What a plugin makes of an object that changed.
pub(in crate::kubernetes) fn hint_updated(
    plugin: &impl Enqueue,
    pod: &Pod,
    old: &Object,
    new: &Object,
) -> Hint {
    hint(plugin, pod, &Change::Object { old: Some(old), new: Some(new) })
}

/// What a plugin makes of a pod that went.
pub(in crate::kubernetes) fn hint_pod_deleted(plugin: &impl Enqueue, pod: &Pod, deleted: &Pod) -> Hint {
    hint(plugin, pod, &Change::Pod { old: Some(deleted), new: None })
}

fn decoder() -> Decoder {
    let kinds = [
        ReadableKind::of::<PersistentVolume>(),
        ReadableKind::of::<PersistentVolumeClaim>(),
        ReadableKind::of::<StorageClass>(),
        ReadableKind::of::<CSINode>(),
        ReadableKind::of::<CSIDriver>(),
        ReadableKind::of::<CSIStorageCapacity>(),
        ReadableKind::of::<VolumeAttachment>(),
    ];
    Decoder::new(kinds, false)
}
