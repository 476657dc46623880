//! What plugins remember, as text that outlives the process: the `data` of a ConfigMap, an entry a memory.
//!
//! Nothing here fails as a whole. What cannot be saved, or not be restored, is left out, and whoever asked is told what and why.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Memories, Memory};
use crate::typed::TypedMap;

/// So many bytes a saved memory may have.
pub const SAVED_MEMORY_BYTES_MAX: usize = 512 << 10;
/// So many bytes all saved memories together may have, with their names. An API server takes objects of up to 1 MiB.
pub const SAVED_BYTES_MAX: usize = 960 << 10;

/// Says how the other entries are written.
const FORMAT_ENTRY: &str = "format";
/// The only format that there is.
const FORMAT: &str = "1";
/// What the names of memories' entries begin with.
const MEMORY_PREFIX: &str = "memory.";
/// Names of entries may have so many bytes; an API server takes no longer ones.
const ENTRY_NAME_BYTES_MAX: usize = 253;

/// What plugins remember, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedMemories {
    /// The text, in entries with names.
    pub entries: BTreeMap<String, String>,
    /// What is not in it, though a plugin wants it saved.
    pub unsaved: Vec<UnsavedMemory>,
}

/// A memory that could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsavedMemory {
    /// The plugin that remembers it.
    pub plugin: &'static str,
    /// Its name.
    pub memory: &'static str,
    /// Why it could not be saved, for people.
    pub reason: String,
}

/// Something that was saved and is not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedMemory {
    /// The plugin that remembers it; empty if no plugin does.
    pub plugin: &'static str,
    /// Its name; that of the entry if no plugin remembers it, or none can be told.
    pub memory: String,
    /// Why it is not restored.
    pub reason: DropReason,
}

/// Why something that was saved is not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Everything was written in a format that is not known here.
    Format(String),
    /// It was saved by another version of the plugin.
    Version {
        /// The version that it was saved under.
        saved: u32,
        /// The version of the plugin that runs.
        known: u32,
    },
    /// It is not what the plugin writes.
    Unreadable(String),
    /// No plugin remembers it any more.
    Unknown,
}

pub(super) type Save = fn(&TypedMap, &'static str, u32, usize) -> Result<Option<String>, String>;
pub(super) type Load = fn(&mut TypedMap, &str) -> Result<(), String>;

/// An entry as it is written, and as it is read.
#[derive(Serialize)]
struct Written<'a, M> {
    plugin: &'static str,
    version: u32,
    value: &'a M,
}

#[derive(Deserialize)]
struct Found<'a> {
    version: u32,
    #[serde(borrow)]
    value: &'a RawValue,
}

impl DropReason {
    /// A word for it, for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            DropReason::Format(_) => "format",
            DropReason::Version { .. } => "version",
            DropReason::Unreadable(_) => "unreadable",
            DropReason::Unknown => "unknown",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DropReason::Format(found) => write!(f, "it is in format {found:?}, and only {FORMAT:?} is known"),
            DropReason::Version { saved, known } => {
                write!(f, "it was saved under version {saved}, and the plugin knows version {known}")
            }
            DropReason::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            DropReason::Unknown => f.write_str("no plugin remembers it"),
        }
    }
}

impl Memories {
    /// Whether anything that is declared is to be saved.
    pub fn are_saved(&self) -> bool {
        self.handlers.values().any(|handler| handler.version.is_some())
    }

    /// Whether everything that is to be saved is the same value in another state of these memories. Values are not looked into: as long
    /// as the other state is kept, a value that is changed is another one.
    pub fn is_saved_as(&self, other: &Memories) -> bool {
        let mut saved = self.handlers.values().filter(|handler| handler.version.is_some());
        saved.all(|handler| (handler.is_same)(&self.values, &other.values))
    }

