//! Plugins that hear of changes between decisions, are woken when they asked to be, and have things done in the world.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Conclusion, Context, Effect, EventResource, Named, Observe, Profile,
    Status,
};
use supercargo_model::{Pod, Row, Timestamp};

use super::binding::undeclared;
use super::happenings::{What, pod_update};
use super::observations::{Observation, Refusal};
use super::queue_context::profile_of;
use super::{Scheduler, Waiter};
use crate::among::filter_among;

/// So many times at which plugins asked to be woken are kept. Beyond that they are refused, and counted.
const WAKES_MAX: usize = 1 << 16;
/// A plugin is woken this long after it asked for it at the earliest: one that asks for a time that has passed, whenever it is
/// woken, must not keep the scheduler from its work.
const WAKE_PAUSE_MIN: Duration = Duration::from_millis(1);
/// So many orders of plugins that observe may be without an answer. Beyond that they are refused, and counted.
const ORDERS_MAX: usize = 1 << 13;
/// So long after it was refused for that, an order is answered: a plugin that orders again at once must not keep the scheduler from its
/// work either.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// So many refused orders wait for their answer. Beyond that there is none.
const REFUSED_MAX: usize = 1 << 16;

/// The plugins that observe, and what they wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Observers {
    plugins: Vec<Observer>,
    hears_pods: bool,
    hears_nodes: bool,
    hears_finished_pods: bool,
    /// Whether they are told of changes one by one by now.
    have_started: bool,
    /// When a plugin is to be woken.
    wakes: BTreeSet<(Timestamp, &'static str)>,
    /// How many of their orders were not answered yet.
    open_orders: usize,
    /// Orders that were too many, and when that is answered.
    refused_orders: VecDeque<(Timestamp, &'static str, Box<Effect>)>,
}

#[derive(Clone, Debug)]
struct Observer {
    named: Named<dyn Observe>,
    events: Vec<ClusterEvent>,
    hears_finished_pods: bool,
    wants_rejections: bool,
}

impl Observers {
    /// Those of these profiles; a plugin of several profiles observes by the first in which it is a controller, or else by the first.
    pub(super) fn of(profiles: &[Profile]) -> Self {
        let mut observers = Observers::default();
        for profile in profiles {
            for named in &profile.observe {
                let reads = profile.plugins().iter().find(|plugin| plugin.name == named.name);
                let observer = Observer {
                    events: named.plugin.events(),
                    hears_finished_pods: reads.is_some_and(|plugin| plugin.reads.pods.finished),
                    wants_rejections: named.plugin.wants_rejections(),
                    named: named.clone(),
                };
                match observers.plugins.iter_mut().find(|known| known.named.name == named.name) {
                    None => observers.plugins.push(observer),
                    Some(known) if named.plugin.is_controller() && !known.named.plugin.is_controller() => {
                        *known = observer;
                    }
                    Some(_) => {}
                }
            }
        }
        let hears = |resource: EventResource| {
            let events = observers.plugins.iter().flat_map(|observer| &observer.events);
            events.into_iter().any(|event| event.resource == resource || event.resource == EventResource::Any)
        };
        (observers.hears_pods, observers.hears_nodes) =
            (hears(EventResource::Pod), hears(EventResource::Node));
        observers.hears_finished_pods = observers.plugins.iter().any(|observer| observer.hears_finished_pods);
        observers
    }

    /// Whether anybody is told of changes.
    pub(super) fn are_told(&self) -> bool {
        self.have_started && !self.plugins.is_empty()
    }

    /// Whether anybody is told when something happens to a node.
    pub(super) fn hear_nodes(&self) -> bool {
        self.have_started && self.hears_nodes
    }

    /// When the first of them is to be woken, or told that an order was refused.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let wake = self.wakes.first().map(|(time, _)| *time);
        wake.into_iter().chain(self.refused_orders.front().map(|(time, ..)| *time)).min()
    }

    /// Whether a plugin is woken by then.
    pub(super) fn wake_by(&self, plugin: &str, time: Timestamp) -> bool {
        let by_then = self.wakes.iter().take_while(|(planned, _)| *planned <= time);
        by_then.into_iter().any(|(_, woken)| *woken == plugin)
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        self.refused_orders.iter_mut().for_each(|(time, ..)| moved(time));
        let wakes = std::mem::take(&mut self.wakes).into_iter();
        self.wakes = wakes
            .map(|(mut time, plugin)| {
                moved(&mut time);
                (time, plugin)
            })
            .collect();
    }

    fn find(&self, plugin: &str) -> Option<&Observer> {
        self.plugins.iter().find(|observer| observer.named.name == plugin)
    }
}

impl Scheduler {
    /// The same scheduler, whose cluster becomes known bit by bit: plugins that observe begin with
    /// [`Scheduler::cluster_is_known`], and not with what happens to be there.
    #[must_use]
    pub fn with_unknown_cluster(mut self) -> Self {
        self.is_cluster_known = false;
        self
    }

