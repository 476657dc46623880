//! Which order is carried out next.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_api::EventCall;
use supercargo_engine::{Order, Ticket};
use supercargo_framework::{Conclusion, Effect, Nomination, Notice, PodCondition};
use supercargo_model::{KindId, ObjectKey, Pod, Timestamp};

/// How many bindings are made at a time.
const BINDINGS_WINDOW: usize = 64;
/// How many pods are looked up at a time.
const LOOK_UPS_WINDOW: usize = 16;
/// How many statuses are changed at a time.
const STATUSES_WINDOW: usize = 16;
/// How many other changes are made at a time.
const WRITES_WINDOW: usize = 16;
/// How many events are told at a time when there is nothing else to do. A pod that comes meanwhile waits behind them in the API server, so
/// they are few as long as that is quick enough.
const EVENTS_WINDOW: usize = 8;
/// If more events than this wait, more are told at a time.
const EVENTS_FEW_MAX: usize = 500;
/// How many are told at a time then.
const EVENTS_WINDOW_MANY: usize = 32;
/// How many while there are bindings to make: a trickle.
const EVENTS_WINDOW_BUSY: usize = 1;
/// If more events than this wait, they get as much room as the bindings, or the last would come too late.
const EVENTS_PATIENT_MAX: usize = 3000;
/// How many are told at a time then.
const EVENTS_WINDOW_PRESSING: usize = BINDINGS_WINDOW;
/// So many bindings are taken. A driver that asks whether there is room never comes near.
const BINDINGS_QUEUED_MAX: usize = 1 << 17;
/// So many pods wait to be looked up. Each belongs to a binding that does not end before.
const LOOK_UPS_QUEUED_MAX: usize = BINDINGS_QUEUED_MAX;
/// The statuses of so many pods wait at most; then the oldest is left out, and the scheduler has it written again.
const STATUSES_QUEUED_MAX: usize = 1 << 14;
/// So many other changes wait at most.
const WRITES_QUEUED_MAX: usize = 1 << 14;
/// So many events wait at most; then the oldest is lost.
const EVENTS_QUEUED_MAX: usize = 1 << 15;

/// The orders that wait, and which are being carried out.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pods: FxHashMap<Arc<str>, PodLane>,
    /// UIDs of pods that may be bound now.
    bindings: VecDeque<Arc<str>>,
    /// UIDs of pods whose status may be changed now. Some may be here in vain, or twice.
    statuses: VecDeque<Arc<str>>,
    statuses_waiting: usize,
    objects: FxHashMap<Box<str>, ObjectLane>,
    /// Objects that may be changed now.
    writes: VecDeque<Box<str>>,
    writes_waiting: usize,
    look_ups: VecDeque<(Option<Ticket>, Arc<Pod>)>,
    events: VecDeque<(Option<Ticket>, Notice, Timestamp)>,
    event_calls: VecDeque<EventCall>,
    running: Running,
    concluded: Vec<(Ticket, Conclusion)>,
    bindings_dropped: usize,
    events_lost: u64,
}

#[derive(Debug, Default)]
struct Running {
    look_ups: usize,
    bindings: usize,
    statuses: usize,
    writes: usize,
    events: usize,
}

/// What is to be done for one pod: one thing after the other.
#[derive(Debug, Default)]
struct PodLane {
    is_running: bool,
    binding: Option<(Option<Ticket>, Arc<Pod>, Arc<str>)>,
    status: Option<StatusChange>,
}

#[derive(Debug)]
struct StatusChange {
    ticket: Option<Ticket>,
    pod: Arc<Pod>,
    condition: Option<PodCondition>,
    nomination: Nomination,
}

/// What is to be done to one object: one thing after the other.
#[derive(Debug, Default)]
struct ObjectLane {
    is_running: bool,
    waiting: VecDeque<(Option<Ticket>, Effect)>,
}

