//! Documents in YAML.
//!
//! Whatever stands at the left edge is known by its first characters: `---` and `...` are markers there even inside of quotes, and texts
//! are indented. So a document is found by looking at the start of each line.

use serde_json::Value;

use super::{BYTE_ORDER_MARK, Cut, Form, is_line_start, is_marker};
use crate::fault::Fault;
use crate::general::{SLOW_YAML_BYTES_MAX, value};
use crate::objects::{CUT_LIST, item_kind};

/// What stands around the items of a list is short; if it is not, the list is none of kubectl's.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// The line before the items of a list.
const ITEMS_LINE: &str = "items:\n";

/// Cuts the document that starts there, and says where it ends. `not_json` is why it is not JSON, if it looks like that.
pub(super) fn cut<'a>(
    text: &'a str,
    start: usize,
    not_json: Option<&Fault>,
    cut: &mut Cut<'a>,
) -> Result<usize, Fault> {
    let mut scan = Scan { text, part: Part::new(start), parts: Vec::new(), is_directives: true };
    let end = scan.run(start);
    let mut parts = std::mem::take(&mut scan.parts);
    scan.part.end = end;
    parts.push(scan.part);
    // Parts that are no lists of kubectl's may have been one document after all, if they cannot be read.
    let first = cut.pieces.len();
    let whole = &text[start..end];
    let mut is_open = false;
    for part in parts {
        let written = &text[part.start..part.end];
        if is_blank(written) {
            continue;
        }
        if part.cut_list(text, cut)? {
            is_open = false;
        } else if is_open {
            cut.push_piece(written, Form::Yaml);
        } else {
            is_open = true;
            cut.push_whole(written, Form::Yaml, not_json.cloned());
            if cut.pieces.len() == first + 1 {
                cut.wholes.last_mut().expect("one was just pushed").text = whole;
            }
        }
    }
    Ok(end)
}

fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.starts_with(['#', '%']) || is_marker(line, "---"))
}

/// A part of a document that may be one of its own: what was concatenated repeats what an object begins with.
#[derive(Debug, Default)]
struct Part {
    start: usize,
    end: usize,
    has_api_version: bool,
    has_kind: bool,
    /// Where fields stand at the left edge.
    fields: Vec<usize>,
    /// Where items stand at the left edge.
    items: Vec<usize>,
}

struct Scan<'a> {
    text: &'a str,
    part: Part,
    parts: Vec<Part>,
    /// Whether only directives and comments have been seen so far, which belong to the document behind the next marker.
    is_directives: bool,
}

impl Scan<'_> {
    /// Looks at the start of each line, and says where the document ends.
    fn run(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut has_directives = false;
        let breaks = memchr::memchr_iter(b'\n', &bytes[start..]).map(|at| start + at + 1);
        let first = is_line_start(self.text, start).then_some(start);
        self.is_directives = first.is_some();
        for at in first.into_iter().chain(breaks) {
            match bytes.get(at) {
                Some(b' ' | b'\n' | b'#') => {}
                None => break,
                Some(b'%') if self.is_directives => has_directives = true,
                Some(b'-') if is_marker(&self.text[at..], "---") => {
                    if !(has_directives && std::mem::take(&mut self.is_directives)) {
                        return at;
                    }
                }
                Some(b'-') if matches!(bytes.get(at + 1), None | Some(b' ' | b'\n')) => {
                    self.is_directives = false;
                    self.part.items.push(at);
                }
                Some(b'.') if is_marker(&self.text[at..], "...") => return at,
                Some(0xef) if self.text[at..].starts_with(BYTE_ORDER_MARK) && at > start => return at,
                Some(b'{' | b'[') => self.flow(at),
                Some(_) => self.field(at),
            }
        }
        self.text.len()
    }

    /// A collection in braces at the left edge starts a part, unless it is the rest of something.
    fn flow(&mut self, at: usize) {
        self.is_directives = false;
        if at > self.part.start {
            self.next_part(at);
        }
    }

    fn field(&mut self, at: usize) {
        self.is_directives = false;
        let line = &self.text[at..];
        let name = line.strip_prefix(['"', '\'']).unwrap_or(line);
        let is_field = |word: &str| {
            name.strip_prefix(word)
                .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
        };
        let (is_api_version, is_kind) = (is_field("apiVersion"), is_field("kind"));
        if (is_api_version && self.part.has_api_version) || (is_kind && self.part.has_kind) {
            self.next_part(at);
        }
        self.part.has_api_version |= is_api_version;
        self.part.has_kind |= is_kind;
        self.part.fields.push(at);
    }

    fn next_part(&mut self, at: usize) {
        let part = std::mem::replace(&mut self.part, Part::new(at));
        self.parts.push(Part { end: at, ..part });
    }
}

impl Part {
    fn new(start: usize) -> Self {
        Part { start, ..Part::default() }
    }

    /// Cuts the part if it is a list as kubectl writes it: `items:` at the left edge, and the dashes below.
    fn cut_list<'a>(&self, text: &'a str, cut: &mut Cut<'a>) -> Result<bool, Fault> {
        let Some(items_at) = self.fields.iter().position(|at| text[*at..].starts_with(ITEMS_LINE)) else {
            return Ok(false);
        };
        let tail = self.fields.get(items_at + 1).copied().unwrap_or(self.end);
        let items_at = self.fields[items_at];
        let is_list = self.items.first() == Some(&(items_at + ITEMS_LINE.len()))
            && self.items.last().is_some_and(|last| *last < tail);
        let frame_length = items_at - self.start + self.end - tail;
        if !is_list || frame_length > FRAME_BYTES_MAX {
            return Ok(false);
        }
        let frame = format!("{}{}", &text[self.start..items_at], &text[tail..self.end]);
        // An anchor may be meant anywhere in the document.
        if frame.contains(['&', '*', '!', '%', '<']) {
            return Ok(false);
        }
        let is_large = self.end - self.start > SLOW_YAML_BYTES_MAX;
        let Ok(frame) = value(&frame) else {
            // The general way says what is wrong, unless it cannot look at all.
            let fault =
                Fault::new(tail, "what follows the items of the list cannot be read: was the file cut?");
            return if is_large { Err(fault) } else { Ok(false) };
        };
        let Some(kind) = frame.get("kind").and_then(Value::as_str) else {
            return if frame.get("kind").is_none() && is_large {
                Err(Fault::new(self.start, CUT_LIST))
            } else {
                Ok(false)
            };
        };
        if !kind.ends_with("List") || frame.get("items").is_some() {
            return Ok(false);
        }
        let api_version = frame.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        cut.push_list(&text[self.start..self.end], Form::Yaml, item_kind(api_version.to_owned(), kind));
        let ends = self.items.iter().skip(1).copied().chain([tail]);
        for (start, end) in self.items.iter().zip(ends) {
            cut.push_piece(&text[*start..end], Form::YamlItem);
        }
        Ok(true)
    }
}
