//! A lease in memory, and candidates' ways to it, each with faults of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::leader::{Election, Ended, LeaderSettings, Leadership, LeaseStore, StoreError};

/// The one lease.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<ServerState>>);

#[derive(Default)]
struct ServerState {
    lease: Option<Value>,
    version: u64,
    /// When candidates wrote, and who.
    writes: Vec<(Duration, String)>,
}

impl Server {
    pub(super) fn lease(&self) -> Option<Value> {
        self.state().lease.clone()
    }

    pub(super) fn set(&self, lease: Option<Value>) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version.to_string();
        state.lease = lease.map(|mut lease| {
            lease["metadata"]["resourceVersion"] = json!(version);
            lease
        });
    }

    pub(super) fn writes(&self) -> Vec<(Duration, String)> {
        self.state().writes.clone()
    }

    /// A candidate writes.
    fn write(&self, lease: Value, at: Duration) -> Value {
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        self.state().writes.push((at, holder));
        self.set(Some(lease));
        self.lease().expect("just written")
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ServerState> {
        self.0.lock().expect("no test panics while holding it")
    }
}

/// What is wrong with a candidate's way to the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// How long a request takes to get there.
    pub(super) there: Duration,
    /// How long an answer takes to come back.
    pub(super) back: Duration,
    /// No request gets there and no answer comes back in these spans, from the beginning of the test.
    pub(super) outages: Vec<(Duration, Duration)>,
}

/// A candidate's way to the server.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) server: Server,
    pub(super) faults: Arc<Mutex<Faults>>,
    pub(super) epoch: Instant,
}

impl Link {
    fn faults(&self) -> Faults {
        self.faults.lock().expect("no test panics while holding it").clone()
    }

    /// Waits, and fails if the way is blocked when the wait is over.
    async fn travel(&self, time: Duration) -> Result<(), StoreError> {
        sleep(time).await;
        let now = self.epoch.elapsed();
        if self.faults().outages.iter().any(|(from, to)| (*from..*to).contains(&now)) {
            return Err(StoreError::Failed("connection refused".to_owned()));
        }
        Ok(())
    }
}

impl LeaseStore for Link {
    fn name(&self) -> &str {
        "kube-scheduler"
    }

    async fn get(&self) -> Result<Option<Value>, StoreError> {
        let faults = self.faults();
        self.travel(faults.there).await?;
        let lease = self.server.lease();
        self.travel(faults.back).await?;
        Ok(lease)
    }

    async fn create(&self, spec: Value) -> Result<Value, StoreError> {
        let faults = self.faults();
        self.travel(faults.there).await?;
        if self.server.lease().is_some() {
            return Err(StoreError::Conflict("already exists".to_owned()));
        }
        let lease = json!({"metadata": {"name": "kube-scheduler"}, "spec": spec});
        let lease = self.server.write(lease, self.epoch.elapsed());
        self.travel(faults.back).await?;
        Ok(lease)
    }

    async fn update(&self, lease: Value) -> Result<Value, StoreError> {
        let faults = self.faults();
        self.travel(faults.there).await?;
        let Some(found) = self.server.lease() else {
            return Err(StoreError::Failed("not found".to_owned()));
        };
        if found["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
            return Err(StoreError::Conflict("the object has been modified".to_owned()));
        }
        let lease = self.server.write(lease, self.epoch.elapsed());
        self.travel(faults.back).await?;
        Ok(lease)
    }
}

