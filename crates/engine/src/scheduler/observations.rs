//! What the scheduler has seen itself do, for those who count: the pure side of the metrics.
//!
//! The scheduler reads no clock: durations here are differences of the times that its driver told it, or what the driver's
//! [`Stopwatch`] says.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{Actions, ClusterEvent, EventResource, GaugeValue, LeftOut, Point};
use supercargo_model::Pod;

use super::{QueueLengths, Scheduler};
use crate::index::PlainDecisions;

/// So many observations are kept for a driver that does not take them; later ones are only counted.
const OBSERVATIONS_MAX: usize = 1 << 14;

/// Something that the scheduler did.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// Pods came into a part of the queue.
    Queued {
        /// The part of the queue that they came into.
        queue: QueuePart,
        /// The event that brought them there.
        event: QueueEvent,
        /// How many pods came, one after the other.
        pods: u64,
    },
    /// A pod was bound.
    Bound {
        /// The pod, as it was before.
        pod: Arc<Pod>,
        /// The node that it was bound to.
        node: Arc<str>,
        /// How many nodes were looked at when it was decided.
        evaluated_nodes: usize,
        /// How many of them were feasible.
        feasible_nodes: usize,
        /// How often it was tried.
        attempts: u32,
        /// How long ago it was first ready to be tried.
        since_queued: Duration,
        /// How long ago the attempt began that succeeded.
        since_attempt: Duration,
        /// Whether it was tried again only because it had waited for too long.
        was_flushed: bool,
    },
    /// A pod was given a node, but did not get there.
    NotBound {
        /// The pod.
        pod: Arc<Pod>,
        /// The node that it was given.
        node: Arc<str>,
        /// Whether a plugin rejected it; otherwise something broke.
        is_rejected: bool,
        /// Why the pod did not get there, in words for people.
        message: String,
        /// What the plugin that is to blame said, or what broke.
        words: String,
        /// The plugins to blame.
        plugins: BTreeSet<&'static str>,
        /// How long ago the attempt began.
        since_attempt: Duration,
    },
    /// A pod that was on its way to a node was bound by another writer.
    BoundByOther {
        /// The pod, as it was before.
        pod: Arc<Pod>,
        /// The node that it was on its way to.
        node: Arc<str>,
        /// The node that it is bound to.
        bound_to: Arc<str>,
    },
    /// A pod may have been bound, or not. It keeps its room, and the API server is asked.
    BindingUnknown {
        /// The pod.
        pod: Arc<Pod>,
        /// The node that it may be bound to.
        node: Arc<str>,
        /// Why it is not known whether it was bound.
        error: String,
    },
    /// The API server could not say what became of a pod. It is asked again.
    LookUpFailed {
        /// The pod.
        pod: Arc<Pod>,
        /// What the API server said, or why it said nothing.
        error: String,
    },
    /// An answer to an order came when nothing waited for it any more, or came twice. It changed nothing.
    AnswerDropped,
    /// A victim is being evicted.
    Evicting {
        /// The victim.
        victim: Arc<Pod>,
        /// The pod that it makes room for.
        preemptor: Arc<Pod>,
        /// The node that the victim leaves.
        node: Arc<str>,
    },
    /// A victim could not be evicted. The pod that it was to make room for is tried again after a while.
    NotEvicted {
        /// The victim.
        victim: Arc<Pod>,
        /// The pod that it was to make room for.
        preemptor: Arc<Pod>,
        /// Why the eviction failed.
        error: String,
    },
    /// What a pod says about its scheduling could not be written, or may not have been. Why it waits is written again.
    StatusNotWritten {
        /// The pod.
        pod: Arc<Pod>,
        /// Why.
        error: String,
    },
    /// All plugins of an extension point were run for a pod.
    PointRan {
        /// The point.
        point: Point,
        /// The pod.
        pod: Arc<Pod>,
        /// What came of it: a status code's name, as upstream.
        status: &'static str,
        /// How long it took, with what it waited for.
        took: Duration,
    },
    /// PostFilter looked for room.
    PreemptionTried,
    /// So many victims have to make room for a pod.
    VictimsChosen(usize),
    /// The victims of a pod were evicted, or not all of them.
    Evicted {
        /// Whether all of them were evicted.
        is_success: bool,
        /// How long it took.
        took: Duration,
    },
    /// A pod was given a node, and waits to be permitted to go there.
    PermitAwaited {
        /// The pod.
        pod: Arc<Pod>,
        /// The plugins that have not allowed it yet.
        plugins: Vec<&'static str>,
        /// How long the most patient of them would have it wait, before that is cut to what pods wait at most.
        patience: Duration,
    },
    /// A pod waited to be permitted.
    PermitWaited {
        /// What came of it: a status code's name, as upstream.
        result: &'static str,
        /// How long it waited.
        took: Duration,
    },
    /// A plugin asked for a pod to be tried as soon as possible.
    Activated {
        /// The plugin.
        plugin: &'static str,
        /// The pod's `metadata.uid`; it need not be in the queue.
        uid: Arc<str>,
    },
    /// A plugin counted something.
    Counted {
        /// The plugin.
        plugin: &'static str,
        /// What it counted.
        name: Cow<'static, str>,
        /// What tells one count of that name from another.
        labels: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    },
    /// A plugin said what a gauge shows from now on.
    Gauged {
        /// The plugin.
        plugin: &'static str,
        /// What it measures.
        name: Cow<'static, str>,
        /// All values that there are.
        values: Vec<GaugeValue>,
    },
    /// A plugin panicked. The pod is tried again after a backoff, and what the plugins did for it is taken back.
    PluginPanicked {
        /// The plugin.
        plugin: &'static str,
        /// The pod.
        pod: Arc<Pod>,
        /// What the panic says.
        message: String,
    },
    /// A plugin computed for long for a pod.
    PluginSlow {
        /// The plugin.
        plugin: &'static str,
        /// The pod.
        pod: Arc<Pod>,
        /// How long the plugin took.
        took: Duration,
    },
    /// A plugin asked for something that is not done.
    ActsRefused {
        /// The plugin.
        plugin: &'static str,
        /// How many things were asked for and are not done.
        acts: usize,
        /// Why they are not done.
        refusal: Refusal,
    },
    /// What a plugin that observes has ordered was not done, or may not have been. The plugin is told.
    PluginOrderFailed {
        /// The plugin.
        plugin: &'static str,
        /// What it has ordered, in a few words.
        order: String,
        /// Why it was not done.
        error: String,
    },
    /// Facts became too old, and are gone: no answer to the query told them again.
    FactsExpired {
        /// The query.
        query: String,
        /// How many facts are gone.
        facts: usize,
    },
    /// A question of a plugin about a pod was asked outside.
    QuestionAsked {
        /// The name of the question.
        question: String,
        /// `success`, or in a word why the pod is decided without an answer.
        result: &'static str,
        /// What of the answer does not count.
        left_out: LeftOut,
    },
    /// So many observations were not kept, because nobody had taken the others.
    Missed(u64),
}

