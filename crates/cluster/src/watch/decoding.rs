//! Reads the objects that a watch tells of. One that cannot be read is left out with a warning; it never ends a watch.

use supercargo_model::{Decoded, Decoder, KindId};
use tracing::warn;

use supercargo_api::watch::EventWords;

/// The object of an event, and its text.
pub(super) fn decode_event<'a>(
    decoder: &Decoder,
    kind: KindId,
    event: EventWords<'a>,
    line: &'a str,
) -> (Option<Decoded>, &'a str) {
    if let Ok(decoded) = decoder.decode_kind(event.object, kind) {
        return (known(decoded, kind), event.object);
    }
    // The line may be written in an unusual way.
    let object = EventWords::read_carefully(line).map_or(event.object, |event| event.object);
    (decode(decoder, kind, object), object)
}

/// An object.
pub(super) fn decode(decoder: &Decoder, kind: KindId, object: &str) -> Option<Decoded> {
    match decoder.decode_kind(object, kind) {
        Ok(decoded) => known(decoded, kind),
        Err(error) => {
            warn!(kind = kind.plural, "an object that cannot be read is left out: {error}");
            None
        }
    }
}

fn known(decoded: Decoded, kind: KindId) -> Option<Decoded> {
    if matches!(decoded, Decoded::Unread { .. }) {
        warn!(kind = kind.plural, "no plugin reads what is watched");
        return None;
    }
    Some(decoded)
}
