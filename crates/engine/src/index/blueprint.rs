//! Working out how the pods of a class are decided.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{
    CountedFilter, CountedScore, Counts, Cycle, CycleState, FieldSet, MAX_NODE_SCORE, Normalization,
    PodField, PreFilterResult, Profile, Scope, TermRole,
};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{KindId, Pod, Snapshot};

use super::Question;
use super::base::{PartKey, RELATIVE_SCORES_MAX};
use super::class::{BaseKey, ClassCounter, ClassFilter, ClassScore, ClassTerm, Indexed, namespace_labels};
use super::counting::{Counting, SourceId, TallyId, TallyRequest};
use super::keys::KeyColumn;
use super::local::{LocalFilter, LocalPlugins, LocalScore};
use super::plain::{PlainReason, VERDICT};
use super::recipe::{PluginSet, Recipe, RecipePlugin};
use super::resolving::Resolved;

/// Scores above this do not fit beside each other into the values of rows.
const VALUE_MAX: i64 = 32_000;

/// How pods of a class are decided, before anything is counted for it.
pub(super) struct Blueprint {
    plugins: LocalPlugins,
    state: CycleState,
    filters: Vec<(&'static str, Arc<dyn CountedFilter>)>,
    scores: Vec<(&'static str, i64, Arc<dyn CountedScore>)>,
    fields: FieldSet<PodField>,
    kinds: Vec<KindId>,
    asked: PluginSet,
    scored: PluginSet,
    has_plans: bool,
    recipe: Arc<Recipe>,
    resolved: Resolved,
}

impl Blueprint {
    fn empty(recipe: &Arc<Recipe>, concerned: PluginSet, resolved: &Resolved) -> Self {
        Blueprint {
            recipe: recipe.clone(),
            resolved: resolved.clone(),
            plugins: LocalPlugins::default(),
            state: CycleState::default(),
            filters: Vec::new(),
            scores: Vec::new(),
            fields: FieldSet::EMPTY,
            kinds: Vec::new(),
            asked: PluginSet::EMPTY,
            scored: PluginSet::EMPTY,
            has_plans: recipe.pre_binds.iter().any(|plugin| concerned.contains(*plugin)),
        }
    }

    /// An error if the plugins' answers for such pods cannot be kept.
    pub(super) fn draw(
        question: &Question<'_>,
        recipe: &Arc<Recipe>,
        concerned: PluginSet,
        resolved: &Resolved,
    ) -> Result<Self, PlainReason> {
        let Question { profile, pod, context, .. } = question;
        // The claim of an ephemeral volume has the pod's name: where volumes tell pods apart, such pods are all different.
        if recipe.fields.contains(PodField::Volumes)
            && pod.spec.volumes.iter().any(|volume| matches!(volume.source, VolumeSource::Ephemeral))
        {
            return Err(PlainReason::general(
                "the pod has an ephemeral volume, whose claim has the pod's name",
            ));
        }
        let mut cycle = Cycle::resume(pod, context.clone(), resolved.state().clone());
        let mut blueprint = Blueprint::empty(recipe, concerned, resolved);
        blueprint.draw_filters(concerned, profile, &mut cycle)?;
        blueprint.draw_scores(concerned, profile, &mut cycle)?;
        blueprint.state = cycle.into_state();
        Ok(blueprint)
    }

    fn draw_filters(
        &mut self,
        concerned: PluginSet,
        profile: &Profile,
        cycle: &mut Cycle<'_>,
    ) -> Result<(), PlainReason> {
        let recipe = self.recipe.clone();
        let mut skipped = PluginSet::EMPTY;
        let mut counted: Vec<Option<Arc<dyn CountedFilter>>> = vec![None; profile.filter.len()];
        for (named, plugin) in profile.pre_filter.iter().zip(recipe.pre_filters()) {
            if plugin.is_verdict {
                continue;
            }
            if let Some(skips) = self.resolved.skips(plugin.number) {
                if skips {
                    skipped.insert(plugin.number);
                }
                continue;
            }
            // Where a filter counts, nobody needs what its PreFilter would leave.
            if let Some(filter) = plugin.filter {
                counted[filter] = profile.filter[filter].run(|plugin| plugin.counted(cycle));
                if counted[filter].is_some() {
                    continue;
                }
            }
            plugin.check_stable(concerned)?;
            match named.run(|plugin| plugin.pre_filter(cycle)) {
                PreFilterResult::AllNodes => {}
                PreFilterResult::Skip => skipped.insert(plugin.number),
                PreFilterResult::OnlyNodes(_) | PreFilterResult::Reject(_) => {
                    return Err(PlainReason::of(named.name, VERDICT));
                }
            }
        }
        for (position, _) in recipe.filters().enumerate().filter(|(_, plugin)| plugin.has_no_pre_filter()) {
            counted[position] = profile.filter[position].run(|plugin| plugin.counted(cycle));
        }
        for ((named, plugin), counted) in profile.filter.iter().zip(recipe.filters()).zip(counted) {
            if let Some(counted) = counted {
                self.filters.push((named.name, counted));
            } else if concerned.contains(plugin.number) && !skipped.contains(plugin.number) {
                plugin.check_kept()?;
                // What PostFilter finds out about a row is kept until the row changes.
                if plugin.reads_census {
                    return Err(PlainReason::of(named.name, "its Filter reads facts of all nodes together"));
                }
                self.plugins.filters.push(LocalFilter {
                    named: named.clone(),
                    by_shape: plugin.is_by_shape,
                    // A row is rejected by the first filter that rejects it, and filters that count are asked last here.
                    is_late: !self.filters.is_empty(),
                });
                self.asked.insert(plugin.number);
                self.note(plugin);
            }
        }
        Ok(())
    }

    fn draw_scores(
        &mut self,
        concerned: PluginSet,
        profile: &Profile,
        cycle: &mut Cycle<'_>,
    ) -> Result<(), PlainReason> {
        let recipe = self.recipe.clone();
        let mut skipped = PluginSet::EMPTY;
        let mut counted: Vec<Option<Arc<dyn CountedScore>>> = vec![None; profile.score.len()];
        for (named, plugin) in profile.pre_score.iter().zip(recipe.pre_scores()) {
            if let Some(score) = plugin.score {
                counted[score] = profile.score[score].0.run(|plugin| plugin.counted(cycle));
                if counted[score].is_some() {
                    continue;
                }
            }
            plugin.check_stable(concerned)?;
            let status = named.run(|plugin| plugin.pre_score(cycle, &[]));
            if status.is_skip() {
                skipped.insert(plugin.number);
            } else if !status.is_success() {
                return Err(PlainReason::of(named.name, "its PreScore fails"));
            }
        }
        for (position, _) in recipe.scores().enumerate().filter(|(_, plugin)| plugin.has_no_pre_score()) {
            counted[position] = profile.score[position].0.run(|plugin| plugin.counted(cycle));
        }
        let mut highest = 0;
        for (((named, weight), plugin), counted) in profile.score.iter().zip(recipe.scores()).zip(counted) {
            if let Some(counted) = counted {
                self.scores.push((named.name, *weight, counted));
                continue;
            }
            if !concerned.contains(plugin.number) || skipped.contains(plugin.number) {
                continue;
            }
            plugin.check_kept()?;
            if *weight < 0 {
                return Err(PlainReason::of(named.name, "its weight is negative"));
            }
            self.scored.insert(plugin.number);
            let score = LocalScore { named: named.clone(), weight: *weight, by_shape: plugin.is_by_shape };
            match named.plugin.normalization() {
                Normalization::Unknown => {
                    return Err(PlainReason::of(named.name, "it does not say how its scores are normalised"));
                }
                Normalization::None => {
                    highest = weight.saturating_mul(MAX_NODE_SCORE).saturating_add(highest);
                    self.plugins.scores.push(score);
                }
                Normalization::ByRange | Normalization::ByRangeBeside(_) => {
                    highest = weight.saturating_mul(MAX_NODE_SCORE).saturating_add(highest);
                    self.plugins.ranged.push(score);
                }
                Normalization::ByValues => {
                    self.plugins.relative_reads_pods |= plugin.reads_pods;
                    self.plugins.relative.push(score);
                }
            }
            self.note(plugin);
        }
        if highest > VALUE_MAX {
            return Err(PlainReason::general("the weights of the scores are too high"));
        }
        if self.plugins.relative.len() > RELATIVE_SCORES_MAX {
            return Err(PlainReason::general("too many plugins normalise their scores"));
        }
        Ok(())
    }

    fn note(&mut self, plugin: &RecipePlugin) {
        self.fields = self.fields.or(plugin.fields);
        self.kinds.extend(&plugin.kinds);
        self.plugins.reads_census |= plugin.reads_census;
    }

    pub(super) fn roles(&self) -> Vec<TermRole> {
        let filters = self.filters.iter().flat_map(|(_, filter)| filter.roles());
        filters.chain(self.scores.iter().flat_map(|(_, _, score)| score.roles())).copied().collect()
    }

    /// Counts what has to be counted.
    pub(super) fn build(
        self,
        profile: usize,
        pod: &Arc<Pod>,
        cluster: &Snapshot,
        counting: &mut Counting,
        key_epochs: &mut Vec<(usize, u64)>,
    ) -> Indexed {
        let mut builder = Builder { cluster, counting, keys: BTreeSet::new(), key_epochs };
        let roles = self.roles();
        let terms = builder.terms(pod, &roles);
        let rejects_by_term = terms.iter().any(|term| term.role == TermRole::RequiredAnti);
        let scores_by_term = terms.iter().any(|term| term.role != TermRole::RequiredAnti);
        let mut counters = Vec::new();
        let mut filters = Vec::new();
        for (name, filter) in self.filters {
            let by_term = rejects_by_term && filter.roles().contains(&TermRole::RequiredAnti);
            if filter.counters().is_empty() && !by_term {
                continue;
            }
            let first_cell = counters.len();
            let counts: Arc<dyn Counts> = filter.clone();
            counters.extend(builder.counters(&counts));
            filters.push(ClassFilter { name, filter, first_cell });
        }
        let mut scores = Vec::new();
        for (name, weight, score) in self.scores {
            if score.counters().is_empty() && (!scores_by_term || score.roles().is_empty()) {
                continue;
            }
            let first_cell = counters.len();
            let counts: Arc<dyn Counts> = score.clone();
            counters.extend(builder.counters(&counts));
            scores.push(ClassScore { name, score, weight, first_cell });
        }
        let keys: Vec<PartKey> = builder.keys.into_iter().collect();
        let mut terms = terms;
        for counter in counters.iter_mut().chain(terms.iter_mut().map(|term| &mut term.counter)) {
            let key = PartKey { column: counter.column, presence_only: counter.is_by_row };
            counter.part_key = keys.binary_search(&key).expect("every counter's key was noted");
        }
        let all = counters.iter().chain(terms.iter().map(|term| &term.counter));
        let by_row = all.filter(|counter| counter.is_by_row).copied().collect();
        let wants_weights = counters.iter().any(|counter| counter.wants_weights);
        let is_asked = |number| self.asked.contains(number) || self.scored.contains(number);
        let mut alike = self.recipe.alike(pod, is_asked);
        alike.extend(self.resolved.numbers(is_asked));
        let base_key =
            Arc::new(BaseKey::of(profile, pod, self.fields, [self.asked, self.scored], keys, alike));
        let kinds = self.kinds.into_iter().map(|kind| (kind, cluster.objects().version(kind))).collect();
        Indexed {
            pod: pod.clone(),
            base_key,
            kinds,
            base: None,
            plugins: self.plugins,
            state: self.state,
            filters,
            scores,
            counters,
            terms,
            by_row,
            wants_weights,
            planes: None,
            asked: self.asked,
            recipe: self.recipe,
            has_plans: self.has_plans,
        }
    }
}

/// What a counter is wanted for.
#[derive(Clone, Copy)]
enum Wanted {
    /// The pods of each row, whatever else is in its domain.
    PodsOfNode,
    /// The pods of each domain.
    Pods,
    /// Those, and in how many domains rows are.
    PodsAndDomains,
    /// What the pods of all domains are worth.
    Weights,
}

impl Wanted {
    /// Whether rows are told apart by what is counted for each, and not by their domains.
    fn is_by_row(self, key: &KeyColumn) -> bool {
        match self {
            Wanted::PodsOfNode => true,
            Wanted::Pods => key.is_one_node_each() || key.has_many_domains(),
            Wanted::PodsAndDomains => key.has_many_domains(),
            // With every pod the sums of all domains change.
            Wanted::Weights => false,
        }
    }
}

struct Builder<'a> {
    cluster: &'a Snapshot,
    counting: &'a mut Counting,
    keys: BTreeSet<PartKey>,
    key_epochs: &'a mut Vec<(usize, u64)>,
}

impl Builder<'_> {
    /// The terms of running pods that mean the pod.
    fn terms(&mut self, pod: &Pod, roles: &[TermRole]) -> Vec<ClassTerm> {
        let labels = namespace_labels(self.cluster, pod);
        let mut meant: Vec<(SourceId, TermRole, i32, Box<str>)> = (self.counting.carried_terms())
            .filter(|(_, term)| roles.contains(&term.role) && term.means(pod, &labels))
            .map(|(id, term)| (id, term.role, term.weight, term.term.topology_key.clone()))
            .collect();
        meant.sort_unstable();
        let mut terms = Vec::with_capacity(meant.len());
        for (source, role, weight, key) in meant {
            let column = self.column(&key, None);
            self.counting.share_term(source);
            let request =
                TallyRequest { key: column, chosen_by: None, wants_counts: false, weighed_by: None };
            let tally = (!self.counting.keys.get(column).is_one_node_each())
                .then(|| self.counting.tally(source, request, self.cluster));
            let counter = self.counter(source, tally, column, Wanted::Pods);
            terms.push(ClassTerm { role, weight: i64::from(weight), counter });
        }
        terms
    }

