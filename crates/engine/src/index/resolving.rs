//! What pods come to: pods that name different objects are of one class if those objects say the same. Hot for pods with claims.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{Cycle, CycleState, Likeness, Plan, PreFilterResult, Touched};
use supercargo_model::cluster::ObjectChange;
use supercargo_model::{Row, Snapshot};

use super::Question;
use super::class::Indexed;
use super::plain::{PlainReason, VERDICT};
use super::recipe::Recipe;
use super::table::Table;
use crate::planted::{Bug, is_planted};

/// Numbers for what plugins said that pods come to.
#[derive(Default)]
pub(super) struct Likenesses {
    numbers: FxHashMap<Box<[u8]>, u64>,
    /// The last of the numbers. None is used twice, because classes may outlive what they were found with.
    last: u64,
    buffer: Likeness,
}

/// What one pod comes to, as things are now.
#[derive(Clone, Default)]
pub(super) struct Resolved {
    /// What the plugins left in the cycle.
    state: CycleState,
    words: Vec<Word>,
}

/// What one plugin said.
#[derive(Clone, Copy)]
struct Word {
    plugin: usize,
    /// Tells it from all else that this plugin said.
    number: u64,
    /// Whether its Filter has nothing to say.
    skips: bool,
}

impl Resolved {
    /// What the plugins left in the cycle for this pod.
    pub(super) fn state(&self) -> &CycleState {
        &self.state
    }

    /// Whether the plugin's Filter is left out; none if it did not say what the pod comes to.
    pub(super) fn skips(&self, plugin: usize) -> Option<bool> {
        self.words.iter().find(|word| word.plugin == plugin).map(|word| word.skips)
    }

    /// What some of the plugins said, in numbers.
    pub(super) fn numbers(&self, of: impl Fn(usize) -> bool) -> impl Iterator<Item = u64> {
        self.words.iter().filter(move |word| of(word.plugin)).map(|word| word.number)
    }

    /// What has to be done for this pod on the chosen row first. What the class has in its state may name the objects of
    /// another pod.
    pub(super) fn plans(
        &self,
        question: &Question<'_>,
        indexed: &Indexed,
        row: Row,
    ) -> Vec<(&'static str, Plan)> {
        let Question { profile, pod, context, .. } = question;
        let node = context.cluster.node(row);
        let cycle = |state: &CycleState| Cycle::resume(pod, context.clone(), state.clone());
        let mut plans = Vec::new();
        for named in &profile.pre_bind {
            let is_own = self.skips(named.number).is_some() && !is_planted(Bug::PlansOfOthers);
            let cycle = cycle(if is_own { &self.state } else { &indexed.state });
            let planned = named.run(|plugin| plugin.plan(&cycle, node));
            plans.extend(planned.into_iter().map(|plan| (named.name, plan)));
        }
        plans
    }
}

impl Likenesses {
    /// Asks the plugins what a pod comes to; none if it concerns none of them.
    pub(super) fn resolve(
        &mut self,
        question: &Question<'_>,
        recipe: &Recipe,
        limit: usize,
    ) -> Result<Option<Resolved>, PlainReason> {
        let mut plugins = recipe.resolved(question.pod).peekable();
        if plugins.peek().is_none() {
            return Ok(None);
        }
        let mut cycle = Cycle::new(question.pod, question.context.clone());
        let mut words = Vec::new();
        for (plugin, instance) in plugins {
            self.buffer.clear();
            self.buffer.add(&plugin);
            let said = instance.resolve(&mut cycle, &mut self.buffer);
            let skips = match said.map_err(|why| PlainReason::of(instance.name, why))? {
                PreFilterResult::AllNodes => false,
                PreFilterResult::Skip => true,
                PreFilterResult::OnlyNodes(_) | PreFilterResult::Reject(_) => {
                    return Err(PlainReason::of(instance.name, VERDICT));
                }
            };
            self.buffer.add(&skips);
            words.push(Word { plugin, number: self.number(limit), skips });
        }
        Ok(Some(Resolved { state: cycle.into_state(), words }))
    }

    /// The number of what is in the buffer.
    fn number(&mut self, limit: usize) -> u64 {
        if let Some(number) = self.numbers.get(self.buffer.bytes()) {
            return *number;
        }
        if self.numbers.len() >= limit {
            self.numbers.clear();
        }
        self.last += 1;
        self.numbers.insert(self.buffer.bytes().into(), self.last);
        self.last
    }
}

/// Notes the rows about which plugins may say something else after an object has changed.
pub(super) fn note_touched(
    recipes: &[Option<Arc<Recipe>>],
    cluster: &Snapshot,
    change: &ObjectChange,
    table: &mut Table,
) {
    if is_planted(Bug::TouchedRowsStay) {
        return;
    }
    let rows = table.rows();
    for touched in recipes.iter().flatten().flat_map(|recipe| recipe.touched(cluster, change)) {
        match touched {
            Touched::All => (0..rows as u32).for_each(|row| table.log.note(row, rows)),
            Touched::Rows(touched) => touched.iter().for_each(|row| table.log.note(row.0, rows)),
        }
    }
}
