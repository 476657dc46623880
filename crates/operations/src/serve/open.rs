//! A service over HTTP or HTTPS, for whoever can reach the address, or has a certificate of an authority: what other programs ask
//! questions of, such as a scheduler its extender.
//!
//! Unlike [`Server`](super::Server), nobody is looked up at an API server. Connections stay open between questions.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::certificate::{CertificateSource, ClientAuthority, Tls, TlsOptions};
use super::connection::HANDSHAKE_TIMEOUT;
use super::connections::{Slot, Stage};
use super::page::{Routes, text};
use super::transport::Transport;
use super::{ServeError, accept_until, bind};

/// How long a connection may be idle between questions, and how long the head of a question may take. Go's clients close theirs after 90
/// seconds, and do not like it if the other side is first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(100);

/// How much is read at a time, and how long the head of a question may be.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Paths for probes, which have no certificates.
const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// The files that TLS is spoken with. All are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTls {
    /// The server's certificate, and its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who signs for clients. If there is one, all but probes need a certificate.
    pub client_authority: Option<PathBuf>,
}

/// A service that listens, and does not answer yet.
pub struct OpenServer {
    listener: TcpListener,
    address: SocketAddr,
    speaking: Speaking,
}

/// How it speaks.
enum Speaking {
    Plain,
    Tls { tls: Box<Mutex<Tls>>, needs_certificate: bool },
}

/// What all connections share.
struct Serving {
    router: Router,
    speaking: Speaking,
}

impl std::fmt::Debug for OpenServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "OpenServer({})", self.address)
    }
}

impl OpenServer {
    /// Begins to listen. Of an unspecified address both families are meant.
    pub fn listen(address: SocketAddr, tls: Option<OpenTls>) -> Result<Self, ServeError> {
        let speaking = match tls {
            None => Speaking::Plain,
            Some(OpenTls { certificate, key, client_authority }) => {
                let needs_certificate = client_authority.is_some();
                let authority = client_authority.map_or(ClientAuthority::None, ClientAuthority::File);
                let source = CertificateSource::Files { certificate, key };
                let tls = Tls::new(source, authority, TlsOptions::default(), address.ip())?;
                Speaking::Tls { tls: Box::new(Mutex::new(tls)), needs_certificate }
            }
        };
        let failed = |error| ServeError::Listen { address, error };
        let listener = bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(OpenServer { listener, address, speaking })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; then questions under way get a few seconds to be answered.
    pub async fn run(self, routes: Routes, stop: impl Future<Output = ()>) {
        let serving = Arc::new(Serving { router: routes.into_router(), speaking: self.speaking });
        accept_until(self.listener, "server", stop, |slot, watcher, stream| {
            tokio::spawn(Arc::clone(&serving).serve(slot, watcher, stream))
        })
        .await;
    }
}

impl Serving {
    async fn serve(self: Arc<Self>, slot: Slot, watcher: Watcher, stream: TcpStream) {
        match timeout(HANDSHAKE_TIMEOUT, stream.readable()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
        slot.enter(Stage::Handshaking);
        let transport = Transport::new(stream);
        let config = match &self.speaking {
            Speaking::Plain => return Arc::clone(&self).speak(slot, watcher, transport, true).await,
            Speaking::Tls { tls, .. } => tls.lock().unwrap_or_else(PoisonError::into_inner).config(),
        };
        match timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(transport)).await {
            Ok(Ok(stream)) => {
                let has_certificate = stream.get_ref().1.peer_certificates().is_some();
                self.speak(slot, watcher, stream, has_certificate).await;
            }
            Ok(Err(error)) => tracing::debug!(err = %error, "TLS handshake error"),
            Err(_) => {}
        }
    }

    async fn speak<Stream>(self: Arc<Self>, slot: Slot, watcher: Watcher, stream: Stream, is_known: bool)
    where
        Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        slot.enter(Stage::Fresh);
        let needs_certificate = matches!(self.speaking, Speaking::Tls { needs_certificate: true, .. });
        if needs_certificate && is_known {
            slot.trust();
        }
        let (slot, router) = (Arc::new(slot), self.router.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (slot, router) = (Arc::clone(&slot), router.clone());
            let is_refused = needs_certificate && !is_known && !PROBES.contains(&request.uri().path());
            async move {
                slot.enter(Stage::Answering);
                let response = match is_refused {
                    true => refuse(),
                    false => {
                        router.oneshot(request.map(Body::new)).await.unwrap_or_else(|never| match never {})
                    }
                };
                slot.enter(Stage::Idle);
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(err = %error, "A connection broke");
        }
    }
}

fn refuse() -> Response {
    let message = "a certificate is needed, of an authority that --client-ca-file names\n";
    text(StatusCode::UNAUTHORIZED, message.to_owned())
}
