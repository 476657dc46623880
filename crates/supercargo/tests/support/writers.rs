//! Objects as texts in many notations.

use serde_json::{Value, json};

/// As `kubectl get -o json` prints it, with another indentation if wanted.
pub(crate) fn pretty(value: &Value, indent: &str) -> String {
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    serde::Serialize::serialize(value, &mut serializer).expect("can be written");
    String::from_utf8(text).expect("JSON is text") + "\n"
}

pub(crate) fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}})
}

/// A list of a kind, whose items do not say what they are.
pub(crate) fn typed_list(items: &[Value], kind: &str) -> Value {
    let items = items.iter().filter(|item| item["kind"] == kind);
    let api_version = items.clone().next().map_or(Value::Null, |item| item["apiVersion"].clone());
    let bare = items.cloned().map(|mut item| {
        item.as_object_mut().expect("an object").retain(|field, _| field != "apiVersion" && field != "kind");
        item
    });
    let bare: Vec<Value> = bare.collect();
    json!({"apiVersion": api_version, "kind": format!("{kind}List"), "metadata": {}, "items": bare})
}

/// Flow style: JSON without quotes around its keys, where they need none.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let is_word = key.starts_with(|first: char| first.is_ascii_lowercase())
                    && key
                        .chars()
                        .all(|character| character.is_ascii_alphanumeric() || "./-_".contains(character));
                let is_plain = is_word
                    && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&&**key);
                let key = if is_plain { key.clone() } else { quoted(key) };
                format!("{key}: {}", flow(value))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// In double quotes, with JSON's escapes, which are YAML's too. What YAML does not take for printable has to be escaped there.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let escape = |character: char| match character {
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
            format!("\\u{:04x}", u32::from(character))
        }
        other => other.to_string(),
    };
    json.chars().map(escape).collect()
}

/// The bytes of UTF-16, with a mark at the start.
pub(crate) fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
}
