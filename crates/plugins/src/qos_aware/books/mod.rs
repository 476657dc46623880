//! The books: which controllers there are, which pods they have, and how long those waited, were bound and ran.

mod controller;
mod reconciling;
mod saved;
mod times;

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{Memory, OrderChanges, SharedMap};
use supercargo_model::pod::PodPhase;
use supercargo_model::{Pod, Timestamp};

use super::terms::Terms;
pub(super) use controller::{Controller, Slot};
pub(super) use reconciling::Wanted;
pub(super) use saved::SavedBooks;
pub(super) use times::{Life, Nanoseconds, Times, between};

/// The order of waiting pods is that of the last whole multiple of this.
pub(super) const ORDER_STEP: Duration = Duration::from_millis(250);
/// So many controllers are kept. Of those that have no pods any more, the one goes first whose last pod ended first; its times are
/// among those of the forgotten ones.
pub(super) const CONTROLLERS_MAX: usize = 1_000;

/// Everything that is known of pods and their controllers.
#[derive(Clone, Debug, Default)]
pub struct Books {
    state: State,
    /// The state at a moment, before whatever has happened since: what waiting pods are sorted by until the next moment.
    ordered: Option<(Timestamp, State)>,
    /// The pod that ended last: that it succeeded is told after that it is gone.
    last_ended: Option<Ended>,
    /// How many controllers were forgotten, and their times.
    pub(super) forgotten: (u64, Times),
}

impl Memory for Books {
    const NAME: &'static str = "QosAware/Books";
    const SAVED: Option<u32> = Some(1);
}

/// The books at one moment. A clone costs nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) controllers: SharedMap<ControllerId, Controller>,
    /// By UID.
    pub(super) pods: SharedMap<Arc<str>, Incarnation>,
    owners: SharedMap<OwnerId, Owner>,
}

/// Which controller is meant: names of two namespaces are two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ControllerId {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

/// A pod.
#[derive(Clone, Debug)]
pub(super) struct Incarnation {
    pub(super) name: Arc<str>,
    pub(super) controller: ControllerId,
    pub(super) slot: u32,
    pub(super) life: Life,
    pub(super) slo: f64,
    pub(super) acceptable_overhead: Option<f64>,
    pub(super) phase: PodPhase,
    /// Whether it is on its way out.
    pub(super) is_terminating: bool,
    /// Whether it was given a node, and is not bound yet.
    is_allocating: bool,
    owner: Option<OwnerId>,
}

/// What controls pods, as Kubernetes has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerId {
    pub(super) namespace: Arc<str>,
    pub(super) kind: Arc<str>,
    pub(super) name: Arc<str>,
}

/// How many replicas an owner adds to a controller.
#[derive(Clone, Debug)]
struct Owner {
    controller: ControllerId,
    /// What it says itself, if it is of a kind that does.
    wanted: Option<u32>,
    /// How many pods it has that are not on their way out.
    pods: u32,
}

/// A pod that has ended.
#[derive(Clone, Debug)]
struct Ended {
    uid: Arc<str>,
    controller: ControllerId,
    slot: u32,
    ran: Nanoseconds,
}

impl ControllerId {
    pub(super) fn of(pod: &Pod, terms: &Terms<'_>) -> Self {
        ControllerId { namespace: pod.namespace.clone(), name: terms.controller.into() }
    }

    /// How the keys compare with the controller of a pod.
    fn compare(&self, pod: &Pod, terms: &Terms<'_>) -> Ordering {
        (*self.namespace).cmp(&*pod.namespace).then_with(|| (*self.name).cmp(terms.controller))
    }
}

impl OwnerId {
    fn of(pod: &Pod) -> Option<Self> {
        let controller = pod.controller.as_ref()?;
        let namespace = pod.namespace.clone();
        Some(OwnerId { namespace, kind: (*controller.kind).into(), name: (*controller.name).into() })
    }
}

impl Owner {
    fn replicas(&self) -> u32 {
        self.wanted.unwrap_or(self.pods)
    }
}

impl Books {
    /// The books as they are.
    pub(super) fn now(&self) -> &State {
        &self.state
    }

    /// The books at a whole multiple of [`ORDER_STEP`], which is the last one.
    pub(super) fn at(&self, moment: Timestamp) -> &State {
        match &self.ordered {
            Some((ordered, state)) if *ordered == moment => state,
            _ => &self.state,
        }
    }

