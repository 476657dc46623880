//! The pods that wait to be scheduled: those to be tried next, those that wait a while, those that wait for something to
//! happen, and those that are being tried.

mod happened;
mod holding;
mod idle;
mod lengths;
mod locating;
mod moving;
mod ordering;
mod renewal;
mod standings;
mod unwritten;
mod waking;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use supercargo_framework::{Actions, ClusterEvent, Profile, QueuedPod};
use supercargo_model::pod::Unscheduled;
use supercargo_model::{Pod, Timestamp};

use super::conditions::Said;
use super::happenings::{Happening, What, pod_update};
use super::heap::{Heap, Slot};
use super::observations::{Observation, Observations, QueueEvent, QueuePart};
use super::queue_context::{Gate, QueueContext, Retry};
use happened::Happened;
use idle::{Idle, IdlePlace};
pub use lengths::QueueLengths;
use ordering::Order;
use standings::Standings;

/// How often pods that wait for something to happen are looked at, whether they have waited too long.
const FLUSH_INTERVAL: Duration = Duration::from_secs(30);

/// A pod in the queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) queued: QueuedPod,
    /// Orders pods that nothing else does.
    pub(super) arrival: u64,
    /// The plugins that rejected it when it was last tried, or hold it back.
    pub(super) rejectors: BTreeSet<&'static str>,
    /// Those that wait for something outside.
    pub(super) pending: BTreeSet<&'static str>,
    pub(super) gate: Option<Gate>,
    /// What it says about why it was not scheduled.
    pub(super) said: Said,
    /// Whether the API server was asked to nominate it to the node that it was given, and not to take that back.
    pub(super) is_nomination_ordered: bool,
    /// `metadata.generation`
    pub(super) generation: i64,
    /// When it was last taken to be tried.
    pub(super) tried_at: Option<Timestamp>,
    place: Place,
    /// Where it is if it waits for something to happen.
    idle_place: IdlePlace,
    unschedulable_count: u32,
    /// Attempts since the last one that did not break.
    error_count: u32,
    /// When it last came back without anything having happened.
    flushed_at: Option<Timestamp>,
    /// The number of the first happening after it was taken to be tried.
    marker: u64,
    /// It is tried again after this attempt, if that is in vain: a plugin, or an eviction that failed, asked for that, or it had left the
    /// books (see [`Queue::restore`]).
    is_wanted: bool,
}

/// Where in the queue a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    Backoff,
    /// Waits a while because something broke.
    ErrorBackoff,
    Unschedulable,
    InFlight,
}

/// How long pods wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) initial_backoff: Duration,
    pub(super) max_backoff: Duration,
    pub(super) max_unschedulable: Duration,
}

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    patience: Patience,
    order: Order,
    pods: Vec<Option<Box<Waiting>>>,
    free: Vec<Slot>,
    by_uid: FxHashMap<Arc<str>, Slot>,
    active: Heap,
    backoff: Heap,
    error_backoff: Heap,
    /// Those that wait for something to happen.
    idle: Idle,
    in_flight: BTreeSet<(u64, Slot)>,
    happened: Happened,
    arrivals: u64,
    next_flush: Option<Timestamp>,
    /// The first pod to look at when something is written again.
    next_unwritten: Slot,
    pub(super) observations: Observations,
    /// Pods that a plugin began to hold back which wants that to be told.
    newly_held: Vec<Slot>,
    standings: Standings,
}

impl Waiting {
    /// Whether no plugin is to blame: something broke, or there was nothing to look at.
    pub(super) fn is_blameless(&self) -> bool {
        self.rejectors.is_empty() && self.pending.is_empty()
    }

    /// Until when it waits after its last attempt. As upstream, whole seconds, so that pods come in batches.
    fn backoff_end(&self, patience: &Patience) -> Option<i64> {
        let count = if self.error_count > 0 { self.error_count } else { self.unschedulable_count };
        if count == 0 || patience.max_backoff.is_zero() {
            return None;
        }
        let doublings = count - 1;
        let exceeds = doublings >= u128::BITS
            || patience.initial_backoff.as_nanos() > patience.max_backoff.as_nanos() >> doublings;
        let duration = if exceeds {
            patience.max_backoff
        } else {
            patience.initial_backoff.saturating_mul(1 << doublings)
        };
        Some(self.queued.queued_at.after(duration).seconds())
    }

    /// How long ago its attempt began.
    pub(super) fn since_attempt(&self, now: Timestamp) -> Duration {
        now.since(self.tried_at.unwrap_or(now))
    }

