use proptest::prelude::*;
use serde_json::json;
use supercargo_model::ReadableKind;
use supercargo_model::kinds::Namespace;

use super::*;

fn pods(count: usize) -> String {
    let items: Vec<String> = (0..count)
        .map(|number| format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{number}"}}}}"#))
        .collect();
    format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, items.join(","))
}

/// Where objects are that are handed on, until `stop` of them have been.
fn read(texts: &[(&str, &str)], stop: usize) -> (Vec<String>, Result<LeftOut, DumpError>) {
    let mut seen = Vec::new();
    let decoder = Decoder::new([ReadableKind::of::<Namespace>()], false);
    let dumps = match Dumps::new(texts) {
        Ok(dumps) => dumps,
        Err(error) => return (seen, Err(error)),
    };
    let result = dumps.read(&decoder, |location, decoded| {
        let Decoded::Pod(words) = decoded else { panic!("{decoded:?} is no pod") };
        seen.push(format!("{} {}", location.dump, words.metadata().name));
        if seen.len() == stop { Err(DumpError::NoObjects { names: "enough".to_owned() }) } else { Ok(()) }
    });
    (seen, result)
}

#[test]
fn objects_come_in_the_order_in_which_they_are_written() {
    let count = 10 * BLOCK_PIECES + 3;
    let (first, second) = (pods(count), pods(2));
    let (seen, result) = read(&[("a", &first), ("b", &second)], usize::MAX);
    assert_eq!(result, Ok(LeftOut::default()));
    let names = |dump, count| (0..count).map(move |item| format!("{dump} p{item}"));
    assert!(seen.into_iter().eq(names(0, count).chain(names(1, 2))));
}

