//! What has to be allowed, from what plugins declare and what a scheduler writes.

use std::collections::{BTreeMap, BTreeSet};

use supercargo_framework::{Needs, Profile, QuerySource};

use crate::run::decisions::DECISIONS_PATH;

/// The plugin that writes volumes and claims.
const VOLUME_BINDING: &str = "VolumeBinding";
/// It looks for room after all nodes were refused, but evicts nobody.
const DYNAMIC_RESOURCES: &str = "DynamicResources";
/// Plugins of which it is known what they write when a pod is bound.
const KNOWN_WRITERS: [&str; 3] = [VOLUME_BINDING, DYNAMIC_RESOURCES, "DefaultBinder"];

/// A rule of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Why, for the reader.
    pub(super) comment: &'static str,
    pub(super) groups: Vec<&'static str>,
    pub(super) resources: Vec<&'static str>,
    /// Only objects with these names; of any name if there are none.
    pub(super) names: Vec<String>,
    /// Paths instead of resources.
    pub(super) urls: Vec<String>,
    pub(super) verbs: &'static [&'static str],
}

impl Rule {
    fn new(
        comment: &'static str,
        groups: &[&'static str],
        resources: &[&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        Rule {
            comment,
            groups: groups.to_vec(),
            resources: resources.to_vec(),
            names: Vec::new(),
            urls: Vec::new(),
            verbs,
        }
    }
}

/// Everything that is watched: pods, nodes, and the kinds that the plugins of the profiles declare.
pub(super) fn read_rules(profiles: &[Profile]) -> Vec<Rule> {
    let needs = Needs::of(profiles);
    let mut by_group: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
    for kind in needs.kinds() {
        by_group.entry(kind.group).or_default().insert(kind.plural);
    }
    let mut rules: Vec<Rule> = by_group
        .into_iter()
        .map(|(group, plurals)| {
            let plurals: Vec<_> = plurals.into_iter().collect();
            Rule::new("Read by the plugins.", &[group], &plurals, &["get", "list", "watch"])
        })
        .collect();
    if needs.queries().iter().any(|query| query.source == QuerySource::NodeMetrics) {
        rules.push(Rule::new("Asked by the plugins.", &["metrics.k8s.io"], &["nodes"], &["get", "list"]));
    }
    rules
}

/// Everything that is written in any namespace.
pub(super) fn write_rules(profiles: &[Profile]) -> Vec<Rule> {
    let mut rules = vec![
        Rule::new("Pods are bound.", &[""], &["pods/binding"], &["create"]),
        Rule::new("Conditions and nominations.", &[""], &["pods/status"], &["patch"]),
    ];
    if profiles.iter().flat_map(|profile| &profile.post_filter).any(|plugin| plugin.name != DYNAMIC_RESOURCES)
    {
        rules.push(Rule::new("Preemption.", &[""], &["pods"], &["delete"]));
    }
    if profiles.iter().flat_map(|profile| &profile.pre_bind).any(|plugin| plugin.name == VOLUME_BINDING) {
        let resources = ["persistentvolumeclaims", "persistentvolumes"];
        rules.push(Rule::new("Volumes that wait for their first consumer.", &[""], &resources, &["patch"]));
    }
    rules.push(Rule::new("Events.", &["", "events.k8s.io"], &["events"], &["create", "patch"]));
    let comment = "Who asks for pages, and whether that is allowed.";
    rules.push(Rule::new(comment, &["authentication.k8s.io"], &["tokenreviews"], &["create"]));
    rules.push(Rule::new(comment, &["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]));
    rules
}

/// What somebody needs whom the running scheduler shall tell what it decided.
pub(super) fn decisions_rules() -> Vec<Rule> {
    let comment = "Nobody has this role yet: bind it to those whom `supercargo explain` shall tell what was decided.\n\
                   # For the pods of one namespace only, name it: /debug/decisions/NAMESPACE/*";
    let mut rule = Rule::new(comment, &[], &[], &["get"]);
    rule.urls.push(format!("{DECISIONS_PATH}/*"));
    vec![rule]
}

/// What replicas need to agree, in the namespace of their lease.
pub(super) fn lease_rules(lease: &str) -> Vec<Rule> {
    let group = &["coordination.k8s.io"];
    let mut update = Rule::new("", group, &["leases"], &["get", "update"]);
    update.names.push(lease.to_owned());
    vec![Rule::new("Creation cannot be limited by name.", group, &["leases"], &["create"]), update]
}

/// Plugins that act when a pod is bound, and of which it is not known what they write.
pub(super) fn unknown_writers(profiles: &[Profile]) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for profile in profiles {
        names.extend(profile.pre_bind.iter().map(|plugin| plugin.name));
        names.extend(profile.bind.iter().map(|plugin| plugin.name));
        names.extend(profile.post_bind.iter().map(|plugin| plugin.name));
    }
    names.retain(|name| !KNOWN_WRITERS.contains(name));
    names
}
