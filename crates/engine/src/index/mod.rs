//! Decisions that cost what has changed, not what there is.
//!
//! Pods of one class get the same answers from all plugins. What plugins say about a row that depends on the row alone
//! is kept in a [`base::Base`], and looked at again only where the row has changed. What depends on other rows depends on
//! counts of pods, which [`counting::Counting`] keeps; rows that are alike in those form a group, and a decision asks
//! plugins once a group. Whatever cannot be kept is decided the plain way, by [`crate::evaluate()`]: always right, only
//! slower.
//!
//! # Words
//!
//! About pods and plugins:
//!
//! - *recipe* (`recipe.rs`): what of a profile matters for keeping answers; one for each profile.
//! - *class* (`class.rs`, `classes.rs`): pods that all plugins of a profile answer alike for. Found by the addresses of a pod's interned parts.
//! - *blueprint* (`blueprint.rs`): works out how a new class is decided; what comes of it is the class's [`Indexed`].
//! - *local* plugin (`local.rs`): its answer about a row depends on nothing but the row, so that it can be kept.
//! - *relative* score: one that is normalised among the feasible rows, so that it is kept as the plugin gave it.
//! - *ranged* score (`ranged.rs`): one that is normalised by the lowest and the highest, and kept as it comes out.
//! - *resolved* plugin (`resolving.rs`): it says with every decision what the pod comes to, such as what its claims are bound to; pods
//!   that come to the same are of one class, though they name different objects.
//! - *verdict*: what a PreFilter plugin says of a pod that says nothing about nodes; it is asked for with every decision.
//! - *finding* (`unfit.rs`): what a PostFilter plugin found out about a row for a class, kept until the row changes.
//!
//! About rows:
//!
//! - *row*: a node's number in the cluster's table. *Position*: a number in a list that is no row.
//! - *shape* (`table.rs`): what rows with equal taints, features and the like share; plugins that look no further are asked once a shape.
//! - *numbers* of a row (`row_answers.rs`): its resources; plugins that look no further answer at once when its pods change.
//! - *log* (`table.rs`): the rows that changed, in order. Whoever keeps answers has a *cursor* into it.
//! - *census* (`table.rs`): a number that changes when nodes come or go, or change in what plugins that look at all nodes read.
//! - *base* (`base.rs`): what the local plugins say about every row, for all classes that agree in what those read.
//! - *guest* (`bases.rs`): the base that is no class's own, in which a class that came up for the first time is decided.
//! - *part* of a base: rows with the same domains and the same relative scores.
//! - *plane* (`tree.rs`): some rows by value, which finds the highest: one for each part, or *planes* (`planes.rs`) of a class's own.
//! - *group*, *member* (`groups.rs`): the rows that one decision asks the counting plugins about once, and which rows those are.
//! - *single*: a row that is a group by itself, because pods that matter to the class are on it.
//!
//! About counts:
//!
//! - *source* (`counting.rs`): pods of one selector, or pods that carry one affinity term.
//! - *tally* (`tally.rs`): the pods of a source by the domains of a topology key.
//! - *counter*: a source, and perhaps a tally, that a class looks at. *Cell*: what a counter says of one group.
//! - *small domains* (`keys.rs`): those of a key with many domains. Rows are then grouped by the counts of their domains, so that a decision
//!   costs what the different counts are and not what the domains are; `domain_sets.rs` knows in how many domains the rows of a group are.
//! - *label group* (`label_groups.rs`): bound pods with equal labels in one namespace; they belong to the same sources.
//! - *key* (`keys.rs`): a label key of nodes that pods are counted by; its *epoch* changes when what classes took for granted
//!   about its values does.
//!
//! A *generation* or an *identity* tells something from all that had its number before.
//!
//! The tests are where the whole scheduler is: `crates/engine/src/tests/indexing.rs` has the small ones; `conformance/tests/histories`
//! compares the index with `evaluate` over random histories, and plants bugs to show that it would notice.

