//! Values in JSON, one after the other.

use serde_json::value::RawValue;

use super::{Cut, Form};
use crate::fault::Fault;
use crate::objects::{Trouble, item_kind, list};

/// How kubectl begins a list, up to the brace of its first item.
const HEAD: &str = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        ";
/// How an item of kubectl's ends: no text in JSON has a line break in it, so no other brace stands behind eight spaces.
const ITEM_END: &str = "\n        }";
/// What stands between two items.
const BETWEEN: &str = ",\n        ";
/// What stands behind the last one.
const LIST_END: &str = "\n    ],";

/// Why a text is not JSON.
pub(super) enum NotJson {
    /// It ends too early. So it does as YAML.
    Cut(Fault),
    /// It may be YAML in flow style.
    Other(Fault),
}

/// Cuts the value that starts there, and says where it ends.
pub(super) fn cut<'a>(text: &'a str, start: usize, cut: &mut Cut<'a>) -> Result<usize, NotJson> {
    let rest = &text[start..];
    let length = match cut_as_kubectl_writes(rest, cut) {
        Some(length) => length,
        None => cut_by_reading(rest, cut).map_err(|not_json| match not_json {
            NotJson::Cut(fault) => NotJson::Cut(fault.within(start)),
            NotJson::Other(fault) => NotJson::Other(fault.within(start)),
        })?,
    };
    Ok(start + length)
}

/// The items of a list that kubectl printed, indented by four. The general way reads every byte to find the same borders.
fn cut_as_kubectl_writes<'a>(text: &'a str, cut: &mut Cut<'a>) -> Option<usize> {
    let start = text.strip_prefix(HEAD).filter(|body| body.starts_with("{\n")).map(|_| HEAD.len())?;
    let mut items = Vec::new();
    let mut from = start;
    for at in memchr::memmem::find_iter(&text.as_bytes()[start..], ITEM_END) {
        let end = start + at + ITEM_END.len();
        items.push(&text[from..end]);
        let rest = &text[end..];
        if let Some(next) = rest.strip_prefix(BETWEEN) {
            from = next.starts_with("{\n").then_some(end + BETWEEN.len())?;
        } else if let Some(tail) = rest.strip_prefix(LIST_END) {
            let tail = &tail[..memchr::memmem::find(tail.as_bytes(), b"\n}")? + 2];
            let length = end + LIST_END.len() + tail.len();
            let fields: serde_json::Map<_, _> = serde_json::from_str(&format!("{{{tail}")).ok()?;
            let kind = fields.get("kind")?.as_str()?;
            if !kind.ends_with("List") || fields.contains_key("items") || fields.contains_key("apiVersion") {
                return None;
            }
            cut.push_list(&text[..length], Form::Json, item_kind("v1".to_owned(), kind));
            items.into_iter().for_each(|item| cut.push_piece(item, Form::JsonItem));
            return Some(length);
        } else {
            return None;
        }
    }
    None
}

fn cut_by_reading<'a>(text: &'a str, cut: &mut Cut<'a>) -> Result<usize, NotJson> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = match values.next() {
        Some(Ok(value)) => value.get(),
        Some(Err(error)) => {
            let fault = match Trouble::of_json(text, &error) {
                Trouble::Malformed { offset, reason } => Fault::new(offset, reason),
                Trouble::Meaning { reason, .. } => Fault::new(0, reason),
            };
            return Err(if error.is_eof() { NotJson::Cut(fault) } else { NotJson::Other(fault) });
        }
        None => return Err(NotJson::Cut(Fault::new(0, "the text ends here"))),
    };
    match list(value, true) {
        Ok(Some(list)) => {
            cut.push_list(value, Form::Json, list.item_kind);
            list.items.into_iter().for_each(|item| cut.push_piece(item.get(), Form::JsonItem));
        }
        // What is wrong with it is found when it is read.
        _ => cut.push_whole(value, Form::Json, None),
    }
    Ok(value.len())
}
