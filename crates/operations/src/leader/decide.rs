//! What to do about a lease: client-go's rules as a pure function.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::LeaseRecord;
use super::settings::LeaderSettings;

/// A record, and when *we* first saw it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The record.
    pub record: LeaseRecord,
    /// When it was first seen, or written by us, by our own clock.
    pub since: Instant,
}

impl Observed {
    /// Whether the lease binds others still. The times in the record come from another machine's clock, which may be
    /// wrong by hours, so they do not count: what counts is how long we have seen no change.
    pub fn is_valid(&self, now: Instant) -> bool {
        let seconds = u64::try_from(self.record.lease_duration_seconds).unwrap_or(0);
        now < self.since + Duration::from_secs(seconds)
    }
}

/// Now, by the two clocks there are.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For how long something has been so.
    pub instant: Instant,
    /// For people to read in the Lease.
    pub time_of_day: Timestamp,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no lease: create it with this record. If that works we lead.
    Create(LeaseRecord),
    /// Nobody holds it, or nobody has for too long: write this record. If that works we lead.
    TakeOver(LeaseRecord),
    /// We hold it: write this record. If that works we go on leading.
    Renew(LeaseRecord),
    /// Somebody else holds it: try again later.
    Wait,
}

/// Says what to do about a lease: `found` is what it says, none if there is no such lease; `observed` is what it said
/// when it last changed, as far as we have seen.
pub fn decide(
    found: Option<&LeaseRecord>,
    observed: Option<&Observed>,
    identity: &str,
    settings: &LeaderSettings,
    now: Moment,
) -> Step {
    let time = whole_microseconds(now.time_of_day);
    let fresh = LeaseRecord {
        holder: identity.to_owned(),
        lease_duration_seconds: settings.lease_duration_seconds(),
        acquire_time: Some(time),
        renew_time: Some(time),
        transitions: 0,
    };
    let Some(found) = found else { return Step::Create(fresh) };
    if found.holder == identity {
        return Step::Renew(LeaseRecord {
            acquire_time: found.acquire_time,
            renew_time: Some(found.renew_time.map_or(time, |last| later(last, time))),
            transitions: found.transitions,
            ..fresh
        });
    }
    // A record that differs from the observed one has just changed: its time starts now.
    let unchanged = observed.filter(|observed| observed.record == *found);
    let valid = unchanged.map_or(found.lease_duration_seconds > 0, |observed| observed.is_valid(now.instant));
    if !found.holder.is_empty() && valid {
        return Step::Wait;
    }
    Step::TakeOver(LeaseRecord { transitions: found.transitions.saturating_add(1), ..fresh })
}

/// What a leader leaves behind when it goes: the next one need not wait for the lease to run out.
pub fn released(found: &LeaseRecord, now: Moment) -> LeaseRecord {
    let time = whole_microseconds(now.time_of_day);
    LeaseRecord {
        holder: String::new(),
        // Zero is no valid duration to the API server, and a candidate that does not look at the holder waits a second.
        lease_duration_seconds: 1,
        acquire_time: Some(time),
        renew_time: Some(time),
        transitions: found.transitions,
    }
}

/// Others notice a renewal by nothing but the change of its time, which must therefore be one that they have never seen,
/// even if our clock stands still or goes back.
fn later(last: Timestamp, time: Timestamp) -> Timestamp {
    let next = last.checked_add(Duration::from_micros(1)).unwrap_or(last);
    time.max(next)
}

/// A time as a Lease can hold it.
fn whole_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
