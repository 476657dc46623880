//! The arguments of QosAware.

use core::net::SocketAddr;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems};
use supercargo_model::GoDuration;

/// Where the table is served if the arguments say nothing else: the port of the original, for this host only.
const DEBUG_ADDRESS: &str = "127.0.0.1:10000";
const NANOSECONDS_A_SECOND: f64 = 1e9;

/// Arguments of [`QosAware`](super::QosAware).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct QosAwareArgs {
    /// A controller whose metric is below this is about to violate its SLO: among those, the more important one goes first.
    pub safety_margin: GoDuration,
    /// A pod runs for so long before another one of no more importance may take its place.
    pub minimum_running_time: GoDuration,
    /// Which share of its time on nodes a controller may lose to preemption, if its pods do not say.
    pub acceptable_preemption_overhead: f64,
    /// Where the table is served; nowhere but below the scheduler's own pages if it is empty.
    pub debug_address: String,
}

impl Default for QosAwareArgs {
    fn default() -> Self {
        QosAwareArgs {
            safety_margin: GoDuration::ZERO,
            minimum_running_time: GoDuration::ZERO,
            acceptable_preemption_overhead: 1.0,
            debug_address: DEBUG_ADDRESS.to_owned(),
        }
    }
}

impl Args for QosAwareArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        let durations =
            [("safetyMargin", self.safety_margin), ("minimumRunningTime", self.minimum_running_time)];
        for (path, duration) in durations.into_iter().filter(|(_, duration)| duration.0 < 0) {
            problems.invalid(path, duration, "must not be negative");
        }
        if !(0.0..=1.0).contains(&self.acceptable_preemption_overhead) {
            let detail = "must be from 0 to 1";
            problems.invalid("acceptablePreemptionOverhead", self.acceptable_preemption_overhead, detail);
        }
        let wrong = match self.debug_address.parse::<SocketAddr>() {
            _ if self.debug_address.is_empty() => None,
            Err(_) => Some("is no IP address with a port, such as \"127.0.0.1:10000\""),
            Ok(address) if address.port() == 0 => Some("needs a port other than 0"),
            Ok(_) => None,
        };
        if let Some(wrong) = wrong {
            problems.invalid("debugAddress", &self.debug_address, wrong);
        }
    }
}

impl QosAwareArgs {
    pub(super) fn safety_margin_seconds(&self) -> f64 {
        self.safety_margin.0 as f64 / NANOSECONDS_A_SECOND
    }

    /// None if the table has no address of its own.
    pub(super) fn debug_address(&self) -> Option<SocketAddr> {
        self.debug_address.parse().ok()
    }
}
