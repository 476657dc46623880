//! From a decision to a bound pod: Reserve and Permit at once, then waiting for leave, PreBind, Bind and PostBind, one step
//! after the other as their news come in.

mod reporting;

use std::sync::Arc;

use supercargo_framework::{
    ClusterEvent, CycleState, Effect, ExtenderQuestion, GoDuration, News, Nomination, Notice, PermitDecision,
    Plan, PodsToActivate, Point, Profile, Status, Step,
};
use supercargo_model::{Pod, Row, Timestamp};

use super::attempts::Failure;
use super::happenings::Happening;
use super::heap::Slot;
use super::observations::Observation;
use super::queue::Waiting;
use super::{Scheduler, Waiter};

/// Nobody may keep a pod waiting for longer, whatever it says.
const MAX_PERMIT_WAIT: std::time::Duration = std::time::Duration::from_secs(15 * 60);

/// An extender that the configuration does not have any more. What it does is waited for, but nobody takes its place.
const FORMER_EXTENDER: usize = usize::MAX;

/// A pod on its way to a node.
#[derive(Debug)]
pub(super) struct Binding {
    pod: Arc<Pod>,
    node: Arc<str>,
    stage: Stage,
    /// When the stage began; binding by an extender and by a plugin is one.
    began: Timestamp,
    /// Whether it had to wait for leave.
    has_waited: bool,
    /// What plugins left in the cycle.
    state: CycleState,
    place: QueuePlace,
    /// Whose plugins bring it there, if those are others than the ones that schedule now.
    pub(super) profile: Option<Arc<Profile>>,
}

/// Where the pod's entry of the queue is.
#[derive(Debug)]
enum QueuePlace {
    /// In the queue, as one that is being tried: whatever happens may matter to it.
    InFlight(Slot),
    /// Here. From now on the pod only fails if something breaks.
    Held(Box<Waiting>),
}

#[derive(Debug)]
enum Stage {
    /// Waits until all these have allowed it.
    Permit(Vec<PermitWait>),
    PreBind(usize, Pause),
    /// This extender is asked to bind the pod.
    Extender(usize),
    Bind(usize, Pause),
}

#[derive(Debug)]
struct PermitWait {
    plugin: &'static str,
    timeout: std::time::Duration,
    deadline: Timestamp,
}

/// What a step waits for.
#[derive(Debug, Default)]
struct Pause {
    /// How many of its orders are not carried out yet.
    orders: usize,
    events: Vec<ClusterEvent>,
    deadline: Option<Timestamp>,
}

impl Binding {
    /// When it is resumed at the latest.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Permit(waits) => waits.iter().map(|wait| wait.deadline).min(),
            Stage::PreBind(_, pause) | Stage::Bind(_, pause) => pause.deadline,
            Stage::Extender(_) => None,
        }
    }

    /// Whether it waits for something to happen.
    pub(super) fn listens(&self) -> bool {
        self.pause().is_some_and(|pause| !pause.events.is_empty())
    }

    /// Makes it go on with the plugins that it began with, which `find` finds by the pod's scheduler.
    pub(super) fn leave_to(&mut self, find: impl FnOnce(&str) -> Option<Arc<Profile>>) {
        if self.profile.is_none() {
            self.profile = find(&self.pod.spec.scheduler_name);
        }
        if let Stage::Extender(extender) = &mut self.stage {
            *extender = FORMER_EXTENDER;
        }
    }

    /// Whether nobody outside has been asked to bind the pod yet.
    pub(super) fn can_be_stopped(&self) -> bool {
        matches!(self.stage, Stage::Permit(_) | Stage::PreBind(..))
    }

    fn pause(&self) -> Option<&Pause> {
        match &self.stage {
            Stage::Permit(_) | Stage::Extender(_) => None,
            Stage::PreBind(_, pause) | Stage::Bind(_, pause) => Some(pause),
        }
    }
}

