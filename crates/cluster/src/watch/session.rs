//! How a watch goes on, whatever happens to its connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use supercargo_model::{Decoded, Decoder, KindId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use super::discovery::is_served;
use super::lines::Lines;
use super::listing::Listing;
use super::words::{Bookmark, ErrorWords, EventKind, EventWords, PageWords, resource_version};
use super::{WatchEvent, WatchRequest, Watched};
use crate::backoff::{Backoff, BackoffLimits, Chance};
use crate::client::{ApiServer, Call, RequestError};
use crate::path;

/// How long to wait after a failure.
const BACKOFF: BackoffLimits = BackoffLimits {
    first: Duration::from_millis(200),
    factor: 2.0,
    longest: Duration::from_secs(30),
    jitter: 0.5,
};
/// How long to wait at most for a server that gave no answer. client-go waits for up to a minute; but pods wait for the
/// scheduler, and knocking at a door costs little.
const UNANSWERED_WAIT_MAX: Duration = Duration::from_secs(2);
/// How often we look whether a kind is served by now, such as after its CRD was installed.
const UNSERVED_INTERVAL: Duration = Duration::from_secs(60);
/// How long the server keeps up a watch: between this and twice this, so that not all end at once. client-go's number.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(300);
/// How much longer we wait for the server to end it.
const WATCH_TIMEOUT_GRACE: Duration = Duration::from_secs(30);
/// A watch that ends sooner, without a word, has failed.
const WATCH_SHORT: Duration = Duration::from_secs(1);
/// A server that is silent for so long in the middle of a list does not know how to end one in a stream.
const STREAMED_LIST_PATIENCE: Duration = Duration::from_secs(30);
/// How often a server may refuse to go on from where we were, before everything is listed again. It may have been restored
/// from a backup, and know nothing of that place yet.
const REFUSED_RESUMES_MAX: u32 = 4;
/// How many objects a page of a list has.
const PAGE_OBJECTS: usize = 500;

/// A watch of one kind.
pub(super) struct Session {
    server: ApiServer,
    request: WatchRequest,
    decoder: Arc<Decoder>,
    sender: mpsc::Sender<WatchEvent>,
    backoff: Backoff,
    chance: Chance,
    /// The version up to which everything was told; none if all has to be listed.
    position: Option<String>,
    /// Lists come in streams, as far as we know.
    lists_are_streamed: bool,
    /// No list has begun yet.
    is_first: bool,
    /// It was told that the kind is not served.
    is_missing: bool,
    refused_resumes: u32,
}

/// Why a watch does not go on.
#[derive(Debug)]
enum Stop {
    /// Nobody listens.
    Closed,
    /// The server has forgotten where we were: list again.
    Expired,
    /// The server does not put lists into streams: list in pages.
    NotStreamed,
    /// The server does not serve the kind: look again later.
    Unserved,
    /// Something else: try again, with patience.
    Failed {
        reason: String,
        /// The server said so itself, and may say the same for ever.
        is_refused: bool,
    },
}

impl Session {
    pub(super) fn new(
        server: ApiServer,
        request: WatchRequest,
        decoder: Arc<Decoder>,
        seed: u64,
        sender: mpsc::Sender<WatchEvent>,
    ) -> Self {
        // Watches that start together go separate ways.
        let mut chance = Chance::named(seed, request.kind.plural);
        Session {
            server,
            request,
            decoder,
            sender,
            backoff: Backoff::new(BACKOFF, chance.fork()),
            chance,
            position: None,
            lists_are_streamed: true,
            is_first: !request.is_known,
            is_missing: false,
            refused_resumes: 0,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let result = self.round().await;
            let handled = match result {
                Ok(()) => Ok(()),
                Err(stop) => self.handle(stop).await,
            };
            if handled.is_err() {
                return;
            }
        }
    }

    /// One request: a list, or a watch from its beginning to its end.
    async fn round(&mut self) -> Result<(), Stop> {
        match self.position.clone() {
            Some(position) => {
                let lines = self.open(&format!("&resourceVersion={position}")).await?;
                self.follow(lines, None).await
            }
            None if self.lists_are_streamed => {
                let lines = self.open("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").await?;
                let listing = self.begin().await?;
                self.follow(lines, Some(listing)).await
            }
            None => self.list_in_pages().await,
        }
    }

