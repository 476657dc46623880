//! What has to be allowed, from what plugins declare and what a scheduler writes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use supercargo_framework::{Needs, PluginInstance, Profile, QuerySource, Verb, Write};
use supercargo_model::KindId;

use crate::run::decisions::DECISIONS_PATH;
use crate::run::plugin_pages::PAGES_PATH;

/// A rule of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Why, for the reader.
    pub(super) comment: Cow<'static, str>,
    pub(super) groups: Vec<&'static str>,
    pub(super) resources: Vec<Cow<'static, str>>,
    /// Only objects with these names; of any name if there are none.
    pub(super) names: Vec<String>,
    /// Paths instead of resources.
    pub(super) urls: Vec<String>,
    pub(super) verbs: Vec<&'static str>,
}

impl Rule {
    fn new(
        comment: &'static str,
        groups: &[&'static str],
        resources: &[&'static str],
        verbs: &[&'static str],
    ) -> Self {
        Rule {
            comment: comment.into(),
            groups: groups.to_vec(),
            resources: resources.iter().map(|resource| (*resource).into()).collect(),
            names: Vec::new(),
            urls: Vec::new(),
            verbs: verbs.to_vec(),
        }
    }
}

/// Everything that is watched: pods, nodes, and the kinds that the plugins of the profiles declare.
pub(super) fn read_rules(profiles: &[Profile]) -> Vec<Rule> {
    let needs = Needs::of(profiles);
    let asks_metrics = needs.queries().iter().any(|query| *query.source() == QuerySource::NodeMetrics);
    reading(needs.kinds(), asks_metrics)
}

fn reading(kinds: impl IntoIterator<Item = KindId>, asks_metrics: bool) -> Vec<Rule> {
    let mut by_group: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
    for kind in kinds {
        by_group.entry(kind.group).or_default().insert(kind.plural);
    }
    let mut rules: Vec<Rule> = by_group
        .into_iter()
        .map(|(group, plurals)| {
            let plurals: Vec<_> = plurals.into_iter().collect();
            Rule::new("Read by the plugins.", &[group], &plurals, &["get", "list", "watch"])
        })
        .collect();
    if asks_metrics {
        rules.push(Rule::new("Asked by the plugins.", &["metrics.k8s.io"], &["nodes"], &["get", "list"]));
    }
    rules
}

/// What one plugin reads of kinds that are not read anyway.
#[cfg(test)]
pub(super) fn plugin_reads(plugin: &PluginInstance, known: &BTreeSet<KindId>) -> Vec<Rule> {
    let is_new = |kind: &KindId| !known.contains(kind) && !supercargo_framework::is_fact_kind(*kind);
    let kinds = plugin.reads.kinds.iter().map(|kind| kind.id).filter(is_new);
    let asks_metrics = plugin.reads.queries.iter().any(|query| *query.source() == QuerySource::NodeMetrics);
    reading(kinds, asks_metrics)
}

/// What it takes to bind pods.
pub(super) fn binding_rule() -> Rule {
    Rule::new("Pods are bound.", &[""], &["pods/binding"], &["create"])
}

/// Everything that is written in any namespace: what the plugins declare, and what every scheduler writes.
pub(super) fn write_rules(profiles: &[Profile]) -> Vec<Rule> {
    let plugins = || profiles.iter().flat_map(Profile::plugins);
    let declared = |write: &Write| plugins().any(|plugin| plugin.writes.contains(write));
    let mut rules = Vec::new();
    if declared(&Write::BINDING) {
        rules.push(binding_rule());
    }
    rules.push(Rule::new("Conditions and nominations.", &[""], &["pods/status"], &["patch"]));
    if declared(&Write::EVICTION) {
        rules.push(Rule::new("Preemption.", &[""], &["pods"], &["delete"]));
    }
    let mut told = BTreeSet::new();
    for plugin in plugins().filter(|plugin| told.insert(plugin.name)) {
        rules.extend(plugin_rules(plugin));
    }
    rules.push(Rule::new("Events.", &["", "events.k8s.io"], &["events"], &["create", "patch"]));
    let comment = "Who asks for pages, and whether that is allowed.";
    rules.push(Rule::new(comment, &["authentication.k8s.io"], &["tokenreviews"], &["create"]));
    rules.push(Rule::new(comment, &["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]));
    rules
}

/// What one plugin writes beside pods that are bound, evicted, or told about.
pub(super) fn plugin_rules(plugin: &PluginInstance) -> Vec<Rule> {
    let is_told = |write: &&Write| ![Write::BINDING, Write::POD_STATUS, Write::EVICTION].contains(write);
    let mut verbs: BTreeMap<(&'static str, Cow<'static, str>), BTreeSet<Verb>> = BTreeMap::new();
    for write in plugin.writes.iter().filter(is_told) {
        verbs.entry((write.kind.group, write.resource())).or_default().insert(write.verb);
    }
    // Resources of a group that are written alike share a rule.
    let mut alike: BTreeMap<(&'static str, Vec<&'static str>), Vec<Cow<'static, str>>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        let verbs = verbs.into_iter().map(Verb::name).collect();
        alike.entry((group, verbs)).or_default().push(resource);
    }
    let comment = || match &*plugin.writes.reason {
        "" => Cow::Owned(format!("Written by {}.", plugin.name)),
        _ => plugin.writes.reason.clone(),
    };
    let rule = |((group, verbs), resources)| Rule {
        comment: comment(),
        groups: vec![group],
        resources,
        names: Vec::new(),
        urls: Vec::new(),
        verbs,
    };
    alike.into_iter().map(rule).collect()
}

/// What somebody needs whom the running scheduler shall tell what it decided.
pub(super) fn decisions_rules(profiles: &[Profile]) -> Vec<Rule> {
    let comment = "Nobody has this role yet: bind it to those whom `supercargo explain` shall tell what was decided.\n\
                   # For the pods of one namespace only, name it: /debug/decisions/NAMESPACE/*";
    let mut rule = Rule::new(comment, &[], &[], &["get"]);
    rule.urls.push(format!("{DECISIONS_PATH}/*"));
    let plugins: BTreeSet<&str> =
        profiles.iter().flat_map(|profile| &profile.pages).map(|page| page.name).collect();
    let mut pages = Rule::new("The pages of plugins.", &[], &[], &["get"]);
    pages.urls.extend(plugins.iter().flat_map(|plugin| {
        let page = format!("{PAGES_PATH}/{plugin}");
        [page.clone(), format!("{page}/*")]
    }));
    if plugins.is_empty() { vec![rule] } else { vec![rule, pages] }
}

/// What plugins need that save what they remember, in the namespace of that object; nothing if none does.
pub(super) fn memories_rules(profiles: &[Profile], object: &str) -> Vec<Rule> {
    if !profiles.iter().flat_map(Profile::plugins).any(PluginInstance::saves_memories) {
        return Vec::new();
    }
    let comment = "What plugins remember is saved. Creation cannot be limited by name.";
    let mut update = Rule::new(comment, &[""], &["configmaps"], &["get", "update"]);
    update.names.push(object.to_owned());
    vec![Rule::new(comment, &[""], &["configmaps"], &["create"]), update]
}

/// What replicas need to agree, in the namespace of their lease.
pub(super) fn lease_rules(lease: &str) -> Vec<Rule> {
    let group = &["coordination.k8s.io"];
    let mut update = Rule::new("", group, &["leases"], &["get", "update"]);
    update.names.push(lease.to_owned());
    vec![Rule::new("Creation cannot be limited by name.", group, &["leases"], &["create"]), update]
}
