use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::store::{Candidate, Faults, Server, overlap, overstayed};
use crate::leader::{
    Attempt, Ended, LeaderSettings, Leadership, LeaseRecord, StoreError, Watchdog, new_identity,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn holder(server: &Server) -> String {
    LeaseRecord::read(&server.lease().unwrap_or_default()).holder
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_other_knows_who() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    let second = Candidate::start(&server, epoch, "second", Faults::default());
    sleep(seconds(3600)).await;
    assert!(first.leads());
    let expected = Leadership::Following { holder: Some("first".to_owned()) };
    assert_eq!(*second.leadership.borrow(), expected);
    assert!(server.writes().len() > 1500, "renewed every two seconds");
    let record = LeaseRecord::read(&server.lease().expect("there"));
    assert_eq!((record.holder.as_str(), record.transitions), ("first", 0));
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_replaced_after_its_lease() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    let mut second = Candidate::start(&server, epoch, "second", Faults::default());
    sleep(seconds(60)).await;
    first.kill();
    let killed = Instant::now();
    second.until_leading().await;
    let after = killed.elapsed();
    // The last renewal was up to 2 s before, and was seen up to 4.4 s later; then 15 s, and up to 4.4 s to the next try.
    assert!((seconds(13)..seconds(24)).contains(&after), "{after:?}");
    let record = LeaseRecord::read(&server.lease().expect("there"));
    assert_eq!((record.holder.as_str(), record.transitions), ("second", 1));
    assert_eq!(overlap([first.reigns(), second.reigns()].concat()), None);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_leaves_at_once() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    let mut second = Candidate::start(&server, epoch, "second", Faults::default());
    sleep(seconds(60)).await;
    let reigns = first.reigns();
    assert_eq!(first.stop().await, Ended::Stopped);
    let record = LeaseRecord::read(&server.lease().expect("there"));
    assert_eq!((record.holder.as_str(), record.lease_duration_seconds), ("", 1));
    let stopped = Instant::now();
    second.until_leading().await;
    assert!(stopped.elapsed() <= Duration::from_millis(4_500), "{:?}", stopped.elapsed());
    assert_eq!(overlap([reigns, second.reigns()].concat()), None);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_stops_releases_nothing() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    let second = Candidate::start(&server, epoch, "second", Faults::default());
    sleep(seconds(60)).await;
    assert_eq!(second.stop().await, Ended::Stopped);
    assert_eq!(holder(&server), "first");
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_survived_and_a_long_one_is_not() {
    for (outage, survives) in [(9, true), (30, false)] {
        let (server, epoch) = (Server::default(), Instant::now());
        let faults = Faults { outages: vec![(seconds(100), seconds(100 + outage))], ..Faults::default() };
        let mut first = Candidate::start(&server, epoch, "first", faults.clone());
        first.until_leading().await;
        let mut second = Candidate::start(&server, epoch, "second", faults);
        sleep(seconds(99)).await;
        assert!(first.leads());
        sleep(seconds(200)).await;
        assert_eq!(first.leads(), survives, "{outage} s");
        let reigns = [first.reigns(), second.reigns()].concat();
        assert_eq!(overlap(reigns), None);
        if !survives {
            let (_, end, _) = first.reigns()[0];
            assert!(end <= seconds(113), "gave up {end:?} after the beginning");
            assert_eq!(*first.leadership.borrow(), Leadership::Lost);
            assert_eq!(first.ended().await, Ended::Lost);
            second.until_leading().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_wrong_by_years_do_not_matter() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut early =
        Candidate::with_clock(&server, epoch, "early", Faults::default(), || Timestamp::UNIX_EPOCH);
    early.until_leading().await;
    let late = Candidate::with_clock(&server, epoch, "late", Faults::default(), || {
        "2100-01-01T00:00:00Z".parse().expect("a time")
    });
    sleep(seconds(600)).await;
    assert!(early.leads(), "both clocks stand still, and are far apart");
    assert_eq!(overlap([early.reigns(), late.reigns()].concat()), None);
}

#[tokio::test(start_paused = true)]
async fn a_write_by_somebody_else_is_a_conflict_that_is_survived() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    for _ in 0..20 {
        sleep(seconds(3)).await;
        let mut lease = server.lease().expect("there");
        lease["metadata"]["annotations"]["touched"] = json!("by a person");
        server.set(Some(lease));
    }
    sleep(seconds(3)).await;
    assert!(first.leads());
    assert_eq!(server.lease().expect("there")["metadata"]["annotations"]["touched"], "by a person");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_taken_is_lost_at_once() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    sleep(seconds(60)).await;
    let mut lease = server.lease().expect("there");
    lease["spec"]["holderIdentity"] = json!("thief");
    server.set(Some(lease));
    let taken = Instant::now();
    let reigns = first.reigns();
    assert_eq!(reigns.len(), 1);
    assert_eq!(first.ended().await, Ended::Lost);
    assert!(taken.elapsed() <= seconds(3), "{:?}", taken.elapsed());
    assert_eq!(holder(&server), "thief", "what is not ours is not released");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_created_again() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    server.set(None);
    sleep(seconds(60)).await;
    assert!(first.leads());
    assert_eq!(holder(&server), "first");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_long_on_its_way_makes_no_two_leaders() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    let mut second = Candidate::start(&server, epoch, "second", Faults::default());
    sleep(seconds(60)).await;
    // The request gets there, the answer takes nearly five seconds; then nothing gets through any more.
    *first.faults.lock().expect("free") = Faults {
        back: Duration::from_millis(4_900),
        outages: vec![(seconds(70), seconds(1_000))],
        ..Faults::default()
    };
    second.until_leading().await;
    let reigns = [first.reigns(), second.reigns()].concat();
    assert_eq!(overstayed(&reigns, &server.writes()), None);
    assert_eq!(overlap(reigns), None);
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_barks_at_a_leader_that_hangs() {
    let watchdog = Watchdog::new(&LeaderSettings::default(), "mine");
    assert!(watchdog.check().is_ok(), "who does not lead is well");
    watchdog.note(Some(Instant::now()));
    sleep(seconds(34)).await;
    assert!(watchdog.check().is_ok());
    sleep(seconds(2)).await;
    assert_eq!(watchdog.check(), Err("failed election to renew leadership on lease mine".to_owned()));
    watchdog.note(None);
    assert!(watchdog.check().is_ok());
}

#[test]
fn identities_differ() {
    let (one, other) = (new_identity(), new_identity());
    assert_ne!(one, other);
    let (_, uuid) = one.rsplit_once('_').expect("a hostname and a number");
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(uuid.as_bytes()[14], b'4');
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_used_is_told_with_the_reason() {
    let watchdog = Watchdog::new(&LeaderSettings::default(), "mine");
    let failed = || Attempt::Failed(StoreError::Failed("leases is forbidden".to_owned()));
    watchdog.note_attempt(&failed());
    assert!(watchdog.check_access().is_ok(), "one failure is nothing");
    sleep(seconds(7)).await;
    watchdog.note_attempt(&failed());
    let expected = "the lease could not be used for 7 s: leases is forbidden";
    assert_eq!(watchdog.check_access(), Err(expected.to_owned()));
    watchdog.note_attempt(&Attempt::HeldByOther);
    assert!(watchdog.check_access().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_leader_says_until_when_it_leads_and_others_wait_longer() {
    let (server, epoch) = (Server::default(), Instant::now());
    let mut first = Candidate::start(&server, epoch, "first", Faults::default());
    first.until_leading().await;
    let mut second = Candidate::start(&server, epoch, "second", Faults::default());
    sleep(seconds(60)).await;
    let Leadership::Leading { until } = *first.leadership.borrow() else { panic!("it leads") };
    let left = until - Instant::now();
    // 15 s from the last renewal, which is at most 2 s old.
    assert!((seconds(13)..=seconds(15)).contains(&left), "{left:?}");
    first.kill();
    second.until_leading().await;
    assert!(Instant::now() > until, "nobody leads before");
}