impl Scheduler {
    /// Gives a pod a node: sets aside what it needs, and lets it go there as soon as all allow it.
    pub(super) fn place(&mut self, slot: Slot, row: Row, now: Timestamp) {
        let pod = self.queue.get(slot).queued.pod.clone();
        let node = self.engine.cluster.snapshot().node(row).name().clone();
        let mut state = self.engine.prepare(&pod, now);
        let began = self.stopwatch.read();
        let reserved = self.reserve(&pod, row, &mut state, now);
        self.observe_at_once(Point::Reserve, &pod, &reserved, began);
        let permitted = reserved.and_then(|()| {
            let began = self.stopwatch.read();
            let permitted = self.permit(&pod, row, &mut state, now);
            self.observe_at_once(Point::Permit, &pod, &permitted, began);
            permitted
        });
        let waits = match permitted {
            Ok(waits) => waits,
            Err(failure) => {
                self.unreserve(&pod, row, &mut state, now);
                self.fail_placed(slot, failure, now);
                return;
            }
        };
        if let Err(error) = self.engine.assume(&pod, row) {
            self.unreserve(&pod, row, &mut state, now);
            self.fail_placed(slot, Failure::error(error.to_string()), now);
            return;
        }
        self.assumed.insert(pod.uid.clone());
        if (!waits.is_empty() || self.has_plans(&pod, row, &mut state, now))
            && pod.nominated_node_name() != Some(&node)
        {
            // It may take a while until the pod is bound; whoever plans around it should know.
            let nomination = Nomination::Node(node.clone());
            self.order(Effect::UpdateStatus { pod: pod.clone(), condition: None, nomination });
        }
        let uid = pod.uid.clone();
        let has_waited = !waits.is_empty();
        if has_waited {
            let plugins = waits.iter().map(|wait| wait.plugin).collect();
            self.observe(Observation::PermitAwaited { pod: pod.clone(), plugins });
        }
        let (stage, place) = (Stage::Permit(waits), QueuePlace::InFlight(slot));
        let binding = Binding { pod, node, stage, began: now, has_waited, state, place, profile: None };
        self.bindings.insert(uid.clone(), binding);
        self.go_on(&uid, None, now);
    }

    fn reserve(
        &mut self,
        pod: &Arc<Pod>,
        row: Row,
        state: &mut CycleState,
        now: Timestamp,
    ) -> Result<(), Failure> {
        self.engine.with_cycle(pod, state, now, |profile, cycle, memories| {
            let node = cycle.cluster().node(row);
            for named in profile.reserve.iter().filter(|named| concerns(profile, named.name, pod)) {
                let status = named.plugin.reserve(cycle, memories, node);
                if !status.is_success() {
                    return Err(failure(&status, named.name, "Reserve"));
                }
            }
            Ok(())
        })
    }

    fn unreserve(&mut self, pod: &Arc<Pod>, row: Row, state: &mut CycleState, now: Timestamp) {
        self.unreserve_by(None, pod, row, state, now);
    }

    fn unreserve_by(
        &mut self,
        profile: Option<&Profile>,
        pod: &Arc<Pod>,
        row: Row,
        state: &mut CycleState,
        now: Timestamp,
    ) {
        self.engine.with_cycle_of(profile, pod, state, now, |profile, cycle, memories| {
            let node = cycle.cluster().node(row);
            for named in profile.reserve.iter().rev().filter(|named| concerns(profile, named.name, pod)) {
                named.plugin.unreserve(cycle, memories, node);
            }
        });
    }

    /// Asks for leave; what is left are those that want the pod to wait.
    fn permit(
        &mut self,
        pod: &Arc<Pod>,
        row: Row,
        state: &mut CycleState,
        now: Timestamp,
    ) -> Result<Vec<PermitWait>, Failure> {
        let mut waits = Vec::new();
        let mut words = Vec::new();
        let result = self.engine.with_cycle(pod, state, now, |profile, cycle, memories| {
            let node = cycle.cluster().node(row);
            for named in profile.permit.iter().filter(|named| concerns(profile, named.name, pod)) {
                let result = named.plugin.permit(cycle, memories, node);
                words.extend(result.waiting.into_iter().map(|(uid, decision)| (uid, named.name, decision)));
                match result.decision {
                    PermitDecision::Allow => {}
                    PermitDecision::Wait { timeout } => {
                        let timeout = timeout.min(MAX_PERMIT_WAIT);
                        let deadline = now.after(timeout);
                        waits.push(PermitWait { plugin: named.name, timeout, deadline });
                    }
                    PermitDecision::Reject(status) => return Err(failure(&status, named.name, "Permit")),
                }
            }
            Ok(())
        });
        for (uid, plugin, decision) in words {
            self.decide_for_waiting(&uid, plugin, decision, now);
        }
        result.map(|()| waits)
    }

    /// A plugin's word on a pod that waits for its leave.
    fn decide_for_waiting(
        &mut self,
        uid: &Arc<str>,
        plugin: &'static str,
        decision: PermitDecision,
        now: Timestamp,
    ) {
        let Some(binding) = self.bindings.get_mut(uid) else { return };
        let Stage::Permit(waits) = &mut binding.stage else { return };
        match decision {
            PermitDecision::Wait { .. } => {}
            PermitDecision::Reject(status) => {
                self.fail_binding(uid, Failure::rejected(plugin, &status.message()), now);
            }
            PermitDecision::Allow => {
                waits.retain(|wait| wait.plugin != plugin);
                self.go_on(uid, None, now);
            }
        }
    }

