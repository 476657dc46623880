//! Where in a text the reader has stopped: which fields and elements lead there.

use std::fmt;

/// Which fields and elements lead from an object to something in it: `spec.containers[0].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(pub Vec<FieldStep>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// Into the field of that name.
    Field(String),
    /// Into the element of that number.
    Element(usize),
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                FieldStep::Field(name) if index == 0 => f.write_str(name)?,
                FieldStep::Field(name) => write!(f, ".{name}")?,
                FieldStep::Element(number) => write!(f, "[{number}]")?,
            }
        }
        if self.0.is_empty() { f.write_str(".") } else { Ok(()) }
    }
}

impl FromIterator<FieldStep> for FieldPath {
    fn from_iter<I: IntoIterator<Item = FieldStep>>(steps: I) -> Self {
        FieldPath(steps.into_iter().collect())
    }
}

/// The path to the value at which an error arose, empty for the whole text. `end` is how many bytes have been
/// read.
///
/// Readers that keep the path while they read would be compiled a second time for every type; an error is rare, and its position leads to
/// the same path.
pub(super) fn path_at(json: &str, end: usize) -> FieldPath {
    let mut open = Vec::new();
    let mut rest = json.as_bytes()[..end].iter().enumerate();
    while let Some((index, sign)) = rest.next() {
        match sign {
            b'{' => enter(&mut open, Open::Object { key: None }),
            b'[' => enter(&mut open, Open::List { element: None }),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(Open::Object { key }) => *key = None,
                Some(Open::List { element: Some(element) }) => *element += 1,
                _ => {}
            },
            b'"' => {
                let mut is_escaped = false;
                let closing = rest.find(|(_, sign)| {
                    let closes = **sign == b'"' && !is_escaped;
                    is_escaped = **sign == b'\\' && !is_escaped;
                    closes
                });
                let last = closing.map_or(end, |(last, _)| last + 1);
                if let Some(Open::Object { key: key @ None }) = open.last_mut() {
                    // A key that is cut off, or that no text can be made of, is shown as it stands there.
                    let text = String::from_utf8_lossy(&json.as_bytes()[index..last]);
                    *key = Some(serde_json::from_str(&text).unwrap_or_else(|_| text.into_owned()));
                } else {
                    begin(&mut open);
                }
            }
            b':' | b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => begin(&mut open),
        }
    }
    written(&open)
}

/// An object or a list that has begun and not ended, with what is being read of it.
enum Open {
    Object { key: Option<String> },
    List { element: Option<usize> },
}

/// A value begins, which is an element if it is in a list.
fn begin(open: &mut [Open]) {
    if let Some(Open::List { element: element @ None }) = open.last_mut() {
        *element = Some(0);
    }
}

fn enter(open: &mut Vec<Open>, value: Open) {
    begin(open);
    open.push(value);
}

fn written(open: &[Open]) -> FieldPath {
    let steps = open.iter().filter_map(|value| match value {
        Open::Object { key } => key.clone().map(FieldStep::Field),
        Open::List { element } => element.map(FieldStep::Element),
    });
    steps.collect()
}

/// How many bytes of a text have been read where an error has this position.
pub(super) fn offset_of(json: &str, error: &serde_json::Error) -> usize {
    let start: usize = json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (start + error.column()).min(json.len())
}

/// What an error says, without its position: that of converted text helps nobody.
pub(super) fn reason_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}
