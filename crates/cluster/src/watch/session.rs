//! How a watch goes on, whatever happens to its connection.

mod paging;
mod serving;

use std::time::Duration;

use supercargo_model::{KindId, printable};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use super::decoding::{Read, UnreadableLog, decode_event, is_of_kind};
use super::frames::{Frame, Frames, FramesError};
use super::listing::Listing;
use super::pages::PAGE_OBJECTS;
use super::stop::{Asked, Failure, Stop, stop_of};
use super::{Telling, WatchEvent, WatchRequest, Watched};
use crate::backoff::{Backoff, BackoffLimits, Chance};
use supercargo_api::path;
use supercargo_api::watch::{Bookmark, ErrorWords, EventKind, resource_version};
use supercargo_client::{ApiServer, Call, SILENCE_MAX};

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
const UNSERVED_INTERVAL: Duration = Duration::from_secs(20);
/// How often discovery is asked again that says of a kind of which objects are known that it is not served.
const UNSERVED_DOUBT_INTERVAL: Duration = Duration::from_secs(5);
/// How long the server keeps up a watch that begins with a list: between this and twice this, client-go's number. A list of a
/// large cluster takes its time.
const LIST_TIMEOUT_MIN: Duration = Duration::from_secs(300);
/// How long the server keeps up any other watch, at least: it is then ended by the server in good order, and the next one goes
/// on from there on the same connection. Because the server ends it before [`SILENCE_MAX`], silence for that long means that the
/// connection is dead, also where there are no bookmarks; see docs/adr/0008.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(30);
/// What chance adds to it at most, so that not all watches end at once.
const WATCH_TIMEOUT_SPREAD: Duration = Duration::from_secs(10);
/// A watch that began with a list, and is silent for so long afterwards, is followed by one that the server ends sooner. That may
/// be no sign of death. If it is, the next request meets another dead connection at worst, which is noticed within a minute of
/// the death.
const LIST_SILENCE_MAX: Duration = Duration::from_secs(35);
/// A watch that ends sooner, without a word, has failed; one that lasts longer works.
const WATCH_SHORT: Duration = Duration::from_secs(1);
/// One watch that falls silent is a connection that has died. After so many in a row without a word in between, nobody knows whether
/// anything is heard at all.
const SILENCES_TOLD_OF: u32 = 2;
const SILENT: &str = "watches are answered and then carry nothing, one after the other: what the server tells may get lost on the way";
/// A server that is silent for so long in the middle of a list may not know how to end one in a stream: that list is read in
/// pages. The next one is tried in a stream again.
const STREAMED_LIST_PATIENCE: Duration = Duration::from_secs(30);
/// How often a server may refuse to go on from where we were, before everything is listed again. It may have been restored
/// from a backup, and know nothing of that place yet.
const REFUSED_RESUMES_MAX: u32 = 4;
/// When a list that was asked for and has failed is tried again. The watch goes on meanwhile.
const RETELL_INTERVAL: Duration = Duration::from_secs(5);

/// A watch of one kind.
pub(super) struct Session {
    server: ApiServer,
    request: WatchRequest,
    sender: mpsc::Sender<WatchEvent>,
    /// What the watch is asked to tell, and how.
    asked: watch::Receiver<Telling>,
    /// What it tells now.
    telling: Telling,
    backoff: Backoff,
    chance: Chance,
    next: Next,
    told: Told,
    /// Why the watch does not go on, as it was told; none if it goes on.
    stalled: Option<String>,
    /// How many watches in a row have begun and then carried nothing.
    silences: u32,
    /// When a list that was asked for is tried once more.
    retell_at: Option<Instant>,
    unreadable: UnreadableLog,
}

/// What a session does next.
#[derive(Debug)]
enum Next {
    /// List everything.
    List {
        manner: Manner,
        /// The list was asked for although the watch could go on: this is from where it goes on if the list fails.
        fallback: Option<String>,
    },
    /// Follow what has changed since a revision.
    Resume {
        /// The revision up to which everything was told.
        position: String,
        /// How often the server has refused to go on from there.
        refusals: u32,
    },
}

