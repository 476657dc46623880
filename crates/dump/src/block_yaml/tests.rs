use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(yaml: &str) -> Option<Value> {
    to_json(yaml).map(|json| serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {json}")))
}

#[test]
fn what_kubectl_writes() {
    let yaml = r#"apiVersion: v1
kind: Pod
metadata:
  annotations:
    note: |
      two
        lines
    empty: ""
    quoted: "a \"b\" \\ \u00e9"
    single: 'it''s'
  labels: {}
  creationTimestamp: null
  uid: 00000000-1111-2222-3333-00000000000e
spec:
  containers:
  - args:
    - --flag=a
    - -x
    image: web:1
    name: c
    ports:
    - containerPort: 80
      hostPort: 0
  - name: d
  hostIP: 10.0.0.1
  nested:
    - - 1
      - 2
    -
      a: b
  ratio: 0.5
  message: a long text that was folded at some
    column, and goes on here
  none:
  yes_: true
status: {}
"#;
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "annotations": {"note": "two\n  lines\n", "empty": "", "quoted": "a \"b\" \\ é", "single": "it's"},
            "labels": {}, "creationTimestamp": null, "uid": "00000000-1111-2222-3333-00000000000e"
        },
        "spec": {
            "containers": [
                {"args": ["--flag=a", "-x"], "image": "web:1", "name": "c",
                 "ports": [{"containerPort": 80, "hostPort": 0}]},
                {"name": "d"}
            ],
            "hostIP": "10.0.0.1", "nested": [[1, 2], {"a": "b"}], "ratio": 0.5,
            "message": "a long text that was folded at some column, and goes on here", "none": null, "yes_": true
        },
        "status": {}
    });
    assert_eq!(read(yaml), Some(expected));
}

#[test]
fn what_is_left_to_the_general_parser() {
    for yaml in [
        "a: &anchor b",
        "a: *alias",
        "a: !!str 1",
        "a: {b: c}",
        "a: [1]",
        "a: >\n  folded",
        "a: yes",
        "a: 0x1f",
        "a: 007",
        "a: 1_000",
        "a: .5",
        "a: 1:30",
        "a: \"not\n  closed\"",
        "a: b # comment",
        "? a\n: b",
        "a:\tb",
        "%YAML 1.1",
        "a: b: c",
        "a: b\n  c: d",
        "a:\n    b: c\n  d: e",
        "\"a\\q\": b",
        "a: 1\na: 2",
        "b: 1\na: 2\n\"b\": 3",
        "c:\n  a: 1\n  b: 1\n  'a': 2",
        "a: 1\na : 2",
        "'a': 1\nb: 2\na: 3",
        "b:\n- a: 1\na: 1\nb: 2",
        "- b: 1\n  a: 2\n  b: 1",
    ] {
        assert_eq!(to_json(yaml), None, "{yaml:?}");
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~é\n]{0,12}".prop_map(Value::from),
        Just(json!("12e-4567-89ab")),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    let tree = scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z./-]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,6}", tree, 1..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

proptest! {
    /// What a YAML writer writes is read back as it was, or not at all.
    #[test]
    fn never_reads_wrongly(document in document()) {
        let yaml = serde_saphyr::to_string(&document).expect("a document can be written");
        if let Some(read) = read(&yaml) {
            prop_assert_eq!(read, document, "{}", yaml);
        }
    }

    /// Where the general parser reads something, we read the same or nothing.
    #[test]
    fn agrees_with_the_general_parser(text in "([ ]{0,3}(- )?[a-c]{1,2}:?[ ]?['\"]?[a-z0-9.:#-]{0,4}['\"]?\n){1,6}") {
        if let Some(ours) = read(&text) {
            prop_assert_eq!(Ok(ours), crate::general::value(&text), "{:?}", text);
        }
    }

    #[test]
    fn never_panics(text in "\\PC{0,80}", lines in "([ \\-:a#'\"|\\[{]{0,6}\n){0,8}") {
        let _ = to_json(&text);
        let _ = to_json(&lines);
    }
}