mod base;
mod bases;
mod blueprint;
mod choosing;
mod class;
mod classes;
mod counting;
mod domain_sets;
mod groups;
mod kernels;
mod keys;
mod label_groups;
mod limits;
mod local;
mod plain;
mod planes;
mod project;
mod ranged;
mod recipe;
mod rejections;
mod resolving;
mod row_answers;
mod row_counts;
mod singles;
mod slots;
mod table;
mod tally;
mod tree;
mod unfit;

use std::cell::RefCell;
use std::sync::Arc;

use supercargo_framework::{Code, Context, Cycle, NodeScore, Plan, PreFilterResult, Profile, Status};
use supercargo_model::cluster::Change;
use supercargo_model::{Cluster, Pod, Row, Snapshot};

use crate::evaluate::Rules;
use crate::filtering::Filters;
use crate::planted::{Bug, is_planted};
use bases::Bases;
use class::Indexed;
use classes::Classes;
use counting::Counting;
use groups::Scratch;
pub use limits::{IndexLimits, IndexStatistics};
pub use plain::{PlainDecisions, PlainReason};
use recipe::Recipe;
use resolving::{Likenesses, Resolved};
use table::Table;
use unfit::FindingTable;
pub(crate) use unfit::{Findings, KnownClass, Refused, Unfit};

/// What is kept from one decision to the next.
#[derive(Default)]
pub(crate) struct Index {
    table: Table,
    counting: Counting,
    classes: Classes,
    bases: Bases,
    scratch: Scratch,
    node_scores: Vec<NodeScore>,
    changes: Vec<Change>,
    /// Rows whose nodes changed, while changes are being read.
    changed_nodes: Vec<u32>,
    /// Counts decisions, to know what was used last.
    clock: u64,
    /// What matters of each profile; none if it cannot be decided by what is kept.
    recipes: Vec<Option<Arc<Recipe>>>,
    likenesses: Likenesses,
    findings: RefCell<FindingTable>,
    limits: IndexLimits,
    statistics: IndexStatistics,
    /// What was left to the plain way, and why.
    plain: PlainDecisions,
}

/// A question to the index.
pub(crate) struct Question<'a> {
    pub(crate) profile_number: usize,
    pub(crate) profile: &'a Profile,
    pub(crate) context: Context<'a>,
    pub(crate) pod: &'a Arc<Pod>,
    pub(crate) rules: Rules,
}

