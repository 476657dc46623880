//! A scheduler and an API server with everything between them that can go wrong: orders that are carried out and answered by
//! an error, answers that come late, twice or never, watches that lag, and other writers.

mod others;
mod saying;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use supercargo_config::{build_profiles, load};
use supercargo_engine::{
    EngineOptions, ExtenderSettings, Indexing, Order, Rules, Scheduler, SchedulerOptions, Seed, Ticket,
};
use supercargo_framework::{
    AskFailure, Conclusion, Effect, ExtenderAnswer, ExtenderQuestion, Fixes, Needs, Registry,
};
use supercargo_model::{Decoded, Decoder, Everything, Timestamp};

use super::coverage::Coverage;
use super::orders::{Fault, OrderKind, Ordered, about, conclusion, extender_answer, fault, ordered};
use super::plan::{Act, Draw, ExtenderSetup, Setup, Step};
use super::plugins::{self, GANG};
use super::server::{Refusal, Server, ServerPod, Told};

/// A late binding lands within so many seconds after its order was given up: the scheduler counts on five.
const LANDS_WITHIN_SECONDS: u64 = 4;
/// The same for an extender, on whose end it counts after thirty.
const EXTENDER_LANDS_WITHIN_SECONDS: u64 = 29;
/// Longer than any run.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// More pods than this are not created: what matters is how they meet, not how many there are.
const PODS_MAX: usize = 11;

/// A profile with room for everything that can go wrong, another one, and one for other pods.
const CONFIGURATIONS: [&str; 3] = [
    "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Pairs}, {name: Prepares}, {name: Awaits}, {name: Holds}, {name: Panics}, {name: PodBooks}]}}
",
    "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Panics}, {name: Holds}, {name: Awaits}, {name: Prepares}, {name: Pairs}, {name: PodBooks}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
",
    "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: other
  plugins: {multiPoint: {enabled: [{name: PodBooks}]}}
",
];

/// The place of the configuration that is for other pods.
const OTHER: usize = 2;

/// An answer that is on its way.
#[derive(Clone, Debug)]
struct Reply {
    ticket: Ticket,
    answer: Answer,
    /// The kind of order, and the pod with its version when the order was carried out.
    about: (OrderKind, String, u64),
    /// A binding that is made after the answer: the order was given up, and lands all the same.
    landing: Option<Landing>,
    comes_twice: bool,
    /// Whether the API server was asked.
    is_sent: bool,
}

#[derive(Clone, Debug)]
enum Answer {
    Concluded(Conclusion),
    Extender(Result<ExtenderAnswer, AskFailure>),
    LookedUp(Result<Option<Value>, String>),
}

#[derive(Clone, Debug)]
struct Landing {
    name: String,
    uid: String,
    node: String,
    within_seconds: u64,
}

/// What the scheduler ordered, and how things stood at that moment.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) what: Ordered,
    /// Whether the watch had said that the pod is bound which the order is for.
    pub(super) was_bound: bool,
    /// Whether one of our bindings had bound it.
    pub(super) was_bound_by_us: bool,
    /// How many orders that can bind the pod were under way, this one included.
    pub(super) bindings: usize,
    /// Whether the replica led.
    pub(super) led: bool,
}

pub(super) struct World {
    pub(super) server: Server,
    pub(super) scheduler: Scheduler,
    pub(super) setup: Setup,
    pub(super) leads: bool,
    pub(super) coverage: Coverage,
    /// The nodes of the pods that the watch has told of, by UID; none for pods without a node.
    pub(super) told: BTreeMap<String, Option<String>>,
    /// What was ordered since the last check.
    pub(super) taken: Vec<Taken>,
    /// The UIDs of pods that one of our bindings has bound.
    pub(super) bound: BTreeSet<String>,
    /// What was said last about why a pod is not scheduled, by its UID, in an event: that comes with every attempt.
    pub(super) meant: BTreeMap<String, String>,
    /// Whether nothing fails any more, and all that can be done is done.
    pub(super) is_at_rest: bool,
    /// Nodes that one of our bindings has filled over the brim, when that happened.
    pub(super) over: Vec<String>,
    open: Vec<Order>,
    replies: Vec<Reply>,
    landings: Vec<(Timestamp, Landing)>,
    decoder: Decoder,
    registry: Registry,
    configuration: usize,
    now: Timestamp,
    created: u64,
}

