//! Where the pods of the queue stand, for whoever counts them.

use std::sync::Arc;

use supercargo_model::{Pod, Standing};

use super::{Queue, Waiting};
use crate::scheduler::heap::Slot;

/// The pods that may stand elsewhere than before.
#[derive(Clone, Debug, Default)]
pub(super) struct Standings {
    are_told: bool,
    noted: Vec<Slot>,
}

impl Standings {
    /// A pod has come to a place in the queue.
    pub(super) fn note(&mut self, slot: Slot) {
        if self.are_told {
            self.noted.push(slot);
        }
    }
}

impl Waiting {
    /// Where it stands, as long as it is in the queue or being tried.
    pub(in crate::scheduler) fn standing(&self) -> Standing {
        if self.gate.is_some() { Standing::Gated } else { Standing::Waiting }
    }
}

impl Queue {
    /// Whether it is to be told where pods stand.
    pub(in crate::scheduler) fn tell_standings(&mut self, are_told: bool) {
        self.standings.are_told = are_told;
    }

    /// Where pods stand that have come to another place since the last time.
    pub(in crate::scheduler) fn take_standings(&mut self) -> Vec<(Arc<Pod>, Standing)> {
        let noted = std::mem::take(&mut self.standings.noted);
        let waiting = noted.into_iter().filter_map(|slot| self.pods.get(slot)?.as_deref());
        waiting.map(|waiting| (waiting.queued.pod.clone(), waiting.standing())).collect()
    }

    /// Where every pod of the queue stands, those that are being tried included.
    pub(in crate::scheduler) fn all_standings(&self) -> Vec<(Arc<Pod>, Standing)> {
        let waiting = self.pods.iter().flatten();
        waiting.map(|waiting| (waiting.queued.pod.clone(), waiting.standing())).collect()
    }
}
