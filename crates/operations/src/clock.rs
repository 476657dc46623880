//! The time of day, and chance: the one door to each.

use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};

/// Tells the time of day. An argument wherever it is needed, so that tests have clocks of their own.
pub type Clock = fn() -> Timestamp;

/// The time of day by the machine's clock.
#[expect(clippy::disallowed_methods, reason = "the door through which the time of day comes in")]
pub fn time_of_day() -> Timestamp {
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::MAX)
}

/// Sixteen bytes that nobody can guess; none if the machine has no source of them.
pub(crate) fn random_bytes() -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}
