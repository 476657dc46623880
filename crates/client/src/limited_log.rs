//! Log lines that are limited by name, so that an outage cannot fill a disk: after so many lines of a name within an interval the
//! rest are counted, and one line says how many there were.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::info;

/// So many lines of one name are written within [`LOG_INTERVAL`].
const LOG_LINES_MAX: u32 = 20;
/// How long lines of a name are counted together.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Decides which log lines are written. It writes nothing itself and reads no clock: see [`LimitedLog`] for that.
#[derive(Debug)]
struct LogLimiter {
    lines_max: u32,
    interval: Duration,
    windows: BTreeMap<&'static str, Window>,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
enum Admission {
    /// The line is to be written.
    Write,
    /// The line is left out, and counted.
    Suppress,
}

/// How many lines of a name were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Suppressed {
    /// The name of the lines.
    name: &'static str,
    /// How many lines were left out.
    lines: u64,
    /// Over how long they were left out.
    interval: Duration,
}

/// The lines of one name within one interval, which begins with a line.
#[derive(Debug)]
struct Window {
    began: Instant,
    written: u32,
    suppressed: u64,
}

impl LogLimiter {
    /// Writes so many lines of each name within an interval.
    fn new(lines_max: u32, interval: Duration) -> Self {
        LogLimiter { lines_max, interval, windows: BTreeMap::new() }
    }

    /// Whether a line of this name is written now. Call [`LogLimiter::take_suppressed`] before, so that what was left out is said
    /// before the next line of the same name.
    fn admit(&mut self, name: &'static str, now: Instant) -> Admission {
        let window = self.windows.entry(name).or_insert(Window { began: now, written: 0, suppressed: 0 });
        if window.written < self.lines_max {
            window.written += 1;
            return Admission::Write;
        }
        window.suppressed += 1;
        Admission::Suppress
    }

    /// What was left out in the intervals that have ended, in the order of names. Each is told once.
    fn take_suppressed(&mut self, now: Instant) -> Vec<Suppressed> {
        let mut ended = Vec::new();
        self.windows.retain(|name, window| {
            let age = now.saturating_duration_since(window.began);
            if age < self.interval {
                return true;
            }
            if window.suppressed > 0 {
                ended.push(Suppressed { name, lines: window.suppressed, interval: age });
            }
            false
        });
        ended
    }
}

/// Limits the lines of each name to 20 in 10 s. Several tasks may share it: clones share the same limits.
///
/// ```
/// # use supercargo_client::LimitedLog;
/// # let log = LimitedLog::default();
/// if log.admits("bind") {
///     tracing::error!(err = "conflict", pod = "shop/web-1", node = "n1", "Binding failed; the pod is tried again");
/// }
/// ```
///
/// Names are `&'static str`, such as `"bind"` and `"evict"`: there are as many as the code has, so the table is bounded. What tells
/// one line from another, such as the pod, belongs into the line's fields and never into its name.
///
/// Whoever owns one calls [`LimitedLog::write_suppressed`] now and then, such as once a second, for the sake of a burst that has
/// ended.
#[derive(Clone, Debug)]
pub struct LimitedLog(Arc<Mutex<LogLimiter>>);

impl Default for LimitedLog {
    fn default() -> Self {
        LimitedLog::new(LogLimiter::new(LOG_LINES_MAX, LOG_INTERVAL))
    }
}

impl LimitedLog {
    /// Shares this limiter.
    fn new(limiter: LogLimiter) -> Self {
        LimitedLog(Arc::new(Mutex::new(limiter)))
    }

    /// Whether a line of this name is to be written now. Says first what was left out before.
    pub fn admits(&self, name: &'static str) -> bool {
        let now = Instant::now();
        let mut limiter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let suppressed = limiter.take_suppressed(now);
        let admission = limiter.admit(name, now);
        drop(limiter);
        write(&suppressed);
        admission == Admission::Write
    }

    /// Says what was left out in intervals that have ended.
    pub fn write_suppressed(&self) {
        let suppressed =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).take_suppressed(Instant::now());
        write(&suppressed);
    }
}

fn write(suppressed: &[Suppressed]) {
    for Suppressed { name, lines, interval } in suppressed {
        info!(name, lines, "{lines} more like this in the last {} s", interval.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn written(limiter: &mut LogLimiter, name: &'static str, times: usize, now: Instant) -> usize {
        (0..times).filter(|_| limiter.admit(name, now) == Admission::Write).count()
    }

    #[tokio::test(start_paused = true)]
    async fn each_name_has_its_own_limit() {
        let mut limiter = LogLimiter::new(3, INTERVAL);
        let now = Instant::now();
        assert_eq!(written(&mut limiter, "bind", 100, now), 3);
        assert_eq!(written(&mut limiter, "evict", 2, now), 2, "binds do not silence evictions");
        assert_eq!(limiter.take_suppressed(now), [], "the interval has not ended");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_left_out_is_told_once_when_the_interval_has_ended() {
        let mut limiter = LogLimiter::new(3, INTERVAL);
        let began = Instant::now();
        assert_eq!(written(&mut limiter, "bind", 10, began), 3);
        assert_eq!(written(&mut limiter, "evict", 3, began), 3);
        assert_eq!(limiter.take_suppressed(began + INTERVAL / 2), []);
        let later = began + INTERVAL;
        assert_eq!(
            limiter.take_suppressed(later),
            [Suppressed { name: "bind", lines: 7, interval: INTERVAL }],
            "evictions were all written"
        );
        assert_eq!(limiter.take_suppressed(later), []);
        assert_eq!(written(&mut limiter, "bind", 10, later), 3, "a new interval");
    }

    #[tokio::test(start_paused = true)]
    async fn the_shared_limiter_goes_by_the_clock() {
        let log = LimitedLog::new(LogLimiter::new(2, INTERVAL));
        let admitted = |times: usize| (0..times).filter(|_| log.clone().admits("bind")).count();
        assert_eq!(admitted(5), 2);
        advance(INTERVAL).await;
        assert_eq!(admitted(5), 2);
        advance(INTERVAL).await;
        log.write_suppressed();
        assert_eq!(
            log.0.lock().expect("no panic").windows.len(),
            0,
            "nothing is kept of a name that is quiet"
        );
    }
}
