//! Which connection is closed in favour of a new one. Connections are played: their tasks wait for ever.

use std::future::pending;
use std::net::IpAddr;
use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance};

use crate::serve::connections::{
    BEGINNING_MIN, CONNECTIONS_MAX, CONNECTIONS_PER_PEER_MAX, Connections, NEWCOMER_SLOTS, Peer,
    SILENT_AFTER, STALLED_AFTER, Slot, Stage,
};

/// A connection: the slot, and the task that is aborted when the connection is closed.
struct Played {
    slot: Slot,
    task: JoinHandle<()>,
}

impl Played {
    async fn is_closed(&self) -> bool {
        // An aborted task ends when its turn comes, behind all others that were spawned.
        for _ in 0..CONNECTIONS_MAX {
            if self.task.is_finished() {
                return true;
            }
            yield_now().await;
        }
        false
    }
}

fn peer(number: u8) -> Peer {
    Peer::of(IpAddr::from([10, 0, 0, number]))
}

async fn open(connections: &Connections, peer: Peer) -> Played {
    let slot = loop {
        match connections.open(peer, Stage::Silent) {
            Ok(slot) => break slot,
            Err(pause) => advance(pause).await,
        }
    };
    let task = tokio::spawn(pending());
    connections.served_by(slot.number(), task.abort_handle());
    Played { slot, task }
}

async fn open_at(connections: &Connections, peer: Peer, stage: Stage, is_trusted: bool) -> Played {
    let played = open(connections, peer).await;
    played.slot.enter(stage);
    if is_trusted {
        played.slot.trust();
    }
    played
}

/// As many connections at this stage as one address may have, and one of each address until all slots are taken.
async fn fill(connections: &Connections, stage: Stage, is_trusted: bool) -> Vec<Played> {
    let mut all = Vec::new();
    while connections.count() < CONNECTIONS_MAX {
        // No address reaches its own limit.
        let number = u8::try_from(all.len() % 4).expect("small");
        all.push(open_at(connections, peer(number), stage, is_trusted).await);
    }
    all
}

async fn several(connections: &Connections, count: usize, peer: Peer, stage: Stage) -> Vec<Played> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(open_at(connections, peer, stage, false).await);
    }
    all
}

async fn closed(all: &[Played]) -> usize {
    let mut closed = 0;
    for played in all {
        closed += usize::from(played.is_closed().await);
    }
    closed
}

#[tokio::test(start_paused = true)]
async fn the_least_useful_one_is_closed() {
    // From the least useful one to the most useful one; the first two have stalled.
    let ranks = [
        (Stage::Silent, false),
        (Stage::Fresh, false),
        (Stage::Idle, false),
        (Stage::Handshaking, false),
        (Stage::Answering, false),
        (Stage::Idle, true),
        (Stage::Answering, true),
    ];
    // A newcomer does not go before those in use unless there are many: see below.
    for lower in (0..ranks.len() - 1).filter(|lower| *lower != 3) {
        let connections = Connections::default();
        let (stage, is_trusted) = ranks[lower];
        let victim = open_at(&connections, peer(9), stage, is_trusted).await;
        if lower < 2 {
            // Silent, or stalled: both need their time.
            advance(STALLED_AFTER).await;
        }
        // Newcomers in plenty, so that their slots play no part, and younger than the victim.
        let (stage, is_trusted) = ranks[lower + 1];
        let others = fill(&connections, stage, is_trusted).await;
        if lower + 1 == 1 {
            advance(STALLED_AFTER).await;
        }
        let newcomer = open(&connections, peer(8)).await;
        assert!(victim.is_closed().await, "rank {lower} goes before rank {}", lower + 1);
        assert_eq!(closed(&others).await, 0);
        assert!(!newcomer.is_closed().await);
        assert_eq!(connections.count(), CONNECTIONS_MAX);
    }
}

#[tokio::test(start_paused = true)]
async fn of_idle_ones_the_address_with_most_connections_loses_the_oldest() {
    let connections = Connections::default();
    let probe = open_at(&connections, peer(1), Stage::Idle, false).await;
    advance(Duration::from_secs(1)).await;
    let oldest = open_at(&connections, peer(2), Stage::Idle, false).await;
    advance(Duration::from_secs(1)).await;
    let mut others = Vec::new();
    while connections.count() < CONNECTIONS_MAX {
        let number = if others.len() < CONNECTIONS_PER_PEER_MAX - 1 { 2 } else { 3 };
        others.push(open_at(&connections, peer(number), Stage::Idle, false).await);
    }
    let newcomer = open(&connections, peer(4)).await;
    assert!(oldest.is_closed().await);
    assert!(!probe.is_closed().await && !newcomer.is_closed().await);
    assert_eq!(closed(&others).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_address_at_its_limit_loses_one_of_its_own() {
    let connections = Connections::default();
    let other = open_at(&connections, peer(1), Stage::Silent, false).await;
    let hostile = several(&connections, CONNECTIONS_PER_PEER_MAX, peer(2), Stage::Idle).await;
    let more = several(&connections, 1_000, peer(2), Stage::Idle).await;
    assert_eq!(connections.count(), CONNECTIONS_PER_PEER_MAX + 1);
    assert!(!other.is_closed().await, "another address keeps even a silent connection");
    assert_eq!(closed(&hostile).await + closed(&more).await, 1_000);
}

#[tokio::test(start_paused = true)]
async fn newcomers_keep_slots_though_all_others_are_in_use() {
    for is_trusted in [false, true] {
        let connections = Connections::default();
        let busy = fill(&connections, Stage::Answering, is_trusted).await;
        let probe = open_at(&connections, peer(1), Stage::Handshaking, false).await;
        let others = several(&connections, NEWCOMER_SLOTS - 1, peer(1), Stage::Handshaking).await;
        assert!(!probe.is_closed().await, "the probe outlives {} newcomers", others.len());
        assert_eq!(closed(&busy).await, NEWCOMER_SLOTS, "in whose favour some in use were closed");
        let next = open(&connections, peer(1)).await;
        assert!(probe.is_closed().await, "then the newcomers are among themselves");
        assert!(!next.is_closed().await);
    }
}

#[tokio::test(start_paused = true)]
async fn those_that_begin_have_their_time() {
    for (stage, time) in [(Stage::Silent, SILENT_AFTER), (Stage::Handshaking, BEGINNING_MIN)] {
        let connections = Connections::default();
        let began = Instant::now();
        let all = several(&connections, CONNECTIONS_PER_PEER_MAX, peer(1), stage).await;
        let next = connections.open(peer(1), Stage::Silent);
        assert_eq!(next.err(), Some(time), "none is closed before its time");
        assert_eq!(closed(&all).await, 0);
        let more = several(&connections, CONNECTIONS_PER_PEER_MAX, peer(1), stage).await;
        assert_eq!(began.elapsed(), time, "all wait for the same time");
        assert_eq!((closed(&all).await, closed(&more).await), (CONNECTIONS_PER_PEER_MAX, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn slots_are_given_back() {
    let connections = Connections::default();
    let played = open(&connections, peer(1)).await;
    assert_eq!(connections.count(), 1);
    drop(played.slot);
    assert_eq!(connections.count(), 0);
    connections.shed_one();
}

#[test]
fn what_counts_as_one_peer() {
    let of = |text: &str| Peer::of(text.parse().expect("an address"));
    assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"), "a socket of both families");
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"), "one network");
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
}
