//! What somebody outside has answered: facts, which are objects of the cluster for as long as they are fresh.

use std::collections::BTreeMap;

use supercargo_framework::{
    Actions, ClusterEvent, FactForm, Facts, LeftOut, Needs, Profile, Query, ResolvedFacts, Strangers,
};
use supercargo_model::{Cluster, KindId, Object, ObjectKey, Timestamp};

use super::Scheduler;
use super::happenings::{Happening, What};
use super::observations::Observation;
use crate::planted::{Bug, is_planted};

/// What is asked for the plugins, and what of the answers is in the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Queries(BTreeMap<String, Held>);

/// A query, and its facts that are in the cluster.
#[derive(Clone, Debug)]
struct Held {
    query: Query,
    /// When each fact is too old, by the name of its object.
    ends: BTreeMap<Box<str>, Timestamp>,
    /// The first of these times.
    first_end: Option<Timestamp>,
    /// What the last answer says of nodes that are not known.
    strangers: Strangers,
    /// The last answer, if the cluster is not known yet.
    early: Option<Facts>,
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerTaken {
    /// How many facts are in the cluster now.
    pub facts: usize,
    /// How many of them are new, or say something else than before.
    pub changed: usize,
    /// How many there were before and are not any more.
    pub gone: usize,
    /// What of the answer does not count.
    pub left_out: LeftOut,
}

/// How an object changed.
type Changed = (Option<Object>, Option<Object>);

impl Queries {
    /// The queries of these profiles. Of several that collide the first is asked.
    pub(super) fn of(profiles: &[Profile]) -> Self {
        let mut queries: Vec<Query> = Vec::new();
        for query in Needs::of(profiles).queries() {
            if !queries.iter().any(|known| known.collides_with(query)) {
                queries.push(query.clone());
            }
        }
        Queries(queries.into_iter().map(|query| (query.name().to_owned(), Held::of(query))).collect())
    }

    /// When the first fact becomes too old.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.0.values().filter_map(|held| held.first_end).min()
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        for held in self.0.values_mut() {
            held.ends.values_mut().for_each(&moved);
            held.strangers.times_mut().for_each(&moved);
            held.early.iter_mut().flat_map(Facts::times_mut).for_each(&moved);
            held.note_first_end();
        }
    }

    /// How many facts of each query are in the cluster.
    pub(super) fn fact_counts(&self) -> BTreeMap<String, usize> {
        self.0.iter().map(|(name, held)| (name.clone(), held.ends.len())).collect()
    }
}

impl Held {
    fn of(query: Query) -> Self {
        let strangers = Strangers::default();
        Held { query, ends: BTreeMap::new(), first_end: None, strangers, early: None }
    }

    fn note_first_end(&mut self) {
        self.first_end = self.ends.values().min().copied();
    }
}

/// Removes a fact; how it was.
fn removed(cluster: &mut Cluster, kind: KindId, name: &str) -> Option<Changed> {
    let key = ObjectKey { namespace: Box::default(), name: name.into() };
    let old = cluster.snapshot().objects().find(kind, &key)?;
    cluster.remove_object(kind, &key);
    Some((Some(old), None))
}