    async fn handle(&mut self, stop: Stop) -> Result<(), Stop> {
        let kind = self.kind().plural;
        let mut longest = BACKOFF.longest;
        match stop {
            Stop::Closed => return Err(Stop::Closed),
            Stop::NotStreamed => {
                debug!(kind, "the server does not stream lists, they come in pages");
                self.lists_are_streamed = false;
                return Ok(());
            }
            Stop::Unserved => {
                self.report_missing().await?;
                return self.wait(UNSERVED_INTERVAL).await;
            }
            Stop::Expired => {
                info!(kind, "the watch is too old for the server, everything is listed again");
                self.position = None;
            }
            Stop::Failed { reason, is_refused } => {
                warn!(kind, "cannot watch, trying again: {reason}");
                if self.backoff.failures() == 0 {
                    self.send(Watched::Stalled { reason }).await?;
                }
                longest = if is_refused { BACKOFF.longest } else { UNANSWERED_WAIT_MAX };
                if is_refused && self.position.is_some() {
                    self.refused_resumes += 1;
                    if self.refused_resumes > REFUSED_RESUMES_MAX {
                        self.position = None;
                    }
                }
            }
        }
        let wait = self.backoff.next(longest);
        self.wait(wait).await
    }

    /// Waits, unless nobody listens any more.
    async fn wait(&self, wait: Duration) -> Result<(), Stop> {
        tokio::select! {
            () = self.sender.closed() => Err(Stop::Closed),
            () = sleep(wait) => Ok(()),
        }
    }

