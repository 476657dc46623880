use super::*;

/// The texts of all pieces.
fn texts(text: &str) -> Vec<&str> {
    cut(text).expect("can be cut").pieces.into_iter().map(|piece| piece.text).collect()
}

#[test]
fn what_kubectl_writes_is_cut_into_items() {
    let yaml = "apiVersion: v1\nitems:\n- a: 1\n  b: |\n    ---\n- c: 2\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    assert_eq!(texts(yaml), ["- a: 1\n  b: |\n    ---\n", "- c: 2\n"]);
    assert_eq!(texts(&yaml.repeat(2)).len(), 4);
    let json = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        {\n            \"a\": {}\n        },\n        {\n            \
                \"b\": 1\n        }\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n";
    let items = ["{\n            \"a\": {}\n        }", "{\n            \"b\": 1\n        }"];
    assert_eq!(texts(json), items);
    assert_eq!(texts(&json.repeat(2)), [items, items].concat());
}

#[test]
fn documents_are_cut_at_their_markers() {
    for (text, expected) in [
        ("a: 1\n---\nb: 2\n", &["a: 1\n", "b: 2\n"][..]),
        ("a: 1\n...\nb: 2", &["a: 1\n", "b: 2"]),
        ("a: 1\n---b: 2\n", &["a: 1\n---b: 2\n"]),
        ("a: |\n  ---\n", &["a: |\n  ---\n"]),
        ("%YAML 1.2\n---\na: 1\n---\nb: 1\n", &["%YAML 1.2\n---\na: 1\n", "b: 1\n"]),
        ("--- {a: 1}\n--- # b\n  b: 1\n", &[" {a: 1}\n", "  b: 1\n"]),
        ("kind: A\nkind: B\n", &["kind: A\n", "kind: B\n"]),
        ("kind: A\nx: 1\nx: 2\n", &["kind: A\nx: 1\nx: 2\n"]),
        ("\"kind\": A\n'kind' : B\n", &["\"kind\": A\n", "'kind' : B\n"]),
        ("# only\n---\n# comments\n", &[]),
    ] {
        assert_eq!(texts(text), expected, "{text:?}");
    }
}