    fn counters(&mut self, counts: &Arc<dyn Counts>) -> Vec<ClassCounter> {
        let mut counters = Vec::with_capacity(counts.counters().len());
        for (number, wanted) in counts.counters().iter().enumerate() {
            let column = self.column(&wanted.topology_key, wanted.second_key.as_deref());
            let source = self.counting.matching(&wanted.pods);
            let chosen = match &wanted.scope {
                Scope::Node => {
                    counters.push(self.counter(source, None, column, Wanted::PodsOfNode));
                    continue;
                }
                Scope::Chosen => true,
                Scope::NodesWithKeys(keys) => {
                    // If all nodes have all keys there is nothing to choose.
                    let others: Vec<usize> = (keys.iter().filter(|key| **key != wanted.topology_key))
                        .map(|key| self.column(key, None))
                        .collect();
                    !others.iter().all(|column| self.counting.keys.get(*column).is_on_all_nodes())
                }
            };
            let wants = match (wanted.wants_weights, wanted.wants_domains) {
                (true, _) => Wanted::Weights,
                (false, true) => Wanted::PodsAndDomains,
                (false, false) => Wanted::Pods,
            };
            let key = self.counting.keys.get(column);
            let has_own_count = key.is_one_node_each() && wants.is_by_row(key);
            let needs_tally = !has_own_count || chosen || wanted.wants_counts || !key.is_on_all_nodes();
            let request = TallyRequest {
                key: column,
                chosen_by: chosen.then(|| (counts.clone(), number)),
                wants_counts: wanted.wants_counts,
                weighed_by: wanted.wants_weights.then(|| (counts.clone(), number)),
            };
            let tally = needs_tally.then(|| self.counting.tally(source, request, self.cluster));
            counters.push(self.counter(source, tally, column, wants));
        }
        counters
    }

    fn counter(
        &mut self,
        source: SourceId,
        tally: Option<TallyId>,
        column: usize,
        wanted: Wanted,
    ) -> ClassCounter {
        let key = self.counting.keys.get(column);
        let is_by_row = wanted.is_by_row(key);
        self.keys.insert(PartKey { column, presence_only: is_by_row });
        ClassCounter {
            source,
            tally,
            column,
            part_key: 0,
            is_by_row,
            is_by_small_domain: is_by_row && tally.is_some() && !key.is_one_node_each(),
            counts_domains: is_by_row && matches!(wanted, Wanted::PodsAndDomains),
            wants_weights: matches!(wanted, Wanted::Weights),
        }
    }

    fn column(&mut self, key: &str, second_key: Option<&str>) -> usize {
        let column = self.counting.keys.column(key, second_key, self.cluster);
        let epoch = (column, self.counting.keys.get(column).epoch());
        if !self.key_epochs.contains(&epoch) {
            self.key_epochs.push(epoch);
        }
        column
    }
}