/// How everything is listed. Every list begins with a stream, and goes down these ways as far as it has to.
///
/// None of them names a `resourceVersion`, so that all are as new as the server's storage. client-go begins with
/// `resourceVersion=0`, which the server answers from its cache: that spares etcd a read, but may be older than what was known
/// before, and room that a scheduler has given away would seem to be free. A stream without a revision comes from the cache as
/// well, once that is new enough. Only pages are read from etcd, by servers that cannot stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// In a stream, which is followed afterwards: neither side holds the list.
    Stream,
    /// In pages, since the server did not stream the list.
    Pages,
    /// In one answer, since the server forgot the revision of the pages before they were read. client-go does the same.
    Whole,
}

/// What was told about the kind so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// No list has begun: nothing can vanish.
    Nothing,
    /// Objects, perhaps.
    Objects,
    /// Objects, although discovery says since then that the kind is not served: it is asked again.
    Doubted { since: Instant },
    /// That the kind is not served.
    Unserved,
}

/// How far a stream has come.
enum Phase {
    /// A list is expected.
    Opened,
    /// A list is being read.
    Listing(Listing),
    /// Changes are told.
    Following,
}

impl Session {
    pub(super) fn new(
        server: ApiServer,
        request: WatchRequest,
        mut asked: watch::Receiver<Telling>,
        seed: u64,
        sender: mpsc::Sender<WatchEvent>,
    ) -> Self {
        // Watches that start together go separate ways.
        let mut chance = Chance::named(seed, request.kind.plural);
        let telling = asked.borrow_and_update().clone();
        Session {
            unreadable: UnreadableLog::new(request.kind),
            server,
            request,
            sender,
            asked,
            telling,
            backoff: Backoff::new(BACKOFF, chance.fork()),
            chance,
            next: Next::List { manner: Manner::Stream, fallback: None },
            told: if request.is_known { Told::Objects } else { Told::Nothing },
            stalled: None,
            silences: 0,
            retell_at: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            if let Err(stop) = self.round().await
                && self.handle(stop).await.is_err()
            {
                return;
            }
        }
    }

    /// One request: a list, or a watch from its beginning to its end.
    async fn round(&mut self) -> Result<(), Stop> {
        self.unreadable.write_suppressed();
        if self.asked.has_changed().unwrap_or(false) {
            self.tell_again();
        }
        match &self.next {
            Next::Resume { position, .. } => {
                let from = format!("&resourceVersion={position}");
                let seconds = WATCH_TIMEOUT_MIN + WATCH_TIMEOUT_SPREAD.mul_f64(self.chance.fraction());
                let frames = self.open(Asked::Changes, seconds, &from).await?;
                self.follow(frames, Phase::Following).await
            }
            Next::List { manner: Manner::Stream, .. } => {
                let from = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
                let seconds = LIST_TIMEOUT_MIN.mul_f64(1.0 + self.chance.fraction());
                let frames = self.open(Asked::StreamedList, seconds, from).await?;
                self.follow(frames, Phase::Opened).await
            }
            Next::List { manner: Manner::Pages, .. } => self.list(Some(PAGE_OBJECTS)).await,
            Next::List { manner: Manner::Whole, .. } => self.list(None).await,
        }
    }

