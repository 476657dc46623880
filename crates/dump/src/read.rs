//! From texts to the objects in them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use supercargo_model::{DecodeError, Decoded, Decoder};

use crate::split::{Item, split, to_json};

/// How many items a core takes at a time.
const BLOCK_ITEMS: usize = 128;
/// Reasons longer than this are cut.
const REASON_CHARACTERS_MAX: usize = 400;

/// Kinds that were left out and why, with how many objects of each there were.
pub type Ignored = BTreeMap<String, usize>;

/// Where an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Which of the dumps.
    pub dump: usize,
    /// Which of its objects.
    pub item: usize,
}

/// Why a dump cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// It is neither YAML nor JSON, or it was cut.
    #[error("{name} is not what kubectl prints: {reason}")]
    Unreadable {
        /// The dump.
        name: String,
        /// What the parser says.
        reason: String,
    },
    /// One of its objects cannot be read.
    #[error("{name}, object {number}: {reason}")]
    Object {
        /// The dump.
        name: String,
        /// Which of its objects, counted from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads dumps, given with the names that errors call them by, on all cores. Each object is handed on when its turn has
/// come, in the order in which they were written, so that few of them are held at a time. Returned is what was left out.
pub fn read_dumps<E: From<DumpError>>(
    dumps: &[(&str, &str)],
    decoder: &Decoder,
    mut each: impl FnMut(Location, Decoded) -> Result<(), E>,
) -> Result<Ignored, E> {
    let mut ignored = Ignored::new();
    for (dump, (name, text)) in dumps.iter().enumerate() {
        let name = || (*name).to_owned();
        let items =
            split(text).map_err(|reason| DumpError::Unreadable { name: name(), reason: shorten(reason) })?;
        decode_in_order(&items, decoder, |item, result| -> Result<(), E> {
            match result {
                Ok(Decoded::Unread { other_version: Some(other) }) => {
                    let kind = format!("{}: print it as {} instead", other.found, other.read.api_version());
                    *ignored.entry(kind).or_default() += 1;
                }
                Ok(decoded) => each(Location { dump, item }, decoded)?,
                Err(Failure::Ignored(kind)) => *ignored.entry(kind).or_default() += 1,
                // A text that is cut shows in its last object.
                Err(Failure::Broken(reason)) => {
                    let reason = shorten(reason);
                    return Err(DumpError::Object { name: name(), number: item + 1, reason }.into());
                }
            }
            Ok(())
        })?;
    }
    Ok(ignored)
}

/// What a parser quotes may be the whole dump.
fn shorten(reason: String) -> String {
    match reason.char_indices().nth(REASON_CHARACTERS_MAX) {
        None => reason,
        Some((end, _)) => format!("{}…", &reason[..end]),
    }
}

enum Failure {
    Ignored(String),
    Broken(String),
}

/// Decodes on all cores, a block of items at a time; what comes of them is handed on in order.
fn decode_in_order<E>(
    items: &[Item<'_>],
    decoder: &Decoder,
    mut each: impl FnMut(usize, Result<Decoded, Failure>) -> Result<(), E>,
) -> Result<(), E> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let next = &AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(2 * workers);
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                while let block = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(items) = items.chunks(BLOCK_ITEMS).nth(block)
                {
                    let results: Vec<_> = items.iter().map(|item| decode(*item, decoder)).collect();
                    // Nobody listens any more after an error.
                    if sender.send((block, results)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut turn) = (BTreeMap::new(), 0);
        for (block, results) in receiver {
            early.insert(block, results);
            while let Some(results) = early.remove(&turn) {
                for (place, result) in results.into_iter().enumerate() {
                    each(turn * BLOCK_ITEMS + place, result)?;
                }
                turn += 1;
            }
        }
        Ok(())
    })
}

fn decode(item: Item<'_>, decoder: &Decoder) -> Result<Decoded, Failure> {
    let mut buffer = String::new();
    let json = to_json(item, &mut buffer).map_err(Failure::Broken)?;
    decoder.decode(json).map_err(|error| match error {
        // A cluster is full of kinds that scheduling has nothing to do with.
        DecodeError::UnknownKind { kind, api_version, .. } if api_version.contains('/') => {
            Failure::Ignored(format!("{kind} ({api_version}): no plugin reads it"))
        }
        error => Failure::Broken(error.to_string()),
    })
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.item + 1)
    }
}

#[cfg(test)]
mod tests {
    use supercargo_model::ReadableKind;
    use supercargo_model::kinds::Namespace;

    use super::*;

    fn pods(count: usize) -> String {
        let items: Vec<String> = (0..count)
            .map(|number| format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{number}"}}}}"#))
            .collect();
        format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, items.join(","))
    }

    /// What is handed on, until `stop` of it have been.
    fn read(texts: &[(&str, &str)], stop: usize) -> (Vec<Location>, Result<Ignored, DumpError>) {
        let mut seen = Vec::new();
        let decoder = Decoder::new([ReadableKind::of::<Namespace>()], false);
        let result = read_dumps(texts, &decoder, |location, _| {
            seen.push(location);
            let enough = DumpError::Unreadable { name: String::new(), reason: "enough".to_owned() };
            if seen.len() == stop { Err(enough) } else { Ok(()) }
        });
        (seen, result)
    }

    #[test]
    fn objects_come_in_the_order_in_which_they_are_written() {
        let count = 10 * BLOCK_ITEMS + 3;
        let (first, second) = (pods(count), pods(2));
        let (seen, result) = read(&[("a", &first), ("b", &second)], usize::MAX);
        assert_eq!(result, Ok(Ignored::new()));
        let places = |dump, count| (0..count).map(move |item| Location { dump, item });
        assert!(seen.into_iter().eq(places(0, count).chain(places(1, 2))));
    }

    #[test]
    fn nothing_is_handed_on_after_an_error() {
        let text = pods(10 * BLOCK_ITEMS);
        let (seen, result) = read(&[("a", &text)], BLOCK_ITEMS + 1);
        assert_eq!((seen.len(), result.is_err()), (BLOCK_ITEMS + 1, true));
        let broken = text.replacen(r#""p200""#, "200", 1);
        let (seen, result) = read(&[("a", &broken)], usize::MAX);
        assert_eq!(seen.len(), 200);
        assert!(matches!(result, Err(DumpError::Object { number: 201, .. })), "{result:?}");
    }
}
