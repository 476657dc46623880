//! What plugins remember and want saved: read when this replica begins to lead, and written while it does.
//!
//! Nothing of it holds up a decision but the first read, which has a time limit. Text is made of memories on a thread for work that
//! takes its time, from a clone that costs nothing, and requests have a task of their own.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use supercargo_engine::{Leading, MemoriesKept, Observer, SAVE_INTERVAL, Scheduler};
use supercargo_framework::{Memories, UnsavedMemory};
use supercargo_model::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{info, warn};

use super::Driver;
use crate::memory_store::{MemoryStore, Stored, Wrote};
use crate::tasks::Tasks;
use supercargo_client::LimitedLog;

/// How long a replica that begins to lead waits for what was saved. After that it schedules without.
const LOAD_PATIENCE: Duration = Duration::from_secs(5);

/// Keeps what plugins remember.
#[derive(Debug)]
pub(super) struct Keeping {
    /// Where; none if nothing is kept.
    store: Option<MemoryStore>,
    phase: Phase,
    tasks: Tasks,
    /// Told when a task has come to its end.
    wake: Arc<Notify>,
    /// What is there, as far as this replica knows.
    stored: Stored,
    /// The memories that could not be saved the last time: each is told of once.
    unsaved: BTreeSet<&'static str>,
    log: LimitedLog,
}

#[derive(Debug)]
enum Phase {
    /// This replica does not lead: what is saved is the leader's.
    Following,
    /// What was saved is being read.
    Loading(oneshot::Receiver<Loaded>),
    /// What was saved is restored, and what changes is saved, not before this moment.
    Kept { not_before: Instant },
    /// What has changed is being written.
    Saving { began: Instant, end: oneshot::Receiver<Saved> },
}

type Loaded = Result<Stored, String>;

/// What came of a save.
#[derive(Debug)]
struct Saved {
    unsaved: Vec<UnsavedMemory>,
    bytes: usize,
    /// The time that it was written under.
    at: Timestamp,
    end: SaveEnd,
}

#[derive(Debug)]
enum SaveEnd {
    /// What is there says the same already.
    Unchanged,
    Wrote(Wrote),
    Failed(String),
}

impl<O: Observer> Driver<O> {
    /// Restores and saves what plugins remember, where that is due.
    pub(super) fn keep_memories(&mut self) {
        let (leading, now) = (self.tenure(), self.clock.now());
        for kept in self.keeping.turn(&mut self.scheduler, leading, now) {
            self.observer.kept(&kept);
        }
    }

    /// Whether pods may be tried and orders be carried out. A replica that holds the lease does not begin before it has what its
    /// predecessor saved.
    pub(super) fn leading(&self) -> Leading {
        match self.tenure() {
            Leading::Yes if !self.keeping.is_ready() => Leading::NotNow,
            tenure => tenure,
        }
    }

    /// Whether this replica holds the lease.
    pub(super) fn tenure(&self) -> Leading {
        if self.gate.is_open() {
            Leading::Yes
        } else if self.gate.has_tenure() {
            Leading::NotNow
        } else {
            Leading::No
        }
    }
}

impl Keeping {
    pub(super) fn new(store: Option<MemoryStore>, tasks: Tasks) -> Self {
        Keeping {
            store,
            phase: Phase::Following,
            tasks,
            wake: Arc::default(),
            stored: Stored::default(),
            unsaved: BTreeSet::new(),
            log: LimitedLog::default(),
        }
    }

