//! Reading values into types, strictly and all problems at once.
//!
//! Serde would stop at the first problem. Here each type reads what it can, notes what it cannot, and goes on.

use serde_json::Value;

use crate::bytes::Bytes;
use crate::codes;
use crate::nearest::did_you_mean;
use crate::problem::{Problem, Problems};
use supercargo_framework::{GoDuration, InvalidDuration};

/// A type that can be read from a value. Null leaves the default in place, as in Go.
pub(crate) trait Read: Sized + Default {
    /// Whether null is more than "leave it", which it is for types that read themselves in Go.
    const READS_NULL: bool = false;

    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self;
}

/// Reads objects field by field; absent and null fields keep the value of the type's `Default`.
macro_rules! read_object {
    ($type:ty { $($field:ident: $name:literal),* $(,)? }) => {
        impl $crate::fields::Read for $type {
            fn read(value: &serde_json::Value, path: &str, problems: &mut $crate::problem::Problems) -> Self {
                let mut object = <$type>::default();
                let Some(fields) = $crate::fields::object(value, path, problems) else { return object };
                $($crate::fields::read_field(fields, $name, path, problems, &mut object.$field);)*
                $crate::fields::report_unknown(fields, &[$($name),*], path, problems);
                object
            }
        }
    };
}
pub(crate) use read_object;

pub(crate) type Object = serde_json::Map<String, Value>;

/// The fields of an object; null has none.
pub(crate) fn object<'v>(value: &'v Value, path: &str, problems: &mut Problems) -> Option<&'v Object> {
    match value {
        Value::Object(fields) => Some(fields),
        Value::Null => None,
        other => {
            wrong_type(other, "an object", path, problems);
            None
        }
    }
}

pub(crate) fn read_field<T: Read>(
    fields: &Object,
    name: &str,
    path: &str,
    problems: &mut Problems,
    into: &mut T,
) {
    match fields.get(name) {
        None => {}
        Some(Value::Null) if !T::READS_NULL => {}
        Some(value) => *into = T::read(value, &below(path, name), problems),
    }
}

pub(crate) fn report_unknown(fields: &Object, known: &[&str], path: &str, problems: &mut Problems) {
    for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
        let near = did_you_mean(name, known.iter().copied());
        let few = (known.len() <= 8).then(|| format!("the fields here are {}", known.join(", ")));
        let message = format!("unknown field {name:?}");
        problems
            .push(Problem::new(&codes::UNKNOWN_FIELD, below(path, name), message).with_hint(near.or(few)));
    }
}

/// The path of a field.
pub(crate) fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

pub(crate) fn wrong_type(value: &Value, wanted: &str, path: &str, problems: &mut Problems) {
    let got = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    let hint = match value {
        Value::String(text) if text.parse::<f64>().is_ok() || text == "true" || text == "false" => {
            Some("write it without quotes".to_owned())
        }
        Value::Number(_) | Value::Bool(_) if wanted.contains("string") => Some("put it in quotes".to_owned()),
        _ => None,
    };
    let message = format!("expected {wanted}, got {got}");
    problems.push(Problem::new(&codes::WRONG_TYPE, path, message).with_hint(hint));
}

impl Read for i64 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        value.as_i64().unwrap_or_else(|| {
            wrong_type(value, "an integer of 64 bits", path, problems);
            0
        })
    }
}

impl Read for i32 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        value.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or_else(|| {
            wrong_type(value, "an integer of 32 bits", path, problems);
            0
        })
    }
}

impl Read for u64 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        value.as_u64().unwrap_or_else(|| {
            wrong_type(value, "an integer that is not negative", path, problems);
            0
        })
    }
}

impl Read for f32 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        let number = value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        number.unwrap_or_else(|| {
            wrong_type(value, "a number", path, problems);
            0.0
        })
    }
}

impl Read for bool {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        value.as_bool().unwrap_or_else(|| {
            wrong_type(value, "true or false", path, problems);
            false
        })
    }
}

impl Read for String {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        value.as_str().map_or_else(
            || {
                wrong_type(value, "a string", path, problems);
                String::new()
            },
            str::to_owned,
        )
    }
}

impl Read for GoDuration {
    // metav1.Duration reads null as the empty string, which is no duration.
    const READS_NULL: bool = true;

    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        let text = match value {
            Value::Null => "",
            Value::String(text) => text,
            other => {
                wrong_type(other, "a string such as \"15s\"", path, problems);
                return GoDuration::default();
            }
        };
        text.parse().unwrap_or_else(|error: InvalidDuration| {
            let hint = "write a duration as \"15s\", \"1m30s\" or \"0s\"".to_owned();
            let problem = Problem::new(&codes::INVALID_DURATION, path, error.to_string());
            problems.push(problem.with_hint(hint));
            GoDuration::default()
        })
    }
}

impl Read for Bytes {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        match value {
            Value::String(text) => Bytes::from_base64(text).unwrap_or_else(|| {
                problems.add(&codes::INVALID_BASE64, path, "illegal base64 data");
                Bytes::default()
            }),
            // Go reads a list of numbers into bytes as well.
            Value::Array(items) => Bytes(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| {
                        let byte = item.as_u64().and_then(|number| u8::try_from(number).ok());
                        byte.unwrap_or_else(|| {
                            wrong_type(item, "a number from 0 to 255", &format!("{path}[{index}]"), problems);
                            0
                        })
                    })
                    .collect(),
            ),
            other => {
                wrong_type(other, "a string in base64", path, problems);
                Bytes::default()
            }
        }
    }
}

impl Read for Value {
    fn read(value: &Value, _: &str, _: &mut Problems) -> Self {
        value.clone()
    }
}

impl<T: Read> Read for Option<T> {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        Some(T::read(value, path, problems))
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Self {
        let Value::Array(items) = value else {
            wrong_type(value, "a list", path, problems);
            return Vec::new();
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let read = !item.is_null() || T::READS_NULL;
            list.push(if read { T::read(item, &format!("{path}[{index}]"), problems) } else { T::default() });
        }
        list
    }
}
