use std::collections::BTreeMap;

use proptest::prelude::*;

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

#[test]
fn strings_are_quoted_as_go_does() {
    // What `fmt.Sprintf("%q")` of Go 1.26 prints.
    for (text, quoted) in [
        ("", r#""""#),
        ("a\"b\\", r#""a\"b\\""#),
        ("\u{7}\u{8}\u{b}\u{c}\n\r\t", r#""\a\b\v\f\n\r\t""#),
        ("\u{1}\u{1b}\u{7f}", r#""\x01\x1b\x7f""#),
        ("\u{80}\u{a0}\u{2028}", r#""\u0080\u00a0\u2028""#),
        ("é日😀", r#""é日😀""#),
    ] {
        assert_eq!(go_quote(text), quoted);
    }
}

// A naive model, from the API documentation. Node selectors are tested with it as well.

/// Key, operator, values.
type NaiveRequirement = (String, String, Vec<String>);
type NaiveLabels = BTreeMap<String, String>;

const KEYS: &[&str] = &["a", "b", "example.com/c"];
const BAD_KEYS: &[&str] = &["", "-a", "a b", "a/", "Ä"];
const VALUES: &[&str] = &["", "1", "2", "007", "x", "9223372036854775807", "9223372036854775808"];
const BAD_VALUES: &[&str] = &["-1", "+1", "a b", "a-"];
const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// Mostly one of `good`, now and then one of `bad`.
fn mostly(good: &'static [&str], bad: &'static [&str]) -> impl Strategy<Value = String> {
    let pick = |from: &'static [&str]| prop::sample::select(from).prop_map(str::to_owned);
    prop_oneof![20 => pick(good), 1 => pick(bad)]
}

pub(crate) fn any_requirement() -> impl Strategy<Value = NaiveRequirement> {
    mostly(OPERATORS, &["", "Is", "in", "Equal"]).prop_flat_map(|operator| {
        let usual = match operator.as_str() {
            "In" | "NotIn" => 1..3,
            "Gt" | "Lt" => 1..2,
            _ => 0..1,
        };
        let values = |count| prop::collection::vec(mostly(VALUES, BAD_VALUES), count);
        let values = prop_oneof![9 => values(usual), 1 => values(0..3)];
        (mostly(KEYS, BAD_KEYS), Just(operator), values)
    })
}

pub(crate) fn any_labels() -> impl Strategy<Value = NaiveLabels> {
    // What is read from a node need not be valid.
    prop::collection::btree_map(mostly(KEYS, &["z"]), mostly(VALUES, BAD_VALUES), 0..4)
}

fn label_is_valid(key: &str, values: &[String]) -> bool {
    !BAD_KEYS.contains(&key) && !values.iter().any(|value| BAD_VALUES.contains(&value.as_str()))
}

pub(crate) fn requirement_is_valid((key, operator, values): &NaiveRequirement) -> bool {
    let count_is_right = match operator.as_str() {
        "In" | "NotIn" => !values.is_empty(),
        "Exists" | "DoesNotExist" => values.is_empty(),
        "Gt" | "Lt" => values.len() == 1 && values[0].parse::<i64>().is_ok(),
        _ => false,
    };
    count_is_right && label_is_valid(key, values)
}

pub(crate) fn requirement_matches((key, operator, values): &NaiveRequirement, labels: &NaiveLabels) -> bool {
    let found = labels.get(key);
    let integers = || Some((found?.parse::<i64>().ok()?, values[0].parse::<i64>().ok()?));
    match operator.as_str() {
        "In" => found.is_some_and(|value| values.contains(value)),
        "NotIn" => !found.is_some_and(|value| values.contains(value)),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => integers().is_some_and(|(label, given)| label > given),
        "Lt" => integers().is_some_and(|(label, given)| label < given),
        other => panic!("{other} is not an operator"),
    }
}

fn words(match_labels: &NaiveLabels, expressions: &[NaiveRequirement]) -> LabelSelectorWords {
    let expression = |(key, operator, values): &NaiveRequirement| RequirementWords {
        key: key.clone(),
        operator: operator.clone(),
        values: values.iter().map(|value| value.as_str().into()).collect(),
    };
    LabelSelectorWords {
        match_labels: match_labels.clone().into_iter().collect(),
        match_expressions: expressions.iter().map(expression).collect(),
    }
}

proptest! {
    #![proptest_config(crate::seeded())]

    #[test]
    fn selectors_match_as_documented(
        match_labels in prop::collection::btree_map(mostly(KEYS, BAD_KEYS), mostly(VALUES, BAD_VALUES), 0..2),
        expressions in prop::collection::vec(any_requirement(), 0..3),
        labels in any_labels(),
    ) {
        let valid = match_labels.iter().all(|(key, value)| label_is_valid(key, std::slice::from_ref(value)))
            && expressions.iter().all(|expression| {
                // Only node selectors know these two.
                requirement_is_valid(expression) && !["Gt", "Lt"].contains(&expression.1.as_str())
            });
        let selector = LabelSelector::parse(Some(&words(&match_labels, &expressions)));
        prop_assert_eq!(selector.is_ok(), valid);
        if let Ok(selector) = selector {
            let expected = match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
                && expressions.iter().all(|expression| requirement_matches(expression, &labels));
            let labels: Labels = labels.into_iter().collect();
            prop_assert_eq!(selector.matches(&labels), expected);
            prop_assert_eq!(selector.is_everything(), match_labels.is_empty() && expressions.is_empty());
            let same = LabelSelector::everything().and(selector.requirements().into_iter().flatten().cloned());
            prop_assert_eq!(same, selector);
        }
    }

    #[test]
    fn labels_are_a_map(pairs in prop::collection::vec((mostly(KEYS, BAD_KEYS), mostly(VALUES, BAD_VALUES)), 0..6)) {
        let map: NaiveLabels = pairs.iter().cloned().collect();
        let labels: Labels = pairs.into_iter().collect();
        let listed: Vec<(&str, &str)> = map.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        prop_assert_eq!(labels.iter().collect::<Vec<_>>(), listed);
        prop_assert_eq!((labels.len(), labels.is_empty()), (map.len(), map.is_empty()));
        for key in KEYS.iter().chain(BAD_KEYS) {
            prop_assert_eq!(labels.label(key), map.get(*key).map(String::as_str));
        }
        // A selector made of labels matches exactly the sets that hold them.
        let selector = LabelSelector::from_labels(&labels);
        prop_assert!(selector.matches(&labels));
        for key in map.keys() {
            let without: Labels = map.iter().filter(|(other, _)| *other != key).map(|(k, v)| (k.as_str(), v.as_str())).collect();
            prop_assert!(!selector.matches(&without));
        }
    }
}
