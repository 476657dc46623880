//! NodeAffinity: nodes by the labels that a pod requires or prefers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use supercargo_framework::{
    Actions, Args, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, FieldProblems, Filter, Hint,
    NodeField, NodeScore, Normalization, Plugin, PodField, PreFilter, PreFilterResult, PreScore, ProblemKind,
    Reads, Score, Status,
};
use supercargo_model::labels::SelectorError;
use supercargo_model::node_selector::{NodeSelector, NodeSelectorWords, PreferredTerm, PreferredTermWords};
use supercargo_model::wire::ByGoRules;
use supercargo_model::{NodeRef, Pod, Row};

use super::normalize;

const REASON_POD: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ADDED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

/// # What
/// Lets a pod run only on nodes that match its `nodeSelector` and its required node affinity, and prefers those that
/// match its preferred terms, by weight.
///
/// # Why
/// Pods need certain hardware, certain zones, or one certain node.
///
/// # Arguments
/// `addedAffinity`: a node affinity that holds for all pods of the profile, on top of their own.
///
/// # Example
/// ```yaml
/// pluginConfig:
/// - name: NodeAffinity
///   args:
///     addedAffinity:
///       requiredDuringSchedulingIgnoredDuringExecution:
///         nodeSelectorTerms:
///         - matchExpressions: [{key: pool, operator: In, values: [batch]}]
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodeAffinity {
    added_required: Option<NodeSelector>,
    /// Terms that can match nothing are dropped, but a list of them differs from none.
    added_preferred: Option<Box<[PreferredTerm]>>,
}

/// Arguments of [`NodeAffinity`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeAffinityArgs {
    /// A node affinity that holds for all pods of the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_affinity: Option<AddedAffinity>,
}

/// A node affinity, kept as it was written and read when the plugin is made.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddedAffinity {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    required: Option<Value>,
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    preferred: Option<Value>,
}

/// Why a part of a node affinity was refused.
enum Refusal {
    Unreadable(serde_json::Error),
    Invalid(SelectorError),
}

impl AddedAffinity {
    fn required(&self) -> Result<Option<NodeSelector>, Refusal> {
        let Some(value) = &self.required else { return Ok(None) };
        let words = NodeSelectorWords::deserialize(ByGoRules(value)).map_err(Refusal::Unreadable)?;
        let selector = NodeSelector::parse(&words);
        match selector.error() {
            None => Ok(Some(selector)),
            Some(error) => Err(Refusal::Invalid(error.clone())),
        }
    }

    fn preferred(&self) -> Result<Option<Box<[PreferredTerm]>>, Refusal> {
        let Some(value) = &self.preferred else { return Ok(None) };
        let words = Vec::<PreferredTermWords>::deserialize(ByGoRules(value)).map_err(Refusal::Unreadable)?;
        let terms = PreferredTerm::parse_all(&words).map_err(Refusal::Invalid)?;
        Ok((!words.is_empty()).then_some(terms))
    }
}

impl Refusal {
    fn report(self, path: String, value: Option<&Value>, problems: &mut FieldProblems) {
        match self {
            Refusal::Unreadable(error) => problems.add(path, ProblemKind::Unreadable, error.to_string()),
            Refusal::Invalid(error) => problems.invalid(path, value, error.to_string()),
        }
    }
}

/// Finds fields of a node affinity that do not exist; Kubernetes reads arguments strictly.
fn check_fields(value: &Value, shape: &Shape, path: &str, problems: &mut FieldProblems) {
    match (shape, value) {
        (Shape::List(inner), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check_fields(item, inner, &format!("{path}[{index}]"), problems);
            }
        }
        (Shape::Object(fields), Value::Object(entries)) => {
            for (name, value) in entries {
                match fields.iter().find(|(field, _)| field == name) {
                    Some((_, inner)) => check_fields(value, inner, &format!("{path}.{name}"), problems),
                    None => problems.add(
                        format!("{path}.{name}"),
                        ProblemKind::Unreadable,
                        format!("unknown field {name:?}"),
                    ),
                }
            }
        }
        _ => {}
    }
}

/// Which fields there are.
enum Shape {
    Any,
    List(&'static Shape),
    Object(&'static [(&'static str, Shape)]),
}

