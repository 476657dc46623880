//! What would help a pod that fits nowhere, each tried before it is said.

mod opponents;
mod others;
mod own_rules;
mod resources;
mod several;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_engine::{Evaluation, feasible_among};
use supercargo_framework::PodField;
use supercargo_model::{NodeRef, Pod, PodSpec, Row};

use crate::explanation::Explainer;
use crate::remedy::{Hint, Remedy};
use crate::what_if::with_spec;

/// More hints than this help nobody.
const HINTS_MAX: usize = 8;
/// How many nodes a hint names.
const EXAMPLES_MAX: usize = 5;

/// Everything that would help, most nodes opened first.
///
/// The evaluation has every filter's word; what would be otherwise is tried on no more nodes than it could open.
pub(crate) fn find_hints(explainer: &Explainer<'_>, pod: &Arc<Pod>, evaluation: &Evaluation) -> Vec<Hint> {
    let search = Search::new(explainer, pod, evaluation);
    let mut hints = Vec::new();
    hints.extend(search.resources());
    hints.extend(search.tolerations());
    hints.extend(search.cordoned());
    hints.extend(search.node_selection());
    hints.extend(search.other_pods());
    hints.extend(search.skews());
    hints.extend(search.host_ports());
    hints.extend(search.volumes());
    hints.extend(search.added_affinity());
    hints.extend(search.pods_in_the_way());
    hints.extend(search.priority());
    if hints.is_empty() {
        hints.extend(search.several());
    }
    hints.sort_by_key(|hint| std::cmp::Reverse(hint.opens));
    hints.truncate(HINTS_MAX);
    hints
}

struct Search<'a> {
    explainer: &'a Explainer<'a>,
    pod: &'a Arc<Pod>,
    evaluation: &'a Evaluation,
    /// The nodes, as places in the words of the evaluation, by who stands in the way there: few sets for many nodes.
    places: BTreeMap<Vec<&'static str>, Vec<usize>>,
    /// The nodes that PreFilter ruled out, so that no filter was asked about them.
    unseen: Vec<Row>,
}

impl<'a> Search<'a> {
    fn new(explainer: &'a Explainer<'a>, pod: &'a Arc<Pod>, evaluation: &'a Evaluation) -> Self {
        let mut places: BTreeMap<Vec<&'static str>, Vec<usize>> = BTreeMap::new();
        let mut blockers: Vec<&'static str> = Vec::new();
        for (place, (_, words)) in evaluation.words.iter().enumerate() {
            blockers.clear();
            blockers.extend(words.iter().filter(|word| word.stands_in_the_way()).map(|word| word.plugin));
            match places.get_mut(&blockers) {
                Some(group) => group.push(place),
                None => drop(places.insert(blockers.clone(), vec![place])),
            }
        }
        let cluster = explainer.context.cluster;
        let unseen = if evaluation.words.len() == cluster.node_count() {
            Vec::new()
        } else {
            let mut seen: Vec<Row> = evaluation.words.iter().map(|(row, _)| *row).collect();
            seen.sort_unstable();
            cluster.rows().iter().copied().filter(|row| seen.binary_search(row).is_err()).collect()
        };
        Search { explainer, pod, evaluation, places, unseen }
    }

    fn node(&self, row: Row) -> NodeRef<'a> {
        self.explainer.context.cluster.node(row)
    }

    /// The nodes that none but these plugins keep the pod from.
    fn blocked_only_by(&self, plugins: &[&str]) -> Vec<Row> {
        self.rows_where(|blocker| plugins.contains(&blocker))
    }

    /// The nodes where everybody who stands in the way is one of these, in the order in which nodes are examined.
    fn rows_where(&self, is_one: impl Fn(&str) -> bool) -> Vec<Row> {
        let groups = self.places.iter().filter(|(blockers, _)| blockers.iter().all(|name| is_one(name)));
        let mut places: Vec<usize> = groups.flat_map(|(_, places)| places).copied().collect();
        places.sort_unstable();
        places.into_iter().map(|place| self.evaluation.words[place].0).collect()
    }

    /// The nodes that a change of these fields may open: those where nobody stands in the way who does not read them.
    fn within_reach(&self, fields: &[PodField]) -> Vec<Row> {
        let plugins = self.explainer.profile.plugins();
        let reads = |name: &str| {
            let plugin = plugins.iter().find(|plugin| plugin.name == name);
            plugin.is_none_or(|plugin| fields.iter().any(|field| plugin.reads.pod.contains(*field)))
        };
        let mut rows = self.rows_where(reads);
        if self.explainer.profile.pre_filter.iter().any(|named| reads(named.name)) {
            rows.extend(&self.unseen);
        }
        rows
    }

    /// The nodes that the pod could have if its spec were changed in these fields.
    fn opened(&self, fields: &[PodField], change: impl FnOnce(&mut PodSpec)) -> Vec<Row> {
        let rows = self.within_reach(fields);
        if rows.is_empty() { rows } else { self.feasible_with(&rows, change) }
    }

    /// Those of the nodes that the pod could have if its spec were changed.
    fn feasible_with(&self, rows: &[Row], change: impl FnOnce(&mut PodSpec)) -> Vec<Row> {
        let Explainer { profile, context, .. } = self.explainer;
        feasible_among(profile, context.clone(), &with_spec(self.pod, change), rows)
    }

    /// A hint if it opens any nodes; the text is made from how many.
    fn hint(&self, remedy: Remedy, rows: &[Row], text: impl FnOnce(usize) -> String) -> Option<Hint> {
        if rows.is_empty() {
            return None;
        }
        let names = rows.iter().take(EXAMPLES_MAX).map(|row| self.node(*row).name().to_string());
        Some(Hint {
            text: text(rows.len()),
            remedy,
            opens: rows.len(),
            examples: names.collect(),
            is_uncertain: false,
        })
    }
}
