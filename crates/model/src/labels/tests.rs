use super::*;

fn selector(json: &str) -> Result<LabelSelector, SelectorError> {
    LabelSelector::parse(Some(&serde_json::from_str(json).expect("selector words")))
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn absent_matches_nothing_and_empty_matches_everything() {
    assert!(!LabelSelector::parse(None).expect("no words are fine").matches(&labels(&[])));
    assert!(selector("{}").expect("valid").matches(&labels(&[])));
    assert!(selector(r#"{"matchLabels":null,"matchExpressions":null}"#).expect("valid").is_everything());
}

#[test]
fn operators() {
    for (expression, value, expected) in [
        (r#"{"key":"a","operator":"In","values":["x","y"]}"#, Some("y"), true),
        (r#"{"key":"a","operator":"In","values":["x"]}"#, None, false),
        (r#"{"key":"a","operator":"NotIn","values":["x"]}"#, Some("x"), false),
        (r#"{"key":"a","operator":"NotIn","values":["x"]}"#, None, true),
        (r#"{"key":"a","operator":"Exists"}"#, Some(""), true),
        (r#"{"key":"a","operator":"DoesNotExist"}"#, Some(""), false),
        (r#"{"key":"a","operator":"DoesNotExist"}"#, None, true),
    ] {
        let selector = selector(&format!(r#"{{"matchExpressions":[{expression}]}}"#)).expect("valid");
        let labels = value.map_or_else(Labels::default, |value| labels(&[("a", value)]));
        assert_eq!(selector.matches(&labels), expected, "{expression} on {value:?}");
    }
}

#[test]
fn errors_read_as_the_api_machinery_writes_them() {
    for (json, text) in [
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Is"}]}"#,
            r#""Is" is not a valid label selector operator"#,
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]}"#,
            r#"values: Invalid value: ["x"]: values set must be empty for exists and does not exist"#,
        ),
    ] {
        assert_eq!(selector(json).expect_err("invalid").0, text);
    }
    let SelectorError(text) = selector(r#"{"matchLabels":{"a b":"c d"}}"#).expect_err("invalid");
    assert!(text.starts_with(r#"[key: Invalid value: "a b": name part must consist of"#), "{text}");
    assert!(text.contains(r#"values[0][a b]: Invalid value: "c d": a valid label must be"#), "{text}");
}

#[test]
fn of_two_labels_with_one_key_the_later_counts() {
    let labels: Labels = [("a", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
    assert_eq!((labels.label("a"), labels.len()), (Some("3"), 2));
}
