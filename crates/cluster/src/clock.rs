//! What time it is, and whether the clock was set.

use std::sync::OnceLock;
use std::time::Duration;

use supercargo_client::Clock;
use supercargo_model::Timestamp;
use tokio::time::Instant;

/// Notices when the clock on the wall is set, by the clock that nobody sets. Slow corrections are not noticed, and need not be.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    clock: Clock,
    seen: (Timestamp, Instant),
}

impl ClockWatch {
    pub(crate) fn new(clock: Clock) -> Self {
        let seen = (clock.now(), Instant::now());
        ClockWatch { clock, seen }
    }

    /// By how many whole seconds the clock was set since the last time; 0 if it was not.
    pub(crate) fn was_set(&mut self) -> i64 {
        const NANOSECONDS: i64 = 1_000_000_000;
        let (time, instant) = std::mem::replace(&mut self.seen, (self.clock.now(), Instant::now()));
        let expected = time.after(self.seen.1.saturating_duration_since(instant));
        let difference = self.seen.0.nanoseconds().saturating_sub(expected.nanoseconds());
        // Rounded to the nearest second.
        (difference.saturating_add(NANOSECONDS / 2)).div_euclid(NANOSECONDS)
    }
}

/// How much time has passed since this was first asked.
pub(crate) fn elapsed() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_is_noticed_once() {
        let (began, offset) = (Instant::now(), Arc::new(std::sync::atomic::AtomicI64::new(0)));
        let shift = offset.clone();
        let base = Timestamp::from_seconds(1_000_000);
        let clock = Clock::from_fn(move || {
            base.after(began.elapsed()).moved(shift.load(std::sync::atomic::Ordering::Relaxed))
        });
        let mut watch = ClockWatch::new(clock);
        for (set, expected) in [(0, 0), (3600, 3600), (3600, 0), (-10, -3610), (-10, 0)] {
            tokio::time::advance(Duration::from_millis(1700)).await;
            offset.store(set, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(watch.was_set(), expected);
        }
    }
}
