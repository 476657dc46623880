//! Which connections are open, and which one is closed in favour of a new one.
//!
//! A new connection is always accepted: a probe that has to wait behind connections that other clients hold open would fail,
//! and a failed liveness probe ends the process. So nothing waits for a slot. When all slots are taken, the least useful connection
//! is closed, in this order ([`Usefulness`]):
//!
//! 1. a silent connection, on which nothing was received for [`SILENT_AFTER`]: a client that wants something sends its first bytes with its
//!    first packet;
//! 2. a connection that has stalled in its handshake, or after it, before its first request;
//! 3. an anonymous connection that has its answer, the one that has been idle for longest first;
//! 4. a connection that has not stalled in its handshake, or before its first request, yet: here are new probes;
//! 5. an anonymous connection whose request is being answered;
//! 6. a connection of a client that was allowed to read more than everybody may, idle;
//! 7. the same, with a request that is being answered.
//!
//! A flood of clients that begin and stop would close the probes among them; so each connection of rank 4 is left open for [`BEGINNING_MIN`], and
//! new connections wait for that in the kernel's queue. The wait is short, as it is the same time for all.
//!
//! Within one rank the address with the most connections loses one, and of its connections the oldest. The scheme does not depend on addresses:
//! it also holds when a hostile client and a probe come from one address, as behind a NAT or on the loopback interface.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How many connections are open at once.
pub(super) const CONNECTIONS_MAX: usize = 512;

/// How many of them one address may have; the rest are for other addresses.
pub(super) const CONNECTIONS_PER_PEER_MAX: usize = 384;

/// How many slots are kept for connections that have no request under way and no rights: the new ones, probes among them. Without these a
/// new connection would be the least useful one for as long as all others are in use, and the next new one would close it.
pub(super) const NEWCOMER_SLOTS: usize = 128;

/// After so long a handshake, or the wait for the first request, counts as stalled. A probe gives up after a second by default.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(2);

/// After so long a connection on which nothing was received counts as silent.
pub(super) const SILENT_AFTER: Duration = Duration::from_millis(20);

/// So long a connection may take to begin before it is closed in favour of another one that has just begun, too.
pub(super) const BEGINNING_MIN: Duration = Duration::from_millis(100);

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was received yet.
    Silent,
    /// The client has begun to agree on TLS.
    Handshaking,
    /// TLS is agreed on; the first request has not come yet.
    Fresh,
    /// A request is being answered.
    Answering,
    /// The last request was answered, the next one has not come yet.
    Idle,
}

/// How much is lost if a connection is closed; see the module's comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Usefulness {
    Silent,
    Stalled,
    AnonymousIdle,
    Beginning,
    AnonymousAnswering,
    TrustedIdle,
    TrustedAnswering,
}

/// What counts as one peer: an IPv4 address, or the 64 bits of an IPv6 address that name its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer(IpAddr);

impl Peer {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address @ IpAddr::V4(_) => Peer(address),
            // Whoever has one address of such a network has them all.
            IpAddr::V6(address) => Peer(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))),
        }
    }
}

/// The open connections. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Entry>,
    /// How many of them each peer has.
    by_peer: BTreeMap<Peer, usize>,
}

#[derive(Debug)]
struct Entry {
    peer: Peer,
    stage: Stage,
    accepted: Instant,
    /// When the stage began.
    since: Instant,
    /// Whether a request was granted that is not granted to everybody.
    is_trusted: bool,
    /// Ends the task that serves the connection. None until that task is started.
    task: Option<AbortHandle>,
}

/// A place among the open connections, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    connections: Connections,
    number: u64,
}

impl Connections {
    /// Whether a connection of this peer needs another one closed.
    pub(super) fn is_pressed(&self, peer: Peer) -> bool {
        self.lock().pressed(peer).is_some()
    }

    /// Takes a slot for a new connection, which has come so far. If there is none left, another connection is closed; if that one has not had its
    /// time, the error says how long to wait before this is tried again.
    pub(super) fn open(&self, peer: Peer, stage: Stage) -> Result<Slot, Duration> {
        let now = Instant::now();
        let mut table = self.lock();
        if let Some(of) = table.pressed(peer)
            && let Some(victim) = table.least_useful(of, now)
        {
            match table.open.get(&victim).and_then(|entry| entry.time_left(now)) {
                Some(time_left) => return Err(time_left),
                None => table.shed(victim),
            }
        }
        let number = table.next;
        table.next += 1;
        *table.by_peer.entry(peer).or_default() += 1;
        let entry = Entry { peer, stage, accepted: now, since: now, is_trusted: false, task: None };
        table.open.insert(number, entry);
        Ok(Slot { connections: self.clone(), number })
    }

