//! The watches of a scheduler: which kinds there are to be watched, and what becomes of that when its plugins are others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use supercargo_engine::Everything;
use supercargo_framework::Profile;
use supercargo_model::{Decoder, KindId};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::ApiServer;
use crate::watch::{NODES, PODS, PODS_NOT_FINISHED, WatchEvent, WatchRequest, Watched, watch as watch_kind};

/// So much that watches tell may wait to be looked at.
const WATCHED_WAITING_MAX: usize = 1024;

/// How far the first lists have come, for a health check.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<BTreeMap<KindId, Option<String>>>>);

/// The watches that run. They end with this.
#[derive(Debug)]
pub(crate) struct Watches {
    server: ApiServer,
    seed: u64,
    sender: mpsc::Sender<WatchEvent>,
    tasks: BTreeMap<KindId, JoinHandle<()>>,
    progress: Progress,
    /// Whether pods and nodes keep their text.
    keep_raw: bool,
    /// The schedulers whose pods are taken.
    scheduler_names: BTreeSet<String>,
}

impl Progress {
    /// Fails as long as not everything was listed once.
    pub fn check(&self) -> Result<(), String> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_empty() {
            return Ok(());
        }
        let words = waiting.iter().map(|(kind, trouble)| match trouble {
            None => kind.plural.to_owned(),
            Some(trouble) => format!("{} ({trouble})", kind.plural),
        });
        Err(format!("waiting for the first list of {}", words.collect::<Vec<_>>().join(", ")))
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn note(&self, kind: KindId, watched: &Watched) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match watched {
            Watched::Listed(_) => _ = waiting.remove(&kind),
            Watched::Stalled { reason } => {
                if let Some(trouble) = waiting.get_mut(&kind) {
                    *trouble = Some(reason.clone());
                }
            }
            _ => {}
        }
    }

    fn expect(&self, kind: KindId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, None);
    }

    fn forget(&self, kind: KindId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&kind);
    }
}

impl Watches {
    /// Watches what these profiles read. What the watches tell comes out of the receiver.
    pub(crate) fn start(
        server: ApiServer,
        seed: u64,
        profiles: &[Profile],
        has_extenders: bool,
    ) -> (Self, mpsc::Receiver<WatchEvent>) {
        let (sender, watched) = mpsc::channel(WATCHED_WAITING_MAX);
        let mut watches = Watches {
            server,
            seed,
            sender,
            tasks: BTreeMap::new(),
            progress: Progress::default(),
            keep_raw: keeps_raw(profiles, has_extenders),
            scheduler_names: scheduler_names(profiles),
        };
        let decoder = watches.decoder(profiles);
        for kind in kinds_of(profiles) {
            watches.progress.expect(kind);
            watches.spawn(kind, &decoder, false);
        }
        (watches, watched)
    }

    /// How far the first lists have come.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Watches what other profiles read. Returned are the kinds that nobody reads any more, as lists of nothing.
    ///
    /// Pods of a scheduler that nobody was responsible for were not kept: if one of those has a profile now, all pods are
    /// listed again. That costs a list at a rare moment; keeping all such pods would cost memory all the time, and what does
    /// not fit into a limit would be lost.
    pub(crate) async fn replace(&mut self, profiles: &[Profile], has_extenders: bool) -> Vec<Everything> {
        let (kinds, keep_raw, names) =
            (kinds_of(profiles), keeps_raw(profiles, has_extenders), scheduler_names(profiles));
        let mut gone = Vec::new();
        for kind in self.tasks.keys().filter(|kind| !kinds.contains(kind)).copied().collect::<Vec<_>>() {
            self.end(kind).await;
            self.progress.forget(kind);
            gone.push(Everything::Objects(kind, BTreeSet::new()));
        }
        let is_raw_new = keep_raw && !self.keep_raw;
        let is_name_new = !names.is_subset(&self.scheduler_names);
        (self.keep_raw, self.scheduler_names) = (keep_raw, names);
        let decoder = self.decoder(profiles);
        for kind in kinds {
            let is_known = self.tasks.contains_key(&kind);
            let has_raw = kind == PODS || kind == NODES;
            if is_known && !(kind == PODS && is_name_new) && !(has_raw && is_raw_new) {
                continue;
            }
            // What nobody knows yet has to be known before anything is decided. Known pods and nodes are only told again; unless
            // their texts are wanted from now on.
            if !is_known || (has_raw && is_raw_new) {
                self.progress.expect(kind);
            }
            self.end(kind).await;
            self.spawn(kind, &decoder, is_known);
        }
        gone
    }

    pub(crate) fn is_watching(&self, kind: KindId) -> bool {
        self.tasks.contains_key(&kind)
    }

    pub(crate) fn abort_all(&mut self) {
        for task in self.tasks.values() {
            task.abort();
        }
    }

    fn decoder(&self, profiles: &[Profile]) -> Arc<Decoder> {
        let reads = profiles.iter().filter_map(|profile| profile.reads.as_ref());
        Arc::new(Decoder::new(reads.flat_map(|reads| reads.kinds.clone()), self.keep_raw))
    }

