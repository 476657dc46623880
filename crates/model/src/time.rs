//! Points in time. Nothing in the pure crates reads a clock: `now` always comes in as an argument.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A point in time, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Nanoseconds since the Unix epoch.
    pub nanoseconds: i64,
}

impl Timestamp {
    /// The point so many seconds after the Unix epoch.
    pub fn from_seconds(seconds: i64) -> Self {
        Timestamp { nanoseconds: seconds.saturating_mul(1_000_000_000) }
    }

    /// The time that has passed since `earlier`, zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds.saturating_sub(earlier.nanoseconds).max(0).unsigned_abs())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        let parsed: jiff::Timestamp = text.parse().map_err(|error| {
            serde::de::Error::custom(format!("{text:?} is not an RFC 3339 time such as 2026-01-31T12:00:00Z: {error}"))
        })?;
        let nanoseconds = i64::try_from(parsed.as_nanosecond()).map_err(|_| {
            serde::de::Error::custom(format!("{text:?} is out of range: years 1678 to 2261 are supported"))
        })?;
        Ok(Timestamp { nanoseconds })
    }
}