    /// Everything was listed.
    pub fn cluster_is_known(&mut self, now: Timestamp) {
        self.is_cluster_known = true;
        self.take_early_answers(now);
        self.start_observers(now);
        self.carry_out_acts(now);
    }

    /// Goes on with the plugins of other profiles. They begin anew.
    pub(super) fn replace_observers(&mut self) {
        let old = std::mem::replace(&mut self.observers, Observers::of(self.engine.profiles()));
        self.observers.open_orders = old.open_orders;
        self.observers.refused_orders = old.refused_orders;
        let wakes = old.wakes.into_iter().filter(|(_, plugin)| self.observers.find(plugin).is_some());
        self.observers.wakes = wakes.collect();
    }

    /// Has plugins that observe begin anew, as soon as the cluster is known.
    pub(super) fn restart_observers(&mut self, now: Timestamp) {
        self.observers.have_started = false;
        self.start_observers(now);
    }

    /// Lets plugins begin to observe that have not yet.
    pub(super) fn start_observers(&mut self, now: Timestamp) {
        if self.observers.have_started || !self.is_cluster_known {
            return;
        }
        self.observers.have_started = true;
        if self.observers.plugins.is_empty() {
            return;
        }
        let waiting = self.queue.pods_in_order();
        self.call_observers(
            now,
            |_| true,
            |plugin, context, acts| {
                plugin.started_with(context, &waiting, acts);
            },
        );
    }

    /// Wakes plugins whose time has come, each once, and answers orders that were too many.
    pub(super) fn wake_observers(&mut self, now: Timestamp) {
        while self.observers.refused_orders.front().is_some_and(|(time, ..)| *time <= now) {
            let Some((_, plugin, effect)) = self.observers.refused_orders.pop_front() else { break };
            let error = format!("more than {ORDERS_MAX} orders of plugins wait for their answers");
            self.answer_plugin(plugin, &effect, &Conclusion::not_done(error), now);
        }
        let mut due = BTreeSet::new();
        while let Some((time, plugin)) = self.observers.wakes.first().copied()
            && time <= now
        {
            self.observers.wakes.remove(&(time, plugin));
            due.insert(plugin);
        }
        if !due.is_empty() {
            let is_due = |observer: &Observer| due.contains(observer.named.name);
            self.call_observers(now, is_due, |plugin, context, acts| plugin.woken(context, acts));
        }
    }

    /// Wakes all plugins that want to be woken some time, each once. What they asked for before stays.
    pub(super) fn wake_all_observers(&mut self, now: Timestamp) {
        let due: BTreeSet<&'static str> = self.observers.wakes.iter().map(|(_, plugin)| *plugin).collect();
        let is_due = |observer: &Observer| due.contains(observer.named.name);
        self.call_observers(now, is_due, |plugin, context, acts| plugin.woken(context, acts));
    }

    /// A plugin wants to be woken.
    pub(super) fn wake_at(&mut self, plugin: &'static str, time: Timestamp, now: Timestamp) {
        if self.observers.find(plugin).is_none() {
            return self.refuse_act(plugin, Refusal::NotObserving);
        }
        if self.observers.wakes.len() >= WAKES_MAX {
            return self.refuse_act(plugin, Refusal::TooMany);
        }
        self.observers.wakes.insert((time.max(now.after(WAKE_PAUSE_MIN)), plugin));
    }

    /// A plugin wants something done. Those that observe hear how it went.
    pub(super) fn order_for_plugin(&mut self, plugin: &'static str, effect: Effect, now: Timestamp) {
        if !self.leads {
            return self.refuse_act(plugin, Refusal::Following);
        }
        let profiles = self.engine.profiles();
        let is_declared = profiles.iter().any(|profile| profile.may_order(plugin, &effect));
        // Only a step of a binding binds, because it waits for what becomes of that.
        if !is_declared || matches!(effect, Effect::Bind { .. }) {
            return self.refuse_act(plugin, Refusal::Undeclared(undeclared(plugin, &effect)));
        }
        if self.observers.find(plugin).is_none() {
            return self.order(effect);
        }
        if self.observers.open_orders >= ORDERS_MAX {
            if self.observers.refused_orders.len() < REFUSED_MAX {
                let answered_at = now.after(REFUSED_PAUSE);
                self.observers.refused_orders.push_back((answered_at, plugin, Box::new(effect)));
            }
            return self.refuse_act(plugin, Refusal::TooMany);
        }
        self.observers.open_orders += 1;
        self.order_and_wait(effect.clone(), Waiter::Plugin { plugin, effect: Box::new(effect) });
    }

    fn refuse_act(&mut self, plugin: &'static str, refusal: Refusal) {
        self.observe(Observation::ActsRefused { plugin, acts: 1, refusal });
    }