    /// The books, to change them.
    fn change(&mut self, now: Timestamp) -> &mut State {
        let moment = OrderChanges::with_time(ORDER_STEP).moment(now);
        if self.ordered.as_ref().is_none_or(|(ordered, _)| *ordered != moment) {
            self.ordered = Some((moment, self.state.clone()));
        }
        &mut self.state
    }

    /// A pod has come.
    pub(super) fn arrive(&mut self, pod: &Pod, wanted: &impl Wanted, now: Timestamp) {
        self.change(now).arrive(pod, wanted, now);
        self.forget(now);
    }

    /// A pod runs, since it was bound.
    pub(super) fn start(
        &mut self,
        uid: &Arc<str>,
        binding: Option<Timestamp>,
        running: Timestamp,
        now: Timestamp,
    ) {
        self.change(now).start(uid, binding, running);
    }

    /// A pod was given a node, or is not going there any more.
    pub(super) fn allocate(&mut self, uid: &Arc<str>, is_allocating: bool, now: Timestamp) {
        self.change(now).allocate(uid, is_allocating);
    }

    /// A pod is on its way out.
    pub(super) fn release(&mut self, uid: &Arc<str>, now: Timestamp) {
        self.change(now).release(uid, now);
    }

    /// A pod is gone.
    pub(super) fn end(&mut self, uid: &Arc<str>, now: Timestamp) {
        self.last_ended = self.change(now).end(uid, now);
    }

    /// The pod that ended last had succeeded; false if it was another one.
    pub(super) fn succeed(&mut self, uid: &str, now: Timestamp) -> bool {
        let Some(ended) = self.last_ended.take().filter(|ended| *ended.uid == *uid) else { return false };
        if let Some(controller) = self.change(now).controllers.get_mut(&ended.controller) {
            controller.succeed(ended.slot, ended.ran);
        }
        true
    }

    pub(super) fn set_phase(&mut self, uid: &Arc<str>, phase: PodPhase, now: Timestamp) {
        if let Some(pod) = self.change(now).pods.get_mut(uid) {
            pod.phase = phase;
        }
    }

    /// An owner wants another number of replicas; none if it is gone.
    pub(super) fn scale(&mut self, owner: &OwnerId, wanted: Option<u32>, now: Timestamp) {
        self.change(now).scale(owner, wanted, now);
    }

    /// Whether an owner has, or had, pods that are known.
    pub(super) fn knows_owner(&self, owner: &OwnerId) -> bool {
        self.state.owners.contains_key(owner)
    }

    /// Whether somebody is to be told now that annotations of a pod are wrong: once for each controller.
    pub(super) fn is_to_warn_of(&mut self, uid: &Arc<str>) -> bool {
        let State { controllers, pods, .. } = &mut self.state;
        let controller = pods.get(uid).and_then(|pod| controllers.get_mut(&pod.controller));
        controller.is_some_and(|controller| !std::mem::replace(&mut controller.is_warned_of, true))
    }

    /// Makes room for new controllers.
    fn forget(&mut self, now: Timestamp) {
        if self.state.controllers.len() <= CONTROLLERS_MAX {
            return;
        }
        let over = self.state.controllers.iter().filter(|(_, controller)| controller.is_over());
        let first = over.min_by_key(|(_, controller)| controller.last_end).map(|(id, _)| id.clone());
        if let Some(id) = first
            && let Some(controller) = self.change(now).controllers.remove(&id)
        {
            self.forgotten.0 += 1;
            self.forgotten.1.add_ended(&controller.times);
            self.state.owners.retain(|_, owner| owner.controller != id);
        }
    }
}

impl State {
    /// The controller that a pod belongs to, whether the pod is known or not.
    pub(super) fn controller_of(&self, pod: &Pod, terms: &Terms<'_>) -> Option<&Controller> {
        Some(self.controllers.find(|id| id.compare(pod, terms))?.1)
    }

    fn arrive(&mut self, pod: &Pod, wanted: &impl Wanted, now: Timestamp) {
        debug_assert!(!self.pods.contains_key(&pod.uid), "a pod comes once");
        let terms = Terms::of(pod);
        let id = ControllerId::of(pod, &terms);
        // Clocks differ, and nobody waits before there is anybody.
        let created = pod.created_at.map_or(now, |created| created.min(now));
        let owner = OwnerId::of(pod);
        let more = owner.as_ref().map_or(1, |owner| self.add_to_owner(owner, &id, wanted));
        let controller = self.controllers.get_or_default(&id);
        controller.set_terms(&terms);
        controller.change_replicas(more, now);
        let slot = controller.arrive(&pod.uid, created);
        let incarnation = Incarnation {
            name: (*pod.name).into(),
            controller: id,
            slot,
            life: Life { created, binding: None, running: None },
            slo: terms.slo,
            acceptable_overhead: terms.acceptable_overhead,
            phase: pod.phase(),
            is_terminating: false,
            is_allocating: false,
            owner,
        };
        self.pods.insert(pod.uid.clone(), incarnation);
    }

