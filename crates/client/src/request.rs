//! Requests, and what comes of them.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full};
use supercargo_api::Call;
use tokio::time::{Instant, sleep, timeout};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};
use tracing::warn;

use crate::connect::{ConnectError, ConnectOptions, chain};
use crate::connections::Connections;
use crate::error::{RequestError, asked_wait, ends_request, refusal};
use crate::limited_log::LimitedLog;
use crate::limiter::{RateLimit, TokenBucket};
use crate::pool::{Answer, Withheld};
use crate::rights::MissingRights;
use crate::target::{Target, Who};
use crate::write_gate::{Passage, WriteGate};

/// How long a connection may carry nothing while something is expected from it: the head of an answer, the next part of its
/// body, or the next event of a watch. After that the connection is given up, even if the kernel at its other end still
/// acknowledges. client-go's HTTP/2 pings find a dead connection after as long.
pub const SILENCE_MAX: Duration = Duration::from_secs(45);
/// How long the head of a watch may take. The server sends it before anything else, but may let the request queue for 15 s.
const OPEN_PATIENCE: Duration = Duration::from_secs(20);
/// How long a whole answer may take, if it comes bit by bit.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(300);
/// How often a request is made again because the server asks for it; client-go's number.
const ASKED_RETRIES_MAX: u32 = 10;
/// How much is read of an answer that says what went wrong.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// An API server, as one client sees it. Clones share the client's limit.
#[derive(Clone)]
pub struct ApiServer {
    way: Way,
    limiter: Option<Arc<Limiter>>,
    /// The namespace of objects that are named without one.
    default_namespace: Arc<str>,
    /// For people.
    address: Option<Arc<str>>,
    /// How long the head of an answer may take.
    patience: Duration,
    /// What everything but reading goes through; none if this process writes whatever it likes.
    gate: Option<WriteGate>,
    missing_rights: MissingRights,
    /// How often a request is made again because the server asks for it.
    asked_retries_max: u32,
    log: LimitedLog,
}

/// How requests get to the server.
#[derive(Clone)]
enum Way {
    Connections(Arc<Connections>),
    Service(AnyService),
}

type AnyService = BoxCloneSyncService<Request<RequestBody>, Response<ServiceBody>, BoxError>;
type ServiceBody = UnsyncBoxBody<Bytes, BoxError>;

struct Limiter {
    limit: RateLimit,
    started: Instant,
    bucket: Mutex<TokenBucket>,
}

/// The body of a request.
pub type RequestBody = Full<Bytes>;

/// The body of an answer: from the connections themselves, or from a service that was given.
pub type AnswerBody = Either<Answer, UnsyncBoxBody<Bytes, BoxError>>;

/// The socket that an answer comes on, if it comes on one and has not ended.
pub fn socket_of(body: &AnswerBody) -> Option<RawFd> {
    match body {
        Either::Left(answer) => answer.socket(),
        Either::Right(_) => None,
    }
}

