use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use supercargo_model::GoDuration;
use tokio::time::Instant;

use crate::leader::{InvalidSettings, LeaderSettings, LeaseRecord, Moment, Observed, Step, decide, released};

fn time(text: &str) -> Timestamp {
    text.parse().expect(text)
}

fn record(holder: &str) -> LeaseRecord {
    LeaseRecord {
        holder: holder.to_owned(),
        lease_duration_seconds: 15,
        acquire_time: Some(time("2026-01-01T00:00:00Z")),
        renew_time: Some(time("2026-01-01T01:00:00Z")),
        transitions: 7,
    }
}

#[tokio::test(start_paused = true)]
async fn the_rules() {
    let settings = LeaderSettings::default();
    let start = Instant::now();
    let today = time("2026-11-16T12:00:00Z");
    let at = |seconds: u64| Moment { instant: start + Duration::from_secs(seconds), time_of_day: today };
    let theirs = record("other");
    let seen = Observed { record: theirs.clone(), since: start };
    let mine = |transitions, acquired| LeaseRecord {
        holder: "me".to_owned(),
        lease_duration_seconds: 15,
        acquire_time: Some(acquired),
        renew_time: Some(today),
        transitions,
    };
    let decide = |found: Option<&LeaseRecord>, observed: Option<&Observed>, seconds| {
        decide(found, observed, "me", &settings, at(seconds))
    };

    assert_eq!(decide(None, None, 0), Step::Create(mine(0, today)), "no lease");
    assert_eq!(decide(Some(&theirs), None, 100), Step::Wait, "never seen before, so it may be fresh");
    assert_eq!(decide(Some(&theirs), Some(&seen), 14), Step::Wait, "seen for less than its duration");
    assert_eq!(
        decide(Some(&theirs), Some(&seen), 15),
        Step::TakeOver(mine(8, today)),
        "seen for its duration"
    );
    let renewed = LeaseRecord { renew_time: Some(time("1970-01-01T00:00:00Z")), ..theirs.clone() };
    assert_eq!(decide(Some(&renewed), Some(&seen), 100), Step::Wait, "any change of the time is a renewal");
    assert_eq!(decide(Some(&record("")), None, 0), Step::TakeOver(mine(8, today)), "released");
    let ours = record("me");
    let acquired = time("2026-01-01T00:00:00Z");
    assert_eq!(decide(Some(&ours), None, 0), Step::Renew(mine(7, acquired)), "ours keeps its beginning");
    let seen = Observed { record: ours.clone(), since: start };
    assert_eq!(
        decide(Some(&ours), Some(&seen), 100),
        Step::Renew(mine(7, acquired)),
        "ours, run out, but not taken"
    );
    let still = LeaseRecord { renew_time: Some(today), ..ours.clone() };
    let Step::Renew(next) = decide(Some(&still), None, 0) else { panic!("ours") };
    assert_ne!(next.renew_time, still.renew_time, "a renewal is a change, even if our clock stands still");
    let never = LeaseRecord { lease_duration_seconds: 0, ..record("other") };
    assert_eq!(decide(Some(&never), None, 0), Step::TakeOver(mine(8, today)), "a lease without a duration");
    let many = LeaseRecord { transitions: i32::MAX, holder: String::new(), ..record("") };
    assert_eq!(decide(Some(&many), None, 0), Step::TakeOver(mine(i32::MAX, today)), "no overflow");

    let free = released(&ours, at(0));
    assert_eq!((free.holder.as_str(), free.lease_duration_seconds, free.transitions), ("", 1, 7));
}

#[test]
fn a_lease_keeps_what_we_do_not_know() {
    let mut lease = json!({
        "metadata": {"resourceVersion": "5", "labels": {"a": "b"}},
        "spec": {"holderIdentity": "other", "strategy": "OldestEmulationVersion", "leaseDurationSeconds": "wrong"},
        "future": [1, 2],
    });
    assert_eq!(
        LeaseRecord::read(&lease),
        LeaseRecord { holder: "other".to_owned(), ..LeaseRecord::default() }
    );
    let record = record("me");
    record.write(&mut lease);
    assert_eq!(LeaseRecord::read(&lease), record);
    assert_eq!(
        lease,
        json!({
            "metadata": {"resourceVersion": "5", "labels": {"a": "b"}},
            "spec": {
                "holderIdentity": "me",
                "strategy": "OldestEmulationVersion",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 7,
                "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": "2026-01-01T01:00:00.000000Z",
            },
            "future": [1, 2],
        })
    );
    for odd in [json!(null), json!(3), json!({"spec": 3}), json!({"spec": {"renewTime": "noon"}})] {
        let mut odd = odd;
        LeaseRecord::read(&odd);
        record.write(&mut odd);
        assert_eq!(LeaseRecord::read(&odd), record);
    }
}

#[test]
fn unsafe_settings_are_refused() {
    let settings = |lease, renew, retry| LeaderSettings {
        lease_duration: Duration::from_millis(lease),
        renew_deadline: Duration::from_millis(renew),
        retry_period: Duration::from_millis(retry),
    };
    for (settings, expected) in [
        (LeaderSettings::default(), Ok(())),
        (settings(10_000, 10_000, 2_000), Err(InvalidSettings::LeaseDuration)),
        (settings(15_000, 10_000, 9_000), Err(InvalidSettings::RenewDeadline)),
        (settings(15_000, 10_000, 0), Err(InvalidSettings::RetryPeriod)),
        (settings(900, 800, 100), Err(InvalidSettings::LeaseDurationSeconds)),
    ] {
        assert_eq!(settings.validate(), expected, "{settings:?}");
    }
    let go = GoDuration::from_seconds;
    assert_eq!(LeaderSettings::new(go(15), go(10), go(2)), Ok(LeaderSettings::default()));
    assert_eq!(LeaderSettings::new(go(15), go(10), go(-2)), Err(InvalidSettings::RetryPeriod));
    assert_eq!(LeaderSettings::new(go(-15), go(10), go(2)), Err(InvalidSettings::LeaseDuration));
}
