//! Reading values into types, strictly and all problems at once.
//!
//! Serde would stop at the first problem. Here each type reads what it can, notes what it cannot, and goes on.

use serde_json::Value;

use crate::bytes::Bytes;
use crate::codes;
use crate::nearest::did_you_mean;
use crate::problem::{Problem, Problems};
use supercargo_model::GoDuration;
use supercargo_model::InvalidDuration;

/// A type that can be read from a value. Null leaves the default in place, as in Go.
pub(crate) trait Read: Sized + Default {
    /// Whether null is more than "leave it", which it is for types that read themselves in Go.
    const READS_NULL: bool = false;

    /// The value; none if nothing of it could be read. Lists and objects are read as far as they can be.
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self>;
}

/// Reads objects field by field; absent and null fields keep the value of the type's `Default`.
macro_rules! read_object {
    ($type:ty { $($field:ident: $name:literal),* $(,)? }) => {
        impl $crate::fields::Read for $type {
            fn read(value: &serde_json::Value, path: &str, problems: &mut $crate::problem::Problems) -> Option<Self> {
                let mut object = <$type>::default();
                let fields = $crate::fields::object(value, path, problems)?;
                $($crate::fields::read_field(fields, $name, path, problems, &mut object.$field);)*
                $crate::fields::report_unknown(fields, &[$($name),*], path, problems);
                Some(object)
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
        Some(value) => {
            if let Some(read) = T::read(value, &below(path, name), problems) {
                *into = read;
            }
        }
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

/// The value, or a problem that says what was expected.
fn expect<T>(read: Option<T>, wanted: &str, value: &Value, path: &str, problems: &mut Problems) -> Option<T> {
    if read.is_none() {
        wrong_type(value, wanted, path, problems);
    }
    read
}

impl Read for i64 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        expect(value.as_i64(), "an integer of 64 bits", value, path, problems)
    }
}

impl Read for i32 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        expect(number, "an integer of 32 bits", value, path, problems)
    }
}

impl Read for u64 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        expect(value.as_u64(), "an integer that is not negative", value, path, problems)
    }
}

impl Read for f32 {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        expect(number, "a number", value, path, problems)
    }
}

impl Read for bool {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        expect(value.as_bool(), "true or false", value, path, problems)
    }
}

impl Read for String {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        expect(value.as_str().map(str::to_owned), "a string", value, path, problems)
    }
}

impl Read for GoDuration {
    // metav1.Duration reads null as the empty string, which is no duration.
    const READS_NULL: bool = true;

    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        let text = match value {
            Value::Null => "",
            Value::String(text) => text,
            other => {
                let known = problems.len();
                wrong_type(other, "a string such as \"15s\"", path, problems);
                let hint = duration_hint(&other.to_string());
                problems.iter_mut().skip(known).for_each(|problem| problem.hint = Some(hint.clone()));
                return None;
            }
        };
        text.parse()
            .inspect_err(|error: &InvalidDuration| {
                let problem = Problem::new(&codes::INVALID_DURATION, path, error.to_string());
                problems.push(problem.with_hint(duration_hint(text)));
            })
            .ok()
    }
}

/// What somebody may have meant who wrote a duration that is none.
pub(crate) fn duration_hint(text: &str) -> String {
    let any = "write a duration as \"15s\", \"1m30s\" or \"0s\"";
    let squeezed: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let digits = squeezed.len()
        - squeezed
            .trim_start_matches(['-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            .len();
    let (number, unit) = squeezed.split_at(digits);
    let Ok(count) = number.parse::<f64>() else { return any.to_owned() };
    let in_go = match unit.to_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => format!("{number}s"),
        "m" | "min" | "mins" | "minute" | "minutes" => format!("{number}m"),
        "h" | "hr" | "hrs" | "hour" | "hours" => format!("{number}h"),
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => format!("{number}ms"),
        "d" | "day" | "days" if count.abs() < 100_000.0 => format!("{}h", count * 24.0),
        _ => return format!("{any}; the units are h, m, s, ms, us and ns"),
    };
    match in_go.parse::<GoDuration>() {
        Ok(_) => format!("write \"{in_go}\""),
        Err(_) => any.to_owned(),
    }
}

impl Read for Bytes {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::String(text) => {
                let bytes = Bytes::from_base64(text);
                if bytes.is_none() {
                    let hint = if text.contains("-----BEGIN") {
                        "this is PEM: write what `base64 -w0` makes of it, or name its file in the field that ends in File"
                    } else {
                        "write what `base64 -w0 FILE` prints, with the = at its end"
                    };
                    let problem = Problem::new(&codes::INVALID_BASE64, path, "illegal base64 data");
                    problems.push(problem.with_hint(hint.to_owned()));
                }
                bytes
            }
            // Go reads a list of numbers into bytes as well.
            Value::Array(items) => {
                let byte = |(index, item): (usize, &Value)| {
                    let byte = item.as_u64().and_then(|number| u8::try_from(number).ok());
                    let path = format!("{path}[{index}]");
                    expect(byte, "a number from 0 to 255", item, &path, problems).unwrap_or_default()
                };
                Some(Bytes(items.iter().enumerate().map(byte).collect()))
            }
            other => expect(None, "a string in base64", other, path, problems),
        }
    }
}

impl Read for Value {
    fn read(value: &Value, _: &str, _: &mut Problems) -> Option<Self> {
        Some(value.clone())
    }
}

impl<T: Read> Read for Option<T> {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        T::read(value, path, problems).map(Some)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        let items = expect(value.as_array(), "a list", value, path, problems)?;
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let read = !item.is_null() || T::READS_NULL;
            let item = read.then(|| T::read(item, &format!("{path}[{index}]"), problems)).flatten();
            // What cannot be read keeps its place, so that paths stay true.
            list.push(item.unwrap_or_default());
        }
        Some(list)
    }
}
