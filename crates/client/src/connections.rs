//! The connections to a server: which of them are used, and with which credentials.
//!
//! HTTP/1.1 has no pings, so that a connection which has died silently looks like one that is idle. Therefore a pool is given up
//! as a whole as soon as one of its connections was silent for too long, and the next request is made on a new connection.
//!
//! HTTP/1.1 is spoken: a connection per request in flight spares both sides the frames and windows of HTTP/2, and a
//! server takes no more than 100 streams on a connection, of which the watches hold many.
//!
//! Credentials change while a process runs. Files are read again by and by, and at once when the server has refused what they held; a
//! credential plugin is run again when what it said has expired or was refused.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderValue};
use http::uri::{self, PathAndQuery, Uri};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::{BoxError, Service};
use tracing::{info, warn};

use crate::environment::Environment;
use crate::material::{Authority, Material};
use crate::plugin::Credential;
use crate::request::RequestBody;
use crate::target::{Authorization, Target, Who, read_token};
use crate::{proxy, tls};

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
/// How often it is looked whether files with certificates have changed.
const FILES_INTERVAL: Duration = Duration::from_secs(30);
/// How often a file with a token is read; client-go's number.
const TOKEN_INTERVAL: Duration = Duration::from_secs(60);
/// The connections to a server.
pub(crate) struct Connections {
    target: Target,
    has_files: bool,
    address: String,
    /// The address, taken apart.
    scheme: uri::Scheme,
    authority: uri::Authority,
    /// What goes before every path; empty for most servers.
    prefix: String,
    state: Mutex<State>,
}

struct State {
    pool: Arc<Pool>,
    /// What the connections of the pool are secured with.
    material: Material,
    authorization: Option<HeaderValue>,
    /// Counts the credentials: an answer to a request with earlier ones says nothing about these.
    credentials: u64,
    /// The run of the plugin from which they are.
    plugin_run: u64,
    files_seen: Instant,
    token_read: Instant,
}

/// What a request is made with: the credentials and connections that are good at its time.
pub(crate) struct Prepared {
    pool: Arc<Pool>,
    authorization: Option<HeaderValue>,
    credentials: u64,
    plugin_run: u64,
}

impl Connections {
    /// Reads the credentials, and makes no connection yet; an error says what is wrong with them.
    pub(crate) fn new(target: Target) -> Result<Arc<Self>, String> {
        let address = target.server.to_string().trim_end_matches('/').to_owned();
        if let Authority::Anybody = target.authority {
            warn!("The certificate of {address} is not verified, as the configuration says");
        }
        let material = target.material()?;
        let pool = Arc::new(Pool::new(connector(&target, &material)?));
        let authorization = match &target.authorization {
            Authorization::None | Authorization::Plugin(_) => None,
            Authorization::Fixed(header) => Some(header.clone()),
            Authorization::File { path, token: Some(token) } => {
                Some(read_token(path).unwrap_or_else(|_| token.clone()))
            }
            Authorization::File { path, token: None } => Some(read_token(path)?),
        };
        let now = Instant::now();
        let state = State {
            pool,
            material,
            authorization,
            credentials: 0,
            plugin_run: 0,
            files_seen: now,
            token_read: now,
        };
        let uri::Parts { scheme, authority, path_and_query, .. } = target.server.clone().into_parts();
        let prefix = path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/').to_owned();
        Ok(Arc::new(Connections {
            has_files: target.has_files(),
            target,
            address,
            scheme: scheme.ok_or("the address of the server has no scheme")?,
            authority: authority.ok_or("the address of the server has no host")?,
            prefix,
            state: Mutex::new(state),
        }))
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The address of the server, without a slash at its end.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// As whom the server is talked to.
    pub(crate) fn who(&self) -> &Who {
        &self.target.who
    }

    /// Where a path is on the server.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri, http::Error> {
        let builder = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        let builder = match &*self.prefix {
            "" => builder.path_and_query(path),
            prefix => builder.path_and_query(format!("{prefix}{path}")),
        };
        builder.build()
    }

    /// Makes no further request on a connection that there is.
    pub(crate) fn give_up(&self) {
        let pool = self.state().pool.clone();
        pool.give_up();
    }

