//! Label sets, and the selectors that pick objects by them.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::lookups::{self, LabelsId, Lookup};
use crate::names;
use crate::protobuf::message;

/// The labels (or annotations) of an object, sorted by key.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

/// Anything a selector can look labels up in: a [`Labels`] set, or a row of the node table.
pub trait LabelLookup {
    /// The value under `key`, if the key is there.
    fn label(&self, key: &str) -> Option<&str>;
}

/// Which objects are meant, by their labels. All requirements must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelSelector {
    /// An absent selector: it matches nothing.
    Nothing,
    /// The requirements; none at all match everything.
    Requirements(Box<[Requirement]>),
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    values: Box<[Box<str>]>,
}

/// How a [`Requirement`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The key is there and its value is one of the given.
    In,
    /// The key is missing, or its value is none of the given.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is missing.
    DoesNotExist,
    /// The key is there and its value, as an integer, is greater than the given one.
    Gt,
    /// The key is there and its value, as an integer, is less than the given one.
    Lt,
}

/// Why a selector cannot be used, in the API machinery's words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// A label selector as it is written: `matchLabels` and `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelectorWords {
    /// Labels that must have exactly these values.
    #[serde(deserialize_with = "crate::wire::null_default")]
    pub match_labels: Labels,
    /// Further requirements.
    #[serde(deserialize_with = "crate::wire::null_default")]
    pub match_expressions: Vec<RequirementWords>,
}

/// A requirement as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct RequirementWords {
    /// The label key (or field path).
    #[serde(deserialize_with = "crate::wire::null_default")]
    pub key: String,
    /// The operator's name.
    #[serde(deserialize_with = "crate::wire::null_default")]
    pub operator: String,
    /// The values compared with.
    #[serde(deserialize_with = "crate::wire::null_default")]
    pub values: Vec<Box<str>>,
}

message!(LabelSelectorWords { 2 => match_expressions } pairs { 1 => match_labels });
message!(RequirementWords { 1 => key, 2 => operator, 3 => values });

// === impl Labels ===

impl Labels {
    /// All pairs, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl LabelLookup for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        lookups::note(|| Lookup::Label(LabelsId::of(self)));
        let index = self.0.binary_search_by(|(candidate, _)| (**candidate).cmp(key)).ok()?;
        Some(&self.0[index].1)
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    /// Of two pairs with one key the later counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Box<str>, Box<str>)> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        // `dedup_by` keeps the first of equals, so look at them from the back.
        pairs.reverse();
        pairs.dedup_by(|a, b| a.0 == b.0);
        pairs.reverse();
        Labels(pairs.into())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> serde::de::Visitor<'de> for Pairs {
            type Value = Labels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs: Vec<(Box<str>, Box<str>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<Box<str>, Option<Box<str>>>()? {
                    pairs.push((key, value.unwrap_or_default()));
                }
                Ok(pairs.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

// === impl LabelSelector ===

impl LabelSelector {
    /// The selector that matches every object.
    pub fn everything() -> Self {
        LabelSelector::Requirements(Box::default())
    }

    /// The selector for objects that carry all of `labels`; an empty set matches everything.
    pub fn from_labels(labels: &Labels) -> Self {
        LabelSelector::Requirements(
            labels.iter().map(|(key, value)| Requirement::equals(key, value)).collect(),
        )
    }

    /// Reads a selector; an absent one matches nothing, an empty one everything.
    pub fn parse(words: Option<&LabelSelectorWords>) -> Result<Self, SelectorError> {
        let Some(words) = words else { return Ok(LabelSelector::Nothing) };
        let mut requirements = Vec::with_capacity(words.match_labels.len() + words.match_expressions.len());
        for (key, value) in words.match_labels.iter() {
            let mut problems = Problems::default();
            check_key(key, "key", &mut problems);
            check_value(key, value, "values[0]", &mut problems);
            problems.into_result()?;
            requirements.push(Requirement::equals(key, value));
        }
        for words in &words.match_expressions {
            let operator = match Operator::named(&words.operator) {
                Some(Operator::Gt | Operator::Lt) | None => {
                    return Err(SelectorError(format!(
                        "{} is not a valid label selector operator",
                        go_quote(&words.operator)
                    )));
                }
                Some(operator) => operator,
            };
            let mut problems = Problems::default();
            let requirement = Requirement::read(words, operator, "", &mut problems);
            problems.into_result()?;
            requirements.push(requirement);
        }
        Ok(LabelSelector::Requirements(requirements.into()))
    }

    /// Whether an object with these labels is meant.
    pub fn matches(&self, labels: &impl LabelLookup) -> bool {
        match self {
            LabelSelector::Nothing => false,
            LabelSelector::Requirements(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Whether the selector restricts nothing.
    pub fn is_everything(&self) -> bool {
        matches!(self, LabelSelector::Requirements(requirements) if requirements.is_empty())
    }

    /// This selector with further requirements; a selector that matches nothing stays so.
    pub fn and(&self, further: impl IntoIterator<Item = Requirement>) -> Self {
        match self {
            LabelSelector::Nothing => LabelSelector::Nothing,
            LabelSelector::Requirements(own) => {
                LabelSelector::Requirements(own.iter().cloned().chain(further).collect())
            }
        }
    }

    /// The requirements, if the selector has any to give.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        match self {
            LabelSelector::Nothing => None,
            LabelSelector::Requirements(requirements) => Some(requirements),
        }
    }
}

// === impl Requirement ===

impl Requirement {
    /// The label must have exactly this value.
    pub fn equals(key: &str, value: &str) -> Self {
        Requirement { key: key.into(), operator: Operator::In, values: Box::new([value.into()]) }
    }

    /// The label must have one of these values.
    pub fn one_of<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        Requirement { key: key.into(), operator: Operator::In, values }
    }

    /// Reads one requirement and notes what is wrong with it; `path` is where it stands, for the error's text.
    pub(crate) fn read(
        words: &RequirementWords,
        operator: Operator,
        path: &str,
        problems: &mut Problems,
    ) -> Self {
        let at = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
        check_key(&words.key, &at("key"), problems);
        let whole = |detail: &str, problems: &mut Problems| {
            problems.invalid(&at("values"), &json_list(&words.values), detail);
        };
        match operator {
            Operator::In | Operator::NotIn if words.values.is_empty() => {
                whole("for 'in', 'notin' operators, values set can't be empty", problems);
            }
            Operator::Exists | Operator::DoesNotExist if !words.values.is_empty() => {
                whole("values set must be empty for exists and does not exist", problems);
            }
            Operator::Gt | Operator::Lt => {
                if words.values.len() != 1 {
                    whole("for 'Gt', 'Lt' operators, exactly one value is required", problems);
                }
                for (index, value) in words.values.iter().enumerate() {
                    if parse_integer(value).is_none() {
                        problems.invalid(
                            &at(&format!("values[{index}]")),
                            &go_quote(value),
                            "for 'Gt', 'Lt' operators, the value must be an integer",
                        );
                    }
                }
            }
            _ => {}
        }
        for (index, value) in words.values.iter().enumerate() {
            check_value(&words.key, value, &at(&format!("values[{index}]")), problems);
        }
        Requirement { key: words.key.as_str().into(), operator, values: words.values.clone().into() }
    }

    /// The key and the value, if only one value will do.
    pub fn only_value(&self) -> Option<(&str, &str)> {
        match (self.operator, &*self.values) {
            (Operator::In, [value]) => Some((&self.key, value)),
            _ => None,
        }
    }

    /// The label key that is looked at.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether an object with these labels satisfies the requirement.
    pub fn matches(&self, labels: &impl LabelLookup) -> bool {
        let found = labels.label(&self.key);
        match self.operator {
            Operator::In => found.is_some_and(|value| self.names(value)),
            Operator::NotIn => found.is_none_or(|value| !self.names(value)),
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
            Operator::Gt => self.compare(found).is_some_and(|(label, given)| label > given),
            Operator::Lt => self.compare(found).is_some_and(|(label, given)| label < given),
        }
    }

    fn names(&self, value: &str) -> bool {
        self.values.iter().any(|candidate| **candidate == *value)
    }

    fn compare(&self, found: Option<&str>) -> Option<(i64, i64)> {
        Some((parse_integer(found?)?, parse_integer(self.values.first()?)?))
    }
}

impl Operator {
    /// The operator that the API calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            _ => return None,
        })
    }
}