/// What the index says.
pub(crate) enum Answer<'a> {
    /// The pod goes there.
    Place { row: Row, score: i64, feasible: usize, plans: Vec<(&'static str, Plan)> },
    /// It fits nowhere.
    Unfit(Unfit<'a>),
    /// A PreFilter plugin refuses it.
    Refused(Refused<'a>),
    /// The index does not know.
    Unknown,
}

impl Index {
    /// An index for the pods of these profiles.
    pub(crate) fn new(profiles: &[Profile], limits: IndexLimits) -> Self {
        let recipes = profiles.iter().map(|profile| Recipe::of(profile).map(Arc::new)).collect();
        Index { recipes, limits, ..Index::default() }.left_behind()
    }

    /// An index for the same profiles that keeps nothing yet, for a clone of the cluster.
    pub(crate) fn left_behind(&self) -> Self {
        Index {
            recipes: self.recipes.clone(),
            table: Table::new(self.limits),
            counting: Counting::new(self.limits),
            bases: Bases::new(self.limits),
            limits: self.limits,
            ..Index::default()
        }
    }

    /// An index for the pods of these profiles in a cluster whose changes somebody else has taken before.
    pub(crate) fn reading(profiles: &[Profile], cluster: &mut Cluster, limits: IndexLimits) -> Self {
        let mut index = Self::new(profiles, limits);
        cluster.changes().take(&mut index.changes);
        index.changes.clear();
        index.restart(cluster.snapshot());
        index
    }

    /// What it was good for.
    pub(crate) fn statistics(&self) -> IndexStatistics {
        IndexStatistics {
            bases_dropped: self.statistics.bases_dropped + self.bases.dropped,
            ..self.statistics
        }
    }

    /// What it left to the plain way since the last time, and why.
    pub(crate) fn take_plain_decisions(&mut self) -> PlainDecisions {
        std::mem::take(&mut self.plain)
    }

    /// Takes note of all changes of the cluster.
    #[inline]
    pub(crate) fn sync(&mut self, cluster: &mut Cluster) {
        if cluster.changes().is_empty() {
            return;
        }
        let mut changes = std::mem::take(&mut self.changes);
        let known = cluster.changes().take(&mut changes);
        let snapshot = cluster.snapshot();
        if known && !self.is_overgrown() {
            self.apply(&changes, snapshot);
        } else {
            self.restart(snapshot);
        }
        changes.clear();
        self.changes = changes;
    }

    /// Whether so much has come and gone again that it is worth forgetting all of it.
    fn is_overgrown(&self) -> bool {
        self.table.shape_count() > 2 * self.table.rows() + self.limits.idle_shapes
            || self.counting.keys.len() > self.limits.keys
    }

    /// Forgets everything and reads the cluster anew.
    fn restart(&mut self, cluster: &Snapshot) {
        self.statistics.restarts += 1;
        self.classes = Classes::default();
        self.statistics.bases_dropped += self.bases.dropped;
        self.bases = Bases::new(self.limits);
        self.counting = Counting::new(self.limits);
        self.table.rebuild(cluster);
        for node in cluster.nodes() {
            for pod in node.pods() {
                self.counting.count(node.row().0, pod, 1);
            }
        }
    }

    fn apply(&mut self, changes: &[Change], cluster: &Snapshot) {
        let seen = self.table.log.end();
        self.table.resize(cluster.row_count());
        // Most of the time a pod was placed since the last decision, and nothing else happened.
        if let [Change::PodAdded { row, pod }] = changes {
            self.counting.count(row.0, pod, 1);
            self.table.log.note_pods(row.0, self.table.rows());
        } else {
            self.apply_all(changes, cluster);
        }
        self.table.note_numbers(seen, cluster);
    }

    fn apply_all(&mut self, changes: &[Change], cluster: &Snapshot) {
        self.changed_nodes.clear();
        for change in changes {
            if let Change::Node { row, census } = change {
                self.table.census += u64::from(*census);
                self.changed_nodes.push(row.0);
            }
        }
        self.changed_nodes.sort_unstable();
        self.changed_nodes.dedup();
        for row in &self.changed_nodes {
            self.counting.lift(*row);
        }
        for change in changes {
            // A row whose node changed is looked at as a whole, as it is now.
            let (row, pod, difference) = match change {
                Change::PodAdded { row, pod } => (row.0, pod, 1),
                Change::PodRemoved { row, pod } => (row.0, pod, -1),
                Change::Fact { .. } if is_planted(Bug::FactsStay) => continue,
                Change::Nominations { row } | Change::Fact { row } => {
                    self.table.log.note(row.0, self.table.rows());
                    continue;
                }
                Change::Object(change) => {
                    resolving::note_touched(&self.recipes, cluster, change, &mut self.table);
                    continue;
                }
                Change::Node { .. } => continue,
            };
            if self.changed_nodes.binary_search(&row).is_err() {
                self.counting.count(row, pod, difference);
                self.table.log.note_pods(row, self.table.rows());
            }
        }
        for index in 0..self.changed_nodes.len() {
            let row = self.changed_nodes[index];
            let node = cluster.node(Row(row));
            if cluster.row_of(node.name()) == Some(Row(row)) {
                self.table.put(node);
                self.counting.lower(node, cluster);
            } else {
                self.table.vacate(row);
            }
            self.table.log.note(row, self.table.rows());
        }
    }

    /// Decides for a pod, if it can.
    #[inline]
    pub(crate) fn decide<'a>(&'a mut self, question: &Question<'a>) -> Answer<'a> {
        let Question { profile, context, pod, rules, .. } = question;
        if pod.node_name.is_some() || is_sampled(profile, *rules) {
            return self.leave(plain::NO_SEARCH);
        }
        self.clock += 1;
        let Some(recipe) = &self.recipes[question.profile_number] else {
            return self.leave(plain::TOO_MANY_PLUGINS);
        };
        let mut refusal = None;
        if recipe.has_verdicts() {
            match verdict(question, recipe) {
                Verdict::Accepted => {}
                Verdict::Refused(status) => refusal = Some(status),
                Verdict::Unknown(reason) => return self.leave(reason),
            }
        }
        let address = classes::address_of(question);
        let (class_number, resolved) = match self.classes.last_by_parts(&address) {
            Some(number) => (number, None),
            None => match self.likenesses.resolve(question, recipe, self.limits.likenesses) {
                Err(reason) => return self.leave(reason),
                Ok(resolved) => (self.find_class(question, address, resolved.as_ref()), resolved),
            },
        };
        self.renew_class(question, class_number, resolved.as_ref());
        if let Some(status) = refusal {
            return self.refuse(class_number, status);
        }
        let mut class = self.classes.list.lend(class_number).expect("the class was just found");
        class.last_used = self.clock;
        let (answer, has_plans) = match &mut class.indexed {
            Err(reason) => (Found::Unknown(*reason), false),
            Ok(indexed) => (self.decide_indexed(question, indexed), indexed.has_plans),
        };
        self.classes.list.give_back(class_number, class);
        match answer {
            Found::Unknown(reason) => self.leave(reason),
            Found::Place { row, score, feasible } => {
                self.statistics.answered += 1;
                let plans = match has_plans {
                    true => self.plans(question, class_number, &resolved.unwrap_or_default(), row),
                    false => Vec::new(),
                };
                Answer::Place { row, score, feasible, plans }
            }
            Found::Unfit { base } => {
                let known = self.classes.list.get(class_number).is_some_and(|class| {
                    class.indexed.as_ref().is_ok_and(|indexed| {
                        let base = self.bases.get_mut(base);
                        Unfit::is_known(indexed, base, &self.table, context)
                    })
                });
                if !known {
                    return self.leave(plain::UNKEPT_REASONS);
                }
                self.statistics.answered += 1;
                let class = self.classes.list.get(class_number).expect("it was just put back");
                let indexed = class.indexed.as_ref().expect("an unfit pod's class was decided by the index");
                let findings = self.findings_of(class.generation);
                match Unfit::new(indexed, self.bases.get(base), &self.scratch, findings) {
                    Some(unfit) => Answer::Unfit(unfit),
                    None => Answer::Unknown,
                }
            }
        }
    }

    /// What was found out for pods of a class of that generation.
    fn findings_of(&self, generation: u64) -> Findings<'_> {
        Findings::new(&self.findings, self.limits.findings, generation, &self.table.log)
    }

    /// A plugin refuses a pod of the class, whatever the nodes are.
    fn refuse(&mut self, class_number: usize, status: Status) -> Answer<'_> {
        let mut class = self.classes.list.lend(class_number).expect("the class was just found");
        class.last_used = self.clock;
        let unknown = match &class.indexed {
            Err(reason) => Some(*reason),
            Ok(indexed) => (!indexed.filters.is_empty())
                .then(|| PlainReason::of(status.plugin().unwrap_or_default(), plain::VERDICT)),
        };
        self.classes.list.give_back(class_number, class);
        if let Some(reason) = unknown {
            return self.leave(reason);
        }
        self.statistics.answered += 1;
        let class = self.classes.list.get(class_number).expect("it was just put back");
        let indexed = class.indexed.as_ref().expect("it was just looked at");
        Answer::Refused(Refused {
            status,
            class: KnownClass::new(indexed, self.findings_of(class.generation)),
        })
    }

    /// Leaves a decision to the plain way.
    fn leave(&mut self, reason: PlainReason) -> Answer<'static> {
        self.statistics.left += 1;
        *self.plain.entry(reason).or_default() += 1;
        Answer::Unknown
    }

    /// What has to be done on the chosen row first.
    fn plans(
        &self,
        question: &Question<'_>,
        class: usize,
        resolved: &Resolved,
        row: Row,
    ) -> Vec<(&'static str, Plan)> {
        let indexed = self.classes.list.get(class).and_then(|class| class.indexed.as_ref().ok());
        indexed.map(|indexed| resolved.plans(question, indexed, row)).unwrap_or_default()
    }

    fn decide_indexed(&mut self, question: &Question<'_>, indexed: &mut Indexed) -> Found {
        let Question { context, pod, rules, .. } = question;
        let cluster = context.cluster;
        if rules.prefer_nominated_node
            && let Some(name) = pod.nominated_node_name()
            && let Some(row) = cluster.row_of(name)
        {
            if !indexed.filters.is_empty() || rules.score_single_node {
                return Found::Unknown(plain::NOMINATIONS);
            }
            if filter_with_nominees(question, indexed, row).is_success() {
                return Found::Place { row, score: 0, feasible: 1 };
            }
        }
        let base_number = self.bases.find(indexed);
        self.statistics.as_guest += u64::from(bases::is_guest(base_number));
        let mut base = self.bases.take(base_number);
        base.last_used = self.clock;
        let usable = base.catch_up(context, &mut self.table, &self.counting, self.clock);
        let found = if !usable {
            Found::Unknown(plain::UNKEPT_ANSWERS)
        } else if let Some(found) = self.choose_in_one_part(question, indexed, &base) {
            found
        } else if self.gather_singles(question, indexed, &base) {
            self.scratch.form(indexed, &base, &self.counting);
            match self.scratch.filter(indexed) {
                0 => Found::Unfit { base: base_number },
                feasible => self.choose(question, indexed, &base, feasible),
            }
        } else {
            Found::Unknown(plain::NOMINATIONS)
        };
        if let Found::Place { row, .. } = found {
            // The pod will be put there, and then the row is looked at again: all of that comes from memory at once.
            cluster.warm(row);
            self.table.warm(row);
            base.warm(row);
            self.counting.keys.warm(row);
            if let Some(planes) = &indexed.planes {
                planes.warm(row);
            }
        }
        self.bases.put_back(base_number, base);
        found
    }
}

