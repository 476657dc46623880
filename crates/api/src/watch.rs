//! What a server writes into a watch and into a list.
//!
//! Every event passes here, so the way in which API servers really write is read without parsing: only the object itself is
//! parsed, once, by whoever knows its kind. Whatever is written differently takes the careful way.

mod protobuf;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use supercargo_model::KindId;

/// The annotation of the bookmark that ends the list in a stream.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventWords<'a> {
    /// What happened.
    pub kind: EventKind,
    /// The object.
    pub object: Written<'a>,
}

/// An object as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// As text.
    Json(&'a str),
    /// As the message of its kind.
    Protobuf(&'a [u8]),
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An object came, or changed.
    Put,
    /// An object went.
    Removed,
    /// Nothing; this is how far the watch has come.
    Bookmark,
    /// The watch is over.
    Error,
}

/// A bookmark.
#[derive(Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// How far the watch has come.
    pub resource_version: String,
    /// The list in the stream ends here.
    pub ends_list: bool,
}

/// What a server says at the end of a watch, or if it says no.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ErrorWords {
    /// The HTTP status that the error stands for.
    pub code: u16,
    /// The reason in CamelCase, such as `Expired`; empty if there is none.
    pub reason: String,
    /// What went wrong, for people.
    pub message: String,
}

/// A part of a list.
#[derive(Debug, Deserialize)]
pub struct PageWords<'a> {
    /// What the list is of. Objects in lists do not say what they are.
    #[serde(borrow, default, rename = "apiVersion")]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    /// The version of the list, and where the next part begins.
    pub metadata: PageMetadataWords,
    /// `null` for a list without objects.
    // A field that is `null` is read as none; with this, one that is missing is not.
    #[serde(borrow, deserialize_with = "Option::deserialize")]
    pub items: Option<Vec<&'a RawValue>>,
}

/// How a list goes on.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PageMetadataWords {
    /// The version of the list: a watch goes on from there.
    pub resource_version: String,
    /// Where the next part begins; empty after the last.
    pub r#continue: String,
}

