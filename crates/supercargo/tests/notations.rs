//! One cluster in many notations: the answer is the same to the letter, whoever reads it and from wherever.

mod support;
#[path = "support/writers.rs"]
mod writers;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{check, supercargo};
use writers::{flow, list, pretty, typed_list, utf16};

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster.yaml");
    fs::read_to_string(path).expect("the example is there")
}

/// The objects of the example, by the program itself.
fn objects() -> Vec<Value> {
    let output = supercargo(&["dump", "-f", "-", "-o", "json"], &example());
    check(&output, 0, &[]);
    let list: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    list["items"].as_array().expect("is a list").clone()
}

/// The items of the example as documents in YAML.
fn documents() -> Vec<String> {
    let yaml = example();
    let items = yaml.split("\nitems:\n- ").nth(1).and_then(|rest| rest.split("\nkind: List").next());
    let items = items.expect("is a list").split("\n- ");
    items.map(|item| item.replace("\n  ", "\n") + "\n").collect()
}

fn notations() -> Vec<(&'static str, Vec<u8>)> {
    let (yaml, objects, documents) = (example(), objects(), documents());
    let list_of = |range: std::ops::Range<usize>| list(&objects[range]);
    let kubectl = pretty(&list(&objects), "    ");
    let yaml_of = |range: std::ops::Range<usize>| {
        let items: Vec<String> = documents[range]
            .iter()
            .map(|item| format!("- {}", item.trim_end().replace('\n', "\n  ")))
            .collect();
        format!(
            "apiVersion: v1\nitems:\n{}\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
            items.join("\n")
        )
    };
    let lines = objects.iter().map(|object| format!("{object}\n")).collect::<String>();
    let indented = yaml
        .replace("\n- ", "\n  - ")
        .replace("\n  ", "\n    ")
        .replace("\n    - api", "\n  - api")
        .replace("\n    resourceVersion", "\n  resourceVersion");
    let anchored = yaml
        .replacen("      pods: \"110\"", "      pods: &pods \"110\"", 1)
        .replace("      pods: \"110\"", "      pods: *pods");
    let merged = yaml
        .replacen(
            "      memory: 8Gi\n      pods: \"110\"",
            "      <<: &room\n        memory: 8Gi\n        pods: \"110\"",
            1,
        )
        .replace("      memory: 8Gi\n      pods: \"110\"", "      <<: *room");
    let texts: Vec<(&str, String)> = vec![
        ("the example", yaml.clone()),
        ("line ends of Windows", yaml.replace('\n', "\r\n")),
        ("line ends of old Macs", yaml.replace('\n', "\r")),
        ("indented dashes", indented),
        ("a comment behind items", yaml.replace("\nitems:\n", "\nitems: # all of them\n")),
        ("a space behind items", yaml.replace("\nitems:\n", "\nitems: \n")),
        ("items in quotes", yaml.replace("\nitems:\n", "\n\"items\":\n")),
        ("comments and empty lines", yaml.replace("\n- ", "\n\n# an object\n- ")),
        (
            "hundreds of comments",
            yaml.replace("\nitems:\n", "\nitems: # all\n")
                .replace("\n- ", &format!("{}\n- ", "\n# an object".repeat(100)))
                .replace(
                    "    containers:\n",
                    &format!("    containers:\n{}", "    # a container\n".repeat(100)),
                ),
        ),
        ("comments behind values", yaml.replace("kind: Pod\n", "kind: Pod # a pod\n")),
        (
            "kind before items",
            yaml.replace("\nkind: List", "").replacen("apiVersion: v1\n", "apiVersion: v1\nkind: List\n", 1),
        ),
        ("two lists in one", yaml_of(0..3) + &yaml_of(3..6)),
        ("two lists with a marker", yaml_of(0..3) + "---\n" + &yaml_of(3..6)),
        ("an empty list before", format!("apiVersion: v1\nitems: []\nkind: List\n---\n{yaml}")),
        ("items: null behind", format!("{yaml}---\napiVersion: v1\nitems: null\nkind: List\n")),
        ("documents", documents.join("---\n")),
        ("documents with ends", format!("---\n{}...\n", documents.join("...\n---\n"))),
        ("documents without markers", documents.concat()),
        ("a directive", format!("%YAML 1.2\n---\n{yaml}")),
        ("a byte order mark", format!("\u{feff}{yaml}")),
        ("byte order marks", format!("\u{feff}{}\u{feff}{}", yaml_of(0..3), yaml_of(3..6))),
        ("flow style", flow(&list(&objects)) + "\n"),
        ("documents in flow style", objects.iter().map(|object| format!("--- {}\n", flow(object))).collect()),
        (
            "items in flow style",
            format!("apiVersion: v1\nkind: List\nitems: {}\n", flow(&Value::from(objects.clone()))),
        ),
        (
            "JSON as items",
            format!(
                "apiVersion: v1\nkind: List\nitems:\n{}",
                objects.iter().map(|object| format!("- {object}\n")).collect::<String>()
            ),
        ),
        (
            "a sequence",
            documents.iter().map(|item| format!("- {}\n", item.trim_end().replace('\n', "\n  "))).collect(),
        ),
        ("anchors and aliases", anchored),
        ("merge keys", merged),
        ("tags", yaml.replace("memory: 8Gi", "memory: !!str 8Gi")),
        ("numbers", yaml.replace("cpu: \"4\"", "cpu: 4").replace("cpu: \"2\"", "cpu: 2.0")),
        ("folded texts", yaml.replace("memory: 8Gi", "memory: >-\n        8Gi")),
        ("kubectl's JSON", kubectl.clone()),
        ("kubectl's JSON for Windows", kubectl.replace('\n', "\r\n")),
        ("JSON indented by two", pretty(&list(&objects), "  ")),
        ("JSON indented by tabs", pretty(&list(&objects), "\t")),
        ("compact JSON", list(&objects).to_string()),
        ("JSON with a byte order mark", format!("\u{feff}{kubectl}")),
        ("an object a line", lines.clone()),
        ("objects without line ends", objects.iter().map(Value::to_string).collect()),
        ("an array", Value::from(objects.clone()).to_string()),
        ("two lists in JSON", pretty(&list_of(0..3), "    ") + &pretty(&list_of(3..6), "    ")),
        ("lists in lists", list(&[list_of(0..2), list(&[list_of(2..6)])]).to_string()),
        (
            "lists in lists in YAML",
            format!("kind: List\napiVersion: v1\nitems: [{}]\n", flow(&list(&objects))),
        ),
        (
            "a NodeList and a PodList",
            format!("{}{}", typed_list(&objects, "Node"), typed_list(&objects, "Pod")),
        ),
        (
            "the same in flow style",
            format!("{}\n---\n{}\n", flow(&typed_list(&objects, "Node")), flow(&typed_list(&objects, "Pod"))),
        ),
        ("JSON, then YAML", pretty(&list_of(0..3), "    ") + "---\n" + &yaml_of(3..6)),
        ("JSON, then YAML without a marker", pretty(&list_of(0..3), "    ") + &yaml_of(3..6)),
        ("YAML, then JSON", yaml_of(0..3) + "---\n" + &pretty(&list_of(3..6), "    ")),
        ("YAML, then JSON without a marker", yaml_of(0..3) + &pretty(&list_of(3..6), "    ")),
        ("JSON, YAML, JSON", format!("{}\n---\n{}---\n{}\n", list_of(0..2), yaml_of(2..4), list_of(4..6))),
    ];
    let mut notations: Vec<(&str, Vec<u8>)> =
        texts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    notations.push(("UTF-16 as Windows writes it", utf16(&yaml.replace('\n', "\r\n"), u16::to_le_bytes)));
    notations.push(("UTF-16 the other way round", utf16(&kubectl, u16::to_be_bytes)));
    notations
}

struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn the_same_objects_get_the_same_answer() {
    let file =
        TemporaryFile(std::env::temp_dir().join(format!("supercargo-notations-{}", std::process::id())));
    let name = file.0.to_str().expect("is text");
    let commands: [(&[&str], bool); 4] = [
        (&["explain", "-f", "-"], false),
        (&["explain", "-o", "json", "-f", name], true),
        (&["capacity", "-f", name], true),
        (&["dump", "-f", "-"], false),
    ];
    let answers = |text: &[u8]| {
        fs::write(&file.0, text).expect("the temporary directory can be written");
        commands.map(|(arguments, is_file)| {
            let output = supercargo(arguments, if is_file { &[][..] } else { text });
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        })
    };
    let notations = notations();
    assert!(notations.len() >= 50, "only {} notations", notations.len());
    let expected = answers(&notations[0].1);
    assert!(
        expected[0].1.contains("default/train-1 would stay pending: none of 3 nodes fits"),
        "{expected:?}"
    );
    assert!(expected.iter().all(|(code, _, stderr)| *code == Some(0) && stderr.is_empty()), "{expected:?}");
    for (notation, text) in &notations[1..] {
        for (answer, expected) in answers(text).iter().zip(&expected) {
            // A dump has the fields as they were written: numbers stay numbers.
            if *notation != "numbers" || !expected.1.starts_with("apiVersion") {
                assert_eq!(answer, expected, "{notation}:\n{}", String::from_utf8_lossy(text));
            }
        }
    }
}
