//! Hostile clients over real sockets, from the same address as the probe.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::client::{Authority, Reply, ask, connect, get};
use super::serving::{routes, start};
use crate::serve::connection::{HEAD_BYTES_MAX, REQUESTS_PER_CONNECTION_MAX};
use crate::serve::connections::CONNECTIONS_MAX;
use crate::serve::{ALWAYS_ALLOW_PATHS, Access, ClientAuthority};

/// How a hostile client behaves. Each connects again when it is closed.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// Connects and sends nothing.
    Silent,
    /// Sends a few bytes of a handshake.
    HalfHandshake,
    /// Agrees on TLS and sends nothing.
    NoRequest,
    /// Sends a byte of a head now and then.
    SlowHead,
    /// Asks for what everybody may read, again and again.
    KeepAlive,
    /// Asks and asks, and never reads.
    NeverReads,
}

const STYLES: [Style; 6] = [
    Style::Silent,
    Style::HalfHandshake,
    Style::NoRequest,
    Style::SlowHead,
    Style::KeepAlive,
    Style::NeverReads,
];

/// How often a hostile client connects again at most, so that the test's own processor time is bounded.
const RECONNECTIONS_MAX: usize = 1;
/// How long a hostile client waits between its bytes and requests.
const PAUSE: Duration = Duration::from_millis(200);
/// What a kubelet gives a probe by default. Half of the probes have to be within it, and all within [`PATIENCE`], so that a busy machine, on which
/// hostile clients and the server share two cores with other tests, does not fail the test.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
const PROBES: usize = 20;

impl Style {
    async fn disturb(self, address: SocketAddr) -> std::io::Result<()> {
        let mut byte = [0];
        match self {
            Style::Silent => {
                TcpStream::connect(address).await?.read_exact(&mut byte).await?;
            }
            Style::HalfHandshake => {
                let mut stream = TcpStream::connect(address).await?;
                // The beginning of a record that holds a ClientHello.
                stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).await?;
                stream.read_exact(&mut byte).await?;
            }
            Style::NoRequest => {
                connect(address, None).await?.read_exact(&mut byte).await?;
            }
            Style::SlowHead => {
                let mut stream = connect(address, None).await?;
                stream.write_all(b"GET /livez HTTP/1.1\r\nx: ").await?;
                while timeout(PAUSE, stream.read_exact(&mut byte)).await.is_err() {
                    stream.write_all(b"y").await?;
                }
            }
            Style::KeepAlive => {
                let mut stream = connect(address, None).await?;
                loop {
                    ask(&mut stream, "/livez", "").await?;
                    sleep(PAUSE).await;
                }
            }
            Style::NeverReads => {
                let mut stream = connect(address, None).await?;
                loop {
                    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
                    sleep(PAUSE).await;
                }
            }
        }
        Ok(())
    }
}

/// A runtime of its own: hostile clients are other processes, and do not compete with the server for its threads.
struct Elsewhere(Option<Runtime>);

impl Elsewhere {
    fn new() -> Self {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Elsewhere(Some(runtime.expect("a runtime")))
    }

    fn handle(&self) -> &runtime::Handle {
        self.0.as_ref().expect("it runs until it is dropped").handle()
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.0.take().expect("it is dropped once").shutdown_background();
    }
}

/// Reads a page on a connection of its own, as a probe does. A kubelet needs three failures in a row to restart a container; here a second try
/// has to do.
async fn probe(address: SocketAddr, path: &str, certificate: Option<(Vec<u8>, Vec<u8>)>) -> Reply {
    for _ in 0..2 {
        let reply = timeout(PATIENCE, get(address, path, "", certificate.clone())).await;
        if let Ok(reply) = reply.unwrap_or_else(|_| panic!("{path}: no answer within {PATIENCE:?}")) {
            return reply;
        }
    }
    panic!("{path}: two connections in a row were closed");
}

/// Probes and an authenticated client, while so many hostile clients do what they do.
async fn check(hostile: usize) {
    let authority = Authority::new();
    let access = Access::new(&ALWAYS_ALLOW_PATHS).expect("good paths");
    let served = Elsewhere::new();
    let starting = start(routes(), access, ClientAuthority::Pem(authority.pem.clone()));
    let server = served.handle().spawn(starting).await.expect("no panic");
    let address = server.address;
    let admin = authority.sign("admin", &["system:masters"]);
    let mut kept = connect(address, Some(admin.clone())).await.expect("connected");
    assert_eq!(ask(&mut kept, "/metrics", "").await.expect("an answer").0, 200);
    let mut disturbing = JoinSet::new();
    let elsewhere = Elsewhere::new();
    for number in 0..hostile {
        let disturb = async move {
            for _ in 0..=RECONNECTIONS_MAX {
                // A hostile client that is closed has what it deserves.
                let _ = STYLES[number % STYLES.len()].disturb(address).await;
                sleep(PAUSE).await;
            }
        };
        disturbing.spawn_on(disturb, elsewhere.handle());
    }
    let mut took = Vec::new();
    for number in 0..PROBES {
        let began = Instant::now();
        let livez = probe(address, "/livez", None).await;
        assert_eq!((livez.status, livez.body.as_str()), (200, "ok"), "probe {number}");
        took.push(began.elapsed());
        assert_eq!(probe(address, "/metrics", Some(admin.clone())).await.status, 200, "probe {number}");
        let metrics = timeout(PATIENCE, ask(&mut kept, "/metrics", "")).await.expect("in time");
        assert_eq!(metrics.expect("an authenticated client's connection is not closed").0, 200);
        sleep(Duration::from_millis(50)).await;
    }
    took.sort();
    assert!(took[PROBES / 2] < PROBE_TIMEOUT, "{took:?}");
    assert!(hostile <= CONNECTIONS_MAX || disturbing.len() > CONNECTIONS_MAX, "they were at it all the time");
    disturbing.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_hundred_hostile_connections() {
    check(400).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_hostile_connections() {
    check(2_000).await;
}

#[tokio::test]
async fn a_head_has_a_longest_length() {
    let access = Access::new(&["/*"]).expect("a good path");
    let server = start(routes(), access, ClientAuthority::None).await;
    let mut stream = connect(server.address, None).await.expect("connected");
    let long = format!("x: {}\r\n", "y".repeat(HEAD_BYTES_MAX / 2));
    assert_eq!(ask(&mut stream, "/livez", &long).await.expect("an answer").0, 200);
    let mut stream = connect(server.address, None).await.expect("connected");
    let longer = format!("x: {}\r\n", "y".repeat(2 * HEAD_BYTES_MAX));
    match ask(&mut stream, "/livez", &longer).await {
        Ok((status, _)) => assert_eq!(status, 431),
        // The answer may be lost with the connection, as the client is still sending.
        Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::TimedOut),
    }
}

#[tokio::test]
async fn a_connection_has_a_last_request() {
    let access = Access::new(&["/*"]).expect("a good path");
    let server = start(routes(), access, ClientAuthority::None).await;
    let mut stream = connect(server.address, None).await.expect("connected");
    for number in 1..=REQUESTS_PER_CONNECTION_MAX {
        let (status, text) = ask(&mut stream, "/livez", "").await.expect("an answer");
        assert_eq!(status, 200);
        assert_eq!(
            text.contains("connection: close"),
            number == REQUESTS_PER_CONNECTION_MAX,
            "{number}: {text}"
        );
    }
    assert!(ask(&mut stream, "/livez", "").await.is_err());
}
