//! What Coscheduling remembers of groups.

use serde::{Deserialize, Serialize};
use supercargo_framework::{Context, Memory, SharedMap};
use supercargo_model::Timestamp;

use super::pod_group::Group;

/// What is remembered of groups, by `namespace/name`. It is lost with the process, as upstream: a restart tries every group anew.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct GroupMemory {
    /// Until when the cluster counts as large enough for a group.
    pub(super) permitted: SharedMap<String, Timestamp>,
    /// Until when no member of a group is tried.
    pub(super) backed_off: SharedMap<String, Timestamp>,
    /// When a member of a group last did not fit, or lost its node: groups go behind others by that.
    pub(super) failed: SharedMap<String, Timestamp>,
    /// The members, by UID, whose nodes are being taken because another one lost its own.
    pub(super) taken_back: SharedMap<String, ()>,
    /// The groups of which a member did not fit while others keep their nodes.
    pub(super) stuck: SharedMap<String, ()>,
    /// The groups whose status may not be true any more.
    pub(super) stale: SharedMap<String, ()>,
    /// When the plugin is woken next.
    pub(super) wakes_at: Option<Timestamp>,
}

impl Memory for GroupMemory {
    const NAME: &'static str = "Coscheduling/Groups";
}

impl GroupMemory {
    /// What is remembered, if anything is yet.
    pub(super) fn of<'a>(context: &Context<'a>) -> Option<&'a Self> {
        context.memories.get::<Self>()
    }

    /// Whether a group has failed since it was last complete.
    pub(super) fn knows_failure_of(&self, group: &Group<'_>) -> bool {
        let any = !self.failed.is_empty() || !self.stuck.is_empty();
        let knows = |name: &String| self.failed.contains_key(name) || self.stuck.contains_key(name);
        any && knows(&group.full_name())
    }

    /// Notes that a group is complete.
    pub(super) fn succeeded(&mut self, group: &Group<'_>) {
        let name = group.full_name();
        self.failed.remove(&name);
        self.stuck.remove(&name);
    }

    /// Forgets a group that is gone.
    pub(super) fn forget(&mut self, group: &String) {
        for times in [&mut self.permitted, &mut self.backed_off, &mut self.failed] {
            times.remove(group);
        }
        self.stuck.remove(group);
        self.stale.remove(group);
    }

    /// Forgets what is over. The groups whose backoff has ended are returned.
    pub(super) fn tidy(&mut self, now: Timestamp) -> Vec<String> {
        if !self.permitted.is_empty() {
            self.permitted.retain(|_, until| *until > now);
        }
        let ended = self.backed_off.iter().filter(|(_, until)| **until <= now);
        let ended: Vec<String> = ended.map(|(group, _)| group.clone()).collect();
        for group in &ended {
            self.backed_off.remove(group);
        }
        ended
    }
}

/// Whether a time that is remembered of a group has not come yet.
pub(super) fn is_ahead(times: &SharedMap<String, Timestamp>, group: &Group<'_>, now: Timestamp) -> bool {
    !times.is_empty() && times.get(&group.full_name()).is_some_and(|until| *until > now)
}
