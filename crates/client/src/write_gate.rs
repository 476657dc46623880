//! The gate that every write goes through: it is open as long as the lease is surely ours.
//!
//! Leadership is an instant, not a yes or no. A process that was stopped (SIGSTOP), or starved of processor time, goes on with
//! whatever it was about to do, before any of its tasks can say that the lease has run out; so the gate compares the instant
//! with the clock right before each request is sent. What is on its way by then nobody can take back: a write leaves at most
//! one round trip after the end of the lease.

use std::fmt;
use std::sync::Arc;

use supercargo_model::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;

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

/// Lets writes pass as long as the tenure lasts, and counts those that are under way. Clones are the same gate.
#[derive(Clone)]
pub struct WriteGate {
    tenure: watch::Receiver<Tenure>,
    clock: Clock,
    under_way: Arc<watch::Sender<usize>>,
}

/// A write that was let through. One that is dropped without having left was cut off, and may yet be carried out: the gate
/// never becomes quiet again.
#[derive(Debug)]
pub struct Passage {
    under_way: Arc<watch::Sender<usize>>,
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
        (sender, WriteGate { tenure, clock, under_way: Arc::new(watch::Sender::new(0)) })
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
        self.under_way.send_modify(|count| *count += 1);
        let passage = Passage { under_way: self.under_way.clone() };
        if self.is_open() {
            return Some(passage);
        }
        passage.leave();
        None
    }

    /// Waits until no write is under way. Whoever has closed the gate before knows then that nothing is written any more.
    pub async fn quiet(&self) {
        let mut under_way = self.under_way.subscribe();
        // The gate has a sender itself, so the channel does not close.
        let _ = under_way.wait_for(|count| *count == 0).await;
    }
}

impl Passage {
    /// The write has an answer, or none will come: it is over either way.
    pub fn leave(self) {
        self.under_way.send_modify(|count| *count -= 1);
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

    use tokio::time::{advance, timeout};

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
        first.leave();
        assert!(is_quiet().await.is_err(), "the second is under way");
        second.leave();
        assert!(is_quiet().await.is_ok());
        drop(gate.pass());
        assert!(is_quiet().await.is_err(), "nobody knows what became of it");
    }
}
