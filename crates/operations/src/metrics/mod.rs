//! kube-scheduler's metrics under kube-scheduler's names, so that its dashboards and alerts go on working, and a few of our
//! own under `supercargo_`.
//!
//! [`Metrics`] is what the scheduler writes to: plain methods that keep the handles they have used, so that nothing is
//! looked up under a lock, hashed or allocated for a series that was there before. A clone writes to the same series.
//! [`Exposition`] is what a scrape reads: the text format that every Prometheus reads, with the numbers as Go prints them.
//!
//! What each means here, and which of upstream's are left out and why, stands in `docs/reference/metrics.md`.

mod extender;
mod labels;
mod memories;
mod plugins;
mod process;
mod programs;
mod queries;
mod series;
mod shadow;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use extender::ExtenderMetrics;
pub use labels::{AttemptResult, Cached, Queue};
pub use shadow::ShadowMetrics;

use memories::MemorySeries;
use plugins::PluginSeries;
use programs::ProgramSeries;
use queries::QuerySeries;
use series::{Series, buckets};

/// What the text format is called in a `Content-Type`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether something worked.
const fn outcome(success: bool) -> &'static str {
    if success { "success" } else { "error" }
}

/// What the scheduler writes to.
#[derive(Clone, Debug)]
pub struct Metrics {
    schedule_attempts: Series<2, Counter>,
    attempt_duration: Series<2, Histogram>,
    algorithm_duration: Series<0, Histogram>,
    event_handling: Series<1, Histogram>,
    preemption_victims: Series<0, Histogram>,
    preemption_attempts: Series<0, Counter>,
    pending_pods: Series<1, Gauge>,
    inflight_events: Series<1, Gauge>,
    goroutines: Series<1, Gauge>,
    sli_duration: Series<1, Histogram>,
    pod_attempts: Series<0, Histogram>,
    after_flush: Series<0, Counter>,
    extension_point: Series<3, Histogram>,
    plugin_execution: Series<3, Histogram>,
    queueing_hint: Series<3, Histogram>,
    incoming: Series<2, Counter>,
    permit_wait: Series<1, Histogram>,
    cache_size: Series<1, Gauge>,
    unschedulable_pods: Series<2, Gauge>,
    plugin_evaluation: Series<3, Counter>,
    eviction_duration: Series<1, Histogram>,
    evictions: Series<1, Counter>,
    volume_errors: Series<1, Counter>,
    requests: Series<3, Counter>,
    request_duration: Series<2, Histogram>,
    leader_status: Series<1, Gauge>,
    effects: Series<2, Counter>,
    watch_restarts: Series<1, Counter>,
    unreadable_objects: Series<1, Counter>,
    config_reloads: Series<1, Counter>,
    dropped_events: Series<0, Counter>,
    missed_observations: Series<0, Counter>,
    unresolved_bindings: Series<0, Gauge>,
    plain_decisions: Series<2, Counter>,
    look_ups_failed: Series<0, Counter>,
    answers_dropped: Series<0, Counter>,
    plugins: PluginSeries,
    queries: QuerySeries,
    memories: MemorySeries,
    programs: ProgramSeries,
}

/// The name of our election in `leader_election_master_status`, as upstream has it.
const ELECTION: &str = "kube-scheduler";