    fn has_plans(&mut self, pod: &Arc<Pod>, row: Row, state: &mut CycleState, now: Timestamp) -> bool {
        self.engine.with_cycle(pod, state, now, |profile, cycle, _| {
            let node = cycle.cluster().node(row);
            let concerned = profile.pre_bind.iter().filter(|named| concerns(profile, named.name, pod));
            concerned.map(|named| named.plugin.plan(cycle, node)).any(|plans: Vec<Plan>| !plans.is_empty())
        })
    }

    /// Takes a binding as far as it goes without waiting, beginning with the news of what it waited for.
    fn go_on(&mut self, uid: &Arc<str>, mut news: Option<News<'_>>, now: Timestamp) {
        loop {
            let Some(binding) = self.bindings.get_mut(uid) else { return };
            if let Stage::Permit(waits) = &binding.stage {
                if !waits.is_empty() {
                    return;
                }
                let (waited, took) = (binding.has_waited, now.since(binding.began));
                (binding.stage, binding.began) = (Stage::PreBind(0, Pause::default()), now);
                self.activate_wanted(uid, now);
                let binding = self.bindings.get_mut(uid).expect("it was just there");
                if let QueuePlace::InFlight(_) = binding.place {
                    let waiting = self.with_house(now, |queue, house| queue.remove(house, uid));
                    let waiting = waiting.expect("a pod that is being tried is in the queue's books");
                    let binding = self.bindings.get_mut(uid).expect("it was just there");
                    binding.place = QueuePlace::Held(waiting);
                }
                if waited {
                    self.observe(Observation::PermitWaited { result: "Success", took });
                }
                continue;
            }
            if let Stage::Extender(from) = binding.stage {
                let (pod, node) = (binding.pod.clone(), binding.node.clone());
                let extender = self.binder(from, &pod);
                if let Some(binding) = self.bindings.get_mut(uid) {
                    binding.stage = extender.map_or(Stage::Bind(0, Pause::default()), Stage::Extender);
                }
                if let Some(extender) = extender {
                    let question = ExtenderQuestion::Bind { pod, node };
                    self.order_and_wait(Effect::Ask { extender, question }, Waiter::Binding(uid.clone()));
                    return;
                }
                continue;
            }
            match self.step(uid, news.take(), now) {
                Stepped::On => {}
                Stepped::Bound => return self.bound(uid, now),
                Stepped::Failed(failure) => return self.fail_binding(uid, failure, now),
                Stepped::Waits(effects) => {
                    for effect in effects {
                        self.order_and_wait(effect, Waiter::Binding(uid.clone()));
                    }
                    return;
                }
            }
        }
    }

    /// Does one step of a binding.
    fn step(&mut self, uid: &Arc<str>, news: Option<News<'_>>, now: Timestamp) -> Stepped {
        let binding = self.bindings.get_mut(uid).expect("its caller has just seen it");
        let (pod, node) = (binding.pod.clone(), binding.node.clone());
        let Some(row) = self.engine.cluster.snapshot().row_of(&node) else {
            return Stepped::Failed(Failure::error(format!("node {node:?} not found")));
        };
        let mut state = std::mem::take(&mut binding.state);
        let profile = binding.profile.clone();
        let (began, was_pre_bind) = (binding.began, matches!(binding.stage, Stage::PreBind(..)));
        let stage = &mut binding.stage;
        let stepped =
            self.engine.with_cycle_of(profile.as_deref(), &pod, &mut state, now, |profile, cycle, _| {
                let node = cycle.cluster().node(row);
                let (number, step, name) = match &*stage {
                    Stage::Permit(_) | Stage::Extender(_) => unreachable!("its caller takes care of these"),
                    Stage::PreBind(number, _) => {
                        let Some(named) = profile.pre_bind.get(*number) else {
                            *stage = Stage::Extender(0);
                            return Stepped::On;
                        };
                        let step = match &news {
                            _ if !concerns(profile, named.name, &pod) => Step::Done(Status::skip()),
                            None => named.plugin.pre_bind(cycle, node),
                            Some(news) => named.plugin.resume(cycle, node, news),
                        };
                        (*number, step, named.name)
                    }
                    Stage::Bind(number, _) => {
                        let Some(named) = profile.bind.get(*number) else {
                            let error = "no Bind plugin took the pod; enable DefaultBinder as the last one";
                            return Stepped::Failed(Failure::error(error.to_owned()));
                        };
                        let step = match &news {
                            None => named.plugin.bind(cycle, node),
                            Some(news) => named.plugin.resume(cycle, node, news),
                        };
                        (*number, step, named.name)
                    }
                };
                let is_bind = matches!(stage, Stage::Bind(..));
                let at = |number, pause| {
                    if is_bind { Stage::Bind(number, pause) } else { Stage::PreBind(number, pause) }
                };
                match step {
                    Step::Done(status) if status.is_success() && is_bind => Stepped::Bound,
                    Step::Done(status) if status.is_success() || status.is_skip() => {
                        *stage = at(number + 1, Pause::default());
                        Stepped::On
                    }
                    Step::Done(status) => {
                        Stepped::Failed(failure(&status, name, if is_bind { "Bind" } else { "PreBind" }))
                    }
                    Step::Wait { effects, events, deadline } => {
                        *stage = at(number, Pause { orders: effects.len(), events, deadline });
                        Stepped::Waits(effects)
                    }
                }
            });
        let binding = self.bindings.get_mut(uid).expect("a step does not end its binding");
        binding.state = state;
        if was_pre_bind && matches!(binding.stage, Stage::Extender(_)) {
            binding.began = now;
            self.observe_point(Point::PreBind, &pod, "Success", now.since(began));
        }
        stepped
    }

