//! The watches of a scheduler: which kinds there are to be watched, and what becomes of that when its plugins are others.

mod progress;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_framework::{Needs, Profile};
use supercargo_model::{Decoded, Everything, KindId};
use tokio::sync::{mpsc, watch};
use tracing::warn;

use crate::tasks::{Task, Tasks};
use crate::watch::{PODS, PODS_NOT_FINISHED, Telling, WatchEvent, WatchRequest, Watched, watch_as_asked};
use progress::Knowledge;
pub use progress::Progress;
use supercargo_client::ApiServer;

/// So much that watches tell may wait to be looked at.
const WATCHED_WAITING_MAX: usize = 1024;

/// The watches that run. They end with this.
#[derive(Debug)]
pub(crate) struct Watches {
    server: ApiServer,
    seed: u64,
    tasks: Tasks,
    sender: mpsc::Sender<WatchEvent>,
    running: BTreeMap<KindId, Running>,
    /// What is known of the kinds that the profiles read.
    progress: Progress,
    /// What other profiles need, which are to follow.
    preparation: Option<Preparation>,
    /// The schedulers whose pods are taken.
    scheduler_names: BTreeSet<String>,
    /// What the profiles need that count now.
    needs: Needs,
    /// The number of the last telling.
    tellings: u64,
}

/// A watch of a kind.
#[derive(Debug)]
struct Running {
    task: Task,
    asking: watch::Sender<Telling>,
    /// The number of its first telling: events with a smaller one are of a former watch of the kind.
    first: u64,
    /// Whom all objects that were told were read for.
    read_for: Needs,
    /// Whom they are read for since the telling of this number, which is not complete.
    asked: Option<(u64, Needs)>,
}

/// What other profiles need that is not there yet.
#[derive(Debug)]
struct Preparation {
    /// The kinds that only they read. These are watched already.
    kinds: BTreeMap<KindId, Knowledge>,
    needs: Needs,
}

impl Watches {
    /// Watches what these profiles read. What the watches tell comes out of the receiver.
    pub(crate) fn start(
        server: ApiServer,
        seed: u64,
        profiles: &[Profile],
        has_extenders: bool,
        tasks: Tasks,
    ) -> (Self, mpsc::Receiver<WatchEvent>) {
        let (sender, watched) = mpsc::channel(WATCHED_WAITING_MAX);
        let needs = Needs::of(profiles).and_texts(has_extenders);
        let mut watches = Watches {
            server,
            seed,
            tasks,
            sender,
            running: BTreeMap::new(),
            progress: Progress::default(),
            preparation: None,
            scheduler_names: scheduler_names(profiles),
            needs: needs.clone(),
            tellings: 0,
        };
        for kind in needs.kinds() {
            watches.progress.expect(kind, Knowledge::default());
            watches.spawn(kind, &needs);
        }
        watches.name_readers();
        (watches, watched)
    }

    /// How much is known of each kind.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Takes note of what a watch tells. False if it is of a watch that has ended since, and must not be looked at.
    pub(crate) fn note(&mut self, event: &WatchEvent) -> bool {
        let Some(running) = self.running.get_mut(&event.kind) else { return false };
        if event.telling < running.first {
            return false;
        }
        if matches!(event.watched, Watched::Listed(_))
            && let Some((_, needs)) = running.asked.take_if(|(number, _)| event.telling >= *number)
        {
            running.read_for = needs;
        }
        if matches!(event.watched, Watched::Unserved) {
            let prepared = self.preparation.as_ref().and_then(|next| next.needs.absence(event.kind));
            if let Some(absence) = self.needs.absence(event.kind).or(prepared) {
                warn!(kind = event.kind.plural, "{absence}");
            }
        }
        let prepared =
            self.preparation.as_mut().and_then(|preparation| preparation.kinds.get_mut(&event.kind));
        match prepared {
            Some(knowledge) => knowledge.note(&event.watched),
            None => self.progress.note(event.kind, &event.watched),
        }
        true
    }

    /// Begins to watch what other profiles need, while those that there are go on. What an earlier preparation has begun and
    /// these do not need is ended; returned are those kinds, as lists of nothing.
    ///
    /// What is watched already but not read for these is listed again: pods and nodes whose texts they want, and kinds that they read
    /// into structs of their own. The watches go on if that fails: a second watch of the same kind could tell older states after
    /// newer ones, and a watch that is replaced could not be had back.
    pub(crate) async fn prepare(&mut self, profiles: &[Profile], has_extenders: bool) -> Vec<Everything> {
        let needs = Needs::of(profiles).and_texts(has_extenders);
        let kinds = needs.kinds();
        let mut prepared = self.preparation.take().map(|old| old.kinds).unwrap_or_default();
        let unneeded: Vec<KindId> = prepared.keys().filter(|kind| !kinds.contains(kind)).copied().collect();
        let gone = self.end_all(&unneeded).await;
        prepared.retain(|kind, _| kinds.contains(kind));
        // The profiles that run go on reading until the others take their place, and after that if these do not come.
        let both = needs.clone().and_all(&self.needs);
        for kind in kinds {
            match self.running.get(&kind) {
                None => {
                    self.spawn(kind, &needs);
                    prepared.insert(kind, Knowledge::default());
                }
                Some(running) if !running.latest().covers(&needs, kind) => self.tell_again(kind, &both),
                Some(_) => {}
            }
        }
        self.preparation = Some(Preparation { kinds: prepared, needs });
        gone
    }