/// Why something is not done that a plugin asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The plugin asked for too much in one step.
    TooMany,
    /// It wants to be woken, and does not observe.
    NotObserving,
    /// It wants something done in the world, and this replica follows.
    Following,
    /// It did not declare that it writes that; in words.
    Undeclared(String),
}

impl Refusal {
    /// What it is called in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Refusal::TooMany => "limit",
            Refusal::NotObserving => "not observing",
            Refusal::Following => "following",
            Refusal::Undeclared(_) => "undeclared",
        }
    }

    /// Why, in words that follow "not done, because".
    pub fn words(&self) -> String {
        match self {
            Refusal::TooMany => "it was too much at once".to_owned(),
            Refusal::NotObserving => "only plugins that observe can be woken".to_owned(),
            Refusal::Following => "this replica does not lead".to_owned(),
            Refusal::Undeclared(words) => words.clone(),
        }
    }
}

/// A part of the queue, as upstream counts them: gated pods are among the unschedulable ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePart {
    /// To be tried next.
    Active,
    /// To be tried after a while.
    Backoff,
    /// To be tried when something has happened.
    Unschedulable,
}

/// Why a pod came into a part of the queue, or what the API server told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// Its attempt failed.
    AttemptFailed,
    /// It has waited long enough after its last attempt.
    BackoffComplete,
    /// There was nothing else to do, so it need not wait on.
    PoppedFromBackoff,
    /// It has waited too long for something to happen.
    UnschedulableTimeout,
    /// Somebody asked for it to be tried.
    ForceActivate,
    /// There is another configuration.
    ConfigurationChanged,
    /// Something happened to a pod that waits.
    Waiting(Actions),
    /// Something happened, to another pod if to one.
    Cluster(ClusterEvent),
}

