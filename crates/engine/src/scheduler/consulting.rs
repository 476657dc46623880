//! Asking extenders: their filters after the plugins', their scores beside the plugins', their binding instead of the
//! plugins'.
//!
//! As upstream, no other pod is tried meanwhile, and the pod is decided on the cluster as it was when its attempt began. If the cluster has
//! changed by then, the pod is filtered once more on the node that was chosen, which upstream does not do: another writer may have taken the
//! room while a slow extender thought.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_framework::{
    AskedNode, Cycle, CycleState, Effect, ExtenderAnswer, ExtenderQuestion, MAX_NODE_SCORE, Memories, Named,
    NodeVictims, Nomination, PostFilter, PostFilterResult, Status,
};
use supercargo_model::{Object, Pod, Row, Snapshot, Timestamp};

use super::attempts::Failure;
use super::binding::NodeCounts;
use super::catching::caught;
use super::heap::Slot;
use super::observations::Observation;
use super::queue_context::profile_of;
use super::{Scheduler, Waiter};
use crate::among::filter_among;
use crate::decision::{Decision, Outcome};
use crate::evaluate::{Evaluation, Rules, Thoroughness, finish, search};
use crate::filtering::Filters;
use crate::rehearsal::{RehearsalOf, Stage as RehearsalStage};

/// The highest score that an extender gives.
const MAX_EXTENDER_SCORE: i64 = 10;
/// Whom pods wait for that extenders rejected. No plugin has this name, so everything that happens may help.
const EXTENDER: &str = "Extender";

/// What an extender does, and for whom.
#[derive(Clone, Debug, Default)]
pub struct ExtenderSettings {
    /// It is asked which nodes are feasible.
    pub filters: bool,
    /// It is asked how good they are.
    pub prioritizes: bool,
    /// It is asked which victims may be evicted.
    pub preempts: bool,
    /// It binds pods.
    pub binds: bool,
    /// What its scores are multiplied by.
    pub weight: i64,
    /// Whether the pod goes on without it when it fails.
    pub is_ignorable: bool,
    /// The resources that it looks after: only pods that name one of them are its business, or all if there are none.
    pub managed_resources: BTreeSet<Box<str>>,
}

/// An attempt that waits for extenders.
#[derive(Clone, Debug)]
pub(super) struct Consultation {
    slot: Slot,
    pod: Arc<Pod>,
    /// The cluster when the attempt began, with the answers.
    cluster: Snapshot,
    /// What was answered about the pod before: objects of the cluster whenever it is looked at for this pod.
    answers: Vec<Object>,
    /// The version of the cluster without the answers: as long as it has that one, it has not changed.
    version: u64,
    memories: Memories,
    now: Timestamp,
    attempt: u64,
    start: usize,
    evaluation: Evaluation,
    /// What PreFilter left, and whom it excused.
    state: CycleState,
    skipped: BTreeSet<&'static str>,
    /// Whether only the node was looked at that the pod is nominated to.
    is_nominated_only: bool,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The extender whose filter is asked next, or now.
    Filter(usize),
    /// How many have not answered yet, and what the others add to the scores.
    Prioritize { open: usize, added: Vec<i64> },
    /// The extender that is asked about victims next, or now, and the candidates that are left.
    Preempt { place: usize, plugin: usize, candidates: Candidates },
}

type Candidates = BTreeMap<Arc<str>, NodeVictims>;

impl ExtenderSettings {
    /// Whether a pod is its business.
    pub fn is_interested(&self, pod: &Pod) -> bool {
        self.managed_resources.is_empty() || {
            let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
            let mut names = containers.flat_map(|container| {
                let resources = &container.resources;
                resources.requests.iter().chain(resources.limits.iter()).map(|(name, _)| name)
            });
            names.any(|name| self.managed_resources.contains(&**name))
        }
    }
}

