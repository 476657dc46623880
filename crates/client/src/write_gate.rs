//! The gate that every write goes through: it is open as long as the lease is surely ours.
//!
//! Leadership is an instant, not a yes or no. A process that was stopped (SIGSTOP), or starved of processor time, goes on with
//! whatever it was about to do, before any of its tasks can say that the lease has run out; so the gate compares the instant
//! with the clock right before each request is sent. What is on its way by then nobody can take back: a write leaves at most
//! one round trip after the end of the lease.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use supercargo_model::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;

/// A write that was given up, or that a gateway or a time-out answered for, may still be carried out for so long: the API server ends a
/// request soon after its connection is closed.
const SETTLES_AFTER: Duration = Duration::from_secs(5);

/// Until when this process may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// It must not write: another replica leads, or may lead.
    Nothing,
    /// The lease is ours until then, by both clocks.
    Until {
        /// By the monotonic clock, which goes on while a process is stopped, but may stand still while a machine is suspended.
        instant: Instant,
        /// By the clock on the wall, which goes on while a machine is suspended. If somebody sets it forward, nothing is
        /// written until the lease is renewed the next time.
        time: Timestamp,
    },
    /// There is no lease, and no other replica.
    Always,
}

/// Lets writes pass as long as the tenure lasts, and knows which may still be carried out. Clones are the same gate.
#[derive(Clone)]
pub struct WriteGate {
    tenure: watch::Receiver<Tenure>,
    clock: Clock,
    under_way: Arc<UnderWay>,
}

/// The writes that were let through and may still be carried out.
#[derive(Debug, Default)]
struct UnderWay {
    /// How many are waited for.
    count: AtomicUsize,
    /// Told when none is waited for any more.
    none_left: Notify,
    /// When the last of those that nobody waits for any more is surely over.
    settled: Mutex<Option<Instant>>,
}

/// A write that was let through. One that is dropped was cut off, or answered by somebody who does not know what becomes of it, and may
/// yet be carried out for some time.
#[derive(Debug)]
pub struct Passage {
    under_way: Arc<UnderWay>,
    settles_after: Duration,
    is_answered: bool,
}

impl Tenure {
    /// The lease is ours for as long as the monotonic clock says, counted from now.
    pub fn until(instant: Instant, clock: &Clock) -> Self {
        let left = instant.saturating_duration_since(Instant::now());
        Tenure::Until { instant, time: clock.now().after(left) }
    }

    fn lasts(self, clock: &Clock) -> bool {
        match self {
            Tenure::Nothing => false,
            Tenure::Until { instant, time } => Instant::now() < instant && clock.now() < time,
            Tenure::Always => true,
        }
    }
}

impl WriteGate {
    /// A gate that is open as long as the tenure lasts, which whoever holds the sender says.
    pub fn new(tenure: Tenure, clock: Clock) -> (watch::Sender<Tenure>, Self) {
        let (sender, tenure) = watch::channel(tenure);
        (sender, WriteGate { tenure, clock, under_way: Arc::default() })
    }

    /// A gate that is always open.
    pub fn always_open() -> Self {
        WriteGate::new(Tenure::Always, Clock::system()).1
    }

    /// Whether writes may pass now.
    pub fn is_open(&self) -> bool {
        self.tenure.borrow().lasts(&self.clock)
    }

    /// Whether there is a tenure, though it may have run out: the gate may open again without a word about it.
    pub fn has_tenure(&self) -> bool {
        *self.tenure.borrow() != Tenure::Nothing
    }

    /// Waits until the tenure is another one.
    pub async fn changed(&mut self) {
        if self.tenure.changed().await.is_err() {
            // Nobody can change it any more.
            std::future::pending::<()>().await;
        }
    }

    /// Lets a write pass, if the gate is open.
    pub fn pass(&self) -> Option<Passage> {
        // Counted first: whoever closes the gate and then sees that nothing is under way can rely on it.
        self.under_way.count.fetch_add(1, Ordering::SeqCst);
        let under_way = self.under_way.clone();
        let passage = Passage { under_way, settles_after: SETTLES_AFTER, is_answered: false };
        if self.is_open() {
            return Some(passage);
        }
        passage.answered();
        None
    }

    /// Waits until no write is under way, and none that was cut off can still be carried out. Whoever has closed the gate before, or
    /// lets nobody write any more, knows then that nothing is written.
    pub async fn quiet(&self) {
        loop {
            let mut none_left = pin!(self.under_way.none_left.notified());
            // From here on it is told, also before it is waited for.
            none_left.as_mut().enable();
            if self.under_way.count.load(Ordering::SeqCst) > 0 {
                none_left.await;
                continue;
            }
            let settled = *self.under_way.settled();
            match settled.filter(|settled| *settled > Instant::now()) {
                None => return,
                Some(settled) => sleep_until(settled).await,
            }
        }
    }
}