/// How much there is of everything now, as metrics show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// How many pods wait.
    pub queue: QueueLengths,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many pods have a node.
    pub pods: usize,
    /// How many of them the API server has not confirmed yet.
    pub assumed_pods: usize,
    /// How many pods are being bound.
    pub bindings: usize,
    /// How many of them may be bound already, or not.
    pub unresolved_bindings: usize,
    /// How many pods are being tried.
    pub in_flight: usize,
    /// What happened meanwhile, and how often.
    pub in_flight_events: BTreeMap<Cow<'static, str>, usize>,
    /// How many pods wait because of a plugin, by the plugin and their `spec.schedulerName`.
    pub unschedulable: BTreeMap<(&'static str, Box<str>), usize>,
    /// How many facts there are, by the query.
    pub facts: BTreeMap<String, usize>,
    /// How many pods were decided by asking every plugin about every node since the last time, and why.
    pub plain_decisions: PlainDecisions,
}

/// What the scheduler keeps about pods on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// The UIDs of pods that have a binding under way.
    pub binding: BTreeSet<Arc<str>>,
    /// The UIDs of pods whose binders say that they bound them, and that the watch has not told of yet.
    pub unconfirmed: BTreeSet<Arc<str>>,
    /// The UIDs of pods for which others are being evicted.
    pub preempting: BTreeSet<Arc<str>>,
    /// The UIDs of pods that a look-up has found never to be bound any more, and that the watch has not told so of yet.
    pub over: BTreeSet<Arc<str>>,
    /// How many orders are to be answered yet.
    pub tickets: usize,
    /// How many events are kept for pods that are being tried.
    pub happenings: usize,
    /// How many observations the driver has not taken yet.
    pub observations: usize,
}

/// Says how much time has passed since some fixed moment, for whoever wants to know how long plugins take. Nothing but
/// observations depends on it. Without a driver, no time passes.
#[derive(Clone, Copy)]
pub struct Stopwatch(pub fn() -> Duration);

/// What was observed and not taken yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    list: Vec<Observation>,
    missed: u64,
}

impl QueueEvent {
    /// What upstream calls it.
    pub fn label(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            QueueEvent::AttemptFailed => "ScheduleAttemptFailure",
            QueueEvent::BackoffComplete => "BackoffComplete",
            QueueEvent::PoppedFromBackoff => "PopFromBackoffQ",
            QueueEvent::UnschedulableTimeout => "UnschedulableTimeout",
            QueueEvent::ForceActivate => "ForceActivate",
            QueueEvent::ConfigurationChanged => "ConfigurationChanged",
            QueueEvent::Waiting(Actions::ADD) => "UnschedulablePodAdd",
            QueueEvent::Waiting(Actions::UPDATE) => "UnschedulablePodUpdate",
            QueueEvent::Waiting(Actions::DELETE) => "UnschedulablePodDelete",
            QueueEvent::Waiting(actions) => {
                return Cow::Owned(format!("UnschedulablePod{}", actions.label()));
            }
            QueueEvent::Cluster(event) => return cluster_label(event),
        })
    }
}

fn cluster_label(event: &ClusterEvent) -> Cow<'static, str> {
    let actions = event.actions;
    Cow::Borrowed(match (event.resource, actions) {
        (EventResource::Pod, Actions::ADD) => "AssignedPodAdd",
        (EventResource::Pod, Actions::UPDATE) => "AssignedPodUpdate",
        (EventResource::Pod, Actions::DELETE) => "AssignedPodDelete",
        (EventResource::Node, Actions::ADD) => "NodeAdd",
        (EventResource::Node, Actions::UPDATE) => "NodeUpdate",
        (EventResource::Node, Actions::DELETE) => "NodeDelete",
        (EventResource::Any, _) => "*",
        (EventResource::Pod, _) => return Cow::Owned(format!("AssignedPod{}", actions.label())),
        (EventResource::Node, _) => return Cow::Owned(format!("Node{}", actions.label())),
        (EventResource::Kind(kind), _) => {
            let action = actions.label();
            return Cow::Owned(match kind.group {
                "" => format!("{}{action}", kind.kind),
                "storage.k8s.io" | "resource.k8s.io" => format!("{}/{}{action}", kind.group, kind.kind),
                group => format!("{}.{}.{group}{action}", kind.plural, kind.version),
            });
        }
    })
}

