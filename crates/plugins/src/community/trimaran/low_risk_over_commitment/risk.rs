//! The risk that the pods of a node need more of a resource than there is.

use super::beta::Beta;
use crate::community::trimaran::statistics::{Statistics, clamped};

/// A deviation is at most so much of what a share that cannot leave 0 to 1 can deviate by.
const DEVIATION_SHARE: f64 = 0.99;

/// What the pods of a node have requested and may use, with the pod that is scored and without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) capacity: i64,
    pub(super) request: i64,
    pub(super) limit: i64,
    pub(super) request_before: i64,
    pub(super) limit_before: i64,
}

/// What counts how much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    /// How much the risk of limits counts against that of load.
    pub(super) limits: f64,
    /// How many samples the deviation is taken over.
    pub(super) samples: f64,
}

/// The risk, from 0 to 1.
pub(super) fn of(committed: Committed, measured: Option<Statistics>, weighing: Weighing) -> f64 {
    let committed = Committed {
        request: committed.request.min(committed.capacity),
        request_before: committed.request_before.min(committed.capacity),
        ..committed
    };
    let load = measured.map_or(0.0, |measured| of_load(&committed, &measured, weighing.samples));
    clamped(weighing.limits * of_limits(&committed) + (1.0 - weighing.limits) * load, 1.0)
}

/// How much of what pods may use beyond their requests is beyond what the node has.
fn of_limits(committed: &Committed) -> f64 {
    if committed.limit <= committed.capacity {
        return 0.0;
    }
    (committed.limit - committed.capacity) as f64 / (committed.limit - committed.request) as f64
}

/// How likely the load is beyond what pods had requested before this one.
fn of_load(committed: &Committed, measured: &Statistics, samples: f64) -> f64 {
    let (mean, deviation) = measured.mean_and_deviation();
    let most = if mean > 0.0 && mean < 1.0 { (DEVIATION_SHARE * mean * (1.0 - mean)).sqrt() } else { 0.0 };
    let deviation = (deviation * samples.sqrt()).min(most);
    let capacity = committed.capacity as f64;
    let threshold = clamped(committed.request_before as f64 / capacity, 1.0);
    let mut beta = None;
    let mut within = if mean == 0.0 || (deviation == 0.0 && mean <= threshold) {
        1.0
    } else if deviation == 0.0 {
        0.0
    } else {
        beta = Beta::matching(mean, deviation);
        beta.as_ref().map_or(0.0, |beta| beta.probability_below(threshold))
    };
    if committed.limit_before < committed.capacity && committed.request_before <= committed.limit_before {
        // Nobody may use more than the limits: what is beyond them cannot be.
        let limit = committed.limit_before as f64 / capacity;
        if limit == 0.0 {
            within = 1.0;
        } else if let Some(beta) = beta {
            // Most pods have no other limits than their requests.
            let possible = if limit == threshold { within } else { beta.probability_below(limit) };
            if possible > 0.0 {
                within = clamped(within / possible, 1.0);
            }
        }
    }
    1.0 - within
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(
        capacity: i64,
        request: i64,
        limit: i64,
        request_before: i64,
        limit_before: i64,
    ) -> Committed {
        Committed { capacity, request, limit, request_before, limit_before }
    }

    fn load(capacity: f64, percent: f64, deviation: f64) -> Option<Statistics> {
        let (used_average, used_deviation) = (percent * capacity / 100.0, deviation * capacity / 100.0);
        Some(Statistics { capacity, requested: 0.0, used_average, used_deviation })
    }

    #[test]
    fn risks_of_limits_and_load_are_weighed() {
        let half = Weighing { limits: 0.5, samples: 1.0 };
        for (committed, load, expected) in [
            (committed(4_000, 2_000, 3_000, 1_000, 2_000), load(4_000.0, 80.0, 0.0), 0.5),
            (committed(4_096, 2_048, 6_144, 0, 0), load(4_096.0, 25.0, 0.0), 0.25),
            (committed(4_000, 4_000, 5_000, 3_000, 4_000), load(4_000.0, 80.0, 0.0), 1.0),
            (committed(4_096, 1_024, 7_168, 512, 6_144), load(4_096.0, 25.0, 0.0), 0.75),
        ] {
            assert!((of(committed, load, half) - expected).abs() < 1e-12, "{committed:?}");
        }
    }

    #[test]
    fn a_load_that_varies_is_a_distribution() {
        let five = Weighing { limits: 0.5, samples: 5.0 };
        let cpu = of(committed(4_000, 3_000, 5_000, 2_000, 3_500), load(4_000.0, 50.0, 10.0), five);
        assert!((cpu - 0.488_776).abs() < 1e-6, "{cpu}");
        let memory = of(committed(8, 5, 6, 4, 5), load(8.0, 40.0, 5.0), five);
        assert!((memory - 0.084_482).abs() < 1e-6, "{memory}");
    }
}
