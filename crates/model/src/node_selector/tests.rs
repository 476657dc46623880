use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::labels::Labels;
use crate::labels::tests::{any_labels, any_requirement, requirement_is_valid, requirement_matches};

struct NamedNode {
    name: String,
    labels: Labels,
}

impl LabelLookup for NamedNode {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.label(key)
    }
}

impl SelectableNode for NamedNode {
    fn name(&self) -> &str {
        &self.name
    }
}

fn selector(terms: &Value) -> NodeSelector {
    let words = serde_json::from_value(json!({ "nodeSelectorTerms": terms })).expect("selector words");
    NodeSelector::parse(&words)
}

fn node(name: &str, labels: &[(&str, &str)]) -> NamedNode {
    NamedNode { name: name.to_owned(), labels: labels.iter().copied().collect() }
}

#[test]
fn what_selects_nothing() {
    let node = node("n", &[("a", "1")]);
    let nothing =
        [json!(null), json!([]), json!([{}]), json!([{ "matchExpressions": [], "matchFields": null }])];
    for terms in nothing {
        let selector = selector(&terms);
        assert!(!selector.matches(&node), "{terms}");
        assert_eq!(selector.error(), None, "{terms}");
    }
}

#[test]
fn a_term_that_cannot_be_read_does_not_spoil_the_others() {
    let bad = json!({ "matchExpressions": [{ "key": "a", "operator": "Is" }] });
    let good = json!({ "matchExpressions": [{ "key": "a", "operator": "Exists" }] });
    let selector = selector(&json!([bad, good]));
    assert!(selector.matches(&node("n", &[("a", "1")])));
    assert!(!selector.matches(&node("n", &[])));
    assert!(selector.error().is_some());
}

#[test]
fn a_node_without_a_name_has_no_fields_to_look_at() {
    // As upstream: fields are compared only if the node has some.
    let selector = selector(
        &json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a"] }] }]),
    );
    assert!(selector.matches(&node("a", &[])));
    assert!(!selector.matches(&node("b", &[])));
    assert!(selector.matches(&node("", &[])));
}

const KEY_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const OPERATORS: &str = r#"supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt""#;