/// What was found, before it is put into words.
enum Found {
    Place { row: Row, score: i64, feasible: usize },
    Unfit { base: usize },
    Unknown(PlainReason),
}

/// What plugins say of a pod that have a word on each pod, and say nothing about nodes.
enum Verdict {
    /// Nothing against it.
    Accepted,
    /// One of them refuses it, which others may mend by making room.
    Refused(Status),
    /// The index cannot go on from what they say.
    Unknown(PlainReason),
}

fn verdict(question: &Question<'_>, recipe: &Recipe) -> Verdict {
    let mut cycle = Cycle::new(question.pod, question.context.clone());
    let mut verdict = Verdict::Accepted;
    for position in recipe.verdicts(question.pod) {
        let named = &question.profile.pre_filter[position];
        match named.run(|plugin| plugin.pre_filter(&mut cycle)) {
            PreFilterResult::AllNodes | PreFilterResult::Skip => {}
            // The last of them counts.
            PreFilterResult::Reject(status) if status.code() == Code::Unschedulable => {
                verdict = Verdict::Refused(status.from_plugin(named.name));
            }
            PreFilterResult::OnlyNodes(_) | PreFilterResult::Reject(_) => {
                return Verdict::Unknown(PlainReason::of(named.name, plain::VERDICT));
            }
        }
    }
    verdict
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("rows", &self.table.rows())
            .field("classes", &self.classes.by_key.len())
            .field("bases", &self.bases.len())
            .finish()
    }
}

/// What the filters say about a row, with and without the pods that are nominated to it. Only for classes without filters
/// that count.
fn filter_with_nominees(question: &Question<'_>, indexed: &mut Indexed, row: Row) -> Status {
    let filters = Filters::with_skipped(question.profile, indexed.recipe.names_without(indexed.asked));
    let state = std::mem::take(&mut indexed.state);
    let cycle = Cycle::resume(question.pod, question.context.clone(), state);
    let status = filters.run(&cycle, question.context.cluster.node(row));
    indexed.state = cycle.into_state();
    status
}

fn is_sampled(profile: &Profile, rules: Rules) -> bool {
    rules.sample_nodes
        && profile.percentage_of_nodes_to_score.is_some_and(|percentage| (1..100).contains(&percentage))
}
