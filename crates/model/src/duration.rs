//! Durations as Go writes them: `15s`, `1m30s`, `1.5h`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time in nanoseconds, perhaps negative, that reads and prints as Go's `time.Duration` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(pub i64);

/// Text that is no duration. The texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum InvalidDuration {
    #[error("time: invalid duration {0:?}")]
    Malformed(String),
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit { unit: String, text: String },
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// One more than the largest duration; the magnitude of the smallest.
const LIMIT: u64 = 1 << 63;

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = GoDuration(0);

    /// So many seconds.
    pub const fn from_seconds(seconds: i64) -> Self {
        GoDuration(seconds.saturating_mul(SECOND as i64))
    }
}

impl FromStr for GoDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let malformed = || InvalidDuration::Malformed(text.to_owned());
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(GoDuration(0));
        }
        if rest.is_empty() {
            return Err(malformed());
        }
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (whole, after) = split_digits(rest);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => split_digits(after),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(malformed());
            }
            let unit_length = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_length);
            if unit.is_empty() {
                return Err(InvalidDuration::MissingUnit(text.to_owned()));
            }
            let nanoseconds = match unit {
                "ns" => 1,
                // The micro sign and the Greek letter.
                "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
                "ms" => MILLISECOND,
                "s" => SECOND,
                "m" => MINUTE,
                "h" => HOUR,
                _ => {
                    let unit = unit.to_owned();
                    return Err(InvalidDuration::UnknownUnit { unit, text: text.to_owned() });
                }
            };
            let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| malformed())? };
            total = whole
                .checked_mul(nanoseconds)
                .and_then(|value| value.checked_add(part_of(fraction, nanoseconds)))
                .filter(|value| *value <= LIMIT)
                .and_then(|value| total.checked_add(value))
                .filter(|total| *total <= LIMIT)
                .ok_or_else(malformed)?;
            rest = after;
        }
        match (negative, i64::try_from(total)) {
            (false, Ok(total)) => Ok(GoDuration(total)),
            (true, Ok(total)) => Ok(GoDuration(-total)),
            (true, Err(_)) => Ok(GoDuration(i64::MIN)),
            (false, Err(_)) => Err(malformed()),
        }
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match total {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{total}ns"),
            MICROSECOND..MILLISECOND => write!(f, "{}\u{b5}s", Decimal(total, MICROSECOND)),
            MILLISECOND..SECOND => write!(f, "{}ms", Decimal(total, MILLISECOND)),
            _ => {
                let (hours, minutes) = (total / HOUR, total / MINUTE % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", Decimal(total % MINUTE, SECOND))
            }
        }
    }
}

/// Nanoseconds in a larger unit, without trailing zeros.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal(value, unit) = *self;
        let digits = unit.ilog10() as usize;
        let fraction = format!("{:0digits$}", value % unit);
        let fraction = fraction.trim_end_matches('0');
        write!(f, "{}{}{fraction}", value / unit, if fraction.is_empty() { "" } else { "." })
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The fraction `0.<digits>` of a unit. In floating point, with digits ignored once they no longer fit, because that
/// is how Go rounds.
fn part_of(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1_f64);
    for digit in digits.bytes() {
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
        match next {
            Some(next) if value <= (LIMIT - 1) / 10 && next <= LIMIT => (value, scale) = (next, scale * 10.0),
            _ => break,
        }
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

#[cfg(test)]
mod tests;