/// The texts are what `nodeaffinity.NewNodeSelector` of component-helpers v0.36.4 answers. Errors of several
/// requirements and terms form one flat list; they used to be bracketed term by term.
#[test]
fn errors_read_as_upstream_writes_them() {
    let at = "nodeSelectorTerms[0].matchExpressions";
    for (terms, expected) in [
        (
            json!([{ "matchExpressions": [{ "key": "a b", "operator": "In", "values": ["c d"] }, { "key": "a", "operator": "Is" }] }]),
            format!(
                r#"[{at}[0].key: Invalid value: "a b": {KEY_RULE}, {at}[0].values[0][a b]: Invalid value: "c d": {VALUE_RULE}, {at}[1].operator: Unsupported value: "Is": {OPERATORS}]"#
            ),
        ),
        (
            json!([
                { "matchExpressions": [{ "key": "a", "operator": "Gt", "values": ["x", "-1"] }],
                  "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a", "b"] }] },
                {},
                { "matchFields": [{ "key": "metadata.name", "operator": "Exists" }] }
            ]),
            format!(
                r#"[{at}[0].values: Invalid value: ["x","-1"]: for 'Gt', 'Lt' operators, exactly one value is required, {at}[0].values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer, {at}[0].values[1][a]: Invalid value: "-1": {VALUE_RULE}, nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element, nodeSelectorTerms[2].matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"]"#
            ),
        ),
        (
            json!([{ "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["<x>"] }] }]),
            format!(
                r#"[{at}[0].values: Invalid value: ["\u003cx\u003e"]: values set must be empty for exists and does not exist, {at}[0].values[0][a]: Invalid value: "<x>": {VALUE_RULE}]"#
            ),
        ),
        (
            json!([{ "matchExpressions": [{ "key": "a", "operator": "I<s" }] }]),
            format!(r#"{at}[0].operator: Unsupported value: "I\u003cs": {OPERATORS}"#),
        ),
    ] {
        assert_eq!(selector(&terms).error().map(ToString::to_string), Some(expected), "{terms}");
    }
}

#[test]
fn nodes_that_are_named() {
    let field = |operator: &str, names: &[&str]| json!({ "key": "metadata.name", "operator": operator, "values": names });
    let term = |fields: &[Value]| json!({ "matchFields": fields });
    let cases: [(Value, Option<&[&str]>); 7] = [
        (json!([]), None),
        (json!([term(&[field("In", &["a"])])]), Some(&["a"])),
        (json!([term(&[field("In", &["b"])]), term(&[field("In", &["a"])])]), Some(&["a", "b"])),
        (json!([term(&[field("In", &["a"]), field("In", &["b"])])]), Some(&[])),
        (json!([term(&[field("NotIn", &["a"])])]), None),
        (json!([term(&[field("In", &["a"])]), {}]), None), // an empty term names nothing, though it matches nothing
        (json!([term(&[json!({ "key": "metadata.uid", "operator": "In", "values": ["a"] })])]), None),
    ];
    for (terms, expected) in cases {
        let expected = expected.map(|names| names.iter().map(|name| Box::from(*name)).collect());
        assert_eq!(selector(&terms).named_nodes().cloned(), expected, "{terms}");
    }
}

#[test]
fn preferred_terms() {
    let term = |weight: i32, operator: &str| json!({ "weight": weight, "preference": { "matchExpressions": [{ "key": "a", "operator": operator }] } });
    let parse = |words: Value| {
        let words: Vec<PreferredTermWords> = serde_json::from_value(words).expect("words");
        PreferredTerm::parse_all(&words)
    };
    let empty = json!({ "weight": 100, "preference": {} });
    let terms =
        parse(json!([term(3, "Exists"), term(0, "Is"), empty, term(-1, "Exists"), term(5, "DoesNotExist")]));
    let terms = terms.expect("a term of weight 0 is dropped unread");
    assert_eq!(PreferredTerm::score(&terms, &node("n", &[("a", "")])), 2);
    assert_eq!(PreferredTerm::score(&terms, &node("n", &[])), 5);
    let error = parse(json!([term(0, "Is"), term(1, "Is")])).expect_err("invalid");
    assert_eq!(error.0, format!(r#"[1].matchExpressions[0].operator: Unsupported value: "Is": {OPERATORS}"#));
}

// A naive model, from the API documentation.

type NaiveLabels = BTreeMap<String, String>;
type NaiveRequirement = (String, String, Vec<String>);

fn any_field() -> impl Strategy<Value = NaiveRequirement> {
    let key = prop::sample::select(vec!["metadata.name", "metadata.uid", ""]);
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "Gt", "Is", ""]);
    let values = prop::collection::vec(prop::sample::select(vec!["a", "b", ""]), 0..3);
    (key, operator, values).prop_map(|(key, operator, values)| {
        (key.to_owned(), operator.to_owned(), values.into_iter().map(str::to_owned).collect())
    })
}

fn any_term() -> impl Strategy<Value = (Vec<NaiveRequirement>, Vec<NaiveRequirement>)> {
    (prop::collection::vec(any_requirement(), 0..3), prop::collection::vec(any_field(), 0..2))
}

fn field_is_valid((_, operator, values): &NaiveRequirement) -> bool {
    ["In", "NotIn"].contains(&operator.as_str()) && values.len() == 1
}

fn field_matches((key, operator, values): &NaiveRequirement, name: &str) -> bool {
    let found = if key == "metadata.name" { name } else { "" };
    (found == values[0]) == (operator == "In")
}

fn words(requirements: &[NaiveRequirement]) -> Vec<Value> {
    let word = |(key, operator, values): &NaiveRequirement| json!({ "key": key, "operator": operator, "values": values });
    requirements.iter().map(word).collect()
}

fn term_matches(
    expressions: &[NaiveRequirement],
    fields: &[NaiveRequirement],
    name: &str,
    labels: &NaiveLabels,
) -> bool {
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(requirement_is_valid)
        && fields.iter().all(field_is_valid)
        && expressions.iter().all(|requirement| requirement_matches(requirement, labels))
        && fields.iter().all(|field| field_matches(field, name))
}

proptest! {
    #![proptest_config(crate::seeded())]

    #[test]
    fn selectors_match_as_documented(
        terms in prop::collection::vec(any_term(), 0..3),
        name in prop::sample::select(vec!["a", "b"]),
        labels in any_labels(),
    ) {
        let words: Vec<Value> = (terms.iter())
            .map(|(expressions, fields)| json!({ "matchExpressions": words(expressions), "matchFields": words(fields) }))
            .collect();
        let selector = selector(&json!(words));
        let node = NamedNode { name: name.to_owned(), labels: labels.clone().into_iter().collect() };
        let expected = terms.iter().any(|(expressions, fields)| term_matches(expressions, fields, name, &labels));
        prop_assert_eq!(selector.matches(&node), expected);
        let valid = terms.iter().all(|(expressions, fields)| {
            expressions.iter().all(requirement_is_valid) && fields.iter().all(field_is_valid)
        });
        prop_assert_eq!(selector.error().is_none(), valid);
        if let Some(named) = selector.named_nodes() {
            prop_assert!(!expected || named.contains(name), "{:?} is not among the named nodes", name);
        }
    }
}