impl Scheduler {
    /// Has these extenders asked, as they stand in the configuration.
    #[must_use]
    pub fn with_extenders(mut self, extenders: Vec<ExtenderSettings>) -> Self {
        self.extenders = extenders;
        self
    }

    /// Whether anybody outside has a say in where a pod goes.
    pub(super) fn has_extenders_for(&self, pod: &Pod) -> bool {
        let asks =
            |extender: &ExtenderSettings| extender.filters || extender.prioritizes || extender.preempts;
        self.extenders.iter().any(|extender| asks(extender) && extender.is_interested(pod))
    }

    /// The extenders that are asked about a pod, in the order in which they are: those that cannot be done without first.
    fn asked(&self, pod: &Pod, does: impl Fn(&ExtenderSettings) -> bool) -> Vec<usize> {
        let is_asked = |number: &usize| {
            let extender = &self.extenders[*number];
            does(extender) && extender.is_interested(pod)
        };
        let mut asked: Vec<usize> = (0..self.extenders.len()).filter(is_asked).collect();
        asked.sort_by_key(|number| self.extenders[*number].is_ignorable);
        asked
    }

    /// Begins an attempt in which extenders are asked; what was decided, if they need not be.
    pub(super) fn consult(
        &mut self,
        slot: Slot,
        pod: &Arc<Pod>,
        answers: Vec<Object>,
        now: Timestamp,
    ) -> Option<Decision> {
        self.caught_consulting(slot, pod, now, |scheduler| {
            let begun = scheduler.begin_consultation(slot, pod, answers, now, true);
            scheduler.consultation = Some(begun);
            scheduler.ask_filters(now)
        })
    }

    /// Goes on with an attempt in which extenders are asked. If a plugin panics meanwhile, the attempt is over.
    fn caught_consulting(
        &mut self,
        slot: Slot,
        pod: &Arc<Pod>,
        now: Timestamp,
        act: impl FnOnce(&mut Self) -> Option<Decision>,
    ) -> Option<Decision> {
        caught(|| act(self)).unwrap_or_else(|panicked| {
            self.consultation = None;
            self.queue.is_in_flight(&pod.uid, slot).then(|| self.break_off(slot, pod, &panicked, now))
        })
    }

    fn begin_consultation(
        &mut self,
        slot: Slot,
        pod: &Arc<Pod>,
        answers: Vec<Object>,
        now: Timestamp,
        try_nominated: bool,
    ) -> Consultation {
        let rules = Rules { prefer_nominated_node: try_nominated, ..self.engine.rules() };
        let cluster = self.with_answers(&answers, |scheduler| scheduler.engine.cluster.snapshot().clone());
        let version = self.engine.cluster.snapshot().version();
        let memories = self.engine.memories().clone();
        let number = profile_of(self.engine.profiles(), pod).expect("its caller has looked for the profile");
        let (attempt, mut start) = self.engine.next_attempt();
        let begin = start;
        let (context, profiles) = self.engine.view_of(&cluster, &memories, now, attempt);
        let mut cycle = Cycle::new(pod, context);
        let (evaluation, filters) =
            search(&profiles[number], &mut cycle, rules, Thoroughness::FirstRejection, &mut start);
        let skipped = filters.skipped().clone();
        let state = cycle.into_state();
        self.engine.set_start(start);
        let nominated = pod.nominated_node_name().and_then(|name| cluster.row_of(name));
        let is_nominated_only = try_nominated && nominated.is_some_and(|row| evaluation.feasible == [row]);
        Consultation {
            slot,
            pod: pod.clone(),
            cluster,
            answers,
            version,
            memories,
            now,
            attempt,
            start: begin,
            evaluation,
            state,
            skipped,
            is_nominated_only,
            stage: Stage::Filter(0),
        }
    }

