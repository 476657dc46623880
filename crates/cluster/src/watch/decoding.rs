//! Reads the objects that a watch tells of. One that cannot be read is left out with a warning; it never ends a watch.

use supercargo_api::watch::{EventWords, Written};
use supercargo_model::{DecodeError, Decoded, Decoder, KindId};
use tracing::warn;

use super::frames::Frame;

/// The object of an event, and how it is written.
pub(super) fn decode_event<'a>(
    decoder: &Decoder,
    kind: KindId,
    event: EventWords<'a>,
    frame: &'a Frame,
) -> (Option<Decoded>, Written<'a>) {
    if let Ok(decoded) = read(decoder, kind, event.object) {
        return (known(decoded, kind), event.object);
    }
    let object = frame.event_read_carefully().map_or(event.object, |event| event.object);
    (decode(decoder, kind, object), object)
}

/// An object.
pub(super) fn decode(decoder: &Decoder, kind: KindId, object: Written<'_>) -> Option<Decoded> {
    match read(decoder, kind, object) {
        Ok(decoded) => known(decoded, kind),
        Err(error) => {
            warn!(kind = kind.plural, "an object that cannot be read is left out: {error}");
            None
        }
    }
}

fn read(decoder: &Decoder, kind: KindId, object: Written<'_>) -> Result<Decoded, DecodeError> {
    match object {
        Written::Json(text) => decoder.decode_kind(text, kind),
        Written::Protobuf(message) => decoder.decode_protobuf(message, kind),
    }
}

fn known(decoded: Decoded, kind: KindId) -> Option<Decoded> {
    if matches!(decoded, Decoded::Unread { .. }) {
        warn!(kind = kind.plural, "no plugin reads what is watched");
        return None;
    }
    Some(decoded)
}
