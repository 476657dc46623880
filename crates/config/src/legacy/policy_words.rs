//! The words of a Policy.

use serde_json::Value;

use crate::fields::read_object;

/// What a Policy says. Its extenders are read on their own, because their names can be in any case.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    /// None if absent, which means the default ones.
    pub(super) predicates: Option<Vec<PredicatePolicy>>,
    pub(super) priorities: Option<Vec<PriorityPolicy>>,
    pub(super) hard_pod_affinity_symmetric_weight: i32,
    pub(super) always_check_all_predicates: bool,
    extenders: Value,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PredicatePolicy {
    pub(super) name: String,
    pub(super) argument: Option<PredicateArgument>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PredicateArgument {
    pub(super) service_affinity: Option<ServiceAffinity>,
    pub(super) labels_presence: Option<LabelsPresence>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ServiceAffinity {
    labels: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LabelsPresence {
    pub(super) labels: Vec<String>,
    pub(super) presence: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PriorityPolicy {
    pub(super) name: String,
    pub(super) weight: i64,
    pub(super) argument: Option<PriorityArgument>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PriorityArgument {
    pub(super) service_anti_affinity: Option<ServiceAntiAffinity>,
    pub(super) label_preference: Option<LabelPreference>,
    /// Its fields are the plugin's arguments.
    pub(super) requested_to_capacity_ratio: Option<Value>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ServiceAntiAffinity {
    label: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LabelPreference {
    label: String,
    presence: bool,
}

read_object!(Policy {
    predicates: "predicates",
    priorities: "priorities",
    hard_pod_affinity_symmetric_weight: "hardPodAffinitySymmetricWeight",
    always_check_all_predicates: "alwaysCheckAllPredicates",
    extenders: "extenders",
});
read_object!(PredicatePolicy { name: "name", argument: "argument" });
read_object!(PredicateArgument { service_affinity: "serviceAffinity", labels_presence: "labelsPresence" });
read_object!(ServiceAffinity { labels: "labels" });
read_object!(LabelsPresence { labels: "labels", presence: "presence" });
read_object!(PriorityPolicy { name: "name", weight: "weight", argument: "argument" });
read_object!(PriorityArgument {
    service_anti_affinity: "serviceAntiAffinity",
    label_preference: "labelPreference",
    requested_to_capacity_ratio: "requestedToCapacityRatioArguments",
});
read_object!(ServiceAntiAffinity { label: "label" });
read_object!(LabelPreference { label: "label", presence: "presence" });
