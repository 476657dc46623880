//! Groups that have nodes for some of their members, and are in each other's way.
//!
//! Upstream each of them keeps what it has until its time at Permit is over; then all fail together, and may do so again and again. Here
//! the first in the order of the queue keeps its nodes, and the others give theirs back.

use supercargo_framework::{Acts, Context};
use supercargo_model::{Standing, Timestamp};

use super::admitting::take_back;
use super::memory::GroupMemory;
use super::pod_group::Group;
use super::queueing::made;

/// Lets all groups but the first give their nodes back that keep them though a member did not fit.
pub(super) fn yield_room(context: &Context<'_>, acts: &mut Acts<'_>) {
    let Some(memory) = acts.recall::<GroupMemory>().filter(|memory| !memory.stuck.is_empty()) else { return };
    let failed = memory.failed.clone();
    let noted: Vec<String> = memory.stuck.iter().map(|(name, ())| name.clone()).collect();
    let mut stuck = Vec::new();
    for name in &noted {
        let group = name.split_once('/').map(|(namespace, name)| Group::named(context, namespace, name));
        match group.filter(is_half_admitted) {
            Some(group) => stuck.push((turn(&group, failed.get(name).copied()), group)),
            None => _ = acts.memory::<GroupMemory>().stuck.remove(name),
        }
    }
    stuck.sort_by(|(turn, group), (other_turn, other)| {
        turn.cmp(other_turn).then_with(|| group.full_name().cmp(&other.full_name()))
    });
    let Some(((_, first), others)) = stuck.split_first().filter(|(_, others)| !others.is_empty()) else {
        return;
    };
    for (_, group) in others {
        let reason = format!("gives way to PodGroup {}, which waits for the same room", first.full_name());
        take_back(context, group, reason, acts);
    }
    // Whoever waits for that room is to have it before those that gave it back.
    for member in first.members().filter(|member| member.standing == Standing::Waiting) {
        acts.activate(&member.pod.uid);
    }
}

/// Whether some members wait at Permit, and not enough have a node.
fn is_half_admitted(group: &Group<'_>) -> bool {
    let lacks = |min_member: i64| group.placed() < min_member;
    group.count(Standing::AtPermit) > 0 && group.object.is_some_and(|object| lacks(object.spec.min_member))
}

/// Whose turn it is, as the queue has it: by priority, then by time.
fn turn(group: &Group<'_>, failed_at: Option<Timestamp>) -> (i64, Timestamp) {
    let priority = group.members().map(|member| member.pod.priority()).max().unwrap_or(0);
    let time = failed_at.or_else(|| group.object.map(made)).unwrap_or_default();
    (-i64::from(priority), time)
}
