//! Cuts a dump into pieces that can be read one by one, on several cores.
//!
//! What kubectl prints is cut into the items of its lists where its way of printing shows the borders. That is a guess which
//! reading confirms: a piece that cannot be read by itself is read again as part of the whole that it was cut from, by the
//! general parsers, which are the definition of what a text means.

mod json;
mod yaml;

use self::json::NotJson;
use crate::fault::Fault;
use crate::objects::ItemKind;

/// A part of a dump that is read by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) form: Form,
    /// What it was cut from.
    pub(crate) whole: usize,
}

/// How a piece is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A value in JSON.
    Json,
    /// An item of a list in JSON.
    JsonItem,
    /// A document in YAML.
    Yaml,
    /// An item of a list in YAML, with its dash.
    YamlItem,
}

/// What pieces were cut from.
#[derive(Clone, Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) text: &'a str,
    pub(crate) form: Form,
    /// What the list says its items are, if it is a list.
    pub(crate) item_kind: Option<ItemKind>,
    /// Its first piece.
    pub(crate) first: usize,
    /// Why it is not JSON, if it looks like that.
    pub(crate) not_json: Option<Fault>,
}

/// A dump in pieces.
#[derive(Debug, Default)]
pub(crate) struct Cut<'a> {
    pub(crate) pieces: Vec<Piece<'a>>,
    /// What they were cut from, in order; those of a list without items have no pieces.
    pub(crate) wholes: Vec<Whole<'a>>,
}

/// What marks the order of bytes, at the start of a text or of one that was appended.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Cuts a text: JSON and YAML, documents and lists, in any sequence.
pub(crate) fn cut(text: &str) -> Result<Cut<'_>, Fault> {
    let mut cut = Cut::default();
    let mut at = 0;
    while let Some(content) = next_content(text, at) {
        let rest = &text[content..];
        if is_line_start(text, content) && (is_marker(rest, "---") || is_marker(rest, "...")) {
            at = content + 3;
            continue;
        }
        let mut not_json = None;
        if rest.starts_with(['{', '[']) {
            match json::cut(text, content, &mut cut) {
                Ok(end) => {
                    at = own_line(text, end)?;
                    continue;
                }
                Err(NotJson::Cut(fault)) => return Err(fault),
                Err(NotJson::Other(fault)) => not_json = Some(fault),
            }
        }
        // The indentation belongs to the document.
        let indentation = text[at..content].rsplit(['\n', BYTE_ORDER_MARK]).next().unwrap_or_default();
        at = yaml::cut(text, content - indentation.len(), not_json.as_ref(), &mut cut)?;
    }
    Ok(cut)
}

/// What follows a value in JSON has to be something of its own.
fn own_line(text: &str, end: usize) -> Result<usize, Fault> {
    let after = text[end..].trim_start_matches([' ', '\t', BYTE_ORDER_MARK]);
    if after.is_empty() || after.starts_with(['\n', '{', '[', '#']) {
        return Ok(end);
    }
    Err(Fault::new(text.len() - after.len(), "an object ends here, and what follows on its line is none"))
}

/// Where the next line that is neither blank nor a comment has its first character; none at the end.
fn next_content(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        let content = rest.trim_start_matches(|character: char| {
            character.is_ascii_whitespace() || character == BYTE_ORDER_MARK
        });
        at += rest.len() - content.len();
        if !content.starts_with('#') {
            return (!content.is_empty()).then_some(at);
        }
        at += memchr::memchr(b'\n', content.as_bytes())?;
    }
}

fn is_line_start(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n' || text[..at].ends_with(BYTE_ORDER_MARK)
}

/// Whether a line is the marker of a document's start or end.
fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\t']))
}

impl<'a> Cut<'a> {
    /// Adds a text that is read as a whole.
    fn push_whole(&mut self, text: &'a str, form: Form, not_json: Option<Fault>) {
        self.push_list(text, form, None);
        self.wholes.last_mut().expect("one was just pushed").not_json = not_json;
        self.push_piece(text, form);
    }

    /// Adds a text whose pieces follow.
    fn push_list(&mut self, text: &'a str, form: Form, item_kind: Option<ItemKind>) {
        self.wholes.push(Whole { text, form, item_kind, first: self.pieces.len(), not_json: None });
    }

    fn push_piece(&mut self, text: &'a str, form: Form) {
        self.pieces.push(Piece { text, form, whole: self.wholes.len() - 1 });
    }

    /// The piece after the last one of a whole.
    pub(crate) fn end_of(&self, whole: usize) -> usize {
        self.wholes.get(whole + 1).map_or(self.pieces.len(), |next| next.first)
    }
}

#[cfg(test)]
mod tests;
