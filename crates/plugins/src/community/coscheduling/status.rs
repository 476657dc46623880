//! The controller of PodGroups: how far each is, written into its status.

use serde_json::json;
use supercargo_framework::{
    ACTS_PER_STEP_MAX, Actions, Acts, Change, ClusterEvent, Conclusion, Context, Effect, Observe,
};
use supercargo_model::pod::PodPhase;
use supercargo_model::{Kind, KindId, Object, ObjectKey, Pod, Standing, Timestamp};

use super::Coscheduling;
use super::memory::GroupMemory;
use super::pod_group::{
    Group, OldPodGroup, PodGroup, PodGroupSpec, PodGroupStatus, are_of_one_group, full_name_of,
};
use super::yielding::yield_room;
use crate::community::controllers::{OLD_API_GROUP, RETRY_PAUSE, STATUS_PAUSE, notice, old_api_group};

/// So many statuses are worked out at a time.
const STATUSES_PER_WAKE_MAX: usize = 1000;
/// No other group is tried again in a step in which so many pods are: no step of a plugin may do much more.
const ACTIVATIONS_PER_WAKE_MAX: usize = ACTS_PER_STEP_MAX / 4;
/// A group of more members cannot go together: no step of a plugin may do so much.
const MIN_MEMBER_MAX: i64 = ACTS_PER_STEP_MAX as i64 - 1;
/// The `reportingController` of events on PodGroups, as upstream's.
const REPORTER: &str = "PodGroupController";

/// How many members of a group there are, and how they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) pods: i64,
    pub(super) running: i64,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
}

impl Observe for Coscheduling {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::ALL),
            ClusterEvent::kind(PodGroup::ID, Actions::ALL),
            ClusterEvent::kind(OldPodGroup::ID, Actions::ALL),
        ]
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let objects = context.cluster.objects();
        let new = objects.all::<PodGroup>().map(|(key, group)| (PodGroup::ID, key, group));
        let old = objects.all::<OldPodGroup>().map(|(key, group)| (OldPodGroup::ID, key, &group.0));
        for (kind, key, group) in new.chain(old) {
            warn(kind, key, group, acts);
            mark_stale(context, full_name(key), acts);
        }
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        match change {
            Change::Pod { old, new } => {
                let has_left = |old: &&Pod| new.is_none_or(|new| !are_of_one_group(old, new));
                for name in [old.filter(has_left), *new].into_iter().flatten().filter_map(full_name_of) {
                    mark_stale(context, name, acts);
                }
                match (old, new) {
                    (Some(gone), None) => forget_pod(gone, acts),
                    (_, Some(bound)) if bound.node_name.is_some() => forget_pod(bound, acts),
                    _ => {}
                }
            }
            Change::Object { old, new: Some(new) } => {
                let Some(group) = group_of(new) else { return };
                if old.and_then(group_of).is_none_or(|old| old.spec != group.spec) {
                    warn(new.kind, &new.key, group, acts);
                }
                mark_stale(context, full_name(&new.key), acts);
            }
            Change::Object { old: Some(gone), new: None } => {
                let name = full_name(&gone.key);
                if acts.recall::<GroupMemory>().is_some() {
                    acts.memory::<GroupMemory>().forget(&name);
                }
            }
            _ => {}
        }
    }

    fn finished(&self, context: &Context<'_>, pod: &Pod, _: bool, acts: &mut Acts<'_>) {
        if let Some(name) = full_name_of(pod) {
            mark_stale(context, name, acts);
        }
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        if acts.recall::<GroupMemory>().is_none() {
            return;
        }
        let memory = acts.memory::<GroupMemory>();
        memory.wakes_at = None;
        memory.tidy(context.now);
        let stale = memory.stale.take(STATUSES_PER_WAKE_MAX);
        if !memory.stale.is_empty() {
            plan_wake(context.now.after(STATUS_PAUSE), acts);
        }
        let mut activated = 0;
        while activated < ACTIVATIONS_PER_WAKE_MAX
            && let Some(name) = acts.memory::<GroupMemory>().backed_off.take_over(context.now)
        {
            activated += try_again(context, &name, acts);
        }
        let next_end = acts.memory::<GroupMemory>().backed_off.first_end();
        next_end.into_iter().for_each(|end| plan_wake(end, acts));
        for name in &stale {
            write_status(context, name, acts);
        }
        if self.args.half_admitted_groups_yield {
            yield_room(context, acts);
        }
    }

    fn answered(&self, context: &Context<'_>, order: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        let Effect::Patch { key, .. } = order else { return };
        if conclusion.is_done() || matches!(conclusion, Conclusion::Gone { .. }) {
            return;
        }
        acts.memory::<GroupMemory>().stale.insert(full_name(key));
        plan_wake(context.now.after(RETRY_PAUSE), acts);
    }
}