impl<'a> PageWords<'a> {
    /// Reads a page of a list of this kind. What is not in a list is gone, so nothing else that comes with 200 may pass for one: the page of
    /// a proxy, a `Status`, or a list of something else.
    pub fn read(kind: KindId, text: &'a [u8]) -> Result<Self, String> {
        let page: PageWords<'_> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        // A custom resource may have another name for its lists than the usual one. Its group has a dot; those of Kubernetes itself end in
        // `.k8s.io` then, and the definitions of its projects that do name their lists in the usual way.
        let may_be_custom = kind.group.contains('.') && !kind.group.ends_with(".k8s.io");
        let is_list = page.kind.strip_suffix("List") == Some(kind.kind)
            || may_be_custom && page.kind != kind.kind && page.kind != "Status";
        if !is_list || page.api_version != kind.api_version() {
            return Err(format!(
                "a list of {} {} is expected, and this is {:?} {:?}",
                kind.api_version(),
                kind.kind,
                page.api_version,
                page.kind
            ));
        }
        Ok(page)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionedWords<'a> {
    #[serde(borrow)]
    metadata: VersionWords<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VersionWords<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    annotations: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

impl<'a> EventWords<'a> {
    /// Takes a line apart without looking into the object. If the object turns out to be none, the line was written in
    /// another way: then [`EventWords::read_carefully`].
    pub fn read(line: &'a str) -> Result<Self, String> {
        let quick = line.strip_prefix(r#"{"type":""#).and_then(|rest| {
            let (kind, rest) = rest.split_once('"')?;
            let object = rest.strip_prefix(r#","object":"#)?.trim_end().strip_suffix('}')?;
            Some(EventWords { kind: EventKind::named(kind)?, object: Written::Json(object) })
        });
        quick.map_or_else(|| EventWords::read_carefully(line), Ok)
    }

    /// Takes a line apart however it is written.
    pub fn read_carefully(line: &'a str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Words<'a> {
            #[serde(borrow)]
            r#type: Cow<'a, str>,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let words: Words<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let kind = EventKind::named(&words.r#type)
            .ok_or_else(|| format!("unknown event type {:?}", words.r#type))?;
        Ok(EventWords { kind, object: Written::Json(words.object.get()) })
    }

    /// Takes apart what a watch in protobuf has instead of a line.
    pub fn read_protobuf(frame: &'a [u8]) -> Result<Self, String> {
        let (name, object) = protobuf::event(frame).map_err(|error| error.to_string())?;
        let kind = EventKind::named(&name).ok_or_else(|| format!("unknown event type {name:?}"))?;
        Ok(EventWords { kind, object: Written::Protobuf(object) })
    }
}

impl EventKind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "ADDED" | "MODIFIED" => Some(EventKind::Put),
            "DELETED" => Some(EventKind::Removed),
            "BOOKMARK" => Some(EventKind::Bookmark),
            "ERROR" => Some(EventKind::Error),
            _ => None,
        }
    }
}

impl Bookmark {
    /// Reads the object of a bookmark.
    pub fn read(object: Written<'_>) -> Result<Self, String> {
        let VersionedWords { metadata } = match object {
            Written::Json(text) => serde_json::from_str(text).map_err(|error| error.to_string())?,
            Written::Protobuf(message) => protobuf::bookmark(message).map_err(|error| error.to_string())?,
        };
        let annotations = metadata.annotations.unwrap_or_default();
        let ends_list = annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true");
        Ok(Bookmark { resource_version: metadata.resource_version.into_owned(), ends_list })
    }
}

impl ErrorWords {
    /// Reads the object with which a watch ends. What cannot be read says nothing.
    pub fn read(object: Written<'_>) -> Self {
        match object {
            Written::Json(text) => serde_json::from_str(text).unwrap_or_default(),
            Written::Protobuf(message) => protobuf::error(message).unwrap_or_default(),
        }
    }

    /// Reads the whole body of an answer. None if it says nothing, or in another way: a proxy's page, a line of text.
    pub fn in_body(body: &[u8]) -> Option<Self> {
        let read = match protobuf::error_in_body(body) {
            Some(read) => read.ok(),
            None => serde_json::from_slice(body).ok(),
        };
        read.filter(|error| !error.message.is_empty())
    }
}

/// `metadata.resourceVersion` of an object.
pub fn resource_version(object: Written<'_>) -> Option<Cow<'_, str>> {
    let object = match object {
        Written::Json(text) => text,
        Written::Protobuf(message) => {
            return protobuf::resource_version(message).ok().flatten();
        }
    };
    if let Some(version) = leading_resource_version(object) {
        return Some(Cow::Borrowed(version));
    }
    let VersionedWords { metadata } = serde_json::from_str(object).ok()?;
    (!metadata.resource_version.is_empty()).then_some(metadata.resource_version)
}

/// The same, if nothing but texts stands before it, as is the case in what API servers write.
fn leading_resource_version(object: &str) -> Option<&str> {
    let metadata = leading_value(object.strip_prefix('{')?, "metadata")?;
    let version = leading_value(metadata.strip_prefix('{')?, "resourceVersion")?;
    text(version).map(|(version, _)| version)
}

/// What stands after a key, if all entries before it are texts.
fn leading_value<'a>(mut entries: &'a str, key: &str) -> Option<&'a str> {
    loop {
        let (found, rest) = text(entries)?;
        let value = rest.strip_prefix(':')?;
        if found == key {
            return Some(value);
        }
        let (_, rest) = text(value)?;
        entries = rest.strip_prefix(',')?;
    }
}

/// A text without escapes at the beginning of a JSON text, and what follows it.
fn text(json: &str) -> Option<(&str, &str)> {
    let (text, rest) = json.strip_prefix('"')?.split_once('"')?;
    (!text.contains('\\')).then_some((text, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_apart() {
        let object = r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}"#;
        for (name, kind) in [
            ("ADDED", EventKind::Put),
            ("MODIFIED", EventKind::Put),
            ("DELETED", EventKind::Removed),
            ("BOOKMARK", EventKind::Bookmark),
            ("ERROR", EventKind::Error),
        ] {
            for line in [
                format!("{{\"type\":\"{name}\",\"object\":{object}}}\n"),
                format!("{{ \"type\": \"{name}\", \"object\": {object} }}\n"),
                format!("{{\"object\":{object},\"type\":\"{name}\"}}"),
            ] {
                let object = Written::Json(object);
                assert_eq!(EventWords::read(&line), Ok(EventWords { kind, object }), "{line}");
            }
        }
        for line in ["", "{", "[]", r#"{"type":"ADDED"}"#, r#"{"type":"NEW","object":{}}"#] {
            assert!(EventWords::read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_field_after_the_object_is_found_out_the_careful_way() {
        let line = r#"{"type":"ADDED","object":{"kind":"Pod"},"more":{}}"#;
        let object = |event: EventWords<'static>| event.object;
        assert_eq!(EventWords::read(line).map(object), Ok(Written::Json(r#"{"kind":"Pod"},"more":{}"#)));
        assert_eq!(EventWords::read_carefully(line).map(object), Ok(Written::Json(r#"{"kind":"Pod"}"#)));
    }

    #[test]
    fn versions_are_found_wherever_they_stand() {
        for object in [
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"b","resourceVersion":"7","generation":1}}"#,
            r#"{"metadata":{"generation":1,"resourceVersion":"7"},"kind":"Pod"}"#,
            r#"{"spec":{"claimRef":{"resourceVersion":"8"}},"metadata":{"resourceVersion":"7"}}"#,
            r#"{ "metadata" : { "resourceVersion" : "7" } }"#,
            r#"{"metadata":{"name":"a\"","resourceVersion":"7"}}"#,
        ] {
            assert_eq!(resource_version(Written::Json(object)).as_deref(), Some("7"), "{object}");
        }
        for object in
            ["", "{}", r#"{"metadata":{}}"#, r#"{"spec":{"resourceVersion":"8"}}"#, r#"{"metadata":null}"#]
        {
            assert_eq!(resource_version(Written::Json(object)), None, "{object}");
        }
    }

    #[test]
    fn the_bookmark_that_ends_a_list_is_known() {
        let read = |annotations: &str| {
            Bookmark::read(Written::Json(&format!(
                r#"{{"kind":"Pod","metadata":{{"resourceVersion":"9","creationTimestamp":null,"annotations":{annotations}}}}}"#
            )))
        };
        let bookmark = |ends_list| Ok(Bookmark { resource_version: "9".to_owned(), ends_list });
        assert_eq!(read("null"), bookmark(false));
        assert_eq!(read(r#"{"a":"b"}"#), bookmark(false));
        assert_eq!(read(r#"{"k8s.io/initial-events-end":"true"}"#), bookmark(true));
    }

    #[test]
    fn pages_are_taken_apart() {
        let text = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"abc"},"items":[{"a":1},{"b":2}]}"#;
        let page = PageWords::read(KindId::POD, text).expect("a page");
        let items: Vec<_> = page.items.into_iter().flatten().map(RawValue::get).collect();
        assert_eq!((items, &*page.metadata.r#continue), (vec![r#"{"a":1}"#, r#"{"b":2}"#], "abc"));
        let text = br#"{"metadata":{"resourceVersion":"5"},"items":null,"kind":"PodList","apiVersion":"v1"}"#;
        let page = PageWords::read(KindId::POD, text).expect("a page");
        assert_eq!((page.items.is_none(), &*page.metadata.resource_version), (true, "5"));
    }

    #[test]
    fn what_is_no_list_of_the_kind_is_no_page() {
        const GROUP: KindId = KindId {
            group: "scheduling.x-k8s.io",
            version: "v1alpha1",
            kind: "PodGroup",
            plural: "podgroups",
        };
        const CLASS: KindId =
            KindId { group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses" };
        let page = |api_version: &str, kind: &str, items: &str| {
            format!(
                r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"resourceVersion":"5"}}{items}}}"#
            )
        };
        let items = r#","items":[]"#;
        for (kind, text, is_page) in [
            (KindId::POD, page("v1", "PodList", items), true),
            (KindId::POD, page("v1", "PodList", ""), false),
            (KindId::POD, page("v1", "Pod", items), false),
            (KindId::POD, page("v1", "Status", items), false),
            (KindId::POD, page("v1", "NodeList", items), false),
            (KindId::POD, page("v2", "PodList", items), false),
            (KindId::POD, page("meta.k8s.io/v1", "PartialObjectMetadataList", items), false),
            (KindId::POD, r#"{"metadata":{},"items":[]}"#.to_owned(), false),
            (KindId::POD, r#"{"metadata":{}}"#.to_owned(), false),
            (KindId::POD, "<html>welcome</html>".to_owned(), false),
            (GROUP, page("scheduling.x-k8s.io/v1alpha1", "PodGroupList", items), true),
            // Named by its definition.
            (GROUP, page("scheduling.x-k8s.io/v1alpha1", "PodGroups", items), true),
            (GROUP, page("scheduling.x-k8s.io/v1alpha1", "PodGroup", items), false),
            (GROUP, page("v1", "PodGroupList", items), false),
            (CLASS, page("storage.k8s.io/v1", "StorageClassList", items), true),
            // These are not named by a definition.
            (CLASS, page("storage.k8s.io/v1", "StorageClasses", items), false),
            (CLASS, page("storage.k8s.io/v1", "VolumeAttachmentList", items), false),
        ] {
            assert_eq!(PageWords::read(kind, text.as_bytes()).is_ok(), is_page, "{text}");
        }
    }
}
