//! Whom a pod that fits nowhere may take the place of.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::preemption::{Candidate, PreemptionRules, preempt};
use supercargo_framework::{
    Acts, Context, Cycle, Effect, Memory, Nomination, PostFilter, PostFilterResult, Rehearsal, Rejections,
    SharedMap, Status, StaysPending,
};
use supercargo_model::{Pod, Timestamp};

use super::QosAware;
use super::books::{Books, Controller, Incarnation, Nanoseconds, State};
use super::metric::{Measured, Reference};
use super::observing::next;
use super::terms::{Approach, Terms, is_system};

/// How often pods are tried again that fit nowhere: with time alone a pod may become one that can be evicted.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// So many of them are tried again at a time, those first that were tried longest ago.
const RETRIED_MAX: usize = 32;
/// So many of them are known; others wait for something to happen.
const IN_VAIN_MAX: usize = 10_000;

/// The pods that fit nowhere, and have not taken anybody's place.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct InVain {
    tried: u64,
    /// In the order in which they were tried.
    order: SharedMap<u64, Arc<str>>,
    /// When each was tried.
    places: SharedMap<Arc<str>, u64>,
}

impl Memory for InVain {
    const NAME: &'static str = "QosAware/InVain";
}

impl InVain {
    fn add(&mut self, uid: &Arc<str>) {
        self.remove(uid);
        if self.places.len() < IN_VAIN_MAX {
            self.tried += 1;
            self.order.insert(self.tried, uid.clone());
            self.places.insert(uid.clone(), self.tried);
        }
    }

    fn remove(&mut self, uid: &Arc<str>) {
        if let Some(place) = self.places.remove(uid) {
            self.order.remove(&place);
        }
    }

    /// Takes out those that were tried longest ago.
    fn take_first(&mut self) -> Vec<Arc<str>> {
        let first: Vec<Arc<str>> = self.order.iter().take(RETRIED_MAX).map(|(_, uid)| uid.clone()).collect();
        first.iter().for_each(|uid| self.remove(uid));
        first
    }
}

impl PostFilter for QosAware {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        preempt(self, cycle, rejections, rehearsal)
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }

    fn stays_pending(&self, context: &Context<'_>, decided: &StaysPending<'_>, acts: &mut Acts<'_>) {
        match decided.nomination {
            Nomination::Node(node) => self.clear_nominations(context, decided.pod, node, acts),
            Nomination::Keep | Nomination::Clear => {
                acts.memory::<InVain>().add(&decided.pod.uid);
                acts.wake_at(next(context.now, RETRY_EVERY));
            }
        }
    }
}

impl QosAware {
    /// A pod is not one of those that fit nowhere any more.
    pub(super) fn no_longer_in_vain(&self, uid: &Arc<str>, acts: &mut Acts<'_>) {
        if acts.recall::<InVain>().is_some_and(|waiting| waiting.places.contains_key(uid)) {
            acts.memory::<InVain>().remove(uid);
        }
    }

    /// Has pods tried again that fit nowhere when they were tried last.
    pub(super) fn retry(&self, now: Timestamp, acts: &mut Acts<'_>) {
        if acts.recall::<InVain>().is_none_or(|waiting| waiting.order.is_empty()) {
            return;
        }
        for uid in acts.memory::<InVain>().take_first() {
            acts.activate(&uid);
        }
        acts.wake_at(next(now, RETRY_EVERY));
    }

    /// Pods that are to run on the same node, and go behind this one, have to look for another place.
    fn clear_nominations(&self, context: &Context<'_>, pod: &Pod, node: &str, acts: &mut Acts<'_>) {
        let Some(books) = acts.recall::<Books>() else { return };
        let rank = |pod: &Pod| self.rank_now(books.now(), pod, context.now);
        let own = rank(pod);
        let nominees = context.cluster.nominated_to(node).iter();
        let behind: Vec<Arc<Pod>> =
            nominees.filter(|other| other.uid != pod.uid && own < rank(other)).cloned().collect();
        for other in behind {
            let nomination = Nomination::Clear;
            acts.order(Effect::UpdateStatus { pod: other, condition: None, nomination });
        }
    }

    /// Whether a pod may take the place of another, which it goes before.
    pub(super) fn can_preempt(&self, view: &View<'_>, pending: &Pod, victim: &Incarnation) -> bool {
        if is_system(pending) {
            return true;
        }
        let terms = Terms::of(pending);
        let is_same = *victim.controller.namespace == *pending.namespace
            && *victim.controller.name == *terms.controller;
        if is_same && terms.approach != Approach::Independent {
            return false;
        }
        let Some(controller) = view.state.controllers.get(&victim.controller) else { return false };
        if !contributes(controller) {
            return true;
        }
        let has_run = victim.life.running(view.now) >= Nanoseconds::from(self.args.minimum_running_time.0);
        if !has_run {
            return terms.slo > victim.slo;
        }
        let measured = Measured::of(controller, Some(Reference::of(victim, controller, view.now)), view.now);
        measured.metric(victim.slo) >= self.safety_margin
            || terms.slo > victim.slo
            || measured.preemption_overhead()
                <= self.acceptable_overhead(victim.slo, victim.acceptable_overhead)
    }

