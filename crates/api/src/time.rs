//! How the API writes points in time.

use supercargo_model::Timestamp;

/// `2026-01-31T12:00:00Z`, as the API writes a `Time`.
pub(crate) fn seconds(time: Timestamp) -> String {
    in_api_form(time, 0)
}

/// `2026-01-31T12:00:00.000000Z`, as the API writes a `MicroTime`.
pub(crate) fn microseconds(time: Timestamp) -> String {
    in_api_form(time, 6)
}

fn in_api_form(time: Timestamp, precision: u8) -> String {
    // Both count nanoseconds from the epoch, and jiff's range is wider than ours.
    let time = jiff::Timestamp::from_nanosecond(time.nanoseconds().into()).unwrap_or_default();
    format!("{time:.*}", usize::from(precision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_writes_them() {
        let time = Timestamp::from_nanoseconds(1_769_860_800_123_456_789);
        assert_eq!(seconds(time), "2026-01-31T12:00:00Z");
        assert_eq!(microseconds(time), "2026-01-31T12:00:00.123456Z");
        assert_eq!(microseconds(Timestamp::from_seconds(0)), "1970-01-01T00:00:00.000000Z");
    }
}
