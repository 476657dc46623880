//! From texts to the objects in them.

use std::collections::BTreeMap;
use std::fmt;
use std::thread;

use supercargo_model::{DecodeError, Decoded, Decoder};

use crate::split::{Item, split, to_json};

/// Reasons longer than this are cut.
const REASON_CHARACTERS_MAX: usize = 400;

/// The objects of one or several dumps.
#[derive(Debug, Default)]
pub struct Dump {
    /// The objects, in the order in which they were written.
    pub objects: Vec<(Location, Decoded)>,
    /// Kinds that were left out and why, with how many objects of each there were.
    pub ignored: Ignored,
}

/// Kinds that were left out, and why.
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

/// Reads dumps, given with the names that errors call them by, on all cores.
pub fn read_dumps(dumps: &[(&str, &str)], decoder: &Decoder) -> Result<Dump, DumpError> {
    let mut read = Dump::default();
    for (number, (name, text)) in dumps.iter().enumerate() {
        let unreadable = |reason| DumpError::Unreadable { name: (*name).to_owned(), reason: shorten(reason) };
        let items = split(text).map_err(unreadable)?;
        for (item, result) in decode_all(&items, decoder).into_iter().enumerate() {
            match result {
                Ok(Decoded::Unread { other_version: Some(other) }) => {
                    let kind = format!("{}: print it as {} instead", other.found, other.read.api_version());
                    *read.ignored.entry(kind).or_default() += 1;
                }
                Ok(decoded) => read.objects.push((Location { dump: number, item }, decoded)),
                Err(Failure::Ignored(kind)) => *read.ignored.entry(kind).or_default() += 1,
                // A text that is cut shows in its last object.
                Err(Failure::Broken(reason)) => {
                    let reason = shorten(reason);
                    return Err(DumpError::Object { name: (*name).to_owned(), number: item + 1, reason });
                }
            }
        }
    }
    Ok(read)
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

fn decode_all(items: &[Item<'_>], decoder: &Decoder) -> Vec<Result<Decoded, Failure>> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let chunk = items.len().div_ceil(workers).max(1);
    let decode_chunk =
        |items: &[Item<'_>]| items.iter().map(|item| decode(*item, decoder)).collect::<Vec<_>>();
    thread::scope(|scope| {
        let running: Vec<_> =
            items.chunks(chunk).map(|items| scope.spawn(move || decode_chunk(items))).collect();
        let results = running.into_iter().map(|worker| worker.join().expect("decoding does not panic"));
        results.flatten().collect()
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
