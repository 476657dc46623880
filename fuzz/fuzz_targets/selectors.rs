//! Selectors of labels and of nodes, taints and tolerations, with any words in them.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use supercargo_model::labels::LabelSelectorWords;
use supercargo_model::node_selector::{NodeSelectorWords, PreferredTerm, PreferredTermWords};
use supercargo_model::taints::{Taint, Toleration, find_forbidding};
use supercargo_model::{LabelLookup, LabelSelector, Labels, NodeSelector, SelectableNode};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    labels: Vec<(Word<'a>, Word<'a>)>,
    requirements: Vec<RequirementInput<'a>>,
    fields: Vec<RequirementInput<'a>>,
    taints: Vec<[Word<'a>; 3]>,
    tolerations: Vec<[Word<'a>; 4]>,
    weight: i32,
    /// Text that is read as each of the kinds of words.
    json: &'a str,
}

#[derive(Arbitrary, Debug)]
struct RequirementInput<'a> {
    key: Word<'a>,
    operator: Operator<'a>,
    values: Vec<Word<'a>>,
}

/// A word: one of few, so that they meet, or any.
#[derive(Arbitrary, Debug)]
enum Word<'a> {
    Empty,
    Zone,
    Seven,
    MinusSeven,
    Name,
    NoSchedule,
    Exists,
    Any(&'a str),
}

#[derive(Arbitrary, Debug)]
enum Operator<'a> {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Any(&'a str),
}

impl Word<'_> {
    fn text(&self) -> &str {
        match self {
            Word::Empty => "",
            Word::Zone => "topology.kubernetes.io/zone",
            Word::Seven => "7",
            Word::MinusSeven => "-7",
            Word::Name => "metadata.name",
            Word::NoSchedule => "NoSchedule",
            Word::Exists => "Exists",
            Word::Any(text) => text,
        }
    }
}

impl RequirementInput<'_> {
    fn json(&self) -> Value {
        let operator = match self.operator {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::Gt => "Gt",
            Operator::Lt => "Lt",
            Operator::Any(text) => text,
        };
        let values: Vec<&str> = self.values.iter().map(Word::text).collect();
        json!({ "key": self.key.text(), "operator": operator, "values": values })
    }
}

struct Node(Labels);

impl LabelLookup for Node {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
}

impl SelectableNode for Node {
    fn name(&self) -> &str {
        "7"
    }
}

fuzz_target!(|input: Input<'_>| {
    let labels: Labels = input.labels.iter().map(|(key, value)| (key.text(), value.text())).collect();
    assert!(LabelSelector::from_labels(&labels).matches(&labels));
    check_label_selector(&input, &labels);
    check_node_selector(&input, &Node(labels));
    check_taints(&input);
    check_text(input.json);
});

/// All requirements together match where each alone does.
fn check_label_selector(input: &Input<'_>, labels: &Labels) {
    let parse = |requirements: &[&RequirementInput<'_>]| {
        let requirements: Vec<Value> = requirements.iter().map(|requirement| requirement.json()).collect();
        let words: LabelSelectorWords =
            serde_json::from_value(json!({ "matchExpressions": requirements })).expect("has the right types");
        LabelSelector::parse(Some(&words))
    };
    let each: Vec<_> = input.requirements.iter().map(|requirement| parse(&[requirement])).collect();
    let all = parse(&input.requirements.iter().collect::<Vec<_>>());
    assert_eq!(all.is_ok(), each.iter().all(Result::is_ok), "{all:?} of {each:?}");
    match &all {
        Ok(all) => {
            let every_one = each.iter().flatten().all(|selector| selector.matches(labels));
            assert_eq!(all.matches(labels), every_one, "{all:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Terms are alternatives: one more never makes a node unfit, unless it is an error.
fn check_node_selector(input: &Input<'_>, node: &Node) {
    let requirements = |requirements: &[RequirementInput<'_>]| -> Vec<Value> {
        requirements.iter().map(RequirementInput::json).collect()
    };
    let term = json!({
        "matchExpressions": requirements(&input.requirements), "matchFields": requirements(&input.fields),
    });
    let parse = |terms: Value| {
        let words: NodeSelectorWords =
            serde_json::from_value(json!({ "nodeSelectorTerms": terms })).expect("has the right types");
        NodeSelector::parse(&words)
    };
    let one = parse(json!([term]));
    let two = parse(json!([term, { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["7"] }] }]));
    assert!(two.matches(node), "the second term is of this node: {two:?}");
    assert_eq!(one.error().is_some(), two.error().is_some());
    let _ = (one.matches(node), one.named_nodes());
    let preferred: Vec<PreferredTermWords> =
        serde_json::from_value(json!([{ "weight": input.weight, "preference": term }])).expect("has the right types");
    if let Ok(terms) = PreferredTerm::parse_all(&preferred) {
        let score = PreferredTerm::score(&terms, node);
        assert!(score == 0 || score == i64::from(input.weight), "{score}");
    }
}

/// A taint that is found is one that no toleration is for.
fn check_taints(input: &Input<'_>) {
    let taints = input.taints.iter().map(|[key, value, effect]| {
        json!({ "key": key.text(), "value": value.text(), "effect": effect.text() })
    });
    let tolerations = input.tolerations.iter().map(|[key, value, effect, operator]| {
        json!({
            "key": key.text(), "value": value.text(), "effect": effect.text(), "operator": operator.text(),
        })
    });
    let taints: Vec<Taint> = serde_json::from_value(taints.collect()).expect("has the right types");
    let tolerations: Vec<Toleration> = serde_json::from_value(tolerations.collect()).expect("has the right types");
    match find_forbidding(&taints, &tolerations) {
        Some(taint) => assert!(taint.forbids_scheduling() && !taint.is_tolerated_by(&tolerations)),
        None => {
            let all = taints.iter().filter(|taint| taint.forbids_scheduling());
            assert!(all.into_iter().all(|taint| taint.is_tolerated_by(&tolerations)));
        }
    }
}

fn check_text(json: &str) {
    if let Ok(words) = serde_json::from_str::<LabelSelectorWords>(json) {
        let _ = LabelSelector::parse(Some(&words));
    }
    if let Ok(words) = serde_json::from_str::<NodeSelectorWords>(json) {
        let _ = NodeSelector::parse(&words).error();
    }
    let _ = serde_json::from_str::<Vec<Taint>>(json);
    let _ = serde_json::from_str::<Vec<Toleration>>(json);
}