fn full_name(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

fn group_of(object: &Object) -> Option<&PodGroup> {
    object.get::<PodGroup>().or_else(|| object.get::<OldPodGroup>().map(|old| &old.0))
}

/// A pod that is gone, or that the API server says to be bound, loses no node any more.
fn forget_pod(pod: &Pod, acts: &mut Acts<'_>) {
    if acts.recall::<GroupMemory>().is_some_and(|memory| !memory.taken_back.is_empty()) {
        acts.memory::<GroupMemory>().taken_back.remove(&(*pod.uid).to_owned());
    }
}

/// Has the status of a group looked at soon.
fn mark_stale(context: &Context<'_>, name: String, acts: &mut Acts<'_>) {
    if acts.recall::<GroupMemory>().is_none_or(|memory| !memory.stale.contains(&name)) {
        acts.memory::<GroupMemory>().stale.insert(name);
        plan_wake(context.now.after(STATUS_PAUSE), acts);
    }
}

/// Has the plugin woken then, unless it is woken before that anyway.
pub(super) fn plan_wake(at: Timestamp, acts: &mut Acts<'_>) {
    let memory = acts.memory::<GroupMemory>();
    if memory.wakes_at.is_none_or(|planned| at < planned) {
        memory.wakes_at = Some(at);
        acts.wake_at(at);
    }
}

/// The backoff of a group has ended: nothing else would have its members tried. How many there are.
fn try_again(context: &Context<'_>, full_name: &str, acts: &mut Acts<'_>) -> usize {
    let Some((namespace, name)) = full_name.split_once('/') else { return 0 };
    let group = Group::named(context, namespace, name);
    let waiting = group.members().filter(|member| member.standing == Standing::Waiting);
    waiting.map(|member| acts.activate(&member.pod.uid)).count()
}

fn write_status(context: &Context<'_>, full_name: &str, acts: &mut Acts<'_>) {
    let Some((namespace, name)) = full_name.split_once('/') else { return };
    let group = Group::named(context, namespace, name);
    let Some(object) = group.object else { return };
    let owner = group.members().next().and_then(|member| owner_of(&member.pod));
    let mends_phase = context.fixes.pod_group_quorum;
    let status = next(&object.status, &object.spec, tally(&group), owner, mends_phase);
    if status == object.status {
        return;
    }
    let PodGroupStatus { phase, occupied_by, running, succeeded, failed, schedule_start_time: _ } = &status;
    acts.order(Effect::Patch {
        kind: group.kind,
        key: ObjectKey { namespace: namespace.into(), name: name.into() },
        subresource: Some("status"),
        patch: json!({ "status": {
            "phase": phase, "occupiedBy": occupied_by, "running": running, "succeeded": succeeded, "failed": failed,
        } }),
    });
}

/// `namespace/name` of who controls a pod.
fn owner_of(pod: &Pod) -> Option<String> {
    pod.controller.as_ref().map(|owner| format!("{}/{}", pod.namespace, owner.name))
}

fn tally(group: &Group<'_>) -> Tally {
    let mut tally = Tally::default();
    for member in group.members() {
        tally.pods += 1;
        match member.pod.phase() {
            PodPhase::Running => tally.running += 1,
            PodPhase::Succeeded => tally.succeeded += 1,
            PodPhase::Failed => tally.failed += 1,
            PodPhase::Pending | PodPhase::Unknown if member.standing == Standing::Finished => {
                tally.succeeded += 1;
            }
            PodPhase::Pending | PodPhase::Unknown => {}
        }
    }
    tally
}

/// The status of a group after it was looked at once, as upstream's controller has it.
pub(super) fn next(
    status: &PodGroupStatus,
    spec: &PodGroupSpec,
    tally: Tally,
    owner: Option<String>,
    mends_phase: bool,
) -> PodGroupStatus {
    let Tally { pods, running, succeeded, failed } = tally;
    let min_member = spec.min_member;
    let mut status = status.clone();
    let has_quorum = running + succeeded >= min_member;
    let phase = match &*status.phase {
        "Finished" => return status,
        "Failed" if !mends_phase || !has_quorum => return status,
        "" => "Pending",
        "Pending" if pods < min_member => "Pending",
        "Pending" => {
            if let Some(owner) = owner {
                status.occupied_by = owner.into();
            }
            "Scheduling"
        }
        _ => {
            (status.running, status.succeeded, status.failed) = (running, succeeded, failed);
            if pods < min_member {
                "Pending"
            } else if succeeded >= min_member {
                "Finished"
            } else if failed != 0
                && failed + running + succeeded >= min_member
                && !(mends_phase && has_quorum)
            {
                "Failed"
            } else if has_quorum {
                "Running"
            } else {
                "Scheduling"
            }
        }
    };
    status.phase = phase.into();
    status
}

/// Tells of what is wrong with a group, on the group itself.
fn warn(kind: KindId, key: &ObjectKey, group: &PodGroup, acts: &mut Acts<'_>) {
    let min_member = group.spec.min_member;
    let mut notes = Vec::new();
    if min_member < 1 {
        notes.push(("InvalidPodGroup", format!(
            "spec.minMember is {min_member}: its pods go to their nodes one by one, as if they had no group; set it to 1 or more"
        )));
    } else if min_member > MIN_MEMBER_MAX {
        notes.push(("InvalidPodGroup", format!(
            "spec.minMember is {min_member}: no more than {MIN_MEMBER_MAX} pods can go together; its pods stay pending"
        )));
    }
    if group.spec.schedule_timeout_seconds.is_some_and(|seconds| seconds < 0) {
        let note = "spec.scheduleTimeoutSeconds is below 0: its pods do not wait for each other; set it to 1 or more";
        notes.push(("InvalidPodGroup", note.to_owned()));
    }
    if kind == OldPodGroup::ID {
        notes.push((OLD_API_GROUP, old_api_group(kind, PodGroup::ID, "group")));
    }
    for (reason, note) in notes {
        acts.order(notice(REPORTER, kind, key, &group.metadata.uid, true, reason, note));
    }
}