    /// Asks the next extender that filters; when all have, goes on.
    fn ask_filters(&mut self, now: Timestamp) -> Option<Decision> {
        let consultation = self.consultation.as_ref()?;
        let Stage::Filter(place) = consultation.stage else { return None };
        let Consultation { pod, cluster, evaluation, is_nominated_only, slot, attempt, .. } = consultation;
        let next = self.asked(pod, |extender| extender.filters).get(place).copied();
        match next {
            Some(extender) if !evaluation.feasible.is_empty() && evaluation.error.is_none() => {
                let question = ExtenderQuestion::Filter {
                    pod: pod.clone(),
                    nodes: asked_nodes(cluster, &evaluation.feasible),
                };
                let waiter = Waiter::Consultation { pod: pod.uid.clone(), attempt: *attempt, extender };
                self.order_and_wait(Effect::Ask { extender, question }, waiter);
                None
            }
            _ if *is_nominated_only && evaluation.feasible.is_empty() => {
                // The node it was nominated to will not do: look at all.
                let (slot, pod, answers) = (*slot, pod.clone(), consultation.answers.clone());
                self.consultation = Some(self.begin_consultation(slot, &pod, answers, now, false));
                self.ask_filters(now)
            }
            _ if evaluation.error.is_none() && evaluation.feasible.len() > 1 => self.ask_priorities(now),
            _ => self.end_consultation(&[], now),
        }
    }

    /// Asks all extenders that score, side by side.
    fn ask_priorities(&mut self, now: Timestamp) -> Option<Decision> {
        let consultation = self.consultation.as_mut()?;
        let (pod, feasible) = (consultation.pod.clone(), consultation.evaluation.feasible.clone());
        let attempt = consultation.attempt;
        let nodes = asked_nodes(&consultation.cluster, &feasible);
        let asked = self.asked(&pod, |extender| extender.prioritizes);
        if asked.is_empty() {
            return self.end_consultation(&[], now);
        }
        let stage = Stage::Prioritize { open: asked.len(), added: vec![0; feasible.len()] };
        self.consultation.as_mut()?.stage = stage;
        for extender in asked {
            let question = ExtenderQuestion::Prioritize { pod: pod.clone(), nodes: nodes.clone() };
            let waiter = Waiter::Consultation { pod: pod.uid.clone(), attempt, extender };
            self.order_and_wait(Effect::Ask { extender, question }, waiter);
        }
        None
    }

    /// What an extender answered. If that decides a pod, the decision.
    pub(super) fn hear(
        &mut self,
        pod: &Arc<str>,
        attempt: u64,
        extender: usize,
        answer: Result<ExtenderAnswer, String>,
        now: Timestamp,
    ) -> Option<Decision> {
        let is_asked = |consultation: &&mut Consultation| {
            consultation.pod.uid == *pod && consultation.attempt == attempt
        };
        let Some(consultation) = self.consultation.as_mut().filter(is_asked) else {
            self.observe(Observation::AnswerDropped);
            return None;
        };
        let (slot, pod) = (consultation.slot, consultation.pod.clone());
        self.caught_consulting(slot, &pod, now, |scheduler| scheduler.take_answer(extender, answer, now))
    }

