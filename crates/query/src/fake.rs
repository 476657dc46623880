//! A server on the loopback device that answers everybody the same, in ways that servers should not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Play {
    /// Sends this; the connection can be used again.
    Whole(String),
    /// Sends this, and then nothing, while the connection stays.
    Unfinished(String),
    /// Sends this, and closes the connection.
    Cut(String),
    /// Sends this, and then more and more.
    Flood(String),
}

pub(crate) struct FakeServer {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    play: Play,
    /// Whether requests are lines, and not HTTP.
    is_lines: bool,
    received: Mutex<Vec<String>>,
    connections: AtomicUsize,
    sent: AtomicU64,
}

impl Play {
    /// A good answer.
    pub(crate) fn ok(body: &str) -> Self {
        Play::Whole(head("200 OK", body.len()) + body)
    }

    /// An answer with this status.
    pub(crate) fn status(status: &str, body: &str) -> Self {
        Play::Whole(head(status, body.len()) + body)
    }
}

/// What stands before a body of that length.
pub(crate) fn head(status: &str, length: usize) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n")
}

impl FakeServer {
    pub(crate) async fn http(play: Play) -> Self {
        Self::listen(play, false, None).await
    }

    pub(crate) async fn lines(play: Play) -> Self {
        Self::listen(play, true, None).await
    }

    pub(crate) async fn https(play: Play, config: ServerConfig) -> Self {
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
        FakeServer { address, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// What was asked so far: heads in lower case with their bodies, or lines.
    pub(crate) fn received(&self) -> Vec<String> {
        self.state.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many bytes went out.
    pub(crate) fn sent(&self) -> u64 {
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
    async fn receive(&self, stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
        let end: &[u8] = if self.is_lines { b"\n" } else { b"\r\n\r\n" };
        let mut head = Vec::new();
        while !head.ends_with(end) {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).expect("heads are text");
        if self.is_lines {
            return Some(head.trim_end().to_owned());
        }
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        stream.read_exact(&mut body).await.ok()?;
        // The values of headers are told apart by their case.
        Some(head.trim_end().to_owned() + "\n" + &String::from_utf8(body).expect("bodies are text"))
    }
}
