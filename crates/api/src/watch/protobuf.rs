//! What a server writes into a watch in protobuf: for each event a `WatchEvent` of Kubernetes' API machinery, whose object is wrapped up as
//! in storage, with its kind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use supercargo_model::protobuf::{Fields, Malformed, Value};

use super::{ErrorWords, VersionWords, VersionedWords};

/// What stands before an object that is wrapped up.
const MAGIC: &[u8] = b"k8s\0";

/// The type of an event, and the message of its object.
pub(super) fn event(frame: &[u8]) -> Result<(Cow<'_, str>, &[u8]), Malformed> {
    let (mut name, mut object) = (Cow::default(), &[][..]);
    for field in Fields::of(frame) {
        match field? {
            (1, value) => name = value.text()?,
            // A `RawExtension`.
            (2, value) => object = inside(value.bytes()?, 1)?,
            _ => {}
        }
    }
    Ok((name, unwrap(object)?))
}

/// The message of an object that is wrapped up in an `Unknown`. One that is not stands for itself.
fn unwrap(object: &[u8]) -> Result<&[u8], Malformed> {
    object.strip_prefix(MAGIC).map_or(Ok(object), |unknown| inside(unknown, 2))
}

/// The bytes in the field of a number.
fn inside(message: &[u8], number: u32) -> Result<&[u8], Malformed> {
    Fields::of(message).last(number)?.map_or(Ok(&[]), Value::bytes)
}

/// `metadata.resourceVersion` of an object.
pub(super) fn resource_version(object: &[u8]) -> Result<Option<Cow<'_, str>>, Malformed> {
    let version = Fields::of(inside(object, 1)?).last(6)?.map_or(Ok(Cow::default()), Value::text)?;
    Ok((!version.is_empty()).then_some(version))
}

/// What a bookmark says in its metadata.
pub(super) fn bookmark(object: &[u8]) -> Result<VersionedWords<'_>, Malformed> {
    let mut metadata = VersionWords::default();
    for field in Fields::of(inside(object, 1)?) {
        match field? {
            (6, value) => metadata.resource_version = value.text()?,
            (12, value) => {
                let mut entry = (Cow::default(), Cow::default());
                for field in value.fields()? {
                    match field? {
                        (1, key) => entry.0 = key.text()?,
                        (2, value) => entry.1 = value.text()?,
                        _ => {}
                    }
                }
                metadata.annotations.get_or_insert_with(BTreeMap::new).extend([entry]);
            }
            _ => {}
        }
    }
    Ok(VersionedWords { metadata })
}

/// What a `Status` says that is wrapped up, as the body of an answer is; none if the body is not wrapped up.
pub(super) fn error_in_body(body: &[u8]) -> Option<Result<ErrorWords, Malformed>> {
    body.starts_with(MAGIC).then(|| error(unwrap(body)?))
}

/// What a `Status` says.
pub(super) fn error(object: &[u8]) -> Result<ErrorWords, Malformed> {
    let mut error = ErrorWords::default();
    for field in Fields::of(object) {
        match field? {
            (3, value) => error.message = value.text()?.into_owned(),
            (4, value) => error.reason = value.text()?.into_owned(),
            (6, value) => error.code = u16::try_from(value.number()?).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(error)
}

#[cfg(test)]
mod tests {
    use super::super::{Bookmark, EventKind, EventWords, Written, resource_version};
    use super::*;

    /// A message of fields that are texts or messages.
    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let field = |(number, value): &(u8, &[u8])| {
            let length = u8::try_from(value.len()).expect("a short text");
            assert!(length < 0x80, "one byte is enough for the length");
            [&[number << 3 | 2, length], *value].concat()
        };
        fields.iter().flat_map(field).collect()
    }

    /// An event as servers write it.
    fn event_of(name: &str, object: &[u8]) -> Vec<u8> {
        let kind = message(&[(1, b"v1"), (2, b"Pod")]);
        let unknown = message(&[(1, &kind), (2, object), (3, b""), (4, b"")]);
        let extension = message(&[(1, &[MAGIC, &unknown].concat())]);
        message(&[(1, name.as_bytes()), (2, &extension)])
    }

    #[test]
    fn events_are_taken_apart() {
        let object = message(&[(1, &message(&[(1, b"a"), (6, b"7")]))]);
        for (name, kind) in [
            ("ADDED", EventKind::Put),
            ("MODIFIED", EventKind::Put),
            ("DELETED", EventKind::Removed),
            ("BOOKMARK", EventKind::Bookmark),
            ("ERROR", EventKind::Error),
        ] {
            let frame = event_of(name, &object);
            let object = Written::Protobuf(&object);
            assert_eq!(EventWords::read_protobuf(&frame), Ok(EventWords { kind, object }));
        }
        assert_eq!(resource_version(Written::Protobuf(&object)).as_deref(), Some("7"));
        assert_eq!(resource_version(Written::Protobuf(b"")), None);
        assert_eq!(
            EventWords::read_protobuf(&event_of("NEW", b"")),
            Err("unknown event type \"NEW\"".to_owned())
        );
        assert!(EventWords::read_protobuf(b"{\"type\":\"ADDED\"}").is_err());
    }

    #[test]
    fn the_bookmark_that_ends_a_list_is_known() {
        let read = |annotations: &[(u8, &[u8])]| {
            let metadata: Vec<u8> = [message(&[(6, b"9")]), message(annotations)].concat();
            Bookmark::read(Written::Protobuf(&message(&[(1, &metadata)])))
        };
        let bookmark = |ends_list| Ok(Bookmark { resource_version: "9".to_owned(), ends_list });
        let annotation = |key: &str, value: &str| message(&[(1, key.as_bytes()), (2, value.as_bytes())]);
        assert_eq!(read(&[]), bookmark(false));
        assert_eq!(read(&[(12, &annotation("a", "b"))]), bookmark(false));
        let end = annotation("k8s.io/initial-events-end", "true");
        assert_eq!(read(&[(12, &annotation("a", "b")), (12, &end)]), bookmark(true));
    }

    #[test]
    fn errors_are_understood() {
        let texts = message(&[(2, b"Failure"), (3, b"too old"), (4, b"Expired"), (5, b"")]);
        let status = [texts, vec![6 << 3, 0x9a, 0x03]].concat();
        let words = |error: ErrorWords| (error.code, error.reason, error.message);
        let expected = (410, "Expired".to_owned(), "too old".to_owned());
        assert_eq!(words(ErrorWords::read(Written::Protobuf(&status))), expected);
        assert_eq!(ErrorWords::read(Written::Protobuf(b"\xff")).code, 0);

        let kind = message(&[(1, b"v1"), (2, b"Status")]);
        let body = [MAGIC, &message(&[(1, &kind), (2, &status), (3, b""), (4, b"")])].concat();
        assert_eq!(ErrorWords::in_body(&body).map(words), Some(expected.clone()));
        let json = br#"{"kind":"Status","message":"too old","reason":"Expired","code":410}"#;
        assert_eq!(ErrorWords::in_body(json).map(words), Some(expected));
        for body in [&b""[..], b"k8s\0\xff", b"k8s\0", b"{}", b"404 page not found", &status] {
            assert!(ErrorWords::in_body(body).is_none(), "{body:02x?}");
        }
    }
}