    /// Whether it was tried only because it had waited for too long.
    pub(super) fn was_flushed(&self) -> bool {
        self.flushed_at.is_some()
    }

    fn is_backing_off(&self, patience: &Patience, now: Timestamp) -> bool {
        self.backoff_end(patience).is_some_and(|end| end >= now.seconds())
    }
}

impl Queue {
    pub(super) fn new(patience: Patience, profiles: &[Profile]) -> Self {
        Queue {
            patience,
            order: Order::of(profiles),
            pods: Vec::new(),
            free: Vec::new(),
            by_uid: FxHashMap::default(),
            active: Heap::default(),
            backoff: Heap::default(),
            error_backoff: Heap::default(),
            idle: Idle::default(),
            in_flight: BTreeSet::new(),
            happened: Happened::default(),
            arrivals: 0,
            next_flush: None,
            next_unwritten: 0,
            observations: Observations::default(),
            newly_held: Vec::new(),
            standings: Standings::default(),
        }
    }

    /// Whether anybody waits to hear what happens.
    pub(super) fn listens(&self) -> bool {
        !self.idle.is_empty() || !self.in_flight.is_empty() || self.order.depends_on_events()
    }

    /// The pods in the queue, by UID.
    pub(super) fn uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_uid.keys()
    }

    /// The pods in the queue, those that are being tried included, as they came.
    pub(super) fn pods_in_order(&self) -> Vec<Arc<Pod>> {
        let mut waiting: Vec<&Waiting> = self.pods.iter().flatten().map(|waiting| &**waiting).collect();
        waiting.sort_by_key(|waiting| waiting.arrival);
        waiting.into_iter().map(|waiting| waiting.queued.pod.clone()).collect()
    }

    /// The pods that wait for something to happen.
    fn idle_slots(&self) -> impl Iterator<Item = Slot> {
        let waits = |waiting: &Waiting| waiting.place == Place::Unschedulable;
        (0..self.pods.len()).filter(move |slot| self.pods[*slot].as_deref().is_some_and(waits))
    }

    /// The pods that wait, without those that are being tried.
    pub(super) fn at_rest(&self) -> impl Iterator<Item = &Waiting> {
        self.pods
            .iter()
            .flatten()
            .map(|waiting| &**waiting)
            .filter(|waiting| waiting.place != Place::InFlight)
    }

    /// What happened while the pods were tried that are being tried.
    pub(super) fn kept_events(&self) -> impl Iterator<Item = ClusterEvent> {
        self.happened.events()
    }

    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Something happened that the order of pods may depend on.
    pub(super) fn hear(&mut self, event: &ClusterEvent) {
        self.order.hear(event);
    }

    /// The same, where it is known what it happened to.
    pub(super) fn hear_of(&mut self, event: &ClusterEvent, what: &What) {
        self.order.hear_of(event, &what.change());
    }

    pub(super) fn get(&self, slot: Slot) -> &Waiting {
        at(&self.pods, slot)
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Waiting {
        self.pods[slot].as_deref_mut().expect("slots in use are filled")
    }

    /// Takes in a new pod.
    pub(super) fn add(
        &mut self,
        context: &QueueContext<'_>,
        pod: &Arc<Pod>,
        generation: i64,
        unscheduled: Option<Unscheduled>,
    ) {
        let now = context.now();
        let queued = QueuedPod { pod: pod.clone(), queued_at: now, first_attempt_at: None, attempts: 0 };
        let waiting = Box::new(Waiting {
            queued,
            arrival: 0,
            rejectors: BTreeSet::new(),
            pending: BTreeSet::new(),
            gate: None,
            said: Said::of(unscheduled),
            is_nomination_ordered: false,
            generation,
            tried_at: None,
            place: Place::Unschedulable,
            idle_place: IdlePlace::default(),
            unschedulable_count: 0,
            error_count: 0,
            flushed_at: None,
            marker: 0,
            is_wanted: false,
        });
        let slot = self.occupy(waiting);
        self.by_uid.insert(pod.uid.clone(), slot);
        self.order.hear(&ClusterEvent::pod(Actions::ADD));
        self.enter(context, slot, Place::Active, QueueEvent::Waiting(Actions::ADD));
    }

    /// A pod in the queue has changed.
    pub(super) fn update(
        &mut self,
        context: &QueueContext<'_>,
        pod: &Arc<Pod>,
        generation: i64,
        unscheduled: Option<Unscheduled>,
    ) {
        let Some(slot) = self.by_uid.get(&pod.uid).copied() else {
            self.add(context, pod, generation, unscheduled);
            return;
        };
        let waiting = self.get_mut(slot);
        let old = std::mem::replace(&mut waiting.queued.pod, pod.clone());
        waiting.generation = generation;
        waiting.said.tell(unscheduled);
        let what = || What::Pod { old: Some(old.clone()), new: Some(pod.clone()) };
        let events = pod_update(&old, pod);
        events.iter().for_each(|event| self.order.hear(event));
        let happenings = events.into_iter().map(|event| Happening { event, what: what() });
        match self.get(slot).place {
            Place::InFlight => happenings.for_each(|happening| self.happened.keep(happening)),
            Place::Active => self.with_active(slot, context, |heap, entry, less| heap.fix(entry, less)),
            Place::Backoff => self.with_backoff(slot, context, |heap, entry, less| heap.fix(entry, less)),
            Place::ErrorBackoff => self.with_errors(slot, |heap, entry, less| heap.fix(entry, less)),
            Place::Unschedulable => {
                if old.labels != pod.labels {
                    self.remove_idle(slot);
                    self.add_idle(context, slot);
                }
                for happening in happenings {
                    let retry = context.retry(self.get(slot), &happening);
                    if retry != Retry::Skip {
                        let event = QueueEvent::Waiting(happening.event.actions);
                        self.requeue(context, slot, retry, event);
                        break;
                    }
                }
            }
        }
    }

    /// Takes a pod out of the queue, wherever it is.
    pub(super) fn remove(&mut self, context: &QueueContext<'_>, uid: &str) -> Option<Box<Waiting>> {
        let slot = self.by_uid.remove(uid)?;
        self.order.hear(&ClusterEvent::pod(Actions::DELETE));
        self.leave(context, slot);
        self.free.push(slot);
        self.pods[slot].take()
    }

    /// Takes the pod that is to be tried next. It stays in the queue's books until [`Queue::put_back`] or
    /// [`Queue::remove`].
    pub(super) fn pop(&mut self, context: &QueueContext<'_>) -> Option<Slot> {
        let slot = self.first_active(context).or_else(|| self.first_in_backoff(context))?;
        if self.get(slot).place == Place::Backoff {
            self.note(QueuePart::Active, QueueEvent::PoppedFromBackoff);
        }
        self.begin(context, slot);
        Some(slot)
    }

    /// Takes a certain pod to be tried, wherever it waits and whatever gate holds it back; none if it does not wait.
    pub(super) fn take(&mut self, context: &QueueContext<'_>, uid: &str) -> Option<Slot> {
        let slot = self.by_uid.get(uid).copied().filter(|slot| self.get(*slot).place != Place::InFlight)?;
        self.begin(context, slot);
        Some(slot)
    }

    /// A pod is being tried from now on.
    fn begin(&mut self, context: &QueueContext<'_>, slot: Slot) {
        self.leave(context, slot);
        let marker = self.happened.next();
        let waiting = self.get_mut(slot);
        waiting.place = Place::InFlight;
        waiting.queued.attempts = waiting.queued.attempts.saturating_add(1);
        waiting.tried_at = Some(context.now());
        (waiting.marker, waiting.is_wanted) = (marker, false);
        self.in_flight.insert((marker, slot));
    }

    /// Brings back a pod that was tried in vain, blaming these plugins; if none, something broke.
    pub(super) fn put_back(
        &mut self,
        context: &QueueContext<'_>,
        slot: Slot,
        rejectors: BTreeSet<&'static str>,
        pending: BTreeSet<&'static str>,
    ) {
        let (patience, now) = (self.patience, context.now());
        let waiting = self.get_mut(slot);
        (waiting.rejectors, waiting.pending) = (rejectors, pending);
        if waiting.is_blameless() {
            waiting.error_count = waiting.error_count.saturating_add(1);
        } else {
            waiting.unschedulable_count = waiting.unschedulable_count.saturating_add(1);
            waiting.error_count = 0;
        }
        (waiting.queued.queued_at, waiting.flushed_at, waiting.gate) = (now, None, None);
        let retry = self.missed(context, slot);
        self.leave(context, slot);
        match retry {
            Retry::Skip if context.has_profile(self.get(slot)) => {
                self.settle(context, slot, QueueEvent::AttemptFailed);
            }
            Retry::AfterBackoff if self.get(slot).is_backing_off(&patience, now) => {
                self.enter(context, slot, Place::Backoff, QueueEvent::AttemptFailed);
            }
            _ => {
                self.enter(context, slot, Place::Active, QueueEvent::AttemptFailed);
            }
        }
    }

    /// Whether anything that happened while a pod was tried may help it.
    fn missed(&self, context: &QueueContext<'_>, slot: Slot) -> Retry {
        let waiting = self.get(slot);
        if waiting.is_wanted || waiting.is_blameless() {
            return Retry::AfterBackoff;
        }
        let hears = |event| context.hears(waiting, event);
        let Some(heard) = self.happened.since(waiting.marker, hears) else { return Retry::AfterBackoff };
        let mut heard = heard.peekable();
        if heard.peek().is_some() && context.is_in_vain(waiting) {
            return Retry::Skip;
        }
        let most = if waiting.pending.is_empty() { Retry::AfterBackoff } else { Retry::Immediately };
        let mut retry = Retry::Skip;
        while retry < most
            && let Some(happening) = heard.next()
        {
            retry = retry.max(context.retry(waiting, happening));
        }
        retry
    }

    /// Takes a pod back into the books as one that is being tried, to be put back.
    pub(super) fn restore(&mut self, mut waiting: Box<Waiting>) -> Slot {
        let marker = self.happened.next();
        (waiting.marker, waiting.place) = (marker, Place::InFlight);
        // As upstream, a pod that has left the books may have missed what helps it: it is tried again, whoever rejected it.
        waiting.is_wanted = true;
        // Its binding took the place of what was to be said, and what was told meanwhile was not heard.
        waiting.said.doubt();
        let uid = waiting.queued.pod.uid.clone();
        let slot = self.occupy(waiting);
        self.in_flight.insert((marker, slot));
        self.by_uid.insert(uid, slot);
        slot
    }

    fn occupy(&mut self, waiting: Box<Waiting>) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.pods[slot] = Some(waiting);
                slot
            }
            None => {
                self.pods.push(Some(waiting));
                self.pods.len() - 1
            }
        }
    }

    /// Tries the pods again that something that happened may help, of those that `concerned` names.
    pub(super) fn react(
        &mut self,
        context: &QueueContext<'_>,
        happening: Happening,
        concerned: impl Fn(&Pod) -> bool,
    ) {
        let waiting = self.hearing(context, &happening);
        for slot in waiting {
            let waiting = self.get(slot);
            let is_shut = waiting.gate.is_some_and(|gate| !context.opens(gate, waiting, happening.event));
            if is_shut || !concerned(&waiting.queued.pod) {
                continue;
            }
            let retry = context.retry(waiting, &happening);
            if retry != Retry::Skip {
                self.requeue(context, slot, retry, QueueEvent::Cluster(happening.event));
            }
        }
        if !self.in_flight.is_empty() {
            self.happened.keep(happening);
        }
    }

    /// Whether such an event may help a pod that waits, or one that is being tried.
    pub(super) fn is_anybody_helped_by(&self, context: &QueueContext<'_>, event: ClusterEvent) -> bool {
        let mut waiting = self.idle.examples().map(|slot| self.get(slot));
        !self.in_flight.is_empty() || waiting.any(|waiting| context.may_help(waiting, event))
    }

    /// Does what is due. Returned are pods that wait and do not say why, because it could not be written.
    pub(super) fn advance(&mut self, context: &QueueContext<'_>) -> Vec<Slot> {
        let now = context.now();
        for place in [Place::Backoff, Place::ErrorBackoff] {
            while let Some(first) = self.heap(place).first()
                && !self.get(first).is_backing_off(&self.patience, now)
            {
                let slot = if place == Place::Backoff { self.first_in_backoff(context) } else { None };
                let slot = slot.unwrap_or(first);
                self.leave(context, slot);
                self.push(context, slot, Place::Active, QueueEvent::BackoffComplete);
            }
        }
        if self.next_flush.is_some_and(|due| due <= now) {
            self.next_flush = None;
            let waits_since =
                |waiting: &Waiting| waiting.queued.queued_at.max(waiting.flushed_at.unwrap_or_default());
            let limit = self.patience.max_unschedulable;
            let is_due = |waiting: &Waiting| now.since(waits_since(waiting)) > limit;
            let due: Vec<Slot> = self.idle_slots().filter(|slot| is_due(self.get(*slot))).collect();
            for slot in due {
                self.get_mut(slot).flushed_at = Some(now);
                self.requeue(context, slot, Retry::AfterBackoff, QueueEvent::UnschedulableTimeout);
            }
            self.plan_flush(now);
            return self.take_unwritten();
        }
        Vec::new()
    }

    /// When [`Queue::advance`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let backoff = [&self.backoff, &self.error_backoff].into_iter().filter_map(|heap| {
            let end = self.get(heap.first()?).backoff_end(&self.patience);
            Some(Timestamp::from_seconds(end.unwrap_or(0) + 1))
        });
        backoff.chain(self.next_flush).min()
    }

    fn requeue(&mut self, context: &QueueContext<'_>, slot: Slot, retry: Retry, event: QueueEvent) {
        self.leave(context, slot);
        let waits = self.get(slot).is_backing_off(&self.patience, context.now());
        let place = if retry == Retry::AfterBackoff && waits { Place::Backoff } else { Place::Active };
        self.enter(context, slot, place, event);
    }

    /// Puts a pod among those that wait, or are tried next, unless a gate holds it back.
    fn enter(&mut self, context: &QueueContext<'_>, slot: Slot, place: Place, event: QueueEvent) {
        let gate = context.gate(self.get(slot));
        let waiting = self.get_mut(slot);
        let before = std::mem::replace(&mut waiting.gate, gate);
        match gate {
            None => self.push(context, slot, place, event),
            Some(gate) => {
                if let Gate::Plugin(name) = gate {
                    waiting.rejectors.insert(name);
                }
                if before != Some(gate) && context.is_told(gate, self.get(slot)) {
                    self.newly_held.push(slot);
                }
                self.settle(context, slot, event);
            }
        }
    }

    /// Lets a pod wait for something to happen.
    fn settle(&mut self, context: &QueueContext<'_>, slot: Slot, event: QueueEvent) {
        self.note(QueuePart::Unschedulable, event);
        self.standings.note(slot);
        self.get_mut(slot).place = Place::Unschedulable;
        self.add_idle(context, slot);
        self.plan_flush(context.now());
    }

    fn plan_flush(&mut self, now: Timestamp) {
        if self.next_flush.is_none() && !self.idle.is_empty() {
            self.next_flush = Some(now.after(FLUSH_INTERVAL));
        }
    }

    fn push(&mut self, context: &QueueContext<'_>, slot: Slot, place: Place, event: QueueEvent) {
        self.note(if place == Place::Active { QueuePart::Active } else { QueuePart::Backoff }, event);
        self.standings.note(slot);
        self.arrivals += 1;
        let arrival = self.arrivals;
        let waiting = self.get_mut(slot);
        waiting.arrival = arrival;
        if place == Place::Active {
            waiting.queued.first_attempt_at.get_or_insert(context.now());
        }
        waiting.place =
            if place == Place::Backoff && waiting.is_blameless() { Place::ErrorBackoff } else { place };
        match waiting.place {
            Place::Active => self.with_active(slot, context, |heap, entry, less| heap.push(entry, less)),
            Place::ErrorBackoff => self.with_errors(slot, |heap, entry, less| heap.push(entry, less)),
            _ => self.with_backoff(slot, context, |heap, entry, less| heap.push(entry, less)),
        }
    }

    /// Takes a pod out of wherever it is.
    fn leave(&mut self, context: &QueueContext<'_>, slot: Slot) {
        let waiting = self.get(slot);
        let marker = waiting.marker;
        match waiting.place {
            Place::Active => self.leave_active(slot, context),
            Place::Backoff => self.with_backoff(slot, context, |heap, _, less| _ = heap.remove(slot, less)),
            Place::ErrorBackoff => self.with_errors(slot, |heap, _, less| _ = heap.remove(slot, less)),
            Place::Unschedulable => self.remove_idle(slot),
            Place::InFlight => {
                self.in_flight.remove(&(marker, slot));
                let needed = self.in_flight.first().map_or(u64::MAX, |(marker, _)| *marker);
                self.happened.forget_before(needed);
            }
        }
    }

    fn note(&mut self, queue: QueuePart, event: QueueEvent) {
        self.observations.note(Observation::Queued { queue, event, pods: 1 });
    }

    fn heap(&self, place: Place) -> &Heap {
        if place == Place::Backoff { &self.backoff } else { &self.error_backoff }
    }
}

fn at(pods: &[Option<Box<Waiting>>], slot: Slot) -> &Waiting {
    pods[slot].as_deref().expect("slots in use are filled")
}
