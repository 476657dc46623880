//! Reads the objects that a watch tells of. One that cannot be read never ends a watch.

use supercargo_api::watch::{EventKind, EventWords, Written};
use supercargo_model::{DecodeError, Decoded, Decoder, KindId};
use tracing::warn;

use super::Watched;
use super::frames::Frame;
use super::listing::Listing;
use supercargo_client::LimitedLog;

/// What comes of reading an object.
#[derive(Debug)]
pub(super) enum Read {
    /// The object.
    Whole(Decoded),
    /// It cannot be read.
    Unreadable {
        /// It is this one; none if not even its name can be read.
        known_by: Option<Decoded>,
        /// Why it cannot be read.
        error: DecodeError,
    },
    /// No plugin reads its kind.
    Unread,
}

/// Says which objects cannot be read: whoever writes one often writes all of them, all the time.
#[derive(Debug)]
pub(super) struct UnreadableLog {
    kind: KindId,
    log: LimitedLog,
}

/// Whether an object is of a kind, as far as it says so at its beginning, where API servers do.
pub(super) fn is_of_kind(object: Written<'_>, kind: KindId) -> bool {
    let Written::Json(text) = object else { return true };
    let said = text.strip_prefix(r#"{"kind":""#);
    said.is_none_or(|said| said.strip_prefix(kind.kind).is_some_and(|rest| rest.starts_with('"')))
}

/// The object of an event, and how it is written.
pub(super) fn decode_event<'a>(
    decoder: &Decoder,
    kind: KindId,
    event: EventWords<'a>,
    frame: &'a Frame,
) -> (Read, Written<'a>) {
    if let Ok(decoded) = read(decoder, kind, event.object) {
        return (known(decoded, kind), event.object);
    }
    let object = frame.event_read_carefully().map_or(event.object, |event| event.object);
    (decode(decoder, kind, object), object)
}

/// An object.
pub(super) fn decode(decoder: &Decoder, kind: KindId, object: Written<'_>) -> Read {
    match read(decoder, kind, object) {
        Ok(decoded) => known(decoded, kind),
        Err(error) => {
            let known_by = match object {
                Written::Json(text) => Decoded::known_by_json(text, kind),
                Written::Protobuf(message) => Decoded::known_by_protobuf(message, kind),
            };
            Read::Unreadable { known_by, error }
        }
    }
}

fn read(decoder: &Decoder, kind: KindId, object: Written<'_>) -> Result<Decoded, DecodeError> {
    match object {
        Written::Json(text) => decoder.decode_kind(text, kind),
        Written::Protobuf(message) => decoder.decode_protobuf(message, kind),
    }
}

fn known(decoded: Decoded, kind: KindId) -> Read {
    if matches!(decoded, Decoded::Unread { .. }) {
        warn!(kind = kind.plural, "no plugin reads what is watched");
        return Read::Unread;
    }
    Read::Whole(decoded)
}

impl Read {
    /// What is told of an object to which this happened, perhaps while everything is listed. One that cannot be read stays as it was known, and
    /// is in the list, until it goes: for that its name is enough.
    pub(super) fn told(
        self,
        happened: EventKind,
        mut listing: Option<&mut Listing>,
        log: &UnreadableLog,
    ) -> Option<Watched> {
        match (self, happened) {
            (Read::Unread, _) => None,
            (
                Read::Whole(object) | Read::Unreadable { known_by: Some(object), error: _ },
                EventKind::Removed,
            ) => {
                listing.iter_mut().for_each(|listing| listing.remove(&object));
                Some(Watched::Removed(object))
            }
            (Read::Whole(object), _) => {
                listing.iter_mut().for_each(|listing| listing.put(&object));
                Some(Watched::Put(object))
            }
            (Read::Unreadable { known_by, error }, happened) => {
                log.warn(known_by.as_ref(), &error);
                match (&known_by, listing) {
                    (Some(object), Some(listing)) => listing.put(object),
                    (None, Some(listing)) if happened != EventKind::Removed => listing.put_unknown(),
                    _ => {}
                }
                Some(Watched::Unreadable)
            }
        }
    }
}

impl UnreadableLog {
    pub(super) fn new(kind: KindId) -> Self {
        UnreadableLog { kind, log: LimitedLog::default() }
    }

    fn warn(&self, known_by: Option<&Decoded>, error: &DecodeError) {
        if !self.log.admits("unreadable object") {
            return;
        }
        let (namespace, name) = match known_by {
            Some(Decoded::Pod(pod)) => (&*pod.metadata().namespace, &*pod.metadata().name),
            Some(Decoded::Node(node)) => ("", node.name()),
            Some(Decoded::Object(object)) => (&*object.key.namespace, &*object.key.name),
            Some(Decoded::Unread { .. }) | None => ("", ""),
        };
        let separator = if namespace.is_empty() { "" } else { "/" };
        let (kind, object) = (self.kind.plural, format!("{namespace}{separator}{name}"));
        warn!(
            err = %error,
            kind,
            object,
            "An object cannot be read; what was known of it stays, and if nothing was, it counts as not there"
        );
    }

    /// Says what was left out of the log.
    pub(super) fn write_suppressed(&self) {
        self.log.write_suppressed();
    }
}
