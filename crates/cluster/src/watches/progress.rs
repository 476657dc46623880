//! How much is known of each kind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use supercargo_model::KindId;
use tokio::time::Instant;

use crate::watch::Watched;

/// A watch that has been stalled for so long is worth a word: what is known of its kind grows old. Most go on sooner.
const STALL_SHOWN_AFTER: Duration = Duration::from_secs(5);

/// How much is known of each kind that the scheduler reads, for a health check. Nothing is scheduled unless the picture of every
/// kind is complete.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Pictures>);

#[derive(Debug, Default)]
struct Pictures {
    kinds: Mutex<BTreeMap<KindId, Knowledge>>,
    /// How many of them are incomplete, beside them: that is asked several times for each pod.
    incomplete: AtomicUsize,
}

/// What is known of a kind, and what keeps it from growing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    picture: Picture,
    trouble: Option<Trouble>,
    /// What it means if the server does not have the kind; none if nobody misses it.
    absence: Option<String>,
}

/// How complete the picture of a kind is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Picture {
    /// The kind was never listed: no object of it, or only some of them, are known. Incomplete.
    #[default]
    Unlisted,
    /// Every object was told, and changes are told as they come. Complete, and it stays so when the kind is listed again: what was
    /// known stays until that list is complete, so that it can only be late, as every watch is.
    Listed,
    /// Discovery says that the server does not serve the kind. Complete: there is no object of it.
    Unserved,
    /// The kind is served again, and is being listed or cannot be: at most some of its objects are known, and none from before. Incomplete.
    Refilling,
}

#[derive(Clone, Debug)]
struct Trouble {
    reason: String,
    since: Instant,
}

impl Knowledge {
    pub(crate) fn note(&mut self, watched: &Watched) {
        match watched {
            Watched::Began | Watched::Served if self.picture == Picture::Unserved => {
                self.picture = Picture::Refilling;
            }
            Watched::Began
            | Watched::Served
            | Watched::Put(_)
            | Watched::Removed(_)
            | Watched::Unreadable => {}
            Watched::Listed(_) => (self.picture, self.trouble) = (Picture::Listed, None),
            Watched::Unserved => (self.picture, self.trouble) = (Picture::Unserved, None),
            Watched::Stalled { reason } => {
                let since = self.trouble.as_ref().map_or_else(Instant::now, |trouble| trouble.since);
                self.trouble = Some(Trouble { reason: reason.clone(), since });
            }
            Watched::Resumed => self.trouble = None,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        match self.picture {
            Picture::Listed | Picture::Unserved => true,
            Picture::Unlisted | Picture::Refilling => false,
        }
    }

    /// What is wrong with the picture, in words; nothing if it is complete and goes on.
    pub(crate) fn complaint(&self, kind: KindId) -> Option<String> {
        let reason = self.trouble.as_ref().map(|trouble| format!(" ({})", trouble.reason));
        let reason = reason.unwrap_or_default();
        match self.picture {
            Picture::Unlisted => Some(format!("waiting for the first list of {}{reason}", kind.plural)),
            Picture::Refilling => {
                Some(format!("waiting for the list of {}, served again{reason}", kind.plural))
            }
            Picture::Listed | Picture::Unserved => {
                let trouble = self.trouble.as_ref()?;
                let is_old = trouble.since.elapsed() >= STALL_SHOWN_AFTER;
                let seconds = trouble.since.elapsed().as_secs();
                is_old.then(|| format!("{} have not been watched for {seconds} s{reason}", kind.plural))
            }
        }
    }
}

impl Progress {
    /// Fails as long as not every kind was listed, and while one cannot be watched; with the kind and the reason.
    pub fn check(&self) -> Result<(), String> {
        let kinds = self.kinds();
        let complaints: Vec<String> =
            kinds.iter().filter_map(|(kind, knowledge)| knowledge.complaint(*kind)).collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }

    /// How many kinds the scheduler reads.
    pub(crate) fn kind_count(&self) -> usize {
        self.kinds().len()
    }

    /// Why no pod is scheduled for lack of knowledge: the kinds whose picture is not complete, and the reasons.
    pub fn missing(&self) -> Vec<String> {
        let kinds = self.kinds();
        let incomplete = kinds.iter().filter(|(_, knowledge)| !knowledge.is_complete());
        incomplete.filter_map(|(kind, knowledge)| knowledge.complaint(*kind)).collect()
    }

    /// The kinds that the server does not have and somebody misses: what that means for whom.
    pub fn absences(&self) -> Vec<String> {
        let kinds = self.kinds();
        let unserved = kinds.values().filter(|knowledge| knowledge.picture == Picture::Unserved);
        unserved.filter_map(|knowledge| knowledge.absence.clone()).collect()
    }

    /// Notes what it means for each kind if the server does not have it.
    pub(super) fn name_absences(&self, absence: impl Fn(KindId) -> Option<String>) {
        for (kind, knowledge) in self.kinds().iter_mut() {
            knowledge.absence = absence(*kind);
        }
    }