    fn take_answer(
        &mut self,
        extender: usize,
        answer: Result<ExtenderAnswer, String>,
        now: Timestamp,
    ) -> Option<Decision> {
        let is_ignorable = self.extenders.get(extender).is_some_and(|extender| extender.is_ignorable);
        let weight = self.extenders.get(extender).map_or(0, |extender| extender.weight);
        let consultation = self.consultation.as_mut()?;
        match (&mut consultation.stage, answer) {
            (Stage::Preempt { .. }, answer) => self.hear_of_victims(is_ignorable, answer, now),
            (Stage::Filter(place), Ok(ExtenderAnswer::Filtered { kept, failed, unresolvable })) => {
                *place += 1;
                consultation.narrow(&kept.into_iter().collect(), failed, unresolvable);
                self.ask_filters(now)
            }
            (Stage::Filter(place), Err(_)) if is_ignorable => {
                *place += 1;
                self.ask_filters(now)
            }
            (Stage::Filter(_), answer) => {
                let error =
                    answer.err().unwrap_or_else(|| "the extender did not say which nodes it filters".into());
                consultation.evaluation.error = Some(error);
                self.end_consultation(&[], now)
            }
            (Stage::Prioritize { open, added }, answer) => {
                *open = open.saturating_sub(1);
                // An extender that fails to score has no say in it.
                if let Ok(ExtenderAnswer::Prioritized(scores)) = answer {
                    for (name, score) in scores {
                        let row = consultation.cluster.row_of(&name);
                        let place =
                            consultation.evaluation.feasible.iter().position(|known| Some(*known) == row);
                        if let Some(place) = place {
                            let score =
                                score.wrapping_mul(weight).wrapping_mul(MAX_NODE_SCORE / MAX_EXTENDER_SCORE);
                            added[place] = added[place].wrapping_add(score);
                        }
                    }
                }
                if *open > 0 {
                    return None;
                }
                let added = std::mem::take(added);
                self.end_consultation(&added, now)
            }
        }
    }

    /// Comes to a decision, and acts on it.
    fn end_consultation(&mut self, added: &[i64], now: Timestamp) -> Option<Decision> {
        let consultation = self.consultation.take()?;
        // It may have gone meanwhile, or somebody else has bound it.
        if !self.queue.is_in_flight(&consultation.pod.uid, consultation.slot) {
            return None;
        }
        let rules = self.engine.rules();
        let number = profile_of(self.engine.profiles(), &consultation.pod)?;
        let Consultation { slot, pod, cluster, memories, now: began, attempt, start, .. } = consultation;
        let Consultation { mut evaluation, state, skipped, answers, version, .. } = consultation;
        let (context, profiles) = self.engine.view_of(&cluster, &memories, began, attempt);
        let profile = &profiles[number];
        let mut cycle = Cycle::resume(&pod, context, state);
        let filters = Filters::with_skipped(profile, skipped);
        finish(profile, &mut cycle, &filters, rules, &mut evaluation, added);
        let has_victims = matches!(evaluation.nomination, Nomination::Node(_));
        let candidates = if has_victims && !self.asked(&pod, |extender| extender.preempts).is_empty() {
            let stage = RehearsalStage::new(&filters, &cycle);
            let of_plugin = |(number, named): (usize, &Named<dyn PostFilter>)| {
                let rehearsal = RehearsalOf::new(&stage, named.number);
                let candidates =
                    named.run(|plugin| plugin.candidates(&cycle, &evaluation.diagnosis, &rehearsal));
                (!candidates.is_empty()).then_some((number, candidates))
            };
            profile.post_filter.iter().enumerate().find_map(of_plugin)
        } else {
            None
        };
        let (state, skipped) = (cycle.into_state(), filters.skipped().clone());
        if let Some((plugin, candidates)) = candidates {
            let stage = Stage::Preempt { place: 0, plugin, candidates };
            let is_nominated_only = false;
            self.consultation = Some(Consultation {
                slot,
                pod,
                cluster,
                answers,
                version,
                memories,
                now: began,
                attempt,
                start,
                evaluation,
                state,
                skipped,
                is_nominated_only,
                stage,
            });
            return self.ask_about_victims(now);
        }
        let outcome = Outcome::of(evaluation, &cluster);
        let decision = Decision { pod, version: cluster.version(), attempt, now: began, start, outcome };
        self.act_on_older(slot, &decision, version, &answers, now);
        Some(decision)
    }

