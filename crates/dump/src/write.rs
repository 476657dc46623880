//! Writes objects as kubectl prints a list of them.

use serde_json::Value;
use supercargo_model::printable;

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// In block style, which [`crate::block_yaml`] reads.
    Yaml,
    /// An object a line.
    Json,
}

/// Writes one list, object by object, so that it need not be held as a whole.
#[derive(Debug)]
pub struct ListWriter {
    format: ListFormat,
    is_empty: bool,
}

impl ListWriter {
    /// A list without objects so far.
    pub fn new(format: ListFormat) -> Self {
        ListWriter { format, is_empty: true }
    }

    /// The text of the next object, with what has to stand before it.
    pub fn object(&mut self, object: &Value) -> String {
        let is_first = std::mem::replace(&mut self.is_empty, false);
        let mut text = String::new();
        match self.format {
            ListFormat::Json => {
                text.push_str(if is_first { "{\"apiVersion\":\"v1\",\"items\":[\n" } else { ",\n" });
                text.push_str(&json(object));
            }
            ListFormat::Yaml => {
                if is_first {
                    text.push_str("apiVersion: v1\nitems:\n");
                }
                text.push_str("- ");
                push_yaml(&mut text, object, 1);
            }
        }
        text
    }

    /// What stands behind the last object.
    pub fn end(self) -> &'static str {
        match (self.format, self.is_empty) {
            (ListFormat::Json, true) => "{\"apiVersion\":\"v1\",\"items\":[],\"kind\":\"List\"}\n",
            (ListFormat::Json, false) => "\n],\"kind\":\"List\"}\n",
            (ListFormat::Yaml, true) => "apiVersion: v1\nitems: []\nkind: List\n",
            (ListFormat::Yaml, false) => "kind: List\n",
        }
    }
}

/// Writes a value at the cursor, which stands where its first line begins; further lines are indented by `depth`.
fn push_yaml(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (number, (key, value)) in entries.iter().enumerate() {
                if number > 0 {
                    indent(text, depth);
                }
                push_scalar(text, key);
                text.push(':');
                push_below(text, value, depth);
            }
        }
        Value::Array(entries) if !entries.is_empty() => {
            for (number, value) in entries.iter().enumerate() {
                if number > 0 {
                    indent(text, depth);
                }
                text.push_str("- ");
                push_yaml(text, value, depth + 1);
            }
        }
        Value::String(string) => {
            push_scalar(text, string);
            text.push('\n');
        }
        // Numbers, words, `{}` and `[]` are the same in both.
        other => {
            text.push_str(&other.to_string());
            text.push('\n');
        }
    }
}

/// Writes a value behind its key.
fn push_below(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            text.push('\n');
            indent(text, depth + 1);
            push_yaml(text, value, depth + 1);
        }
        // As kubectl does, dashes stand below the key.
        Value::Array(entries) if !entries.is_empty() => {
            text.push('\n');
            indent(text, depth);
            push_yaml(text, value, depth);
        }
        other => {
            text.push(' ');
            push_yaml(text, other, depth);
        }
    }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// Plain where nothing else can be read from it, else in quotes, where JSON's escapes are YAML's too.
fn push_scalar(text: &mut String, string: &str) {
    if is_plain(string) { text.push_str(string) } else { text.push_str(&json(&Value::from(string))) }
}

/// JSON escapes line breaks and most of what a terminal obeys; the rest is escaped as well.
fn json(value: &Value) -> String {
    printable(&value.to_string()).into_owned()
}

fn is_plain(string: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    string.starts_with(|first: char| first.is_ascii_alphabetic())
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(string))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{DumpError, Dumps};

    #[test]
    fn what_is_written_is_read_again() {
        let objects = [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}, "name": "a", "list": []}}),
            json!({"kind": "x", "a": [[1, 2], {"b": {"c": [{"d": null, "e": "f"}]}}, "x: y", "- z", "", " ", "#", "'", "\"", "a\nb\n"]}),
            json!({"kind": "x", "n": "1", "t": "true", "Y": "y", "e": "1e3", "m": -1.5, "big": 12345678901234567890_u64, "ü": "ü\u{1}\t\u{9b}\u{2028}"}),
            json!({"kind": "x", "list": [{"x": 1, "y": [true]}, {}], "key with: colon": "~", "*": "&a", "null": "null"}),
        ];
        for format in [ListFormat::Yaml, ListFormat::Json] {
            for count in 0..=objects.len() {
                let mut writer = ListWriter::new(format);
                let mut text: String = objects[..count].iter().map(|object| writer.object(object)).collect();
                text.push_str(writer.end());
                let mut read = Vec::new();
                let result = Dumps::new(&[("x", &text)]).expect("is a list").values(|_, value| {
                    read.push(value);
                    Ok(())
                });
                match count {
                    0 => assert!(matches!(result, Err(DumpError::NoObjects { .. })), "{text}"),
                    _ => assert_eq!(result, Ok(()), "{text}"),
                }
                assert_eq!(read, objects[..count], "{text}");
                let general: Value = serde_saphyr::from_str(&text).expect(&text);
                assert_eq!(general["items"], Value::from(&objects[..count]), "{text}");
            }
        }
    }

    #[test]
    fn yaml_looks_as_kubectl_writes_it() {
        let mut writer = ListWriter::new(ListFormat::Yaml);
        let object = json!({"kind": "Pod", "spec": {"containers": [{"image": "a:1", "name": "c"}], "x": {}}});
        assert_eq!(
            writer.object(&object) + writer.end(),
            "apiVersion: v1\nitems:\n- kind: Pod\n  spec:\n    containers:\n    - image: \"a:1\"\n      name: c\n    x: {}\nkind: List\n"
        );
    }
}
