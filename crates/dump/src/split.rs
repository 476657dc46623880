//! Cuts a dump into objects.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::block_yaml;

/// YAML in a style that kubectl does not write goes through a general parser, which is slow; beyond this size it is
/// refused instead.
pub(crate) const SLOW_YAML_BYTES_MAX: usize = 64 << 20;

/// The text of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// As JSON.
    Json(&'a str),
    /// As YAML; the first item of a list starts with its dash.
    Yaml(&'a str),
}

/// Cuts a dump into objects: the items of a list, the documents of a file, or one object alone. `kind` is what the list
/// says its items are, for items that do not say it themselves.
pub fn split(text: &str) -> Result<Vec<Item<'_>>, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with(['{', '[']) { split_json(text) } else { split_yaml(text) }
}

fn split_json(text: &str) -> Result<Vec<Item<'_>>, String> {
    if let Some(items) = kubectl_json_items(text) {
        return Ok(items.into_iter().map(Item::Json).collect());
    }
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow, default)]
        items: Option<Vec<&'a RawValue>>,
    }
    let mut items = Vec::new();
    // One object after the other, as `kubectl get` does not print them but `jq -c` does.
    for document in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let document = document.map_err(|error| error.to_string())?.get();
        match serde_json::from_str::<List<'_>>(document) {
            Ok(List { items: Some(list) }) => {
                items.extend(list.into_iter().map(|item| Item::Json(item.get())));
            }
            _ => items.push(Item::Json(document)),
        }
    }
    Ok(items)
}

/// The items of a list that kubectl printed: indented by four, each item's braces alone at eight. The general way reads
/// every byte to find the same borders.
fn kubectl_json_items(text: &str) -> Option<Vec<&str>> {
    const HEAD: &str = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        {\n";
    const BORDER: &[u8] = b"\n        },\n        {\n";
    const TAIL: &str = "\n        }\n    ],\n    \"kind\": \"List\",";
    let body = text.strip_prefix(HEAD)?;
    let end = memchr::memmem::rfind(body.as_bytes(), TAIL.as_bytes())?;
    // From the first item's opening brace to the last one's closing brace, both of them included below.
    let start = text.len() - body.len();
    let mut items = Vec::new();
    let mut from = start - 2;
    for border in memchr::memmem::find_iter(&text.as_bytes()[start..start + end], BORDER) {
        let at = start + border;
        items.push(&text[from..at + "\n        }".len()]);
        from = at + BORDER.len() - 2;
    }
    items.push(&text[from..start + end + "\n        }".len()]);
    Some(items)
}

fn split_yaml(text: &str) -> Result<Vec<Item<'_>>, String> {
    let mut items = Vec::new();
    for document in documents(text) {
        match list_items(document) {
            Some((list, rest)) => {
                // kubectl writes the kind of a list behind its items.
                if !has_kind(&document[..document.len() - rest.len()]) && !has_kind(rest) {
                    return Err("the list ends without its kind: was the file cut?".to_owned());
                }
                items.extend(list.into_iter().map(Item::Yaml));
            }
            None => items.push(Item::Yaml(document)),
        }
    }
    Ok(items)
}

/// The documents of a file, between lines of `---`.
fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text.strip_prefix("---\n").unwrap_or(text);
    while let Some(at) = memchr::memmem::find(rest.as_bytes(), b"\n---") {
        let after = &rest[at + 4..];
        if !after.is_empty() && !after.starts_with(['\n', '\r', ' ']) {
            // Part of a text; leave the whole to the general parser.
            return vec![text];
        }
        documents.push(&rest[..=at]);
        rest = after.split_once('\n').map_or("", |(_, rest)| rest);
    }
    documents.push(rest);
    documents
        .retain(|document| document.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#')));
    documents
}

/// Whether a field `kind` stands at the left, before the items of a list or behind them.
fn has_kind(part: &str) -> bool {
    let head = part.split("\nitems:\n").next().unwrap_or(part);
    head.lines().any(|line| line.starts_with("kind:"))
}