    /// Whether every kind is known so well that pods may be scheduled.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.incomplete.load(Ordering::Acquire) == 0
    }

    pub(super) fn note(&self, kind: KindId, watched: &Watched) {
        // Most events tell of one object, and change nothing here.
        if matches!(watched, Watched::Put(_) | Watched::Removed(_)) {
            return;
        }
        self.change(|kinds| {
            if let Some(knowledge) = kinds.get_mut(&kind) {
                knowledge.note(watched);
            }
        });
    }

    /// The kind has to be known from now on, and so much is known of it.
    pub(super) fn expect(&self, kind: KindId, knowledge: Knowledge) {
        self.change(|kinds| _ = kinds.insert(kind, knowledge));
    }

    pub(super) fn forget(&self, kind: KindId) {
        self.change(|kinds| _ = kinds.remove(&kind));
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<KindId, Knowledge>)) {
        let mut kinds = self.kinds();
        change(&mut kinds);
        let incomplete = kinds.values().filter(|knowledge| !knowledge.is_complete()).count();
        self.0.incomplete.store(incomplete, Ordering::Release);
    }

    fn kinds(&self) -> MutexGuard<'_, BTreeMap<KindId, Knowledge>> {
        // Each entry is right at any time: a panic elsewhere does not spoil them.
        self.0.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{NODES, PODS};

    fn stalled() -> Watched {
        Watched::Stalled { reason: "forbidden".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_kind_that_is_being_filled_is_incomplete() {
        for (told, complete) in [
            (vec![], false),
            (vec![Watched::Began], false),
            (vec![Watched::Began, Watched::Listed(None)], true),
            // Listed again: what was known stays until the list is complete.
            (vec![Watched::Listed(None), Watched::Began], true),
            (vec![Watched::Listed(None), stalled()], true),
            (vec![Watched::Unserved], true),
            // Served again: only a part is known.
            (vec![Watched::Unserved, Watched::Began], false),
            (vec![Watched::Unserved, Watched::Began, stalled()], false),
            // Served again, and nobody may list it.
            (vec![Watched::Unserved, Watched::Served], false),
            (vec![Watched::Unserved, Watched::Served, stalled()], false),
            (vec![Watched::Unserved, Watched::Served, Watched::Unserved], true),
            (vec![Watched::Unserved, stalled()], true),
            (vec![Watched::Listed(None), Watched::Served], true),
            (vec![Watched::Unserved, Watched::Began, Watched::Unserved], true),
            (vec![Watched::Unserved, Watched::Began, Watched::Listed(None)], true),
        ] {
            let progress = Progress::default();
            progress.expect(PODS, Knowledge::default());
            for watched in &told {
                progress.note(PODS, watched);
            }
            assert_eq!(progress.is_complete(), complete, "{told:?}");
        }
    }

    #[test]
    fn a_kind_that_is_not_there_is_told_of_as_long_as_somebody_misses_it() {
        let progress = Progress::default();
        progress.expect(PODS, Knowledge::default());
        progress.expect(NODES, Knowledge::default());
        progress.name_absences(|kind| (kind == NODES).then(|| "the plugin misses nodes".to_owned()));
        let told = |watched: &Watched| {
            progress.note(PODS, watched);
            progress.note(NODES, watched);
            progress.absences()
        };
        assert_eq!(told(&Watched::Listed(None)), [""; 0]);
        assert_eq!(told(&Watched::Unserved), ["the plugin misses nodes"]);
        assert_eq!(progress.check(), Ok(()), "that is no reason not to schedule");
        progress.name_absences(|_| None);
        assert_eq!(progress.absences(), [""; 0], "another configuration");
        assert_eq!(told(&Watched::Began), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_complaint_names_the_kind_and_the_reason() {
        let progress = Progress::default();
        progress.expect(PODS, Knowledge::default());
        progress.expect(NODES, Knowledge::default());
        progress.note(PODS, &stalled());
        let complaint = "waiting for the first list of nodes; waiting for the first list of pods (forbidden)";
        assert_eq!(progress.check(), Err(complaint.to_owned()));
        progress.note(PODS, &Watched::Listed(None));
        progress.note(NODES, &Watched::Unserved);
        assert_eq!(progress.check(), Ok(()));
        progress.note(NODES, &Watched::Began);
        assert_eq!(progress.check(), Err("waiting for the list of nodes, served again".to_owned()));
        progress.note(NODES, &Watched::Listed(None));

        progress.note(PODS, &stalled());
        assert_eq!(progress.check(), Ok(()), "most watches go on soon");
        tokio::time::advance(STALL_SHOWN_AFTER).await;
        assert_eq!(progress.check(), Err("pods have not been watched for 5 s (forbidden)".to_owned()));
        assert!(progress.is_complete(), "what is known stays");
        progress.note(PODS, &Watched::Resumed);
        assert_eq!(progress.check(), Ok(()));
    }
}
