//! How fast a driver goes on: how much it does at once, when it lets others work, when pods are tried at all, and when it tells how
//! things stand. Nothing here waits or reads a clock, so that a live cluster, a simulation and a web page go on alike.

use std::time::Duration;

use supercargo_framework::Conclusion;
use supercargo_model::Timestamp;

use crate::decision::Decision;
use crate::observer::Attempt;
use crate::scheduler::{Order, Scheduler};

/// How often the observer is told how things stand, at least.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// How soon after the last time the observer is told again, at the earliest, when pods were tried since and there is nothing else to
/// do. Telling it for every single pod would cost more than most decisions.
const REPORT_INTERVAL_MIN: Duration = Duration::from_millis(500);
/// Finding out how things stand takes no more than one part in so many of the time.
const REPORT_SHARE: u32 = 10;

/// The pace of one driver.
#[derive(Debug)]
pub struct Pace {
    /// How much was done since others had a turn.
    done_at_once: usize,
    /// Whether pods were tried since the observer was last told how things stand.
    has_news: bool,
    /// When that was.
    reported: Duration,
    /// How long the observer need not be told again in spite of news.
    report_pause: Duration,
}

/// Whether a replica may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leading {
    /// Pods are tried, and orders are carried out.
    Yes,
    /// The lease is held, and about to be renewed: orders wait for that.
    NotNow,
    /// Another replica leads, or none does. Nothing is ordered.
    No,
}

/// What comes after a turn of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTurn {
    /// The next turn, at once: there may be more to do by now.
    AtOnce,
    /// The same, after others had a turn of theirs.
    AfterOthers,
    /// There is nothing to do until something comes in or a time has come.
    WhenSomethingHappens,
}

/// What a driver has around its scheduler while pods are tried.
pub trait Surroundings {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// How much time has passed since some fixed moment, by a clock that is never set.
    fn elapsed(&self) -> Duration;

    /// By how many whole seconds the clock of [`Surroundings::now`] was set since this was last asked, by what both clocks say now: it is
    /// asked whenever both were read, so that nobody works with a time that was set and times that were not moved along. A clock
    /// that cannot be set needs no answer.
    fn clock_was_set(&mut self, elapsed: Duration, now: Timestamp) -> i64 {
        let _ = (elapsed, now);
        0
    }

    /// Whether what is ordered for further pods can be carried out soon.
    fn has_room(&self) -> bool;

    /// A pod was tried. There is no attempt if its profile has gone.
    fn decided(&mut self, decision: &Decision, attempt: Option<Attempt<'_>>);
}

impl Pace {
    /// So many things that have come in are looked at before the next pods are tried, and so many pods are tried before it is looked
    /// again what has come in.
    pub const BATCH: usize = 128;

    /// The pace of a driver that begins at this moment, by the clock of [`Surroundings::elapsed`].
    pub fn new(elapsed: Duration) -> Self {
        Pace { done_at_once: 0, has_news: false, reported: elapsed, report_pause: Duration::ZERO }
    }

    /// Tries a batch of pods, if this replica leads and the cluster is known; how many were tried. Fewer are tried where orders
    /// cannot be carried out as fast.
    pub fn try_pods(
        &mut self,
        scheduler: &mut Scheduler,
        leading: Leading,
        is_known: bool,
        surroundings: &mut impl Surroundings,
    ) -> usize {
        let leads = leading == Leading::Yes;
        scheduler.set_leading(leads, surroundings.now());
        if !leads || !is_known {
            return 0;
        }
        let mut tried = 0;
        while tried < Self::BATCH && surroundings.has_room() {
            let (began, now) = (surroundings.elapsed(), surroundings.now());
            let seconds = surroundings.clock_was_set(began, now);
            if seconds != 0 {
                scheduler.clock_was_set(seconds);
            }
            if scheduler.next_deadline().is_some_and(|deadline| deadline <= now) {
                scheduler.advance(now);
            }
            let Some(decision) = scheduler.schedule_next(now) else { break };
            self.tell(scheduler, &decision, began, surroundings);
            tried += 1;
        }
        tried
    }

    /// Tells of a decision that was begun at this moment.
    pub fn tell(
        &mut self,
        scheduler: &Scheduler,
        decision: &Decision,
        began: Duration,
        surroundings: &mut impl Surroundings,
    ) {
        self.has_news = true;
        let took = surroundings.elapsed().saturating_sub(began);
        surroundings.decided(decision, Attempt::of(scheduler, decision, took));
    }

    /// The orders that are to be carried out now. Those of a replica that does not lead are refused, should there be any.
    pub fn take_orders(&self, scheduler: &mut Scheduler, leading: Leading, now: Timestamp) -> Vec<Order> {
        match leading {
            Leading::Yes => scheduler.take_orders(),
            Leading::NotNow => Vec::new(),
            Leading::No => {
                for ticket in scheduler.take_orders().into_iter().filter_map(|order| order.ticket) {
                    let error = "not carried out, because this replica does not hold the lease";
                    scheduler.conclude(ticket, &Conclusion::not_done(error), now);
                }
                Vec::new()
            }
        }
    }

    /// What comes after a turn in which so many things were done. Others get their turn after a batch; to let them in after each pod
    /// would cost system calls, and they have theirs anyway as soon as there is nothing to do here.
    pub fn after(&mut self, done: usize) -> NextTurn {
        if done == 0 {
            self.done_at_once = 0;
            return NextTurn::WhenSomethingHappens;
        }
        self.done_at_once += done;
        if self.done_at_once < Self::BATCH {
            return NextTurn::AtOnce;
        }
        self.done_at_once = 0;
        NextTurn::AfterOthers
    }

    /// Something has changed that the observer should hear of soon.
    pub fn note_news(&mut self) {
        self.has_news = true;
    }

    /// The observer was told how things stand. That was begun at one moment, and was done at another.
    pub fn note_report(&mut self, began: Duration, ended: Duration) {
        self.has_news = false;
        self.reported = ended;
        let took = ended.saturating_sub(began);
        self.report_pause = (REPORT_SHARE * took).clamp(REPORT_INTERVAL_MIN, REPORT_INTERVAL);
    }

    /// When the observer is told how things stand, if nothing else is to be done by then.
    pub fn next_report(&self) -> Duration {
        self.reported + if self.has_news { self.report_pause } else { REPORT_INTERVAL }
    }
}

#[cfg(test)]
mod tests;
