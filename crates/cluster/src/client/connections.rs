//! The connections to a server: which of them are used, and with which credentials.
//!
//! HTTP/1.1 has no pings, so that a connection which has died silently looks like one that is idle. Therefore a pool is given up
//! as a whole as soon as one of its connections was silent for too long, and the next request is made on a new connection.
//! Credentials that kube reads once, when a client is made, are read again here: files with a client certificate when they
//! change, and what a credential plugin said after the server has refused it.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::{Body, ConfigExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};
use tracing::{info, warn};

use super::request::user_agent;
use super::{chain, environment, proxy, tls};

/// How long it may take until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an idle connection is kept. The server closes it after 90 s, and a request must not meet it doing so.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How many idle connections are kept: as many as the performer uses at most, and some for the watches.
const POOL_IDLE_MAX: usize = 160;
/// How much of an answer a connection holds at most. There is a connection for every watch, and they stay.
const READ_BUFFER_BYTES_MAX: usize = 64 << 10;
/// After so much silence the kernel asks whether the other side is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
/// How often it asks again.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// After so many questions without an answer the connection is given up.
const KEEPALIVE_RETRIES: u32 = 3;
/// After so much time without an acknowledgement of what was sent the kernel gives a connection up.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(45);
/// A request whose caller has waited for so long and then gave up says that its connection is dead. The lease's callers give up
/// after a few seconds.
const ABANDONED_AFTER: Duration = Duration::from_secs(1);
/// How often it is looked whether the files of a client certificate have changed.
const IDENTITY_INTERVAL: Duration = Duration::from_secs(30);
/// How often a credential plugin is run again at most, if the server refuses what it said.
const PLUGIN_INTERVAL: Duration = Duration::from_secs(5);

type Answer = Pin<Box<dyn Future<Output = Result<Response<Incoming>, BoxError>> + Send>>;
type Stack = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// The connections to the server of a configuration.
pub(super) struct Connections {
    config: kube::Config,
    address: String,
    state: Mutex<State>,
}

struct State {
    stack: Stack,
    pool: Arc<dyn GiveUp>,
    /// Counts the credentials: an answer to a request with earlier ones says nothing about these.
    credentials: u64,
    /// What the files of the client certificate held when the credentials were read.
    identity: Vec<Option<Vec<u8>>>,
    /// When the credentials were last read, or their files looked at.
    checked: Instant,
    is_checking: bool,
}

/// What is set up with credentials.
struct Setup {
    stack: Stack,
    pool: Arc<dyn GiveUp>,
}

impl Connections {
    pub(super) fn new(config: kube::Config) -> kube::Result<Arc<Self>> {
        if config.accept_invalid_certs {
            warn!("The certificate of {} is not verified, as the configuration says", config.cluster_url);
        }
        let identity = read_identity(&config);
        let Setup { stack, pool } = set_up(&config)?;
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let state =
            State { stack, pool, credentials: 0, identity, checked: Instant::now(), is_checking: false };
        Ok(Arc::new(Connections { config, address, state: Mutex::new(state) }))
    }

    pub(super) fn config(&self) -> &kube::Config {
        &self.config
    }

    /// The address of the server, without a slash at its end.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Makes requests on these connections.
    pub(super) fn service(self: &Arc<Self>) -> ConnectionsService {
        ConnectionsService(self.clone())
    }

    /// Makes no further request on a connection that there is.
    pub(super) fn give_up(&self) {
        let pool = self.state().pool.clone();
        pool.give_up();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the files of the client certificate, if it is time.
    fn check_identity(self: &Arc<Self>) {
        let is_due = {
            let mut state = self.state();
            let is_due = !state.identity.is_empty()
                && !state.is_checking
                && state.checked.elapsed() >= IDENTITY_INTERVAL;
            state.is_checking |= is_due;
            is_due
        };
        if is_due {
            let connections = self.clone();
            tokio::task::spawn_blocking(move || {
                let identity = read_identity(&connections.config);
                // A file that is being replaced may not be there for a moment.
                let is_whole = identity.iter().all(Option::is_some);
                let has_changed = connections.state().identity != identity;
                if is_whole && has_changed {
                    connections.authenticate(Some(identity));
                } else {
                    connections.checked();
                }
            });
        }
    }

    /// Runs the credential plugin again, because the server has refused what it said last.
    fn refused(self: &Arc<Self>, credentials: u64) {
        let is_due = {
            let mut state = self.state();
            let is_due = self.config.auth_info.exec.is_some()
                && state.credentials == credentials
                && !state.is_checking
                && (credentials == 0 || state.checked.elapsed() >= PLUGIN_INTERVAL);
            state.is_checking |= is_due;
            is_due
        };
        if is_due {
            let connections = self.clone();
            tokio::task::spawn_blocking(move || connections.authenticate(None));
        }
    }

    /// Reads all credentials again. The old ones stay if that fails. New connections are made in any case: a connection keeps
    /// the client certificate that it was made with.
    fn authenticate(&self, identity: Option<Vec<Option<Vec<u8>>>>) {
        match set_up(&self.config) {
            Ok(Setup { stack, pool }) => {
                info!("The credentials for {} were read again", self.address);
                let mut state = self.state();
                (state.stack, state.pool) = (stack, pool);
                state.credentials += 1;
                if let Some(identity) = identity {
                    state.identity = identity;
                }
            }
            Err(error) => {
                warn!(
                    "The credentials for {} cannot be read again, the old ones stay: {}",
                    self.address,
                    chain(&error)
                );
            }
        }
        self.checked();
    }

    fn checked(&self) {
        let mut state = self.state();
        (state.checked, state.is_checking) = (Instant::now(), false);
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.address).finish()
    }
}

