//! QosAware: pods go first whose controllers are about to run less than they were promised.

mod args;
mod books;
mod log;
mod metric;
mod observing;
mod order;
mod owners;
mod preemption;
mod report;
mod table;
mod terms;

use core::net::SocketAddr;
use std::borrow::Cow;

use supercargo_framework::{
    Acts, Context, Cycle, Extensions, NodeField, Page, PageRequest, Plugin, PodField, PostBind, PreBind,
    Reads, Rendered, Reserve, Status, Step, Write, Writes,
};
use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{NodeRef, Timestamp};

pub use args::QosAwareArgs;
pub use books::Books;
use log::EndedLog;
pub use owners::{Job, ReplicaSet};
use preemption::InVain;
pub use terms::Approach;

/// # What
/// Keeps books of how long the pods of a controller wait, are bound and run, and puts waiting pods in the order in which their controllers
/// are about to violate their SLO: the share of its time that a replica is promised to run. A pod that fits nowhere may take the place of one
/// whose controller can spare it. A table shows how every controller does.
///
/// # Why
/// With priorities the unimportant starve, and the important get more than they were promised. With SLOs everybody gets a share.
///
/// # Arguments
/// `safetyMargin` (0s): below so much time to violation, the more important controller goes first; `minimumRunningTime` (0s): so long
/// nobody of no more importance takes a pod's place; `acceptablePreemptionOverhead` (1.0): which share of its time on nodes a controller may
/// lose to that; `debugAddress` (`127.0.0.1:10000`): where the table is served, nowhere by itself if it is empty.
///
/// Pods say who they are by annotations of the template: `controller`, a name; `slo`, from 0 to 1 (0.80), which is also how important they are;
/// `qosMeasuring`: `independent`, `average`, `aggregate` or `concurrent` (by what controls them: nothing, anything else, a Job, never);
/// `acceptablePreemptionOverhead`, from 0 to 1. What cannot be counts as if it were not there, and gets an event.
///
/// # Example
/// ```yaml
/// plugins:
///   queueSort: {enabled: [{name: QosAware}], disabled: [{name: "*"}]}
///   postFilter: {enabled: [{name: QosAware}], disabled: [{name: "*"}]}
///   reserve: {enabled: [{name: QosAware}]}
///   preBind: {enabled: [{name: QosAware}]}
///   postBind: {enabled: [{name: QosAware}]}
/// pluginConfig:
/// - name: QosAware
///   args: {safetyMargin: 20s, minimumRunningTime: 10m}
/// ```
/// With the last three points alone it keeps books, and nothing else changes.
///
/// # Difference from upstream
/// The order is that of the last quarter of a second, and right whenever a pod is taken; no pod waits to be known. Pods of `kube-system` go first
/// and may take any place, where the original never tries them. A controller is a name in a namespace, and may have any number of replicas, which follows its Jobs and
/// ReplicaSets; for `concurrent`, time counts by the replicas of that time. An SLO of 0 asks for nothing and is never violated, where
/// the original divides by it. A pod runs from its binding on, also where its phase is asked for. One that ends badly ends, and one that nobody saw
/// being bound runs since its `PodScheduled` condition says so. What has ended is kept as sums, which survive restarts. Pods that fit nowhere are tried again
/// every five seconds, because time alone may let them take a place. The table is for this host alone unless an argument says otherwise.
#[derive(Debug)]
pub struct QosAware {
    args: QosAwareArgs,
    /// In seconds.
    safety_margin: f64,
}

/// When a pod began to be bound, from PreBind to PostBind.
#[derive(Clone, Copy, Debug)]
struct BindingStart(Timestamp);

impl Plugin for QosAware {
    const NAME: &'static str = "QosAware";
    type Args = QosAwareArgs;

    fn new(args: QosAwareArgs) -> Self {
        QosAware { safety_margin: args.safety_margin_seconds(), args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points
            .queue_sort()
            .post_filter()
            .reserve()
            .pre_bind()
            .post_bind()
            .observe()
            .page()
            .remembers::<Books>()
            .remembers::<EndedLog>()
            .remembers::<InVain>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[
                PodField::Name,
                PodField::Namespace,
                PodField::Annotations,
                PodField::Controller,
                PodField::Timestamps,
                PodField::Progress,
                PodField::Priority,
                PodField::PreemptionPolicy,
                PodField::Status,
            ])
            .node(&[NodeField::Name, NodeField::Pods])
            .kind::<PodDisruptionBudget>()
            .kind::<Job>()
            .kind::<ReplicaSet>()
            .finished_pods()
            .time()
            .memory()
    }

    fn writes(&self) -> Writes {
        Writes::nothing()
            .evictions()
            .write(Write::POD_STATUS)
            .because("Pods take the place of others, whose nominations end.")
    }

    fn subject(&self) -> &'static str {
        "quality of service"
    }
}

impl Reserve for QosAware {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        self.allocate(cycle, acts, true);
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        self.allocate(cycle, acts, false);
    }
}

impl QosAware {
    /// A pod is on its way to a node, or no longer. That matters only where all pods have to run together.
    fn allocate(&self, cycle: &Cycle<'_>, acts: &mut Acts<'_>, is_allocating: bool) {
        let is_concurrent = |books: &Books| {
            let terms = terms::Terms::of(cycle.pod);
            let controller = books.now().controller_of(cycle.pod, &terms);
            controller.is_some_and(|controller| controller.approach == Approach::Concurrent)
        };
        if acts.recall::<Books>().is_some_and(is_concurrent) {
            acts.memory::<Books>().allocate(&cycle.pod.uid, is_allocating, cycle.context.now);
        }
    }
}

impl PreBind for QosAware {
    fn pre_bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        cycle.put(BindingStart(cycle.context.now));
        Step::Done(Status::success())
    }
}

impl PostBind for QosAware {
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        let (binding, now) = (cycle.get::<BindingStart>().map(|start| start.0), cycle.context.now);
        acts.memory::<Books>().start(&cycle.pod.uid, binding, now, now);
        self.no_longer_in_vain(&cycle.pod.uid, acts);
    }
}

impl Page for QosAware {
    fn title(&self) -> Cow<'static, str> {
        "Quality of service of controllers".into()
    }

    fn address(&self) -> Option<SocketAddr> {
        self.args.debug_address()
    }

    /// The table at every path, as the original has it, but for `log`.
    fn render(&self, context: &Context<'_>, request: &PageRequest) -> Rendered {
        let asked = |name: &str| {
            let mut parameters =
                request.query.split('&').map(|part| part.split_once('=').unwrap_or((part, "")));
            parameters.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let (nothing, no_lines) = (Books::default(), EndedLog::default());
        let books = context.memories.get::<Books>().unwrap_or(&nothing);
        let is_json = asked("output") == Some("json");
        if request.path == "log" {
            let log = context.memories.get::<EndedLog>().unwrap_or(&no_lines);
            let after = asked("after").and_then(|number| number.parse().ok()).unwrap_or(0);
            if is_json {
                return Rendered::json(&Self::log_report(log, after));
            }
            let lines: Vec<String> = log.after(after).map(|line| line + "\n").collect();
            return Rendered::new("text/csv; charset=utf-8", lines.concat());
        }
        if is_json {
            Rendered::json(&self.report(books, context.now))
        } else if asked("replicas").is_some() {
            Rendered::text(self.replicas_table(books, context.now))
        } else {
            Rendered::text(Self::controllers_table(books, context.now))
        }
    }
}

#[cfg(test)]
mod tests;
