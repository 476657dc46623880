//! The same objects, written in many ways.

use serde_json::Value;
use supercargo_dump::{ListFormat, ListWriter};

use crate::writers::{flow, list, pretty, typed_list, utf16};

/// Objects in every notation, each with its name. What the first says, all of them say.
pub(crate) fn notations(objects: &[Value]) -> Vec<(&'static str, Vec<u8>)> {
    let (half, rest) = objects.split_at(objects.len() / 2);
    let lines = |objects: &[Value]| objects.iter().map(|object| format!("{object}\n")).collect::<String>();
    let documents: String = objects.iter().map(|object| format!("--- {}\n", flow(object))).collect();
    let items: String = objects.iter().map(|object| format!("  -   {}\n", flow(object))).collect();
    let yaml = dumped(objects);
    let texts = [
        ("kubectl's JSON", pretty(&list(objects), "    ")),
        ("compact JSON", list(objects).to_string()),
        ("JSON indented by tabs", pretty(&list(objects), "\t").replace('\n', "\r\n")),
        ("an object a line", lines(objects)),
        ("objects without line ends", objects.iter().map(Value::to_string).collect()),
        ("an array", Value::from(objects.to_vec()).to_string()),
        ("lists in lists", list(&[list(half), list(&[list(rest)])]).to_string()),
        ("flow style", flow(&list(objects)) + "\n"),
        ("documents in flow style", documents),
        ("items in flow style", format!("kind: List\napiVersion: v1\nitems: # all of them\n{items}")),
        ("our own YAML", yaml.clone()),
        ("our own YAML for Windows", yaml.replace('\n', "\r\n")),
        ("our own YAML with a comment", yaml.replacen("items:", "items: # all of them", 1)),
        ("a directive, two lists", format!("%YAML 1.2\n---\n{}---\n{}", dumped(half), dumped(rest))),
        ("YAML, then JSON", format!("{}---\n{}", dumped(half), lines(rest))),
        ("JSON, then YAML", format!("{}{}", pretty(&list(half), "    "), dumped(rest))),
    ];
    let mut notations: Vec<_> = texts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    notations.push(("UTF-16", utf16(&yaml, u16::to_le_bytes)));
    notations
}

/// The objects as lists of their kinds, in the order in which the kinds come first.
pub(crate) fn typed_lists(objects: &[Value]) -> Vec<u8> {
    let mut kinds: Vec<&str> = Vec::new();
    for kind in objects.iter().filter_map(|object| object["kind"].as_str()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.iter().map(|kind| pretty(&typed_list(objects, kind), "  ")).collect::<String>().into_bytes()
}

fn dumped(objects: &[Value]) -> String {
    let mut writer = ListWriter::new(ListFormat::Yaml);
    let mut text: String = objects.iter().map(|object| writer.object(object)).collect();
    text.push_str(writer.end());
    text
}
