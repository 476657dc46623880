//! Text to values: YAML documents or one JSON document, with repeated keys found.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Options};

use crate::codes;
use crate::fields::below;
use crate::problem::{Problem, Problems};

/// The documents of a text; empty ones are left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>, Problems> {
    // The API machinery takes anything that starts like an object for JSON, and does not try YAML afterwards.
    let json = text.trim_start().starts_with('{');
    let trees = if json { parse_json(text) } else { parse_yaml(text, DuplicateKeyPolicy::LastWins) }?;
    let mut problems = Problems::default();
    let documents = trees.into_iter().map(|tree| tree.into_value(json, "", &mut problems)).collect();
    if problems.has_errors() && !json {
        // The parser knows the line of the first repeated key, and we know the paths of all of them.
        if let Err(located) = parse_yaml(text, DuplicateKeyPolicy::Error) {
            let lines = located.into_iter().map(|problem| problem.message);
            problems = problems
                .into_iter()
                .zip(lines.map(Some).chain(std::iter::repeat(None)))
                .map(|(problem, line)| problem.with_hint(line))
                .fold(Problems::default(), |mut problems, problem| {
                    problems.push(problem);
                    problems
                });
        }
    }
    problems.into_result(documents)
}

fn parse_json(text: &str) -> Result<Vec<Tree>, Problems> {
    match serde_json::from_str(text) {
        Ok(tree) => Ok(vec![tree]),
        Err(error) => Err(syntax(format!("not JSON: {error}"))),
    }
}

fn parse_yaml(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Vec<Tree>, Problems> {
    // Go's YAML parser follows version 1.1 of YAML where numbers are concerned.
    let options: Options = serde_saphyr::options! { duplicate_keys: duplicate_keys, legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| match &error {
        serde_saphyr::Error::DuplicateMappingKey { location, .. } => {
            syntax(format!("the second one is at line {}, column {}", location.line(), location.column()))
        }
        error => syntax(format!("not YAML: {error}")),
    })
}

fn syntax(message: String) -> Problems {
    let mut problems = Problems::default();
    problems.push(Problem::new(&codes::SYNTAX, "", message));
    problems
}

/// A value in which a key can stand twice.
enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    fn into_value(self, json: bool, path: &str, problems: &mut Problems) -> Value {
        match self {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(value),
            Tree::Number(number) if json => Value::Number(number),
            Tree::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
            Tree::String(text) => Value::String(text),
            Tree::List(items) => {
                let read = |(index, item): (usize, Tree)| {
                    item.into_value(json, &format!("{path}[{index}]"), problems)
                };
                Value::Array(items.into_iter().enumerate().map(read).collect())
            }
            Tree::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let path = below(path, &key);
                    let value = value.into_value(json, &path, problems);
                    if map.contains_key(&key) {
                        let message = format!("field {key:?} stands here twice");
                        problems.add(&codes::DUPLICATE_FIELD, path, message);
                    }
                    map.insert(key, value);
                }
                Value::Object(map)
            }
        }
    }
}

/// `5.0` as 5. Kubernetes turns YAML into JSON first, and there a float without a fraction loses its point.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() < 9e15).then(|| Number::from(float as i64))
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Tree, E> {
        Number::from_f64(value).map(Tree::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Tree::Map(entries))
    }
}
