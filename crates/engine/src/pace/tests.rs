//! The pace of a driver, by clocks that a test moves.

use supercargo_framework::{Effect, Fixes, Profile};
use supercargo_model::Decoder;
use supercargo_testkit::pod;

use super::*;
use crate::{EngineOptions, Indexing, Rules, SchedulerOptions, Seed};

const NOW: Timestamp = Timestamp::from_nanoseconds(1_000_000_000_000_000);

/// Every decision takes a millisecond.
struct Fake {
    elapsed: std::cell::Cell<Duration>,
    room: usize,
    numbers: Vec<u32>,
    took: Vec<Duration>,
    /// After so many decisions the clock is set forward by an hour.
    set_after: usize,
    /// By how much it was set forward, and how much of that was told.
    set: i64,
    told: i64,
}

const HOUR: i64 = 3600;

impl Surroundings for Fake {
    fn now(&self) -> Timestamp {
        NOW.moved(self.set)
    }

    fn clock_was_set(&mut self, _: Duration, now: Timestamp) -> i64 {
        assert_eq!(now, NOW.moved(self.set));
        self.set - std::mem::replace(&mut self.told, self.set)
    }

    fn elapsed(&self) -> Duration {
        self.elapsed.replace(self.elapsed.get() + Duration::from_millis(1))
    }

    fn has_room(&self) -> bool {
        self.numbers.len() < self.room
    }

    fn decided(&mut self, decision: &Decision, attempt: Option<Attempt<'_>>) {
        let attempt = attempt.expect("there is a profile");
        assert_eq!(attempt.decision.pod.uid, decision.pod.uid);
        self.numbers.push(attempt.number);
        if self.numbers.len() == self.set_after {
            self.set += HOUR;
        }
        self.took.push(attempt.took);
    }
}

fn fake(room: usize) -> Fake {
    Fake {
        elapsed: Duration::ZERO.into(),
        room,
        numbers: Vec::new(),
        took: Vec::new(),
        set_after: 0,
        set: 0,
        told: 0,
    }
}

/// A scheduler without nodes, and so many pods that wait.
fn scheduler(pods: usize) -> Scheduler {
    let second = Duration::from_secs(1);
    let engine =
        EngineOptions { rules: Rules::LIVE, seed: Seed(1), fixes: Fixes::default(), indexing: Indexing::On };
    let options =
        SchedulerOptions { engine, initial_backoff: second, max_backoff: second, max_unschedulable: second };
    let mut scheduler = Scheduler::new(vec![Profile::new("default-scheduler")], options);
    for number in 0..pods {
        let pod: serde_json::Value = pod(&format!("p{number}")).into();
        let decoded = Decoder::default().decode(&pod.to_string()).expect("the pod is right");
        scheduler.put(decoded, NOW);
    }
    scheduler
}

#[test]
fn pods_are_tried_by_a_leader_that_knows_the_cluster() {
    let table = [
        (200, Leading::Yes, true, usize::MAX, Pace::BATCH),
        (3, Leading::Yes, true, usize::MAX, 3),
        (200, Leading::Yes, true, 5, 5),
        (200, Leading::Yes, true, 0, 0),
        (200, Leading::Yes, false, usize::MAX, 0),
        (200, Leading::NotNow, true, usize::MAX, 0),
        (200, Leading::No, true, usize::MAX, 0),
    ];
    for (pods, leading, is_known, room, expected) in table {
        let (mut pace, mut scheduler) = (Pace::new(Duration::ZERO), scheduler(pods));
        let mut fake = fake(room);
        let tried = pace.try_pods(&mut scheduler, leading, is_known, &mut fake);
        assert_eq!((tried, fake.numbers.len()), (expected, expected), "{leading:?} {is_known} {room}");
        assert!(fake.took.iter().all(|took| *took == Duration::from_millis(1)), "{:?}", fake.took);
        assert_eq!(scheduler.queue_lengths().active, pods - expected);
    }
}

/// A pod that has failed waits for a second, and not until somebody sets the clock.
#[test]
fn a_clock_that_is_set_between_two_pods_ends_no_wait() {
    let (mut pace, mut scheduler) = (Pace::new(Duration::ZERO), scheduler(3));
    let mut fake = Fake { set_after: 1, ..fake(usize::MAX) };
    assert_eq!(pace.try_pods(&mut scheduler, Leading::Yes, true, &mut fake), 3);
    assert_eq!(fake.numbers, [1, 1, 1], "each pod was tried once");
}

#[test]
fn others_get_a_turn_after_a_batch() {
    use NextTurn::{AfterOthers, AtOnce, WhenSomethingHappens};
    let mut pace = Pace::new(Duration::ZERO);
    let table = [
        (1, AtOnce),
        (Pace::BATCH - 2, AtOnce),
        (1, AfterOthers),
        (Pace::BATCH - 1, AtOnce),
        (0, WhenSomethingHappens),
        (Pace::BATCH - 1, AtOnce),
        (500, AfterOthers),
        (1, AtOnce),
    ];
    for (step, (done, expected)) in table.into_iter().enumerate() {
        assert_eq!(pace.after(done), expected, "step {step}");
    }
}

#[test]
fn reports_take_a_share_of_the_time_and_no_more() {
    let milliseconds = Duration::from_millis;
    // How long a report took, and when the next one comes after it: with news, and without.
    let table = [(0, 500, 1000), (49, 500, 1000), (60, 600, 1000), (90, 900, 1000), (500, 1000, 1000)];
    for (took, with_news, without) in table {
        let mut pace = Pace::new(milliseconds(7));
        assert_eq!(pace.next_report(), milliseconds(1007));
        pace.note_news();
        assert_eq!(
            pace.next_report(),
            milliseconds(7),
            "news are told as soon as there is nothing else to do"
        );
        pace.note_report(milliseconds(2000), milliseconds(2000 + took));
        assert_eq!(pace.next_report(), milliseconds(2000 + took + without), "{took}");
        pace.note_news();
        assert_eq!(pace.next_report(), milliseconds(2000 + took + with_news), "{took}");
    }
}

#[test]
fn orders_wait_for_the_lease_and_end_without_it() {
    let pace = Pace::new(Duration::ZERO);
    let ordered = || {
        let mut scheduler = scheduler(1);
        assert!(scheduler.schedule_next(NOW).is_some());
        scheduler
    };
    let has_status = |orders: Vec<Order>| {
        orders.iter().any(|order| matches!(order.effect, Effect::UpdateStatus { .. } | Effect::Record(_)))
    };
    let mut scheduler = ordered();
    assert!(pace.take_orders(&mut scheduler, Leading::NotNow, NOW).is_empty());
    assert!(has_status(pace.take_orders(&mut scheduler, Leading::Yes, NOW)), "the orders have waited");
    let mut scheduler = ordered();
    assert!(pace.take_orders(&mut scheduler, Leading::No, NOW).is_empty());
    assert!(pace.take_orders(&mut scheduler, Leading::Yes, NOW).is_empty(), "the orders have ended");
}
