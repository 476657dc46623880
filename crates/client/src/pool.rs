//! The connections of a server that are kept for the next request.
//!
//! A connection has no task of its own: the task that waits for an answer drives the connection that the answer comes on. Handing
//! answers from task to task would cost a scheduler that is woken for single pods more than the HTTP itself.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::uri::Uri;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::dialer::Dialer;
use crate::request::RequestBody;

/// How long an idle connection is kept. The server closes it after 90 s, and a request must not meet it doing so.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// How many idle connections are kept: as many as the performer uses at most, and some for the watches.
const IDLE_MAX: usize = 160;
/// How much of an answer a connection holds at most. There is a connection for every watch, and they stay.
const READ_BUFFER_BYTES_MAX: usize = 64 << 10;
/// A request whose caller has waited for so long and then gave up says that its connection is dead. The lease's callers give up
/// after a few seconds.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_secs(1);

/// Connections to a server, made as they are needed.
pub(crate) struct Pool {
    connector: HttpsConnector<Dialer>,
    /// Scheme and authority of the server.
    server: Uri,
    idle: Arc<Mutex<Idle>>,
}

/// A request; none once it is sent.
pub(crate) type Unsent = Option<Request<RequestBody>>;

/// A request was not sent, since it must not be any more.
#[derive(Debug, thiserror::Error)]
#[error("not sent")]
pub(crate) struct Withheld;

/// The connections that carry nothing now.
#[derive(Default)]
struct Idle {
    /// Counts how often all connections were given up. Those of an earlier generation do not come back.
    generation: u64,
    /// The latest used last, with the time of that.
    connections: VecDeque<(Instant, Box<Connection>)>,
}

impl Pool {
    pub(crate) fn new(connector: HttpsConnector<Dialer>, server: Uri) -> Self {
        Pool { connector, server, idle: Arc::default() }
    }

    /// Makes a request on a connection that is idle, or else on a new one. A connection that turns out to be closed before it has
    /// taken the request is followed by the next. Whether the request may be sent is asked right before that, and not before a connection was
    /// made, which takes its time.
    ///
    /// The request stays with the caller until it is sent: each future that it is handed on by would have room for two of them.
    pub(crate) async fn send(
        &self,
        request: &mut Unsent,
        may_send: &(dyn Fn() -> bool + Sync),
    ) -> Result<Response<Answer>, BoxError> {
        let mut waiting =
            Waiting { idle: &self.idle, generation: 0, since: Instant::now(), is_answered: false };
        let response = loop {
            let reused = poll_fn(|context| Poll::Ready(self.take_idle(context))).await;
            let is_new = reused.is_none();
            let mut connection = match reused {
                Some(connection) => connection,
                // Boxed, since it is rare and large, and every request is as large as its largest part.
                None => Box::pin(self.connect(&mut waiting)).await?,
            };
            waiting.generation = connection.generation;
            if !may_send() {
                waiting.is_answered = true;
                locked(&self.idle).put(connection);
                return Err(Withheld.into());
            }
            match connection.exchange(request).await {
                Ok(response) => {
                    break response.map(|body| Answer {
                        body,
                        connection: Some(connection),
                        idle: self.idle.clone(),
                    });
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => *request = Some(unsent),
                    _ => {
                        waiting.is_answered = true;
                        return Err(error.into_error().into());
                    }
                },
            }
        };
        waiting.is_answered = true;
        Ok(response)
    }

    /// Makes no further request on a connection that there is.
    pub(crate) fn give_up(&self) {
        let mut idle = locked(&self.idle);
        let generation = idle.generation;
        idle.give_up(generation);
    }

    /// The idle connection that was used last, which is most likely to live.
    fn take_idle(&self, context: &mut Context<'_>) -> Option<Box<Connection>> {
        let mut idle = locked(&self.idle);
        idle.drop_expired();
        while let Some((_, mut connection)) = idle.connections.pop_back() {
            if connection.is_idle(context) {
                return Some(connection);
            }
        }
        None
    }

