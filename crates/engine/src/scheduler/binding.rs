//! From a decision to a bound pod: Reserve and Permit at once, then the wait at Permit, PreBind, Bind and PostBind, one step
//! after the other as their news come in.
//!
//! A pod that has a [`Binding`] counts as bound (it is *assumed*), and the API server has not said otherwise: whatever ends
//! that, the watch included, ends the binding first.

mod ending;
mod permitting;
mod reporting;
mod resolving;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use supercargo_framework::{
    Actions, Awaited, ClusterEvent, Conclusion, CycleState, Effect, Nomination, PermitDecision, Plan, Point,
    Profile, Status,
};
use supercargo_model::{Cluster, ObjectKey, Pod, Row, Standing, Timestamp};

use super::Scheduler;
use super::attempts::Failure;
use super::heap::Slot;
use super::observations::Observation;
use super::queue::Waiting;
use super::queue_context::profile_of;
use resolving::Unresolved;
pub(super) use steps::{Asked, undeclared};

/// A pod waits at Permit for no longer than this, whatever its plugins say.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(15 * 60);

/// How many nodes a decision was made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeCounts {
    pub(super) evaluated: usize,
    pub(super) feasible: usize,
}

/// A pod on its way to a node.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pod: Arc<Pod>,
    node: Arc<str>,
    counts: NodeCounts,
    /// Bindings are numbered in the order in which their pods were decided.
    pub(super) number: u64,
    stage: Stage,
    /// When the stage began; binding by an extender and by a plugin is one.
    began: Timestamp,
    /// Whether the pod had to wait at Permit.
    has_waited: bool,
    /// What plugins left in the cycle.
    state: CycleState,
    entry: QueueEntry,
    /// The profile whose plugins bring the pod to its node, if the configuration has changed since the decision.
    pub(super) profile: Option<Arc<Profile>>,
    /// The number of the orders that the stage waits for: answers to earlier orders come too late.
    round: u64,
    evidence: Evidence,
}

/// Where the pod's entry of the queue is.
#[derive(Clone, Debug)]
enum QueueEntry {
    /// In the queue, as one that is being tried: whatever happens may matter to it.
    InFlight,
    /// Here. From now on the pod only fails if something breaks.
    Held(Box<Waiting>),
}

#[derive(Clone, Debug)]
enum Stage {
    /// The pod waits until all these plugins have allowed it.
    Permit(Vec<PermitWait>),
    /// The PreBind plugin of this number works.
    PreBind(usize, Pause),
    /// The first extender from this place of the configuration on that binds the pod is asked next, or else the plugins.
    SeekBinder(usize),
    /// This extender is asked to bind the pod.
    Extender(Binder),
    /// The Bind plugin of this number works.
    Bind(usize, Pause),
    /// The pod may have been bound, or not: the API server is asked.
    Unresolved(Box<Unresolved>),
}

/// An extender that binds a pod.
#[derive(Clone, Copy, Debug)]
enum Binder {
    /// The extender at this place of the configuration.
    Configured(usize),
    /// An extender that the configuration does not have any more: its answer counts, and no other extender follows it.
    Former,
}

/// What Reserve, Permit and PreBind plugins said about a pod and its node.
struct Prepared {
    /// The plugins that want the pod to wait.
    waits: Vec<PermitWait>,
    has_plans: bool,
}

#[derive(Clone, Debug)]
struct PermitWait {
    plugin: &'static str,
    /// How long the plugin would have the pod wait.
    wanted: Duration,
    /// How long the pod waits.
    timeout: Duration,
    deadline: Timestamp,
    /// What may change the plugin's mind.
    events: Vec<Awaited>,
}

impl PermitWait {
    /// Waits until then, but for no longer than pods wait at Permit; it began to wait at another time.
    fn new(
        plugin: &'static str,
        until: Timestamp,
        events: Vec<ClusterEvent>,
        began: Timestamp,
        now: Timestamp,
    ) -> Self {
        let deadline = until.min(began.after(PERMIT_WAIT_MAX));
        let events = events.into_iter().map(Awaited::from).collect();
        PermitWait { plugin, wanted: until.since(now), timeout: deadline.since(now), deadline, events }
    }

    pub(super) fn hears(&self, event: &ClusterEvent, object: &ObjectKey) -> bool {
        self.events.iter().any(|awaited| awaited.covers(event, object))
    }
}

/// What a step waits for.
#[derive(Clone, Debug, Default)]
struct Pause {
    /// Whether the step has begun: until then there is nothing to resume, and from then on nothing to begin.
    is_begun: bool,
    /// How many of its orders are not carried out yet.
    orders: usize,
    events: Vec<Awaited>,
    deadline: Option<Timestamp>,
    /// What the server answered to the orders that are carried out.
    objects: Vec<Value>,
}