impl ApiServer {
    /// The server that a service is: whatever answers requests, such as a closure of a test.
    pub fn new<S, B>(service: S, limit: Option<RateLimit>) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let boxed = |response: Response<B>| response.map(|body| body.map_err(Into::into).boxed_unsync());
        let service = service.map_err(Into::into).map_response(boxed);
        ApiServer::of_way(Way::Service(BoxCloneSyncService::new(service)), limit)
    }

    fn of_way(way: Way, limit: Option<RateLimit>) -> Self {
        ApiServer {
            way,
            limiter: limit.map(Limiter::new),
            default_namespace: "default".into(),
            address: None,
            patience: SILENCE_MAX,
            gate: None,
            missing_rights: MissingRights::default(),
            asked_retries_max: ASKED_RETRIES_MAX,
            log: LimitedLog::default(),
        }
    }

    /// The server of a target.
    pub(crate) fn of_target(target: Target, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let (server, namespace) = (target.server.to_string(), target.namespace.clone());
        let connections =
            Connections::new(target).map_err(|reason| ConnectError::Credentials { server, reason })?;
        let address = connections.address().to_owned();
        let server = ApiServer::of_way(Way::Connections(connections), options.limit);
        Ok(ApiServer { patience: options.patience, ..server }
            .with_default_namespace(&namespace)
            .with_address(&address))
    }

    /// The same server with another namespace for objects that are named without one.
    #[must_use]
    pub fn with_default_namespace(self, namespace: &str) -> Self {
        ApiServer { default_namespace: namespace.into(), ..self }
    }

    /// The same server with an address that messages name it by.
    #[must_use]
    pub fn with_address(self, address: &str) -> Self {
        ApiServer { address: Some(address.into()), ..self }
    }

    /// The same server for another purpose, with a limit of the same size to itself.
    #[must_use]
    pub fn with_own_limit(&self) -> Self {
        let limiter = self.limiter.as_ref().map(|limiter| Limiter::new(limiter.limit));
        ApiServer { limiter, ..self.clone() }
    }

    /// The same server without a limit: for requests that others make us make, and whose number is limited elsewhere.
    #[must_use]
    pub fn without_limit(&self) -> Self {
        ApiServer { limiter: None, ..self.clone() }
    }

    /// The same server for somebody who tries again at times of its own: a request is not made again because the server asks for that,
    /// and how long it asks to wait is told at once.
    #[must_use]
    pub fn without_asked_retries(self) -> Self {
        ApiServer { asked_retries_max: 0, ..self }
    }

    /// The same server, to which nothing is written unless the gate is open at that moment.
    #[must_use]
    pub fn with_gate(mut self, gate: WriteGate) -> Self {
        self.gate = Some(gate);
        self
    }

    /// The same server; the rights that it says are missing are noted beside those of another one.
    #[must_use]
    pub fn with_missing_rights(mut self, missing_rights: MissingRights) -> Self {
        self.missing_rights = missing_rights;
        self
    }

    /// The same server over connections that are shared with nobody, and with a limit of the same size: for a lease, whose
    /// renewals must neither wait behind bindings nor meet a connection of theirs that has died silently. A server that was
    /// made of a service has only that.
    pub fn with_own_connections(&self) -> Result<Self, ConnectError> {
        let way = match &self.way {
            Way::Connections(connections) => {
                let server = connections.address().to_owned();
                let connections = Connections::new(connections.target().clone());
                Way::Connections(connections.map_err(|reason| ConnectError::Credentials { server, reason })?)
            }
            Way::Service(service) => Way::Service(service.clone()),
        };
        Ok(ApiServer { way, ..self.with_own_limit() })
    }

    /// Uses none of the connections that there are for another request: one of them has died silently, and the others may
    /// have died with it. Requests that are under way stay where they are.
    pub fn give_up_connections(&self) {
        if let Way::Connections(connections) = &self.way {
            connections.give_up();
        }
    }

    /// The address of the server, for people; none if this was made of a service without one.
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// The namespace of objects that are named without one: that of the kubeconfig's context, or of the pod.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// The rights that the server says are missing, for a health check.
    pub fn missing_rights(&self) -> MissingRights {
        self.missing_rights.clone()
    }

    /// Says how many log lines were left out lately, of this server and all clones. Whoever owns one calls it now and then.
    pub fn write_suppressed(&self) {
        self.log.write_suppressed();
    }

    /// What is at a path, whole.
    pub async fn get(&self, path: &str) -> Result<Bytes, RequestError> {
        self.fetch(&Call::get(path.to_owned())).await
    }

    /// Makes a request whose answer does not matter, as long as it is a good one.
    pub async fn perform(&self, call: &Call) -> Result<(), RequestError> {
        // A connection is used again only after its answer was read to the end.
        self.read(call, Box::pin(self.answer(call)).await?, |_| {}).await
    }

    /// Makes a request and returns the whole answer.
    pub async fn fetch(&self, call: &Call) -> Result<Bytes, RequestError> {
        let mut whole = Whole::default();
        self.read(call, Box::pin(self.answer(call)).await?, |data| whole.push(data)).await?;
        Ok(whole.into_bytes())
    }

    /// Makes a request whose answer has no end. Such requests are not limited, as in client-go.
    pub async fn open(&self, call: &Call) -> Result<Response<AnswerBody>, RequestError> {
        let response = self.send(call, OPEN_PATIENCE.min(self.patience)).await?;
        if response.status().is_success() { Ok(response) } else { Err(self.refused(call, response).await?) }
    }

    /// Reads an answer to its end.
    async fn read(
        &self,
        call: &Call,
        mut body: AnswerBody,
        mut take: impl FnMut(Bytes),
    ) -> Result<(), RequestError> {
        let until = Instant::now() + ANSWER_TIME_MAX;
        loop {
            let patience = SILENCE_MAX.min(until.saturating_duration_since(Instant::now()));
            match timeout(patience, body.frame()).await {
                Ok(None) => return Ok(()),
                Ok(Some(Ok(frame))) => _ = frame.into_data().map(&mut take),
                Ok(Some(Err(error))) => return Err(self.broken_by(call, &*error)),
                Err(_) => return Err(self.timed_out(call, patience)),
            }
        }
    }

    /// The answer to a request that is made again as long as the server asks for it. Whoever awaits it boxes it: it is large, and
    /// would make every task that makes a request as large, and the tasks are moved more than once.
    async fn answer(&self, call: &Call) -> Result<AnswerBody, RequestError> {
        let mut retries = 0;
        loop {
            self.wait_for_turn().await;
            let passage = self.pass(call)?;
            let response = self.send(call, self.patience).await;
            let is_over = match &response {
                Ok(response) => ends_request(response.status().as_u16()),
                Err(error) => error.is_not_sent(),
            };
            if let Some(passage) = passage.filter(|_| is_over) {
                passage.answered();
            }
            let response = response?;
            if response.status().is_success() {
                self.missing_rights.allowed(&call.method, &call.path);
                return Ok(response.into_body());
            }
            let may_be_done = call.method == Method::POST && response.status().is_server_error();
            // What may have been made is not made again: the second answer would say that there is one already.
            let asks_for_retry = asked_wait(&response).is_some() && !may_be_done;
            let error = self.refused(call, response).await?;
            if !asks_for_retry || retries >= self.asked_retries_max {
                return Err(error);
            }
            if retries == 0 {
                self.say_that_it_waits(call, &error);
            }
            sleep(error.retry_after()).await;
            retries += 1;
        }
    }

    /// Somebody waits, perhaps for minutes, and hears nothing before the end.
    fn say_that_it_waits(&self, call: &Call, error: &RequestError) {
        if self.log.admits("asked-to-wait") {
            warn!(
                err = %error,
                code = error.code(),
                method = %call.method,
                path = call.path,
                seconds = error.retry_after().as_secs(),
                "The API server asks to wait; the request is made again after that, {} times at most",
                self.asked_retries_max
            );
        }
    }

    /// Whether the request may be sent right now; what reads may always.
    fn pass(&self, call: &Call) -> Result<Option<Passage>, RequestError> {
        let Some(gate) = self.gate_of(call) else { return Ok(None) };
        gate.pass().map(Some).ok_or_else(|| not_leading(call))
    }

    /// What the request goes through; none if nobody minds.
    fn gate_of(&self, call: &Call) -> Option<&WriteGate> {
        self.gate.as_ref().filter(|_| call.method != Method::GET)
    }

    async fn wait_for_turn(&self) {
        let Some(limiter) = &self.limiter else { return };
        let wait = {
            // The bucket is a few numbers, right at any time: a panic elsewhere does not spoil it.
            let mut bucket = limiter.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.take(limiter.started.elapsed())
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Sends a request, and once more if the server refuses credentials that are not the latest.
    async fn send(&self, call: &Call, patience: Duration) -> Result<Response<AnswerBody>, RequestError> {
        let connections = match &self.way {
            Way::Connections(connections) => connections,
            Way::Service(service) => {
                let request = self.request(call, call.path.parse().map_err(http::Error::from))?;
                let answer = timeout(patience, Box::pin(service.clone().oneshot(request))).await;
                return self.received(call, patience, answer).map(|response| response.map(Either::Right));
            }
        };
        let mut is_first = true;
        // Logging in and connecting may take longer than the lease lasts.
        let may_send = || self.gate_of(call).is_none_or(WriteGate::is_open);
        loop {
            // A credential plugin has a time limit of its own: somebody may have to log in.
            let prepared = connections.prepare().await.map_err(|reason| RequestError::NotLoggedIn {
                server: connections.address().to_owned(),
                reason,
            })?;
            let mut request = self.request(call, connections.uri(&call.path))?;
            connections.sign(&mut request, &prepared);
            let answer = timeout(patience, prepared.send(&mut Some(request), &may_send)).await;
            let response = self.received(call, patience, answer)?;
            let is_refused = response.status() == StatusCode::UNAUTHORIZED && connections.refused(&prepared);
            if !is_refused || !is_first {
                return Ok(response.map(Either::Left));
            }
            is_first = false;
        }
    }

    fn request(
        &self,
        call: &Call,
        uri: Result<http::Uri, http::Error>,
    ) -> Result<Request<RequestBody>, RequestError> {
        let uri = uri.map_err(|error| self.broken_by(call, &error))?;
        let mut request = Request::builder()
            .method(&call.method)
            .uri(uri)
            .header(ACCEPT, HeaderValue::from_static(call.accept))
            .header(USER_AGENT, HeaderValue::from_static(user_agent()));
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        }
        request.body(Full::new(call.body.clone())).map_err(|error| self.broken_by(call, &error))
    }

    fn received<B>(
        &self,
        call: &Call,
        patience: Duration,
        answer: Result<Result<Response<B>, BoxError>, tokio::time::error::Elapsed>,
    ) -> Result<Response<B>, RequestError> {
        match answer {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is::<Withheld>() => Err(not_leading(call)),
            Ok(Err(error)) => Err(self.broken_by(call, &*error)),
            Err(_) => Err(self.timed_out(call, patience)),
        }
    }

    /// What the server says with an error.
    async fn refused(
        &self,
        call: &Call,
        response: Response<AnswerBody>,
    ) -> Result<RequestError, RequestError> {
        let status = response.status();
        let retry_after = asked_wait(&response).unwrap_or_default();
        let mut text = Vec::new();
        self.read(call, response.into_body(), |data| {
            let room = ERROR_BODY_BYTES_MAX - text.len();
            text.extend_from_slice(&data[..data.len().min(room)]);
        })
        .await?;
        let mut refusal = refusal(status, &text, retry_after);
        if let RequestError::Refused { message, .. } = &mut refusal {
            match status {
                StatusCode::UNAUTHORIZED => *message = self.unauthorized(message),
                StatusCode::FORBIDDEN => *message = self.forbidden(call, message),
                _ => {}
            }
        }
        Ok(refusal)
    }

    /// What a server says that does not know us, and what to do about it.
    fn unauthorized(&self, message: &str) -> String {
        let Way::Connections(connections) = &self.way else { return message.to_owned() };
        let (server, who) = (connections.address(), connections.who());
        let advice = match who {
            Who::Nobody => "name a kubeconfig with credentials for it",
            Who::Pod => "look whether the service account is still there",
            Who::User { .. } => "log in again, or renew the credentials in the kubeconfig",
        };
        format!("{server} does not accept {who}: {message}; {advice}")
    }

    /// What a server says that does not let us, and which rule is missing.
    fn forbidden(&self, call: &Call, message: &str) -> String {
        let server = self.address().map_or(String::new(), |address| format!("{address}: "));
        match self.missing_rights.refused(&call.method, &call.path, message) {
            Some(rule) => format!("{server}{message}; grant the rule {rule}"),
            None => format!("{server}{message}"),
        }
    }

    /// A request without an answer that can be used.
    pub fn broken(&self, call: &Call, reason: String) -> RequestError {
        let (method, path) = (call.method.clone(), self.url(call));
        RequestError::Broken { method, path, reason, is_connection_refused: false }
    }

    fn broken_by(&self, call: &Call, error: &(dyn std::error::Error + 'static)) -> RequestError {
        let mut cause = Some(error);
        let mut is_refused = false;
        while let Some(error) = cause {
            is_refused |= error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            cause = error.source();
        }
        let (method, path) = (call.method.clone(), self.url(call));
        RequestError::Broken { method, path, reason: chain(error), is_connection_refused: is_refused }
    }

    /// A connection has carried nothing for too long.
    fn timed_out(&self, call: &Call, patience: Duration) -> RequestError {
        self.give_up_connections();
        RequestError::TimedOut { method: call.method.clone(), path: self.url(call), patience }
    }

    /// The connections themselves.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> Option<&Connections> {
        match &self.way {
            Way::Connections(connections) => Some(connections),
            Way::Service(_) => None,
        }
    }

    /// Where a request goes, as people see it.
    fn url(&self, call: &Call) -> String {
        format!("{}{}", self.address().unwrap_or_default(), call.path)
    }
}