    /// Decides what comes next after a request has stopped.
    async fn handle(&mut self, stop: Stop) -> Result<(), Stop> {
        let kind = self.kind().plural;
        let mut wait_min = Duration::ZERO;
        let mut longest = BACKOFF.longest;
        match self.look_into(stop).await? {
            Stop::Closed => return Err(Stop::Closed),
            Stop::NotStreamed => {
                debug!(kind, "the server does not stream this list, it comes in pages");
                self.list_by(Manner::Pages);
                return Ok(());
            }
            Stop::PagesExpired => {
                info!(kind, "the list has become too old between two pages, it comes in one answer");
                self.list_by(Manner::Whole);
                return Ok(());
            }
            Stop::Unserved if self.doubts() => {
                self.stall("discovery says that the kind is not served, and is asked again".to_owned())
                    .await?;
                return self.wait(UNSERVED_DOUBT_INTERVAL).await;
            }
            Stop::Unserved => {
                self.next = Next::List { manner: Manner::Stream, fallback: None };
                self.tell_unserved().await?;
                return self.wait(UNSERVED_INTERVAL).await;
            }
            Stop::Expired => {
                info!(kind, "the watch is too old for the server, everything is listed again");
                self.next = Next::List { manner: Manner::Stream, fallback: None };
            }
            Stop::Failed(Failure { reason, is_refused, retry_after, .. }) => {
                self.stall(reason).await?;
                (wait_min, longest) =
                    (retry_after, if is_refused { BACKOFF.longest } else { UNANSWERED_WAIT_MAX });
                self.failed(is_refused);
            }
        }
        let wait = self.backoff.next(longest).max(wait_min);
        self.wait(wait).await
    }

    /// Tells why the watch does not go on. The same reason is told, and written to the log, only once.
    async fn stall(&mut self, reason: String) -> Result<(), Stop> {
        let kind = self.kind().plural;
        if self.stalled.as_ref() == Some(&reason) {
            debug!(err = %reason, kind, "Cannot watch, trying again");
            return Ok(());
        }
        warn!(err = %reason, kind, "Cannot watch, trying again");
        self.stalled = Some(reason.clone());
        self.send(Watched::Stalled { reason }).await
    }

    fn list_by(&mut self, other: Manner) {
        if let Next::List { manner, .. } = &mut self.next {
            *manner = other;
        }
    }

    fn failed(&mut self, is_refused: bool) {
        match &mut self.next {
            // What was known goes on to be followed; the list is tried again later.
            Next::List { fallback, .. } => {
                if let Some(position) = fallback.take() {
                    self.next = Next::Resume { position, refusals: 0 };
                    self.retell_at = Some(Instant::now() + RETELL_INTERVAL);
                }
            }
            Next::Resume { refusals, .. } if is_refused => {
                *refusals += 1;
                if *refusals > REFUSED_RESUMES_MAX {
                    self.next = Next::List { manner: Manner::Stream, fallback: None };
                }
            }
            Next::Resume { .. } => {}
        }
    }

    /// Lists everything once more, as it was asked to. If that fails, the watch goes on from where it was.
    fn tell_again(&mut self) {
        self.telling = self.asked.borrow_and_update().clone();
        self.retell_at = None;
        if let Next::Resume { position, .. } = &mut self.next {
            let fallback = Some(std::mem::take(position));
            self.next = Next::List { manner: Manner::Stream, fallback };
        }
    }

    /// Waits, unless the receiver is gone.
    async fn wait(&self, wait: Duration) -> Result<(), Stop> {
        tokio::select! {
            () = self.sender.closed() => Err(Stop::Closed),
            () = sleep(wait) => Ok(()),
        }
    }

