//! From the text of an object to something the cluster takes.

mod known_by;
mod place;

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use self::place::{FieldPath, FieldStep};
use self::place::{offset_of, path_at, reason_of};
use crate::nearest::nearest;
use crate::node::NodeWords;
use crate::object::{KindId, Object, ReadableKind};
use crate::pod::PodWords;
use crate::protobuf::{self, Malformed};
use crate::raw::RawObject;
use crate::wire::{ByGoRules, from_json};

/// Reads objects of the kinds that somebody reads.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    kinds: Vec<ReadableKind>,
    keep_raw: bool,
    keep_progress: bool,
    /// Kinds other than pods and nodes whose objects keep their text.
    kept: Vec<KindId>,
}

/// What an object turned out to be.
#[derive(Debug)]
pub enum Decoded {
    /// A pod.
    Pod(Box<PodWords>),
    /// A node.
    Node(Box<NodeWords>),
    /// An object of a kind that somebody reads.
    Object(Object),
    /// An object of a kind that Kubernetes has but nobody reads.
    Unread {
        /// Its kind.
        kind: Box<str>,
        /// Its group and version.
        api_version: Box<str>,
        /// The same kind in another version, which somebody reads.
        other_version: Option<OtherVersion>,
    },
}

/// An object in a version that nobody reads, of a kind that somebody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// What the object is.
    pub found: String,
    /// What is read.
    pub read: KindId,
}

/// Why an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON, or not an object.
    #[error("not a Kubernetes object: {reason}")]
    Malformed {
        /// What the parser says.
        reason: String,
        /// How many bytes of the text had been read.
        offset: usize,
    },
    /// Neither Kubernetes nor an enabled plugin knows the kind.
    #[error(
        "{object}: kind {kind:?} of apiVersion {api_version:?} is unknown; {}",
        meant.as_ref().map_or_else(
            || "remove the object, correct its kind, or enable a plugin that reads it".to_owned(),
            |meant| format!("did you mean {meant}?"),
        )
    )]
    UnknownKind {
        /// The object's name.
        object: String,
        /// Its kind.
        kind: String,
        /// Its group and version.
        api_version: String,
        /// The kind and the apiVersion that may be meant.
        meant: Option<String>,
    },
    /// A field does not hold what it should.
    #[error("{object}: {path}: {reason}")]
    Field {
        /// The object's kind and name.
        object: String,
        /// Where in the object.
        path: FieldPath,
        /// What is wrong there.
        reason: String,
    },
}

