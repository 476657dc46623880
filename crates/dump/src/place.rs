//! Where something stands in a text: from paths to offsets, from offsets to lines.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_saphyr::granit_parser::{Event, Options, Parser, StrInput};
use supercargo_model::{FieldStep, printable};

/// So much of a line is shown, at most.
const EXCERPT_CHARACTERS_MAX: usize = 100;
/// So much of a line is shown before the place that is meant, at most.
const EXCERPT_BEFORE_MAX: usize = 60;

/// A line and a column, both counted from 1. Columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

pub(crate) fn position(text: &str, offset: usize) -> Position {
    let offset = border(text, offset);
    let start = line_start(text, offset);
    let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count() + 1;
    Position { line, column: text[start..offset].chars().count() + 1 }
}

/// The line at an offset, with a mark below the place; nothing if the line is empty.
pub(crate) fn excerpt(text: &str, offset: usize) -> String {
    let offset = border(text, offset);
    let Position { line, .. } = position(text, offset);
    let start = line_start(text, offset);
    let (before, after) = (&text[start..offset], text[offset..].split('\n').next().unwrap_or_default());
    if before.trim().is_empty() && after.trim().is_empty() {
        return String::new();
    }
    let skipped = before.chars().count().saturating_sub(EXCERPT_BEFORE_MAX);
    let before: String = before.chars().skip(skipped).collect();
    let room = EXCERPT_CHARACTERS_MAX - before.chars().count();
    let shown: String = after.chars().take(room).collect();
    let (left, right) =
        (if skipped > 0 { "…" } else { "" }, if shown.len() < after.len() { "…" } else { "" });
    let before = format!("{left}{}", printable(&before));
    let number = line.to_string();
    format!(
        "  {number} | {before}{}{right}\n  {:width$} | {:mark$}^",
        printable(&shown),
        "",
        "",
        width = number.len(),
        mark = before.chars().count()
    )
}

/// The first border between characters at an offset or before it.
fn border(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

fn line_start(text: &str, offset: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..offset]).map_or(0, |at| at + 1)
}

/// Where a path leads in a JSON text, or as far as it leads.
pub(crate) fn find_in_json(json: &str, path: &[FieldStep]) -> usize {
    let start = json.len() - json.trim_start().len();
    let mut found = &json[start..];
    for step in path {
        let next = match step {
            FieldStep::Field(name) => serde_json::from_str::<Fields<'_>>(found).ok().and_then(|fields| {
                fields.0.into_iter().find(|(field, _)| field == name).map(|(_, value)| value)
            }),
            FieldStep::Element(number) => serde_json::from_str::<Vec<&RawValue>>(found)
                .ok()
                .and_then(|items| items.get(*number).copied()),
        };
        match next {
            Some(next) => found = next.get(),
            None => break,
        }
    }
    found.as_ptr().addr() - json.as_ptr().addr()
}

/// The fields of a JSON object, unread.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Where a path leads in a YAML document, or as far as it leads. Behind an alias it is where the alias stands.
pub(crate) fn find_in_yaml(yaml: &str, path: &[FieldStep]) -> usize {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut walker = Walker { parser: Parser::new_from_str_with_options(yaml, options), last: 0 };
    walker.find(path);
    walker.last
}

struct Walker<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Where the last node on the path starts.
    last: usize,
}

impl<'a> Walker<'a> {
    fn find(&mut self, mut path: &[FieldStep]) -> Option<()> {
        loop {
            let (event, start) = self.next_node()?;
            self.last = start;
            match (event, path) {
                (Event::MappingStart(..), [FieldStep::Field(name), rest @ ..]) => {
                    self.skip_to_field(name)?;
                    path = rest;
                }
                (Event::SequenceStart(..), [FieldStep::Element(number), rest @ ..]) => {
                    for _ in 0..*number {
                        self.skip()?;
                    }
                    path = rest;
                }
                _ => return Some(()),
            }
        }
    }

    fn skip_to_field(&mut self, name: &str) -> Option<()> {
        loop {
            match self.next_node()? {
                (Event::Scalar(key, ..), _) if key == name => return Some(()),
                (event, _) => self.skip_rest_of(&event)?,
            }
            self.skip()?;
        }
    }

    fn skip(&mut self) -> Option<()> {
        let (event, _) = self.next_node()?;
        self.skip_rest_of(&event)
    }

    /// Skips what belongs to a node that has begun; none where a collection ends instead.
    fn skip_rest_of(&mut self, event: &Event<'_>) -> Option<()> {
        let mut depth = match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => 1,
            Event::MappingEnd | Event::SequenceEnd => return None,
            _ => 0,
        };
        while depth > 0 {
            match self.next_node()?.0 {
                Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                _ => {}
            }
        }
        Some(())
    }

    /// The next event that is about nodes, and where it starts.
    fn next_node(&mut self) -> Option<(Event<'a>, usize)> {
        loop {
            let (event, span) = self.parser.next_event()?.ok()?;
            match event {
                Event::StreamEnd | Event::DocumentEnd => return None,
                Event::MappingEnd | Event::SequenceEnd => return Some((event, span.start.byte_offset()?)),
                event if event.is_node() => return Some((event, span.start.byte_offset()?)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<FieldStep> {
        let steps = text.split('/').filter(|step| !step.is_empty());
        steps
            .map(|step| step.parse().map_or_else(|_| FieldStep::Field(step.to_owned()), FieldStep::Element))
            .collect()
    }

    #[test]
    fn a_path_leads_to_the_same_value_in_all_notations() {
        let block = "# x\na: &b\n  c:\n  - d\n  - e: f\nü: *b\ng: h\n";
        let flow = "{a: {c: [d, {e: f}]}, ü: *b, g: h}";
        let json = r#" {"a": {"c": ["d", {"e": "f"}]}, "ü": 1, "g": "h"}"#;
        for (place, in_block, in_flow, in_json) in [
            ("", "a: &b", "{a", "{\"a"),
            ("a", "c:", "{c", "{\"c"),
            ("a/c/0", "d\n", "d,", "\"d\""),
            ("a/c/1/e", "f\n", "f}", "\"f\""),
            ("a/c/1/x", "e: f", "{e", "{\"e"),
            ("a/c/7", "d\n", "[d", "[\"d"),
            ("ü", "*b", "*b", "1"),
            ("g", "h\n", "h}", "\"h\""),
        ] {
            let path = path(place);
            let (yaml, in_yaml) = (&block[find_in_yaml(block, &path)..], in_block);
            assert!(yaml.starts_with(in_yaml), "{place}: {yaml}");
            // The flow has no anchor, so what follows its alias cannot be found.
            if place != "g" && place != "ü" {
                let found = &flow[find_in_yaml(flow, &path)..];
                assert!(found.starts_with(in_flow), "{place}: {found}");
            }
            let found = &json[find_in_json(json, &path)..];
            assert!(found.starts_with(in_json), "{place}: {found}");
        }
    }

    #[test]
    fn a_place_is_shown_in_its_line() {
        let text = "a: b\n  ü: x\ty\n";
        assert_eq!(position(text, 9), Position { line: 2, column: 4 });
        assert_eq!(excerpt(text, 11), "  2 |   ü: x\\ty\n    |      ^");
        assert_eq!(excerpt(text, text.len()), "");
        let long = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let shown = excerpt(&long, 500);
        assert!(shown.starts_with(&format!("  1 | …{}!{}…\n", "a".repeat(60), "b".repeat(39))), "{shown}");
        assert!(shown.ends_with(&format!("    | {}^", " ".repeat(61))), "{shown}");
    }
}
