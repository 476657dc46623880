//! A controller: its slots, who is in them, and its times.

use std::sync::Arc;

use supercargo_framework::SharedMap;
use supercargo_model::Timestamp;

use super::Incarnation;
use super::times::{Life, Times, Together};
use crate::qos_aware::terms::{Approach, DEFAULT_SLO, Terms};

/// So many slots that nobody is in are kept at the end of a controller's list. The times of others are among the controller's own.
pub(super) const FREE_SLOTS_MAX: usize = 1_000;

/// What is known of a controller: of all pods of a namespace with one name of a controller.
#[derive(Clone, Debug)]
pub(in crate::qos_aware) struct Controller {
    /// As the pod said that came last.
    pub(in crate::qos_aware) approach: Approach,
    pub(in crate::qos_aware) slo: f64,
    pub(in crate::qos_aware) acceptable_overhead: Option<f64>,
    /// How many pods are to run at the same time.
    pub(in crate::qos_aware) replicas: u32,
    pub(in crate::qos_aware) times: Times,
    pub(in crate::qos_aware) together: Together,
    /// How many pods that are not on their way out run, wait, and are on their way to a node.
    pub(in crate::qos_aware) running: u32,
    pub(in crate::qos_aware) pending: u32,
    pub(in crate::qos_aware) allocating: u32,
    pub(in crate::qos_aware) succeeded: u64,
    /// How many pods there are, those on their way out included.
    pub(super) live: u32,
    pub(super) last_end: Timestamp,
    /// Whether somebody was told that its annotations are wrong.
    pub(super) is_warned_of: bool,
    pub(in crate::qos_aware) slots: SharedMap<u32, Slot>,
    pub(super) free: SharedMap<u32, ()>,
}

/// A place for one pod after another.
#[derive(Clone, Debug, Default)]
pub(in crate::qos_aware) struct Slot {
    /// The times of all pods that were in it.
    pub(in crate::qos_aware) times: Times,
    /// The pod that is in it, by UID.
    pub(in crate::qos_aware) current: Option<Arc<str>>,
}

impl Default for Controller {
    fn default() -> Self {
        Controller {
            approach: Approach::default(),
            slo: DEFAULT_SLO,
            acceptable_overhead: None,
            replicas: 0,
            times: Times::default(),
            together: Together::default(),
            running: 0,
            pending: 0,
            allocating: 0,
            succeeded: 0,
            live: 0,
            last_end: Timestamp::default(),
            is_warned_of: false,
            slots: SharedMap::default(),
            free: SharedMap::default(),
        }
    }
}

impl Controller {
    /// Whether there are no pods of it.
    pub(super) fn is_over(&self) -> bool {
        self.live == 0
    }

    pub(super) fn set_terms(&mut self, terms: &Terms<'_>) {
        (self.approach, self.slo) = (terms.approach, terms.slo);
        self.acceptable_overhead = terms.acceptable_overhead;
    }

    /// A pod has come, and takes the first slot that is free: its number.
    pub(super) fn arrive(&mut self, uid: &Arc<str>, created: Timestamp) -> u32 {
        let number = match self.free.first() {
            Some((number, ())) => *number,
            None => self.slots.last().map_or(0, |(last, _)| last + 1),
        };
        self.occupy(number, uid).times.arrive(created);
        self.times.arrive(created);
        self.pending += 1;
        number
    }

    /// Puts a pod into a slot.
    pub(super) fn occupy(&mut self, number: u32, uid: &Arc<str>) -> &mut Slot {
        self.free.remove(&number);
        self.live += 1;
        let slot = self.slots.get_or_default(&number);
        slot.current = Some(uid.clone());
        slot
    }

    /// A pod runs.
    pub(super) fn start(&mut self, slot: u32, life: &Life, is_terminating: bool) {
        let Some(running) = life.running else { return };
        self.change_slot(slot, |slot| slot.times.start(life));
        self.times.start(life);
        if !is_terminating {
            self.pending -= 1;
            self.running += 1;
        }
        self.change_online(running, 1);
    }

    /// A pod is on its way out: its slot is free for the one that takes its place.
    pub(super) fn release(&mut self, pod: &Incarnation) {
        if pod.life.running.is_some() {
            self.running -= 1;
        } else {
            self.pending -= 1;
        }
        self.change_slot(pod.slot, |slot| slot.current = None);
        self.free.insert(pod.slot, ());
        while self.free.len() > FREE_SLOTS_MAX
            && let Some((last, slot)) = self.slots.last()
            && slot.current.is_none()
        {
            let last = *last;
            self.slots.remove(&last);
            self.free.remove(&last);
        }
    }

    /// A pod is gone, and its slot was released.
    pub(super) fn end(&mut self, pod: &Incarnation, now: Timestamp) {
        self.change_slot(pod.slot, |slot| slot.times.end(&pod.life, now));
        self.times.end(&pod.life, now);
        if pod.life.running.is_some() {
            self.change_online(now, -1);
        }
        self.live -= 1;
        self.last_end = now;
    }

    /// What a pod ran before it ended was not in vain.
    pub(super) fn succeed(&mut self, slot: u32, ran: super::Nanoseconds) {
        self.change_slot(slot, |slot| slot.times.succeeded += ran);
        self.times.succeeded += ran;
        self.succeeded += 1;
    }

    /// Another number of pods is to run from now on.
    pub(super) fn set_replicas(&mut self, replicas: u32, now: Timestamp) {
        self.together = self.together.at(now, self.replicas);
        self.replicas = replicas;
    }

    /// So many more pods are to run from now on, or fewer.
    pub(super) fn change_replicas(&mut self, by: i64, now: Timestamp) {
        if by != 0 {
            let replicas = (i64::from(self.replicas) + by).clamp(0, i64::from(u32::MAX));
            self.set_replicas(replicas as u32, now);
        }
    }

    fn change_online(&mut self, at: Timestamp, by: i32) {
        self.together = self.together.at(at, self.replicas);
        self.together.online = self.together.online.saturating_add_signed(by);
    }

    /// Changes a slot, unless its times are no longer kept.
    fn change_slot(&mut self, number: u32, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(&number) {
            change(slot);
        }
    }
}
