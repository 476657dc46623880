//! The books as they are saved: the sums of controllers, and as many of their pods as there is room for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use supercargo_framework::SAVED_MEMORY_BYTES_MAX;
use supercargo_model::Timestamp;
use supercargo_model::pod::PodPhase;

use super::times::{Life, Nanoseconds, Times, Together};
use super::{Books, Controller, ControllerId, Incarnation, Owner, OwnerId, State};
use crate::qos_aware::terms::Approach;

/// So many bytes of text are saved; what does not fit is left out, pods before controllers. There is a limit for the whole memory, and
/// something around the text.
const BYTES_MAX: usize = SAVED_MEMORY_BYTES_MAX - (16 << 10);
const NANOSECONDS_A_MICROSECOND: Nanoseconds = 1_000;

/// The books, to be written.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::qos_aware) struct SavedBooks {
    controllers: Vec<SavedController>,
    pods: Vec<SavedPod>,
    /// How many controllers were forgotten, and their times.
    forgotten: (u64, SavedTimes),
    /// How many controllers and pods did not fit.
    #[serde(skip)]
    pub(in crate::qos_aware) left_out: (usize, usize),
}

/// A controller. Of its pods that are saved, what goes on is not among the times; those that are not saved are not among them at all,
/// because they come anew.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedController {
    namespace: String,
    name: String,
    approach: Approach,
    slo: f64,
    replicas: u32,
    times: SavedTimes,
    /// In microseconds: until when, effective, discarded.
    together: (i64, i64, i64),
    succeeded: u64,
    last_end: i64,
    /// Kinds and names.
    owners: Vec<(Arc<str>, Arc<str>)>,
    /// The times of slots, where they count each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slots: Vec<(u32, SavedTimes)>,
}

/// How many pods there were; in microseconds: waited, binding, ran, succeeded.
type SavedTimes = (u64, i64, i64, i64, i64);

/// UID, number of the controller, slot; in microseconds since the epoch: created, binding, running.
type SavedPod = (Arc<str>, usize, u32, i64, Option<i64>, Option<i64>);

impl SavedBooks {
    pub(in crate::qos_aware) fn of(books: &Books) -> Self {
        let state = &books.state;
        let mut saved = SavedBooks {
            forgotten: (books.forgotten.0, saved_times(&books.forgotten.1)),
            ..SavedBooks::default()
        };
        let mut room = BYTES_MAX;
        // Those without pods go first if there is no room for all, and of them those that ended first.
        let mut controllers: Vec<(&ControllerId, &Controller)> = state.controllers.iter().collect();
        controllers.sort_by_key(|(_, it)| (it.is_over(), std::cmp::Reverse(it.last_end)));
        let mut kept: Vec<&ControllerId> = Vec::new();
        let mut owners: BTreeMap<&ControllerId, Vec<(Arc<str>, Arc<str>)>> = BTreeMap::new();
        for (id, owner) in state.owners.iter() {
            owners.entry(&owner.controller).or_default().push((id.kind.clone(), id.name.clone()));
        }
        for (id, controller) in controllers {
            let controller = SavedController::of(id, controller, owners.remove(id).unwrap_or_default());
            if fits(&controller, &mut room) {
                saved.controllers.push(controller);
                kept.push(id);
            } else {
                saved.left_out.0 += 1;
            }
        }
        let numbers: BTreeMap<&ControllerId, usize> =
            kept.into_iter().enumerate().map(|(number, id)| (id, number)).collect();
        for (uid, pod) in state.pods.iter() {
            let Some(number) = numbers.get(&pod.controller).copied() else { continue };
            let Life { created, binding, running } = pod.life;
            let line: SavedPod = (
                uid.clone(),
                number,
                pod.slot,
                microseconds(created),
                binding.map(microseconds),
                running.map(microseconds),
            );
            if !pod.is_terminating && fits(&line, &mut room) {
                saved.pods.push(line);
            } else {
                saved.left_out.1 += usize::from(!pod.is_terminating);
                saved.controllers[number].leave_out(pod);
            }
        }
        saved
    }

