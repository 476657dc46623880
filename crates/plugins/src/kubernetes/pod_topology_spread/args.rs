//! Arguments of PodTopologySpread.

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems};
use supercargo_model::LabelSelector;
use supercargo_model::names::label_key_problems;
use supercargo_model::pod::{InclusionPolicy, SpreadConstraint, WhenUnsatisfiable};
use supercargo_model::wire::null_default;

/// Arguments of [`super::PodTopologySpread`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PodTopologySpreadArgs {
    /// Where the constraints of pods without any come from.
    #[serde(deserialize_with = "null_default")]
    pub defaulting_type: DefaultingType,
    /// Those constraints.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub default_constraints: Vec<DefaultConstraint>,
}

/// Where the constraints of pods without any come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum DefaultingType {
    /// Spread softly over nodes and zones.
    #[default]
    #[serde(alias = "")]
    System,
    /// Use `defaultConstraints`.
    List,
    /// Neither.
    #[serde(untagged)]
    Unknown(String),
}

/// A constraint for pods that have none. Which pods count is deduced for each pod.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DefaultConstraint {
    #[serde(deserialize_with = "null_default")]
    pub max_skew: i32,
    #[serde(deserialize_with = "null_default")]
    pub topology_key: String,
    #[serde(deserialize_with = "null_default")]
    pub when_unsatisfiable: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<String>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
}

/// What `System` stands for.
pub(super) fn system_defaults() -> Vec<SpreadConstraint> {
    [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)]
        .map(|(topology_key, max_skew)| SpreadConstraint {
            max_skew,
            topology_key: topology_key.into(),
            when_unsatisfiable: WhenUnsatisfiable::ScheduleAnyway,
            selector: Ok(LabelSelector::Nothing),
            match_label_keys: Box::default(),
            min_domains: 1,
            node_affinity_policy: InclusionPolicy::Honor,
            node_taints_policy: InclusionPolicy::Ignore,
        })
        .to_vec()
}

impl PodTopologySpreadArgs {
    pub(super) fn default_constraints(&self) -> Vec<SpreadConstraint> {
        self.default_constraints.iter().map(DefaultConstraint::to_constraint).collect()
    }
}

impl DefaultConstraint {
    fn to_constraint(&self) -> SpreadConstraint {
        let policy = |text: Option<&str>, default| match text {
            None => default,
            Some("Honor") => InclusionPolicy::Honor,
            Some(_) => InclusionPolicy::Ignore,
        };
        SpreadConstraint {
            max_skew: self.max_skew,
            topology_key: self.topology_key.as_str().into(),
            when_unsatisfiable: match self.when_unsatisfiable.as_str() {
                "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
                _ => WhenUnsatisfiable::ScheduleAnyway,
            },
            selector: Ok(LabelSelector::Nothing),
            match_label_keys: Box::default(),
            min_domains: self.min_domains.unwrap_or(1),
            node_affinity_policy: policy(self.node_affinity_policy.as_deref(), InclusionPolicy::Honor),
            node_taints_policy: policy(self.node_taints_policy.as_deref(), InclusionPolicy::Ignore),
        }
    }
}

impl Args for PodTopologySpreadArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        match &self.defaulting_type {
            DefaultingType::System if !self.default_constraints.is_empty() => {
                let detail = "when .defaultConstraints are not empty";
                problems.invalid("defaultingType", &self.defaulting_type, detail);
            }
            DefaultingType::Unknown(name) => {
                problems.unsupported("defaultingType", name, &["System", "List"]);
            }
            _ => {}
        }
        for (index, constraint) in self.default_constraints.iter().enumerate() {
            self.validate_constraint(index, constraint, problems);
        }
    }
}

impl PodTopologySpreadArgs {
    fn validate_constraint(
        &self,
        index: usize,
        constraint: &DefaultConstraint,
        problems: &mut FieldProblems,
    ) {
        let path = |field: &str| format!("defaultConstraints[{index}].{field}");
        if constraint.max_skew <= 0 {
            problems.invalid(path("maxSkew"), constraint.max_skew, "not in valid range (0, inf)");
        }
        if constraint.topology_key.is_empty() {
            problems.required(path("topologyKey"), "can not be empty");
        } else {
            for problem in label_key_problems(&constraint.topology_key) {
                problems.invalid(path("topologyKey"), &constraint.topology_key, problem);
            }
        }
        match constraint.when_unsatisfiable.as_str() {
            "DoNotSchedule" | "ScheduleAnyway" => {}
            "" => problems.required(path("whenUnsatisfiable"), "can not be empty"),
            other => {
                problems.unsupported(path("whenUnsatisfiable"), other, &["DoNotSchedule", "ScheduleAnyway"]);
            }
        }
        if constraint.label_selector.is_some() {
            let detail = "constraint must not define a selector, as they deduced for each pod";
            problems.forbidden(path("labelSelector"), detail);
        }
        let identity = |constraint: &DefaultConstraint| {
            (constraint.topology_key.clone(), constraint.when_unsatisfiable.clone())
        };
        if self.default_constraints[..index].iter().any(|earlier| identity(earlier) == identity(constraint)) {
            let value = format!("{{{}, {}}}", constraint.topology_key, constraint.when_unsatisfiable);
            problems.duplicate(format!("defaultConstraints[{index}]"), value);
        }
    }
}
