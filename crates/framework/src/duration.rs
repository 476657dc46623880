//! Durations as Go writes them: `15s`, `1m30s`, `-2m22.541s`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time, perhaps negative, that reads and prints as Go's `time.Duration` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    /// Nanoseconds.
    pub nanoseconds: i64,
}

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration such as 30s, 1m30s or 250ms")]
pub struct InvalidDuration {
    text: String,
}

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = GoDuration { nanoseconds: 0 };

    /// So many seconds.
    pub const fn from_seconds(seconds: i64) -> Self {
        GoDuration { nanoseconds: seconds.saturating_mul(1_000_000_000) }
    }
}

impl FromStr for GoDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        parse(text).ok_or_else(|| InvalidDuration { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<GoDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(GoDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        total = total.checked_add(amount(number, unit_nanoseconds(unit)?)?)?;
        rest = after;
    }
    let limit = 1 << 63;
    match (negative, total) {
        (true, total) if total <= limit => {
            Some(GoDuration { nanoseconds: 0i64.wrapping_sub_unsigned(total) })
        }
        (false, total) if total < limit => Some(GoDuration { nanoseconds: total as i64 }),
        _ => None,
    }
}

fn amount(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Digits beyond the 18th are below a nanosecond for every unit.
    let digits = &fraction[..fraction.len().min(18)];
    let scaled = if digits.is_empty() { 0 } else { digits.parse::<u128>().ok()? * u128::from(unit) };
    let fraction = scaled / 10u128.pow(u32::try_from(digits.len()).ok()?);
    whole.checked_mul(unit)?.checked_add(u64::try_from(fraction).ok()?)
}

fn unit_nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanoseconds < 0 {
            f.write_str("-")?;
        }
        let total = self.nanoseconds.unsigned_abs();
        match total {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{total}ns"),
            1_000..1_000_000 => write!(f, "{}µs", Decimal(total, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", Decimal(total, 1_000_000)),
            _ => {
                let minutes = total / 60_000_000_000;
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", Decimal(total % 60_000_000_000, 1_000_000_000))
            }
        }
    }
}

/// A number of units with its fraction, without trailing zeros.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal(amount, unit) = *self;
        write!(f, "{}", amount / unit)?;
        if !amount.is_multiple_of(unit) {
            let width = unit.ilog10() as usize;
            let fraction = format!("{:0width$}", amount % unit);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_as_go_does() {
        for (text, nanoseconds, printed) in [
            ("0", 0, "0s"),
            ("15s", 15_000_000_000, "15s"),
            ("1m30s", 90_000_000_000, "1m30s"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            ("250ms", 250_000_000, "250ms"),
            ("1.5µs", 1_500, "1.5µs"),
            ("7ns", 7, "7ns"),
            ("-2m22.541s", -142_541_000_000, "-2m22.541s"),
            ("+.5s", 500_000_000, "500ms"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            let duration: GoDuration = text.parse().expect(text);
            assert_eq!(
                (duration.nanoseconds, duration.to_string().as_str()),
                (nanoseconds, printed),
                "{text}"
            );
        }
        for text in ["", "-", "1", "s", ".s", "1x", "1s2", "1..2s", "9223372036854775808ns", "1e3s", "１s"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }

    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed};

    fn seeded() -> Config {
        Config { failure_persistence: None, rng_seed: RngSeed::Fixed(1), cases: 4096, ..Config::default() }
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn what_is_printed_reads_as_what_it_was(nanoseconds in any::<i64>(), shift in 0..63u32) {
            let duration = GoDuration { nanoseconds: nanoseconds >> shift };
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }

        #[test]
        fn no_text_is_too_odd_to_be_refused(text in "[-+]?([0-9]{0,20}(\\.[0-9]{0,25})?(ns|us|µs|μs|ms|s|m|h|x|)){0,4}") {
            if let Ok(duration) = text.parse::<GoDuration>() {
                prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
            }
        }

        #[test]
        fn any_text_can_be_tried(text in any::<String>()) {
            let _ = text.parse::<GoDuration>();
        }
    }
}