const REQUIREMENTS: Shape =
    Shape::List(&Shape::Object(&[("key", Shape::Any), ("operator", Shape::Any), ("values", Shape::Any)]));
const TERM: Shape = Shape::Object(&[("matchExpressions", REQUIREMENTS), ("matchFields", REQUIREMENTS)]);
const REQUIRED: Shape = Shape::Object(&[("nodeSelectorTerms", Shape::List(&TERM))]);
const PREFERRED: Shape = Shape::List(&Shape::Object(&[("weight", Shape::Any), ("preference", TERM)]));

impl Args for NodeAffinityArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        let Some(added) = &self.added_affinity else { return };
        let path = |field| format!("addedAffinity.{field}DuringSchedulingIgnoredDuringExecution");
        for (value, shape, name) in
            [(&added.required, &REQUIRED, "required"), (&added.preferred, &PREFERRED, "preferred")]
        {
            if let Some(value) = value {
                check_fields(value, shape, &path(name), problems);
            }
        }
        if let Err(refusal) = added.required() {
            refusal.report(path("required"), added.required.as_ref(), problems);
        }
        if let Err(refusal) = added.preferred() {
            refusal.report(path("preferred"), added.preferred.as_ref(), problems);
        }
    }
}

impl Plugin for NodeAffinity {
    const NAME: &'static str = "NodeAffinity";
    type Args = NodeAffinityArgs;

    fn new(args: NodeAffinityArgs) -> Self {
        let added = args.added_affinity.unwrap_or_default();
        NodeAffinity {
            added_required: added.required().ok().expect("arguments were validated"),
            added_preferred: added.preferred().ok().expect("arguments were validated"),
        }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().pre_score().score().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::NodeSelector, PodField::NodeAffinity])
            .node(&[NodeField::Name, NodeField::Labels])
            .feasible_set()
    }
}

impl PreFilter for NodeAffinity {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let spec = &cycle.pod.spec;
        let required = spec.node_affinity.required.as_ref();
        if required.is_none() && spec.node_selector.is_none() && self.added_required.is_none() {
            return PreFilterResult::Skip;
        }
        match required.and_then(NodeSelector::named_nodes) {
            None => PreFilterResult::AllNodes,
            Some(names) if names.is_empty() => PreFilterResult::Reject(Status::unresolvable(REASON_CONFLICT)),
            Some(names) => PreFilterResult::OnlyNodes(names.clone()),
        }
    }
}

impl Filter for NodeAffinity {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if self.added_required.as_ref().is_some_and(|added| !added.matches(&node)) {
            return Status::unresolvable(REASON_ADDED);
        }
        if cycle.pod.spec.admits_node(&node) { Status::success() } else { Status::unresolvable(REASON_POD) }
    }
}

impl PreScore for NodeAffinity {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        match &cycle.pod.spec.node_affinity.preferred {
            Some(Err(error)) => Status::error(error.to_string()),
            None if self.added_preferred.is_none() => Status::skip(),
            _ => Status::success(),
        }
    }
}

impl Score for NodeAffinity {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let own = match &cycle.pod.spec.node_affinity.preferred {
            None => 0,
            Some(Ok(terms)) => PreferredTerm::score(terms, &node),
            Some(Err(error)) => return Err(Status::error(error.to_string())),
        };
        let added = self.added_preferred.as_deref().unwrap_or_default();
        Ok(own + PreferredTerm::score(added, &node))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        normalize::by_maximum(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByValues
    }
}

impl Enqueue for NodeAffinity {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_LABEL))]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let Change::Node { old, new: Some(new) } = change else { return Hint::Queue };
        let added_admits = self.added_required.as_ref().is_none_or(|added| added.matches(new));
        if !added_admits {
            return Hint::Skip;
        }
        let own_admits = |node: &NodeRef<'_>| pod.spec.admits_node(node);
        let unreadable = pod.spec.node_affinity.required.as_ref().is_some_and(|own| own.error().is_some());
        // Where a term cannot be read and no other matches, upstream's answer is an error, which counts as Queue.
        let undecided = |node: &NodeRef<'_>| unreadable && pod.spec.selects_node(node) && !own_admits(node);
        if undecided(new) {
            return Hint::Queue;
        }
        Hint::queue_if(own_admits(new) && !old.as_ref().is_some_and(own_admits))
    }
}

#[cfg(test)]
mod tests;