impl Metrics {
    /// All metrics, and what a scrape reads of them.
    pub fn new() -> (Self, Exposition) {
        let mut registry = Registry::default();
        let all = &mut registry;
        let mut metrics = Metrics {
            schedule_attempts: Series::counter(
                all,
                "scheduler_schedule_attempts",
                "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem",
                ["profile", "result"],
            ),
            attempt_duration: Series::histogram(
                all,
                "scheduler_scheduling_attempt_duration_seconds",
                "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
                ["profile", "result"],
                || buckets(0.001, 2.0, 15),
            ),
            algorithm_duration: Series::histogram(
                all,
                "scheduler_scheduling_algorithm_duration_seconds",
                "Scheduling algorithm latency in seconds",
                [],
                || buckets(0.001, 2.0, 15),
            ),
            event_handling: Series::histogram(
                all,
                "scheduler_event_handling_duration_seconds",
                "Event handling latency in seconds",
                ["event"],
                || buckets(0.0001, 2.0, 12),
            ),
            preemption_victims: Series::histogram(
                all,
                "scheduler_preemption_victims",
                "Number of selected preemption victims",
                [],
                || buckets(1.0, 2.0, 7),
            ),
            preemption_attempts: Series::counter(
                all,
                "scheduler_preemption_attempts",
                "Total preemption attempts in the cluster till now",
                [],
            ),
            pending_pods: Series::gauge(
                all,
                "scheduler_pending_pods",
                "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated",
                ["queue"],
            ),
            inflight_events: Series::gauge(
                all,
                "scheduler_inflight_events",
                "Number of events currently tracked in the scheduling queue",
                ["event"],
            ),
            goroutines: Series::gauge(
                all,
                "scheduler_goroutines",
                "Number of running goroutines split by the work they do such as binding",
                ["operation"],
            ),
            sli_duration: Series::histogram(
                all,
                "scheduler_pod_scheduling_sli_duration_seconds",
                "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts",
                ["attempts"],
                || buckets(0.01, 2.0, 20),
            ),
            pod_attempts: Series::histogram(
                all,
                "scheduler_pod_scheduling_attempts",
                "Number of attempts to successfully schedule a pod",
                [],
                || buckets(1.0, 2.0, 5),
            ),
            after_flush: Series::counter(
                all,
                "scheduler_pod_scheduled_after_flush",
                "Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues",
                [],
            ),
            extension_point: Series::histogram(
                all,
                "scheduler_framework_extension_point_duration_seconds",
                "Latency for running all plugins of a specific extension point",
                ["extension_point", "profile", "status"],
                || buckets(0.0001, 2.0, 12),
            ),
            plugin_execution: Series::histogram(
                all,
                "scheduler_plugin_execution_duration_seconds",
                "Duration for running a plugin at a specific extension point",
                ["extension_point", "plugin", "status"],
                || buckets(0.00001, 1.5, 20),
            ),
            queueing_hint: Series::histogram(
                all,
                "scheduler_queueing_hint_execution_duration_seconds",
                "Duration for running a queueing hint function of a plugin",
                ["event", "hint", "plugin"],
                || buckets(0.00001, 1.5, 20),
            ),
            incoming: Series::counter(
                all,
                "scheduler_queue_incoming_pods",
                "Number of pods added to scheduling queues by event and queue type",
                ["event", "queue"],
            ),
            permit_wait: Series::histogram(
                all,
                "scheduler_permit_wait_duration_seconds",
                "Duration of waiting on permit",
                ["result"],
                || buckets(0.001, 2.0, 15),
            ),
            cache_size: Series::gauge(
                all,
                "scheduler_cache_size",
                "Number of nodes, pods, and assumed (bound) pods in the scheduler cache",
                ["type"],
            ),
            unschedulable_pods: Series::gauge(
                all,
                "scheduler_unschedulable_pods",
                "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin",
                ["plugin", "profile"],
            ),
            plugin_evaluation: Series::counter(
                all,
                "scheduler_plugin_evaluation",
                "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, PreScore, and Score)",
                ["extension_point", "plugin", "profile"],
            ),
            eviction_duration: Series::histogram(
                all,
                "scheduler_preemption_goroutines_duration_seconds",
                "Duration in seconds for running goroutines for the preemption",
                ["result"],
                || buckets(0.01, 2.0, 20),
            ),
            evictions: Series::counter(
                all,
                "scheduler_preemption_goroutines_execution",
                "Number of preemption goroutines executed",
                ["result"],
            ),
            volume_errors: Series::counter(
                all,
                "scheduler_volume_scheduling_stage_error",
                "Volume scheduling stage error count",
                ["operation"],
            ),
            requests: Series::counter(
                all,
                "rest_client_requests",
                "Number of HTTP requests, partitioned by status code, method, and host",
                ["code", "host", "method"],
            ),
            request_duration: Series::histogram(
                all,
                "rest_client_request_duration_seconds",
                "Request latency in seconds. Broken down by verb, and host",
                ["host", "verb"],
                || Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]),
            ),
            leader_status: Series::gauge(
                all,
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name",
                ["name"],
            ),
            effects: Series::counter(
                all,
                "supercargo_effects",
                "Number of things done to the cluster, by what and by the result",
                ["effect", "result"],
            ),
            watch_restarts: Series::counter(
                all,
                "supercargo_watch_restarts",
                "Number of times a watch had to list everything again, by kind",
                ["kind"],
            ),
            unreadable_objects: Series::counter(
                all,
                "supercargo_unreadable_objects",
                "Number of times an object came or changed and could not be read, by kind; the log names it",
                ["kind"],
            ),
            config_reloads: Series::counter(
                all,
                "supercargo_config_reloads",
                "Number of times the configuration file changed, by whether the change was taken",
                ["result"],
            ),
            dropped_events: Series::counter(
                all,
                "supercargo_events_dropped",
                "Number of events that were not recorded because there were too many",
                [],
            ),
            missed_observations: Series::counter(
                all,
                "supercargo_observations_missed",
                "Number of observations that the other metrics lack because there were too many at once",
                [],
            ),
            unresolved_bindings: Series::gauge(
                all,
                "supercargo_unresolved_bindings",
                "Number of pods that may be bound or not, because the answer to their binding did not say so; their room stays taken",
                [],
            ),
            plain_decisions: Series::counter(
                all,
                "supercargo_plain_decisions",
                "Number of pods that were decided by asking every plugin about every node, by the plugin because of which it was so, and the reason",
                ["plugin", "reason"],
            ),
            look_ups_failed: Series::counter(
                all,
                "supercargo_look_ups_failed",
                "Number of times the API server could not say whether a pod was bound",
                [],
            ),
            answers_dropped: Series::counter(
                all,
                "supercargo_answers_dropped",
                "Number of answers to orders that came too late or twice, and were dropped",
                [],
            ),
            plugins: PluginSeries::new(all),
            queries: QuerySeries::new(all),
            memories: MemorySeries::new(all),
            programs: ProgramSeries::new(all),
        };
        metrics.show_zeros();
        (metrics, Exposition { registry: Arc::new(registry) })
    }

    /// Makes what upstream shows from the start be there from the start: an alert on a rate wants to see the zero.
    fn show_zeros(&mut self) {
        for queue in [Queue::Active, Queue::Backoff, Queue::Unschedulable, Queue::Gated] {
            self.pending_pods(queue, 0);
        }
        for cached in [Cached::AssumedPods, Cached::Pods, Cached::Nodes] {
            self.cache_size(cached, 0);
        }
        self.leading(false);
        self.preemption_attempts.of([]);
        self.after_flush.of([]);
        self.dropped_events.of([]);
        self.missed_observations.of([]);
        self.unresolved_bindings.of([]);
        self.look_ups_failed.of([]);
        self.answers_dropped.of([]);
        self.algorithm_duration.of([]);
        self.preemption_victims.of([]);
        self.pod_attempts.of([]);
    }

    /// A pod was tried: deciding and, if it was to be bound, binding took so long.
    pub fn attempt(&mut self, profile: &str, result: AttemptResult, duration: Duration) {
        self.schedule_attempts.of([profile, result.label()]).inc();
        self.attempt_duration.of([profile, result.label()]).observe(duration.as_secs_f64());
    }

    /// Deciding alone took so long.
    pub fn algorithm(&mut self, duration: Duration) {
        self.algorithm_duration.of([]).observe(duration.as_secs_f64());
    }

    /// An event from the cluster was taken in.
    pub fn event_handled(&mut self, event: &str, duration: Duration) {
        self.event_handling.of([event]).observe(duration.as_secs_f64());
    }

    /// Preemption was tried.
    pub fn preemption_attempt(&mut self) {
        self.preemption_attempts.of([]).inc();
    }

    /// Preemption has chosen so many victims.
    pub fn preemption(&mut self, victims: usize) {
        self.preemption_victims.of([]).observe(victims as f64);
    }

    /// The victims of one preemption were evicted, or not, in so long.
    pub fn evicted(&mut self, success: bool, duration: Duration) {
        self.evictions.of([outcome(success)]).inc();
        self.eviction_duration.of([outcome(success)]).observe(duration.as_secs_f64());
    }

    /// So many pods wait in a part of the queue.
    pub fn pending_pods(&mut self, queue: Queue, pods: usize) {
        self.pending_pods.of([queue.label()]).set(count(pods));
    }

    /// So many events of a kind are kept for pods that are being tried; `PodPopped` counts those pods.
    pub fn inflight_events(&mut self, event: &str, events: usize) {
        self.inflight_events.of([event]).set(count(events));
    }

    /// So many things of a kind are under way, such as `binding`.
    pub fn under_way(&mut self, operation: &str, tasks: usize) {
        self.goroutines.of([operation]).set(count(tasks));
    }

    /// A pod was bound, so long after it came and after so many attempts.
    pub fn bound(&mut self, attempts: u32, since_queued: Duration) {
        const LABELS: [&str; 15] =
            ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15+"];
        let index = (attempts.saturating_sub(1) as usize).min(LABELS.len() - 1);
        self.sli_duration.of([LABELS[index]]).observe(since_queued.as_secs_f64());
        self.pod_attempts.of([]).observe(f64::from(attempts));
    }

    /// A pod was bound after it had been tried again only because it had waited for too long.
    pub fn bound_after_flush(&mut self) {
        self.after_flush.of([]).inc();
    }

    /// All plugins of an extension point took so long.
    pub fn extension_point(&mut self, point: &str, profile: &str, status: &str, duration: Duration) {
        self.extension_point.of([point, profile, status]).observe(duration.as_secs_f64());
    }

    /// A plugin took so long at an extension point.
    pub fn plugin(&mut self, point: &str, plugin: &str, status: &str, duration: Duration) {
        self.plugin_execution.of([point, plugin, status]).observe(duration.as_secs_f64());
    }

    /// A plugin was asked at an extension point for so many pods, once for each, however many nodes there are.
    pub fn plugin_evaluated(&mut self, point: &str, plugin: &str, profile: &str, times: u64) {
        self.plugin_evaluation.of([point, plugin, profile]).inc_by(times);
    }

    /// A plugin was asked whether an event helps: `Queue`, `QueueSkip` or `Error`.
    pub fn queueing_hint(&mut self, event: &str, hint: &str, plugin: &str, duration: Duration) {
        self.queueing_hint.of([event, hint, plugin]).observe(duration.as_secs_f64());
    }

    /// So many pods came into a part of the queue because of an event.
    pub fn incoming(&mut self, queue: Queue, event: &str, pods: u64) {
        self.incoming.of([event, queue.label()]).inc_by(pods);
    }

    /// A pod waited so long to be permitted, and was told so: a status, such as `Success`.
    pub fn permit_wait(&mut self, result: &str, duration: Duration) {
        self.permit_wait.of([result]).observe(duration.as_secs_f64());
    }

    /// The cache holds so many.
    pub fn cache_size(&mut self, cached: Cached, size: usize) {
        self.cache_size.of([cached.label()]).set(count(size));
    }

    /// So many pods are unschedulable because of a plugin.
    pub fn unschedulable_pods(&mut self, plugin: &str, profile: &str, pods: usize) {
        self.unschedulable_pods.of([plugin, profile]).set(count(pods));
    }

    /// A step of binding volumes failed: `predicate`, `assume`, `bind`.
    pub fn volume_error(&mut self, operation: &str) {
        self.volume_errors.of([operation]).inc();
    }

    /// The API server has answered, with this status or, if it did not, `<error>`.
    pub fn request(&mut self, host: &str, method: &str, code: &str, duration: Duration) {
        self.requests.of([code, host, method]).inc();
        self.request_duration.of([host, method]).observe(duration.as_secs_f64());
    }

    /// Whether we lead.
    pub fn leading(&mut self, leading: bool) {
        self.leader_status.of([ELECTION]).set(i64::from(leading));
    }

    /// Something was done to the cluster so many times, such as `bind`, or it failed.
    pub fn effects(&mut self, effect: &str, success: bool, times: u64) {
        self.effects.of([effect, outcome(success)]).inc_by(times);
    }

    /// A watch had to list everything again.
    pub fn watch_restarted(&mut self, kind: &str) {
        self.watch_restarts.of([kind]).inc();
    }

    /// An object came or changed, and could not be read.
    pub fn object_unreadable(&mut self, kind: &str) {
        self.unreadable_objects.of([kind]).inc();
    }

    /// The configuration file changed, and the change was taken or refused.
    pub fn config_reloaded(&mut self, success: bool) {
        self.config_reloads.of([outcome(success)]).inc();
    }

    /// So many observations were not counted.
    pub fn observations_missed(&mut self, times: u64) {
        self.missed_observations.of([]).inc_by(times);
    }

    /// So many pods may be bound or not.
    pub fn unresolved_bindings(&mut self, pods: usize) {
        self.unresolved_bindings.of([]).set(count(pods));
    }

    /// So many pods were decided by asking every plugin about every node, because of a plugin if it has a name.
    pub fn plain_decisions(&mut self, plugin: &str, reason: &str, pods: u64) {
        self.plain_decisions.of([plugin, reason]).inc_by(pods);
    }

    /// The API server could not say whether a pod was bound.
    pub fn look_up_failed(&mut self) {
        self.look_ups_failed.of([]).inc();
    }

    /// An answer came too late or twice.
    pub fn answer_dropped(&mut self) {
        self.answers_dropped.of([]).inc();
    }

    /// So many events were not recorded.
    pub fn events_dropped(&mut self, events: u64) {
        self.dropped_events.of([]).inc_by(events);
    }
}

/// What a scrape reads.
#[derive(Clone, Debug)]
pub struct Exposition {
    registry: Arc<Registry>,
}

impl Exposition {
    /// All metrics, and those of the process, as text of the type [`CONTENT_TYPE`].
    pub fn text(&self) -> String {
        let mut open = String::new();
        // Writing to a string does not fail, and our metrics have no labels that cannot be written.
        if let Err(error) = prometheus_client::encoding::text::encode(&mut open, &self.registry) {
            tracing::error!(err = %error, "Metrics cannot be written");
        }
        let mut text = text::plain(&open);
        text.push_str(&process::read("/proc"));
        text
    }
}

/// When this process was started, as a metric.
pub(crate) fn process_start() -> String {
    let all = process::read("/proc");
    let is_it = |line: &&str| line.split([' ', '#']).any(|word| word == "process_start_time_seconds");
    all.lines().filter(is_it).map(|line| format!("{line}\n")).collect()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
