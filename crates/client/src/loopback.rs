//! A server on the loopback device that answers everybody the same, as servers do or in ways that they should not: for tests of clients.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Play {
    /// Sends this; the connection can be used again.
    Whole(String),
    /// Sends this, and then nothing, while the connection stays.
    Unfinished(String),
    /// Sends this, and closes the connection.
    Cut(String),
    /// Sends this, and then more and more.
    Flood(String),
}

/// The server. It ends with the runtime of the test.
#[derive(Debug)]
pub struct LoopbackServer {
    address: SocketAddr,
    state: Arc<State>,
}

/// A request that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The first line, such as `POST /filter HTTP/1.1`.
    pub line: String,
    /// `name: value`, names in lower case, sorted.
    pub headers: Vec<String>,
    /// What follows.
    pub body: String,
}

impl Received {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

#[derive(Debug)]
struct State {
    play: Play,
    /// Whether requests are lines, and not HTTP.
    is_lines: bool,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    sent: AtomicU64,
}

impl Play {
    /// A good answer.
    pub fn ok(body: &str) -> Self {
        Play::Whole(head("200 OK", body.len()) + body)
    }

    /// An answer with this status.
    pub fn status(status: &str, body: &str) -> Self {
        Play::Whole(head(status, body.len()) + body)
    }
}

/// What stands before a body of that length.
pub fn head(status: &str, length: usize) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n")
}

impl LoopbackServer {
    /// Speaks HTTP.
    pub async fn http(play: Play) -> Self {
        Self::listen(play, false, None).await
    }

    /// Is asked by lines.
    pub async fn lines(play: Play) -> Self {
        Self::listen(play, true, None).await
    }

    /// Speaks HTTP over TLS.
    pub async fn https(play: Play, config: ServerConfig) -> Self {
        Self::listen(play, false, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn listen(play: Play, is_lines: bool, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State {
            play,
            is_lines,
            received: Mutex::default(),
            connections: AtomicUsize::default(),
            sent: AtomicU64::default(),
        });
        let accepting = state.clone();
        // Ends with the runtime of the test.
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, tls) = (accepting.clone(), tls.clone());
                state.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    match tls {
                        None => state.serve(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                state.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        LoopbackServer { address, state }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://` and its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its address, with the port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// What was asked so far.
    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many bytes went out.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }
}

impl State {
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        while let Some(request) = self.receive(&mut stream).await {
            self.received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            let (Play::Whole(text) | Play::Unfinished(text) | Play::Cut(text) | Play::Flood(text)) =
                &self.play;
            if stream.write_all(text.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            match self.play {
                Play::Whole(_) => {}
                Play::Unfinished(_) => std::future::pending().await,
                Play::Cut(_) => return,
                Play::Flood(_) => {
                    let piece = vec![b'x'; 1 << 16];
                    while stream.write_all(&piece).await.is_ok() {
                        self.sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
                    }
                    return;
                }
            }
        }
    }

    /// None when the connection is closed.
    async fn receive(&self, stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
        let end: &[u8] = if self.is_lines { b"\n" } else { b"\r\n\r\n" };
        let mut head = Vec::new();
        while !head.ends_with(end) {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).expect("heads are text");
        let mut lines = head.trim_end().lines();
        let line = lines.next().unwrap_or_default().to_owned();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").expect("a header has a value");
            format!("{}: {value}", name.to_lowercase())
        };
        let mut headers: Vec<String> = lines.map(header).collect();
        headers.sort();
        let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        stream.read_exact(&mut body).await.ok()?;
        Some(Received { line, headers, body: String::from_utf8(body).expect("bodies are text") })
    }
}
