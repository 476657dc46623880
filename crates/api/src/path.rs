//! Where things are on an API server.

use std::fmt::Write as _;

use supercargo_model::{KindId, ObjectKey};

/// `/api/v1` or `/apis/GROUP/VERSION`: where the server tells what it has of a version.
pub fn of_version(kind: KindId) -> String {
    match kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    }
}

/// Where all objects of a kind are.
pub fn of_kind(kind: KindId) -> String {
    format!("{}/{}", of_version(kind), kind.plural)
}

/// Where all objects of a kind are, or those of a namespace.
pub fn of_kind_in(kind: KindId, namespace: Option<&str>) -> String {
    let Some(namespace) = namespace else { return of_kind(kind) };
    let mut path = of_version(kind);
    path.push_str("/namespaces/");
    push_escaped(&mut path, namespace);
    path.push('/');
    path.push_str(kind.plural);
    path
}

/// Where one object is.
pub fn of_object(kind: KindId, key: &ObjectKey, subresource: Option<&str>) -> String {
    let mut path = of_version(kind);
    if !key.namespace.is_empty() {
        path.push_str("/namespaces/");
        push_escaped(&mut path, &key.namespace);
    }
    path.push('/');
    path.push_str(kind.plural);
    path.push('/');
    push_escaped(&mut path, &key.name);
    if let Some(subresource) = subresource {
        path.push('/');
        path.push_str(subresource);
    }
    path
}

/// Where a pod is.
pub fn of_pod(namespace: &str, name: &str, subresource: Option<&str>) -> String {
    let mut path = String::with_capacity(64);
    path.push_str("/api/v1/namespaces/");
    push_escaped(&mut path, namespace);
    path.push_str("/pods/");
    push_escaped(&mut path, name);
    if let Some(subresource) = subresource {
        path.push('/');
        path.push_str(subresource);
    }
    path
}

/// Writes a part of a path, or a value in a query, so that nothing in it is taken for something else.
pub fn push_escaped(path: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing into a string never fails.
            let _ = write!(path, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        let claim = KindId {
            group: "",
            version: "v1",
            kind: "PersistentVolumeClaim",
            plural: "persistentvolumeclaims",
        };
        let class =
            KindId { group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses" };
        let key = |namespace: &str, name: &str| ObjectKey { namespace: namespace.into(), name: name.into() };
        assert_eq!(of_kind(claim), "/api/v1/persistentvolumeclaims");
        assert_eq!(of_kind(class), "/apis/storage.k8s.io/v1/storageclasses");
        assert_eq!(
            of_object(claim, &key("a", "b"), Some("status")),
            "/api/v1/namespaces/a/persistentvolumeclaims/b/status"
        );
        assert_eq!(of_object(class, &key("", "b"), None), "/apis/storage.k8s.io/v1/storageclasses/b");
        assert_eq!(of_pod("a", "b", Some("binding")), "/api/v1/namespaces/a/pods/b/binding");
    }

    #[test]
    fn no_name_leads_astray() {
        assert_eq!(of_pod("a/../b", "c?d#e", None), "/api/v1/namespaces/a%2F..%2Fb/pods/c%3Fd%23e");
    }
}