    /// Asks the next extender about victims; when all have been, chooses from what they have left.
    fn ask_about_victims(&mut self, now: Timestamp) -> Option<Decision> {
        let consultation = self.consultation.as_ref()?;
        let Stage::Preempt { place, candidates, .. } = &consultation.stage else { return None };
        let (pod, attempt) = (consultation.pod.clone(), consultation.attempt);
        let next = self.asked(&pod, |extender| extender.preempts).get(*place).copied();
        match next {
            Some(extender) if !candidates.is_empty() => {
                let question = ExtenderQuestion::Preempt { pod: pod.clone(), victims: candidates.clone() };
                let waiter = Waiter::Consultation { pod: pod.uid.clone(), attempt, extender };
                self.order_and_wait(Effect::Ask { extender, question }, waiter);
                None
            }
            _ => self.choose_victims(None, now),
        }
    }

    fn hear_of_victims(
        &mut self,
        is_ignorable: bool,
        answer: Result<ExtenderAnswer, String>,
        now: Timestamp,
    ) -> Option<Decision> {
        let Stage::Preempt { place, candidates, .. } = &mut self.consultation.as_mut()?.stage else {
            return None;
        };
        let left = match answer {
            Ok(ExtenderAnswer::Preempted(left)) => left_of(candidates, left, is_ignorable),
            Ok(_) => Err("the extender did not say which victims it agrees to".to_owned()),
            Err(error) => Err(error),
        };
        *place += 1;
        match left {
            Ok(left) => *candidates = left,
            Err(_) if is_ignorable => {}
            Err(error) => return self.choose_victims(Some(&error), now),
        }
        self.ask_about_victims(now)
    }

    /// Comes to a decision about victims, and acts on it.
    fn choose_victims(&mut self, error: Option<&str>, now: Timestamp) -> Option<Decision> {
        let consultation = self.consultation.take()?;
        let Consultation { slot, pod, cluster, memories, now: began, attempt, start, .. } = consultation;
        let Consultation { mut evaluation, state, stage, answers, version, .. } = consultation;
        let Stage::Preempt { plugin, candidates, .. } = stage else { return None };
        if !self.queue.is_in_flight(&pod.uid, slot) {
            return None;
        }
        let number = profile_of(self.engine.profiles(), &pod)?;
        let (context, profiles) = self.engine.view_of(&cluster, &memories, began, attempt);
        let cycle = Cycle::resume(&pod, context, state);
        let result = match error {
            None => {
                let named = profiles[number].post_filter.get(plugin)?;
                named.run(|plugin| plugin.choose(&cycle, candidates))
            }
            Some(error) => PostFilterResult {
                status: Status::error(format!("preemption: {error}")),
                ..PostFilterResult::default()
            },
        };
        evaluation.message = evaluation.diagnosis.message(cluster.node_count(), &result.status.message());
        (evaluation.nomination, evaluation.victims) = (result.nomination, result.victims);
        let outcome = Outcome::of(evaluation, &cluster);
        let decision =
            Decision { pod: pod.clone(), version: cluster.version(), attempt, now: began, start, outcome };
        self.act_on_older(slot, &decision, version, &answers, now);
        Some(decision)
    }

    /// Acts on a decision that was made on an earlier state of the cluster, which had that version but for the answers: nodes are known by
    /// name.
    fn act_on_older(
        &mut self,
        slot: Slot,
        decision: &Decision,
        version: u64,
        answers: &[Object],
        now: Timestamp,
    ) {
        let has_changed = self.engine.cluster.snapshot().version() != version;
        self.with_answers(answers, |scheduler| {
            let Outcome::Place { node, evaluated, feasible, .. } = &decision.outcome else {
                return scheduler.act_on(slot, decision, now);
            };
            let counts = NodeCounts { evaluated: *evaluated, feasible: *feasible };
            let fits = match scheduler.engine.cluster.snapshot().row_of(node) {
                None => Err(format!("node {node:?} not found")),
                Some(row) if has_changed => scheduler.still_fits(&decision.pod, row, now).map(|()| row),
                Some(row) => Ok(row),
            };
            match fits {
                Ok(row) => scheduler.place(slot, row, counts, now),
                Err(error) => scheduler.fail_placed(slot, node, Failure::error(error), now),
            }
        });
    }

