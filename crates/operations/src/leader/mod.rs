//! Of several replicas one schedules: leader election on a Lease, with client-go's rules.
//!
//! [`decide`] says what to do, without doing it; [`Election`] does it, over a [`LeaseStore`], and tells the caller through
//! a channel of [`Leadership`].
//!
//! Where it is stricter than client-go (`tools/leaderelection`, 0.36):
//! - A leader that finds somebody else's name in the lease stops at once; client-go goes on until the renew deadline.
//! - A leader stops when its lease runs out, counted from the *beginning* of its last successful request, even if the
//!   renew deadline would let it go on; so an answer that was long on its way makes no two leaders.
//! - When releasing, the holder that counts is the one just read; so nobody's lease is released but our own.
//! - A lease that was lost is not released: what it guarded may still be coming to an end.

mod decide;
mod record;
mod settings;
mod store;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub use decide::{Moment, Observed, Step, decide, released};
pub use record::LeaseRecord;
pub use settings::{InvalidSettings, JITTER_FACTOR, LeaderSettings};
pub use store::{ApiLeaseStore, LeaseStore, StoreError};

use crate::clock::{random_bytes, time_of_day};

/// How far beyond the end of its lease a leader that should have stopped is still called healthy.
const WATCHDOG_TOLERANCE: Duration = Duration::from_secs(20);

/// How long tries at the lease fail before that is worth a word in a health check. Most failures are over sooner.
const TROUBLE_SHOWN_AFTER: Duration = Duration::from_secs(5);

/// Whether we lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// We wait. The holder is who leads, if anybody is known to.
    Following {
        /// Who leads.
        holder: Option<String>,
    },
    /// We lead. Each renewal is told with a later end.
    Leading {
        /// Until then the lease is surely ours, by the monotonic clock: others take over no sooner. Whatever only a leader may
        /// do must end by then, whether or not a further notice comes.
        until: Instant,
    },
    /// We led, and do not any more: whatever only a leader may do must end now. This is the last notice.
    Lost,
}

/// How an election ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// We were asked to stop, and have released the lease if we held it.
    Stopped,
    /// The lease was lost.
    Lost,
}

/// One candidate in an election.
pub struct Election<Store> {
    store: Store,
    settings: LeaderSettings,
    identity: String,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    jitter: Jitter,
    /// What the lease said when it last changed.
    observed: Option<Observed>,
    /// The lease as it last was, for its resource version and for what else it holds.
    lease: Option<Value>,
    /// Whether the lease may have our name in it: a write that was given up may have been carried out all the same.
    may_hold: bool,
    watchdog: Watchdog,
}

impl<Store> std::fmt::Debug for Election<Store> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Election({})", self.identity)
    }
}

/// What came of one try.
enum Attempt {
    /// We hold the lease, by a request that began then.
    Held(Instant),
    /// Somebody else holds it.
    HeldByOther,
    /// Nothing is known: the store did not answer, or somebody else was faster.
    Failed(StoreError),
}

impl<Store: LeaseStore> Election<Store> {
    /// A candidate of this name, which no other candidate may have; see [`new_identity`].
    pub fn new(store: Store, settings: LeaderSettings, identity: String) -> Result<Self, InvalidSettings> {
        settings.validate()?;
        Ok(Election {
            watchdog: Watchdog::new(&settings, store.name()),
            store,
            settings,
            jitter: Jitter::new(&identity),
            identity,
            clock: Arc::new(time_of_day),
            observed: None,
            lease: None,
            may_hold: false,
        })
    }

    /// Takes the time of day, which only people read in the Lease, from another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Says whether the election is alive, for a health check.
    pub fn watchdog(&self) -> Watchdog {
        self.watchdog.clone()
    }