    /// An order of a step was carried out, or could not be.
    pub(super) fn conclude_step(&mut self, uid: &Arc<str>, result: Result<(), String>, now: Timestamp) {
        let Some(binding) = self.bindings.get_mut(uid) else { return };
        if let Stage::Extender(extender) = binding.stage {
            return self.conclude_extender(uid, extender, result, now);
        }
        let (Stage::PreBind(_, pause) | Stage::Bind(_, pause)) = &mut binding.stage else { return };
        pause.orders = pause.orders.saturating_sub(1);
        match result {
            Err(error) => self.go_on(uid, Some(News::Failed { error: &error }), now),
            Ok(()) if pause.orders == 0 => self.go_on(uid, Some(News::Succeeded), now),
            Ok(()) => {}
        }
    }

    /// An extender has bound the pod, or not.
    fn conclude_extender(
        &mut self,
        uid: &Arc<str>,
        extender: usize,
        result: Result<(), String>,
        now: Timestamp,
    ) {
        match result {
            Ok(()) => self.bound(uid, now),
            Err(_) if self.is_ignorable(extender) => {
                if let Some(binding) = self.bindings.get_mut(uid) {
                    binding.stage = Stage::Extender(extender + 1);
                }
                self.go_on(uid, None, now);
            }
            Err(error) => self.fail_binding(uid, Failure::error(error), now),
        }
    }

    /// Tells the steps that wait for it that something happened.
    pub(super) fn resume_bindings(&mut self, happening: &Happening, now: Timestamp) {
        let waits = |binding: &Binding| {
            binding.pause().is_some_and(|pause| {
                pause.orders == 0 && pause.events.iter().any(|event| event.covers(&happening.event))
            })
        };
        let waiting = self.bindings.iter().filter(|(_, binding)| waits(binding));
        let waiting: Vec<Arc<str>> = waiting.map(|(uid, _)| uid.clone()).collect();
        for uid in waiting {
            self.go_on(&uid, Some(News::Changed(happening.what.change())), now);
        }
    }

