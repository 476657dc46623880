//! A line of the log.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

/// The name under which klog writes what went wrong, before all other fields.
const ERROR: &str = "err";

/// A longer value is cut: a log is no dump.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// As klog writes it: `E1116 05:46:00.123456   12345 mod.rs:42] "Message" err="reason" key="value"`.
pub(super) fn text(line: &mut String, event: &Event<'_>, now: Timestamp, process: u32) {
    let metadata = event.metadata();
    let severity = match *metadata.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let mut fields = Fields::default();
    event.record(&mut fields);
    let time = now.strftime("%m%d %H:%M:%S.%6f");
    let (file, number) = place(metadata);
    // Writing to a string does not fail.
    let _ = write!(line, "{severity}{time} {process:7} {file}:{number}] ");
    quote(line, &fields.message);
    for (name, value) in &fields.others {
        let _ = write!(line, " {name}=");
        match value {
            Value::String(value) => quote(line, value),
            value => _ = write!(line, "{value}"),
        }
    }
    line.push('\n');
}

/// Writes a text in quotes as Go's `strconv.Quote` does, which klog writes with. Everything stays on one line.
fn quote(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        let code = u32::from(character);
        // Writing to a string does not fail.
        let _ = match character {
            '"' | '\\' => write!(line, "\\{character}"),
            '\n' => line.write_str("\\n"),
            '\r' => line.write_str("\\r"),
            '\t' => line.write_str("\\t"),
            '\u{7}' => line.write_str("\\a"),
            '\u{8}' => line.write_str("\\b"),
            '\u{b}' => line.write_str("\\v"),
            '\u{c}' => line.write_str("\\f"),
            _ if character.is_control() && code < 0x80 => write!(line, "\\x{code:02x}"),
            _ if character.is_control() => write!(line, "\\u{code:04x}"),
            _ => line.write_char(character),
        };
    }
    line.push('"');
}

/// As Kubernetes' components write JSON: `ts` in milliseconds, and `v` unless it is an error.
pub(super) fn json(line: &mut String, event: &Event<'_>, now: Timestamp, verbosity: u8) {
    let metadata = event.metadata();
    let mut fields = Fields::default();
    event.record(&mut fields);
    let (file, number) = place(metadata);
    let mut object = Map::new();
    object.insert("ts".to_owned(), json!(now.as_microsecond() as f64 / 1_000.0));
    object.insert("caller".to_owned(), json!(format!("{file}:{number}")));
    object.insert("msg".to_owned(), json!(fields.message));
    if *metadata.level() != Level::ERROR {
        object.insert("v".to_owned(), json!(verbosity));
    }
    for (name, value) in fields.others {
        object.insert(name.to_owned(), value);
    }
    line.push_str(&Value::Object(object).to_string());
    line.push('\n');
}

/// The last two parts of the path are enough to find a file.
fn place<'a>(metadata: &Metadata<'a>) -> (&'a str, u32) {
    let file = metadata.file().unwrap_or("unknown");
    let mut separators = file.rmatch_indices('/').map(|(index, _)| index + 1);
    let start = separators.nth(1).unwrap_or(0);
    (&file[start..], metadata.line().unwrap_or(0))
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("message", value) => self.message = value.to_string(),
            // What `log` records carry through tracing is said by the metadata already.
            (name, _) if name.starts_with("log.") => {}
            // Libraries say `error`.
            (ERROR | "error", value) => self.others.insert(0, (ERROR, value)),
            (name, value) => self.others.push((name, value)),
        }
    }

    fn text(&mut self, field: &Field, mut text: String) {
        if text.len() > VALUE_BYTES_MAX {
            let end = (0..=VALUE_BYTES_MAX).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        self.put(field, Value::String(text));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}