    /// Takes part until `stop` is ready or the lease is lost. Whoever stops a leader first ends what only a leader may
    /// do: when `stop` is ready the lease is released, and another may lead at once.
    pub async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        leadership: watch::Sender<Leadership>,
    ) -> Ended {
        let mut stop = pin!(stop);
        let renewed = tokio::select! {
            biased;
            () = &mut stop => None,
            renewed = self.acquire(&leadership) => Some(renewed),
        };
        if let Some(renewed) = renewed {
            tracing::info!(identity = self.identity, "Successfully acquired lease");
            self.watchdog.note(Some(renewed));
            leadership.send_replace(self.leading(renewed));
            let lost = tokio::select! {
                biased;
                () = &mut stop => false,
                () = self.renew(renewed, &leadership) => true,
            };
            if lost {
                leadership.send_replace(Leadership::Lost);
                self.watchdog.note(None);
                tracing::error!(identity = self.identity, "Leaderelection lost");
                return Ended::Lost;
            }
        }
        self.watchdog.note(None);
        // Said before the lease is given back: afterwards another may lead.
        self.report(&leadership, None);
        if self.may_hold {
            self.release().await;
        }
        Ended::Stopped
    }

    /// Tries until we lead, and returns when the request began that made us leader.
    async fn acquire(&mut self, leadership: &watch::Sender<Leadership>) -> Instant {
        loop {
            match self.bounded_attempt().await {
                Attempt::Held(started) => return started,
                Attempt::HeldByOther => {
                    let holder = self.observed.as_ref().map(|observed| observed.record.holder.clone());
                    self.report(leadership, holder);
                }
                Attempt::Failed(error) => tracing::warn!(err = %error, "Failed to acquire lease"),
            }
            let jitter = self.settings.retry_period.mul_f64(JITTER_FACTOR * self.jitter.next());
            sleep(self.settings.retry_period + jitter).await;
        }
    }

    /// Tells who leads, if that is news.
    fn report(&self, leadership: &watch::Sender<Leadership>, holder: Option<String>) {
        let holder = holder.filter(|holder| !holder.is_empty());
        let following = Leadership::Following { holder: holder.clone() };
        leadership.send_if_modified(|known| {
            let news = *known != following;
            if news {
                if let Some(holder) = holder {
                    tracing::info!(holder, "New leader elected");
                }
                *known = following;
            }
            news
        });
    }

    /// We lead by a request that began then.
    fn leading(&self, renewed: Instant) -> Leadership {
        Leadership::Leading { until: renewed + self.settings.lease_duration_written() }
    }

    /// Renews until that fails for too long.
    async fn renew(&mut self, mut renewed: Instant, leadership: &watch::Sender<Leadership>) {
        loop {
            sleep(self.settings.retry_period).await;
            let end = renewed + self.settings.lease_duration_written();
            if Instant::now() >= end {
                // The process was stopped, or the machine too busy, for too long: the lease may be another's.
                tracing::warn!(err = "it has run out before that was tried", "Failed to renew lease");
                return;
            }
            let deadline = (Instant::now() + self.settings.renew_deadline).min(end);
            renewed = match timeout_at(deadline, self.renew_once()).await {
                Ok(Some(started)) => started,
                Ok(None) => return,
                Err(_) => {
                    tracing::warn!(err = "the deadline has passed", "Failed to renew lease");
                    return;
                }
            };
            self.watchdog.note(Some(renewed));
            leadership.send_replace(self.leading(renewed));
        }
    }

    /// Tries until the lease is renewed, and returns when that request began; none if it is somebody else's.
    async fn renew_once(&mut self) -> Option<Instant> {
        loop {
            match self.bounded_attempt().await {
                Attempt::Held(started) => return Some(started),
                Attempt::HeldByOther => return None,
                Attempt::Failed(error) => tracing::warn!(err = %error, "Failed to renew lease"),
            }
            sleep(self.settings.retry_period).await;
        }
    }

    async fn bounded_attempt(&mut self) -> Attempt {
        // One for each of the requests that an attempt makes at most: an update, a read and another update.
        let limit = self.settings.request_timeout() * 3;
        let attempt = match timeout(limit, self.attempt()).await {
            Ok(attempt) => attempt,
            Err(_) => Attempt::Failed(StoreError::Failed("the API server does not answer".to_owned())),
        };
        self.watchdog.note_attempt(&attempt);
        attempt
    }

    async fn attempt(&mut self) -> Attempt {
        // A leader writes right away: usually nobody has touched its lease.
        let started = self.now();
        if let (Some(observed), Some(lease)) = (self.observed.clone(), self.lease.clone())
            && observed.record.holder == self.identity
            && observed.is_valid(started.instant)
        {
            let step =
                decide(Some(&observed.record), Some(&observed), &self.identity, &self.settings, started);
            if let Step::Renew(record) = step {
                match self.update(lease, record).await {
                    Ok(()) => return Attempt::Held(started.instant),
                    Err(error) => tracing::debug!(err = %error, "Failed to update lease optimistically"),
                }
            }
        }

        let found = match self.request(self.store.get()).await {
            Ok(found) => found,
            Err(error) => return Attempt::Failed(error),
        };
        let now = self.now();
        let record = found.as_ref().map(LeaseRecord::read);
        if let Some(record) = &record {
            if self.observed.as_ref().is_none_or(|observed| observed.record != *record) {
                self.observed = Some(Observed { record: record.clone(), since: now.instant });
            }
            self.may_hold = record.holder == self.identity;
        }
        self.lease = found;
        let step = decide(record.as_ref(), self.observed.as_ref(), &self.identity, &self.settings, now);
        let written = match (step, self.lease.clone()) {
            (Step::Wait, _) => return Attempt::HeldByOther,
            (Step::Create(record), _) | (Step::TakeOver(record) | Step::Renew(record), None) => {
                self.create(record).await
            }
            (Step::TakeOver(record) | Step::Renew(record), Some(lease)) => self.update(lease, record).await,
        };
        match written {
            Ok(()) => Attempt::Held(now.instant),
            Err(error) => Attempt::Failed(error),
        }
    }

    async fn create(&mut self, record: LeaseRecord) -> Result<(), StoreError> {
        let mut lease = Value::Null;
        record.write(&mut lease);
        self.may_hold = true;
        let lease = self.request(self.store.create(lease["spec"].take())).await?;
        self.written(lease, record);
        Ok(())
    }

    async fn update(&mut self, mut lease: Value, record: LeaseRecord) -> Result<(), StoreError> {
        record.write(&mut lease);
        self.may_hold = true;
        let lease = self.request(self.store.update(lease)).await?;
        self.written(lease, record);
        Ok(())
    }

    fn written(&mut self, lease: Value, record: LeaseRecord) {
        self.lease = Some(lease);
        self.observed = Some(Observed { record, since: Instant::now() });
    }

    /// Gives the lease back, if it is ours; otherwise, and if the store does not answer, it is left to run out.
    async fn release(&mut self) {
        let release = release(&self.store, &self.identity, (self.clock)());
        match timeout(self.settings.renew_deadline, release).await {
            Ok(Ok(())) => self.may_hold = false,
            Ok(Err(error)) => tracing::error!(err = %error, "Failed to release lease"),
            Err(_) => tracing::error!(err = "the API server does not answer", "Failed to release lease"),
        }
    }

    async fn request<T>(
        &self,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match timeout(self.settings.request_timeout(), request).await {
            Ok(answer) => answer,
            Err(_) => Err(StoreError::Failed("the API server does not answer".to_owned())),
        }
    }

    fn now(&self) -> Moment {
        Moment { instant: Instant::now(), time_of_day: (self.clock)() }
    }
}