/// The items of a list in block style, `items:` at the left and dashes at the left below it, and what follows them.
fn list_items(document: &str) -> Option<(Vec<&str>, &str)> {
    let body_start = if document.starts_with("items:\n") {
        "items:\n".len()
    } else {
        memchr::memmem::find(document.as_bytes(), b"\nitems:\n")? + "\nitems:\n".len()
    };
    let body = &document[body_start..];
    if !body.starts_with("- ") {
        return None;
    }
    let mut items = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\n', body.as_bytes()) {
        let next = &body[at + 1..];
        if next.starts_with("- ") {
            items.push(&body[from..=at]);
            from = at + 1;
        } else if !next.is_empty() && !next.starts_with([' ', '\n', '\r', '#']) {
            // The list is over: what follows are the list's own fields.
            items.push(&body[from..=at]);
            return Some((items, next));
        }
    }
    items.push(&body[from..]);
    Some((items, ""))
}

impl<'a> Item<'a> {
    /// The item as a value, whatever it was written in.
    pub fn value(self) -> Result<serde_json::Value, String> {
        let mut buffer = String::new();
        serde_json::from_str(to_json(self, &mut buffer)?).map_err(|error| error.to_string())
    }
}

/// An item as JSON, whatever it was written in.
pub(crate) fn to_json<'a>(item: Item<'a>, buffer: &'a mut String) -> Result<&'a str, String> {
    match item {
        Item::Json(text) => Ok(text),
        Item::Yaml(text) => {
            // An item of a list starts with its dash; two spaces in its place make it a document.
            let document = match text.strip_prefix("- ") {
                Some(rest) => std::borrow::Cow::Owned(format!("  {rest}")),
                None => std::borrow::Cow::Borrowed(text),
            };
            *buffer = match block_yaml::to_json(&document) {
                Some(json) => json,
                None if document.len() > SLOW_YAML_BYTES_MAX => {
                    return Err(format!(
                        "YAML of more than {SLOW_YAML_BYTES_MAX} bytes in a style that kubectl does not write; print it \
                         as JSON instead"
                    ));
                }
                None => {
                    let value: serde_json::Value =
                        serde_saphyr::from_str(&document).map_err(|error| error.to_string())?;
                    value.to_string()
                }
            };
            Ok(buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let items = split(text).expect("can be split");
        items
            .into_iter()
            .map(|item| to_json(item, &mut String::new()).expect("readable").to_owned())
            .collect()
    }

    #[test]
    fn all_ways_to_write_two_objects_come_to_the_same() {
        let expected = [r#"{"a":1}"#, r#"{"b":{"c":[2]}}"#];
        for text in [
            "{\"a\":1}\n{\"b\":{\"c\":[2]}}\n",
            r#"{"kind":"List","items":[{"a":1},{"b":{"c":[2]}}]}"#,
            "apiVersion: v1\nitems:\n- a: 1\n- b:\n    c:\n    - 2\nkind: List\nmetadata:\n  x: y\n",
            "a: 1\n---\nb:\n  c:\n  - 2\n",
            "---\n# nothing here\n---\na: 1\n--- \nb: {c: [2]}\n",
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn kubectl_json_is_cut_at_its_indentation() {
        let list = serde_json::json!({"apiVersion": "v1", "items": [
            {"a": {"b": [{"c": "\n        },\n        {\n"}]}}, {"d": 1}, {"e": {}}],
            "kind": "List", "metadata": {}});
        let mut text = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        serde::Serialize::serialize(&list, &mut serde_json::Serializer::with_formatter(&mut text, formatter))
            .expect("can be written");
        let text = String::from_utf8(text).expect("JSON is text");
        let items = kubectl_json_items(&text).expect("is as kubectl writes it");
        let values: Vec<serde_json::Value> =
            items.iter().map(|item| serde_json::from_str(item).expect("each item is whole")).collect();
        assert_eq!(serde_json::Value::from(values), list["items"]);
    }
}
