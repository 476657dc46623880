//! What time it is, and whether the clock was set.

use std::sync::OnceLock;
use std::time::Duration;

use supercargo_model::Timestamp;
use tokio::time::Instant;
use tracing::warn;

/// Notices when the clock on the wall is set, by the clock that nobody sets. Slow corrections are not noticed, and need not be.
///
/// It is asked whenever both clocks are read, and reads none itself: that is several times for each pod.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    /// What both clocks said the last time.
    seen: (Duration, Timestamp),
}

impl ClockWatch {
    /// By the clock that nobody sets so much time has passed, and this is what the clock on the wall says.
    pub(crate) fn new(elapsed: Duration, now: Timestamp) -> Self {
        ClockWatch { seen: (elapsed, now) }
    }

    /// By how many whole seconds the clock on the wall was set since the last time; 0 if it was not.
    ///
    /// The clock that nobody sets is to be read first: a process that is stopped between the two then takes the other one for set forward for
    /// a moment, and waits a little longer. Taken for set back, it would let time-outs pass that have not come.
    pub(crate) fn was_set(&mut self, elapsed: Duration, now: Timestamp) -> i64 {
        const NANOSECONDS: i64 = 1_000_000_000;
        let (elapsed_before, before) = std::mem::replace(&mut self.seen, (elapsed, now));
        let expected = before.after(elapsed.saturating_sub(elapsed_before));
        let difference = now.nanoseconds().saturating_sub(expected.nanoseconds());
        // Rounded to the nearest second.
        let seconds = difference.saturating_add(NANOSECONDS / 2).div_euclid(NANOSECONDS);
        if seconds != 0 {
            warn!(seconds, "The clock was set; what waits goes on waiting for as long as it would have");
        }
        seconds
    }
}

/// How much time has passed since this was first asked.
pub(crate) fn elapsed() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_once() {
        let (began, mut elapsed) = (Timestamp::from_seconds(1_000_000), Duration::ZERO);
        let mut watch = ClockWatch::new(elapsed, began);
        for (set, expected) in [(0, 0), (3600, 3600), (3600, 0), (-10, -3610), (-10, 0)] {
            elapsed += Duration::from_millis(1700);
            assert_eq!(watch.was_set(elapsed, began.after(elapsed).moved(set)), expected);
        }
    }
}