/// Gives a lease back that this candidate may hold: for one whose election has ended, and that surely writes nothing any more.
/// A lease of another holder is left alone. How long it may take is up to the caller.
pub async fn release(
    store: &impl LeaseStore,
    identity: &str,
    time_of_day: Timestamp,
) -> Result<(), StoreError> {
    let Some(mut lease) = store.get().await? else { return Ok(()) };
    let found = LeaseRecord::read(&lease);
    if found.holder != identity {
        return Ok(());
    }
    released(&found, Moment { instant: Instant::now(), time_of_day }).write(&mut lease);
    store.update(lease).await.map(|_| ())
}

/// A name for a candidate: the machine's, and something that no other process has.
pub fn new_identity() -> String {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let hostname = match hostname.trim() {
        "" => "supercargo",
        hostname => hostname,
    };
    let time = time_of_day().as_nanosecond().to_le_bytes();
    let mut bytes = random_bytes().unwrap_or(time);
    // The version and the variant of a random UUID.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hostname}_{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Says whether an election is alive: unhealthy is who calls himself leader long after his lease has run out.
#[derive(Clone, Debug)]
pub struct Watchdog {
    lease: Arc<str>,
    renewed: Arc<Mutex<Option<Instant>>>,
    limit: Duration,
    /// Since when every try has failed, and what the last one said.
    trouble: Arc<Mutex<Option<(Instant, String)>>>,
}

impl Watchdog {
    fn new(settings: &LeaderSettings, lease: &str) -> Self {
        let limit = settings.lease_duration + WATCHDOG_TOLERANCE;
        Watchdog { lease: lease.into(), renewed: Arc::default(), limit, trouble: Arc::default() }
    }

    /// Takes note of what came of a try.
    fn note_attempt(&self, attempt: &Attempt) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = match attempt {
            Attempt::Held(_) | Attempt::HeldByOther => None,
            Attempt::Failed(error) => {
                let since = trouble.take().map_or_else(Instant::now, |(since, _)| since);
                Some((since, error.to_string()))
            }
        };
    }

    /// Fails if the lease could not be read or written for some time: a leader will lose it, and a standby cannot take over.
    pub fn check_access(&self) -> Result<(), String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trouble {
            Some((since, error)) if since.elapsed() >= TROUBLE_SHOWN_AFTER => {
                Err(format!("the lease could not be used for {} s: {error}", since.elapsed().as_secs()))
            }
            _ => Ok(()),
        }
    }

    fn note(&self, renewed: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
    }

    /// Fails if a lease that we hold has not been renewed for far too long.
    pub fn check(&self) -> Result<(), String> {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        match renewed {
            Some(renewed) if renewed.elapsed() > self.limit => {
                Err(format!("failed election to renew leadership on lease {}", self.lease))
            }
            _ => Ok(()),
        }
    }
}

/// Numbers from 0 to 1 that differ from candidate to candidate, so that not all of them ask at the same moment.
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    fn new(identity: &str) -> Self {
        // FNV-1a: identities differ by chance already.
        let hash = identity.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Jitter(hash | 1)
    }

    fn next(&mut self) -> f64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
