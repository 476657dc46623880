//! Keeping the books: what pods and their owners do, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Context, Effect, GaugeValue, Notice, Observe, OrderChanges, Subject,
};
use supercargo_model::{Kind, Pod, Timestamp};

use super::QosAware;
use super::books::{Books, OwnerId};
use super::log::{EndedLog, Line};
use super::metric::Measured;
use super::owners::{Job, ReplicaSet, owner_of, wanted};
use super::terms::{Terms, is_system};

/// How often the metrics say how controllers do.
const GAUGES_EVERY: Duration = Duration::from_secs(10);
/// So many controllers have metrics, the first by name; how many others there are is a metric, too.
pub(super) const GAUGED_CONTROLLERS_MAX: usize = 100;

impl Observe for QosAware {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::ALL),
            ClusterEvent::kind(Job::ID, Actions::ALL),
            ClusterEvent::kind(ReplicaSet::ID, Actions::ALL),
        ]
    }

    fn started_with(&self, context: &Context<'_>, waiting: &[Arc<Pod>], acts: &mut Acts<'_>) {
        let bound = context.cluster.nodes().flat_map(|node| node.pods());
        let pods: Vec<Arc<Pod>> = bound.chain(waiting).cloned().collect();
        let now = context.now;
        let wants = |owner: &OwnerId| wanted(context.cluster, owner);
        let (came, gone) = acts.memory::<Books>().reconcile(&pods, &wants, now);
        for pod in &came {
            self.warn(pod, acts);
        }
        for uid in &gone {
            self.end(uid, now, acts);
        }
        self.gauge(now, acts);
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        match change {
            Change::Pod { new: Some(pod), .. } if !is_system(pod) => self.see(context, pod, acts),
            Change::Pod { old: Some(pod), new: None } => {
                self.no_longer_in_vain(&pod.uid, acts);
                self.end(&pod.uid, context.now, acts);
            }
            Change::Object { old, new } => {
                let Some(object) = new.or(*old) else { return };
                let Some((owner, wanted)) = owner_of(object) else { return };
                if acts.recall::<Books>().is_some_and(|books| books.knows_owner(&owner)) {
                    let wanted = new.map(|_| wanted);
                    acts.memory::<Books>().scale(&owner, wanted, context.now);
                }
            }
            _ => {}
        }
    }

    fn finished(&self, context: &Context<'_>, pod: &Pod, has_succeeded: bool, acts: &mut Acts<'_>) {
        if !has_succeeded || is_system(pod) {
            return;
        }
        // That it is gone was told just before.
        let now = context.now;
        let books = acts.memory::<Books>();
        if books.succeed(&pod.uid, now) {
            let terms = Terms::of(pod);
            let measured =
                books.now().controller_of(pod, &terms).map(|controller| Measured::of(controller, None, now));
            acts.memory::<EndedLog>().succeed(&pod.uid, measured.as_ref());
        }
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        self.gauge(context.now, acts);
        self.retry(context.now, acts);
    }
}

impl QosAware {
    /// Takes note of how a pod is.
    fn see(&self, context: &Context<'_>, pod: &Pod, acts: &mut Acts<'_>) {
        let now = context.now;
        let known = acts.recall::<Books>().and_then(|books| books.now().pods.get(&pod.uid));
        let known = known.map(|known| (known.life.running.is_some(), known.is_terminating, known.phase));
        if known.is_none() {
            let wants = |owner: &OwnerId| wanted(context.cluster, owner);
            acts.memory::<Books>().arrive(pod, &wants, now);
            self.warn(pod, acts);
        }
        let (is_running, is_terminating, phase) = known.unwrap_or((false, false, pod.phase()));
        if pod.node_name.is_some() {
            if !is_running {
                // Somebody else bound it.
                let running = pod.scheduled_at().unwrap_or(now).min(now);
                acts.memory::<Books>().start(&pod.uid, None, running, now);
            }
            self.no_longer_in_vain(&pod.uid, acts);
        }
        if pod.is_terminating() && !is_terminating {
            acts.memory::<Books>().release(&pod.uid, now);
        }
        if pod.phase() != phase {
            acts.memory::<Books>().set_phase(&pod.uid, pod.phase(), now);
        }
    }

    /// A pod is gone.
    fn end(&self, uid: &Arc<str>, now: Timestamp, acts: &mut Acts<'_>) {
        let Some(line) = acts.recall::<Books>().and_then(|books| Line::of(books.now(), uid, now)) else {
            return;
        };
        acts.memory::<Books>().end(uid, now);
        acts.memory::<EndedLog>().add(uid, line);
    }

    /// Tells of annotations that cannot be: once for each controller. Every pod is counted.
    fn warn(&self, pod: &Pod, acts: &mut Acts<'_>) {
        let problems = Terms::problems(pod);
        if problems.is_empty() {
            return;
        }
        for problem in &problems {
            acts.count("invalid_annotations", &[("annotation", problem.name)]);
        }
        if !acts.memory::<Books>().is_to_warn_of(&pod.uid) {
            return;
        }
        let details: Vec<String> =
            problems.iter().map(|problem| format!("{}: {}", problem.name, problem.detail)).collect();
        acts.order(Effect::Record(Notice {
            reporter: (*pod.spec.scheduler_name).into(),
            about: Subject::Pod(Arc::new(pod.clone())),
            is_warning: true,
            reason: "InvalidAnnotation".into(),
            action: "Measuring".into(),
            note: format!("Annotations that do not count: {}", details.join("; ")),
            related: None,
        }));
    }

    /// Says how controllers do, and when that is said next.
    fn gauge(&self, now: Timestamp, acts: &mut Acts<'_>) {
        acts.wake_at(next(now, GAUGES_EVERY));
        let Some(books) = acts.recall::<Books>() else { return };
        let mut qos = Vec::new();
        let mut slo = Vec::new();
        let mut left = Vec::new();
        for (id, controller) in books.now().controllers.iter().take(GAUGED_CONTROLLERS_MAX) {
            let measured = Measured::of(controller, None, now);
            let value = |value: f64| GaugeValue {
                labels: vec![
                    ("namespace".into(), id.namespace.to_string()),
                    ("controller".into(), id.name.to_string()),
                ],
                value,
            };
            qos.push(value(measured.qos()));
            slo.push(value(controller.slo));
            left.push(value(measured.metric(controller.slo)));
        }
        let count = books.now().controllers.len();
        let shown = qos.len();
        let total = |value: usize| vec![GaugeValue { labels: Vec::new(), value: value as f64 }];
        acts.gauge("qos", qos);
        acts.gauge("slo", slo);
        acts.gauge("seconds_to_violation", left);
        acts.gauge("controllers", total(count));
        acts.gauge("controllers_without_metrics", total(count - shown));
    }
}

/// The next whole multiple of a length of time.
pub(super) fn next(now: Timestamp, every: Duration) -> Timestamp {
    OrderChanges::with_time(every).moment(now).after(every)
}
