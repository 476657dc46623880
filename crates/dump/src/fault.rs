//! What is wrong with a dump, and where.

use std::fmt;

use supercargo_model::printable;

use crate::mistakes;
use crate::place::{Position, excerpt, position};

/// Reasons longer than this are cut: what a parser quotes may be the whole dump.
const REASON_CHARACTERS_MAX: usize = 400;

/// What is wrong at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, in bytes.
    pub(crate) offset: usize,
    /// The kind and name of the object, where they are known.
    pub(crate) object: Option<String>,
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Fault { offset, object: None, reason: reason.into() }
    }

    /// The same in a text of which this one is a part, starting there.
    pub(crate) fn within(self, start: usize) -> Self {
        Fault { offset: start + self.offset, ..self }
    }
}

/// Why dumps cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// One of them holds nothing at all.
    #[error(
        "{name} holds no objects, nor anything else{}: did the command {} fail?",
        if *is_blank { "" } else { " but comments" },
        if name == STANDARD_INPUT { "before the pipe" } else { "that wrote it" }
    )]
    Empty {
        /// The dump.
        name: String,
        /// Whether there is nothing but white space.
        is_blank: bool,
    },
    /// They hold lists, and nothing in them.
    #[error(
        "there are no objects in {names}, only empty lists: did the command that wrote them ask the right cluster, and the \
         right namespace (-A is all)?"
    )]
    NoObjects {
        /// The dumps.
        names: String,
    },
    /// Something cannot be read.
    #[error("{0}")]
    Unreadable(Box<Unreadable>),
}

/// What messages call standard input.
pub const STANDARD_INPUT: &str = "<stdin>";

/// What cannot be read, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The dump.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// The kind and name of the object, where they are known.
    pub object: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// The line itself, with a mark below the place.
    excerpt: String,
    /// What to do, if it is a common mistake.
    help: Option<String>,
}

impl DumpError {
    /// What is wrong with a text, of which `part` is the document or object that is meant.
    pub(crate) fn of_fault(name: &str, text: &str, part: &str, fault: Fault) -> Self {
        let Fault { mut offset, object, mut reason } = fault;
        let part_start = part.as_ptr().addr() - text.as_ptr().addr();
        let mut help = None;
        if let Some(mistake) = mistakes::recognise(part, offset.saturating_sub(part_start)) {
            if let Some(at) = mistake.offset {
                offset = part_start + at;
            }
            if let Some(instead) = mistake.reason {
                reason = instead;
            }
            help = Some(mistake.help);
        }
        let Position { line, column } = position(text, offset);
        let (excerpt, name) = (excerpt(text, offset), name.to_owned());
        DumpError::Unreadable(Box::new(Unreadable { name, line, column, object, reason, excerpt, help }))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreadable { name, line, column, object, reason, excerpt, help } = self;
        write!(f, "{name}, line {line}, column {column}: ")?;
        if let Some(object) = object {
            write!(f, "{}: ", printable(object))?;
        }
        f.write_str(&printable(&shorten(reason)))?;
        if !excerpt.is_empty() {
            write!(f, "\n{excerpt}")?;
        }
        help.as_ref().map_or(Ok(()), |help| write!(f, "\nhelp: {help}"))
    }
}

fn shorten(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARACTERS_MAX) {
        None => reason.to_owned(),
        Some((end, _)) => format!("{}…", &reason[..end]),
    }
}