fn not_leading(call: &Call) -> RequestError {
    RequestError::NotLeading { method: call.method.clone(), path: call.path.clone() }
}

impl Limiter {
    fn new(limit: RateLimit) -> Arc<Self> {
        Arc::new(Limiter { limit, started: Instant::now(), bucket: Mutex::new(TokenBucket::new(limit)) })
    }
}

/// An answer as it comes. Most come in one piece, which is not copied.
#[derive(Default)]
struct Whole {
    first: Bytes,
    all: Vec<u8>,
}

impl Whole {
    fn push(&mut self, data: Bytes) {
        if self.first.is_empty() && self.all.is_empty() {
            self.first = data;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&data);
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.into() }
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("limit", &self.limiter.as_ref().map(|limiter| limiter.limit))
            .finish()
    }
}

/// `supercargo/1.2.3 (linux/amd64) scheduler`, as kube-scheduler calls itself.
fn user_agent() -> &'static str {
    const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    match ARCHITECTURE {
        "arm64" => concat!("supercargo/", env!("CARGO_PKG_VERSION"), " (linux/arm64) scheduler"),
        _ => concat!("supercargo/", env!("CARGO_PKG_VERSION"), " (linux/amd64) scheduler"),
    }
}

#[cfg(test)]
mod tests;
