//! Extenders as the Policy and v1alpha2 had them: names in any case, timeouts in nanoseconds.

use serde_json::Value;
use supercargo_model::GoDuration;

use crate::codes;
use crate::fields::{Object, Read, below, read_field};
use crate::problem::Problems;
use crate::types::Extender;

/// The names of today, for all fields below `extenders`.
const NAMES: [&str; 22] = [
    "urlPrefix",
    "filterVerb",
    "preemptVerb",
    "prioritizeVerb",
    "weight",
    "bindVerb",
    "enableHTTPS",
    "tlsConfig",
    "httpTimeout",
    "nodeCacheCapable",
    "managedResources",
    "ignorable",
    "name",
    "ignoredByScheduler",
    "insecure",
    "serverName",
    "certFile",
    "keyFile",
    "caFile",
    "certData",
    "keyData",
    "caData",
];

/// Reads the field `extenders`.
pub(super) fn read(fields: &Object, path: &str, problems: &mut Problems) -> Vec<Extender> {
    let mut items: Vec<Value> = Vec::new();
    read_field(fields, "extenders", path, problems, &mut items);
    let path = below(path, "extenders");
    let read = |(index, item): (usize, &Value)| {
        let path = format!("{path}[{index}]");
        let mut item = renamed(item, &path, problems);
        let timeout = item.get("httpTimeout").and_then(Value::as_i64);
        if let (Some(nanoseconds), Value::Object(fields)) = (timeout, &mut item) {
            let duration = GoDuration(nanoseconds).to_string();
            let message = format!("{nanoseconds} nanoseconds became {duration}");
            problems.add(&codes::FIELD_MOVED, below(&path, "httpTimeout"), message);
            fields.insert("httpTimeout".to_owned(), duration.into());
        }
        Extender::read(&item, &path, problems).unwrap_or_default()
    };
    items.iter().enumerate().map(read).collect()
}

/// The same with the names of today.
fn renamed(value: &Value, path: &str, problems: &mut Problems) -> Value {
    match value {
        Value::Object(fields) => {
            let mut today = Object::new();
            for (name, value) in fields {
                let known = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name));
                let renamed_to = known.map_or(name.as_str(), |known| known);
                let path = below(path, name);
                if renamed_to != name {
                    problems.add(&codes::FIELD_MOVED, &path, format!("{name} is written {renamed_to} now"));
                }
                if today.insert(renamed_to.to_owned(), renamed(value, &path, problems)).is_some() {
                    problems.add(
                        &codes::DUPLICATE_FIELD,
                        path,
                        format!("field {renamed_to:?} stands here twice"),
                    );
                }
            }
            Value::Object(today)
        }
        Value::Array(items) => {
            let item = |(index, item)| renamed(item, &format!("{path}[{index}]"), problems);
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        other => other.clone(),
    }
}
