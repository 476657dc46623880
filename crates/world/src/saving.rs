//! What plugins have saved, and what ends a scheduler: a restart, a kill, another replica.

use std::collections::BTreeMap;

use supercargo_engine::SAVE_INTERVAL;
use supercargo_framework::DroppedMemory;
use supercargo_model::Timestamp;

use crate::world::World;

/// An order that begins like this does not exist, but a fault may name it: then nothing is saved.
const SAVING: &str = "save memories";

/// What plugins had saved, and when that may be done again.
#[derive(Clone, Debug)]
pub(crate) struct Saving {
    entries: BTreeMap<String, String>,
    not_before: Option<Timestamp>,
    leads: bool,
}

impl Default for Saving {
    fn default() -> Self {
        Saving { entries: BTreeMap::new(), not_before: None, leads: true }
    }
}

impl World {
    /// The process ends in good order, and another one takes its place: it knows what the API server has, remembers what plugins have
    /// [saved](supercargo_framework::Memory::SAVED), and nothing else. What was ordered and not done is lost.
    #[track_caller]
    pub fn restart(&mut self) {
        self.save();
        self.crash();
    }

    /// The same without good order, as with `kill -9`: what plugins had saved is as it was written last, which is every ten seconds while
    /// it changes.
    #[track_caller]
    pub fn crash(&mut self) {
        self.replace_scheduler();
        self.restore();
        self.scheduler.set_leading(self.saving.leads, self.now);
        self.list();
    }

    /// The process ends as with `kill -9`, and a replica begins to lead that stood by: its plugins have observed the cluster already. What
    /// it remembers of that is replaced by what was saved.
    #[track_caller]
    pub fn take_over(&mut self) {
        self.replace_scheduler();
        self.list();
        self.saving.leads = false;
        self.set_leading(true);
    }

    /// Whether this replica leads: if not, no pod is tried and nothing is written. A world begins with a leader. One that begins to lead
    /// takes up what was saved last.
    pub fn set_leading(&mut self, leads: bool) {
        if leads && !self.saving.leads {
            self.restore();
        }
        self.saving.leads = leads;
        self.scheduler.set_leading(leads, self.now);
    }

    /// What plugins have saved, as the object of the cluster has it: an entry a memory. A test may spoil it.
    pub fn saved(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.saving.entries
    }

    /// When something is to be saved next.
    pub(crate) fn next_save(&self) -> Option<Timestamp> {
        let is_wanted = self.saving.leads && self.scheduler.has_unsaved_memories();
        is_wanted.then(|| self.saving.not_before.unwrap_or(self.now))
    }

    pub(crate) fn save_if_due(&mut self) {
        if self.next_save().is_some_and(|time| time <= self.now) {
            self.save();
        }
    }

    fn save(&mut self) {
        if !self.saving.leads || !self.scheduler.has_unsaved_memories() {
            return;
        }
        self.saving.not_before = Some(self.now.after(SAVE_INTERVAL));
        if self.faults.iter().any(|(order, _)| SAVING.starts_with(order.as_str())) {
            return;
        }
        let saved = self.scheduler.memories_to_save().save();
        for unsaved in saved.unsaved {
            let complaint =
                format!("{}: {} is not saved: {}", unsaved.plugin, unsaved.memory, unsaved.reason);
            self.complaints.push(complaint);
        }
        self.saving.entries = saved.entries;
    }

    fn restore(&mut self) {
        self.saving.not_before = None;
        for DroppedMemory { plugin, memory, reason } in self.scheduler.restore_memories(&self.saving.entries)
        {
            self.complaints.push(format!("{plugin}: {memory} is dropped: {reason}"));
        }
    }
}
