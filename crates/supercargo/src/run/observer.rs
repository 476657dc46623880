//! What the scheduler does, as metrics and in its journal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use supercargo_engine::{
    Attempt, Decision, Gauges, MemoriesKept, Observation, Observer, Outcome, PerformCounts, PlainReason,
    QueryAsked, QueueEvent, QueuePart,
};
use supercargo_framework::{PluginInstance, Point, Profile};
use supercargo_model::{KindId, Pod, Timestamp};
use supercargo_operations::metrics::{AttemptResult, Cached, Metrics, Queue};

use super::decisions::SharedJournal;

/// What upstream calls the pods that are being tried, among the events that are kept for them.
const POD_POPPED: &str = "PodPopped";

/// Counts what it hears, and notes what was decided.
pub(super) struct RunObserver {
    metrics: Metrics,
    journal: SharedJournal,
    /// Which plugins were asked, by profile.
    asked: BTreeMap<String, Asked>,
    /// What was unschedulable, and kept for pods in flight, when things were last looked at.
    unschedulable: BTreeMap<(&'static str, Box<str>), usize>,
    in_flight_events: BTreeSet<Cow<'static, str>>,
    /// How many facts there were of each query, likewise.
    facts: BTreeMap<String, usize>,
    /// What had been done when that was last counted.
    performed: PerformCounts,
}

/// So many pods wait to be counted at most.
const UNCOUNTED_MAX: usize = 128;

/// How often the plugins of a profile were asked since that was last counted: adding to some forty series for every pod would cost more
/// than many a decision, and so would asking each plugin whether the pod concerns it, one pod at a time.
struct Asked {
    plugins: Vec<(PluginInstance, AskedPlugin)>,
    /// Pods that were decided for, and whether nodes were scored for them.
    uncounted: Vec<(Arc<Pod>, bool)>,
}

/// How often a plugin was asked.
struct AskedPlugin {
    /// Those of its points that come before a node is chosen among several, and those that choose.
    filters: Vec<Point>,
    scores: Vec<Point>,
    filtered: u64,
    scored: u64,
}

impl RunObserver {
    pub(super) fn new(metrics: Metrics, journal: SharedJournal) -> Self {
        RunObserver {
            metrics,
            journal,
            asked: BTreeMap::new(),
            unschedulable: BTreeMap::new(),
            in_flight_events: BTreeSet::new(),
            facts: BTreeMap::new(),
            performed: PerformCounts::default(),
        }
    }

    /// Notes which plugins of the profile had a say in a decision.
    fn note_asked(&mut self, decision: &Decision, profile: &Profile) {
        if !self.asked.get(&profile.scheduler_name).is_some_and(|asked| asked.are_of(profile)) {
            // A profile that was not seen before, or that is another one after a reload.
            self.count_asked();
            self.asked.insert(profile.scheduler_name.clone(), Asked::of(profile));
        }
        let Some(asked) = self.asked.get_mut(&profile.scheduler_name) else { return };
        let is_scored = matches!(decision.outcome, Outcome::Place { feasible, .. } if feasible > 1);
        asked.uncounted.push((decision.pod.clone(), is_scored));
        if asked.uncounted.len() >= UNCOUNTED_MAX {
            asked.count();
        }
    }

    fn count_asked(&mut self) {
        for (profile, asked) in &mut self.asked {
            asked.count();
            for (plugin, asked) in &mut asked.plugins {
                for (points, times) in
                    [(&asked.filters, &mut asked.filtered), (&asked.scores, &mut asked.scored)]
                {
                    let times = std::mem::take(times);
                    for point in points.iter().filter(|_| times > 0) {
                        self.metrics.plugin_evaluated(point_label(*point), plugin.name, profile, times);
                    }
                }
            }
        }
    }

    fn gauge_unschedulable(&mut self, unschedulable: &BTreeMap<(&'static str, Box<str>), usize>) {
        for (plugin, profile) in self.unschedulable.keys().filter(|key| !unschedulable.contains_key(*key)) {
            self.metrics.unschedulable_pods(plugin, profile, 0);
        }
        for ((plugin, profile), pods) in unschedulable {
            self.metrics.unschedulable_pods(plugin, profile, *pods);
        }
        self.unschedulable.clone_from(unschedulable);
    }

    fn gauge_facts(&mut self, facts: &BTreeMap<String, usize>) {
        for gone in self.facts.keys().filter(|query| !facts.contains_key(*query)) {
            self.metrics.query_facts(gone, 0);
        }
        for (query, facts) in facts {
            self.metrics.query_facts(query, *facts);
        }
        self.facts.clone_from(facts);
    }

    fn gauge_in_flight(&mut self, gauges: &Gauges) {
        self.metrics.inflight_events(POD_POPPED, gauges.in_flight);
        for gone in self.in_flight_events.iter().filter(|event| !gauges.in_flight_events.contains_key(*event))
        {
            self.metrics.inflight_events(gone, 0);
        }
        for (event, times) in &gauges.in_flight_events {
            self.metrics.inflight_events(event, *times);
        }
        self.in_flight_events.extend(gauges.in_flight_events.keys().cloned());
    }
}

impl Asked {
    fn of(profile: &Profile) -> Self {
        let plugins = profile.plugins().iter();
        Asked {
            plugins: plugins.map(|plugin| (plugin.clone(), AskedPlugin::of(plugin.name, profile))).collect(),
            uncounted: Vec::new(),
        }
    }