    async fn open(&mut self, asked: Asked, server_timeout: Duration, from: &str) -> Result<Frames, Stop> {
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}{from}{}",
            path::of_kind(self.kind()),
            server_timeout.as_secs(),
            self.selection()
        );
        let call = if self.telling.decoder.reads_protobuf(self.kind()) {
            Call::watch_in_protobuf(path)
        } else {
            Call::get(path)
        };
        let answer = match self.server.open(&call).await {
            Ok(answer) => answer,
            Err(error) => return Err(stop_of(self.kind(), asked, &error)),
        };
        self.tell_served().await?;
        // Who serves the watch serves the kind, whether anything comes then or not.
        if let Told::Doubted { .. } = self.told {
            self.told = Told::Objects;
        }
        // Whatever comes then, somebody else keeps up the watch.
        let ends_by = Instant::now() + server_timeout + SILENCE_MAX;
        Ok(match self.kind() {
            KindId::POD => Frames::awaited(answer, ends_by),
            _ => Frames::new(answer, ends_by),
        })
    }

    /// Reads a stream to its end.
    async fn follow(&mut self, mut frames: Frames, mut phase: Phase) -> Result<(), Stop> {
        let started = Instant::now();
        // The server keeps up a watch that began with a list for longer than it may be silent.
        let may_be_silent = !matches!(phase, Phase::Following);
        let mut has_worked = false;
        loop {
            let is_list = !matches!(phase, Phase::Following);
            let patience = match (is_list, may_be_silent) {
                (true, _) => STREAMED_LIST_PATIENCE,
                (false, true) => LIST_SILENCE_MAX,
                (false, false) => SILENCE_MAX,
            };
            let retell_at = self.retell_at;
            let next = tokio::select! {
                biased;
                // Comes first, since most of the time a frame is there: that costs no look at the others.
                next = frames.next(patience) => next,
                () = self.sender.closed() => return Err(Stop::Closed),
                Ok(()) = self.asked.changed(), if !is_list => {
                    self.tell_again();
                    return Ok(());
                }
                () = sleep_until(retell_at.unwrap_or(started)), if retell_at.is_some() && !is_list => {
                    self.tell_again();
                    return Ok(());
                }
                () = sleep_until(started + WATCH_SHORT), if !has_worked && !is_list => {
                    has_worked = true;
                    // An answer that begins is no sign of life if others have begun and then told nothing.
                    if self.silences == 0 {
                        self.thrive().await?;
                    }
                    continue;
                }
            };
            let frame = match next {
                Ok(Some(frame)) => frame,
                Err(FramesError::Broken(reason)) => return Err(Stop::broken(reason)),
                Err(FramesError::Silent) if is_list => {
                    self.server.give_up_connections();
                    return Err(Stop::NotStreamed);
                }
                Err(FramesError::Silent) if may_be_silent => return Ok(()),
                Err(FramesError::Silent) => {
                    // Requests must not meet other connections that have died together with this one.
                    self.server.give_up_connections();
                    self.silences += 1;
                    if self.silences >= SILENCES_TOLD_OF {
                        return Err(Stop::broken(SILENT.to_owned()));
                    }
                    info!(
                        kind = self.kind().plural,
                        "the connection of a watch has carried nothing for {} s, going on with another one",
                        patience.as_secs()
                    );
                    return Ok(());
                }
                Err(FramesError::Overdue) if is_list => {
                    return Err(Stop::broken("a list did not come to its end in time".to_owned()));
                }
                Err(FramesError::Overdue) => {
                    debug!(
                        kind = self.kind().plural,
                        "nobody has ended the watch in time, going on with another one"
                    );
                    return Ok(());
                }
                Ok(None) if is_list => {
                    return Err(Stop::broken("the server broke off in the middle of a list".to_owned()));
                }
                Ok(None) if !has_worked => {
                    return Err(Stop::broken("the server ended the watch at once".to_owned()));
                }
                Ok(None) => {
                    self.silences = 0;
                    return self.thrive().await;
                }
            };
            self.silences = 0;
            self.tell(&frame, &mut phase).await?;
            if matches!(phase, Phase::Following) {
                has_worked = true;
                self.thrive().await?;
            }
        }
    }

    /// The watch works.
    async fn thrive(&mut self) -> Result<(), Stop> {
        if let Next::Resume { refusals, .. } = &mut self.next {
            *refusals = 0;
        }
        self.backoff.reset();
        if self.stalled.take().is_some() {
            self.send(Watched::Resumed).await?;
        }
        Ok(())
    }

    /// Tells what stands in a frame.
    async fn tell(&mut self, frame: &Frame, phase: &mut Phase) -> Result<(), Stop> {
        let unreadable = |reason: String| Stop::refused(format!("unreadable event: {reason}"));
        let event = frame.event().map_err(unreadable)?;
        if let (Phase::Opened, EventKind::Put | EventKind::Removed | EventKind::Bookmark) =
            (&phase, event.kind)
        {
            *phase = Phase::Listing(self.begin().await?);
        }
        match event.kind {
            EventKind::Error => {
                let event = frame.event_read_carefully().unwrap_or(event);
                let error = ErrorWords::read(event.object);
                if error.code == 410 {
                    return Err(Stop::Expired);
                }
                let message = printable(&error.message);
                return Err(Stop::refused(format!("the server ended the watch: {} {message}", error.code)));
            }
            EventKind::Bookmark => {
                let bookmark = Bookmark::read(event.object).map_err(unreadable)?;
                match phase {
                    Phase::Following => self.advance(bookmark.resource_version),
                    // In the middle of a list no place is one to go on from.
                    Phase::Opened | Phase::Listing(_) if !bookmark.ends_list => {}
                    // From nowhere, the next watch would begin with the present, and what happened before would be lost.
                    Phase::Opened | Phase::Listing(_) if bookmark.resource_version.is_empty() => {
                        return Err(unreadable(
                            "a list ends without a resourceVersion to go on from".to_owned(),
                        ));
                    }
                    Phase::Opened | Phase::Listing(_) => {
                        if let Phase::Listing(listing) = std::mem::replace(phase, Phase::Following) {
                            self.end(listing, bookmark.resource_version).await?;
                        }
                    }
                }
            }
            EventKind::Put | EventKind::Removed if !is_of_kind(event.object, self.kind()) => {
                return Err(unreadable("it is about an object of another kind".to_owned()));
            }
            EventKind::Put | EventKind::Removed => {
                let (read, object) = decode_event(&self.telling.decoder, self.kind(), event, frame);
                let listing = if let Phase::Listing(listing) = phase { Some(listing) } else { None };
                self.tell_object(event.kind, read, listing).await?;
                if let (Phase::Following, Some(version)) = (&phase, resource_version(object)) {
                    self.advance(version.into_owned());
                }
            }
        }
        Ok(())
    }

    /// Tells what happened to an object.
    async fn tell_object(
        &self,
        happened: EventKind,
        read: Read,
        listing: Option<&mut Listing>,
    ) -> Result<(), Stop> {
        match read.told(happened, listing, &self.unreadable) {
            Some(watched) => self.send(watched).await,
            None => Ok(()),
        }
    }

    /// Everything up to this revision was told.
    fn advance(&mut self, position: String) {
        if position.is_empty() {
            return;
        }
        self.next = Next::Resume { position, refusals: 0 };
    }

    /// The server has begun to tell a list.
    async fn begin(&mut self) -> Result<Listing, Stop> {
        self.tell_served().await?;
        let listing = Listing::new(self.kind(), self.told == Told::Nothing);
        self.told = Told::Objects;
        self.send(Watched::Began).await?;
        Ok(listing)
    }

    async fn end(&mut self, listing: Listing, resource_version: String) -> Result<(), Stop> {
        self.advance(resource_version);
        self.retell_at = None;
        self.backoff.reset();
        self.stalled = None;
        self.send(Watched::Listed(listing.everything())).await
    }

    async fn send(&self, watched: Watched) -> Result<(), Stop> {
        let event = WatchEvent { kind: self.kind(), telling: self.telling.number, watched };
        self.sender.send(event).await.map_err(|_| Stop::Closed)
    }

    fn kind(&self) -> KindId {
        self.request.kind
    }

    fn selection(&self) -> String {
        let mut query = String::new();
        if let Some(selector) = self.telling.field_selector {
            query.push_str("&fieldSelector=");
            path::push_escaped(&mut query, selector);
        }
        query
    }
}