fn options() -> SchedulerOptions {
    let engine =
        EngineOptions { rules: Rules::LIVE, seed: Seed(1), fixes: Fixes::default(), indexing: Indexing::On };
    // Nobody is tried because it has waited for long: what helps a pod has to wake it.
    SchedulerOptions { max_unschedulable: NEVER, ..SchedulerOptions::new(engine) }
}

fn extenders(setup: Setup) -> Vec<ExtenderSettings> {
    match setup.extender {
        ExtenderSetup::None => Vec::new(),
        ExtenderSetup::Binds { is_ignorable } => vec![ExtenderSettings {
            filters: true,
            binds: true,
            weight: 1,
            is_ignorable,
            ..ExtenderSettings::default()
        }],
    }
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let registry = plugins::registry();
        let loaded = load(CONFIGURATIONS[0]).expect("the configuration is right");
        let profiles = build_profiles(&loaded.kube, &registry).expect("the profiles are right");
        let decoder = Needs::of(&profiles).decoder();
        let mut scheduler = Scheduler::new(profiles, options()).with_extenders(extenders(setup));
        // Plugins that observe begin with an empty cluster, and hear of everything.
        let now = Timestamp::from_seconds(1_000_000);
        scheduler.cluster_is_known(now);
        World {
            server: Server::default(),
            scheduler,
            setup,
            leads: true,
            coverage: Coverage::default(),
            told: BTreeMap::new(),
            taken: Vec::new(),
            bound: BTreeSet::new(),
            meant: BTreeMap::new(),
            is_at_rest: false,
            over: Vec::new(),
            open: Vec::new(),
            replies: Vec::new(),
            landings: Vec::new(),
            decoder,
            registry,
            configuration: 0,
            now,
            created: 0,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The tickets of orders that are to be answered yet.
    pub(super) fn open_tickets(&self) -> usize {
        let mut tickets: Vec<Ticket> = self.open.iter().filter_map(|order| order.ticket).collect();
        tickets.extend(self.replies.iter().filter(|reply| !reply.is_repeated()).map(|reply| reply.ticket));
        tickets.sort_unstable();
        tickets.dedup();
        tickets.len()
    }

    pub(super) fn act(&mut self, step: Step) {
        let Step { act, mut draw } = step;
        let is_foreign = matches!(act, Act::ForeignBind | Act::RemoveNode | Act::ShrinkNode);
        if is_foreign && !self.setup.has_others {
            return;
        }
        match act {
            Act::AddNode => {
                self.created += 1;
                let name = format!("n{}", self.created % 5);
                if self.server.cpu_of(&name).is_none() {
                    // Where a node must never be over, there is just room for what is there.
                    let cpu = if self.setup.has_others { 2 + draw.below(4) } else { 1 + draw.below(2) };
                    self.server.put_node(&name, cpu);
                }
            }
            Act::AddPod => self.add_pod(&mut draw),
            Act::ForeignBind => self.foreign_bind(&mut draw),
            Act::DeletePod | Act::RecreatePod => self.lose_pod(act, &mut draw),
            Act::RemoveNode | Act::ShrinkNode => self.lose_node(act, &mut draw),
            Act::EndPods => self.end_pods(),
            Act::Watch => {
                for _ in 0..=draw.below(10) {
                    self.tell_one(&mut draw);
                }
            }
            Act::Schedule => {
                // Neither a lost lease nor a profile for other pods lasts, or nothing else would happen.
                if !self.leads && draw.below(3) == 0 {
                    self.lead(true);
                }
                if self.configuration == OTHER && draw.below(3) == 0 {
                    self.swap(0);
                }
                self.scheduler.advance(self.now);
                for _ in 0..=draw.below(4) {
                    self.scheduler.schedule_next(self.now);
                    self.take_orders();
                }
            }
            Act::Carry | Act::Say => {
                let may_be_next = |order: &Order| match about(&order.effect) {
                    (OrderKind::Status, _, uid) => act == Act::Say && !self.is_being_said(&uid),
                    _ => act == Act::Carry,
                };
                let next: Vec<usize> =
                    (0..self.open.len()).filter(|place| may_be_next(&self.open[*place])).collect();
                if let Some(place) = draw.pick(&next) {
                    let order = self.open.swap_remove(*place);
                    let fault = fault(about(&order.effect).0, &mut draw);
                    self.carry(&order, fault, &mut draw);
                }
            }
            Act::Relist => self.relist(&mut draw),
            Act::Answer => {
                for _ in 0..=draw.below(2) {
                    let position = draw.below(self.replies.len() as u64) as usize;
                    if position < self.replies.len() {
                        self.answer(position);
                    }
                }
            }
            Act::Pass => {
                let seconds = [1, 3, 6, 25, 70][draw.below(5) as usize];
                self.pass(seconds);
            }
            Act::Swap => {
                self.meet_all("profiles swapped");
                self.swap([0, 1, 1, OTHER][draw.below(4) as usize]);
            }
            Act::Lead => {
                if self.leads {
                    self.meet_all("lease lost");
                }
                self.lead(!self.leads);
            }
            Act::SetClock => {
                self.meet_all("clock set");
                let seconds = [-7200, -30, 30, 7200][draw.below(4) as usize];
                self.now = self.now.moved(seconds);
                self.landings.iter_mut().for_each(|(at, _)| *at = at.moved(seconds));
                self.scheduler.clock_was_set(seconds);
            }
        }
        self.take_orders();
    }

    /// Lets everything come to rest: nothing fails any more, and every answer and event comes. Nobody is tried who is not woken.
    pub(super) fn settle(&mut self) {
        self.lead(true);
        if self.configuration == OTHER {
            self.swap(0);
        }
        // Pods that wait for others may wait for ever.
        let gangs = self.server.pods().filter(|pod| pod.has_label(GANG));
        for name in gangs.map(|pod| pod.name.clone()).collect::<Vec<_>>() {
            self.server.delete(&name, false);
        }
        self.go_on_for_long();
    }

    /// Has all pods tried once more, so that a replica says of them what another one may have said before, and lets that come to rest.
    pub(super) fn try_all_again(&mut self) {
        self.swap(0);
        self.go_on_for_long();
        self.is_at_rest = true;
    }

    fn go_on_for_long(&mut self) {
        let mut draw = Draw(1);
        for _ in 0..20 {
            self.do_all(&mut draw);
            self.pass(31);
        }
        self.do_all(&mut draw);
    }

    /// Everything that can be done at this moment.
    fn do_all(&mut self, draw: &mut Draw) {
        for _ in 0..200 {
            self.end_pods();
            while !self.server.pod_events.is_empty() || !self.server.node_events.is_empty() {
                self.tell_one(draw);
            }
            while !self.replies.is_empty() {
                self.answer(0);
            }
            self.scheduler.advance(self.now);
            let decided = self.scheduler.schedule_next(self.now).is_some();
            self.take_orders();
            let orders = std::mem::take(&mut self.open);
            if !decided && orders.is_empty() && self.replies.is_empty() {
                break;
            }
            for order in orders {
                self.carry(&order, Fault::Nothing, draw);
            }
        }
    }

    fn swap(&mut self, configuration: usize) {
        let loaded = load(CONFIGURATIONS[configuration]).expect("the configuration is right");
        let profiles = build_profiles(&loaded.kube, &self.registry).expect("the profiles are right");
        self.scheduler.replace_profiles(profiles, options(), extenders(self.setup), self.now);
        let before = std::mem::replace(&mut self.configuration, configuration);
        if before == OTHER && configuration != OTHER {
            // As the driver does when there is a profile of a new name: the watch tells all pods again.
            let pods: Vec<Told> = self.server.pods().cloned().map(Told::Pod).collect();
            self.server.pod_events.extend(pods);
        }
    }

    fn lead(&mut self, leads: bool) {
        self.leads = leads;
        self.scheduler.set_leading(leads, self.now);
        if !leads {
            // The gate lets no write pass any more.
            for order in std::mem::take(&mut self.open) {
                self.carry(&order, Fault::Refused, &mut Draw(0));
            }
        }
    }

    /// Lets the watches tell one thing, of pods or of nodes.
    fn tell_one(&mut self, draw: &mut Draw) {
        let is_pod_next = self.server.node_events.is_empty() || draw.below(2) == 0;
        let first = if is_pod_next { &mut self.server.pod_events } else { &mut self.server.node_events };
        let told = first.pop_front().or_else(|| self.server.node_events.pop_front());
        let Some(told) = told else { return };
        self.tell(&told);
    }

    /// A watch begins anew. Nobody hears of what went in between, but that it is not there any more.
    fn relist(&mut self, draw: &mut Draw) {
        if draw.below(3) == 0 {
            let nodes = self.server.list_nodes();
            for (name, cpu) in nodes.clone() {
                self.put(&Told::Node { name, cpu });
            }
            let known: Vec<Arc<str>> =
                self.scheduler.cluster().nodes().map(|node| node.name().clone()).collect();
            let names: BTreeSet<Box<str>> = nodes.into_iter().map(|(name, _)| name.into()).collect();
            for _ in known.iter().filter(|name| !names.contains(&***name)) {
                self.coverage.met("vanished", "Node");
            }
            return self.scheduler.retain(&Everything::Nodes(names), self.now);
        }
        let act = if draw.below(2) == 0 { Act::DeletePod } else { Act::RecreatePod };
        self.lose_pod(act, draw);
        self.end_pods();
        let steps = self.known_steps();
        let pods = self.server.list_pods();
        for pod in pods.clone() {
            self.tell(&Told::Pod(pod));
        }
        let uids: BTreeSet<Box<str>> = pods.into_iter().map(|pod| pod.uid.into()).collect();
        for uid in self.told.keys().filter(|uid| !uids.contains(&***uid)) {
            match steps.get(uid) {
                Some(step) => self.coverage.met("vanished", step),
                None => self.coverage.met("vanished", "Bound"),
            }
        }
        self.told.retain(|uid, _| uids.contains(&**uid));
        self.scheduler.retain(&Everything::Pods(uids), self.now);
    }

    fn tell(&mut self, told: &Told) {
        match told {
            Told::Pod(pod) => _ = self.told.insert(pod.uid.clone(), pod.node.clone()),
            Told::PodGone(pod) => _ = self.told.remove(&pod.uid),
            Told::Node { .. } | Told::NodeGone { .. } => {}
        }
        self.put(told);
    }

    fn put(&mut self, told: &Told) {
        let object = self.decode(&told.object());
        match told {
            Told::Pod(_) | Told::Node { .. } => self.scheduler.put(object, self.now),
            Told::PodGone(_) | Told::NodeGone { .. } => self.scheduler.remove(&object, self.now),
        }
        // What is ordered because of this was ordered before the next thing is told.
        self.take_orders();
    }

    fn decode(&self, object: &Value) -> Decoded {
        self.decoder.decode(&object.to_string()).expect("the object is right")
    }

    fn take_orders(&mut self) {
        self.scheduler.take_observations();
        for order in self.scheduler.take_orders() {
            let effect = order.effect.clone();
            self.drop_outdated(&effect);
            if let Effect::Evict { victim, .. } = &effect
                && self.is_being_evicted(&victim.uid)
            {
                self.coverage.met("victim of two", OrderKind::Evict);
            }
            if order.ticket.is_some() {
                let order = self.with_older(order);
                self.open.push(order);
            }
            let what = ordered(&effect);
            let uid = match &what {
                Ordered::Bind { uid } | Ordered::Scheduled { uid, .. } => uid,
                Ordered::Evict { preemptor } => preemptor,
                Ordered::Write | Ordered::Read => "",
            };
            let was_bound = self.told.get(uid).is_some_and(Option::is_some);
            let was_bound_by_us = self.bound.contains(uid);
            let (bindings, led) = (self.bindings_under_way(uid), self.leads);
            self.taken.push(Taken { what, was_bound, was_bound_by_us, bindings, led });
            if let Effect::Record(notice) = effect
                && notice.reason == "FailedScheduling"
            {
                self.meant.insert(notice.about.uid().to_string(), notice.note);
            }
        }
    }

    /// Carries out an order, or not, and sends the answer on its way.
    fn carry(&mut self, order: &Order, fault: Fault, draw: &mut Draw) {
        let Some(ticket) = order.ticket else { return };
        let (kind, name, uid) = about(&order.effect);
        let fault = match (kind, fault) {
            // It is not refused: it is answered, or not.
            (OrderKind::ExtenderFilter, Fault::Refused) => Fault::LostError,
            // Nothing but a binding lands late.
            (OrderKind::Bind | OrderKind::ExtenderBind, Fault::Late) => Fault::Late,
            (_, Fault::Late) => Fault::LostSilence,
            (_, fault) => fault,
        };
        if let Some(word) = fault.word() {
            self.coverage.met(word, kind);
        }
        let is_applied =
            matches!(fault, Fault::Nothing | Fault::AppliedError | Fault::AppliedSilence | Fault::Twice);
        let result = if is_applied { self.apply(&order.effect) } else { Ok(()) };
        let version = self.server.pod(&name).filter(|pod| pod.uid == uid).map_or(0, |pod| pod.version);
        let landing = match (&order.effect, fault) {
            (Effect::Bind { pod, node }, Fault::Late) => Some((pod, node, LANDS_WITHIN_SECONDS)),
            (Effect::Ask { question: ExtenderQuestion::Bind { pod, node }, .. }, Fault::Late) => {
                Some((pod, node, EXTENDER_LANDS_WITHIN_SECONDS))
            }
            _ => None,
        };
        let landing = landing.map(|(pod, node, seconds)| Landing {
            name: pod.name.to_string(),
            uid: pod.uid.to_string(),
            node: node.to_string(),
            within_seconds: draw.below(seconds),
        });
        let answer = match &order.effect {
            Effect::LookUp { .. } => Answer::LookedUp(match fault {
                // A proxy says that there is no such pod.
                Fault::Refused => Ok(None),
                Fault::Nothing | Fault::Twice => Ok(self.server.pod(&name).map(ServerPod::object)),
                _ => Err("the server is away".to_owned()),
            }),
            Effect::Ask { question, .. } => Answer::Extender(extender_answer(question, result, fault)),
            _ => Answer::Concluded(conclusion(result, fault)),
        };
        let comes_twice = fault == Fault::Twice;
        let about = (kind, uid, version);
        self.replies.push(Reply { ticket, answer, about, landing, comes_twice, is_sent: true });
    }

    fn apply(&mut self, effect: &Effect) -> Result<(), Refusal> {
        match effect {
            Effect::Bind { pod, node }
            | Effect::Ask { question: ExtenderQuestion::Bind { pod, node }, .. } => {
                self.bind(&pod.name, &pod.uid, node)
            }
            Effect::Evict { victim, .. } => {
                if self.server.pod(&victim.name).is_some_and(|pod| pod.uid == *victim.uid) {
                    self.server.delete(&victim.name, false);
                }
                Ok(())
            }
            Effect::UpdateStatus { .. } => self.update_status(effect),
            _ => Ok(()),
        }
    }

    /// Makes one of our bindings.
    fn bind(&mut self, name: &str, uid: &str, node: &str) -> Result<(), Refusal> {
        self.server.bind(name, uid, node)?;
        self.bound.insert(uid.to_owned());
        if self.server.cpu_of(node).is_some_and(|cpu| self.server.used(node) > cpu) {
            self.over.push(format!("{node}, by {uid}"));
        }
        Ok(())
    }

    /// Delivers an answer.
    fn answer(&mut self, position: usize) {
        let mut reply = self.replies.swap_remove(position);
        let (kind, uid, version) = &reply.about;
        let now_at = self.server.pod_with_uid(uid).map_or(0, |pod| pod.version);
        if *version != now_at {
            self.coverage.met("answered after a change", kind);
        }
        match &reply.answer {
            Answer::Concluded(conclusion) => self.scheduler.conclude(reply.ticket, conclusion, self.now),
            Answer::Extender(answer) => {
                self.scheduler.answer(reply.ticket, answer.clone(), self.now);
            }
            Answer::LookedUp(found) => {
                let found = found.clone().map(|found| found.map(|object| self.decode(&object)));
                self.scheduler.looked_up(reply.ticket, found, self.now);
            }
        }
        if let Some(landing) = reply.landing.take() {
            let at = self.now.after(Duration::from_secs(landing.within_seconds));
            self.landings.push((at, landing));
        }
        if std::mem::take(&mut reply.comes_twice) {
            reply.about.2 = u64::MAX;
            self.replies.push(reply);
        }
        self.take_orders();
    }

    /// Lets time pass; the scheduler is woken whenever it wants to be.
    fn pass(&mut self, seconds: u64) {
        let end = self.now.after(Duration::from_secs(seconds));
        loop {
            let landing = self.landings.iter().map(|(at, _)| *at).min();
            let next = landing.into_iter().chain(self.scheduler.next_deadline()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(due) = self.landings.iter().position(|(at, _)| *at <= self.now) {
                let (_, Landing { name, uid, node, .. }) = self.landings.swap_remove(due);
                // It may be too late by then.
                let _ = self.bind(&name, &uid, &node);
            }
            self.scheduler.advance(self.now);
            self.take_orders();
        }
        self.now = end;
        self.scheduler.advance(end);
    }
}

impl Reply {
    /// Whether the same answer has come before.
    fn is_repeated(&self) -> bool {
        self.about.2 == u64::MAX
    }
}