impl Scheduler {
    /// The queries that are to be asked, by their names.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.queries.0.values().map(|held| &held.query)
    }

    /// What a query was answered, read; or why there is no answer. Facts that the answer does not repeat are gone; without an answer
    /// they stay until they are too old. Nothing becomes of an answer that nobody waits for, or that is of another kind. As long as the
    /// cluster is not known, the last answer is kept until it is.
    pub fn answered(
        &mut self,
        query: &str,
        answer: Result<Facts, String>,
        now: Timestamp,
    ) -> Option<AnswerTaken> {
        let held = self.queries.0.get_mut(query)?;
        let facts = answer.ok()?;
        if !held.query.owns(&facts) {
            return None;
        }
        if !self.is_cluster_known {
            // Nobody can say yet which nodes are meant.
            let left_out = facts.left_out().clone();
            held.early = Some(facts);
            return Some(AnswerTaken { facts: held.ends.len(), changed: 0, gone: 0, left_out });
        }
        let cluster = &mut self.engine.cluster;
        let ResolvedFacts { objects, left_out, strangers } =
            held.query.resolve(facts, cluster.snapshot(), now);
        held.strangers = strangers;
        let kind = held.query.kind().id;
        let mut changes: Vec<Changed> = Vec::new();
        let gone: Vec<Box<str>> =
            held.ends.keys().filter(|name| !objects.contains_key(*name)).cloned().collect();
        let gone_count = gone.len();
        for name in gone {
            changes.extend(removed(cluster, kind, &name));
        }
        held.ends.clear();
        for (name, (object, end)) in objects {
            held.ends.insert(name, end);
            let old = cluster.snapshot().objects().find(kind, &object.key);
            if !old.as_ref().is_some_and(|old| held.query.is_same_fact(old, &object)) {
                cluster.put_object(object.clone());
                changes.push((old, Some(object)));
            }
        }
        held.note_first_end();
        let taken = AnswerTaken {
            facts: held.ends.len(),
            changed: changes.len().saturating_sub(gone_count),
            gone: gone_count,
            left_out,
        };
        self.tell_of_facts(changes, now);
        self.carry_out_acts(now);
        Some(taken)
    }

    /// The cluster is known: what was answered before counts from now on.
    pub(super) fn take_early_answers(&mut self, now: Timestamp) {
        let early: Vec<(String, Facts)> = self
            .queries
            .0
            .iter_mut()
            .filter_map(|(name, held)| Some((name.clone(), held.early.take()?)))
            .collect();
        for (query, facts) in early {
            self.answered(&query, Ok(facts), now);
        }
    }

    /// A node has come, or goes by another address: what the last answers say of it counts from now on.
    pub(super) fn take_facts_of_node(&mut self, node: &str, now: Timestamp) {
        let mut changes: Vec<Changed> = Vec::new();
        for held in self.queries.0.values_mut().filter(|held| !held.ends.contains_key(node)) {
            let cluster = self.engine.cluster.snapshot();
            let Some(row) = cluster.row_of(node) else { continue };
            let found = held.query.resolve_stranger(&mut held.strangers, cluster, cluster.node(row), now);
            if let Some((object, end)) = found {
                held.ends.insert(node.into(), end);
                held.note_first_end();
                self.engine.cluster.put_object(object.clone());
                changes.push((None, Some(object)));
            }
        }
        self.tell_of_facts(changes, now);
    }

    /// Removes the facts that have become too old.
    pub(super) fn drop_old_facts(&mut self, now: Timestamp) {
        let mut changes = Vec::new();
        for (name, held) in &mut self.queries.0 {
            if held.first_end.is_none_or(|end| end > now) || is_planted(Bug::OldFactsStay) {
                continue;
            }
            let kind = held.query.kind().id;
            let cluster = &mut self.engine.cluster;
            let mut facts = 0;
            held.ends.retain(|name, end| {
                if *end > now {
                    return true;
                }
                facts += 1;
                changes.extend(removed(cluster, kind, name));
                false
            });
            held.note_first_end();
            self.queue.observations.note(Observation::FactsExpired { query: name.clone(), facts });
        }
        self.tell_of_facts(changes, now);
    }

    /// A node is gone, and what was measured on it says nothing about another one of that name.
    pub(super) fn drop_facts_of_node(&mut self, node: &str, now: Timestamp) {
        let mut changes = Vec::new();
        for held in self.queries.0.values_mut() {
            if held.query.form() == FactForm::PerNode && held.ends.remove(node).is_some() {
                changes.extend(removed(&mut self.engine.cluster, held.query.kind().id, node));
                held.note_first_end();
            }
        }
        self.tell_of_facts(changes, now);
    }

    /// The profiles are others: facts of queries that ask the same stay, the others go.
    pub(super) fn replace_queries(&mut self, now: Timestamp) {
        let mut new = Queries::of(self.engine.profiles());
        let mut changes = Vec::new();
        for (name, old) in std::mem::take(&mut self.queries.0) {
            match new.0.get_mut(&name).filter(|new| new.query.asks_the_same(&old.query)) {
                Some(new) => {
                    // They were told under the old rules, and are too old by those.
                    (new.ends, new.first_end) = (old.ends, old.first_end);
                    (new.strangers, new.early) = (old.strangers, old.early);
                }
                None => {
                    for name in old.ends.keys() {
                        changes.extend(removed(&mut self.engine.cluster, old.query.kind().id, name));
                    }
                }
            }
        }
        self.queries = new;
        self.tell_of_facts(changes, now);
    }

    /// Tells those who wait for it, or observe. All facts of an answer are there by then.
    fn tell_of_facts(&mut self, changes: Vec<Changed>, now: Timestamp) {
        let mut by_kind: BTreeMap<KindId, Vec<Changed>> = BTreeMap::new();
        for change in changes {
            let kind = change.0.as_ref().or(change.1.as_ref()).map(|fact| fact.kind);
            if let Some(kind) = kind {
                by_kind.entry(kind).or_default().push(change);
            }
        }
        for (kind, changes) in by_kind {
            self.tell_of_kind(kind, changes, now);
        }
    }

    fn tell_of_kind(&mut self, kind: KindId, changes: Vec<Changed>, now: Timestamp) {
        // Thousands of facts change at once: whether anybody cares is asked once, and not of every pod for every fact.
        let is_awaited = self.is_anybody_waiting_for(ClusterEvent::kind(kind, Actions::ALL), now);
        let are_observed = self.observers.are_told();
        for (old, new) in changes {
            let actions = match (&old, &new) {
                (None, _) => Actions::ADD,
                (Some(_), Some(_)) => Actions::UPDATE,
                (Some(_), None) => Actions::DELETE,
            };
            let event = ClusterEvent::kind(kind, actions);
            let what = What::Object { old, new };
            if !is_awaited && !are_observed {
                self.queue.hear_of(&event, &what);
                continue;
            }
            match is_awaited {
                true => self.happened(Happening { event, what: what.clone() }, now),
                false => self.queue.hear_of(&event, &what),
            }
            self.tell_observers(&[event], &what, now);
        }
    }

    /// Whether a pod that waits may be helped by something that happens to such a kind, or whether any pod is in the midst of an attempt.
    fn is_anybody_waiting_for(&mut self, event: ClusterEvent, now: Timestamp) -> bool {
        self.bindings.listens()
            || (self.queue.listens()
                && self.with_queue(now, |queue, context| queue.is_anybody_helped_by(context, event)))
    }
}