/// What the answers to orders of Bind plugins and extenders say about whether the pod is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Evidence {
    /// Orders without an answer so far.
    open: usize,
    /// An order was answered, but not by a refusal: the pod may be bound. What was known before says nothing of that.
    doubtful_since: Option<Timestamp>,
    /// An order got no answer and will get none: it may be carried out until then.
    may_land_until: Option<Timestamp>,
}

impl Evidence {
    /// Orders of a Bind plugin or an extender go out.
    fn ordered(&mut self, orders: usize) {
        self.open += orders;
    }

    /// One of the orders was answered. Only a refusal says that it did not bind the pod. One that was given up may land for so long.
    fn answered(&mut self, conclusion: &Conclusion, lands_within: Duration, now: Timestamp) {
        self.open = self.open.saturating_sub(1);
        match conclusion {
            Conclusion::Refused { .. } => {}
            Conclusion::Unknown { is_answered: false, .. } => {
                self.may_land_until = self.may_land_until.max(Some(now.after(lands_within)));
            }
            Conclusion::Done
            | Conclusion::DoneWith(_)
            | Conclusion::Gone { .. }
            | Conclusion::Conflict { .. }
            | Conclusion::Unknown { is_answered: true, .. } => self.doubtful_since = Some(now),
        }
    }

    /// Whether no order can have bound the pod.
    fn is_unbound(self) -> bool {
        self == Evidence::default()
    }

    /// Whether what the API server says at that time takes all orders into account. It does not as long as whoever carries one out has it
    /// still, or has sent it.
    fn is_settled_at(self, time: Timestamp) -> bool {
        self.open == 0 && self.may_land_until.max(self.doubtful_since).is_none_or(|last| time >= last)
    }

    /// When that will be so, or is; none if nobody knows.
    fn settles(self, now: Timestamp) -> Option<Timestamp> {
        (self.open == 0).then(|| self.may_land_until.map_or(now, |last| last.max(now)))
    }

    fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        for time in [&mut self.doubtful_since, &mut self.may_land_until] {
            time.iter_mut().for_each(&moved);
        }
    }
}

impl Binding {
    /// When the binding is resumed at the latest.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Permit(waits) => waits.iter().map(|wait| wait.deadline).min(),
            Stage::PreBind(_, pause) | Stage::Bind(_, pause) => pause.deadline,
            Stage::SeekBinder(_) | Stage::Extender(_) => None,
            Stage::Unresolved(unresolved) => Some(unresolved.deadline()),
        }
    }

    /// The events that the binding is resumed by. A step whose orders are not carried out yet is resumed by their answers first.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &Awaited> {
        let waits = match &self.stage {
            Stage::Permit(waits) => &waits[..],
            _ => &[],
        };
        let pause = self.pause().filter(|pause| pause.orders == 0);
        waits.iter().flat_map(|wait| &wait.events).chain(pause.into_iter().flat_map(|pause| &pause.events))
    }

    /// Whether the binding is resumed by such an event of that object.
    pub(super) fn hears(&self, event: &ClusterEvent, object: &ObjectKey) -> bool {
        self.awaited().any(|awaited| awaited.covers(event, object))
    }

    /// The number of the orders that the stage waits for.
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        moved(&mut self.began);
        self.evidence.move_times(&moved);
        match &mut self.stage {
            Stage::Permit(waits) => waits.iter_mut().for_each(|wait| moved(&mut wait.deadline)),
            Stage::PreBind(_, pause) | Stage::Bind(_, pause) => {
                pause.deadline.iter_mut().for_each(&moved);
            }
            Stage::Unresolved(unresolved) => unresolved.move_times(&moved),
            Stage::SeekBinder(_) | Stage::Extender(_) => {}
        }
        if let QueueEntry::Held(waiting) = &mut self.entry {
            waiting.move_times(moved);
        }
    }

    /// Whether the API server is asked if the pod was bound.
    pub(super) fn is_unresolved(&self) -> bool {
        matches!(self.stage, Stage::Unresolved(_))
    }

    /// Makes the binding go on with the plugins that it began with, which `find` finds by the pod's scheduler.
    pub(super) fn leave_to(&mut self, find: impl FnOnce(&str) -> Option<Arc<Profile>>) {
        if self.profile.is_none() {
            self.profile = find(&self.pod.spec.scheduler_name);
        }
        match &mut self.stage {
            Stage::Extender(binder) => *binder = Binder::Former,
            Stage::Unresolved(unresolved) => unresolved.forget_extenders(),
            Stage::Permit(_) | Stage::PreBind(..) | Stage::SeekBinder(_) | Stage::Bind(..) => {}
        }
    }

    /// Whether neither the API server nor an extender was asked to bind the pod yet.
    pub(super) fn can_be_stopped(&self) -> bool {
        matches!(self.stage, Stage::Permit(_) | Stage::PreBind(..))
    }

    /// What the server answered to the orders of the step.
    fn take_objects(&mut self) -> Vec<Value> {
        match &mut self.stage {
            Stage::PreBind(_, pause) | Stage::Bind(_, pause) => std::mem::take(&mut pause.objects),
            Stage::Permit(_) | Stage::SeekBinder(_) | Stage::Extender(_) | Stage::Unresolved(_) => Vec::new(),
        }
    }

    fn pause(&self) -> Option<&Pause> {
        match &self.stage {
            Stage::PreBind(_, pause) | Stage::Bind(_, pause) => Some(pause),
            Stage::Permit(_) | Stage::SeekBinder(_) | Stage::Extender(_) | Stage::Unresolved(_) => None,
        }
    }
}

