//! An API server for tests: whatever a closure answers, without a socket.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use kube::client::Body;
use tokio::sync::mpsc;
use tower::service_fn;

/// The server.
#[derive(Clone)]
pub(crate) struct Fake {
    answer: Arc<Script>,
    count: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What is answered to which request.
type Script = dyn Fn(usize, &Asked) -> Answer + Send + Sync;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
    pub(crate) headers: HeaderMap,
}

/// What is answered.
pub(crate) struct Answer {
    code: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Option<Frames>,
}

/// Writes an answer piece by piece.
pub(crate) type Writer = mpsc::UnboundedSender<io::Result<Bytes>>;

pub(crate) struct Frames(mpsc::UnboundedReceiver<io::Result<Bytes>>);

impl Fake {
    pub(crate) fn new(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Fake::numbered(move |_, asked| answer(asked))
    }

    /// Requests are numbered from 0.
    pub(crate) fn numbered(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        Fake { answer: Arc::new(answer), count: Arc::default(), asked: Arc::default() }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let fake = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.expect("requests are whole");
                let asked = Asked {
                    method: parts.method,
                    path: parts.uri.path().to_owned(),
                    query: parts.uri.query().unwrap_or_default().to_owned(),
                    body: String::from_utf8(body.to_vec()).expect("requests are text"),
                    headers: parts.headers,
                };
                let number = fake.count.fetch_add(1, Ordering::SeqCst);
                let answer = (fake.answer)(number, &asked);
                fake.asked.lock().expect("no test panics here").push(asked);
                let Some(body) = answer.body else { return std::future::pending().await };
                let mut response = Response::builder().status(answer.code);
                for (name, value) in answer.headers {
                    response = response.header(name, value);
                }
                Ok::<_, Infallible>(response.body(body).expect("answers are well formed"))
            }
        });
        kube::Client::new(service, "default")
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics here").clone()
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> String {
        self.headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }

    /// `METHOD /path?query`
    pub(crate) fn line(&self) -> String {
        match &*self.query {
            "" => format!("{} {}", self.method, self.path),
            query => format!("{} {}?{query}", self.method, self.path),
        }
    }
}

impl Answer {
    pub(crate) fn plain(code: u16, text: &str) -> Self {
        let (writer, answer) = Answer::streamed();
        let _ = writer.send(Ok(Bytes::copy_from_slice(text.as_bytes())));
        Answer { code, ..answer }
    }

    pub(crate) fn ok(text: &str) -> Self {
        Answer::plain(200, text)
    }

    /// An error as Kubernetes tells it.
    pub(crate) fn status(code: u16, message: &str) -> Self {
        let status =
            serde_json::json!({ "kind": "Status", "status": "Failure", "message": message, "code": code });
        Answer::plain(code, &status.to_string())
    }

    /// An answer that goes on until the writer is dropped.
    pub(crate) fn streamed() -> (Writer, Self) {
        let (writer, reader) = mpsc::unbounded_channel();
        (writer, Answer { code: 200, headers: Vec::new(), body: Some(Frames(reader)) })
    }

    /// No answer.
    pub(crate) fn never() -> Self {
        Answer { code: 200, headers: Vec::new(), body: None }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|data| data.map(|data| data.map(Frame::data)))
    }
}
