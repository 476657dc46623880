//! What time it is, and whether the clock was set.

use std::sync::OnceLock;
use std::time::Duration;

use supercargo_model::Timestamp;
use tokio::time::Instant;
use tracing::warn;

/// Notices when the clock on the wall is set, by the clock that nobody sets. Slow corrections are not noticed, and need not be.
///
/// It is asked whenever both clocks are read, and reads none itself as long as nothing is strange: that is several times for each pod.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    /// What both clocks said the last time.
    seen: (Duration, Timestamp),
    /// By how many seconds the clock on the wall was set so far.
    shift: i64,
}

impl ClockWatch {
    /// By the clock that nobody sets so much time has passed, and this is what the clock on the wall says.
    pub(crate) fn new(elapsed: Duration, now: Timestamp) -> Self {
        ClockWatch { seen: (elapsed, now), shift: 0 }
    }

    /// By how many seconds the clock on the wall was set so far: what it said before stands for another moment since.
    pub(crate) fn shift(&self) -> i64 {
        self.shift
    }

    /// By how many whole seconds the clock on the wall was set since the last time; 0 if it was not. If it seems to be set, both clocks
    /// are read once more, the one that nobody sets first, and what they say then counts: a process may be stopped between the two, and
    /// time that has passed there is no reason to move anything.
    pub(crate) fn was_set(
        &mut self,
        elapsed: Duration,
        now: Timestamp,
        read_again: impl FnOnce() -> (Duration, Timestamp),
    ) -> i64 {
        let before = std::mem::replace(&mut self.seen, (elapsed, now));
        if seconds_set(before, self.seen) == 0 {
            return 0;
        }
        self.seen = read_again();
        let seconds = seconds_set(before, self.seen);
        if seconds != 0 {
            self.shift = self.shift.saturating_add(seconds);
            warn!(seconds, "The clock was set; what waits goes on waiting for as long as it would have");
        }
        seconds
    }
}

/// By how many seconds, rounded to the nearest, the clock on the wall was set between two looks at both clocks.
fn seconds_set(before: (Duration, Timestamp), after: (Duration, Timestamp)) -> i64 {
    const NANOSECONDS: i64 = 1_000_000_000;
    let expected = before.1.after(after.0.saturating_sub(before.0));
    let difference = after.1.nanoseconds().saturating_sub(expected.nanoseconds());
    difference.saturating_add(NANOSECONDS / 2).div_euclid(NANOSECONDS)
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
            let now = began.after(elapsed).moved(set);
            assert_eq!(watch.was_set(elapsed, now, || (elapsed, now)), expected);
            assert_eq!(watch.shift(), set);
        }
    }

    /// What waits since such a look would end early if it was moved back at the next one.
    #[test]
    fn a_process_that_is_stopped_while_the_clocks_are_read_has_no_clock_that_was_set() {
        let (began, second) = (Timestamp::from_seconds(1_000_000), Duration::from_secs(1));
        for (stopped, set) in [(0, 0), (2, 0), (30, 0), (30, 3600), (30, -3600)] {
            let mut watch = ClockWatch::new(Duration::ZERO, began);
            // The second clock is read so much later.
            let stopped = stopped * second;
            let both = |elapsed: Duration| (elapsed, began.after(elapsed).moved(set));
            let told = watch.was_set(second, both(second + stopped).1, || both(second + stopped));
            let (elapsed, now) = both(2 * second + stopped);
            let told_next = watch.was_set(elapsed, now, || panic!("nothing is strange any more"));
            assert_eq!((told, told_next, watch.shift()), (set, 0, set), "{stopped:?} {set}");
        }
    }
}
