//! An extender on the loopback device that answers everybody the same.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// What the extender sends.
pub(crate) enum Answer {
    /// All of it; the connection can be used again.
    Whole(String),
    /// This, and then nothing, while the connection stays.
    Unfinished(String),
    /// This, and the connection is closed.
    Cut(String),
}

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// `POST /filter HTTP/1.1`
    pub(crate) line: String,
    /// `name: value`, names in lower case, sorted.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

pub(crate) struct FakeExtender {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    answer: Answer,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
}

impl Answer {
    /// Status 200 with this body.
    pub(crate) fn ok(body: &str) -> Self {
        Answer::Whole(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// This status, such as `500 Internal Server Error`.
    pub(crate) fn status(status: &str) -> Self {
        Answer::Whole(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}"))
    }
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

impl FakeExtender {
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::listen(answer, None).await
    }

    pub(crate) async fn start_tls(answer: Answer, config: ServerConfig) -> Self {
        Self::listen(answer, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn listen(answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let state =
            Arc::new(State { answer, received: Mutex::default(), connections: AtomicUsize::default() });
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
        FakeExtender { address, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl State {
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        while let Some(request) = receive(&mut stream).await {
            self.received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            let (Answer::Whole(text) | Answer::Unfinished(text) | Answer::Cut(text)) = &self.answer;
            if stream.write_all(text.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            match self.answer {
                Answer::Whole(_) => {}
                Answer::Unfinished(_) => std::future::pending().await,
                Answer::Cut(_) => return,
            }
        }
    }
}

/// None when the connection is closed.
async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    const END: &[u8] = b"\r\n\r\n";
    let mut head = Vec::new();
    while !head.ends_with(END) {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("heads are text");
    let mut lines = head.trim_end().lines();
    let line = lines.next().expect("there is a first line").to_owned();
    let mut headers: Vec<String> = lines
        .map(|line| {
            let (name, value) = line.split_once(": ").expect("a header has a value");
            format!("{}: {value}", name.to_lowercase())
        })
        .collect();
    headers.sort();
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
    let length = length.expect("bodies come with their length").parse().expect("it is a number");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received { line, headers, body: String::from_utf8(body).expect("bodies are text") })
}
