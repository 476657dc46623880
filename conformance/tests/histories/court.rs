//! Histories on trial: after every decision, the plain way decides too, and both must agree in every part.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use supercargo_conformance::samples::{Budget as PodBudget, NodeLoad};
use supercargo_engine::{
    Decision, Engine, EngineOptions, Evaluation, IndexStatistics, Indexing, Outcome, Seed, Thoroughness,
    evaluate,
};
use supercargo_framework::{
    Acts, AskedActs, Context, Cycle, Fixes, Memories, Nomination, Plugin as _, Profile,
};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Interner, Pod, ReadableKind, Row, Snapshot, Timestamp};

use crate::profiles::Profiles;
use crate::setup::{Generator, Setup};
use crate::shrink::shrink;
use crate::steps::{Decide, Step, Then};
use crate::templates::feature_names;
use crate::world::{Change, World};

/// Who is on trial: an engine, or something that pretends to be one.
pub(crate) trait Subject {
    /// Hears of something that has changed in a step of this name.
    fn tell(&mut self, step: &'static str, change: &Change);
    /// Decides; none if no profile is responsible.
    fn decide(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Option<Decision>;
    /// The node that everything said about a decision comes to.
    fn unfold(&mut self, decision: &Decision) -> Option<Row>;
    /// The cluster that it says it decides on.
    fn snapshot(&mut self) -> Snapshot;
    /// Where it keeps what pods share.
    fn interner(&mut self) -> &mut Interner;
    /// What it decided by what it keeps.
    fn index_statistics(&self) -> IndexStatistics;
}

impl Subject for Engine {
    fn tell(&mut self, _: &'static str, change: &Change) {
        let cluster = &mut self.cluster;
        let result = match change {
            Change::PutNode(words) => {
                cluster.put_node(words);
                Ok(())
            }
            Change::RemoveNode(name) => {
                cluster.remove_node(name);
                Ok(())
            }
            Change::AddPod(pod) => cluster.add_pod(pod.clone()),
            Change::AssumePod(pod, row) => self.assume(pod, *row),
            Change::UpdatePod(pod) => cluster.update_pod(pod.clone()),
            Change::RemovePod(uid) => {
                cluster.remove_pod(uid);
                Ok(())
            }
            Change::Nominate(pod, node) => {
                cluster.nominate(pod.clone(), node);
                Ok(())
            }
            Change::ClearNomination(uid) => {
                cluster.clear_nomination(uid);
                Ok(())
            }
            Change::PutObject(object) => {
                cluster.put_object(object.clone());
                Ok(())
            }
            Change::RemoveObject(kind, key) => {
                cluster.remove_object(*kind, key);
                Ok(())
            }
            Change::Remember(memories) => {
                *self.memories() = memories.clone();
                Ok(())
            }
        };
        result.unwrap_or_else(|error| panic!("{error}"));
    }

    fn decide(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Option<Decision> {
        Engine::decide(self, pod, now).ok()
    }

    fn unfold(&mut self, decision: &Decision) -> Option<Row> {
        Engine::unfold(self, decision).expect("nothing has changed").chosen
    }

    fn snapshot(&mut self) -> Snapshot {
        self.cluster.snapshot().clone()
    }

    fn interner(&mut self) -> &mut Interner {
        self.cluster.interner()
    }

    fn index_statistics(&self) -> IndexStatistics {
        Engine::index_statistics(self)
    }
}

/// How often what happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(pub(crate) BTreeMap<String, u64>);

/// A history in which a decision was not the one that the plain way comes to.
pub(crate) struct Counterexample {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    /// The last step is the one that shows it.
    pub(crate) steps: Vec<Step>,
    pub(crate) difference: String,
}

/// What is tried.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// The histories, each made from a seed.
    pub(crate) seeds: Vec<u64>,
    pub(crate) indexing: Indexing,
    /// About how many steps it may take to make a counterexample short.
    pub(crate) shrinking: usize,
}

/// Puts an engine on trial.
pub(crate) fn compare_histories<S: Subject>(
    mut make_engine: impl FnMut(Vec<Profile>, EngineOptions) -> S,
    budget: &Budget,
) -> Result<Coverage, Box<Counterexample>> {
    let profiles = Profiles::all();
    let mut coverage = Coverage::default();
    for seed in budget.seeds.iter().copied() {
        let setup = Setup::new(seed, profiles.count());
        let mut make = || Court::open(&mut make_engine, profiles, budget.indexing, setup.clone());
        let mut generator = Generator::new(&setup);
        let mut court = make();
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < setup.step_count {
            steps.push(generator.next(&court.world));
            let step = steps.last().expect("it was just pushed");
            if court.try_step(step, &mut coverage).is_err() {
                let mut replay = |steps: &[Step]| make().replay(steps);
                let (steps, difference) = shrink(steps, &mut replay, budget.shrinking);
                return Err(Box::new(Counterexample { seed, setup, steps, difference }));
            }
        }
        coverage.count("histories");
        coverage.add_statistics(&court.subject.index_statistics());
    }
    Ok(coverage)
}

struct Court<S> {
    subject: S,
    profiles: Arc<[Profile]>,
    world: World,
    attempts: u64,
    start: usize,
}

impl<S: Subject> Court<S> {
    fn open(
        make_engine: &mut impl FnMut(Vec<Profile>, EngineOptions) -> S,
        profiles: &Profiles,
        indexing: Indexing,
        setup: Setup,
    ) -> Self {
        let mut memories = Memories::default();
        let profile =
            |(place, (index, share)): (usize, &(usize, Option<u8>))| profiles.get(*index, place, *share);
        let chosen: Vec<Profile> = setup.profiles.iter().enumerate().map(profile).collect();
        chosen.iter().for_each(|profile| profile.declare_memories(&mut memories));
        let mut kinds = profiles.get(0, 0, None).reads.expect("the default plugins read something").kinds;
        kinds.push(ReadableKind::of::<NodeLoad>());
        let (rules, seed, fixes) = (setup.rules.1, Seed(setup.seed), Fixes::default());
        Court {
            subject: make_engine(chosen.clone(), EngineOptions { rules, seed, fixes, indexing }),
            profiles: chosen.into(),
            world: World::new(setup, kinds, memories),
            attempts: 0,
            start: 0,
        }
    }

    /// Lets the steps happen until one shows a difference: which one, and what.
    fn replay(mut self, steps: &[Step]) -> Option<(usize, String)> {
        let coverage = &mut Coverage::default();
        { steps.iter().enumerate() }
            .find_map(|(index, step)| Some((index, self.try_step(step, coverage).err()?)))
    }

    /// Lets a step happen. A panic is a difference too.
    fn try_step(&mut self, step: &Step, coverage: &mut Coverage) -> Result<(), String> {
        let result = catch_unwind(AssertUnwindSafe(|| self.step(step, coverage)));
        result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("panic: {}", text.or_else(|| panic.downcast_ref().copied()).unwrap_or("?")))
        })
    }

    fn step(&mut self, step: &Step, coverage: &mut Coverage) -> Result<(), String> {
        if let Step::Decide(decide) = step {
            return self.decide(decide, coverage);
        }
        let changes = self.world.happen(step, self.subject.interner());
        if !changes.is_empty() || matches!(step, Step::Wait { .. }) {
            coverage.count(step.name());
        }
        changes.iter().for_each(|change| self.subject.tell(step.name(), change));
        Ok(())
    }

    fn decide(&mut self, decide: &Decide, coverage: &mut Coverage) -> Result<(), String> {
        let mut stranger = Interner::default();
        let interner = if decide.foreign { &mut stranger } else { self.subject.interner() };
        let Some(pod) = self.world.pending(decide.pod, decide.template, interner) else { return Ok(()) };
        let snapshot = self.subject.snapshot();
        let answered = self.subject.index_statistics().answered;
        let actual = self.subject.decide(&pod, self.world.time());
        if pod
            .spec
            .volumes
            .iter()
            .any(|volume| matches!(volume.source, VolumeSource::Claim(_) | VolumeSource::Ephemeral))
        {
            let by_index = self.subject.index_statistics().answered > answered;
            let ways = [
                "index: left to the plain way for a pod with claims",
                "index: decided for a pod with claims",
            ];
            coverage.count(ways[usize::from(by_index)]);
        }
        let profiles = self.profiles.clone();
        let profile = profiles.iter().find(|profile| *profile.scheduler_name == *pod.spec.scheduler_name);
        let (Some(profile), Some(actual)) = (profile, &actual) else {
            coverage.count("no profile is responsible");
            self.world.pending.remove(&decide.pod);
            return same("responsible profile", &profile.is_some(), &actual.is_some());
        };
        same("version", &snapshot.version(), &actual.version)?;
        same("attempt", &self.attempts, &actual.attempt)?;
        same("start", &self.start, &actual.start)?;
        let start = self.start;
        let expected = self.evaluate(profile, &snapshot, &pod, &mut { start });
        compare(&expected.outcome, &actual.outcome)
            .map_err(|text| format!("beside the plain way, {text}"))?;
        if decide.afresh {
            let mut cluster = self.world.fresh(&snapshot)?;
            let afresh = self.evaluate(profile, cluster.snapshot(), &pod, &mut { start });
            compare(&afresh.outcome, &actual.outcome)
                .map_err(|text| format!("beside a fresh cluster, {text}"))?;
            coverage.count("compared with a fresh cluster");
        }
        if decide.unfold && snapshot.node_count() > 0 {
            let chosen = expected.evaluation.chosen;
            same("node of the unfolded decision", &chosen, &self.subject.unfold(actual))?;
            coverage.count("unfolded");
        }
        (self.attempts, self.start) = (self.attempts + 1, expected.start);
        self.note(&pod, decide, &expected, coverage);
        let changes = match &expected.outcome {
            Outcome::Failed { .. } => Vec::new(),
            Outcome::Unschedulable { nomination, victims, .. } => {
                self.world.rejected(&pod, nomination, victims, decide.then)
            }
            Outcome::Place { row, node, plans, .. } => {
                let mut changes = self.world.placed(&pod, *row, node, decide.then);
                if !changes.is_empty() && decide.then == Then::Finish {
                    if !plans.is_empty() {
                        coverage.count("volumes reserved");
                    }
                    changes.extend(self.reserve(profile, &snapshot, &pod, *row));
                }
                changes
            }
        };
        drop(snapshot);
        changes.iter().for_each(|change| self.subject.tell("decided", change));
        Ok(())
    }

    /// Decides the plain way.
    fn evaluate(&self, profile: &Profile, cluster: &Snapshot, pod: &Arc<Pod>, start: &mut usize) -> Expected {
        if cluster.node_count() == 0 {
            let outcome = Outcome::Unschedulable {
                message: "no nodes available to schedule pods".to_owned(),
                plugins: [].into(),
                pending: [].into(),
                nomination: Nomination::Clear,
                victims: Vec::new(),
            };
            return Expected { outcome, start: *start, evaluation: Evaluation::default() };
        }
        let rules = self.world.setup.rules.1;
        let context = self.context(cluster);
        let evaluation = evaluate(profile, context, pod, rules, Thoroughness::FirstRejection, start);
        Expected { outcome: outcome(&evaluation, cluster), start: *start, evaluation }
    }

    fn context<'a>(&'a self, cluster: &'a Snapshot) -> Context<'a> {
        Context {
            cluster,
            now: self.world.time(),
            memories: &self.world.memories,
            seed: Seed(self.world.setup.seed).attempt(self.attempts),
            fixes: Fixes::default(),
        }
    }

    /// Takes the volumes that were found for a pod to be taken, and its namespace's budget to be spent.
    fn reserve(&mut self, profile: &Profile, cluster: &Snapshot, pod: &Arc<Pod>, row: Row) -> Option<Change> {
        let mut memories = self.world.memories.clone();
        for name in ["VolumeBinding", PodBudget::NAME] {
            let Some(reserve) = profile.reserve.iter().find(|named| named.name == name) else { continue };
            let mut cycle = Cycle::new(pod, self.context(cluster));
            let prepare = profile.pre_filter.iter().find(|named| named.name == name)?;
            prepare.plugin.pre_filter(&mut cycle);
            let mut asked = AskedActs::default();
            let mut acts = Acts::new(reserve.name, &mut memories, &mut asked);
            reserve.plugin.reserve(&mut cycle, &mut acts, cluster.node(row));
        }
        let change = Change::Remember(memories);
        self.world.apply(&change);
        Some(change)
    }

    fn note(&mut self, pod: &Pod, decide: &Decide, expected: &Expected, coverage: &mut Coverage) {
        coverage.count("decided");
        coverage.count(&format!("rules: {}", self.world.setup.rules.0));
        for feature in &self.world.template(decide.template).0 {
            coverage.count(&format!("feature: {feature}"));
        }
        for plugin in &expected.evaluation.diagnosis.unschedulable_plugins {
            coverage.count(&format!("rejected by {plugin}"));
        }
        let nominated = pod.nominated_node_name();
        match &expected.outcome {
            Outcome::Place { node, feasible, plans, .. } => {
                coverage.count("placed");
                coverage.count_if(*feasible > 1, "placed with a choice");
                coverage.count_if(expected.evaluation.best.len() > 1, "placed after a tie");
                coverage.count_if(!plans.is_empty(), "placed with plans");
                for plugin in &expected.evaluation.scores {
                    let differ = plugin.scores.iter().any(|score| *score != plugin.scores[0]);
                    coverage.count_if(differ, &format!("scored differently by {}", plugin.plugin));
                }
                coverage.count_if(nominated == Some(node), "nominated node taken");
                coverage
                    .count_if(nominated.is_some_and(|name| name != node), "other than nominated node taken");
                coverage.count_if(self.world.nodes.len() > 64, "placed among many nodes");
            }
            Outcome::Unschedulable { victims, nomination, .. } => {
                coverage.count("unschedulable");
                coverage.count_if(!victims.is_empty(), "unschedulable with victims");
                coverage.count_if(victims.len() > 1, "unschedulable with several victims");
                coverage.count_if(matches!(nomination, Nomination::Keep), "unschedulable, nomination kept");
                coverage.count_if(self.world.nodes.is_empty(), "unschedulable without nodes");
                coverage.count_if(self.world.nodes.len() > 64, "unschedulable among many nodes");
            }
            Outcome::Failed { .. } => coverage.count("failed"),
        }
    }
}

