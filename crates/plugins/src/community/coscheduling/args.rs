//! The arguments of Coscheduling.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems};

/// How long members wait at Permit if neither the arguments nor the group say so.
const PERMIT_WAIT: Duration = Duration::from_secs(60);
/// How long a group counts as one that fits into the cluster if members do not wait at Permit at all.
const PERMITTED_MIN: Duration = Duration::from_secs(3);

/// Arguments of [`Coscheduling`](super::Coscheduling).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CoschedulingArgs {
    /// How long a member waits at Permit for its group to be complete, unless the group says it.
    pub permit_waiting_time_seconds: i64,
    /// How long no member of a group is tried after one of them did not fit; 0 if they are tried at once.
    pub pod_group_backoff_seconds: i64,
    /// A group of which so many percent are missing at most keeps its nodes when a member does not fit.
    pub pod_group_reject_percentage: i32,
    /// Whether of several groups that have nodes for some of their members, and cannot have them for the others, all but the first
    /// give their nodes back, before their time at Permit is over.
    pub half_admitted_groups_yield: bool,
}

impl Default for CoschedulingArgs {
    fn default() -> Self {
        CoschedulingArgs {
            permit_waiting_time_seconds: 60,
            pod_group_backoff_seconds: 0,
            pod_group_reject_percentage: 10,
            half_admitted_groups_yield: true,
        }
    }
}

impl Args for CoschedulingArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        for (path, seconds) in [
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ] {
            if seconds < 0 {
                problems.invalid(path, seconds, "must be greater than 0");
            }
        }
        let percentage = self.pod_group_reject_percentage;
        if !(0..=100).contains(&percentage) {
            problems.invalid("podGroupRejectPercentage", percentage, "must be between 0 and 100");
        }
    }
}

impl CoschedulingArgs {
    /// How long a member of a group waits at Permit. What the group says counts if it is not 0.
    pub(super) fn permit_wait(&self, of_group: Option<i64>) -> Duration {
        match of_group {
            Some(seconds) if seconds != 0 => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
            // As upstream: who says 0 means what the arguments say, even if these say 0 too.
            Some(_) => seconds(self.permit_waiting_time_seconds),
            None if self.permit_waiting_time_seconds == 0 => PERMIT_WAIT,
            None => seconds(self.permit_waiting_time_seconds),
        }
    }

    /// How long it is not looked at again whether a group fits into the cluster.
    pub(super) fn permitted_for(&self) -> Duration {
        match self.permit_waiting_time_seconds {
            0 => PERMITTED_MIN,
            seconds_to_wait => seconds(seconds_to_wait),
        }
    }

    /// `podGroupBackoffSeconds`; none if it is 0: then members are tried at once.
    pub(super) fn backoff(&self) -> Option<Duration> {
        (self.pod_group_backoff_seconds > 0).then(|| seconds(self.pod_group_backoff_seconds))
    }

    /// Whether a group keeps its nodes when a member does not fit, because only few are missing.
    pub(super) fn keeps_waiting(&self, placed: i64, min_member: i64) -> bool {
        let missing = (min_member - placed) as f64 / min_member as f64;
        missing <= f64::from(self.pod_group_reject_percentage) / 100.0
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