impl Stopwatch {
    pub(super) fn read(self) -> Duration {
        (self.0)()
    }

    pub(super) fn since(self, began: Duration) -> Duration {
        self.read().saturating_sub(began)
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch(|| Duration::ZERO)
    }
}

impl std::fmt::Debug for Stopwatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Stopwatch")
    }
}

impl Observations {
    pub(super) fn note(&mut self, observation: Observation) {
        if let Some(Observation::Queued { queue, event, pods }) = self.list.last_mut()
            && let Observation::Queued { queue: new_queue, event: new_event, pods: more } = &observation
            && (&*queue, &*event) == (new_queue, new_event)
        {
            *pods += more;
        } else if self.list.len() < OBSERVATIONS_MAX {
            self.list.push(observation);
        } else {
            self.missed += 1;
        }
    }

    fn take(&mut self) -> Vec<Observation> {
        // The next list is as long as this one, as a rule.
        let next = Vec::with_capacity(self.list.len());
        let mut taken = std::mem::replace(&mut self.list, next);
        if self.missed > 0 {
            taken.push(Observation::Missed(std::mem::take(&mut self.missed)));
        }
        taken
    }
}

impl Scheduler {
    /// Measures how long plugins take.
    #[must_use]
    pub fn with_stopwatch(mut self, stopwatch: Stopwatch) -> Self {
        self.stopwatch = stopwatch;
        self
    }

    /// What was observed since the last time.
    pub fn take_observations(&mut self) -> Vec<Observation> {
        self.queue.observations.take()
    }

    /// How much there is of everything now, as metrics show it. This looks at every pod that waits.
    pub fn gauges(&mut self) -> Gauges {
        let mut unschedulable = BTreeMap::new();
        for waiting in self.queue.at_rest().filter(|waiting| !waiting.is_blameless()) {
            for plugin in waiting.rejectors.union(&waiting.pending) {
                let profile = &*waiting.queued.pod.spec.scheduler_name;
                *unschedulable.entry((*plugin, Box::from(profile))).or_default() += 1;
            }
        }
        let mut in_flight_events = BTreeMap::new();
        for event in self.queue.kept_events() {
            *in_flight_events.entry(QueueEvent::Cluster(event).label()).or_default() += 1;
        }
        Gauges {
            queue: self.queue.lengths(),
            nodes: self.engine.cluster.snapshot().node_count(),
            pods: self.engine.cluster.bound_pod_count(),
            assumed_pods: self.unconfirmed.len() + self.bindings.len(),
            bindings: self.bindings.len(),
            unresolved_bindings: self.bindings.unresolved(),
            in_flight: self.queue.in_flight_count(),
            in_flight_events,
            unschedulable,
            facts: self.queries.fact_counts(),
            plain_decisions: self.engine.take_plain_decisions(),
        }
    }

    /// What the scheduler keeps about pods on their way, for checks that it keeps neither too much nor too little.
    pub fn books(&self) -> Books {
        Books {
            binding: self.bindings.iter().map(|binding| binding.pod().uid.clone()).collect(),
            unconfirmed: self.unconfirmed.iter().cloned().collect(),
            preempting: self.evictions.preemptors().cloned().collect(),
            over: self.over.iter().cloned().collect(),
            tickets: self.tickets.len(),
            happenings: self.queue.kept_events().count(),
            observations: self.queue.observations.list.len(),
        }
    }

    pub(super) fn observe(&mut self, observation: Observation) {
        self.queue.observations.note(observation);
    }

    /// All plugins of a point were run for a pod: what came of it, and how long it took.
    pub(super) fn observe_point(
        &mut self,
        point: Point,
        pod: &Arc<Pod>,
        status: &'static str,
        took: Duration,
    ) {
        self.observe(Observation::PointRan { point, pod: pod.clone(), status, took });
    }
}