    /// An owner has one more pod: how many more replicas it wants because of that.
    fn add_to_owner(&mut self, id: &OwnerId, controller: &ControllerId, wanted: &impl Wanted) -> i64 {
        match self.owners.get_mut(id) {
            Some(owner) => {
                owner.pods += 1;
                i64::from(owner.wanted.is_none())
            }
            None => {
                let owner = Owner { controller: controller.clone(), wanted: wanted.of(id), pods: 1 };
                let replicas = i64::from(owner.replicas());
                self.owners.insert(id.clone(), owner);
                replicas
            }
        }
    }

    fn start(&mut self, uid: &Arc<str>, binding: Option<Timestamp>, running: Timestamp) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.life.running.is_none()) else { return };
        let running = running.max(pod.life.created);
        // What was not seen to begin counts as waiting.
        pod.life.binding = binding.map(|binding| binding.clamp(pod.life.created, running));
        pod.life.running = Some(running);
        let was_allocating = std::mem::take(&mut pod.is_allocating);
        if let Some(controller) = self.controllers.get_mut(&pod.controller) {
            controller.start(pod.slot, &pod.life, pod.is_terminating);
            controller.allocating -= u32::from(was_allocating);
        }
    }

    fn allocate(&mut self, uid: &Arc<str>, is_allocating: bool) {
        let is_changed = |pod: &Incarnation| {
            pod.is_allocating != is_allocating && !pod.is_terminating && pod.life.running.is_none()
        };
        if !self.pods.get(uid).is_some_and(is_changed) {
            return;
        }
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.is_allocating = is_allocating;
        if let Some(controller) = self.controllers.get_mut(&pod.controller) {
            let by = if is_allocating { 1 } else { -1 };
            controller.allocating = controller.allocating.saturating_add_signed(by);
        }
    }

    fn release(&mut self, uid: &Arc<str>, now: Timestamp) {
        if self.pods.get(uid).is_none_or(|pod| pod.is_terminating) {
            return;
        }
        self.allocate(uid, false);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.is_terminating = true;
        let pod = pod.clone();
        if let Some(controller) = self.controllers.get_mut(&pod.controller) {
            controller.release(&pod);
        }
        match &pod.owner {
            None => self.change_replicas(&pod.controller, -1, now),
            Some(owner) => {
                self.change_owner(owner, now, |owner| owner.pods = owner.pods.saturating_sub(1));
                self.forget_owner(owner);
            }
        }
    }

    fn end(&mut self, uid: &Arc<str>, now: Timestamp) -> Option<Ended> {
        self.release(uid, now);
        let pod = self.pods.remove(uid)?;
        if let Some(controller) = self.controllers.get_mut(&pod.controller) {
            controller.end(&pod, now);
        }
        let ran = pod.life.running(now);
        Some(Ended { uid: uid.clone(), controller: pod.controller, slot: pod.slot, ran })
    }

    fn scale(&mut self, owner: &OwnerId, wanted: Option<u32>, now: Timestamp) {
        self.change_owner(owner, now, |owner| owner.wanted = wanted);
        self.forget_owner(owner);
    }

    /// Forgets an owner that has no pods and is gone, or says nothing itself.
    fn forget_owner(&mut self, id: &OwnerId) {
        if self.owners.get(id).is_some_and(|owner| owner.pods == 0 && owner.wanted.is_none()) {
            self.owners.remove(id);
        }
    }

    fn change_owner(&mut self, id: &OwnerId, now: Timestamp, change: impl FnOnce(&mut Owner)) {
        let Some(owner) = self.owners.get_mut(id) else { return };
        let before = i64::from(owner.replicas());
        change(owner);
        let (controller, after) = (owner.controller.clone(), i64::from(owner.replicas()));
        self.change_replicas(&controller, after - before, now);
    }

    fn change_replicas(&mut self, id: &ControllerId, by: i64, now: Timestamp) {
        if by != 0
            && let Some(controller) = self.controllers.get_mut(id)
        {
            controller.change_replicas(by, now);
        }
    }
}
