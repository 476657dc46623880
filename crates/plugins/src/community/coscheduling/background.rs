//! What people should know who ask about a member of a group: for whom it waits.

use supercargo_framework::Context;
use supercargo_model::Pod;

use super::pod_group::Group;

/// For whom a member waits, as `the group team-a/training waits for 2 more pods`; none if it waits for nobody.
pub(super) fn background(context: &Context<'_>, pod: &Pod) -> Option<String> {
    let group = Group::of_pod(context, pod)?;
    let name = &group.full_name;
    let Some(object) = group.object else {
        return Some(format!(
            "the pod belongs to the group {name}, of which there is no PodGroup: it is refused even where it fits; make the PodGroup, or \
             take the label away"
        ));
    };
    let min_member = object.spec.min_member;
    let (missing, placed) = (min_member - group.size(), group.placed());
    let (gated, unplaced) = (group.with_gates() + missing, min_member - placed);
    if missing > 0 {
        let noun = if missing == 1 { "pod" } else { "pods" };
        Some(format!("the group {name} waits for {missing} more {noun}"))
    } else if gated > 0 {
        Some(format!("the group {name} waits for {gated} of its gated pods"))
    } else if unplaced > 1 {
        let have = if placed == 1 { "has" } else { "have" };
        Some(format!(
            "the group {name} goes when {min_member} of its pods have a node: {placed} {have} one, and this pod waits with its node for {} more",
            unplaced - 1
        ))
    } else {
        None
    }
}
