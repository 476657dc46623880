//! Where volumes, claims and attachments are found other than by their names.

use super::{PersistentVolume, PersistentVolumeClaim, VolumeAttachment};

/// The name of a shelf. What it is put together of has no slash in it, but for handles, which come last.
fn joined([of, first, second]: [&str; 3]) -> String {
    let mut name = String::with_capacity(of.len() + first.len() + second.len() + 2);
    name.push_str(of);
    name.push('/');
    name.push_str(first);
    name.push('/');
    name.push_str(second);
    name
}

impl PersistentVolume {
    /// Where the volumes stand that no CSI driver has made.
    pub const WITHOUT_DRIVER: &str = "without-driver";

    /// Where the volumes of a class stand that name no claim.
    pub fn shelf_of_class(class: &str) -> String {
        joined(["class", class, ""])
    }

    /// Where the volumes stand that name a claim.
    pub fn shelf_of_claim(namespace: &str, name: &str) -> String {
        joined(["claim", namespace, name])
    }

    /// Where the volumes of a CSI driver stand that have this handle; there may be several.
    pub fn shelf_of_handle(driver: &str, handle: &str) -> String {
        joined(["handle", driver, handle])
    }

    pub(super) fn own_shelves(&self) -> Vec<String> {
        let of_use = match &self.spec.claim_ref {
            Some(claim) => Self::shelf_of_claim(&claim.namespace, &claim.name),
            None => Self::shelf_of_class(self.class()),
        };
        let of_source = match &self.spec.csi {
            Some(csi) => Self::shelf_of_handle(&csi.driver, &csi.volume_handle),
            None => Self::WITHOUT_DRIVER.to_owned(),
        };
        vec![of_use, of_source]
    }
}

impl PersistentVolumeClaim {
    /// Where the claims stand that name a volume.
    pub fn shelf_of_volume(name: &str) -> String {
        joined(["volume", name, ""])
    }

    pub(super) fn own_shelves(&self) -> Vec<String> {
        let name = Some(&self.spec.volume_name).filter(|name| !name.is_empty());
        name.map(|name| Self::shelf_of_volume(name)).into_iter().collect()
    }
}

impl VolumeAttachment {
    /// Where the attachments to a node stand.
    pub fn shelf_of_node(name: &str) -> String {
        joined(["node", name, ""])
    }

    /// Where the attachments of a volume stand.
    pub fn shelf_of_volume(name: &str) -> String {
        joined(["volume", name, ""])
    }

    pub(super) fn own_shelves(&self) -> Vec<String> {
        let volume = self.spec.source.persistent_volume_name.as_deref().map(Self::shelf_of_volume);
        volume.into_iter().chain([Self::shelf_of_node(&self.spec.node_name)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::object::{Kind, Objects, ReadableKind};

    fn put(objects: &mut Objects, name: &str, spec: &Value) {
        let value = json!({ "metadata": { "name": name }, "spec": spec });
        objects.put(ReadableKind::of::<PersistentVolume>().read(&value.to_string()).expect("a volume"));
    }

    fn on(objects: &Objects, shelf: &str) -> Vec<String> {
        let found: Vec<String> = { objects.on_shelf::<PersistentVolume>(shelf) }
            .map(|(key, volume)| {
                assert_eq!(*key.name, *volume.metadata.name);
                key.name.to_string()
            })
            .collect();
        assert_eq!(objects.count_on_shelf::<PersistentVolume>(shelf), found.len());
        found
    }

    #[test]
    fn objects_move_between_shelves_as_they_change() {
        let mut objects = Objects::default();
        let csi = json!({ "driver": "d", "volumeHandle": "h" });
        put(&mut objects, "b", &json!({ "storageClassName": "fast", "csi": csi }));
        put(&mut objects, "a", &json!({ "storageClassName": "fast", "csi": csi }));
        put(&mut objects, "c", &json!({ "storageClassName": "fast" }));
        let (class, claim) =
            (PersistentVolume::shelf_of_class("fast"), PersistentVolume::shelf_of_claim("shop", "data"));
        assert_eq!(on(&objects, &class), ["a", "b", "c"]);
        assert_eq!(on(&objects, &PersistentVolume::shelf_of_handle("d", "h")), ["a", "b"]);
        assert_eq!(on(&objects, PersistentVolume::WITHOUT_DRIVER), ["c"]);

        let before = objects.clone();
        let bound = json!({
            "storageClassName": "fast", "csi": csi, "claimRef": { "namespace": "shop", "name": "data" },
        });
        put(&mut objects, "a", &bound);
        assert_eq!(
            (on(&objects, &class), on(&objects, &claim)),
            (vec!["b".into(), "c".into()], vec!["a".into()])
        );
        let a = objects.of_kind(PersistentVolume::ID).next().expect("it is there");
        assert!(objects.remove(PersistentVolume::ID, &a.key));
        assert_eq!(on(&objects, &claim), [""; 0]);
        objects.put(a);
        assert_eq!(on(&objects, &claim), ["a"], "an object that was taken out knows its shelves");
        assert_eq!(on(&before, &class), ["a", "b", "c"], "a clone stays as it was");
    }

    #[test]
    fn claims_and_attachments_are_found_by_what_they_name() {
        let claim = |volume: &str| {
            let value = json!({ "spec": { "volumeName": volume } });
            serde_json::from_value::<PersistentVolumeClaim>(value).expect("a claim").shelves()
        };
        assert_eq!((claim("v"), claim("")), (vec!["volume/v/".to_owned()], vec![]));
        let attachment = |source: &Value| {
            let value = json!({ "spec": { "nodeName": "n", "source": source } });
            serde_json::from_value::<VolumeAttachment>(value).expect("an attachment").shelves()
        };
        assert_eq!(attachment(&json!({ "persistentVolumeName": "v" })), ["volume/v/", "node/n/"]);
        assert_eq!(attachment(&json!({})), ["node/n/"]);
    }
}
