//! What parsers and readers say, in words for people: no names of types, no names of parsers' options.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

/// What is said about a value that cannot be read, such as `invalid type: string "x", expected i32`.
pub(crate) fn of(text: &str) -> String {
    for start in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            text.strip_prefix(start).and_then(|rest| rest.rsplit_once(", expected "))
        {
            return format!("expected {}, got {}", kind(expected), found_kind(found));
        }
    }
    if let Some((length, expected)) =
        text.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("expected {}, got {length} of them", kind(expected));
    }
    if let Some(field) = between(text, "missing field `", "`") {
        return format!("field {field:?} is missing");
    }
    if let Some((field, _)) = names(text, "unknown field `") {
        return format!("unknown field {field:?}");
    }
    if let Some((value, known)) = names(text, "unknown variant `") {
        let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
        return format!("unknown value {value:?}; it is one of {}", known.join(", "));
    }
    text.to_owned()
}

/// The name that is not known, and the names that are, of what serde says: `unknown field `a`, expected `b` or `c``.
pub(crate) fn names<'t>(text: &'t str, start: &str) -> Option<(&'t str, Vec<&'t str>)> {
    let (name, rest) = text.strip_prefix(start)?.split_once('`')?;
    Some((name, rest.split('`').skip(1).step_by(2).collect()))
}

/// What is wrong with text that is not YAML. Its place is told apart from it.
pub(crate) fn of_yaml(error: &Error) -> String {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => of_yaml(error),
        Error::Budget { breach, .. } => too_much(breach),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an anchor is used inside of what it names, which has no end".to_owned()
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => {
            "anchors are used so often that the text would become too large".to_owned()
        }
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("expected {}, got {}", kind(expected), found_kind(unexpected))
        }
        Error::NullIntoString { .. } => "the name of a field is missing".to_owned(),
        Error::Unexpected { expected, .. } => format!("expected {}", kind(expected)),
        Error::UnknownAnchor { .. } => "an alias (*name) has no anchor (&name) before it".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("a number must be finite, got {value}"),
        Error::InvalidUtf8Input | Error::BinaryNotUtf8 { .. } => "the text is not UTF-8".to_owned(),
        Error::TaggedScalarCannotDeserializeIntoString { .. } | Error::UnsupportedTag { .. } => {
            "a tag (!name) stands where none is understood".to_owned()
        }
        other => without_place(&other.to_string()).to_owned(),
    }
}

/// What to do about a text that is a template, which is not YAML before somebody fills it in.
pub(crate) fn template_hint(text: &str, at: Option<(u64, u64)>) -> Option<String> {
    let (line, _) = at?;
    let upto = text.lines().take(usize::try_from(line).ok()?);
    let mut lines = upto.clone();
    if lines.any(|line| line.contains("{{")) && text.contains("}}") {
        return Some(
            "this looks like a template: render it first, with `helm template` for example".to_owned(),
        );
    }
    let line = upto.last()?;
    let indent = &line[..line.len() - line.trim_start().len()];
    indent.contains('\t').then(|| "a tab indents this line: YAML wants spaces".to_owned())
}

fn too_much(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => "lists and objects stand too deep in each other".to_owned(),
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::ScalarBytes { .. } => {
            "the text is too large for a configuration".to_owned()
        }
        BudgetBreach::Documents { .. } => "there are too many documents".to_owned(),
        BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. } | BudgetBreach::MergeKeys { .. } => {
            "there are too many anchors, aliases or merge keys".to_owned()
        }
        BudgetBreach::AliasAnchorRatio { .. } => "there are too many aliases for so few anchors".to_owned(),
        _ => "the text asks for too much".to_owned(),
    }
}

/// The kind of value that a type of Rust stands for.
fn kind(expected: &str) -> String {
    let words = match expected {
        "i8" | "i16" | "i32" => "an integer of 32 bits",
        "i64" | "i128" | "isize" => "an integer of 64 bits",
        "u8" => "a number from 0 to 255",
        "u16" => "a number from 0 to 65535",
        "u32" | "u64" | "u128" | "usize" => "an integer that is not negative",
        "f32" | "f64" => "a number",
        "bool" | "a boolean" => "true or false",
        "a map" | "mapping start" | "mapping" => "an object",
        "a sequence" | "sequence start" | "sequence" => "a list",
        "string scalar" | "scalar" | "a borrowed string" | "str" | "String" => "a string",
        "unit" | "option" => "nothing",
        _ => "",
    };
    if !words.is_empty() {
        return words.to_owned();
    }
    let is_type = |start: &str| expected.starts_with(start);
    if is_type("struct ") || is_type("map with ") || is_type("internally tagged ") || is_type("adjacently ") {
        "an object".to_owned()
    } else if is_type("tuple ") || is_type("an array ") {
        "a list".to_owned()
    } else if is_type("enum ") || is_type("variant ") || is_type("unit ") || is_type("newtype ") {
        "one of the values that are known here".to_owned()
    } else {
        expected.to_owned()
    }
}

/// The kind of value that was found, as serde tells it.
fn found_kind(found: &str) -> String {
    for (start, words) in
        [("integer ", "the number "), ("floating point ", "the number "), ("boolean ", "the boolean ")]
    {
        if let Some(value) = found.strip_prefix(start) {
            return format!("{words}{}", value.trim_matches('`'));
        }
    }
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" | "null" | "Option value" => "null".to_owned(),
        _ if found.starts_with("string ") => format!("the {found}"),
        _ if found.contains("struct") || found.contains("variant") => "another value".to_owned(),
        _ => found.to_owned(),
    }
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    Some(text.strip_prefix(start)?.split_once(end)?.0)
}

/// A message without the place at its end, which is told apart from it.
fn without_place(text: &str) -> &str {
    let text = text.lines().next().unwrap_or_default();
    let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
    let start = text.strip_prefix("error: ").unwrap_or(text);
    match start.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((place, rest)) if place.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) => rest,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_is_named() {
        for (text, expected) in [
            (
                "invalid type: string \"x\", expected i32",
                "expected an integer of 32 bits, got the string \"x\"",
            ),
            ("invalid type: sequence, expected struct FitArgs", "expected an object, got a list"),
            ("invalid type: map, expected a sequence", "expected a list, got an object"),
            ("invalid type: null, expected f64", "expected a number, got null"),
            (
                "invalid value: integer `-1`, expected u32",
                "expected an integer that is not negative, got the number -1",
            ),
            ("invalid type: integer `5`, expected a string", "expected a string, got the number 5"),
            (
                "invalid type: string \"a, expected b\", expected struct S",
                "expected an object, got the string \"a, expected b\"",
            ),
            ("missing field `name`", "field \"name\" is missing"),
            ("unknown field `a`, expected `b` or `c`", "unknown field \"a\""),
            ("unknown field `a`, there are no fields", "unknown field \"a\""),
            (
                "unknown variant `a`, expected one of `B`, `C`",
                "unknown value \"a\"; it is one of \"B\", \"C\"",
            ),
            ("time: invalid duration \"x\"", "time: invalid duration \"x\""),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