impl UnderWay {
    /// It is right after each change: a panic elsewhere does not spoil it.
    fn settled(&self) -> MutexGuard<'_, Option<Instant>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage {
    /// If the write is cut off, it may still be carried out for so long: for whoever does not notice that nobody waits.
    #[must_use]
    pub fn settling_after(mut self, settles_after: Duration) -> Self {
        self.settles_after = settles_after;
        self
    }

    /// The write has an answer that ends it, or was never sent: it is over.
    pub fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let UnderWay { count, none_left, settled: _ } = &*self.under_way;
        if !self.is_answered {
            let mut settled = self.under_way.settled();
            *settled = settled.max(Some(Instant::now() + self.settles_after));
        }
        // Last, so that whoever sees that none is left sees until when one may be carried out.
        if count.fetch_sub(1, Ordering::SeqCst) == 1 {
            none_left.notify_waiters();
        }
    }
}

impl fmt::Debug for WriteGate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("WriteGate").field(&*self.tenure.borrow()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use tokio::time::{advance, sleep, timeout};

    use super::*;

    /// A clock on the wall that goes with tokio's, and can be set forward.
    fn clock(set_forward: &Arc<AtomicI64>) -> Clock {
        let (began, set_forward) = (Instant::now(), set_forward.clone());
        Clock::from_fn(move || {
            Timestamp::from_seconds(1_800_000_000 + set_forward.load(Ordering::SeqCst)).after(began.elapsed())
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_gate_closes_by_itself_when_the_lease_runs_out() {
        let set_forward = Arc::default();
        let clock = clock(&set_forward);
        let (tenure, gate) = WriteGate::new(Tenure::Nothing, clock.clone());
        assert!(!gate.is_open() && !gate.has_tenure());
        tenure.send_replace(Tenure::until(Instant::now() + Duration::from_secs(15), &clock));
        assert!(gate.is_open());
        advance(Duration::from_millis(14_999)).await;
        assert!(gate.is_open());
        // As after SIGSTOP and SIGCONT: time has passed, and no task has run yet.
        advance(Duration::from_millis(1)).await;
        assert!(!gate.is_open() && gate.pass().is_none() && gate.has_tenure());
        tenure.send_replace(Tenure::Always);
        assert!(gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_was_suspended_waits_for_the_next_renewal() {
        let set_forward = Arc::default();
        let clock = clock(&set_forward);
        let (tenure, gate) = WriteGate::new(Tenure::Nothing, clock.clone());
        tenure.send_replace(Tenure::until(Instant::now() + Duration::from_secs(15), &clock));
        // The monotonic clock stood still meanwhile.
        set_forward.store(3600, Ordering::SeqCst);
        assert!(!gate.is_open());
        tenure.send_replace(Tenure::until(Instant::now() + Duration::from_secs(15), &clock));
        assert!(gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_was_cut_off_may_yet_be_carried_out() {
        let gate = WriteGate::always_open();
        let (first, second) = (gate.pass().expect("open"), gate.pass().expect("open"));
        let is_quiet = || timeout(Duration::from_secs(60), gate.quiet());
        first.answered();
        assert!(is_quiet().await.is_err(), "the second is under way");
        second.answered();
        assert!(is_quiet().await.is_ok());
        for (settles_after, seconds) in [(None, 5), (Some(Duration::from_secs(30)), 30)] {
            let (began, passage) = (Instant::now(), gate.pass().expect("open"));
            drop(match settles_after {
                Some(settles_after) => passage.settling_after(settles_after),
                None => passage,
            });
            assert!(is_quiet().await.is_ok());
            assert_eq!(began.elapsed().as_secs(), seconds, "nobody knows before what became of it");
        }
    }
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_quiet_is_woken_by_the_last_answer() {
        let gate = WriteGate::always_open();
        let (began, first, second) = (Instant::now(), gate.pass().expect("open"), gate.pass().expect("open"));
        let answers = async {
            sleep(Duration::from_secs(1)).await;
            first.answered();
            sleep(Duration::from_secs(2)).await;
            second.answered();
        };
        let (quiet, ()) = tokio::join!(timeout(Duration::from_secs(60), gate.quiet()), answers);
        assert!(quiet.is_ok());
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