    /// A pod has waited too long, for leave or for what a step waits for.
    pub(super) fn time_out(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(binding) = self.bindings.get(uid) else { return };
        let Stage::Permit(waits) = &binding.stage else {
            return self.go_on(uid, Some(News::TimedOut), now);
        };
        if let Some(wait) = waits.iter().find(|wait| wait.deadline <= now) {
            let PermitWait { plugin, timeout, .. } = *wait;
            let timeout = GoDuration(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
            let message = format!("rejected due to timeout after waiting {timeout} at plugin {plugin}");
            self.fail_binding(uid, Failure::rejected(plugin, &message), now);
        }
    }

    /// Tries the pods that plugins want to be tried.
    fn activate_wanted(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(binding) = self.bindings.get_mut(uid) else { return };
        let PodsToActivate(wanted) = binding.state.take();
        self.activate(&wanted, now);
    }

    fn activate(&mut self, wanted: &[Arc<str>], now: Timestamp) {
        for uid in wanted {
            self.with_house(now, |queue, house| queue.activate(house, uid));
        }
    }

    fn bound(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(mut binding) = self.bindings.swap_remove(uid) else { return };
        self.observe_bound(&binding, now);
        let (pod, node) = (binding.pod, binding.node);
        self.record(Notice {
            reporter: Arc::from(&*pod.spec.scheduler_name),
            is_warning: false,
            reason: "Scheduled",
            action: "Binding",
            note: format!("Successfully assigned {} to {node}", pod.key()),
            related: None,
            pod: pod.clone(),
        });
        let Some(row) = self.engine.cluster.snapshot().row_of(&node) else { return };
        let (profile, began) = (binding.profile.as_deref(), self.stopwatch.read());
        self.engine.with_cycle_of(profile, &pod, &mut binding.state, now, |profile, cycle, memories| {
            let node = cycle.cluster().node(row);
            for named in profile.post_bind.iter().filter(|named| concerns(profile, named.name, &pod)) {
                named.plugin.post_bind(cycle, memories, node);
            }
        });
        self.observe_point(Point::PostBind, &pod, "Success", self.stopwatch.since(began));
        let PodsToActivate(wanted) = binding.state.take();
        self.activate(&wanted, now);
    }

    /// Takes back everything that was done for a pod which will not go to its node after all, and puts it back into the
    /// queue.
    pub(super) fn fail_binding(&mut self, uid: &str, failure: Failure, now: Timestamp) {
        self.observe_failed(uid, &failure, now);
        let Some((pod, place)) = self.take_back(uid, now) else { return };
        let slot = match place {
            QueuePlace::InFlight(slot) => slot,
            QueuePlace::Held(waiting) => self.queue.restore(waiting),
        };
        // Room became free. As upstream, a pod that was rejected is not to be woken by its own leaving.
        if failure.is_rejected {
            self.fail_placed(slot, failure, now);
            let own = uid.to_owned();
            self.room_freed(pod, now, move |waiting| *waiting.uid != *own);
        } else {
            self.room_freed(pod, now, |_| true);
            self.fail_placed(slot, failure, now);
        }
    }

    /// The same for a pod that is going away.
    pub(super) fn abandon(&mut self, uid: &str, now: Timestamp) {
        self.assumed.remove(uid);
        if let Some((pod, _)) = self.take_back(uid, now) {
            self.with_house(now, |queue, house| queue.remove(house, uid));
            self.room_freed(pod, now, |_| true);
        } else if let Some(pod) = self.engine.cluster.remove_pod(uid) {
            self.pod_left(pod, now);
        }
    }

    fn take_back(&mut self, uid: &str, now: Timestamp) -> Option<(Arc<Pod>, QueuePlace)> {
        let mut binding = self.bindings.swap_remove(uid)?;
        self.assumed.remove(uid);
        let bound = self.engine.cluster.remove_pod(uid).unwrap_or_else(|| binding.pod.clone());
        if let Some(row) = self.engine.cluster.snapshot().row_of(&binding.node) {
            self.unreserve_by(binding.profile.as_deref(), &binding.pod, row, &mut binding.state, now);
        }
        Some((bound, binding.place))
    }

    fn room_freed(&mut self, pod: Arc<Pod>, now: Timestamp, concerned: impl Fn(&Pod) -> bool) {
        let event = ClusterEvent::pod(supercargo_framework::Actions::DELETE);
        let what = super::happenings::What::Pod { old: Some(pod), new: None };
        self.happened_to(Happening { event, what }, now, concerned);
    }

    /// Takes note of a newer state of a pod that is on its way.
    pub(super) fn refresh_binding(&mut self, pod: &Arc<Pod>) {
        if let Some(Binding { place: QueuePlace::Held(waiting), .. }) = self.bindings.get_mut(&pod.uid) {
            waiting.queued.pod = pod.clone();
        }
    }
}

/// How far a step has come.
enum Stepped {
    /// There is another one.
    On,
    Bound,
    Failed(Failure),
    /// It waits, also for these to be carried out.
    Waits(Vec<Effect>),
}

/// What follows from a plugin's no.
fn failure(status: &Status, plugin: &'static str, point: &str) -> Failure {
    if status.is_rejected() {
        Failure::rejected(plugin, &status.message())
    } else {
        Failure::error(format!("running {point} plugin {plugin:?}: {}", status.message()))
    }
}

fn concerns(profile: &Profile, plugin: &str, pod: &Pod) -> bool {
    profile.plugins().iter().any(|known| known.name == plugin && known.concerns(pod))
}
