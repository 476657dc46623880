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
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tower::Service;

use crate::request::RequestBody;

/// The server.
#[derive(Clone)]
pub struct Fake {
    answer: Arc<Script>,
    count: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What is answered to which request.
type Script = dyn Fn(usize, &Asked) -> Answer + Send + Sync;

/// A request that came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query; empty if there is none.
    pub query: String,
    /// The body; empty if there is none.
    pub body: String,
    /// The headers.
    pub headers: HeaderMap,
}

/// What is answered.
#[derive(Debug)]
pub struct Answer {
    code: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Option<Frames>,
}

/// Writes an answer piece by piece.
pub type Writer = mpsc::UnboundedSender<io::Result<Bytes>>;

/// The pieces of an answer's body, as they are written.
#[derive(Debug)]
pub struct Frames(mpsc::UnboundedReceiver<io::Result<Bytes>>);

impl std::fmt::Debug for Fake {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fake").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Fake {
    /// A server that answers every request as the closure says.
    pub fn new(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Fake::numbered(move |_, asked| answer(asked))
    }

    /// The same; requests are numbered from 0.
    pub fn numbered(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        Fake { answer: Arc::new(answer), count: Arc::default(), asked: Arc::default() }
    }

    /// What makes an [`ApiServer`](crate::ApiServer) of it.
    pub fn service(&self) -> FakeService {
        FakeService(self.clone())
    }

    async fn answer(self, request: Request<RequestBody>) -> Result<Response<Frames>, Infallible> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("requests are whole").to_bytes();
        let asked = Asked {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            body: String::from_utf8(body.to_vec()).expect("requests are text"),
            headers: parts.headers,
        };
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let answer = (self.answer)(number, &asked);
        self.asked.lock().expect("no test panics here").push(asked);
        let Some(body) = answer.body else { return std::future::pending().await };
        let mut response = Response::builder().status(answer.code);
        for (name, value) in answer.headers {
            response = response.header(name, value);
        }
        Ok(response.body(body).expect("answers are well formed"))
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics here").clone()
    }
}

/// Answers requests as the server does.
#[derive(Clone, Debug)]
pub struct FakeService(Fake);

impl Service<Request<RequestBody>> for FakeService {
    type Response = Response<Frames>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Frames>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(self.0.clone().answer(request))
    }
}

impl Asked {
    /// The value of a header; empty if it is not there.
    pub fn header(&self, name: &str) -> String {
        self.headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }

    /// `METHOD /path?query`
    pub fn line(&self) -> String {
        match &*self.query {
            "" => format!("{} {}", self.method, self.path),
            query => format!("{} {}?{query}", self.method, self.path),
        }
    }
}

impl Answer {
    /// A whole answer.
    pub fn plain(code: u16, text: &str) -> Self {
        Answer::bytes(code, text.as_bytes())
    }

    /// A whole answer that is no text.
    pub fn bytes(code: u16, body: &[u8]) -> Self {
        let (writer, answer) = Answer::streamed();
        let _ = writer.send(Ok(Bytes::copy_from_slice(body)));
        Answer { code, ..answer }
    }

    /// A whole answer that says that all is well.
    pub fn ok(text: &str) -> Self {
        Answer::plain(200, text)
    }

    /// An error as Kubernetes tells it.
    pub fn status(code: u16, message: &str) -> Self {
        let status =
            serde_json::json!({ "kind": "Status", "status": "Failure", "message": message, "code": code });
        Answer::plain(code, &status.to_string())
    }

    /// An answer that goes on until the writer is dropped.
    pub fn streamed() -> (Writer, Self) {
        let (writer, reader) = mpsc::unbounded_channel();
        (writer, Answer { code: 200, headers: Vec::new(), body: Some(Frames(reader)) })
    }

    /// No answer.
    pub fn never() -> Self {
        Answer { code: 200, headers: Vec::new(), body: None }
    }

    /// The same answer with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
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
