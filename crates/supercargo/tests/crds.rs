//! `deploy/crds` holds the definitions that the code has, as files that people can apply.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

/// Writes a value as YAML: blocks, and texts as JSON has them.
fn yaml(value: &Value, indent: usize, text: &mut String) {
    let space = " ".repeat(indent);
    match value {
        Value::Object(map) if is_block(value) => {
            for (key, value) in map {
                if is_block(value) {
                    _ = writeln!(text, "{space}{key}:");
                    let deeper = if value.is_array() { indent } else { indent + 2 };
                    yaml(value, deeper, text);
                } else {
                    _ = writeln!(text, "{space}{key}: {value}");
                }
            }
        }
        Value::Array(list) if is_block(value) => {
            for item in list {
                let mut block = String::new();
                yaml(item, indent + 2, &mut block);
                _ = write!(text, "{space}- {}", block.trim_start());
            }
        }
        scalar => _ = writeln!(text, "{space}{scalar}"),
    }
}

/// Whether a value takes more than its own line.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    }
}

#[test]
fn the_files_are_what_the_code_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    for definition in supercargo_plugins::community::definitions() {
        let mut expected = "# Made by `UPDATE_DOCS=1 cargo test -p supercargo --test crds`.\n".to_owned();
        yaml(&definition.manifest(), 0, &mut expected);
        let kind = definition.kind;
        let file = folder.join(format!("{}_{}.yaml", kind.group, kind.plural));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &expected).expect("the folder is there");
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == expected, "{} is not fresh: run with UPDATE_DOCS=1", file.display());
    }
}