    /// What is not known yet of what the profiles need for which the watches were prepared, and why.
    pub(crate) fn missing(&self) -> Vec<String> {
        let Some(Preparation { kinds, needs }) = &self.preparation else { return Vec::new() };
        let unknown = kinds.iter().filter(|(_, knowledge)| !knowledge.is_complete());
        let unknown = unknown.filter_map(|(kind, knowledge)| knowledge.complaint(*kind));
        let known = self.running.iter().filter(|(kind, _)| !kinds.contains_key(kind));
        let partly_read = known.filter(|(kind, running)| !running.read_for.covers(needs, **kind));
        let partly_read = partly_read.map(|(kind, _)| {
            format!(
                "waiting for a list of {} with all the fields that plugins or extenders read",
                kind.plural
            )
        });
        unknown.chain(partly_read).collect()
    }

    /// The profiles for which the watches were prepared are those that count now. Returned are the kinds that nobody reads any
    /// more, as lists of nothing.
    ///
    /// Pods of a scheduler that had no profile were not kept: if one of those has a profile now, all pods are listed again. That
    /// costs a list at a rare moment; keeping all such pods would cost memory all the time, and what does not fit into a limit
    /// would be lost. The watch of pods goes on, so that no pod is missed meanwhile. So it is if plugins read more of pods, or less,
    /// than those before.
    pub(crate) async fn commit(&mut self, profiles: &[Profile]) -> Vec<Everything> {
        let Some(Preparation { kinds, needs }) = self.preparation.take() else { return Vec::new() };
        for (kind, knowledge) in kinds {
            self.progress.expect(kind, knowledge);
        }
        let kinds = needs.kinds();
        let unneeded: Vec<KindId> =
            self.running.keys().filter(|kind| !kinds.contains(kind)).copied().collect();
        let gone = self.end_all(&unneeded).await;
        let names = scheduler_names(profiles);
        let are_pods_wanted = !names.is_subset(&self.scheduler_names) || needs.pods() != self.needs.pods();
        self.scheduler_names = names;
        self.needs = needs;
        self.name_readers();
        if are_pods_wanted {
            let keeps_texts = self.running.get(&PODS).is_some_and(|pods| pods.latest().keeps_texts());
            self.tell_again(PODS, &self.needs.clone().and_texts(keeps_texts));
        }
        gone
    }

    /// The profiles for which the watches were prepared do not come. Returned are the kinds that only they would have read, as
    /// lists of nothing. Texts that were asked for come all the same, and do no harm.
    pub(crate) async fn abandon(&mut self) -> Vec<Everything> {
        let kinds = self.preparation.take().map(|preparation| preparation.kinds).unwrap_or_default();
        self.end_all(&kinds.into_keys().collect::<Vec<_>>()).await
    }

    /// A pod that was read by itself, as the watch of pods would tell it.
    pub(crate) fn decode_pod(&self, text: &[u8]) -> Result<Decoded, String> {
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        let pods = self.running.get(&PODS).ok_or("pods are not watched")?;
        let decoder = pods.asking.borrow().decoder.clone();
        decoder.decode_kind(text, PODS).map_err(|error| error.to_string())
    }

    pub(crate) fn abort_all(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
    }

    /// Has it said of each kind that the API server does not have who misses it.
    fn name_readers(&self) {
        self.progress.name_absences(|kind| self.needs.absence(kind));
    }

    fn spawn(&mut self, kind: KindId, needs: &Needs) {
        let field_selector = self.field_selector(kind);
        let request = WatchRequest { kind, field_selector, is_known: false };
        self.tellings += 1;
        let number = self.tellings;
        let decoder = Arc::new(needs.decoder());
        let (asking, asked) = watch::channel(Telling { number, decoder, field_selector });
        let (server, sender) = (self.server.clone(), self.sender.clone());
        let watching = watch_as_asked(server, request, asked, self.seed, sender);
        // A watch returns only if the driver is gone.
        let task = self.tasks.spawn_finite(format!("watch of {}", kind.plural), watching);
        let running = Running { task, asking, first: number, read_for: needs.clone(), asked: None };
        self.running.insert(kind, running);
    }

    fn field_selector(&self, kind: KindId) -> Option<&'static str> {
        (kind == PODS && !self.needs.pods().finished).then_some(PODS_NOT_FINISHED)
    }

    /// Asks a watch to tell everything again, read for these.
    fn tell_again(&mut self, kind: KindId, needs: &Needs) {
        self.tellings += 1;
        let (number, field_selector) = (self.tellings, self.field_selector(kind));
        if let Some(running) = self.running.get_mut(&kind) {
            let decoder = Arc::new(needs.decoder());
            running.asking.send_replace(Telling { number, decoder, field_selector });
            running.asked = Some((number, needs.clone()));
        }
    }

    /// Ends watches, and waits until they can tell nothing any more. Returned are the kinds as lists of nothing.
    async fn end_all(&mut self, kinds: &[KindId]) -> Vec<Everything> {
        for kind in kinds {
            self.progress.forget(*kind);
            if let Some(running) = self.running.remove(kind) {
                running.task.end().await;
            }
        }
        kinds.iter().map(|kind| Everything::none_of(*kind)).collect()
    }
}

impl Running {
    /// Whom objects are read for that are told from now on.
    fn latest(&self) -> &Needs {
        self.asked.as_ref().map_or(&self.read_for, |(_, needs)| needs)
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.abort_all();
    }
}

fn scheduler_names(profiles: &[Profile]) -> BTreeSet<String> {
    profiles.iter().map(|profile| profile.scheduler_name.clone()).collect()
}

#[cfg(test)]
mod tests;