    fn spawn(&mut self, kind: KindId, decoder: &Arc<Decoder>, is_known: bool) {
        let field_selector = (kind == PODS).then_some(PODS_NOT_FINISHED);
        let request = WatchRequest { kind, field_selector, is_known };
        let (server, sender) = (self.server.clone(), self.sender.clone());
        let task = tokio::spawn(watch_kind(server, request, decoder.clone(), self.seed, sender));
        self.tasks.insert(kind, task);
    }

    /// Ends a watch, and waits until it can tell nothing any more: what its successor tells must come later.
    async fn end(&mut self, kind: KindId) {
        if let Some(task) = self.tasks.remove(&kind) {
            task.abort();
            // That it was ended is no error.
            let _ = task.await;
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.abort_all();
    }
}

/// The kinds that a scheduler with these profiles watches.
fn kinds_of(profiles: &[Profile]) -> BTreeSet<KindId> {
    let read = profiles.iter().filter_map(|profile| profile.reads.as_ref());
    read.flat_map(|reads| &reads.kinds).map(|kind| kind.id).chain([PODS, NODES]).collect()
}

/// Extenders want to see whole objects, and so do some plugins.
fn keeps_raw(profiles: &[Profile], has_extenders: bool) -> bool {
    has_extenders
        || profiles.iter().filter_map(|profile| profile.reads.as_ref()).any(|reads| reads.raw_objects)
}

fn scheduler_names(profiles: &[Profile]) -> BTreeSet<String> {
    profiles.iter().map(|profile| profile.scheduler_name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use supercargo_framework::Reads;
    use supercargo_model::Kind;
    use supercargo_model::kinds::Namespace;
    use tokio::time::timeout;

    use super::*;
    use crate::fake::{Answer, Fake, Writer};

    /// A server whose kinds have one object each.
    fn server() -> ApiServer {
        let open: Mutex<Vec<Writer>> = Mutex::default();
        let fake = Fake::new(move |_| {
            let (writer, answer) = Answer::streamed();
            let object =
                r#"{"metadata":{"name":"one","uid":"uid","namespace":"default","resourceVersion":"1"}}"#;
            let end =
                r#"{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"2"}}"#;
            let lines = format!(
                "{{\"type\":\"ADDED\",\"object\":{object}}}\n{{\"type\":\"BOOKMARK\",\"object\":{end}}}\n"
            );
            let _ = writer.send(Ok(lines.into()));
            open.lock().expect("no test panics here").push(writer);
            answer
        });
        ApiServer::new(fake.client(), None)
    }

    fn profile(name: &str, reads: Reads) -> Profile {
        let mut profile = Profile::new(name);
        profile.reads = Some(reads);
        profile
    }

    /// Which kinds are listed next, until nothing is told any more, and whether what has vanished is told too.
    async fn listed(
        watches: &Watches,
        receiver: &mut mpsc::Receiver<WatchEvent>,
    ) -> BTreeSet<(&'static str, bool)> {
        let mut listed = BTreeSet::new();
        while let Ok(Some(event)) = timeout(Duration::from_secs(5), receiver.recv()).await {
            watches.progress.note(event.kind, &event.watched);
            if let Watched::Listed(everything) = event.watched {
                listed.insert((event.kind.plural, everything.is_some()));
            }
        }
        listed
    }

    #[tokio::test(start_paused = true)]
    async fn other_profiles_are_watched_for_with_as_little_as_possible() {
        let plain = || profile("a", Reads::nothing());
        let (mut watches, mut receiver) = Watches::start(server(), 1, &[plain()], false);
        assert!(watches.progress().check().is_err());
        let told = listed(&watches, &mut receiver).await;
        assert_eq!(told, BTreeSet::from([("nodes", false), ("pods", false)]));
        assert_eq!(watches.progress().check(), Ok(()));

        // Nothing that matters to watches.
        assert!(watches.replace(&[plain()], false).await.is_empty());
        assert_eq!(listed(&watches, &mut receiver).await, BTreeSet::new());

        // A new kind is waited for. A new scheduler's pods are found by listing all pods, meanwhile the others go on.
        let reading = profile("b", Reads::nothing().kind::<Namespace>());
        assert!(watches.replace(&[plain(), reading], false).await.is_empty());
        let waiting = watches.progress().check().expect_err("there is a new kind");
        assert_eq!(waiting, "waiting for the first list of namespaces");
        let told = listed(&watches, &mut receiver).await;
        assert_eq!(told, BTreeSet::from([("namespaces", false), ("pods", true)]));
        assert_eq!(watches.progress().check(), Ok(()));

        // A kind that nobody reads any more is forgotten; extenders want texts.
        let gone = watches.replace(&[plain()], true).await;
        assert!(
            matches!(&gone[..], [Everything::Objects(kind, keys)] if *kind == Namespace::ID && keys.is_empty())
        );
        assert!(!watches.is_watching(Namespace::ID));
        assert!(watches.progress().check().is_err());
        let told = listed(&watches, &mut receiver).await;
        assert_eq!(told, BTreeSet::from([("nodes", true), ("pods", true)]));

        // Texts that nobody wants any more do no harm.
        assert!(watches.replace(&[plain()], false).await.is_empty());
        assert_eq!(listed(&watches, &mut receiver).await, BTreeSet::new());
    }
}