impl Scheduler {
    /// Gives a pod a node: sets aside what it needs, and lets it go there as soon as all allow it.
    pub(super) fn place(&mut self, slot: Slot, row: Row, counts: NodeCounts, now: Timestamp) {
        let pod = self.queue.get(slot).queued.pod.clone();
        let node = self.engine.cluster.snapshot().node(row).name().clone();
        let nominated = self.nominated_elsewhere(&pod.uid, Some(&node));
        let asked_before = self.engine.acts.len();
        let mut state = CycleState::default();
        let is_preparation_needed = self.engine.is_preparation_needed(&pod);
        let prepared = if is_preparation_needed {
            self.caught_acting(&pod, |scheduler| scheduler.prepare(&pod, row, &mut state, now))
        } else {
            Ok(Ok(Prepared { waits: Vec::new(), has_plans: false }))
        };
        let assumed = match prepared {
            // What plugins did is taken back already.
            Err(panicked) => return self.fail_placed(slot, &node, panicked.failure(), now),
            Ok(prepared) => prepared.and_then(|prepared| match self.engine.assume(&pod, row) {
                Ok(()) => Ok(prepared),
                Err(error) => Err(Failure::error(error.to_string())),
            }),
        };
        let Prepared { waits, has_plans } = match assumed {
            Ok(prepared) => prepared,
            Err(failure) => {
                self.engine.acts.drop_activations_after(asked_before);
                self.unreserve(None, &pod, &node, &mut state, now);
                return self.fail_placed(slot, &node, failure, now);
            }
        };
        self.queue.hear(&ClusterEvent::pod(Actions::ADD));
        if let Some(nominated) = nominated {
            self.nomination_ended(&pod, &nominated, now);
        }
        if (!waits.is_empty() || has_plans) && pod.nominated_node_name() != Some(&node) {
            // It may take a while until the pod is bound; whoever plans around it should know.
            let nomination = Nomination::Node(node.clone());
            self.queue.get_mut(slot).is_nomination_ordered = true;
            self.order(Effect::UpdateStatus { pod: pod.clone(), condition: None, nomination });
        }
        let uid = pod.uid.clone();
        let has_waited = !waits.is_empty();
        if has_waited {
            self.engine.cluster.set_standing(&pod, Standing::AtPermit);
            let plugins = waits.iter().map(|wait| wait.plugin).collect();
            let patience = waits.iter().map(|wait| wait.wanted).max().unwrap_or_default();
            self.observe(Observation::PermitAwaited { pod: pod.clone(), plugins, patience });
        }
        let (stage, entry) = if is_preparation_needed {
            (Stage::Permit(waits), QueueEntry::InFlight)
        } else {
            self.skip_preparation(&pod, now)
        };
        self.bindings.insert(Binding {
            pod,
            node,
            counts,
            number: 0,
            stage,
            began: now,
            has_waited,
            state,
            entry,
            profile: None,
            round: 0,
            evidence: Evidence::default(),
        });
        // As upstream, what plugins ask for in a scheduling cycle is done before the pod goes on.
        self.carry_out_acts(now);
        self.go_on(&uid, None, now);
    }

    /// Asks Reserve and Permit plugins, and whether there is something to be done before the pod can run on its node.
    fn prepare(
        &mut self,
        pod: &Arc<Pod>,
        row: Row,
        state: &mut CycleState,
        now: Timestamp,
    ) -> Result<Prepared, Failure> {
        *state = self.engine.prepare(pod, now);
        let began = self.stopwatch.read();
        let reserved = self.reserve(pod, row, state, now);
        self.observe_at_once(Point::Reserve, pod, &reserved, began);
        reserved?;
        let began = self.stopwatch.read();
        let permitted = self.permit(pod, row, state, now);
        self.observe_at_once(Point::Permit, pod, &permitted, began);
        Ok(Prepared { waits: permitted?, has_plans: self.has_plans(pod, row, state, now) })
    }