/// Makes requests, each with the credentials and on the connections that are good at its time.
#[derive(Clone)]
pub(super) struct ConnectionsService(Arc<Connections>);

impl Service<Request<Body>> for ConnectionsService {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let connections = self.0.clone();
        connections.check_identity();
        let (stack, credentials) = {
            let state = connections.state();
            (state.stack.clone(), state.credentials)
        };
        Box::pin(async move {
            let response = stack.oneshot(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                connections.refused(credentials);
            }
            Ok(response)
        })
    }
}

/// Something whose connections can be given up.
trait GiveUp: Send + Sync {
    fn give_up(&self);
}

/// Connections that are kept for the next request.
struct Pool<C> {
    connector: C,
    current: Mutex<(u64, legacy::Client<C, Body>)>,
}

impl<C: Connect + Clone + Send + Sync + 'static> Pool<C> {
    fn new(connector: C) -> Self {
        let current = Mutex::new((0, transport(connector.clone())));
        Pool { connector, current }
    }

    fn current(&self) -> MutexGuard<'_, (u64, legacy::Client<C, Body>)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the connections of this generation, unless that was done already.
    fn give_up_generation(&self, generation: u64) {
        let mut current = self.current();
        if current.0 == generation {
            // The old client goes with its idle connections; those that carry an answer go when it has ended.
            *current = (generation + 1, transport(self.connector.clone()));
        }
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> GiveUp for Pool<C> {
    fn give_up(&self) {
        let generation = self.current().0;
        self.give_up_generation(generation);
    }
}

/// Makes requests on the connections of a pool.
struct PoolService<C>(Arc<Pool<C>>);

impl<C> Clone for PoolService<C> {
    fn clone(&self) -> Self {
        PoolService(self.0.clone())
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Service<Request<Body>> for PoolService<C> {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let (generation, client) = self.0.current().clone();
        let mut waiting =
            Waiting { pool: self.0.clone(), generation, since: Instant::now(), is_answered: false };
        Box::pin(async move {
            let answer = client.request(request).await;
            waiting.answered();
            answer.map_err(BoxError::from)
        })
    }
}

/// A request without an answer. If its caller gives up after some time, so are the connections.
struct Waiting<C: Connect + Clone + Send + Sync + 'static> {
    pool: Arc<Pool<C>>,
    generation: u64,
    since: Instant,
    is_answered: bool,
}

impl<C: Connect + Clone + Send + Sync + 'static> Waiting<C> {
    fn answered(&mut self) {
        self.is_answered = true;
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Drop for Waiting<C> {
    fn drop(&mut self) {
        if !self.is_answered && self.since.elapsed() >= ABANDONED_AFTER {
            self.pool.give_up_generation(self.generation);
        }
    }
}

fn transport<C: Connect + Clone>(connector: C) -> legacy::Client<C, Body> {
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(POOL_IDLE_MAX)
        .http1_max_buf_size(READ_BUFFER_BYTES_MAX)
        .build(connector)
}

/// The stack that kube makes, without its retries and spans, and with connections that notice a dead peer. Credentials are read
/// and credential plugins are run, which may take some time.
///
/// HTTP/1.1 is spoken: a connection per request in flight spares both sides the frames and windows of HTTP/2, and a
/// server takes no more than 100 streams on a connection, of which the watches hold many.
fn set_up(config: &kube::Config) -> kube::Result<Setup> {
    let proxy = proxy::choose(&config.cluster_url, config.proxy_url.as_ref(), &environment());
    let proxy = proxy.unwrap_or_else(|reason| {
        warn!("A proxy is set, but {} is talked to directly: {reason}", config.cluster_url);
        None
    });
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(KEEPALIVE_AFTER));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    match proxy {
        None => stack(config, connector),
        Some(proxy) => stack(config, Tunnel::new(proxy, connector)),
    }
}

fn stack<Connector>(config: &kube::Config, connector: Connector) -> kube::Result<Setup>
where
    Connector: Service<Uri, Response = TokioIo<TcpStream>> + Clone + Send + Sync + 'static,
    Connector::Future: Send + 'static,
    Connector::Error: Into<BoxError>,
{
    let pool = Arc::new(Pool::new(tls::connector(config, connector)?));
    let service = ServiceBuilder::new()
        .map_request(named)
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(PoolService(pool.clone()));
    Ok(Setup { stack: BoxCloneSyncService::new(service), pool })
}

/// What the files of a client certificate hold. A file that cannot be read holds nothing.
fn read_identity(config: &kube::Config) -> Vec<Option<Vec<u8>>> {
    let info = &config.auth_info;
    // Data in the kubeconfig itself goes before a file.
    let certificate = info.client_certificate.as_ref().filter(|_| info.client_certificate_data.is_none());
    let key = info.client_key.as_ref().filter(|_| info.client_key_data.is_none());
    certificate.into_iter().chain(key).map(|path| std::fs::read(PathBuf::from(path)).ok()).collect()
}

/// Says who asks. Requests for leases and reviews are made by kube, which does not.
fn named(mut request: Request<Body>) -> Request<Body> {
    let agent = || HeaderValue::from_static(user_agent());
    request.headers_mut().entry(USER_AGENT).or_insert_with(agent);
    request
}

#[cfg(test)]
mod tests;
