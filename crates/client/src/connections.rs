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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, HeaderValue};
use http::uri::{self, PathAndQuery, Uri};
use http::{Request, Response};
use tokio::time::Instant;
use tower::BoxError;
use tracing::{info, warn};

use crate::dialer::connector;
use crate::material::{Authority, Material};
use crate::plugin::Credential;
use crate::pool::{Answer, Pool, Unsent};
use crate::request::RequestBody;
use crate::target::{Authorization, Target, Who, read_token};

/// How often it is looked whether files with certificates have changed.
const FILES_INTERVAL: Duration = Duration::from_secs(30);
/// How often a file with a token is read; client-go's number.
const TOKEN_INTERVAL: Duration = Duration::from_secs(60);
/// The connections to a server.
pub(crate) struct Connections {
    target: Target,
    has_files: bool,
    address: String,
    /// Scheme and authority of the address.
    root: Uri,
    /// The header that names the server.
    host: HeaderValue,
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

impl Prepared {
    /// Makes a request if it may still be sent when there is a connection: see [`Pool::send`].
    pub(crate) fn send<'a>(
        &'a self,
        request: &'a mut Unsent,
        may_send: &'a (dyn Fn() -> bool + Sync),
    ) -> impl Future<Output = Result<Response<Answer>, BoxError>> + Send + 'a {
        self.pool.send(request, may_send)
    }
}

impl Connections {
    /// Reads the credentials, and makes no connection yet; an error says what is wrong with them.
    pub(crate) fn new(target: Target) -> Result<Arc<Self>, String> {
        let address = target.server.to_string().trim_end_matches('/').to_owned();
        if let Authority::Anybody = target.authority {
            warn!("The certificate of {address} is not verified, as the configuration says");
        }
        let material = target.material()?;
        let (root, host, prefix) = taken_apart(&target.server)?;
        let pool = Arc::new(Pool::new(connector(&target, &material)?, root.clone()));
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
        Ok(Arc::new(Connections {
            has_files: target.has_files(),
            target,
            address,
            root,
            host,
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

    /// Where a path is on the server, as requests name it.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri, http::Error> {
        let builder = Uri::builder();
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

    /// Adds to a request whom it is for, and the credentials.
    pub(crate) fn sign(&self, request: &mut Request<RequestBody>, prepared: &Prepared) {
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        if let Some(authorization) = &prepared.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        for (name, value) in &self.target.headers {
            headers.append(name, value.clone());
        }
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
        state.pool = Arc::new(Pool::new(connector(&self.target, &material)?, self.root.clone()));
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

/// Scheme and authority of a server's address, the header that names it, and what goes before every path.
fn taken_apart(server: &Uri) -> Result<(Uri, HeaderValue, String), String> {
    let uri::Parts { scheme, authority, path_and_query, .. } = server.clone().into_parts();
    let scheme = scheme.ok_or("the address of the server has no scheme")?;
    let authority = authority.ok_or("the address of the server has no host")?;
    let is_default_port = match authority.port_u16() {
        Some(port) => port == if scheme == uri::Scheme::HTTPS { 443 } else { 80 },
        None => true,
    };
    let host = match authority.port() {
        Some(port) if !is_default_port => format!("{}:{port}", authority.host()),
        _ => authority.host().to_owned(),
    };
    let prefix = path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/').to_owned();
    let root = Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build();
    let host = HeaderValue::try_from(host).map_err(|error| error.to_string())?;
    Ok((root.map_err(|error| error.to_string())?, host, prefix))
}

#[cfg(test)]
mod tests;
