//! How many requests a client makes.

use std::time::Duration;

/// client-go's `DefaultQPS`.
const PER_SECOND_DEFAULT: f32 = 5.0;
/// client-go's `DefaultBurst`.
const BURST_DEFAULT: i32 = 10;

/// How many requests a client makes: `clientConnection.qps` and `burst`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    per_second: f64,
    burst: f64,
}

/// Tokens drop into a bucket at a steady rate until it is full, and every request takes one.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    limit: RateLimit,
    /// Below zero if requests wait for tokens that are yet to come.
    tokens: f64,
    /// When they were counted.
    at: Duration,
}

impl RateLimit {
    /// The limit that a configuration means: as in client-go, zero stands for its defaults and a negative rate for no limit.
    pub fn new(qps: f32, burst: i32) -> Option<Self> {
        if qps < 0.0 || qps.is_nan() {
            return None;
        }
        let per_second = if qps == 0.0 { PER_SECOND_DEFAULT } else { qps };
        let burst = if burst == 0 { BURST_DEFAULT } else { burst.max(1) };
        Some(RateLimit { per_second: per_second.into(), burst: burst.into() })
    }
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(limit: RateLimit) -> Self {
        TokenBucket { limit, tokens: limit.burst, at: Duration::ZERO }
    }

    /// Takes a token and says how long to wait until it is there. Whoever asks first waits least. Time is counted from
    /// when the bucket was made.
    pub(crate) fn take(&mut self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let dropped = passed.as_secs_f64() * self.limit.per_second;
        self.tokens = (self.tokens + dropped).min(self.limit.burst) - 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(-self.tokens / self.limit.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn numbers_mean_what_they_mean_in_client_go() {
        let limit = |per_second, burst| Some(RateLimit { per_second, burst });
        assert_eq!(RateLimit::new(50.0, 100), limit(50.0, 100.0));
        assert_eq!(RateLimit::new(0.0, 0), limit(5.0, 10.0));
        assert_eq!(RateLimit::new(-1.0, 100), None);
        assert_eq!(RateLimit::new(50.0, -3), limit(50.0, 1.0));
    }

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let mut bucket = TokenBucket::new(RateLimit::new(10.0, 3).expect("a limit"));
        let waits: Vec<_> = (0..6).map(|_| bucket.take(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        // At 300 ms all three have their tokens, and the next is due 100 ms later.
        assert_eq!(bucket.take(milliseconds(300)), milliseconds(100));
    }

    #[test]
    fn a_bucket_holds_no_more_than_a_burst() {
        let mut bucket = TokenBucket::new(RateLimit::new(10.0, 2).expect("a limit"));
        let later = Duration::from_secs(3600);
        assert_eq!(bucket.take(later), Duration::ZERO);
        assert_eq!(bucket.take(later), Duration::ZERO);
        assert_eq!(bucket.take(later), milliseconds(100));
        // A clock that goes back gives nothing.
        assert_eq!(bucket.take(Duration::ZERO), milliseconds(200));
    }
}
