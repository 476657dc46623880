//! What an object is known by, for one that cannot be read.

use serde::Deserialize;

use super::Decoded;
use crate::node::NodeWords;
use crate::object::{KindId, MetadataWords, Object, ObjectKey};
use crate::pod::PodWords;
use crate::protobuf::Fields;
use crate::wire::from_json;

/// As little as possible is read: all that is not here may be wrong.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Words {
    metadata: Known,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Known {
    namespace: String,
    name: String,
    uid: String,
}

/// The same object with nothing in it but its namespace, name and UID, which say which one it is. None if not even they can be read.
impl Decoded {
    /// Of an object in JSON.
    pub fn known_by_json(json: &str, kind: KindId) -> Option<Self> {
        from_json(json).ok().and_then(|Words { metadata }| metadata.object(kind))
    }

    /// Of an object in protobuf.
    pub fn known_by_protobuf(message: &[u8], kind: KindId) -> Option<Self> {
        let mut known = Known::default();
        // What stands before a mistake can be read.
        for (_, metadata) in Fields::of(message).map_while(Result::ok).filter(|(number, _)| *number == 1) {
            for (number, value) in metadata.fields().ok()?.map_while(Result::ok) {
                let field = match number {
                    1 => &mut known.name,
                    3 => &mut known.namespace,
                    5 => &mut known.uid,
                    _ => continue,
                };
                *field = value.text().ok()?.into_owned();
            }
        }
        known.object(kind)
    }
}

impl Known {
    fn object(self, kind: KindId) -> Option<Decoded> {
        let Known { namespace, name, uid } = self;
        if name.is_empty() || (kind == KindId::POD && uid.is_empty()) {
            return None;
        }
        let metadata = |namespace, name| MetadataWords { namespace, name, uid, ..MetadataWords::default() };
        Some(match kind {
            KindId::POD => {
                let metadata = metadata(namespace, name);
                Decoded::Pod(Box::new(PodWords { metadata, ..PodWords::default() }))
            }
            KindId::NODE => {
                let metadata = metadata(namespace, name);
                Decoded::Node(Box::new(NodeWords { metadata, ..NodeWords::default() }))
            }
            _ => {
                let key = ObjectKey { namespace: namespace.into(), name: name.into() };
                Decoded::Object(Object::unread(kind, key))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::kinds::Namespace;

    fn shown(known: Option<Decoded>) -> Option<String> {
        let known = known?;
        let metadata = match &known {
            Decoded::Pod(pod) => pod.metadata(),
            Decoded::Node(node) => node.metadata(),
            Decoded::Object(object) => {
                assert!(!object.is_read());
                return Some(format!("{object:?}"));
            }
            Decoded::Unread { .. } => panic!("it is of a kind that is read"),
        };
        Some(format!("{}/{} {}", metadata.namespace, metadata.name, metadata.uid))
    }

    #[test]
    fn an_object_is_known_whatever_else_it_says() {
        for (kind, json, expected) in [
            (
                KindId::POD,
                r#"{"metadata":{"namespace":"a","name":"p","uid":"u","labels":5},"spec":7}"#,
                Some("a/p u"),
            ),
            (
                KindId::POD,
                r#"{"spec":{"\ud800":1e999},"metadata":{"name":"p","uid":"u"},"status":null}"#,
                Some("/p u"),
            ),
            (KindId::NODE, r#"{"metadata":{"name":"n"},"status":[]}"#, Some("/n ")),
            (Namespace::ID, r#"{"metadata":{"name":"n","uid":"u","labels":"no"}}"#, Some("Namespace /n")),
            (KindId::POD, r#"{"metadata":{"namespace":"a","name":"p"}}"#, None),
            (KindId::NODE, r#"{"metadata":{"uid":"u"}}"#, None),
            (KindId::NODE, r#"{"metadata":{"name":[]}}"#, None),
            (KindId::NODE, r#"{"metadata":{"name":"n"}"#, None),
        ] {
            assert_eq!(shown(Decoded::known_by_json(json, kind)).as_deref(), expected, "{json}");
        }
        for (kind, message, expected) in [
            // Field 2 of the metadata and of the pod is none, or is cut off.
            (KindId::POD, &b"\x0a\x0a\x0a\x01p\x1a\x01a\x2a\x01u\x13\x12\xff"[..], Some("a/p u")),
            (KindId::POD, b"\x0a\x06\x0a\x01p\x2a\x01u\x12\xff", Some("/p u")),
            (KindId::POD, b"\x0a\x06\x0a\x01\xff\x2a\x01u\x12\xff", Some("/\u{fffd} u")),
            (KindId::NODE, b"\x0a\x03\x0a\x01n\x12\x05", Some("/n ")),
            (KindId::POD, b"\x0a\x03\x0a\x01p", None),
            (KindId::POD, b"\x08\x03", None),
            (KindId::POD, b"\x12\xff\x0a\x06\x0a\x01p\x2a\x01u", None),
        ] {
            assert_eq!(
                shown(Decoded::known_by_protobuf(message, kind)).as_deref(),
                expected,
                "{message:02x?}"
            );
        }
    }
}