    /// An order of a plugin that observes has ended.
    pub(super) fn conclude_for_plugin(
        &mut self,
        plugin: &'static str,
        effect: &Effect,
        conclusion: &Conclusion,
        now: Timestamp,
    ) {
        self.observers.open_orders = self.observers.open_orders.saturating_sub(1);
        if let Some(error) = conclusion.error() {
            let (order, error) = (effect.words(), error.to_owned());
            self.observe(Observation::PluginOrderFailed { plugin, order, error });
        }
        self.answer_plugin(plugin, effect, conclusion, now);
    }

    fn answer_plugin(&mut self, plugin: &str, effect: &Effect, conclusion: &Conclusion, now: Timestamp) {
        let is_meant = |observer: &Observer| observer.named.name == plugin;
        self.call_observers(now, is_meant, |plugin, context, acts| {
            plugin.answered(context, effect, conclusion, acts);
        });
    }

    /// Tells of something that happened to a node or an object.
    pub(super) fn tell_observers(&mut self, events: &[ClusterEvent], what: &What, now: Timestamp) {
        if !self.observers.are_told() {
            return;
        }
        let hears = |observer: &Observer| {
            let covers = |event| observer.events.iter().any(|registered| registered.covers(event));
            events.iter().any(covers)
        };
        let change: Change<'_> = what.change();
        self.call_observers(now, hears, |plugin, context, acts| plugin.observed(context, &change, acts));
    }

    /// How a pod was when plugins were last told of it; none if nobody is told of pods.
    pub(super) fn told_pod(&self, uid: &str) -> Option<Arc<Pod>> {
        if !self.observers.have_started || !self.observers.hears_pods {
            return None;
        }
        if let Some(waiting) = self.queue.find(uid) {
            return Some(waiting.queued.pod.clone());
        }
        if let Some(binding) = self.bindings.get(uid) {
            return Some(binding.pod().clone());
        }
        let bound = self.engine.cluster.bound_pod(uid)?;
        if !self.unconfirmed.contains(uid) {
            return Some(bound.clone());
        }
        // Only the scheduler takes it to be bound.
        Some(Arc::new(Pod { node_name: None, ..(**bound).clone() }))
    }

    /// Tells of a pod that came, changed or went.
    pub(super) fn tell_of_pod(&mut self, old: Option<Arc<Pod>>, new: Option<Arc<Pod>>, now: Timestamp) {
        if !self.observers.have_started || !self.observers.hears_pods || old == new {
            return;
        }
        let events = match (&old, &new) {
            (Some(old), Some(new)) => pod_update(old, new),
            (None, _) => vec![ClusterEvent::pod(Actions::ADD)],
            (Some(_), None) => vec![ClusterEvent::pod(Actions::DELETE)],
        };
        self.tell_observers(&events, &What::Pod { old, new }, now);
    }

    /// Whether anybody is told of pods that have run their course.
    pub(super) fn hears_finished_pods(&self) -> bool {
        self.observers.have_started && self.observers.hears_finished_pods
    }

    /// Tells of a pod that has run its course.
    pub(super) fn tell_of_finished(&mut self, pod: &Pod, has_succeeded: bool, now: Timestamp) {
        let hears = |observer: &Observer| observer.hears_finished_pods;
        self.call_observers(now, hears, |plugin, context, acts| {
            plugin.finished(context, pod, has_succeeded, acts);
        });
    }

    /// Tells plugins that want to know where their filters reject a pod, which was tried and has not got a node yet.
    pub(super) fn tell_rejections(&mut self, pod: &Arc<Pod>, now: Timestamp) {
        if !self.observers.have_started || !self.observers.plugins.iter().any(|one| one.wants_rejections) {
            return;
        }
        let Some(number) = profile_of(self.engine.profiles(), pod) else { return };
        // The pod was tried, whoever panics.
        let _ = self.caught_acting(pod, |scheduler| {
            let wanting = scheduler.observers.plugins.iter().filter(|observer| observer.wants_rejections);
            scheduler.engine.with_acts(now, |profiles, context, acting| {
                for Observer { named, .. } in wanting {
                    let rows = named.plugin.doubts(context, pod, &mut acting.of(named.name));
                    if rows.is_empty() {
                        continue;
                    }
                    let words = filter_among(&profiles[number], context.clone(), pod, &rows);
                    let is_own =
                        |status: &Status| status.is_rejected() && status.plugin() == Some(named.name);
                    let nodes = rows.iter().zip(&words).map(|(row, word)| (*row, is_own(word)));
                    let nodes: Vec<(Row, bool)> = nodes.collect();
                    named.plugin.rejected(context, &nodes, &mut acting.of(named.name));
                }
            });
        });
    }

    fn call_observers(
        &mut self,
        now: Timestamp,
        concerned: impl Fn(&Observer) -> bool,
        call: impl Fn(&dyn Observe, &Context<'_>, &mut Acts<'_>),
    ) {
        let observers = &self.observers;
        if !observers.plugins.iter().any(&concerned) {
            return;
        }
        self.engine.with_observers(now, |context, acting| {
            for observer in observers.plugins.iter().filter(|observer| concerned(observer)) {
                call(&*observer.named.plugin, context, &mut acting.of(observer.named.name));
            }
        });
    }
}
