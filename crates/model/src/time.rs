//! Points in time. Nothing in the pure crates reads a clock: `now` always comes in as an argument.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, to the nanosecond.
///
/// The inside is never zero, so that an `Option<Timestamp>` takes no more room: every pod has three of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

/// Moves the signed numbers, in their order, to the unsigned ones. The least becomes zero.
const SIGN: u64 = 1 << 63;

impl Timestamp {
    /// The point so many nanoseconds after the Unix epoch.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        match NonZeroU64::new(nanoseconds.cast_unsigned() ^ SIGN) {
            Some(moved) => Timestamp(moved),
            None => Timestamp(NonZeroU64::MIN),
        }
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn nanoseconds(self) -> i64 {
        (self.0.get() ^ SIGN).cast_signed()
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn seconds(self) -> i64 {
        self.nanoseconds().div_euclid(1_000_000_000)
    }

    /// The point so many seconds after the Unix epoch.
    pub fn from_seconds(seconds: i64) -> Self {
        Self::from_nanoseconds(seconds.saturating_mul(1_000_000_000))
    }

    /// The point that lies so much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let nanoseconds = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self::from_nanoseconds(self.nanoseconds().saturating_add(nanoseconds))
    }

    /// The point that lies so many seconds later, or earlier if they are negative.
    #[must_use]
    pub fn moved(self, seconds: i64) -> Self {
        let nanoseconds = seconds.saturating_mul(1_000_000_000);
        Self::from_nanoseconds(self.nanoseconds().saturating_add(nanoseconds))
    }

    /// The time that has passed since `earlier`, zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds().saturating_sub(earlier.nanoseconds()).max(0).unsigned_abs())
    }
}

/// The Unix epoch.
impl Default for Timestamp {
    fn default() -> Self {
        Self::from_nanoseconds(0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        jiff::Timestamp::from_nanosecond(self.nanoseconds().into()).map_err(|_| fmt::Error)?.fmt(f)
    }
}

/// As RFC 3339 writes it, with as many decimals as it needs.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
        let parsed: jiff::Timestamp = text.parse().map_err(|error| {
            E::custom(format!("{text:?} is not an RFC 3339 time such as 2026-01-31T12:00:00Z: {error}"))
        })?;
        let nanoseconds = i64::try_from(parsed.as_nanosecond())
            .map_err(|_| E::custom(format!("{text:?} is out of range: years 1678 to 2261 are supported")))?;
        Ok(Timestamp::from_nanoseconds(nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Timestamp, String> {
        serde_json::from_value(text.into()).map_err(|error| error.to_string())
    }

    #[test]
    fn times_as_the_api_writes_them() {
        const SECOND: i64 = 1_000_000_000;
        for (text, nanoseconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-31T12:00:00Z", 1_769_860_800 * SECOND),
            ("2026-01-31T12:00:00.000000001Z", 1_769_860_800 * SECOND + 1), // MicroTime has fractions
            ("2026-01-31T13:30:00+01:30", 1_769_860_800 * SECOND),
            ("1969-12-31T23:59:59Z", -SECOND),
        ] {
            assert_eq!(read(text).map(Timestamp::nanoseconds), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn seconds_are_rounded_down() {
        for (nanoseconds, seconds) in [
            (0, 0),
            (999_999_999, 0),
            (1_000_000_000, 1),
            (-1, -1),
            (-1_000_000_000, -1),
            (-1_000_000_001, -2),
        ] {
            assert_eq!(Timestamp::from_nanoseconds(nanoseconds).seconds(), seconds, "{nanoseconds}");
        }
    }

    #[test]
    fn what_is_no_time_says_so() {
        for (text, says) in [
            ("", "is not an RFC 3339 time"),
            ("yesterday", "is not an RFC 3339 time"),
            ("2026-01-31T12:00:00", "is not an RFC 3339 time"), // no offset: Go refuses it too
            ("2026-02-30T12:00:00Z", "is not an RFC 3339 time"),
            ("0001-01-01T00:00:00Z", "is out of range"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(serde_json::from_str::<Timestamp>("17").is_err());
    }

    #[test]
    fn an_absent_time_takes_no_room() {
        assert_eq!(size_of::<Option<Timestamp>>(), size_of::<i64>());
        // The one number that gives way for it.
        assert_eq!(Timestamp::from_nanoseconds(i64::MIN).nanoseconds(), i64::MIN + 1);
    }

    proptest! {
        #![proptest_config(crate::seeded())]

        #[test]
        fn order_and_distance_are_those_of_the_numbers(a in (i64::MIN + 1).., b in (i64::MIN + 1)..) {
            let (first, second) = (Timestamp::from_nanoseconds(a), Timestamp::from_nanoseconds(b));
            prop_assert_eq!(first.nanoseconds(), a);
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
            let distance = (i128::from(a) - i128::from(b)).clamp(0, i64::MAX.into());
            prop_assert_eq!(first.since(second).as_nanos(), distance.unsigned_abs());
        }
    }
}