/// Problems found in one selector; they print as the API machinery aggregates them.
#[derive(Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn invalid(&mut self, path: &str, value: &str, detail: &str) {
        self.0.push(format!("{path}: Invalid value: {value}: {detail}"));
    }

    pub(crate) fn add(&mut self, text: String) {
        self.0.push(text);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_result(self) -> Result<(), SelectorError> {
        if self.0.is_empty() { Ok(()) } else { Err(SelectorError(aggregate(self.0))) }
    }
}

/// Joins error texts as the API machinery does: one stands alone, several in brackets, repeated ones once.
pub(crate) fn aggregate(texts: impl IntoIterator<Item = String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    for text in texts {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    if unique.len() == 1 { unique.swap_remove(0) } else { format!("[{}]", unique.join(", ")) }
}

fn check_key(key: &str, path: &str, problems: &mut Problems) {
    let found = names::label_key_problems(key);
    if !found.is_empty() {
        problems.invalid(path, &go_quote(key), &found.join("; "));
    }
}

fn check_value(key: &str, value: &str, path: &str, problems: &mut Problems) {
    let found = names::label_value_problems(value);
    if !found.is_empty() {
        problems.invalid(&format!("{path}[{key}]"), &go_quote(value), &found.join("; "));
    }
}

/// Go's `strconv.ParseInt(text, 10, 64)`: an optional sign and digits, nothing else.
pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A string in quotes, as Go's `%q` prints it (for the characters that occur in names).
pub(crate) fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            control if control.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", control as u32)),
            hidden if hidden != ' ' && (hidden.is_control() || hidden.is_whitespace()) => {
                quoted.push_str(&format!("\\u{:04x}", hidden as u32));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A list as Go's JSON encoder prints it.
pub(crate) fn json_list(values: &[Box<str>]) -> String {
    // An absent list is Go's nil slice, which prints as null.
    if values.is_empty() { "null".to_owned() } else { go_json(values) }
}

/// A value as Go's JSON encoder prints it, which makes its output fit for HTML.
pub(crate) fn go_json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    let plain = serde_json::to_string(value).unwrap_or_default();
    plain.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
pub(crate) mod tests;