impl From<Malformed> for DecodeError {
    fn from(malformed: Malformed) -> Self {
        DecodeError::Malformed { reason: malformed.to_string(), offset: 0 }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Header {
    api_version: String,
    kind: String,
}

/// An object, as far as its name.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamedWords {
    pub(crate) metadata: NameWords,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NameWords {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Decoder {
    /// Reads pods, nodes and these kinds. With `keep_raw` every pod and node keeps its own text.
    pub fn new(kinds: impl IntoIterator<Item = ReadableKind>, keep_raw: bool) -> Self {
        let mut read: Vec<ReadableKind> = Vec::new();
        for kind in kinds {
            if !read.iter().any(|known| known.is_same(&kind)) {
                read.push(kind);
            }
        }
        Decoder { kinds: read, keep_raw, keep_progress: false, kept: Vec::new() }
    }

    /// Lets pods know their phases and when they were scheduled, if somebody reads that. It takes memory for every pod, and a
    /// pod that begins to run is a change then.
    #[must_use]
    pub fn keeping_progress(self, keep_progress: bool) -> Self {
        Decoder { keep_progress, ..self }
    }

    /// Lets objects of these kinds keep their text, whether or not anybody else reads them.
    #[must_use]
    pub fn keeping(mut self, kinds: &[KindId]) -> Self {
        self.kept.extend_from_slice(kinds);
        self
    }

    /// Reads one object.
    pub fn decode(&self, json: &str) -> Result<Decoded, DecodeError> {
        // Most texts begin with what they are, which saves reading them twice. If anything is odd, start over: the
        // careful way finds better words for it.
        if let Some((api_version, kind)) = leading_header(json)
            && let Ok(decoded) = self.decode_as(json, api_version, kind)
            && !matches!(decoded, Decoded::Unread { .. })
        {
            return Ok(decoded);
        }
        let header: Header = from_json(json).map_err(|error| malformed(json, &error))?;
        self.decode_as(json, &header.api_version, &header.kind)
    }

    /// Reads one object of a kind that is known beforehand: objects in lists do not say what they are.
    pub fn decode_kind(&self, json: &str, kind: KindId) -> Result<Decoded, DecodeError> {
        self.decode_as(json, &kind.api_version(), kind.kind)
    }

    /// Reads one object of a kind that is known by its names: items of a list of pods need not say that they are pods.
    pub fn decode_as(&self, json: &str, api_version: &str, kind: &str) -> Result<Decoded, DecodeError> {
        match (api_version, kind) {
            ("v1", "Pod") => {
                let (raw, keeps_progress) = (self.raw(json), self.keep_progress);
                Ok(Decoded::Pod(Box::new(PodWords { raw, keeps_progress, ..read(json, "Pod")? })))
            }
            ("v1", "Node") => {
                Ok(Decoded::Node(Box::new(NodeWords { raw: self.raw(json), ..read(json, "Node")? })))
            }
            _ => {
                let readable = (self.kinds.iter())
                    .find(|readable| readable.id.kind == kind && readable.id.api_version() == api_version);
                let kept =
                    (self.kept.iter()).find(|kept| kept.kind == kind && kept.api_version() == api_version);
                match (readable, kept) {
                    (Some(readable), None) => self.read_object(readable, json).map(Decoded::Object),
                    (readable, Some(kept)) => {
                        let mut object = match readable {
                            Some(readable) => self.read_object(readable, json)?,
                            None => Object::of_text(*kept, json)?,
                        };
                        object.raw = Some(Arc::new(RawObject::new(json)));
                        Ok(Decoded::Object(object))
                    }
                    (None, None) if is_built_in(api_version, kind) => Ok(Decoded::Unread {
                        kind: kind.into(),
                        api_version: api_version.into(),
                        other_version: self.other_version(api_version, kind),
                    }),
                    (None, None) => Err(DecodeError::UnknownKind {
                        object: describe(json, "object"),
                        kind: kind.to_owned(),
                        api_version: api_version.to_owned(),
                        meant: self.meant(api_version, kind),
                    }),
                }
            }
        }
    }

    /// Whether objects of a kind may be read from protobuf: those of which nobody wants the text.
    pub fn reads_protobuf(&self, kind: KindId) -> bool {
        !self.keep_raw && (kind == KindId::POD || kind == KindId::NODE)
    }

    /// Reads one object of a kind from the message that it is in protobuf. See [`Decoder::reads_protobuf`].
    pub fn decode_protobuf(&self, message: &[u8], kind: KindId) -> Result<Decoded, DecodeError> {
        match kind {
            KindId::POD => {
                let keeps_progress = self.keep_progress;
                Ok(Decoded::Pod(Box::new(PodWords { keeps_progress, ..protobuf::read(message)? })))
            }
            KindId::NODE => Ok(Decoded::Node(Box::new(protobuf::read(message)?))),
            _ => Err(DecodeError::Malformed { reason: format!("{} come as text", kind.plural), offset: 0 }),
        }
    }

    fn other_version(&self, api_version: &str, kind: &str) -> Option<OtherVersion> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let read = self.read_kinds().find(|read| read.kind == kind && read.group == group)?;
        Some(OtherVersion { found: format!("{kind} ({api_version})"), read })
    }

    /// Reads an object, as each of the types that somebody reads of its kind.
    fn read_object(&self, first: &ReadableKind, json: &str) -> Result<Object, DecodeError> {
        let mut object = first.read(json)?;
        for other in self.kinds.iter().filter(|other| other.id == first.id && !other.is_same(first)) {
            object = object.also_as(other.read(json)?);
        }
        Ok(object)
    }

    /// The kinds that are read, or kept as text.
    fn read_kinds(&self) -> impl Iterator<Item = KindId> {
        self.kinds.iter().map(|readable| readable.id).chain(self.kept.iter().copied())
    }

    /// What kind may be meant: another spelling in the same apiVersion, or the kind's own apiVersion.
    fn meant(&self, api_version: &str, kind: &str) -> Option<String> {
        let core = CORE.iter().chain(&["Node", "Pod"]).map(|kind| ("v1".to_owned(), *kind));
        let read = self.read_kinds().map(|read| (read.api_version(), read.kind));
        let known: Vec<(String, &str)> = core.chain(read).collect();
        if let Some((of, _)) = known.iter().find(|(_, known)| *known == kind) {
            return Some(format!("apiVersion {of:?}"));
        }
        let of_version = known.iter().filter(|(of, _)| of == api_version).map(|(_, kind)| *kind);
        let plural = kind.strip_suffix('s').unwrap_or(kind);
        nearest(kind, of_version.clone())
            .or_else(|| nearest(plural, of_version))
            .map(|meant| format!("{meant:?}"))
    }

    fn raw(&self, json: &str) -> Option<Arc<RawObject>> {
        self.keep_raw.then(|| Arc::new(RawObject::new(json)))
    }
}

fn malformed(json: &str, error: &serde_json::Error) -> DecodeError {
    DecodeError::Malformed { reason: reason_of(error), offset: offset_of(json, error) }
}

/// The `apiVersion` and the `kind` of a text that begins with them, in this order.
pub fn leading_header(json: &str) -> Option<(&str, &str)> {
    fn entry<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
        let text = text.trim_start().strip_prefix('"')?.strip_prefix(name)?.strip_prefix('"')?;
        let text = text.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        let (value, rest) = text.split_once('"')?;
        (!value.contains('\\')).then_some((value, rest))
    }
    let (api_version, rest) = entry(json.trim_start().strip_prefix('{')?, "apiVersion")?;
    let (kind, _) = entry(rest.trim_start().strip_prefix(',')?, "kind")?;
    Some((api_version, kind))
}

/// Reads an object of a kind that is known.
pub(crate) fn read<T: DeserializeOwned>(json: &str, kind: &str) -> Result<T, DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = T::deserialize(ByGoRules(&mut deserializer)).map_err(|error| {
        if !error.is_data() {
            return malformed(json, &error);
        }
        let path = path_at(json, offset_of(json, &error));
        DecodeError::Field { object: describe(json, kind), path, reason: reason_of(&error) }
    })?;
    deserializer.end().map_err(|error| malformed(json, &error))?;
    Ok(value)
}

