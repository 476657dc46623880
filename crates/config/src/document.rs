//! Text to values: YAML documents or one JSON document, with repeated keys found, and where everything stands.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Location, Options, Spanned};

use crate::codes;
use crate::fields::below;
use crate::json_tree;
use crate::places::{Places, Position};
use crate::plain_words;
use crate::problem::{Problem, Problems};

/// A document, and where its parts stand.
pub(crate) struct Parsed {
    pub(crate) value: Value,
    pub(crate) places: Places,
}

/// The documents of a text; empty ones are left out. Keys that stand twice are problems, and the last one counts. A text
/// that cannot be parsed is one problem and no documents. Paths start with `path`, and positions are of `file`.
pub(crate) fn parse(text: &str, path: &str, file: usize, problems: &mut Problems) -> Vec<Parsed> {
    // The API machinery takes anything that starts like an object for JSON, and does not try YAML afterwards.
    let json = text.trim_start().starts_with('{');
    let trees = if json { parse_json(text) } else { parse_yaml(text) };
    let trees = match trees {
        Ok(trees) => trees,
        Err(Broken { message, at, hint }) => {
            let position = at.map(|(line, column)| Position { file, line, column });
            let problem = Problem::new(&codes::SYNTAX, path, message).with_hint(hint);
            problems.push(problem.at(position));
            return Vec::new();
        }
    };
    let read = |Node { tree, at }: Node| {
        let mut reader = TreeReader { json, file, places: Places::default(), problems };
        reader.place(path, at);
        let value = reader.value(tree, path);
        Parsed { value, places: reader.places }
    };
    trees.into_iter().map(read).collect()
}

/// Why a text cannot be parsed, and the line and column where that shows.
struct Broken {
    message: String,
    at: Option<(u64, u64)>,
    hint: Option<String>,
}

fn parse_json(text: &str) -> Result<Vec<Node>, Broken> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text).and_then(|_| json_tree::parse(text)) {
        Ok(node) => Ok(vec![node]),
        Err(error) => {
            let at = Some((error.line().max(1) as u64, error.column().max(1) as u64));
            let words = error.to_string();
            let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
            let message = format!("not JSON: {}", plain_words::of(words));
            Err(Broken { message, at, hint: plain_words::template_hint(text, at) })
        }
    }
}

fn parse_yaml(text: &str) -> Result<Vec<Node>, Broken> {
    // Go's YAML parser follows version 1.1 of YAML where numbers are concerned.
    let options: Options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins, legacy_octal_numbers: true, with_snippet: false };
    let trees: Vec<Spanned<Tree>> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let at = error.location().and_then(|location| at(&location));
            let message = format!("not YAML: {}", plain_words::of_yaml(&error));
            Broken { message, at, hint: plain_words::template_hint(text, at) }
        })?;
    Ok(trees.into_iter().map(Node::from).collect())
}

fn at(location: &Location) -> Option<(u64, u64)> {
    (location.line() > 0).then(|| (location.line(), location.column().max(1)))
}

/// A value in which a key can stand twice.
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A value, and its line and column.
pub(crate) struct Node {
    pub(crate) tree: Tree,
    pub(crate) at: Option<(u64, u64)>,
}

/// A key with its value, and the line and column of the key.
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Option<(u64, u64)>,
    pub(crate) tree: Tree,
}

impl From<Spanned<Tree>> for Node {
    fn from(spanned: Spanned<Tree>) -> Self {
        Node { tree: spanned.value, at: at(&spanned.referenced) }
    }
}

struct TreeReader<'a> {
    json: bool,
    file: usize,
    places: Places,
    problems: &'a mut Problems,
}

impl TreeReader<'_> {
    fn place(&mut self, path: &str, at: Option<(u64, u64)>) -> Option<Position> {
        let position = at.map(|(line, column)| Position { file: self.file, line, column });
        if let Some(position) = position {
            self.places.insert(path, position);
        }
        position
    }

    fn value(&mut self, tree: Tree, path: &str) -> Value {
        match tree {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(value),
            Tree::Number(number) if self.json => Value::Number(number),
            Tree::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
            Tree::String(text) => Value::String(text),
            Tree::List(items) => {
                let read = |(index, Node { tree, at }): (usize, Node)| {
                    let path = format!("{path}[{index}]");
                    self.place(&path, at);
                    self.value(tree, &path)
                };
                Value::Array(items.into_iter().enumerate().map(read).collect())
            }
            Tree::Map(entries) => Value::Object(self.map(entries, path)),
        }
    }

    fn map(&mut self, entries: Vec<Entry>, path: &str) -> Map<String, Value> {
        let mut map = Map::new();
        for Entry { key, at, tree } in entries {
            let path = below(path, &key);
            if map.contains_key(&key) {
                let before = self.places.nearest(&path).filter(|_| self.places.has(&path));
                let hint = before.map(|before| format!("the one before is at line {}", before.line));
                let message = format!("field {key:?} stands here twice");
                let problem = Problem::new(&codes::DUPLICATE_FIELD, &path, message).with_hint(hint);
                let position = self.place(&path, at);
                self.problems.push(problem.at(position));
            }
            self.place(&path, at);
            let value = self.value(tree, &path);
            map.insert(key, value);
        }
        map
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
        while let Some(item) = access.next_element::<Spanned<Tree>>()? {
            items.push(item.into());
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, tree)) = access.next_entry::<Spanned<String>, Tree>()? {
            entries.push(Entry { at: at(&key.referenced), key: key.value, tree });
        }
        Ok(Tree::Map(entries))
    }
}