/// What the plain way comes to.
struct Expected {
    outcome: Outcome,
    start: usize,
    evaluation: Evaluation,
}

/// What comes of an evaluation.
pub(crate) fn outcome(evaluation: &Evaluation, cluster: &Snapshot) -> Outcome {
    if let Some(error) = &evaluation.error {
        return Outcome::Failed { error: error.clone() };
    }
    let Some(row) = evaluation.chosen else {
        return Outcome::Unschedulable {
            message: evaluation.message.clone(),
            plugins: evaluation.diagnosis.unschedulable_plugins.clone(),
            pending: evaluation.diagnosis.pending_plugins.clone(),
            nomination: evaluation.nomination.clone(),
            victims: evaluation.evicted().cloned().collect(),
        };
    };
    let total =
        { evaluation.feasible.iter().zip(&evaluation.totals) }.find(|(feasible, _)| **feasible == row);
    Outcome::Place {
        row,
        node: cluster.node(row).name().clone(),
        score: total.map_or(0, |(_, total)| *total),
        evaluated: evaluation.feasible.len() + evaluation.diagnosis.nodes.len(),
        feasible: evaluation.feasible.len(),
        plans: evaluation.plans.clone(),
    }
}

/// Whether two outcomes are equal in every part.
pub(crate) fn compare(expected: &Outcome, actual: &Outcome) -> Result<(), String> {
    match (expected, actual) {
        (
            Outcome::Place { row, node, score, evaluated, feasible, plans },
            Outcome::Place {
                row: actual_row,
                node: actual_node,
                score: actual_score,
                evaluated: actual_evaluated,
                feasible: actual_feasible,
                plans: actual_plans,
            },
        ) => {
            same("score", score, actual_score)?;
            same("number of nodes looked at", evaluated, actual_evaluated)?;
            same("number of feasible nodes", feasible, actual_feasible)?;
            same("node", node, actual_node)?;
            same("row", row, actual_row)?;
            same("plans", plans, actual_plans)
        }
        (
            Outcome::Unschedulable { message, plugins, pending, nomination, victims },
            Outcome::Unschedulable {
                message: actual_message,
                plugins: actual_plugins,
                pending: actual_pending,
                nomination: actual_nomination,
                victims: actual_victims,
            },
        ) => {
            let uids = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>();
            same("message", message, actual_message)?;
            same("plugins", plugins, actual_plugins)?;
            same("pending plugins", pending, actual_pending)?;
            same("nomination", nomination, actual_nomination)?;
            same("victims", &uids(victims), &uids(actual_victims))
        }
        (Outcome::Failed { error }, Outcome::Failed { error: actual_error }) => {
            same("error", error, actual_error)
        }
        _ => Err(format!("the outcomes differ:\n  expected {expected:?}\n  actual   {actual:?}")),
    }
}