#[test]
fn nothing_is_handed_on_after_an_error() {
    let text = pods(10 * BLOCK_PIECES);
    let (seen, result) = read(&[("a", &text)], BLOCK_PIECES + 1);
    assert_eq!((seen.len(), result.is_err()), (BLOCK_PIECES + 1, true));
    let broken = text.replacen(r#""p200""#, "200", 1);
    let (seen, result) = read(&[("a", &broken)], usize::MAX);
    assert_eq!(seen.len(), 200);
    let Err(DumpError::Unreadable(error)) = result else { panic!("{result:?}") };
    let at = broken.find("200}").expect("it is there");
    assert_eq!((error.line, error.column), (1, at + 1), "{error}");
}

/// All objects of a text, with the line of each.
fn values(text: &str) -> Result<Vec<(Value, String)>, DumpError> {
    let dumps = Dumps::new(&[("x", text)])?;
    let mut found = Vec::new();
    dumps.values(|location, value| -> Result<(), DumpError> {
        found.push((value, dumps.place(location)));
        Ok(())
    })?;
    Ok(found)
}

#[track_caller]
fn check(text: &str, expected: &[Value]) {
    match values(text) {
        Ok(found) => {
            let found: Vec<Value> = found.into_iter().map(|(value, _)| value).collect();
            assert_eq!(found, expected, "{text}");
        }
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Two objects in whatever notations there are.
#[test]
fn all_ways_to_write_two_objects_come_to_the_same() {
    let expected = [json!({"kind": "A", "a": 1}), json!({"kind": "B", "b": {"c": [2, "x"]}})];
    let json = r#"{"kind":"List","items":[{"kind":"A","a":1},{"kind":"B","b":{"c":[2,"x"]}}]}"#;
    let yaml = "apiVersion: v1\nitems:\n- kind: A\n  a: 1\n- kind: B\n  b:\n    c:\n    - 2\n    - x\nkind: List\nmetadata:\n  x: y\n";
    let (a, b) = ("kind: A\na: 1\n", "kind: B\nb:\n  c: [2, x]\n");
    let (json_a, json_b) = (r#"{"kind":"A","a":1}"#, r#"{"kind":"B","b":{"c":[2,"x"]}}"#);
    for text in [
        json.to_owned(),
        yaml.to_owned(),
        format!("\u{feff}{json}"),
        format!("\u{feff}{yaml}"),
        format!("# comment\n\n{json}\n# comment\n"),
        format!("%YAML 1.2\n---\n{yaml}...\n"),
        format!("%TAG ! tag:example.com,2026:\n---\n{yaml}"),
        yaml.replace("items:\n", "items: # comment\n"),
        yaml.replace("items:\n", "items: \n"),
        yaml.replace("items:\n", "\"items\":\n"),
        yaml.replace("- kind: B", "# comment\n- kind: B"),
        yaml.replace("- kind: B", "\n\n- kind: B"),
        yaml.replace("kind: List", "kind: ThingList"),
        yaml.replace("apiVersion: v1\n", "apiVersion: v1\nkind: List\n")
            .replace("\nkind: List\nmetadata", "\nmetadata"),
        yaml.replace("- kind", "-   kind")
            .replace("  a: 1", "    a: 1")
            .replace("  b:", "    b:")
            .replace("    c:", "      c:")
            .replace("    - ", "      - "),
        "kind: List\nitems:\n  - kind: A\n    a: 1\n  - kind: B\n    b: {c: [2, x]}\n".to_owned(),
        "  kind: List\n  items:\n  - kind: A\n    a: 1\n  - kind: B\n    b: {c: [2, x]}\n".to_owned(),
        "{kind: List, items: [{kind: A, a: 1}, {kind: B, b: {c: [2, x]}}]}".to_owned(),
        "kind: List\nitems: [\n{kind: A, a: 1},\n{kind: B, b: {c: [2, x]}}\n]\n".to_owned(),
        "[\n{kind: A, a: 1},\n{kind: B, b: {c: [2, x]}},\n]\n".to_owned(),
        "kind: List\nitems:\n- &a\n  kind: A\n  a: &one 1\n- {kind: B, b: {c: [2, x]}}\n".to_owned(),
        "kind: List\nitems:\n- kind: A\n  a: 1\n- kind: List\n  items:\n  - kind: B\n    b: {c: [2, x]}\n"
            .to_owned(),
        "- kind: A\n  a: 1\n- kind: B\n  b: {c: [2, x]}\n".to_owned(),
        format!("{a}---\n{b}"),
        format!("---\n{a}--- # second\n{b}...\n---\n# nothing\n"),
        format!("---\n# nothing here\n---\n{a}\n---\nnull\n--- \n{b}"),
        format!("{a}{b}"),
        format!("{a}...\n{b}"),
        format!("{json_a}\n{json_b}\n"),
        format!("{json_a}{json_b}"),
        format!("{json_a} {json_b} # comment\n"),
        format!("[{json_a}, {json_b}]"),
        format!("[[{json_a}], [], [{json_b}]]"),
        format!("{json_a}\n---\n{b}"),
        format!("{json_a}\n{b}"),
        format!("{a}---\n{json_b}"),
        format!("{a}{json_b}"),
        format!("{a}--- {json_b}\n"),
        "--- {kind: A, a: 1}\n--- {kind: B, b: {c: [2, x]}}\n".to_owned(),
        "{kind: A, a: 1}\n{kind: B, b: {c: [2, x]}}\n".to_owned(),
        format!("{json_a}\n\u{feff}{b}"),
        format!("{a}\u{feff}{b}"),
        format!("kind: List\nitems: [{json_a}]\n{json_b}"),
        format!("items:\n- {json_a}\nkind: List\nkind: List\nitems:\n- {json_b}\n"),
        format!(
            "items: []\nkind: List\n---\n{a}---\nitems: null\nkind: List\n---\n{b}---\nkind: PodList\nitems:\n"
        ),
        "!!map {!!str kind: !!str A, a: !!int '1'}\n---\n? kind\n: B\n? b\n: c:\n  - 2\n  - \"x\"\n"
            .to_owned(),
    ] {
        check(&text, &expected);
    }
}

#[test]
fn texts_that_look_like_notation_are_texts() {
    let text = "---\nitems:\n- a: 1\nkind: Pod\n...\n{}\napiVersion: v1\n";
    let indented = text.replace('\n', "\n      ");
    let yaml = format!(
        "apiVersion: v1\nitems:\n- kind: A\n  data:\n    x: |\n      {}\n- kind: B\nkind: List\n",
        indented.trim_end()
    );
    check(&yaml, &[json!({"kind": "A", "data": {"x": text}}), json!({"kind": "B"})]);
    let json = json!({"kind": "List", "items": [{"kind": "A", "x": text, "y": "\n        },\n        {\n"}]});
    check(&json.to_string(), &[json["items"][0].clone()]);
    check(&kubectl_json(&[json["items"][0].clone()]), &[json["items"][0].clone()]);
}

#[test]
fn items_are_what_their_list_says() {
    for text in [
        "apiVersion: v1\nitems:\n- metadata: {name: a}\n- kind: Node\n  apiVersion: v1\nkind: PodList\n",
        "{apiVersion: v1, items: [{metadata: {name: a}}, {kind: Node, apiVersion: v1}], kind: PodList}",
        r#"{"apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"kind":"Node","apiVersion":"v1"}],"kind":"PodList"}"#,
    ] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        check(text, &[pod, json!({"apiVersion": "v1", "kind": "Node"})]);
    }
    let (seen, result) =
        read(&[("a", r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}"#)], 9);
    assert_eq!((seen, result), (vec!["0 a".to_owned()], Ok(LeftOut::default())));
}

#[test]
fn anchors_reach_from_one_item_to_the_next() {
    let yaml = "apiVersion: v1\nitems:\n- kind: A\n  x: &x\n    y: 1\n- kind: B\n- kind: C\n  x: *x\n- kind: D\n  <<: *x\nkind: List\n";
    let expected = [
        json!({"kind": "A", "x": {"y": 1}}),
        json!({"kind": "B"}),
        json!({"kind": "C", "x": {"y": 1}}),
        json!({"kind": "D", "y": 1}),
    ];
    check(yaml, &expected);
    let lines: Vec<String> = values(yaml).expect("is readable").into_iter().map(|(_, place)| place).collect();
    assert_eq!(lines, ["line 3 of x", "line 6 of x", "line 7 of x", "line 9 of x"]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let yaml = "apiVersion: v1\nitems:\n- kind: A\n  a: 1\n- kind: B\n  b: 2\nkind: List\n";
    let compact = r#"{"kind":"List","items":[{"kind":"A"}]}"#;
    let mut faults = Vec::new();
    let kubectl = kubectl_json(&[json!({"kind": "A"}), json!({"kind": "B"})]);
    for (text, at, expected) in [
        (yaml.replace("  b: 2", "  b: [2"), (7, 5), ""),
        (yaml.replace("  b: 2", "   b: 2"), (6, 5), ""),
        (yaml.replace("  b: 2", "  kind: 2"), (6, 3), "the key \"kind\" stands here a second time"),
        (yaml.replace("  b: 2", "  b: *x"), (6, 6), "there is no anchor of this name before the alias"),
        (
            yaml.replace("- kind: B\n  b: 2", "- 7"),
            (5, 3),
            "an object of Kubernetes is expected here, and this is 7",
        ),
        (
            yaml.replace("- kind: B\n  b: 2", "-"),
            (5, 2),
            "an object of Kubernetes is expected here, and this is null",
        ),
        (yaml.replace("kind: List\n", ""), (1, 1), CUT),
        (yaml.replace("kind: List", "kind: List\nx"), (8, 1), ""),
        (yaml.replace("kind: List", "kind: List\nkind: 1"), (8, 1), ""),
        (format!("{yaml}items: []\n"), (8, 1), "the key \"items\" stands here a second time"),
        (format!("{compact} x"), (1, 40), "an object ends here, and what follows on its line is none"),
        (format!("{compact}, {compact}"), (1, 39), "an object ends here"),
        (
            format!("{compact}\nx\n"),
            (2, 1),
            "an object of Kubernetes is expected here, and this is the text \"x\"",
        ),
        (
            format!("{kubectl}x\n"),
            (kubectl.lines().count() + 1, 1),
            "an object of Kubernetes is expected here",
        ),
        (
            format!("{kubectl}{}", &kubectl[..kubectl.len() - 3]),
            (2 * kubectl.lines().count() - 1, 5),
            "was it cut?",
        ),
        (kubectl.replace("\"B\"", "\"B"), (8, 22), "control character"),
        (compact.replace("\"A\"}", "\"A\""), (1, 36), "expected `,` or `}`"),
        (compact.replace("\"A\"", "}"), (1, 33), "expected value"),
        (r#"{"kind":"List","items":7}"#.to_owned(), (1, 24), "the items of a list are no list"),
        (r#"{"kind":"List","items":[],"items":[]}"#.to_owned(), (1, 1), "duplicate field `items`"),
        ("a: &a\n  b: *a\n".to_owned(), (2, 6), ""),
    ] {
        let Err(DumpError::Unreadable(error)) = values(&text) else {
            faults.push(format!("is read:\n{text}"));
            continue;
        };
        if (error.line, error.column) != at || !error.reason.contains(expected) {
            faults.push(format!("{error}\n{at:?} {expected}\nin:\n{text}"));
        }
        for word in ["struct ", "Header", "Budget", "weak", "serde"] {
            assert!(!error.to_string().contains(word), "{error}");
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

const CUT: &str = "the list ends without its kind: was the file cut?";

#[test]
fn nothing_at_all_is_an_error() {
    for (text, expected) in [
        ("", "x holds no objects, nor anything else: did the command that wrote it fail?"),
        (" \n\u{feff}\n", "x holds no objects, nor anything else: did the command that wrote it fail?"),
        (
            "# a\n---\n...\n",
            "x holds no objects, nor anything else but comments: did the command that wrote it fail?",
        ),
        ("items: []\nkind: List\n", "there are no objects in x, only empty lists: did the command"),
        ("null\n", "there are no objects in x, only empty lists"),
    ] {
        let error = values(text).expect_err("there is nothing").to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

/// Pieces that are right by themselves are found whatever their size; the limit of the general parser is for each of them.
#[test]
fn what_is_too_large_for_the_general_parser_is_told() {
    let large = format!("kind: A\nx: '{}'\ny: {{z: 1}}\n", "x".repeat(SLOW_BYTES));
    let error = values(&large).expect_err("is too large").to_string();
    assert!(
        error.contains("is read up to 64 MiB a document or item, and this has 64; print it as JSON instead"),
        "{error}"
    );
}

const SLOW_BYTES: usize = general::SLOW_YAML_BYTES_MAX;

fn pretty(value: &Value, indent: &[u8]) -> String {
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
    serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut text, formatter))
        .expect("can be written");
    String::from_utf8(text).expect("JSON is text") + "\n"
}

fn list(objects: &[Value]) -> Value {
    json!({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {"resourceVersion": ""}})
}

fn kubectl_json(objects: &[Value]) -> String {
    pretty(&list(objects), b"    ")
}

fn kubectl_yaml(objects: &[Value]) -> String {
    let mut writer = crate::ListWriter::new(crate::ListFormat::Yaml);
    let text: String = objects.iter().map(|object| writer.object(object)).collect();
    text + writer.end()
}

/// One of the ways to write objects down.
fn written(objects: &[Value], notation: u8) -> String {
    let each = |write: &dyn Fn(&Value) -> String| objects.iter().map(write).collect::<String>();
    let yaml = |value: &Value| serde_saphyr::to_string(value).expect("can be written");
    match notation {
        0 => kubectl_json(objects),
        1 => kubectl_yaml(objects),
        2 => list(objects).to_string() + "\n",
        3 => pretty(&list(objects), b"  "),
        4 => each(&|object| format!("{object}\n")),
        5 => each(&|object| format!("---\n{}", yaml(object))),
        6 => yaml(&list(objects)),
        7 => pretty(&Value::from(objects), b"\t"),
        8 => kubectl_yaml(objects).replace("\nitems:\n", "\nitems: # here\n"),
        _ => each(&|object| kubectl_yaml(std::slice::from_ref(object))),
    }
}

fn objects() -> impl Strategy<Value = Vec<Value>> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~é\n]{0,10}".prop_map(Value::from),
        prop::sample::select(vec![
            "---\n",
            "items:\n- x",
            "}\n{",
            "~",
            "0x1",
            "1e3",
            "\n        },\n        {\n",
            "kind: Pod\n"
        ])
        .prop_map(Value::from),
    ];
    let tree = scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z./-]{1,6}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let object = prop::collection::btree_map("[a-z]{1,6}", tree, 0..4).prop_map(|map| {
        let mut fields: serde_json::Map<_, _> = map.into_iter().collect();
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "Thing".into());
        Value::Object(fields)
    });
    prop::collection::vec(object, 1..5)
}

/// The objects of a text by the general way alone.
fn generally(text: &str, is_json: bool) -> Vec<Value> {
    let form = if is_json { Form::Json } else { Form::Yaml };
    let value = if is_json { text.to_owned() } else { general::value(text).expect(text).to_string() };
    let expansion = Expansion { convert: &object_value, is_cut_visible: form == Form::Json };
    expansion.of_document(&value).into_iter().map(|(_, object)| object.expect(text)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Random objects, written in random notations one after the other, are read as they were.
    #[test]
    fn whatever_is_written_is_read(parts in prop::collection::vec((objects(), 0_u8..10, any::<bool>()), 1..4)) {
        let mut text = String::new();
        for (objects, notation, has_marker) in &parts {
            let written = written(objects, *notation);
            // A list without braces goes on in the next one, if that is a list as well.
            let is_open = *notation == 7 || !text.is_empty();
            text.push_str(if *has_marker || is_open { "---\n" } else { "" });
            text.push_str(&written);
        }
        let expected: Vec<Value> = parts.iter().flat_map(|(objects, ..)| objects.clone()).collect();
        let found = values(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let found: Vec<Value> = found.into_iter().map(|(value, _)| value).collect();
        prop_assert_eq!(found, expected, "{}", text);
    }

    /// The fast way and the general one find the same objects.
    #[test]
    fn the_fast_way_agrees_with_the_general_one(objects in objects()) {
        for (text, is_json) in [(kubectl_json(&objects), true), (kubectl_yaml(&objects), false)] {
            let dumps = Dumps::new(&[("x", &text)]).expect(&text);
            prop_assert_eq!(dumps.dumps[0].cut.pieces.len(), objects.len(), "not cut: {}", text);
            let found: Vec<Value> = values(&text).expect(&text).into_iter().map(|(value, _)| value).collect();
            prop_assert_eq!(&found, &generally(&text, is_json));
            prop_assert_eq!(found, objects.clone());
        }
    }

    /// Broken and odd texts are read or refused, and where both ways read them they agree.
    #[test]
    fn damaged_lists_are_read_as_the_general_way_does(objects in objects(), at in any::<prop::sample::Index>(), with in "[ \n\\-{}\\[\\]:#'\"a&*]{0,2}", notation in 0_u8..10) {
        let mut text = written(&objects, notation);
        let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = borders[at.index(borders.len())];
        let length = text[at..].chars().next().map_or(0, char::len_utf8);
        text.replace_range(at..at + length, &with);
        let fast: Result<Vec<Value>, _> = values(&text).map(|found| found.into_iter().map(|(value, _)| value).collect());
        if let (Ok(fast), false) = (&fast, text.contains("---") || text.contains("...") || notation == 4 || notation == 9)
            && let Ok(value) = general::value(&text)
        {
            let expansion = Expansion { convert: &object_value, is_cut_visible: false };
            let general: Result<Vec<Value>, Trouble> = expansion.of_document(&value.to_string()).into_iter().map(|(_, object)| object).collect();
            if let Ok(general) = general {
                prop_assert_eq!(fast, &general, "{}", text);
            }
        }
    }
}

/// Found by the program's test `fuzz`: in a debug build, the general parser takes some 20 KiB of stack for each level.
#[test]
fn nesting_up_to_the_limit_does_not_overflow_the_stack() {
    let nested = |depth: usize| {
        let levels = "- ".repeat(depth);
        format!("apiVersion: v1 # not as kubectl writes it\nkind: Pod\nmetadata: {{}}\nx:\n{levels}1\n")
    };
    assert_eq!(values(&nested(100)).map(|found| found.len()), Ok(1));
    let error = values(&nested(10_000)).expect_err("is too deep").to_string();
    assert!(error.contains("nested deeper than"), "{error}");
}