    /// Everything that is to be saved, as text. How long that takes depends on how much is remembered.
    pub fn save(&self) -> SavedMemories {
        let mut saved = SavedMemories::default();
        let mut left = SAVED_BYTES_MAX;
        for (name, handler) in &*self.handlers {
            let Some(version) = handler.version else { continue };
            let entry = entry_name(name);
            let limit = SAVED_MEMORY_BYTES_MAX.min(left.saturating_sub(entry.len()));
            let text = match entry.len() {
                0..=ENTRY_NAME_BYTES_MAX => (handler.save)(&self.values, handler.plugin, version, limit),
                _ => Err(format!("its name has more than {ENTRY_NAME_BYTES_MAX} bytes")),
            };
            match text {
                Ok(None) => {}
                Ok(Some(text)) => {
                    left = left.saturating_sub(entry.len() + text.len());
                    saved.entries.insert(entry, text);
                }
                Err(reason) => {
                    saved.unsaved.push(UnsavedMemory { plugin: handler.plugin, memory: name, reason });
                }
            }
        }
        saved.entries.insert(FORMAT_ENTRY.to_owned(), FORMAT.to_owned());
        saved
    }

    /// Restores what [`Memories::save`] wrote, and says what of it is dropped. A memory that is not among it, or is dropped, stays as it
    /// is; entries that are no memory's are somebody else's.
    pub fn restore(&mut self, entries: &BTreeMap<String, String>) -> Vec<DroppedMemory> {
        let is_ours = |entry: &&String| entry.starts_with(MEMORY_PREFIX);
        let mut unknown: Vec<&String> = entries.keys().filter(is_ours).collect();
        let mut dropped = Vec::new();
        let format = entries.get(FORMAT_ENTRY).map_or("", String::as_str);
        for (name, handler) in &*self.handlers {
            let Some(known) = handler.version else { continue };
            let entry = entry_name(name);
            let Some(text) = entries.get(&entry) else { continue };
            unknown.retain(|other| **other != entry);
            let restored = if format == FORMAT {
                version_and_value(text, known).and_then(|value| {
                    let values = &mut self.values;
                    guarded(|| (handler.load)(values, value)).map_err(DropReason::Unreadable)
                })
            } else {
                Err(DropReason::Format(format.to_owned()))
            };
            if let Err(reason) = restored {
                let (plugin, memory) = (handler.plugin, (*name).to_owned());
                dropped.push(DroppedMemory { plugin, memory, reason });
            }
        }
        let stranger =
            |entry: &String| DroppedMemory { plugin: "", memory: entry.clone(), reason: DropReason::Unknown };
        dropped.extend(unknown.into_iter().map(stranger));
        dropped
    }
}

pub(super) fn save<M: Memory>(
    values: &TypedMap,
    plugin: &'static str,
    version: u32,
    limit: usize,
) -> Result<Option<String>, String> {
    let Some(value) = values.get::<M>() else { return Ok(None) };
    // The text takes about as much room as the memory itself, so there is no need to stop half-way.
    let text = guarded(|| {
        serde_json::to_string(&Written { plugin, version, value })
            .map_err(|error| format!("it cannot be written: {error}"))
    })?;
    if text.len() > limit {
        return Err(format!(
            "it is too large: its text has {} bytes; a memory may have {SAVED_MEMORY_BYTES_MAX}, and all together {SAVED_BYTES_MAX}",
            text.len()
        ));
    }
    Ok(Some(text))
}

pub(super) fn load<M: Memory>(values: &mut TypedMap, value: &str) -> Result<(), String> {
    values.put(serde_json::from_str::<M>(value).map_err(|error| error.to_string())?);
    Ok(())
}

/// The text of the value in an entry, if it is of that version.
fn version_and_value(text: &str, known: u32) -> Result<&str, DropReason> {
    let Found { version: saved, value } =
        serde_json::from_str(text).map_err(|error| DropReason::Unreadable(error.to_string()))?;
    if saved == known { Ok(value.get()) } else { Err(DropReason::Version { saved, known }) }
}

/// Does something in which a plugin writes or reads; its panic is an error.
fn guarded<T>(act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // A value is put in its place when it has been read as a whole, so nothing is changed half-way.
    catch_unwind(AssertUnwindSafe(act))
        .unwrap_or_else(|panic| Err(format!("the plugin panicked: {}", words_of(&*panic))))
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}

/// The name of a memory's entry: what may not be in such names is written as an underscore and its number.
fn entry_name(memory: &str) -> String {
    let mut name = MEMORY_PREFIX.to_owned();
    for byte in memory.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => name.push(char::from(byte)),
            _ => name.push_str(&format!("_{byte:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests;
