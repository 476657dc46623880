//! What Coscheduling remembers of groups.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Context, Memory, SharedMap};
use supercargo_model::{Snapshot, Timestamp};

use super::pod_group::Group;
use super::spans::Spans;
use crate::community::turns::Turns;

/// How often a group fails in a row before it pauses.
const FAILURES_IN_A_ROW_MAX: u32 = 16;
/// How long it pauses the first time, as long as a pod's first backoff; each further pause is twice as long.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// How long it pauses at most, as long as a pod's longest backoff.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(10);
/// After so long without a failure a group counts as one that has not failed.
const FAILURES_FORGOTTEN_AFTER: Duration = Duration::from_secs(20);

/// What is remembered of groups, by `namespace/name`. It is lost with the process, as upstream: a restart tries every group anew.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct GroupMemory {
    /// Until when the cluster counts as large enough for a group. Upstream's `permittedPG`; it has nothing to do with Permit.
    pub(super) permitted: Spans,
    /// Until when no member of a group is tried. Upstream's `backedOffPG`.
    pub(super) backed_off: Spans,
    /// What the cluster was last found to lack for a group.
    pub(super) lacking: SharedMap<String, Lack>,
    /// When a member of a group last did not fit, or lost its node: groups go behind others by that.
    pub(super) failed: SharedMap<String, Timestamp>,
    /// How often a group has failed of late.
    pub(super) failures: SharedMap<String, Failures>,
    /// The members, by UID, whose nodes are being taken because another one lost its own.
    pub(super) taken_back: SharedMap<String, ()>,
    /// The groups of which a member did not fit while others keep their nodes.
    pub(super) stuck: SharedMap<String, ()>,
    /// The groups whose status may not be true any more.
    pub(super) stale: Turns,
    /// When the plugin is woken next.
    pub(super) wakes_at: Option<Timestamp>,
}

/// The failures of a group.
///
/// The first member that has a node has all others tried, and one that gives its node back makes room for others. So a group of which only some
/// fit would fail as fast as it can be tried, and for ever: it pauses after some failures in a row, longer each time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Failures {
    last: Timestamp,
    /// Since the last pause.
    in_a_row: u32,
    pauses: u32,
}

impl Failures {
    /// A group fails; how long it pauses, if it does.
    fn note(&mut self, now: Timestamp) -> Option<Duration> {
        // A clock that was set back says nothing of how long ago it was.
        if now.since(self.last) > FAILURES_FORGOTTEN_AFTER || now < self.last {
            *self = Failures::default();
        }
        self.last = now;
        self.in_a_row += 1;
        if self.in_a_row < FAILURES_IN_A_ROW_MAX {
            return None;
        }
        let pause = (FAILURE_PAUSE * (1 << self.pauses.min(u32::BITS - 1))).min(FAILURE_PAUSE_MAX);
        (self.in_a_row, self.pauses) = (0, self.pauses.saturating_add(1));
        Some(pause)
    }
}

/// What the cluster lacks for a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lack {
    /// The version of the cluster that lacks it.
    version: u64,
    gap: String,
}

impl Memory for GroupMemory {
    const NAME: &'static str = "Coscheduling/Groups";

    /// Or a clock that is set back by an hour would hold groups back for an hour.
    fn clock_was_set(&mut self, seconds: i64) {
        self.permitted.clock_was_set(seconds);
        self.backed_off.clock_was_set(seconds);
        self.wakes_at = self.wakes_at.map(|wakes_at| wakes_at.moved(seconds));
    }
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

    /// What the cluster is known to lack for a group, unless anything has changed since: each of its members is told the same.
    pub(super) fn known_gap(&self, group: &Group<'_>, cluster: &Snapshot) -> Option<&str> {
        let lack = if self.lacking.is_empty() { None } else { self.lacking.get(&group.full_name()) };
        lack.filter(|lack| lack.version == cluster.version()).map(|lack| &*lack.gap)
    }

    /// Notes what the cluster lacks for a group.
    pub(super) fn note_gap(&mut self, group: &Group<'_>, cluster: &Snapshot, gap: String) {
        self.lacking.insert(group.full_name(), Lack { version: cluster.version(), gap });
    }

    /// Notes that a group fails; how long it pauses, if it has failed too often.
    pub(super) fn note_failure(&mut self, group: &Group<'_>, now: Timestamp) -> Option<Duration> {
        self.failures.get_or_default(&group.full_name()).note(now)
    }

    /// Notes that a group is complete.
    pub(super) fn succeeded(&mut self, group: &Group<'_>) {
        let name = group.full_name();
        self.failed.remove(&name);
        self.failures.remove(&name);
        self.lacking.remove(&name);
        self.stuck.remove(&name);
    }

    /// Forgets a group that is gone.
    pub(super) fn forget(&mut self, group: &String) {
        self.permitted.end(group);
        self.backed_off.end(group);
        self.failed.remove(group);
        self.failures.remove(group);
        self.lacking.remove(group);
        self.stuck.remove(group);
        self.stale.remove(group);
    }

    /// Forgets what is over, but for groups whose backoff has ended: these are tried again first.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        while self.permitted.take_over(now).is_some() {}
    }
}
