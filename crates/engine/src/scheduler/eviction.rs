//! Making room for a pod: its victims are evicted while others are scheduled, all but the last side by side, then the last.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};
use supercargo_framework::{Conclusion, Effect, Nomination, Notice, Subject};
use supercargo_model::{Pod, Timestamp};

use super::attempts::Failure;
use super::binding::Binding;
use super::nominating::Ended;
use super::observations::Observation;
use super::{Scheduler, Waiter};

/// The pods for which others are being evicted.
///
/// Whoever stops being held back by that is said to have been freed: what happened meanwhile may have helped it, and was kept from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Evictions {
    by_preemptor: IndexMap<Arc<str>, Eviction, FxBuildHasher>,
    /// The pods that wait until their last victim is on its way out, by UID.
    preempting: FxHashSet<Arc<str>>,
}

/// A pod that is not held back by its victims any more.
#[must_use = "it has to be let into the queue again"]
struct Freed(Arc<str>);

/// The victims of a pod, while they are evicted.
#[derive(Clone, Debug)]
struct Eviction {
    preemptor: Arc<Pod>,
    node: Arc<str>,
    /// The one that is evicted when all others are: its end is what the pod waits for.
    last: Arc<Pod>,
    /// How many others are being evicted.
    others: usize,
    is_last_under_way: bool,
    /// Whether the API server has said of the last one that it is on its way out, or gone.
    has_last_left: bool,
    began: Timestamp,
    /// The number of the orders to evict: answers to an earlier eviction for the same pod come too late.
    round: u64,
}

impl Evictions {
    /// The pods that wait until their last victim is on its way out.
    pub(super) fn preempting(&self) -> &FxHashSet<Arc<str>> {
        &self.preempting
    }

    /// The pods for which others are being evicted.
    pub(super) fn preemptors(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_preemptor.keys()
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        self.by_preemptor.values_mut().for_each(|eviction| moved(&mut eviction.began));
    }

    fn get(&self, preemptor: &str) -> Option<&Eviction> {
        self.by_preemptor.get(preemptor)
    }

    fn begin(&mut self, eviction: Eviction) {
        let uid = eviction.preemptor.uid.clone();
        self.preempting.insert(uid.clone());
        self.by_preemptor.insert(uid, eviction);
    }

    fn end(&mut self, preemptor: &str) -> Option<Freed> {
        self.by_preemptor.swap_remove(preemptor);
        self.preempting.take(preemptor).map(Freed)
    }

    fn end_all(&mut self) -> Vec<Freed> {
        self.preempting.clear();
        // Not in the order of a table of hashes: what is done comes again in a run that is repeated.
        self.by_preemptor.drain(..).map(|(uid, _)| Freed(uid)).collect()
    }

    /// A pod is on its way out, or gone. Several pods may have it as their last victim.
    fn leaves(&mut self, victim: &str) -> Vec<Freed> {
        let mut freed = Vec::new();
        for (uid, eviction) in &mut self.by_preemptor {
            if *eviction.last.uid == *victim {
                eviction.has_last_left = true;
                if eviction.is_last_under_way {
                    freed.extend(self.preempting.take(uid).map(Freed));
                }
            }
        }
        freed
    }
}

impl Scheduler {
    /// Has a pod's victims evicted. Less important pods that were nominated to the node are not any more: they are returned.
    pub(super) fn make_room(
        &mut self,
        preemptor: &Arc<Pod>,
        node: &Arc<str>,
        mut victims: Vec<Arc<Pod>>,
        now: Timestamp,
    ) -> Vec<Ended> {
        // They have to look for another place.
        let nominees = self.engine.cluster.snapshot().nominated_to(node);
        let less_important = nominees.iter().filter(|other| other.priority() < preemptor.priority());
        let less_important: Vec<Arc<str>> = less_important.map(|other| other.uid.clone()).collect();
        let cleared = less_important.iter().filter_map(|uid| self.engine.cluster.clear_nomination(uid));
        let displaced: Vec<_> = cleared.collect();
        for (_, pod) in &displaced {
            let (pod, nomination) = (pod.clone(), Nomination::Clear);
            self.order(Effect::UpdateStatus { pod, condition: None, nomination });
        }
        self.observe(Observation::VictimsChosen(victims.len()));
        let Some(last) = victims.pop() else { return displaced };
        self.last_round += 1;
        let eviction = Eviction {
            preemptor: preemptor.clone(),
            node: node.clone(),
            last,
            others: victims.len(),
            is_last_under_way: false,
            has_last_left: false,
            began: now,
            round: self.last_round,
        };
        self.evictions.begin(eviction);
        if victims.is_empty() {
            self.evict_last(&preemptor.uid, now);
        }
        for victim in victims {
            self.evict(preemptor, victim, now);
        }
        displaced
    }

    fn evict_last(&mut self, preemptor: &Arc<str>, now: Timestamp) {
        let Some(eviction) = self.evictions.by_preemptor.get_mut(preemptor) else { return };
        if eviction.has_last_left {
            // As upstream, what is on its way out anyway is not evicted.
            return self.have_been_evicted(preemptor, now);
        }
        eviction.is_last_under_way = true;
        let (preemptor, last) = (eviction.preemptor.clone(), eviction.last.clone());
        self.evict(&preemptor, last, now);
    }