    /// Whether a pod can run on the node that was chosen for it, now that the cluster is another one than extenders were asked about.
    fn still_fits(&mut self, pod: &Arc<Pod>, row: Row, now: Timestamp) -> Result<(), String> {
        let (context, profiles) = self.engine.view(now);
        let Some(profile) = profile_of(profiles, pod) else { return Ok(()) };
        let words = filter_among(&profiles[profile], context.clone(), pod, &[row]);
        match words.iter().find(|word| !word.is_success()) {
            None => Ok(()),
            Some(word) => {
                let node = context.cluster.node(row).name();
                Err(format!("node {node:?} has changed while extenders were asked: {}", word.message()))
            }
        }
    }

    /// The extender, from a place in the configuration on, that binds a pod.
    pub(super) fn binder(&self, from: usize, pod: &Pod) -> Option<usize> {
        (from..self.extenders.len())
            .find(|number| self.extenders[*number].binds && self.extenders[*number].is_interested(pod))
    }

    pub(super) fn is_ignorable(&self, extender: usize) -> bool {
        self.extenders.get(extender).is_some_and(|extender| extender.is_ignorable)
    }
}

impl Consultation {
    /// The pod that extenders are asked about, by UID, and its slot.
    pub(super) fn pod_and_slot(&self) -> (&str, Slot) {
        (&self.pod.uid, self.slot)
    }

    /// Keeps only some of the feasible nodes.
    fn narrow(
        &mut self,
        kept: &BTreeSet<Box<str>>,
        failed: BTreeMap<Box<str>, String>,
        unresolvable: BTreeMap<Box<str>, String>,
    ) {
        let (cluster, evaluation) = (&self.cluster, &mut self.evaluation);
        let before = evaluation.feasible.len();
        evaluation.feasible.retain(|row| kept.contains(&**cluster.node(*row).name()));
        if evaluation.feasible.len() < before {
            evaluation.diagnosis.unschedulable_plugins.insert(EXTENDER);
        }
        let failed = failed.into_iter().map(|(name, reason)| (name, Status::unschedulable(reason)));
        let unresolvable =
            unresolvable.into_iter().map(|(name, reason)| (name, Status::unresolvable(reason)));
        for (name, status) in failed.chain(unresolvable) {
            if let Some(row) = cluster.row_of(&name) {
                evaluation.diagnosis.nodes.insert(row, status);
            }
        }
    }
}

/// What an extender leaves of the candidates. It names victims by their UIDs.
fn left_of(
    candidates: &Candidates,
    left: BTreeMap<Box<str>, (Vec<Box<str>>, i64)>,
    is_ignorable: bool,
) -> Result<Candidates, String> {
    let mut kept = Candidates::new();
    for (node, (uids, budget_violations)) in left {
        let Some((name, known)) = candidates.get_key_value(&*node) else {
            return Err(format!("the extender names node {node:?}, which it was not asked about"));
        };
        let mut pods = Vec::with_capacity(uids.len());
        for uid in uids {
            let Some(pod) = known.pods.iter().find(|pod| *pod.uid == *uid) else {
                return Err(format!("the extender names a victim {uid:?} on node {node:?}, which is none"));
            };
            pods.push(pod.clone());
        }
        match pods.is_empty() {
            true if is_ignorable => {}
            true => return Err(format!("expected at least one victim pod on node {node:?}")),
            false => _ = kept.insert(name.clone(), NodeVictims { pods, budget_violations }),
        }
    }
    Ok(kept)
}

fn asked_nodes(cluster: &Snapshot, rows: &[Row]) -> Vec<AskedNode> {
    let asked = |row: &Row| {
        let node = cluster.node(*row);
        AskedNode { name: node.name().clone(), raw: node.facts().raw.clone() }
    };
    rows.iter().map(asked).collect()
}
