//! What a server writes into a watch in protobuf: for each event a `WatchEvent` of Kubernetes' API machinery, whose object is wrapped up as
//! in storage, with its kind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use supercargo_model::protobuf::{Fields, Malformed, Value};

use super::{ErrorWords, VersionWords, VersionedWords};

/// What stands before an object that is wrapped up.
const MAGIC: &[u8] = b"k8s\0";

/// The type of an event, and the message of its object.
pub(super) fn event(frame: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let (mut name, mut object) = ("", &[][..]);
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
pub(super) fn resource_version(object: &[u8]) -> Result<Option<&str>, Malformed> {
    let version = Fields::of(inside(object, 1)?).last(6)?.map_or(Ok(""), Value::text)?;
    Ok((!version.is_empty()).then_some(version))
}

/// What a bookmark says in its metadata.
pub(super) fn bookmark(object: &[u8]) -> Result<VersionedWords<'_>, Malformed> {
    let mut metadata = VersionWords::default();
    for field in Fields::of(inside(object, 1)?) {
        match field? {
            (6, value) => metadata.resource_version = Cow::Borrowed(value.text()?),
            (12, value) => {
                let mut entry = (Cow::default(), Cow::default());
                for field in value.fields()? {
                    match field? {
                        (1, key) => entry.0 = Cow::Borrowed(key.text()?),
                        (2, value) => entry.1 = Cow::Borrowed(value.text()?),
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

/// What a `Status` says.
pub(super) fn error(object: &[u8]) -> Result<ErrorWords, Malformed> {
    let mut error = ErrorWords::default();
    for field in Fields::of(object) {
        match field? {
            (3, value) => value.text()?.clone_into(&mut error.message),
            (6, value) => error.code = u16::try_from(value.number()?).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(error)
}
