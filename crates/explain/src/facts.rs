//! What plugins go by that somebody outside has measured, and that is not known here.

use std::collections::BTreeSet;

use supercargo_framework::{FactForm, PluginInstance, Profile, Query};
use supercargo_model::Snapshot;

use crate::text::list;

/// So many nodes of which nothing is known are named.
const NODES_NAMED_MAX: usize = 3;

/// What is lacking of the answers to a plugin's query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// Whether the plugin only gives points, so that it does not matter for a pod that fits nowhere.
    pub(crate) is_score: bool,
    /// What there is to say about it.
    pub(crate) sentence: String,
}

/// What is lacking of what plugins want to know from outside, by plugin and query.
pub(crate) fn unknown_facts(profile: &Profile, cluster: &Snapshot) -> Vec<Unknown> {
    let plugins = profile.plugins().iter().enumerate();
    let queries = plugins
        .flat_map(|(number, plugin)| plugin.reads.queries.iter().map(move |query| (number, plugin, query)));
    let filters: BTreeSet<usize> = (profile.pre_filter.iter().map(|named| named.number))
        .chain(profile.filter.iter().map(|named| named.number))
        .collect();
    queries
        .filter_map(|(number, plugin, query)| {
            let sentence = lacking(plugin, query, cluster)?;
            Some(Unknown { is_score: !filters.contains(&number), sentence })
        })
        .collect()
}

fn lacking(plugin: &PluginInstance, query: &Query, cluster: &Snapshot) -> Option<String> {
    let facts: BTreeSet<Box<str>> =
        cluster.objects().of_kind(query.kind().id).map(|fact| fact.key.name).collect();
    let (plugin, name) = (plugin.name, query.name());
    let unknown: Vec<String> = match query.form() {
        FactForm::Whole if !facts.is_empty() => return None,
        FactForm::Whole => Vec::new(),
        FactForm::PerNode => {
            let unknown = cluster.nodes().filter(|node| !facts.contains(&**node.name()));
            unknown.map(|node| node.name().to_string()).collect()
        }
    };
    if facts.is_empty() {
        return Some(format!(
            "{plugin} goes by what the query {name} is answered, which is not known here: a scheduler that runs asks, and may decide \
             otherwise; a file may have the facts"
        ));
    }
    let count = unknown.len();
    if count == 0 {
        return None;
    }
    let mut named: Vec<String> = unknown.into_iter().take(NODES_NAMED_MAX).collect();
    if count > NODES_NAMED_MAX {
        named.push(format!("{} others", count - NODES_NAMED_MAX));
    }
    let nodes = if count == 1 { "node" } else { "nodes" };
    Some(format!(
        "{plugin} goes by what the query {name} is answered, which is not known of the {nodes} {}",
        list(&named)
    ))
}