    async fn connect(&self, waiting: &mut Waiting<'_>) -> Result<Box<Connection>, BoxError> {
        let generation = locked(&self.idle).generation;
        waiting.generation = generation;
        let mut connector = self.connector.clone();
        poll_fn(|context| connector.poll_ready(context)).await?;
        let stream = connector.call(self.server.clone()).await?;
        let socket = match &stream {
            MaybeHttpsStream::Http(stream) => stream.inner().as_raw_fd(),
            MaybeHttpsStream::Https(stream) => stream.inner().get_ref().0.inner().inner().as_raw_fd(),
        };
        let mut builder = http1::Builder::new();
        let (sender, driver) = builder.max_buf_size(READ_BUFFER_BYTES_MAX).handshake(stream).await?;
        Ok(Box::new(Connection { sender, driver, socket, is_over: false, generation }))
    }
}

impl Idle {
    fn drop_expired(&mut self) {
        while let Some((since, _)) = self.connections.front()
            && since.elapsed() >= IDLE_TIME_MAX
        {
            self.connections.pop_front();
        }
    }

    fn put(&mut self, connection: Box<Connection>) {
        self.drop_expired();
        if connection.generation == self.generation && self.connections.len() < IDLE_MAX {
            self.connections.push_back((Instant::now(), connection));
        }
    }

    /// Gives up the connections of this generation, unless that was done already. Those that carry an answer go when it has ended.
    fn give_up(&mut self, generation: u64) {
        if self.generation == generation {
            self.generation += 1;
            self.connections.clear();
        }
    }
}

/// A connection, which does something only while it is driven.
struct Connection {
    sender: SendRequest<RequestBody>,
    driver: http1::Connection<MaybeHttpsStream<TokioIo<TcpStream>>, RequestBody>,
    socket: RawFd,
    /// Whether the driver has ended, with or without an error; it must not be polled then.
    is_over: bool,
    generation: u64,
}

impl Connection {
    /// Reads and writes what there is to be read and written. An error goes to the request that is under way.
    fn drive(&mut self, context: &mut Context<'_>) {
        if !self.is_over {
            self.is_over = Pin::new(&mut self.driver).poll(context).is_ready();
        }
    }

    /// Whether the connection lives and can take a request.
    fn is_idle(&mut self, context: &mut Context<'_>) -> bool {
        self.drive(context);
        !self.is_over && self.sender.is_ready()
    }

    async fn exchange(
        &mut self,
        request: &mut Unsent,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let request = request.take().expect("it is sent once, or came back");
        let mut response = pin!(self.sender.try_send_request(request));
        poll_fn(|context| {
            self.drive(context);
            response.as_mut().poll(context)
        })
        .await
    }
}

/// The body of an answer. Whoever reads it to its end gives its connection back.
pub struct Answer {
    body: Incoming,
    /// None after the end.
    connection: Option<Box<Connection>>,
    idle: Arc<Mutex<Idle>>,
}

impl Answer {
    /// The socket that the answer comes on, unless it has ended.
    pub(crate) fn socket(&self) -> Option<RawFd> {
        self.connection.as_ref().map(|connection| connection.socket)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Answer { body, connection, idle } = self.get_mut();
        let mut frame = Pin::new(&mut *body).poll_frame(context);
        if frame.is_pending()
            && let Some(connection) = connection
        {
            connection.drive(context);
            frame = Pin::new(body).poll_frame(context);
        }
        if let Poll::Ready(None) = frame
            && let Some(mut connection) = connection.take()
            && connection.is_idle(context)
        {
            locked(idle).put(connection);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Answer").field(&self.body).finish()
    }
}

/// A request without an answer. If its caller gives up after some time, so are the connections.
struct Waiting<'a> {
    idle: &'a Mutex<Idle>,
    generation: u64,
    since: Instant,
    is_answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.since.elapsed() >= ABANDONED_AFTER {
            locked(self.idle).give_up(self.generation);
        }
    }
}

/// The list of idle connections is right after each change: a panic elsewhere does not spoil it.
fn locked(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
