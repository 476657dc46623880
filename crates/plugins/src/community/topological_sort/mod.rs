//! TopologicalSort: pods of an application are tried in the order in which its workloads call each other.

mod status;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Args, Change, ClusterEvent, Context, Extensions, FieldProblems, OrderChanges, Plugin, PodField,
    QueueRank, QueueSort, QueuedPod, Reads, TieBreak, Writes,
};
use supercargo_model::{Kind, Timestamp};

use super::network_aware::{
    APP_GROUP_LABEL, AppGroup, DEFAULT_NAMESPACES, OldAppGroup, find_app_group, label_of, workload_of,
};
use status::AppGroupMemory;

/// # What
/// Pods of one AppGroup, which they name by the label `appgroup.diktyo.x-k8s.io`, are tried in the order of their workloads
/// (`status.topologyOrder` of the AppGroup). All others are tried by priority, then by when they came.
///
/// The order is worked out here, by the scheduler that leads, from `spec.workloads` and what they depend on, whenever that changes:
/// `KahnSort` and `TarjanSort` put callers before those whom they call, `ReverseKahn` and `ReverseTarjan` after them, `AlternateKahn` and
/// `AlternateTarjan` take the first, the last, the second, the last but one, and so on. `status` also says how many pods run
/// (`runningWorkloads`), and when the first was given a node (`scheduleStartTime`).
///
/// # Why
/// NetworkOverhead puts a pod near those that it calls, so these have to be there first: `ReverseKahn` sees to that.
///
/// # Arguments
/// `namespaces` (`[default]`): where AppGroups are looked for.
///
/// # Example
/// ```yaml
/// plugins:
///   queueSort: {disabled: [{name: "*"}], enabled: [{name: TopologicalSort}]}
/// ```
/// All profiles of a scheduler sort their queue by the same plugin.
///
/// # Difference from upstream
/// - Upstream compares pods of one AppGroup by their workloads alone, and all others by priority and time; that is no order, as it may go
///   round in circles, and two pods of one workload each go before the other. Here pods go by priority; among those of equal priority, an
///   AppGroup has the time at which it was made, so that its pods stand together; among these the workload decides, then the time, then
///   the name. `supercargo verdicts`, which is held against upstream's, answers with upstream's comparison.
/// - Where the AppGroup does not exist, upstream crashes; here such pods go by priority and time.
/// - Upstream leaves the order to a controller that works it out once a day, by names that have to be the selectors as well, and with
///   chance. Here it follows the spec within a second, and chance has no part in it. Dependencies that go round in a circle, that are not
///   among the workloads, or an algorithm that does not exist are told by an event on the AppGroup; with a circle, `spec.workloads` is the
///   order. `spec` is not changed.
/// - The API group's old name `appgroup.diktyo.k8s.io` is read, too, and told by an event.
#[derive(Debug)]
pub struct TopologicalSort {
    args: TopologicalSortArgs,
}

/// Arguments of [`TopologicalSort`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TopologicalSortArgs {
    /// The namespaces in which AppGroups are looked for, the first that has one first.
    pub namespaces: Vec<String>,
}

impl Args for TopologicalSortArgs {
    fn complete(&mut self) {
        if self.namespaces.is_empty() {
            self.namespaces = DEFAULT_NAMESPACES.map(str::to_owned).into();
        }
    }

    fn validate(&self, _: &mut FieldProblems) {}
}

impl Plugin for TopologicalSort {
    const NAME: &'static str = "TopologicalSort";
    type Args = TopologicalSortArgs;

    fn new(args: TopologicalSortArgs) -> Self {
        TopologicalSort { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.queue_sort().observe().remembers::<AppGroupMemory>()
    }

    fn reads(&self) -> Reads {
        let of_pod =
            [PodField::Name, PodField::Namespace, PodField::Labels, PodField::Priority, PodField::Progress];
        let reads = Reads::nothing().pod(&of_pod).pods_by_label(APP_GROUP_LABEL);
        reads.kind::<AppGroup>().optional_kind::<OldAppGroup>()
    }

    fn writes(&self) -> Writes {
        // Upstream's definition has no status of its own.
        let writes = Writes::nothing().patch_status::<AppGroup>().patch::<AppGroup>();
        let writes = writes.patch_status::<OldAppGroup>().patch::<OldAppGroup>();
        writes.because("In which order the workloads of AppGroups are tried, and how many of their pods run.")
    }

    fn subject(&self) -> &'static str {
        "the order of applications"
    }
}

impl QueueSort for TopologicalSort {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        self.ranked(context, a).cmp(&self.ranked(context, b)).then_with(|| by_time(a, b)).is_lt()
    }

    fn rank(&self, context: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        Some(self.ranked(context, pod))
    }

    fn tie_break(&self) -> Option<TieBreak> {
        Some(by_time)
    }

    /// The order of a group is worked out when its AppGroup has been made, often after its pods.
    fn changes(&self) -> OrderChanges {
        let of_kind = |kind| ClusterEvent::kind(kind, Actions::ALL);
        OrderChanges::with_changes([of_kind(AppGroup::ID), of_kind(OldAppGroup::ID)], is_of_order)
    }

    fn less_upstream(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        let by_priority = || {
            let rank = |queued: &QueuedPod| (-i64::from(queued.pod.priority()), queued.queued_at);
            rank(a) < rank(b)
        };
        if label_of(&a.pod).is_none() || label_of(&a.pod) != label_of(&b.pod) {
            return by_priority();
        }
        let index = |queued: &QueuedPod| {
            let group = find_app_group(context, &queued.pod, &self.args.namespaces)?;
            Some(group.object.index_of(workload_of(&queued.pod)))
        };
        match (index(a), index(b)) {
            (Some(first), Some(second)) => first <= second,
            _ => by_priority(),
        }
    }
}

impl TopologicalSort {
    /// By priority; then by when the pod came into the queue, or else its AppGroup was made; then by its turn in the AppGroup.
    fn ranked(&self, context: &Context<'_>, queued: &QueuedPod) -> QueueRank {
        /// The second number has whole seconds, and below them so many bits for what is finer: nanoseconds, or turns.
        const FINE_BITS: u32 = 30;
        const SECOND: i64 = 1_000_000_000;
        let (seconds, fine) = match find_app_group(context, &queued.pod, &self.args.namespaces) {
            None => {
                let time = queued.queued_at.nanoseconds();
                (time.div_euclid(SECOND), time.rem_euclid(SECOND))
            }
            Some(group) => {
                let made = group.object.metadata.creation_timestamp;
                let made = made.map_or(0, Timestamp::seconds);
                let index = group.object.index_of(workload_of(&queued.pod));
                // A workload without a turn has -1, and so goes first.
                (made, index.saturating_add(1).clamp(0, (1 << FINE_BITS) - 1))
            }
        };
        [-i64::from(queued.pod.priority()), (seconds << FINE_BITS) | fine]
    }
}

/// Whether a change is one of what the order looks at: most are of how many pods run.
fn is_of_order(change: &Change<'_>) -> bool {
    let Change::Object { old, new } = change else { return true };
    match [*old, *new].map(|object| object.and_then(status::app_group_of)) {
        [Some(old), Some(new)] => {
            old.metadata.creation_timestamp != new.metadata.creation_timestamp
                || old.status.topology_order != new.status.topology_order
        }
        _ => true,
    }
}

/// The pod that came first, then the one whose `namespace/name` does.
fn by_time(a: &QueuedPod, b: &QueuedPod) -> Ordering {
    a.queued_at.cmp(&b.queued_at).then_with(|| a.pod.compare_keys(&b.pod))
}

#[cfg(test)]
mod tests;
