//! A timer for a loop that turns often and waits for the same moment most of the time: to begin a wait anew each time costs several places in
//! the runtime's books.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// Ends a wait when a moment has come.
#[derive(Debug)]
pub(crate) struct Timer<T> {
    sleep: Pin<Box<Sleep>>,
    /// What it is set to; none if it has ended a wait since.
    set_to: Option<T>,
}

impl<T: PartialEq> Timer<T> {
    /// A timer that is not set.
    pub(crate) fn new() -> Self {
        Timer { sleep: Box::pin(sleep_until(Instant::now())), set_to: None }
    }

    /// Sets it to a moment, unless that is what it is set to. When the moment comes, by the clock that tokio waits with, is asked only then.
    pub(crate) fn set(&mut self, moment: T, instant: impl FnOnce(&T) -> Instant) {
        if self.set_to.as_ref() != Some(&moment) {
            self.sleep.as_mut().reset(instant(&moment));
            self.set_to = Some(moment);
        }
    }

    /// Waits for the moment. Afterwards the timer is not set: whose clock says that the moment has not come yet sets it anew.
    pub(crate) async fn passed(&mut self) {
        self.sleep.as_mut().await;
        self.set_to = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_moment_is_waited_for_once_and_again_when_it_is_set_anew() {
        let (began, mut timer) = (Instant::now(), Timer::new());
        for (moment, asked, passed) in [(3, true, 3), (3, true, 6), (4, true, 10)] {
            let mut was_asked = false;
            for _ in 0..2 {
                timer.set(moment, |seconds| {
                    was_asked = true;
                    Instant::now() + Duration::from_secs(*seconds)
                });
                // A wait that is given up changes nothing.
                assert!(timeout(Duration::ZERO, timer.passed()).await.is_err());
            }
            timer.passed().await;
            assert_eq!((was_asked, began.elapsed().as_secs()), (asked, passed), "{moment}");
        }
        timer.set(5, |_| Instant::now() + Duration::from_secs(5));
        timer.set(1, |_| Instant::now() + Duration::from_secs(1));
        timer.passed().await;
        assert_eq!(began.elapsed().as_secs(), 11, "a sooner moment takes the place of a later one");
    }
}