    /// Whether pods may be tried, as far as memories are concerned: what was saved is restored, or given up.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Kept { .. } | Phase::Saving { .. })
    }

    /// Does what is due, and says what became of it.
    pub(super) fn turn(
        &mut self,
        scheduler: &mut Scheduler,
        leading: Leading,
        now: Timestamp,
    ) -> Vec<MemoriesKept> {
        match leading {
            Leading::Yes => {}
            // The lease is about to be renewed: nobody else has written.
            Leading::NotNow => return Vec::new(),
            Leading::No => {
                self.phase = Phase::Following;
                return Vec::new();
            }
        }
        match &mut self.phase {
            Phase::Following => {
                self.begin(scheduler);
                Vec::new()
            }
            Phase::Loading(loaded) => match loaded.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => Vec::new(),
                loaded => self.loaded(loaded.unwrap_or_else(|_| Err(ABANDONED.to_owned())), scheduler, now),
            },
            Phase::Kept { not_before } if *not_before <= Instant::now() => {
                if scheduler.has_unsaved_memories() {
                    self.save(scheduler, now);
                }
                Vec::new()
            }
            Phase::Kept { .. } => Vec::new(),
            Phase::Saving { began, end } => match end.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => Vec::new(),
                saved => {
                    let began = *began;
                    self.saved(saved.unwrap_or_else(|_| Saved::abandoned()), began, scheduler)
                }
            },
        }
    }

    /// Waits until there is something to do for [`Keeping::turn`], given whether something is to be saved.
    pub(super) async fn due(&self, is_unsaved: bool) {
        match &self.phase {
            Phase::Loading(_) | Phase::Saving { .. } => self.wake.notified().await,
            Phase::Kept { not_before } if is_unsaved && self.store.is_some() => {
                sleep_until(*not_before).await;
            }
            Phase::Following | Phase::Kept { .. } => std::future::pending().await,
        }
    }

    /// Saves what has changed a last time, and waits for it, within some time.
    pub(super) async fn finish(
        &mut self,
        scheduler: &mut Scheduler,
        leading: Leading,
        now: Timestamp,
        patience: Duration,
    ) -> Vec<MemoriesKept> {
        let until = Instant::now() + patience;
        let mut kept = Vec::new();
        // What is being written now may be older than what is remembered.
        for _ in 0..2 {
            if let Phase::Kept { not_before } = &mut self.phase {
                *not_before = Instant::now();
            }
            kept.extend(self.turn(scheduler, leading, now));
            let Phase::Saving { began, end } = &mut self.phase else { break };
            let began = *began;
            let Ok(saved) = timeout_at(until, end).await else {
                let error = "the API server did not answer before the process ended".to_owned();
                kept.push(self.not_saved(error, scheduler));
                break;
            };
            kept.extend(self.saved(saved.unwrap_or_else(|_| Saved::abandoned()), began, scheduler));
        }
        kept
    }

    /// This replica begins to lead.
    fn begin(&mut self, scheduler: &Scheduler) {
        self.stored = Stored::default();
        let Some(store) = self.store.clone().filter(|_| scheduler.saves_memories()) else {
            self.phase = Phase::Kept { not_before: Instant::now() };
            return;
        };
        let (told, loaded) = oneshot::channel();
        let wake = self.wake.clone();
        self.tasks.spawn_finite("reading of memories", async move {
            let mut last_error = "it does not answer".to_owned();
            let read = timeout(LOAD_PATIENCE, store.read_at_last(&mut last_error)).await;
            let seconds = LOAD_PATIENCE.as_secs();
            let read = read.unwrap_or_else(|_| Err(format!("not within {seconds} s: {last_error}")));
            // A replica that leads no longer has dropped the receiver.
            let _ = told.send(read);
            wake.notify_one();
        });
        self.phase = Phase::Loading(loaded);
    }

    fn loaded(&mut self, loaded: Loaded, scheduler: &mut Scheduler, now: Timestamp) -> Vec<MemoriesKept> {
        self.phase = Phase::Kept { not_before: Instant::now() };
        let place = self.place();
        let stored = match loaded {
            Ok(stored) => stored,
            Err(error) => {
                warn!(
                    err = error,
                    configMap = place,
                    "What plugins had saved could not be read; they begin without it, and it will be overwritten"
                );
                return vec![MemoriesKept::NotLoaded { error }];
            }
        };
        let dropped = scheduler.restore_memories(&stored.entries);
        let saved_at = stored.saved_at;
        if let Some(time) = saved_at {
            info!(
                configMap = place,
                secondsOld = now.since(time).as_secs(),
                "What plugins had saved is restored"
            );
        }
        for dropped in &dropped {
            warn!(
                plugin = dropped.plugin,
                memory = dropped.memory,
                configMap = place,
                err = %dropped.reason,
                "What a plugin had saved is dropped, and it begins without"
            );
        }
        self.stored = stored;
        let dropped = dropped.into_iter().map(MemoriesKept::Dropped);
        std::iter::once(MemoriesKept::Loaded { saved_at }).chain(dropped).collect()
    }

    fn save(&mut self, scheduler: &mut Scheduler, now: Timestamp) {
        let Some(store) = self.store.clone() else { return };
        let (memories, before) = (scheduler.memories_to_save(), self.stored.clone());
        let (told, end) = oneshot::channel();
        let wake = self.wake.clone();
        self.tasks.spawn_finite("saving of memories", async move {
            let saved = written(&store, memories, before, now).await;
            let _ = told.send(saved);
            wake.notify_one();
        });
        self.phase = Phase::Saving { began: Instant::now(), end };
    }

    fn saved(&mut self, saved: Saved, began: Instant, scheduler: &mut Scheduler) -> Vec<MemoriesKept> {
        self.phase = Phase::Kept { not_before: began + SAVE_INTERVAL };
        let Saved { unsaved, bytes, at, end } = saved;
        let told = take(&mut self.unsaved);
        self.unsaved = unsaved.iter().map(|unsaved| unsaved.memory).collect();
        for UnsavedMemory { plugin, memory, reason } in &unsaved {
            if !told.contains(memory) {
                warn!(plugin, memory, err = reason, "What a plugin remembers is not saved");
            }
        }
        let unsaved = unsaved
            .into_iter()
            .map(|UnsavedMemory { plugin, memory, reason }| MemoriesKept::Unsaved { plugin, memory, reason });
        let mut kept: Vec<MemoriesKept> = unsaved.collect();
        match end {
            SaveEnd::Unchanged => {}
            SaveEnd::Wrote(Wrote { stored, had_conflict }) => {
                self.stored = stored;
                kept.push(MemoriesKept::Saved { bytes, at, had_conflict });
            }
            SaveEnd::Failed(error) => kept.push(self.not_saved(error, scheduler)),
        }
        kept
    }

    fn not_saved(&self, error: String, scheduler: &mut Scheduler) -> MemoriesKept {
        scheduler.memories_not_saved();
        if self.log.admits("save-memories") {
            warn!(
                err = error,
                configMap = self.place(),
                "What plugins remember could not be saved; retrying"
            );
        }
        MemoriesKept::NotSaved { error }
    }

    fn place(&self) -> String {
        self.store.as_ref().map(MemoryStore::place).unwrap_or_default()
    }
}

/// What is said of a task that ended without a word, which only a process does that ends.
const ABANDONED: &str = "the process ends";

impl Saved {
    fn failed(error: String) -> Self {
        Saved { unsaved: Vec::new(), bytes: 0, at: Timestamp::from_seconds(0), end: SaveEnd::Failed(error) }
    }

    fn abandoned() -> Self {
        Saved::failed(ABANDONED.to_owned())
    }
}

/// Makes text of memories and writes it, unless it is there already.
async fn written(store: &MemoryStore, memories: Memories, before: Stored, now: Timestamp) -> Saved {
    let saved = match spawn_blocking(move || memories.save()).await {
        Ok(saved) => saved,
        Err(error) => {
            return Saved::failed(format!("no text could be made of it: {error}"));
        }
    };
    let bytes = saved.entries.iter().map(|(name, text)| name.len() + text.len()).sum();
    let end = if saved.entries == before.entries {
        SaveEnd::Unchanged
    } else {
        match store.write(saved.entries, now, before).await {
            Ok(wrote) => SaveEnd::Wrote(wrote),
            Err(error) => SaveEnd::Failed(error.to_string()),
        }
    };
    Saved { unsaved: saved.unsaved, bytes, at: now, end }
}