    async fn open(&mut self, from: &str) -> Result<Lines, Stop> {
        let seconds = WATCH_TIMEOUT_MIN.as_secs_f64() * (1.0 + self.chance.fraction());
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}{from}{}",
            path::of_kind(self.kind()),
            seconds as u64,
            self.selection()
        );
        match self.server.open(&path).await {
            Ok(body) => Ok(Lines::new(body)),
            Err(error) => Err(self.refusal(error).await),
        }
    }

    async fn refusal(&self, error: RequestError) -> Stop {
        let is_streamed_list = self.position.is_none() && self.lists_are_streamed;
        match error.code() {
            Some(410) => Stop::Expired,
            Some(404) => Stop::Unserved,
            Some(400 | 422) if is_streamed_list => Stop::NotStreamed,
            Some(403) => {
                // Who may do nothing gets this answer for kinds that do not exist, too.
                if let Ok(false) = is_served(&self.server, self.kind()).await {
                    return Stop::Unserved;
                }
                let KindId { group, plural, .. } = self.kind();
                let reason = format!(
                    "{error}; grant the scheduler the rule {{apiGroups: [{group:?}], resources: [{plural:?}], \
                     verbs: [\"get\", \"list\", \"watch\"]}}"
                );
                Stop::Failed { reason, is_refused: true }
            }
            code => Stop::Failed { reason: error.to_string(), is_refused: code.is_some() },
        }
    }

    /// Reads a stream to its end.
    async fn follow(&mut self, mut lines: Lines, mut listing: Option<Listing>) -> Result<(), Stop> {
        let started = Instant::now();
        let mut has_told = false;
        loop {
            let patience = match listing {
                Some(_) => STREAMED_LIST_PATIENCE,
                None => (2 * WATCH_TIMEOUT_MIN + WATCH_TIMEOUT_GRACE).saturating_sub(started.elapsed()),
            };
            let next = tokio::select! {
                () = self.sender.closed() => return Err(Stop::Closed),
                next = timeout(patience, lines.next()) => next,
            };
            let line = match next {
                Ok(Ok(Some(line))) => line,
                Ok(Err(reason)) => return Err(Stop::Failed { reason, is_refused: false }),
                Err(_) if listing.is_some() => return Err(Stop::NotStreamed),
                Ok(Ok(None)) | Err(_) => break,
            };
            self.tell(&line, &mut listing).await?;
            if listing.is_none() {
                self.thrive();
            }
            has_told = true;
        }
        let ended = |what: &str| Stop::Failed { reason: what.to_owned(), is_refused: false };
        if listing.is_some() {
            return Err(ended("the server broke off in the middle of a list"));
        }
        if !has_told && started.elapsed() < WATCH_SHORT {
            return Err(ended("the server ended the watch at once"));
        }
        Ok(())
    }

    /// Something worked.
    fn thrive(&mut self) {
        self.backoff.reset();
        self.refused_resumes = 0;
    }

    /// Tells what stands in a line.
    async fn tell(&mut self, line: &Bytes, listing: &mut Option<Listing>) -> Result<(), Stop> {
        let unreadable =
            |reason: String| Stop::Failed { reason: format!("unreadable event: {reason}"), is_refused: true };
        let line = std::str::from_utf8(line).map_err(|error| unreadable(error.to_string()))?;
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let event = EventWords::read(line).map_err(unreadable)?;
        match event.kind {
            EventKind::Error => {
                let object = EventWords::read_carefully(line).map_or(event.object, |event| event.object);
                let error: ErrorWords = serde_json::from_str(object).unwrap_or_default();
                if error.code == 410 {
                    return Err(Stop::Expired);
                }
                let reason = format!("the server ended the watch: {} {}", error.code, error.message);
                return Err(Stop::Failed { reason, is_refused: true });
            }
            EventKind::Bookmark => {
                let bookmark = Bookmark::read(event.object).map_err(unreadable)?;
                let ended = if bookmark.ends_list { listing.take() } else { None };
                match (ended, &listing) {
                    (Some(listing), _) => {
                        self.end(listing, bookmark.resource_version).await?;
                    }
                    // In the middle of a list no place is one to go on from.
                    (None, Some(_)) => {}
                    (None, None) => self.position = Some(bookmark.resource_version),
                }
            }
            EventKind::Put | EventKind::Removed => {
                let (decoded, object) = self.decode_event(event, line);
                if let Some(decoded) = decoded {
                    let watched = match (event.kind, listing.as_mut()) {
                        (EventKind::Removed, listing) => {
                            listing.into_iter().for_each(|listing| listing.remove(&decoded));
                            Watched::Removed(decoded)
                        }
                        (_, listing) => {
                            listing.into_iter().for_each(|listing| listing.put(&decoded));
                            Watched::Put(decoded)
                        }
                    };
                    self.send(watched).await?;
                }
                if listing.is_none()
                    && let Some(version) = resource_version(object)
                {
                    self.position = Some(version.into_owned());
                }
            }
        }
        Ok(())
    }

    fn decode_event<'a>(&self, event: EventWords<'a>, line: &'a str) -> (Option<Decoded>, &'a str) {
        if let Ok(decoded) = self.decoder.decode_kind(event.object, self.kind()) {
            return (self.known(decoded), event.object);
        }
        // The line may be written in an unusual way.
        let object = EventWords::read_carefully(line).map_or(event.object, |event| event.object);
        (self.decode(object), object)
    }

    fn decode(&self, object: &str) -> Option<Decoded> {
        match self.decoder.decode_kind(object, self.kind()) {
            Ok(decoded) => self.known(decoded),
            Err(error) => {
                warn!(kind = self.kind().plural, "an object that cannot be read is left out: {error}");
                None
            }
        }
    }

    fn known(&self, decoded: Decoded) -> Option<Decoded> {
        if matches!(decoded, Decoded::Unread { .. }) {
            warn!(kind = self.kind().plural, "nobody reads what is watched");
            return None;
        }
        Some(decoded)
    }

    async fn list_in_pages(&mut self) -> Result<(), Stop> {
        let mut listing = self.begin().await?;
        let mut next = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE_OBJECTS}{}", path::of_kind(self.kind()), self.selection());
            if !next.is_empty() {
                path.push_str("&continue=");
                path::push_escaped(&mut path, &next);
            }
            let page = match self.server.fetch(&Call::get(path)).await {
                Ok(page) => page,
                Err(error) => return Err(self.refusal(error).await),
            };
            let page: PageWords<'_> = serde_json::from_slice(&page).map_err(|error| Stop::Failed {
                reason: format!("unreadable list: {error}"),
                is_refused: true,
            })?;
            for object in page.items.into_iter().flatten() {
                if let Some(decoded) = self.decode(object.get()) {
                    listing.put(&decoded);
                    self.send(Watched::Put(decoded)).await?;
                }
            }
            if page.metadata.r#continue.is_empty() {
                return self.end(listing, page.metadata.resource_version).await;
            }
            next = page.metadata.r#continue;
        }
    }

    async fn begin(&mut self) -> Result<Listing, Stop> {
        let listing = Listing::new(self.kind(), self.is_first);
        self.is_first = false;
        self.send(Watched::Began).await?;
        Ok(listing)
    }

    async fn end(&mut self, listing: Listing, resource_version: String) -> Result<(), Stop> {
        if self.is_missing {
            self.is_missing = false;
            info!(kind = self.kind().plural, "the kind is served now");
        }
        self.position = Some(resource_version);
        self.thrive();
        self.send(Watched::Listed(listing.everything())).await
    }

    /// Tells that there is nothing, once.
    async fn report_missing(&mut self) -> Result<(), Stop> {
        self.position = None;
        if self.is_missing {
            return Ok(());
        }
        self.is_missing = true;
        warn!(
            kind = self.kind().plural,
            "the server does not serve {} {}: treated as if there were none, and looked for every {} s",
            self.kind().api_version(),
            self.kind().kind,
            UNSERVED_INTERVAL.as_secs()
        );
        let listing = self.begin().await?;
        self.send(Watched::Listed(listing.everything())).await
    }

    async fn send(&self, watched: Watched) -> Result<(), Stop> {
        let event = WatchEvent { kind: self.kind(), watched };
        self.sender.send(event).await.map_err(|_| Stop::Closed)
    }

    fn kind(&self) -> KindId {
        self.request.kind
    }

    fn selection(&self) -> String {
        let mut query = String::new();
        if let Some(selector) = self.request.field_selector {
            query.push_str("&fieldSelector=");
            path::push_escaped(&mut query, selector);
        }
        query
    }
}
