//! The heartbeat of the driver: how a health check sees that the driver's loop still turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How long the driver's loop may go without a beat. The loop beats at least once a second when it is idle, and once for each pod
/// that it tries; only a decision that takes longer than this, or a loop that is stuck, is taken for dead.
pub const HEARTBEAT_TOLERANCE: Duration = Duration::from_secs(30);

/// The heartbeat of one loop. Clones are the same heartbeat: the loop beats one clone, a health check reads another. Reading
/// and beating take no lock, so that a check can answer while the loop is stuck.
///
/// Time is tokio's: monotonic, and virtual in tests. A process that was stopped (SIGSTOP) for longer than the tolerance fails its
/// check from the moment it goes on until the loop turns again, which takes milliseconds.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    name: &'static str,
    tolerance: Duration,
    /// When the heartbeat was made.
    began: Instant,
    /// When the loop last beat, in milliseconds since `began`.
    last_beat: Arc<AtomicU64>,
}

impl Heartbeat {
    /// The heartbeat of the loop of this name. That it was made counts as the first beat, so a loop that is never started fails
    /// the check as one that has stopped does.
    pub fn new(name: &'static str, tolerance: Duration) -> Self {
        Heartbeat { name, tolerance, began: Instant::now(), last_beat: Arc::new(AtomicU64::new(0)) }
    }

    /// The loop turns.
    pub fn beat(&self) {
        self.beat_at(Instant::now());
    }

    /// The loop turns, at this moment: for a loop that has looked at the clock already.
    pub(crate) fn beat_at(&self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.began);
        self.last_beat.store(milliseconds(elapsed), Ordering::Relaxed);
    }

    /// How long ago the last beat was.
    pub fn age(&self) -> Duration {
        let last_beat = Duration::from_millis(self.last_beat.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(last_beat)
    }

    /// Whether the loop turns; the error says for how long it has not.
    pub fn check(&self) -> Result<(), String> {
        let age = self.age();
        if age <= self.tolerance {
            return Ok(());
        }
        Err(format!(
            "the {} has not turned for {} s, {} s are tolerated: restart the process",
            self.name,
            age.as_secs(),
            self.tolerance.as_secs()
        ))
    }
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stops_beating_fails_the_check() {
        let heartbeat = Heartbeat::new("driver", HEARTBEAT_TOLERANCE);
        let check = heartbeat.clone();
        advance(HEARTBEAT_TOLERANCE).await;
        assert_eq!(check.check(), Ok(()), "the tolerance itself is tolerated");
        heartbeat.beat();
        advance(HEARTBEAT_TOLERANCE).await;
        assert_eq!(check.check(), Ok(()), "the beat was heard by the clone");
        advance(Duration::from_secs(1)).await;
        let error = check.check().expect_err("31 s without a beat");
        assert_eq!(error, "the driver has not turned for 31 s, 30 s are tolerated: restart the process");
        heartbeat.beat();
        assert_eq!(check.check(), Ok(()), "the loop turns again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_never_begins_fails_the_check() {
        let heartbeat = Heartbeat::new("driver", Duration::from_secs(5));
        advance(Duration::from_secs(6)).await;
        assert!(heartbeat.check().is_err());
    }
}