/// The object's kind and name, as far as they can be read.
fn describe(json: &str, kind: &str) -> String {
    match from_json::<NamedWords>(json) {
        Ok(NamedWords { metadata }) if !metadata.name.is_empty() => match &*metadata.namespace {
            "" => format!("{kind} {}", metadata.name),
            namespace => format!("{kind} {namespace}/{}", metadata.name),
        },
        _ => format!("{kind} without a name"),
    }
}

/// The kinds of the core group, apart from pods and nodes.
const CORE: &[&str] = &[
    "Binding",
    "ComponentStatus",
    "ConfigMap",
    "Endpoints",
    "Event",
    "LimitRange",
    "List",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodStatusResult",
    "PodTemplate",
    "RangeAllocation",
    "ReplicationController",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
];

/// Whether Kubernetes itself has the kind. Groups of its own end in `.k8s.io`; the older ones are listed.
fn is_built_in(api_version: &str, kind: &str) -> bool {
    const APPS: &[&str] = &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];
    const EXTENSIONS: &[&str] =
        &["DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"];
    match api_version.split_once('/') {
        None => api_version == "v1" && CORE.contains(&kind),
        Some(("apps", _)) => APPS.contains(&kind),
        Some(("batch", _)) => ["Job", "CronJob"].contains(&kind),
        Some(("autoscaling", _)) => ["HorizontalPodAutoscaler", "Scale"].contains(&kind),
        Some(("extensions", _)) => EXTENSIONS.contains(&kind),
        Some(("policy", _)) => ["Eviction", "PodDisruptionBudget"].contains(&kind),
        Some((group, _)) => group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io") && !kind.is_empty(),
    }
}

#[cfg(test)]
mod several;
#[cfg(test)]
mod tests;