    /// Whether these are the plugins of the profile. All plugins of one are made together, so the first of them tells.
    fn are_of(&self, profile: &Profile) -> bool {
        match (self.plugins.first(), profile.plugins().first()) {
            (Some((ours, _)), Some(theirs)) => ours.is_same(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }

    /// Counts who was asked about the pods that wait for that.
    fn count(&mut self) {
        for (plugin, asked) in &mut self.plugins {
            for (_, is_scored) in self.uncounted.iter().filter(|(pod, _)| plugin.concerns(pod)) {
                asked.filtered += 1;
                asked.scored += u64::from(*is_scored);
            }
        }
        self.uncounted.clear();
    }
}

impl AskedPlugin {
    fn of(plugin: &'static str, profile: &Profile) -> Self {
        let point = |point: Point, has: bool| has.then_some(point);
        let filters = [
            point(Point::PreFilter, profile.pre_filter.iter().any(|named| named.name == plugin)),
            point(Point::Filter, profile.filter.iter().any(|named| named.name == plugin)),
        ];
        let scores = [
            point(Point::PreScore, profile.pre_score.iter().any(|named| named.name == plugin)),
            point(Point::Score, profile.score.iter().any(|(named, _)| named.name == plugin)),
        ];
        let (filters, scores) =
            (filters.into_iter().flatten().collect(), scores.into_iter().flatten().collect());
        AskedPlugin { filters, scores, filtered: 0, scored: 0 }
    }
}

impl Observer for RunObserver {
    fn decided(&mut self, attempt: Attempt<'_>) {
        let Attempt { decision, profile, took, number } = attempt;
        self.journal.decided(decision, number);
        let name = &*profile.scheduler_name;
        let status = match &decision.outcome {
            // How the attempt ends is known when the pod is bound, or not.
            Outcome::Place { .. } => "Success",
            Outcome::Unschedulable { .. } => {
                self.metrics.attempt(name, AttemptResult::Unschedulable, took);
                "Unschedulable"
            }
            Outcome::Failed { .. } => {
                self.metrics.attempt(name, AttemptResult::Error, took);
                "Error"
            }
        };
        self.metrics.algorithm(took);
        // Filters and scores are looked up together, and this is how long that took.
        self.metrics.extension_point(point_label(Point::Filter), name, status, took);
        self.note_asked(decision, profile);
    }

    fn observed(&mut self, observation: Observation) {
        self.journal.observed(&observation);
        let metrics = &mut self.metrics;
        match observation {
            Observation::Queued { queue, event, pods } => {
                metrics.incoming(queue_of(queue), &event.label(), pods);
            }
            Observation::Bound { pod, attempts, since_queued, since_attempt, was_flushed, .. } => {
                metrics.attempt(&pod.spec.scheduler_name, AttemptResult::Scheduled, since_attempt);
                metrics.bound(attempts, since_queued);
                if was_flushed {
                    metrics.bound_after_flush();
                }
            }
            Observation::NotBound { pod, is_rejected, since_attempt, .. } => {
                let result = if is_rejected { AttemptResult::Unschedulable } else { AttemptResult::Error };
                metrics.attempt(&pod.spec.scheduler_name, result, since_attempt);
            }
            Observation::PointRan { point, pod, status, took } => {
                metrics.extension_point(point_label(point), &pod.spec.scheduler_name, status, took);
            }
            Observation::PreemptionTried => metrics.preemption_attempt(),
            Observation::VictimsChosen(victims) => metrics.preemption(victims),
            Observation::Evicted { is_success, took } => metrics.evicted(is_success, took),
            Observation::LookUpFailed { .. } => metrics.look_up_failed(),
            Observation::AnswerDropped => metrics.answer_dropped(),
            // The driver logs these; how many bindings are unresolved is told with how things stand.
            Observation::BoundByOther { .. }
            | Observation::BindingUnknown { .. }
            | Observation::Evicting { .. }
            | Observation::NotEvicted { .. }
            | Observation::StatusNotWritten { .. }
            | Observation::PluginOrderFailed { .. }
            | Observation::PermitAwaited { .. }
            | Observation::Activated { .. } => {}
            Observation::PermitWaited { result, took } => metrics.permit_wait(result, took),
            Observation::Counted { plugin, name, labels } => {
                let labels = labels.iter().map(|(name, value)| (&**name, &**value));
                metrics.plugin_counted(plugin, &name, labels);
            }
            Observation::Gauged { plugin, name, values } => {
                let values = values.iter().map(|value| {
                    let labels = value.labels.iter().map(|(name, value)| (&**name, &**value));
                    (labels.collect(), value.value)
                });
                metrics.plugin_gauge(plugin, &name, values);
            }
            Observation::PluginPanicked { plugin, .. } => metrics.plugin_panicked(plugin),
            Observation::PluginSlow { plugin, .. } => metrics.plugin_was_slow(plugin),
            Observation::ActsRefused { plugin, acts, refusal } => {
                metrics.plugin_acts_refused(plugin, refusal.label(), acts as u64);
            }
            Observation::QuestionAsked { question, result, left_out } => {
                metrics.question_asked(&question, result);
                for (reason, times) in left_out.iter() {
                    metrics.query_left_out(&question, reason.label(), times);
                }
            }
            // How many there are is told with how things stand.
            Observation::FactsExpired { .. } => {}
            Observation::Missed(times) => metrics.observations_missed(times),
        }
    }

    fn told(&mut self, event: QueueEvent, took: Duration) {
        self.metrics.event_handled(&event.label(), took);
    }

    fn listed_again(&mut self, kind: KindId) {
        self.metrics.watch_restarted(kind.plural);
    }

    fn could_not_read(&mut self, kind: KindId) {
        self.metrics.object_unreadable(kind.plural);
    }

    fn performed(&mut self, counts: PerformCounts) {
        let before = std::mem::replace(&mut self.performed, counts);
        let lost = counts.events_lost - before.events_lost;
        let differences = [
            ("bind", true, counts.bound - before.bound),
            ("bind", false, counts.bindings_failed - before.bindings_failed),
            ("record", true, counts.events_told - before.events_told),
            ("record", false, lost),
        ];
        for (effect, success, times) in differences.into_iter().filter(|(.., times)| *times > 0) {
            self.metrics.effects(effect, success, times);
        }
        self.metrics.events_dropped(lost);
    }

    fn queried(&mut self, asked: QueryAsked<'_>) {
        let QueryAsked { query, result, took, bytes, taken, now } = asked;
        self.metrics.query_asked(query, result, took);
        let Some(taken) = taken else { return };
        self.metrics.query_answered(query, bytes, now.seconds());
        for (reason, times) in taken.left_out.iter() {
            self.metrics.query_left_out(query, reason.label(), times);
        }
    }

    fn kept(&mut self, kept: &MemoriesKept) {
        let metrics = &mut self.metrics;
        match kept {
            MemoriesKept::Saved { bytes, at, had_conflict } => {
                metrics.memories_saved(*bytes, at.seconds(), *had_conflict);
            }
            MemoriesKept::NotSaved { .. } => metrics.memories_not_saved(),
            MemoriesKept::Unsaved { plugin, memory, .. } => metrics.memory_unsaved(plugin, memory),
            MemoriesKept::Loaded { saved_at } => {
                metrics.memories_loaded(true, saved_at.map(Timestamp::seconds));
            }
            MemoriesKept::NotLoaded { .. } => metrics.memories_loaded(false, None),
            MemoriesKept::Dropped(dropped) => metrics.memory_dropped(dropped.plugin, dropped.reason.label()),
        }
    }

    fn gauges(&mut self, gauges: &Gauges) {
        let queue = gauges.queue;
        self.metrics.pending_pods(Queue::Active, queue.active);
        self.metrics.pending_pods(Queue::Backoff, queue.backoff);
        self.metrics.pending_pods(Queue::Unschedulable, queue.unschedulable);
        self.metrics.pending_pods(Queue::Gated, queue.gated);
        self.metrics.cache_size(Cached::Nodes, gauges.nodes);
        self.metrics.cache_size(Cached::Pods, gauges.pods);
        self.metrics.cache_size(Cached::AssumedPods, gauges.assumed_pods);
        self.metrics.under_way("binding", gauges.bindings);
        self.metrics.unresolved_bindings(gauges.unresolved_bindings);
        self.gauge_unschedulable(&gauges.unschedulable);
        self.gauge_in_flight(gauges);
        self.gauge_facts(&gauges.facts);
        for (PlainReason { plugin, why }, pods) in &gauges.plain_decisions {
            self.metrics.plain_decisions(plugin, why, *pods);
        }
        self.count_asked();
    }
}

fn queue_of(queue: QueuePart) -> Queue {
    match queue {
        QueuePart::Active => Queue::Active,
        QueuePart::Backoff => Queue::Backoff,
        QueuePart::Unschedulable => Queue::Unschedulable,
    }
}

/// A point's name in metrics, such as `PreFilter`.
fn point_label(point: Point) -> &'static str {
    match point {
        Point::PreEnqueue => "PreEnqueue",
        Point::QueueSort => "QueueSort",
        Point::PreFilter => "PreFilter",
        Point::Filter => "Filter",
        Point::PostFilter => "PostFilter",
        Point::PreScore => "PreScore",
        Point::Score => "Score",
        Point::Reserve => "Reserve",
        Point::Permit => "Permit",
        Point::PreBind => "PreBind",
        Point::Bind => "Bind",
        Point::PostBind => "PostBind",
    }
}