    /// Says which task serves the connection, so that it can be closed.
    pub(super) fn served_by(&self, number: u64, task: AbortHandle) {
        // A connection that was closed already needs no task: it ends by itself.
        if let Some(entry) = self.lock().open.get_mut(&number) {
            entry.task = Some(task);
        }
    }

    /// Closes the least useful connection, as when there are no more file descriptors.
    pub(super) fn shed_one(&self) {
        let mut table = self.lock();
        if let Some(victim) = table.least_useful(None, Instant::now()) {
            table.shed(victim);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().open.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The connection's number, for [`Connections::served_by`].
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The connection has come so far.
    pub(super) fn enter(&self, stage: Stage) {
        self.change(|entry| {
            entry.stage = stage;
            entry.since = Instant::now();
        });
    }

    /// The client may read more than everybody may.
    pub(super) fn trust(&self) {
        self.change(|entry| entry.is_trusted = true);
    }

    fn change(&self, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.connections.lock().open.get_mut(&self.number) {
            change(entry);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.lock().close(self.number);
    }
}

impl Entry {
    fn usefulness(&self, now: Instant) -> Usefulness {
        let age = now.saturating_duration_since(self.since);
        match (self.stage, self.is_trusted) {
            (Stage::Answering, true) => Usefulness::TrustedAnswering,
            (_, true) => Usefulness::TrustedIdle,
            (Stage::Answering, false) => Usefulness::AnonymousAnswering,
            (Stage::Idle, false) => Usefulness::AnonymousIdle,
            (Stage::Silent, false) if age >= SILENT_AFTER => Usefulness::Silent,
            (Stage::Handshaking | Stage::Fresh, false) if age >= STALLED_AFTER => Usefulness::Stalled,
            (Stage::Silent | Stage::Handshaking | Stage::Fresh, false) => Usefulness::Beginning,
        }
    }
}

impl Entry {
    /// How long the connection may go on to begin before it is closed; none if it has had its time.
    fn time_left(&self, now: Instant) -> Option<Duration> {
        let patience = match (self.usefulness(now), self.stage) {
            (Usefulness::Beginning, Stage::Silent) => SILENT_AFTER,
            (Usefulness::Beginning, _) => BEGINNING_MIN,
            _ => return None,
        };
        let left = patience.saturating_sub(now.saturating_duration_since(self.accepted));
        (!left.is_zero()).then_some(left)
    }
}

impl Table {
    /// Whether a connection of this peer needs another one closed, and whose: that of the same peer, or anybody's.
    fn pressed(&self, peer: Peer) -> Option<Option<Peer>> {
        if self.count_of(peer) >= CONNECTIONS_PER_PEER_MAX {
            Some(Some(peer))
        } else if self.open.len() >= CONNECTIONS_MAX {
            Some(None)
        } else {
            None
        }
    }

    fn count_of(&self, peer: Peer) -> usize {
        self.by_peer.get(&peer).copied().unwrap_or_default()
    }

    fn close(&mut self, number: u64) -> Option<Entry> {
        let entry = self.open.remove(&number)?;
        if let Some(count) = self.by_peer.get_mut(&entry.peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&entry.peer);
            }
        }
        Some(entry)
    }

    fn shed(&mut self, number: u64) {
        if let Some(task) = self.close(number).and_then(|entry| entry.task) {
            task.abort();
        }
    }

    /// The least useful connection, of one peer or of all.
    fn least_useful(&self, of: Option<Peer>, now: Instant) -> Option<u64> {
        let mut newcomers = 0;
        let (mut least, mut least_in_use) = (None, None);
        for (number, entry) in &self.open {
            if of.is_some_and(|peer| entry.peer != peer) {
                continue;
            }
            let usefulness = entry.usefulness(now);
            // Those that begin have the same time each, however far they have come.
            let since = if usefulness == Usefulness::Beginning { entry.accepted } else { entry.since };
            // One peer's connections are all of the peer with most.
            let count = if of.is_some() { 0 } else { self.count_of(entry.peer) };
            let rank = Some((usefulness, Reverse(count), since, *number));
            if usefulness >= Usefulness::AnonymousAnswering {
                if least_in_use.is_none() || rank < least_in_use {
                    least_in_use = rank;
                }
            } else {
                newcomers += 1;
                if least.is_none() || rank < least {
                    least = rank;
                }
            }
        }
        // As long as there are few newcomers they keep their slots, and one of the connections in use is closed.
        let chosen = if newcomers < NEWCOMER_SLOTS { least_in_use.or(least) } else { least };
        chosen.map(|(_, _, _, number)| number)
    }
}