    /// Gets credentials and connections for a request; an error says why there are none. Takes some time if a credential plugin
    /// has to be run, and does not wait otherwise.
    pub(crate) async fn prepare(&self) -> Result<Prepared, String> {
        let credential = match &self.target.authorization {
            Authorization::Plugin(plugin) => {
                Some(plugin.credential().await.map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        let mut state = self.state();
        if let Some(credential) = credential {
            self.adopt(&mut state, &credential)?;
        }
        if self.has_files && state.files_seen.elapsed() >= FILES_INTERVAL {
            self.look_at_files(&mut state);
        }
        if let Authorization::File { .. } = self.target.authorization
            && state.token_read.elapsed() >= TOKEN_INTERVAL
        {
            self.read_token(&mut state);
        }
        Ok(Prepared {
            pool: state.pool.clone(),
            authorization: state.authorization.clone(),
            credentials: state.credentials,
            plugin_run: state.plugin_run,
        })
    }

    /// The server has refused the credentials of a request; whether there are, or will be, others to try.
    pub(crate) fn refused(&self, prepared: &Prepared) -> bool {
        let mut state = self.state();
        if state.credentials == prepared.credentials {
            self.look_at_files(&mut state);
            self.read_token(&mut state);
        }
        if state.credentials != prepared.credentials {
            return true;
        }
        drop(state);
        match &self.target.authorization {
            Authorization::Plugin(plugin) => plugin.refused(prepared.plugin_run),
            _ => false,
        }
    }

    /// Makes a request, to which the credentials are added.
    pub(crate) async fn send(
        &self,
        prepared: &Prepared,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, BoxError> {
        let headers = request.headers_mut();
        if let Some(authorization) = &prepared.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        for (name, value) in &self.target.headers {
            headers.append(name, value.clone());
        }
        prepared.pool.send(request).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is right after each change: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what a plugin said.
    fn adopt(&self, state: &mut State, credential: &Credential) -> Result<(), String> {
        if state.plugin_run == credential.number {
            return Ok(());
        }
        let is_first = state.plugin_run == 0;
        let material = Material { identity: credential.identity.clone(), ..state.material.clone() };
        // A plugin that gives no certificate leaves that of the kubeconfig.
        if credential.identity.is_some() && material != state.material {
            self.secure(state, material)?;
        }
        state.authorization.clone_from(&credential.authorization);
        (state.plugin_run, state.credentials) = (credential.number, state.credentials + 1);
        if !is_first {
            info!("The credential plugin for {} was run again", self.address);
        }
        Ok(())
    }

    /// Looks whether files with certificates have changed.
    fn look_at_files(&self, state: &mut State) {
        if !self.has_files {
            return;
        }
        state.files_seen = Instant::now();
        // A file that is being replaced may not be there for a moment.
        let Ok(mut material) = self.target.material() else { return };
        if let Authorization::Plugin(_) = self.target.authorization
            && self.target.identity.is_none()
        {
            material.identity.clone_from(&state.material.identity);
        }
        if material == state.material {
            return;
        }
        match self.secure(state, material) {
            Ok(()) => {
                info!("The certificates for {} were read again", self.address);
                state.credentials += 1;
            }
            Err(reason) => {
                warn!("The certificates for {} cannot be used, the old ones stay: {reason}", self.address);
            }
        }
    }

    /// Makes new connections from now on: a connection keeps the certificates that it was made with.
    fn secure(&self, state: &mut State, material: Material) -> Result<(), String> {
        state.pool = Arc::new(Pool::new(connector(&self.target, &material)?));
        state.material = material;
        Ok(())
    }

    fn read_token(&self, state: &mut State) {
        let Authorization::File { path, .. } = &self.target.authorization else { return };
        state.token_read = Instant::now();
        match read_token(path) {
            Ok(token) if state.authorization.as_ref() == Some(&token) => {}
            Ok(token) => {
                state.authorization = Some(token);
                state.credentials += 1;
            }
            Err(reason) => warn!("The token for {} stays the old one: {reason}", self.address),
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.address).finish()
    }
}

/// Connections that are kept for the next request.
struct Pool {
    connector: HttpsConnector<Dialer>,
    current: Mutex<(u64, Client)>,
}

type Client = legacy::Client<HttpsConnector<Dialer>, RequestBody>;

impl Pool {
    fn new(connector: HttpsConnector<Dialer>) -> Self {
        let current = Mutex::new((0, transport(connector.clone())));
        Pool { connector, current }
    }

    fn current(&self) -> MutexGuard<'_, (u64, Client)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, BoxError> {
        let (generation, client) = self.current().clone();
        let mut waiting = Waiting { pool: self, generation, since: Instant::now(), is_answered: false };
        let answer = client.request(request).await;
        waiting.is_answered = true;
        answer.map_err(BoxError::from)
    }

    fn give_up(&self) {
        let generation = self.current().0;
        self.give_up_generation(generation);
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

/// A request without an answer. If its caller gives up after some time, so are the connections.
struct Waiting<'a> {
    pool: &'a Pool,
    generation: u64,
    since: Instant,
    is_answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.since.elapsed() >= ABANDONED_AFTER {
            self.pool.give_up_generation(self.generation);
        }
    }
}

fn transport(connector: HttpsConnector<Dialer>) -> Client {
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(POOL_IDLE_MAX)
        .http1_max_buf_size(READ_BUFFER_BYTES_MAX)
        .build(connector)
}

/// What makes connections that notice a dead peer, through a proxy if there is one, and secures them.
fn connector(target: &Target, material: &Material) -> Result<HttpsConnector<Dialer>, String> {
    let environment = Environment::of_process();
    let proxy = match proxy::choose(&target.server, target.proxy.as_ref(), &environment.proxies) {
        Ok(proxy) => proxy,
        Err(reason) if target.proxy.is_some() => return Err(format!("proxy-url: {reason}")),
        Err(reason) => {
            warn!("A proxy is set, but {} is talked to directly: {reason}", target.server);
            None
        }
    };
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(KEEPALIVE_AFTER));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    let dialer = match proxy {
        None => Dialer::Direct(connector),
        Some(proxy) => Dialer::Tunnel(Tunnel::new(proxy, connector)),
    };
    tls::connector(target, material, dialer)
}

/// Makes connections, before they are secured.
#[derive(Clone)]
enum Dialer {
    Direct(HttpConnector),
    Tunnel(Tunnel<HttpConnector>),
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Dialer::Direct(direct) => direct.poll_ready(context).map_err(BoxError::from),
            Dialer::Tunnel(tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Dialer::Direct(direct) => {
                let connecting = direct.call(server);
                Box::pin(async move { connecting.await.map_err(BoxError::from) })
            }
            Dialer::Tunnel(tunnel) => {
                let connecting = tunnel.call(server);
                Box::pin(async move { connecting.await.map_err(BoxError::from) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
