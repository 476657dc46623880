//! From a value to the objects in it: lists of any kind, lists in lists.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use supercargo_model::{FieldPath, FieldStep, leading_header};

/// Lists may stand in lists this deep.
const LISTS_DEPTH_MAX: usize = 16;

/// What a list says its items are: those of a `PodList` need not say that they are pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemKind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It is not even JSON: its text was cut in the wrong place, or is wrong itself.
    Malformed { offset: usize, reason: String },
    /// It is JSON, and does not say what it should.
    Meaning { path: FieldPath, object: Option<String>, reason: String },
}

/// Makes something of the text of an object, whose kind its list may know.
pub(crate) type Convert<'c, T> = dyn Fn(&str, Option<&ItemKind>) -> Result<T, Trouble> + Sync + 'c;

/// What was made of an object, or what is wrong with it, and the path that leads to it.
pub(crate) type Found<T> = (Vec<FieldStep>, Result<T, Trouble>);

/// Makes something of every object in a value. `is_cut_visible` is whether a text that was cut cannot be read at all, as with
/// JSON.
pub(crate) struct Expansion<'c, T> {
    pub(crate) convert: &'c Convert<'c, T>,
    pub(crate) is_cut_visible: bool,
}

/// What a list holds, before anything is read.
pub(crate) struct List<'a> {
    pub(crate) items: Vec<&'a RawValue>,
    pub(crate) item_kind: Option<ItemKind>,
}

impl<T> Expansion<'_, T> {
    /// The objects of a value; none in `null`, which is an empty document.
    pub(crate) fn of_document(&self, json: &str) -> Vec<Found<T>> {
        let mut found = Vec::new();
        if json.trim() != "null" {
            self.expand(json, None, &mut Vec::new(), 0, &mut found);
        }
        found
    }

    /// The objects of an item.
    pub(crate) fn of_item(&self, json: &str, kind: Option<&ItemKind>) -> Vec<Found<T>> {
        let mut found = Vec::new();
        self.expand(json, kind, &mut Vec::new(), 0, &mut found);
        found
    }

    fn expand(
        &self,
        json: &str,
        kind: Option<&ItemKind>,
        path: &mut Vec<FieldStep>,
        depth: usize,
        found: &mut Vec<Found<T>>,
    ) {
        let (list, is_field) = match json.trim_start().as_bytes().first() {
            Some(b'{') => (list(json, self.is_cut_visible), true),
            Some(b'[') => (elements(json).map(|items| Some(List { items, item_kind: kind.cloned() })), false),
            _ => (Err(no_object(json)), false),
        };
        match list {
            Err(trouble) => found.push((path.clone(), Err(trouble))),
            Ok(None) => found.push((path.clone(), (self.convert)(json, kind))),
            Ok(Some(_)) if depth == LISTS_DEPTH_MAX => {
                let reason = format!("lists stand in lists more than {LISTS_DEPTH_MAX} deep");
                found.push((path.clone(), Err(Trouble::meaning([], reason))));
            }
            Ok(Some(List { items, item_kind })) => {
                let length = path.len();
                for (number, item) in items.into_iter().enumerate() {
                    path.extend(is_field.then(|| FieldStep::Field("items".to_owned())));
                    path.push(FieldStep::Element(number));
                    self.expand(item.get(), item_kind.as_ref(), path, depth + 1, found);
                    path.truncate(length);
                }
            }
        }
    }
}

impl Trouble {
    pub(crate) fn meaning(path: impl IntoIterator<Item = FieldStep>, reason: impl Into<String>) -> Self {
        Trouble::Meaning { path: path.into_iter().collect(), object: None, reason: reason.into() }
    }

    pub(crate) fn of_json(json: &str, error: &serde_json::Error) -> Self {
        let before =
            json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        // Columns are counted from 1, and so is what has been read.
        let offset = (before + error.column().saturating_sub(1)).min(json.len());
        let position = format!(" at line {} column {}", error.line(), error.column());
        let text = error.to_string();
        let reason = match text.strip_suffix(&position).unwrap_or(&text) {
            said if error.is_eof() => format!("{said}: the text ends too early; was it cut?"),
            said => said.to_owned(),
        };
        if error.is_data() { Trouble::meaning([], reason) } else { Trouble::Malformed { offset, reason } }
    }
}

/// The fields by which an object is known as a list, or as what it is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Frame<'a> {
    #[serde(borrow, deserialize_with = "present")]
    api_version: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    items: Option<&'a RawValue>,
}

impl Frame<'_> {
    pub(crate) fn kind(&self) -> Option<String> {
        text(self.kind)
    }

    pub(crate) fn api_version(&self) -> Option<String> {
        text(self.api_version)
    }
}

/// A field that is there, be it `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn text(field: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(field?.get()).ok()
}

/// The list that an object is, if it is one.
pub(crate) fn list(json: &str, is_cut_visible: bool) -> Result<Option<List<'_>>, Trouble> {
    // Most texts begin with what they are.
    if leading_header(json).is_some_and(|(_, kind)| !kind.ends_with("List")) {
        return Ok(None);
    }
    let frame: Frame<'_> = serde_json::from_str(json).map_err(|error| Trouble::of_json(json, &error))?;
    let kind = frame.kind().unwrap_or_default();
    let Some(items) = frame.items else {
        let is_empty_list = kind == "List";
        return Ok(is_empty_list.then(|| List { items: Vec::new(), item_kind: None }));
    };
    if frame.kind.is_none() && items.get().starts_with('[') {
        // kubectl writes the kind behind the items.
        if !is_cut_visible {
            return Err(Trouble::meaning([], CUT_LIST));
        }
    } else if !kind.ends_with("List") {
        return Ok(None);
    }
    let item_kind = item_kind(frame.api_version().unwrap_or_default(), &kind);
    match items.get() {
        "null" => Ok(Some(List { items: Vec::new(), item_kind })),
        text if text.starts_with('[') => Ok(Some(List { items: elements(text)?, item_kind })),
        _ => Err(Trouble::meaning([FieldStep::Field("items".to_owned())], "the items of a list are no list")),
    }
}

/// What is said of a list whose end is missing.
pub(crate) const CUT_LIST: &str = "the list ends without its kind: was the file cut?";

/// What a list of that kind says its items are.
pub(crate) fn item_kind(api_version: String, list: &str) -> Option<ItemKind> {
    let kind = list.strip_suffix("List").filter(|kind| !kind.is_empty() && !kind.contains('.'))?;
    Some(ItemKind { api_version, kind: kind.to_owned() })
}

fn elements(json: &str) -> Result<Vec<&RawValue>, Trouble> {
    serde_json::from_str(json).map_err(|error| Trouble::of_json(json, &error))
}

fn no_object(json: &str) -> Trouble {
    let what = match serde_json::from_str::<serde_json::Value>(json) {
        Err(error) => return Trouble::of_json(json, &error),
        Ok(serde_json::Value::String(text)) => format!("the text {text:?}"),
        Ok(other) => other.to_string(),
    };
    Trouble::meaning([], format!("an object of Kubernetes is expected here, and this is {what}"))
}