    /// No plugin has anything to do before a pod is bound, as with most pods: it leaves the queue's books at once.
    fn skip_preparation(&mut self, pod: &Arc<Pod>, now: Timestamp) -> (Stage, QueueEntry) {
        for point in [Point::Reserve, Point::Permit, Point::PreBind] {
            self.observe_point(point, pod, "Success", Duration::ZERO);
        }
        let waiting = self.with_queue(now, |queue, context| queue.remove(context, &pod.uid));
        (self.first_binder(pod), waiting.map_or(QueueEntry::InFlight, QueueEntry::Held))
    }

    /// The stage of a pod that is ready to be bound: the plugins bind it, unless an extender wants to.
    fn first_binder(&self, pod: &Pod) -> Stage {
        match self.binder(0, pod) {
            Some(extender) => Stage::SeekBinder(extender),
            None => Stage::Bind(0, Pause::default()),
        }
    }

    fn reserve(
        &mut self,
        pod: &Arc<Pod>,
        row: Row,
        state: &mut CycleState,
        now: Timestamp,
    ) -> Result<(), Failure> {
        self.engine.with_cycle(pod, state, now, |profile, cycle, acting| {
            let node = cycle.cluster().node(row);
            for named in profile.reserve.iter().filter(|named| profile.concerns(named, pod)) {
                let status = named.run(|plugin| plugin.reserve(cycle, &mut acting.of(named.name), node));
                if !status.is_success() {
                    return Err(failure(&status, named.name, "Reserve"));
                }
            }
            Ok(())
        })
    }

    /// Takes back what Reserve plugins did for a pod. They hear of it even if the node is gone: what they remember must not
    /// outlive the pod's binding.
    fn unreserve(
        &mut self,
        profile: Option<&Profile>,
        pod: &Arc<Pod>,
        node: &Arc<str>,
        state: &mut CycleState,
        now: Timestamp,
    ) {
        let row = self.engine.cluster.snapshot().row_of(node);
        let bare = row.is_none().then(|| Cluster::with_bare_node(node));
        let count = self.profile_or_own(profile, pod).map_or(0, |profile| profile.reserve.len());
        for number in (0..count).rev() {
            // A plugin that panics must not keep the others from taking back what is theirs.
            let _ = self.caught_acting(pod, |scheduler| {
                scheduler.engine.with_cycle_of(profile, pod, state, now, |profile, cycle, acting| {
                    let node = match (&bare, row) {
                        (Some((cluster, row)), _) => cluster.node(*row),
                        (None, Some(row)) => cycle.cluster().node(row),
                        (None, None) => return,
                    };
                    let named = &profile.reserve[number];
                    if profile.concerns(named, pod) {
                        named.run(|plugin| plugin.unreserve(cycle, &mut acting.of(named.name), node));
                    }
                });
            });
        }
    }

    /// The profile that a binding began with, if that is another than the one that is responsible for the pod now.
    fn profile_or_own<'a>(&'a self, profile: Option<&'a Profile>, pod: &Pod) -> Option<&'a Profile> {
        let profiles = self.engine.profiles();
        profile.or_else(|| profile_of(profiles, pod).map(|number| &profiles[number]))
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
        self.engine.with_cycle(pod, state, now, |profile, cycle, acting| {
            let node = cycle.cluster().node(row);
            for named in profile.permit.iter().filter(|named| profile.concerns(named, pod)) {
                match named.run(|plugin| plugin.permit(cycle, &mut acting.of(named.name), node)) {
                    PermitDecision::Allow => {}
                    PermitDecision::Wait { until, events } => {
                        waits.push(PermitWait::new(named.name, until, events, now, now));
                    }
                    PermitDecision::Reject(status) => return Err(failure(&status, named.name, "Permit")),
                }
            }
            Ok(())
        })?;
        Ok(waits)
    }

    fn has_plans(&mut self, pod: &Arc<Pod>, row: Row, state: &mut CycleState, now: Timestamp) -> bool {
        self.engine.with_cycle(pod, state, now, |profile, cycle, _| {
            let node = cycle.cluster().node(row);
            let concerned = profile.pre_bind.iter().filter(|named| profile.concerns(named, pod));
            concerned
                .map(|named| named.run(|plugin| plugin.plan(cycle, node)))
                .any(|plans: Vec<Plan>| !plans.is_empty())
        })
    }
}

/// What follows from a plugin's no.
fn failure(status: &Status, plugin: &'static str, point: &str) -> Failure {
    if status.is_rejected() {
        Failure::rejected(plugin, &status.message())
    } else {
        Failure::error(format!("running {point} plugin {plugin:?}: {}", status.message()))
    }
}
