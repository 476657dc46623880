//! What plugins remember and want to be kept beyond the process. Whoever drives the scheduler writes it somewhere, no more often than
//! [`SAVE_INTERVAL`], and gives it to the scheduler that comes next before that decides anything.

use std::collections::BTreeMap;
use std::time::Duration;

use supercargo_framework::{DroppedMemory, Memories};
use supercargo_model::Timestamp;

use super::Scheduler;

/// What plugins remember is saved no more often than this. A process that is killed loses what they learnt since the last time.
pub const SAVE_INTERVAL: Duration = Duration::from_secs(10);

/// What became of memories that are to be saved, or were to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoriesKept {
    /// They were written: so many bytes.
    Saved {
        /// How many bytes were written.
        bytes: usize,
        /// When they were written.
        at: Timestamp,
        /// Whether another replica had written meanwhile, and was overwritten.
        had_conflict: bool,
    },
    /// They could not be written. That is tried again.
    NotSaved {
        /// Why they could not be written.
        error: String,
    },
    /// One of them is not among what was written.
    Unsaved {
        /// The plugin that remembers it.
        plugin: &'static str,
        /// Its name.
        memory: &'static str,
        /// Why it is not among what was written.
        reason: String,
    },
    /// What was saved was read, and those of it restored that could be.
    Loaded {
        /// When it was saved, if it says so; none also if there was nothing.
        saved_at: Option<Timestamp>,
    },
    /// One of them could not be restored.
    Dropped(DroppedMemory),
    /// What was saved could not be read in time. The scheduler begins without.
    NotLoaded {
        /// Why what was saved could not be read.
        error: String,
    },
}

impl Scheduler {
    /// Whether plugins want something that they remember saved.
    pub fn saves_memories(&self) -> bool {
        self.engine.remembered().are_saved()
    }

    /// Whether some of that was changed since [`Scheduler::memories_to_save`]. This looks at pointers only.
    pub fn has_unsaved_memories(&self) -> bool {
        !self.engine.remembered().is_saved_as(&self.saved)
    }

    /// What plugins remember now. From here on only what changes is unsaved. Making text of it may take its time, and can be done elsewhere
    /// while the scheduler goes on.
    pub fn memories_to_save(&mut self) -> Memories {
        self.saved = self.engine.remembered().clone();
        self.saved.clone()
    }

    /// What was to be saved could not be: everything is unsaved again.
    pub fn memories_not_saved(&mut self) {
        self.saved = Memories::default();
    }

    /// Restores what was saved, and says what of it is dropped. It belongs before the first decision, and before the scheduler begins to
    /// lead: plugins that observe begin anew then, and find it.
    pub fn restore_memories(&mut self, entries: &BTreeMap<String, String>) -> Vec<DroppedMemory> {
        let dropped = self.engine.restore_memories(entries);
        // What was dropped is to disappear where it is saved.
        self.saved = if dropped.is_empty() { self.engine.remembered().clone() } else { Memories::default() };
        dropped
    }
}