    /// Which share of its time on nodes a controller may lose to preemption.
    pub(super) fn acceptable_overhead(&self, slo: f64, own: Option<f64>) -> f64 {
        (1.0 - slo).min(own.unwrap_or(self.args.acceptable_preemption_overhead))
    }

    /// Which pods it costs less to lose. Those about to violate their SLO count first, the most important of them before all others, then all
    /// together, and then how many they are.
    pub(super) fn compare_victims(&self, view: &View<'_>, a: &[Arc<Pod>], b: &[Arc<Pod>]) -> Ordering {
        let (a_classes, a_general) = self.scores(view, a);
        let (b_classes, b_general) = self.scores(view, b);
        let classes: BTreeSet<u64> = a_classes.keys().chain(b_classes.keys()).copied().collect();
        let score = |of: &BTreeMap<u64, f64>, class| of.get(class).copied().unwrap_or(0.0);
        // The higher score is the cheaper one.
        let by_class = (classes.iter().rev())
            .map(|class| score(&b_classes, class).total_cmp(&score(&a_classes, class)))
            .find(|order| order.is_ne());
        let by_class = by_class.unwrap_or(Ordering::Equal);
        by_class.then(b_general.total_cmp(&a_general)).then_with(|| a.len().cmp(&b.len()))
    }

    /// What it costs that these go: by importance, for those about to violate their SLO, and for all of them together.
    fn scores(&self, view: &View<'_>, victims: &[Arc<Pod>]) -> (BTreeMap<u64, f64>, f64) {
        let margin = self.safety_margin;
        let (mut classes, mut general) = (BTreeMap::new(), 0.0);
        for victim in victims {
            let metric = view.state.metric(victim, view.now);
            let (slo, score) = match view.known(victim) {
                Some((pod, controller)) if contributes(controller) => (pod.slo, metric - margin),
                Some((pod, _)) => (pod.slo, 0.0),
                None => (Terms::of(victim).slo, metric - margin),
            };
            if metric < margin {
                // Numbers that are not negative are in the order of their bits.
                *classes.entry(slo.to_bits()).or_insert(0.0) += score;
            }
            general += score;
        }
        (classes, general)
    }
}

/// The books at the time of a cycle.
pub(super) struct View<'a> {
    pub(super) state: &'a State,
    pub(super) now: Timestamp,
}

impl<'a> View<'a> {
    fn of(cycle: &Cycle<'a>) -> Option<Self> {
        let state = cycle.context.memories.get::<Books>()?.now();
        Some(View { state, now: cycle.context.now })
    }

    /// What is known of a pod and its controller.
    fn known(&self, pod: &Pod) -> Option<(&'a Incarnation, &'a Controller)> {
        let known = self.state.pods.get(&pod.uid)?;
        Some((known, self.state.controllers.get(&known.controller)?))
    }

    /// Whether it makes a difference to its controller that a pod runs.
    fn contributes(&self, pod: &Pod) -> bool {
        self.known(pod).is_none_or(|(_, controller)| contributes(controller))
    }
}

/// Whether the pods of a controller that run make a difference to it: where only the time counts in which all run, not as long as one is
/// missing.
fn contributes(controller: &Controller) -> bool {
    controller.approach != Approach::Concurrent
        || controller.running + controller.allocating == controller.replicas
}

impl PreemptionRules for QosAware {
    fn waits_for(&self, cycle: &Cycle<'_>, leaving: &Pod) -> bool {
        let Some(view) = View::of(cycle) else { return false };
        let rank = |pod: &Pod| self.rank_now(view.state, pod, view.now);
        rank(cycle.pod) < rank(leaving)
    }

    fn may_evict(&self, cycle: &Cycle<'_>, pod: &Pod) -> Result<bool, Status> {
        if is_system(pod) {
            return Ok(false);
        }
        let Some(view) = View::of(cycle) else { return Ok(false) };
        let Some((known, controller)) = view.known(pod) else { return Ok(false) };
        let goes_before = || {
            let rank = |pod: &Pod| self.rank_now(view.state, pod, view.now);
            rank(cycle.pod) < rank(pod)
        };
        // That it may is quicker to say than that it goes before.
        Ok(self.can_preempt(&view, cycle.pod, known) && (!contributes(controller) || goes_before()))
    }

    fn importance(&self, cycle: &Cycle<'_>, a: &Pod, b: &Pod) -> Ordering {
        let Some(view) = View::of(cycle) else { return a.name.cmp(&b.name) };
        let key = |pod: &Pod| (!view.contributes(pod), self.rank_now(view.state, pod, view.now));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    }

    fn compare(&self, cycle: &Cycle<'_>, a: &Candidate, b: &Candidate) -> Ordering {
        match View::of(cycle) {
            None => a.victims().len().cmp(&b.victims().len()),
            Some(view) => self.compare_victims(&view, a.victims(), b.victims()),
        }
    }

    /// All nodes are tried, as the original does.
    fn candidates_wanted(&self, nodes: usize) -> usize {
        nodes
    }
}