    fn into_books(self) -> Books {
        let mut state = State::default();
        let mut ids = Vec::with_capacity(self.controllers.len());
        for controller in self.controllers {
            let id = ControllerId {
                namespace: controller.namespace.as_str().into(),
                name: controller.name.as_str().into(),
            };
            for (kind, name) in &controller.owners {
                let (namespace, kind, name) = (id.namespace.clone(), kind.clone(), name.clone());
                let owner = Owner { controller: id.clone(), wanted: None, pods: 0 };
                state.owners.insert(OwnerId { namespace, kind, name }, owner);
            }
            state.controllers.insert(id.clone(), controller.into_controller());
            ids.push(id);
        }
        for (uid, number, slot, created, binding, running) in self.pods {
            let Some(id) = ids.get(number) else { continue };
            let Some(controller) = state.controllers.get_mut(id) else { continue };
            let (binding, running) = (binding.map(timestamp), running.map(timestamp));
            let life = Life { created: timestamp(created), binding, running };
            if controller.slots.get(&slot).is_some_and(|slot| slot.current.is_some()) {
                continue;
            }
            controller.occupy(slot, &uid).times.resume(&life);
            controller.times.resume(&life);
            let is_running = u32::from(running.is_some());
            controller.together.online += is_running;
            controller.running += is_running;
            controller.pending += 1 - is_running;
            let pod = Incarnation {
                name: Arc::default(),
                controller: id.clone(),
                slot,
                life,
                slo: controller.slo,
                acceptable_overhead: None,
                phase: PodPhase::default(),
                is_terminating: false,
                is_allocating: false,
                owner: None,
            };
            state.pods.insert(uid, pod);
        }
        for id in &ids {
            if let Some(controller) = state.controllers.get_mut(id) {
                controller.free_unused_slots();
            }
        }
        let forgotten = (self.forgotten.0, times(&self.forgotten.1));
        Books { state, forgotten, ..Books::default() }
    }
}

impl Controller {
    /// Slots that nobody is in are free, also those between the ones that are known.
    fn free_unused_slots(&mut self) {
        let end = self.slots.last().map_or(0, |(last, _)| last + 1);
        for number in 0..end {
            if self.slots.get(&number).is_none_or(|slot| slot.current.is_none()) {
                self.free.insert(number, ());
            }
        }
    }
}

impl SavedController {
    fn of(id: &ControllerId, controller: &Controller, owners: Vec<(Arc<str>, Arc<str>)>) -> Self {
        let together = &controller.together;
        let is_by_slot = controller.approach == Approach::Independent;
        let slots = controller.slots.iter().filter(|_| is_by_slot);
        SavedController {
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            approach: controller.approach,
            slo: controller.slo,
            replicas: controller.replicas,
            times: saved_times(&controller.times),
            together: (microseconds(together.since), micros(together.effective), micros(together.discarded)),
            succeeded: controller.succeeded,
            last_end: microseconds(controller.last_end),
            owners,
            slots: slots.map(|(number, slot)| (*number, saved_times(&slot.times))).collect(),
        }
    }

    /// A pod that is not saved will come anew, and bring its times.
    fn leave_out(&mut self, pod: &Incarnation) {
        let waited = pod.life.running.map_or(0, |running| micros(pod.life.waiting(running)));
        let binding = micros(pod.life.binding());
        let slot = self.slots.iter_mut().find(|(number, _)| *number == pod.slot).map(|(_, times)| times);
        for times in [Some(&mut self.times), slot].into_iter().flatten() {
            times.0 = times.0.saturating_sub(1);
            times.1 = times.1.saturating_sub(waited).max(0);
            times.2 = times.2.saturating_sub(binding).max(0);
        }
    }

    fn into_controller(self) -> Controller {
        let (since, effective, discarded) = self.together;
        let mut controller = Controller {
            approach: self.approach,
            slo: self.slo,
            replicas: self.replicas,
            times: times(&self.times),
            together: Together {
                online: 0,
                since: timestamp(since),
                effective: nanoseconds(effective),
                discarded: nanoseconds(discarded),
            },
            succeeded: self.succeeded,
            last_end: timestamp(self.last_end),
            ..Controller::default()
        };
        for (number, saved) in &self.slots {
            controller.slots.get_or_default(number).times = times(saved);
        }
        controller
    }
}

/// Whether there is room for something, which is then taken.
fn fits(value: &impl Serialize, room: &mut usize) -> bool {
    // A comma belongs to it.
    let bytes = serde_json::to_string(value).map_or(usize::MAX, |text| text.len() + 1);
    let left = room.checked_sub(bytes);
    *room = left.unwrap_or(*room);
    left.is_some()
}

fn saved_times(of: &Times) -> SavedTimes {
    (of.incarnations, micros(of.waited), micros(of.binding), micros(of.ran), micros(of.succeeded))
}

fn times(saved: &SavedTimes) -> Times {
    let (incarnations, waited, binding, ran, succeeded) = *saved;
    Times {
        incarnations,
        waited: nanoseconds(waited),
        binding: nanoseconds(binding),
        ran: nanoseconds(ran),
        succeeded: nanoseconds(succeeded),
        ..Times::default()
    }
}

fn micros(length: Nanoseconds) -> i64 {
    i64::try_from(length / NANOSECONDS_A_MICROSECOND).unwrap_or(i64::MAX)
}

fn nanoseconds(micros: i64) -> Nanoseconds {
    Nanoseconds::from(micros.max(0)) * NANOSECONDS_A_MICROSECOND
}

fn microseconds(time: Timestamp) -> i64 {
    time.nanoseconds() / 1_000
}

fn timestamp(microseconds: i64) -> Timestamp {
    Timestamp::from_nanoseconds(microseconds.saturating_mul(1_000))
}

impl Serialize for Books {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SavedBooks::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Books {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(SavedBooks::deserialize(deserializer)?.into_books())
    }
}
