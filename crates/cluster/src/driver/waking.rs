//! What ends a driver's wait, and what time it is then.

use supercargo_engine::Observer;
use tokio::time::Instant;

use super::asking::Told;
use super::extenders::Answered;
use super::{Command, Driver};
use crate::perform::Concluded;
use crate::queries::QueryHeard;
use crate::watch::WatchEvent;

/// What has ended the wait of a driver. It is looked at when the next turn has begun, and not before it is known whether the clock was set
/// meanwhile: who works with such a clock sees waits end that have not, or begins waits that are moved along once more.
#[derive(Debug)]
pub(super) enum Woken {
    /// Nobody has waited, or what there is to do is found at the beginning of a turn.
    Nothing,
    Conclusion(Concluded),
    Answer(Answered),
    Query(QueryHeard),
    Inquiry(Told),
    Watch(WatchEvent),
    Command(Command),
    /// The next deadline of the scheduler has come, if the clock was not set.
    Deadline,
}

impl<O: Observer> Driver<O> {
    /// Moves what waits along if the clock was set, given the moment, which was looked up just before.
    pub(super) fn note_clock(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.started);
        let read_again = || (self.started.elapsed(), self.clock.now());
        let seconds = self.clock_watch.was_set(elapsed, self.clock.now(), read_again);
        if seconds != 0 {
            self.scheduler.clock_was_set(seconds);
        }
    }

    pub(super) async fn take_up(&mut self, woken: Woken) {
        match woken {
            Woken::Nothing => {}
            Woken::Conclusion(conclusion) => self.conclude(conclusion),
            Woken::Answer(answered) => self.hear(answered),
            Woken::Query(heard) => self.hear_query(heard),
            Woken::Inquiry(told) => self.hear_inquiry(told),
            Woken::Watch(event) => self.take(event),
            Woken::Command(command) => self.obey(command).await,
            Woken::Deadline => self.scheduler.advance(self.clock.now()),
        }
    }
}
