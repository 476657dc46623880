//! Node selectors: which nodes a pod, a volume or a configuration means.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::labels::{
    LabelLookup, Operator, Problems, Requirement, RequirementWords, SelectorError, go_json, json_list,
};
use crate::protobuf::message;
use crate::wire::null_default;

const NAME_FIELD: &str = "metadata.name";

/// A node, as far as a selector can look at it: its name and its labels.
pub trait SelectableNode: LabelLookup {
    /// `metadata.name`
    fn name(&self) -> &str;
}

/// Terms of which one must match. A term that does not parse matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeSelector {
    terms: Box<[NodeSelectorTerm]>,
    error: Option<SelectorError>,
    named_nodes: Option<BTreeSet<Box<str>>>,
}

/// Conditions on a node that must all hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeSelectorTerm {
    labels: Box<[Requirement]>,
    fields: Box<[FieldRequirement]>,
}

/// A term with the weight it adds where it matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PreferredTerm {
    /// What the node must be like.
    pub term: NodeSelectorTerm,
    /// What that is worth.
    pub weight: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FieldRequirement {
    path: Box<str>,
    equal: bool,
    value: Box<str>,
}

/// A node selector as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorWords {
    /// The terms, one of which must match.
    #[serde(deserialize_with = "null_default")]
    pub node_selector_terms: Vec<TermWords>,
}

/// A term as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TermWords {
    /// Conditions on labels.
    #[serde(deserialize_with = "null_default")]
    pub match_expressions: Vec<RequirementWords>,
    /// Conditions on fields; Kubernetes knows `metadata.name`.
    #[serde(deserialize_with = "null_default")]
    pub match_fields: Vec<RequirementWords>,
}

/// A weighted term as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct PreferredTermWords {
    /// What that is worth.
    #[serde(deserialize_with = "null_default")]
    pub weight: i32,
    /// What the node should be like.
    #[serde(deserialize_with = "null_default")]
    pub preference: TermWords,
}

message!(NodeSelectorWords { 1 => node_selector_terms });
message!(TermWords { 1 => match_expressions, 2 => match_fields });
message!(PreferredTermWords { 1 => weight, 2 => preference });

impl NodeSelector {
    /// Reads a selector. Terms without any condition select nothing and are dropped.
    pub fn parse(words: &NodeSelectorWords) -> Self {
        let mut problems = Problems::default();
        let terms = (words.node_selector_terms.iter().enumerate())
            .filter(|(_, term)| !term.is_empty())
            .filter_map(|(index, term)| {
                NodeSelectorTerm::read(term, &format!("nodeSelectorTerms[{index}]"), &mut problems)
            })
            .collect();
        let error = problems.into_result().err();
        NodeSelector { terms, error, named_nodes: named_nodes(&words.node_selector_terms) }
    }

    /// Whether one of the terms matches the node.
    pub fn matches(&self, node: &impl SelectableNode) -> bool {
        self.terms.iter().any(|term| term.matches(node))
    }

    /// Why some terms cannot match anything, if there are such.
    pub fn error(&self) -> Option<&SelectorError> {
        self.error.as_ref()
    }

    /// The only nodes that can match, where every term names its nodes by `metadata.name`.
    pub fn named_nodes(&self) -> Option<&BTreeSet<Box<str>>> {
        self.named_nodes.as_ref()
    }
}

impl NodeSelectorTerm {
    /// Reads a term; none, and a note of what is wrong, if that cannot be done.
    fn read(words: &TermWords, path: &str, problems: &mut Problems) -> Option<Self> {
        let before = problems.len();
        let labels = read_labels(&words.match_expressions, path, problems);
        let fields = read_fields(&words.match_fields, path, problems);
        (problems.len() == before).then_some(NodeSelectorTerm { labels, fields })
    }

    /// Whether the node satisfies all conditions.
    pub fn matches(&self, node: &impl SelectableNode) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(node))
            // Upstream looks at the fields of a node only if it has any, and the name is the one there is.
            && (node.name().is_empty() || self.fields.iter().all(|field| field.matches(node.name())))
    }
}

impl PreferredTerm {
    /// Reads weighted terms; those of weight 0 and those without conditions are dropped unread.
    pub fn parse_all(words: &[PreferredTermWords]) -> Result<Box<[Self]>, SelectorError> {
        let mut terms = Vec::new();
        let mut problems = Problems::default();
        for (index, words) in words.iter().enumerate() {
            if words.weight == 0 || words.preference.is_empty() {
                continue;
            }
            if let Some(term) =
                NodeSelectorTerm::read(&words.preference, &format!("[{index}]"), &mut problems)
            {
                terms.push(PreferredTerm { term, weight: words.weight });
            }
        }
        problems.into_result().map(|()| terms.into())
    }

    /// The sum of the weights of the terms that match the node.
    pub fn score(terms: &[Self], node: &impl SelectableNode) -> i64 {
        terms.iter().filter(|term| term.term.matches(node)).map(|term| i64::from(term.weight)).sum()
    }
}

impl TermWords {
    fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }
}

impl FieldRequirement {
    fn matches(&self, node_name: &str) -> bool {
        // Fields that a node does not have read as empty.
        let found = if *self.path == *NAME_FIELD { node_name } else { "" };
        (found == &*self.value) == self.equal
    }
}

fn read_labels(words: &[RequirementWords], path: &str, problems: &mut Problems) -> Box<[Requirement]> {
    let mut requirements = Vec::with_capacity(words.len());
    for (index, words) in words.iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        match Operator::named(&words.operator) {
            Some(operator) => requirements.push(Requirement::read(words, operator, &path, problems)),
            None => problems.add(format!(
                "{path}.operator: Unsupported value: {}: supported values: \"In\", \"NotIn\", \"Exists\", \
                 \"DoesNotExist\", \"Gt\", \"Lt\"",
                go_json(&words.operator)
            )),
        }
    }
    requirements.into()
}

fn read_fields(words: &[RequirementWords], path: &str, problems: &mut Problems) -> Box<[FieldRequirement]> {
    let mut requirements = Vec::with_capacity(words.len());
    for (index, words) in words.iter().enumerate() {
        let path = format!("{path}.matchFields[{index}]");
        let equal = match Operator::named(&words.operator) {
            Some(Operator::In) => true,
            Some(Operator::NotIn) => false,
            _ => {
                problems.add(format!(
                    "{path}.operator: Unsupported value: {}: supported values: \"In\", \"NotIn\"",
                    go_json(&words.operator)
                ));
                continue;
            }
        };
        match &words.values[..] {
            [value] => requirements.push(FieldRequirement {
                path: words.key.as_str().into(),
                equal,
                value: value.clone(),
            }),
            values => {
                problems.invalid(&format!("{path}.values"), &json_list(values), "must have one element");
            }
        }
    }
    requirements.into()
}

/// The union over the terms of the nodes each names; none if a term names no node, or there is no term.
fn named_nodes(terms: &[TermWords]) -> Option<BTreeSet<Box<str>>> {
    if terms.is_empty() {
        return None;
    }
    let mut all = BTreeSet::new();
    for term in terms {
        let mut of_term: Option<BTreeSet<Box<str>>> = None;
        for field in &term.match_fields {
            if field.key == NAME_FIELD && field.operator == "In" {
                let named: BTreeSet<Box<str>> = field.values.iter().cloned().collect();
                of_term = Some(match of_term {
                    None => named,
                    Some(before) => before.intersection(&named).cloned().collect(),
                });
            }
        }
        all.extend(of_term?);
    }
    Some(all)
}

#[cfg(test)]
mod tests;
