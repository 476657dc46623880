//! The order in which pods of groups are tried, and what wakes them.

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Enqueue, Hint, OrderChanges, QueueRank, QueueSort, QueuedPod,
    TieBreak,
};
use supercargo_model::{Kind, Pod, Timestamp};

use super::Coscheduling;
use super::memory::GroupMemory;
use super::pod_group::{Group, OldPodGroup, PodGroup, label_of, object_of};

impl QueueSort for Coscheduling {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        rank(context, a).cmp(&rank(context, b)).then_with(|| a.pod.compare_keys(&b.pod)).is_lt()
    }

    fn rank(&self, context: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        Some(rank(context, pod))
    }

    fn tie_break(&self) -> Option<TieBreak> {
        Some(|a, b| a.pod.compare_keys(&b.pod))
    }

    /// A group that fails goes behind others with the members that come back. Those that are ready stay where they are: to sort all
    /// pods again whenever some group fails would cost the more the more groups wait.
    fn changes(&self) -> OrderChanges {
        OrderChanges::on_entry()
    }
}

/// By priority, then by the time of the pod's group.
fn rank(context: &Context<'_>, queued: &QueuedPod) -> QueueRank {
    [-i64::from(queued.pod.priority()), time(context, queued).nanoseconds()]
}

/// When a group last failed, or else was made; for a pod without a group, when it was first ready.
fn time(context: &Context<'_>, queued: &QueuedPod) -> Timestamp {
    let own = || queued.first_attempt_at.unwrap_or(queued.queued_at);
    let Some((_, name)) = label_of(&queued.pod) else { return own() };
    let namespace = &queued.pod.namespace;
    let failures = GroupMemory::of(context).map(|memory| &memory.failed).filter(|failed| !failed.is_empty());
    let failed_at = failures.and_then(|failed| failed.get(&format!("{namespace}/{name}")).copied());
    // A clock that was set back must not hold it back for as long.
    let failed_at = failed_at.map(|failed_at| failed_at.min(context.now));
    let made_at = || object_of(context, namespace, name).map(made);
    failed_at.or_else(made_at).unwrap_or_else(own)
}

/// When a group was made. As upstream, one that does not say it counts as older than all others.
pub(super) fn made(group: &PodGroup) -> Timestamp {
    group.metadata.creation_timestamp.unwrap_or(Timestamp::from_nanoseconds(i64::MIN))
}

/// As upstream, any pod that comes and any group that comes or changes: members of a group that gave way, or waited in vain, are tried
/// again whatever it was. Hints that wake only the same group have let more important pods starve upstream.
impl Enqueue for Coscheduling {
    fn events(&self) -> Vec<ClusterEvent> {
        let changes = Actions::ADD.or(Actions::UPDATE);
        vec![
            ClusterEvent::pod(Actions::ADD),
            ClusterEvent::kind(PodGroup::ID, changes),
            ClusterEvent::kind(OldPodGroup::ID, changes),
        ]
    }

    fn hint(&self, context: &Context<'_>, pod: &Pod, _: &Change<'_>) -> Hint {
        Hint::queue_if(!self.is_in_vain(context, pod))
    }

    fn waits_by_label(&self, pod: &Pod) -> Option<&'static str> {
        label_of(pod).map(|(label, _)| label)
    }

    /// Members of a group that lacks members wait on: PreFilter would say the same again.
    fn is_in_vain(&self, context: &Context<'_>, pod: &Pod) -> bool {
        Group::of_pod(context, pod)
            .is_some_and(|group| group.object.is_some_and(|object| group.size() < object.spec.min_member))
    }
}