/// Something to start now.
#[derive(Debug)]
pub(super) enum Job {
    LookUp {
        ticket: Option<Ticket>,
        pod: Arc<Pod>,
    },
    Bind {
        ticket: Option<Ticket>,
        pod: Arc<Pod>,
        node: Arc<str>,
    },
    UpdateStatus {
        ticket: Option<Ticket>,
        pod: Arc<Pod>,
        condition: Option<PodCondition>,
        nomination: Nomination,
    },
    Write {
        ticket: Option<Ticket>,
        key: Box<str>,
        effect: Effect,
    },
    Event {
        ticket: Option<Ticket>,
        notice: Notice,
        at: Timestamp,
    },
    EventCall(EventCall),
}

/// What a job that was started belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Pods that are looked up.
    LookUps,
    /// The binding of the pod with this UID.
    Bindings(Arc<str>),
    /// The status of the pod with this UID.
    Statuses(Arc<str>),
    /// Changes of this object.
    Writes(Box<str>),
    /// Events.
    Events,
}

impl Queues {
    /// Takes an order.
    pub(super) fn push(&mut self, Order { ticket, effect }: Order, now: Timestamp) {
        match effect {
            Effect::Bind { pod, node } => self.push_binding(ticket, pod, node),
            Effect::UpdateStatus { pod, condition, nomination } => {
                self.push_status(StatusChange { ticket, pod, condition, nomination });
            }
            Effect::Record(notice) => {
                self.events.push_back((ticket, notice, now));
                if self.events.len() > EVENTS_QUEUED_MAX {
                    let oldest = self.events.pop_front();
                    self.events_lost += 1;
                    self.conclude(oldest.and_then(|(ticket, ..)| ticket), not_done("too many events wait"));
                }
            }
            Effect::LookUp { pod } => self.push_look_up(ticket, pod),
            Effect::Ask { .. } => self.conclude(ticket, not_done("extenders are asked elsewhere")),
            Effect::Create { kind, ref namespace, ref object } => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let key = ObjectKey { namespace: namespace.clone(), name: name.into() };
                self.push_write(lane_of_object(kind, &key), ticket, effect);
            }
            Effect::Patch { kind, ref key, .. } | Effect::Delete { kind, ref key, .. } => {
                let key = lane_of_object(kind, key);
                self.push_write(key, ticket, effect);
            }
            Effect::Evict { ref victim, .. } => {
                let key = format!("pods/{}", victim.uid).into();
                self.push_write(key, ticket, effect);
            }
        }
    }

    /// Takes further requests about events.
    pub(super) fn push_calls(&mut self, calls: Vec<EventCall>) {
        self.event_calls.extend(calls);
        while self.event_calls.len() > EVENTS_QUEUED_MAX {
            self.event_calls.pop_front();
            self.events_lost += 1;
        }
    }

    /// Whether there are events to tell.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty() || !self.event_calls.is_empty()
    }

    /// The next order to carry out, if one may be started now. Events are among them only if they are to be told.
    pub(super) fn next(&mut self, tells_events: bool) -> Option<Job> {
        self.next_look_up()
            .or_else(|| self.next_binding())
            .or_else(|| self.next_write())
            .or_else(|| self.next_status())
            .or_else(|| if tells_events { self.next_event() } else { None })
    }

    /// Something that was started is over.
    pub(super) fn finished(&mut self, lane: &Lane) {
        match lane {
            Lane::Bindings(uid) => {
                self.running.bindings -= 1;
                self.free_pod(uid);
            }
            Lane::Statuses(uid) => {
                self.running.statuses -= 1;
                self.free_pod(uid);
            }
            Lane::Writes(key) => {
                self.running.writes -= 1;
                if let Entry::Occupied(mut lane) = self.objects.entry(key.clone()) {
                    lane.get_mut().is_running = false;
                    if lane.get().waiting.is_empty() {
                        lane.remove();
                    } else {
                        self.writes.push_back(key.clone());
                    }
                }
            }
            Lane::LookUps => self.running.look_ups -= 1,
            Lane::Events => self.running.events -= 1,
        }
    }

    /// Orders that are over without having been carried out.
    pub(super) fn take_concluded(&mut self) -> Vec<(Ticket, Conclusion)> {
        std::mem::take(&mut self.concluded)
    }

    /// How many bindings were given up since somebody last asked.
    pub(super) fn take_bindings_dropped(&mut self) -> usize {
        std::mem::take(&mut self.bindings_dropped)
    }

    /// How many events were lost since somebody last asked.
    pub(super) fn take_events_lost(&mut self) -> u64 {
        std::mem::take(&mut self.events_lost)
    }

    fn conclude(&mut self, ticket: Option<Ticket>, conclusion: Conclusion) {
        self.concluded.extend(ticket.map(|ticket| (ticket, conclusion)));
    }

    fn push_look_up(&mut self, ticket: Option<Ticket>, pod: Arc<Pod>) {
        if self.look_ups.len() >= LOOK_UPS_QUEUED_MAX {
            return self.conclude(ticket, not_done("too many pods wait to be looked up"));
        }
        self.look_ups.push_back((ticket, pod));
    }

    fn push_binding(&mut self, ticket: Option<Ticket>, pod: Arc<Pod>, node: Arc<str>) {
        if self.bindings.len() >= BINDINGS_QUEUED_MAX {
            self.bindings_dropped += 1;
            self.conclude(ticket, not_done("too many bindings wait for the API server"));
            return;
        }
        let uid = pod.uid.clone();
        let lane = self.pods.entry(uid.clone()).or_default();
        // What was to be said about why the pod is not bound is no longer true, and must not come after the binding.
        let outdated = lane.status.take();
        let replaced = lane.binding.replace((ticket, pod, node));
        if !lane.is_running && replaced.is_none() {
            self.bindings.push_back(uid);
        }
        if let Some((ticket, ..)) = replaced {
            self.bindings_dropped += 1;
            self.conclude(ticket, not_done("replaced by another binding of the same pod"));
        }
        if let Some(StatusChange { ticket, .. }) = outdated {
            self.statuses_waiting -= 1;
            self.conclude(ticket, not_done("the pod gets a node"));
        }
    }

    /// A newer change takes the place of one that waits, and keeps what it does not say itself: what becomes of both is what becomes of
    /// the newer one.
    fn push_status(&mut self, change: StatusChange) {
        let uid = change.pod.uid.clone();
        let lane = self.pods.entry(uid.clone()).or_default();
        if let Some(older) = &mut lane.status {
            let ticket = std::mem::replace(&mut older.ticket, change.ticket);
            older.pod = change.pod;
            if change.condition.is_some() {
                older.condition = change.condition;
            }
            if change.nomination != Nomination::Keep {
                older.nomination = change.nomination;
            }
            self.conclude(ticket, Conclusion::Done);
            return;
        }
        lane.status = Some(change);
        self.statuses_waiting += 1;
        if !lane.is_running && lane.binding.is_none() {
            self.statuses.push_back(uid);
        }
        while self.statuses_waiting > STATUSES_QUEUED_MAX {
            let Some(oldest) = self.take_status() else { break };
            self.conclude(oldest.ticket, not_done("too many changes of pods' statuses wait"));
            self.forget_if_idle(&oldest.pod.uid);
        }
    }

    fn push_write(&mut self, key: Box<str>, ticket: Option<Ticket>, effect: Effect) {
        if self.writes_waiting >= WRITES_QUEUED_MAX {
            self.conclude(ticket, not_done("too many changes wait for the API server"));
            return;
        }
        self.writes_waiting += 1;
        let lane = self.objects.entry(key.clone()).or_default();
        lane.waiting.push_back((ticket, effect));
        if !lane.is_running && lane.waiting.len() == 1 {
            self.writes.push_back(key);
        }
    }

    /// Pods that may be bound or not come first: they hold room that other pods may need.
    fn next_look_up(&mut self) -> Option<Job> {
        if self.running.look_ups >= LOOK_UPS_WINDOW {
            return None;
        }
        let (ticket, pod) = self.look_ups.pop_front()?;
        self.running.look_ups += 1;
        Some(Job::LookUp { ticket, pod })
    }

    fn next_binding(&mut self) -> Option<Job> {
        if self.running.bindings >= BINDINGS_WINDOW {
            return None;
        }
        let uid = self.bindings.pop_front()?;
        let lane = self.pods.get_mut(&uid)?;
        let (ticket, pod, node) = lane.binding.take()?;
        lane.is_running = true;
        self.running.bindings += 1;
        Some(Job::Bind { ticket, pod, node })
    }

    fn next_status(&mut self) -> Option<Job> {
        if self.running.statuses >= STATUSES_WINDOW {
            return None;
        }
        let StatusChange { ticket, pod, condition, nomination } = self.take_status()?;
        if let Some(lane) = self.pods.get_mut(&pod.uid) {
            lane.is_running = true;
        }
        self.running.statuses += 1;
        Some(Job::UpdateStatus { ticket, pod, condition, nomination })
    }

    /// The oldest change of a status that nothing else for its pod goes before.
    fn take_status(&mut self) -> Option<StatusChange> {
        while let Some(uid) = self.statuses.pop_front() {
            let Some(lane) = self.pods.get_mut(&uid) else { continue };
            if lane.is_running || lane.binding.is_some() {
                continue;
            }
            if let Some(change) = lane.status.take() {
                self.statuses_waiting -= 1;
                return Some(change);
            }
        }
        None
    }

    fn next_write(&mut self) -> Option<Job> {
        if self.running.writes >= WRITES_WINDOW {
            return None;
        }
        let key = self.writes.pop_front()?;
        let lane = self.objects.get_mut(&key)?;
        let (ticket, effect) = lane.waiting.pop_front()?;
        lane.is_running = true;
        self.writes_waiting -= 1;
        self.running.writes += 1;
        Some(Job::Write { ticket, key, effect })
    }

    fn next_event(&mut self) -> Option<Job> {
        if self.running.events >= self.events_window() {
            return None;
        }
        let job = match self.event_calls.pop_front() {
            Some(call) => Job::EventCall(call),
            None => {
                let (ticket, notice, at) = self.events.pop_front()?;
                Job::Event { ticket, notice, at }
            }
        };
        self.running.events += 1;
        Some(job)
    }

    fn events_window(&self) -> usize {
        if self.running.bindings == 0 {
            if self.events.len() > EVENTS_FEW_MAX { EVENTS_WINDOW_MANY } else { EVENTS_WINDOW }
        } else if self.events.len() > EVENTS_PATIENT_MAX {
            EVENTS_WINDOW_PRESSING
        } else {
            EVENTS_WINDOW_BUSY
        }
    }

    fn free_pod(&mut self, uid: &Arc<str>) {
        let Some(lane) = self.pods.get_mut(uid) else { return };
        lane.is_running = false;
        if lane.binding.is_some() {
            self.bindings.push_back(uid.clone());
        } else if lane.status.is_some() {
            self.statuses.push_back(uid.clone());
        } else {
            self.pods.remove(uid);
        }
    }

    fn forget_if_idle(&mut self, uid: &Arc<str>) {
        if let Entry::Occupied(lane) = self.pods.entry(uid.clone())
            && !lane.get().is_running
            && lane.get().binding.is_none()
            && lane.get().status.is_none()
        {
            lane.remove();
        }
    }
}

fn lane_of_object(kind: KindId, key: &ObjectKey) -> Box<str> {
    format!("{}.{}/{}/{}", kind.plural, kind.group, key.namespace, key.name).into()
}

/// An order was not carried out, and never will be.
fn not_done(error: &str) -> Conclusion {
    Conclusion::not_done(error)
}

#[cfg(test)]
mod tests;