/// Whether a part of two outcomes is equal.
pub(crate) fn same<T: PartialEq + Debug>(part: &str, expected: &T, actual: &T) -> Result<(), String> {
    if expected == actual {
        return Ok(());
    }
    Err(format!("the {part} differs:\n  expected {expected:?}\n  actual   {actual:?}"))
}

impl Coverage {
    pub(crate) fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Whether everything that the histories are for has happened, and often enough.
    pub(crate) fn check(&self, expected: &[&str], least: u64) {
        let features: Vec<String> = feature_names().map(|name| format!("feature: {name}")).collect();
        let expected: Vec<&str> =
            expected.iter().copied().chain(features.iter().map(String::as_str)).collect();
        self.check_only(&expected, least);
    }

    /// The same for these things alone, whatever features pods have.
    pub(crate) fn check_only(&self, expected: &[&str], least: u64) {
        let counts = expected.iter().map(|what| (*what, self.get(what)));
        let seldom: Vec<(&str, u64)> = counts.filter(|(_, count)| *count < least).collect();
        assert!(seldom.is_empty(), "happened less than {least} times: {seldom:?}\nof\n{self}");
    }

    fn add_statistics(&mut self, statistics: &IndexStatistics) {
        let counts = [
            ("index: decided", statistics.answered),
            ("index: left to the plain way", statistics.left),
            ("index: everything forgotten", statistics.restarts),
            ("index: class worked out", statistics.classes_made),
            ("index: class dropped", statistics.classes_dropped),
            ("index: base dropped", statistics.bases_dropped),
            ("index: planes of a class's own dropped", statistics.planes_dropped),
            ("index: decided with planes of a class's own", statistics.with_own_planes),
            ("index: decided by the counts of small domains", statistics.by_domain_counts),
            ("index: decided in the base that is nobody's own", statistics.as_guest),
            ("index: decided row by row", statistics.row_by_row),
        ];
        for (what, count) in counts {
            self.add(what, count);
        }
    }

    pub(crate) fn add(&mut self, what: &str, times: u64) {
        *self.0.entry(what.to_owned()).or_default() += times;
    }

    pub(crate) fn count(&mut self, what: &str) {
        match self.0.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(what.to_owned(), 1)),
        }
    }

    pub(crate) fn count_if(&mut self, condition: bool, what: &str) {
        if condition {
            self.count(what);
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(f, "{count:9} {what}"))
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counterexample { seed, setup, steps, difference } = self;
        writeln!(f, "the history of SEED={seed}, cut down to {} steps: {difference}", steps.len())?;
        writeln!(f, "rules: {}; profiles: {:?}", setup.rules.0, setup.profiles)?;
        let mut templates: Vec<usize> = steps.iter().filter_map(Step::template).collect();
        templates.sort_unstable();
        templates.dedup();
        for number in templates {
            writeln!(f, "template {number}: {}", setup.template(number).pod)?;
        }
        steps.iter().enumerate().try_for_each(|(index, step)| writeln!(f, "{index:4} {step}"))
    }
}

impl Debug for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('\n')?;
        fmt::Display::fmt(self, f)
    }
}