    fn evict(&mut self, preemptor: &Arc<Pod>, victim: Arc<Pod>, now: Timestamp) {
        let Some(eviction) = self.evictions.get(&preemptor.uid) else { return };
        let (round, node) = (eviction.round, eviction.node.clone());
        // One that waited at Permit may have lost its place since it was chosen, and be bound to another node by now.
        let known = self.engine.cluster.bound_pod(&victim.uid);
        if known.is_none_or(|known| known.node_name != victim.node_name) {
            return self.evicted(&preemptor.uid, &victim, now);
        }
        // A victim that nobody is binding yet need not be deleted: it only loses its place.
        if self.bindings.get(&victim.uid).is_some_and(Binding::can_be_stopped) {
            let error = format!("preempted by pod {} in the scheduler's memory", preemptor.uid);
            self.fail_binding(&victim.uid, Failure::error(error), now);
            self.tell_victim(preemptor, &victim, &node, " (in kube-scheduler memory).");
            self.evicted(&preemptor.uid, &victim, now);
            return;
        }
        self.observe(Observation::Evicting { victim: victim.clone(), preemptor: preemptor.clone(), node });
        let waiter = Waiter::Eviction { preemptor: preemptor.clone(), round, victim: victim.clone() };
        self.order_and_wait(Effect::Evict { victim, preemptor: preemptor.clone() }, waiter);
    }

    pub(super) fn conclude_eviction(
        &mut self,
        preemptor: &Arc<Pod>,
        round: u64,
        victim: &Arc<Pod>,
        conclusion: &Conclusion,
        now: Timestamp,
    ) {
        let error = conclusion.error();
        if error.is_none() {
            // Also where the answer comes late: the watch may tell first that the victim is gone, and the preemptor be bound by then.
            self.tell_victim(preemptor, victim, victim.node_name.as_deref().unwrap_or_default(), "");
        }
        let uid = &preemptor.uid;
        if self.evictions.get(uid).is_none_or(|eviction| eviction.round != round) {
            return self.observe(Observation::AnswerDropped);
        }
        let Some(error) = error else { return self.evicted(uid, victim, now) };
        self.observe(Observation::NotEvicted {
            victim: victim.clone(),
            preemptor: preemptor.clone(),
            error: error.to_owned(),
        });
        // Whether the pod fits has to be found out anew. Upstream does so at once, and again and again if it may not
        // evict anybody.
        self.observe_eviction(uid, false, now);
        let _freed = self.evictions.end(uid);
        // It is tried again whatever has held it back, its victims included.
        self.with_queue(now, |queue, context| queue.retry(context, uid));
    }

    /// A victim is on its way out.
    fn evicted(&mut self, preemptor: &Arc<str>, victim: &Pod, now: Timestamp) {
        let Some(eviction) = self.evictions.by_preemptor.get_mut(preemptor) else { return };
        if victim.uid == eviction.last.uid {
            return self.have_been_evicted(preemptor, now);
        }
        eviction.others = eviction.others.saturating_sub(1);
        if eviction.others == 0 && !eviction.is_last_under_way {
            self.evict_last(preemptor, now);
        }
    }

    /// All victims of a pod are on their way out.
    fn have_been_evicted(&mut self, preemptor: &Arc<str>, now: Timestamp) {
        self.observe_eviction(preemptor, true, now);
        self.forget_eviction(preemptor, now);
    }

    fn observe_eviction(&mut self, preemptor: &str, is_success: bool, now: Timestamp) {
        if let Some(eviction) = self.evictions.get(preemptor) {
            let took = now.since(eviction.began);
            self.observe(Observation::Evicted { is_success, took });
        }
    }

    /// The API server says that a pod is going or gone: the preemptors that only waited for that may be tried.
    pub(super) fn victim_leaves(&mut self, uid: &str, now: Timestamp) {
        let freed = self.evictions.leaves(uid);
        self.let_in(freed, now);
    }

    pub(super) fn forget_eviction(&mut self, preemptor: &str, now: Timestamp) {
        let freed = self.evictions.end(preemptor);
        self.let_in(freed, now);
    }

    /// No victim is evicted any more, for whatever pod.
    pub(super) fn forget_evictions(&mut self, now: Timestamp) {
        let freed = self.evictions.end_all();
        self.let_in(freed, now);
    }

    /// These pods are not held back any more. Those that would have been tried meanwhile are tried now.
    fn let_in(&mut self, freed: impl IntoIterator<Item = Freed>, now: Timestamp) {
        for Freed(uid) in freed {
            self.with_queue(now, |queue, context| queue.let_in(context, &uid));
        }
    }

    fn tell_victim(&mut self, preemptor: &Arc<Pod>, victim: &Arc<Pod>, node: &str, how: &str) {
        self.record(Notice {
            about: Subject::Pod(victim.clone()),
            reporter: Arc::from(&*preemptor.spec.scheduler_name),
            is_warning: false,
            reason: "Preempted".into(),
            action: "Preempting".into(),
            note: format!("Preempted by pod {} on node {node}{how}", preemptor.uid),
            related: Some(preemptor.clone()),
        });
    }
}