/// A span of time in which somebody led: from, to, who.
pub(super) type Reign = (Duration, Duration, &'static str);

/// A candidate that takes part.
pub(super) struct Candidate {
    pub(super) leadership: watch::Receiver<Leadership>,
    pub(super) faults: Arc<Mutex<Faults>>,
    task: JoinHandle<Ended>,
    stop: Option<oneshot::Sender<()>>,
    reigns: Arc<Mutex<Vec<Reign>>>,
    epoch: Instant,
}

impl Candidate {
    pub(super) fn start(server: &Server, epoch: Instant, name: &'static str, faults: Faults) -> Self {
        Candidate::with_clock(server, epoch, name, faults, || Timestamp::UNIX_EPOCH)
    }

    pub(super) fn with_clock(
        server: &Server,
        epoch: Instant,
        name: &'static str,
        faults: Faults,
        clock: fn() -> Timestamp,
    ) -> Self {
        let faults = Arc::new(Mutex::new(faults));
        let link = Link { server: server.clone(), faults: Arc::clone(&faults), epoch };
        let election = Election::new(link, LeaderSettings::default(), name.to_owned())
            .expect("the defaults are safe")
            .with_clock(clock);
        let (sender, leadership) = watch::channel(Leadership::Following { holder: None });
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stop = async {
                // A test that drops the sender does not stop the candidate.
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            election.run(stop, sender).await
        });
        let reigns = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(chronicle(leadership.clone(), Arc::clone(&reigns), epoch, name));
        Candidate { leadership, faults, task, stop: Some(stop), reigns, epoch }
    }

    pub(super) fn leads(&self) -> bool {
        is_leading(&self.leadership.borrow())
    }

    pub(super) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Whether this one leads, and is not dead.
    pub(super) fn leads_now(&self) -> bool {
        self.leads() && self.is_running()
    }

    /// Waits until this one leads.
    pub(super) async fn until_leading(&mut self) {
        let leading = self.leadership.wait_for(is_leading).await;
        assert!(leading.is_ok(), "the candidate goes on");
    }

    /// As kill -9: nothing more is done, and nothing released.
    pub(super) fn kill(&self) {
        self.task.abort();
    }

    /// As a graceful end. Who has ended already is not asked.
    pub(super) fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// As a graceful end.
    pub(super) async fn stop(mut self) -> Ended {
        self.ask_to_stop();
        self.task.await.expect("the candidate does not panic")
    }

    pub(super) async fn ended(self) -> Ended {
        self.task.await.expect("the candidate does not panic")
    }

    /// When this one led. A reign that has not ended ends now.
    pub(super) fn reigns(&self) -> Vec<Reign> {
        let mut reigns = self.reigns.lock().expect("no test panics while holding it").clone();
        for reign in &mut reigns {
            reign.1 = reign.1.min(self.epoch.elapsed());
        }
        reigns
    }
}

fn is_leading(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Leading { .. })
}

/// Notes when a candidate leads.
async fn chronicle(
    mut leadership: watch::Receiver<Leadership>,
    reigns: Arc<Mutex<Vec<Reign>>>,
    epoch: Instant,
    name: &'static str,
) {
    let mut leads = false;
    loop {
        // The channel closes when the candidate dies.
        let closed = leadership.changed().await.is_err();
        let now = !closed && is_leading(&leadership.borrow_and_update());
        let mut reigns = reigns.lock().expect("no test panics while holding it");
        match (leads, now) {
            (false, true) => reigns.push((epoch.elapsed(), Duration::MAX, name)),
            (true, false) => {
                if let Some(last) = reigns.last_mut() {
                    last.1 = epoch.elapsed();
                }
            }
            _ => {}
        }
        leads = now;
        if closed {
            return;
        }
    }
}

/// A reign that went on after the lease had run out, as everybody else could see.
pub(super) fn overstayed(reigns: &[Reign], writes: &[(Duration, String)]) -> Option<(Reign, Duration)> {
    let last_write = |(_, to, name): &Reign| {
        let by_leader = writes.iter().filter(|(at, holder)| at <= to && holder == name);
        by_leader.map(|(at, _)| *at).max().unwrap_or_default()
    };
    let lease = LeaderSettings::default().lease_duration;
    reigns.iter().map(|reign| (*reign, last_write(reign))).find(|(reign, last)| reign.1 > *last + lease)
}

/// Whether two reigns overlap, and which.
pub(super) fn overlap(mut reigns: Vec<Reign>) -> Option<(Reign, Reign)> {
    reigns.sort();
    reigns.windows(2).find(|pair| pair[1].0 < pair[0].1).map(|pair| (pair[0], pair[1]))
}
