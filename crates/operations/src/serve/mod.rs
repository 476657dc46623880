//! Health, metrics and pages over HTTPS, for those who may read them.
//!
//! HTTP/1.1 only: kubelets and Prometheus need no more, and HTTP/2 costs memory for each connection. Differences from
//! upstream: a client certificate that its authority did not sign ends the handshake, where upstream goes on and answers 401.

mod access;
mod cache;
mod certificate;
mod health;
mod page;
mod review;
mod slis;
mod subject;
mod zpages;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

pub use access::{
    ALWAYS_ALLOW_PATHS, Access, Answer, InvalidPath, Question, Refusal, Reviewer, TokenAnswer, User, Verdict,
};
pub use certificate::{CertificateSource, ClientAuthority, FollowedAuthority, TlsError, TlsOptions};
pub use health::Check;
pub use page::Routes;
pub use review::{KubeReviewer, follow_client_authority, look_up_client_authority};
pub use zpages::Component;

use certificate::Tls;

/// How many connections are served at once. Further ones wait.
const CONNECTIONS_MAX: usize = 256;

/// How long a client may take to agree on TLS, and then to send the head of a request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long requests under way may take when the server stops, as upstream.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait after a connection could not be accepted, as when there are no more file descriptors.
const ACCEPT_RETRY_PERIOD: Duration = Duration::from_secs(1);

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address; unspecified means all, of both families.
    pub bind_address: IpAddr,
    /// The port. Here 0 means any that is free; who gives `--secure-port=0` does not serve at all.
    pub port: u16,
    /// Who we are.
    pub certificate: CertificateSource,
    /// Who signs for our clients.
    pub client_authority: ClientAuthority,
    /// How TLS is spoken.
    pub tls: TlsOptions,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A server that listens, and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Tls,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Server({})", self.address)
    }
}

impl Server {
    /// Begins to listen.
    pub async fn listen(options: ServeOptions) -> Result<Self, ServeError> {
        let tls = Tls::new(options.certificate, options.client_authority, options.tls, options.bind_address)?;
        let address = SocketAddr::new(options.bind_address, options.port);
        let failed = |error| ServeError::Listen { address, error };
        let listener = bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address, tls })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; then requests under way get a few seconds to finish.
    pub async fn run(mut self, routes: Routes, access: Access, stop: impl Future<Output = ()>) {
        let router = routes.into_router();
        let connections = GracefulShutdown::new();
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut stop = pin!(stop);
        loop {
            let slot = tokio::select! {
                biased;
                () = &mut stop => break,
                slot = Arc::clone(&slots).acquire_owned() => slot,
            };
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "A connection could not be accepted");
                    sleep(ACCEPT_RETRY_PERIOD).await;
                    continue;
                }
            };
            let acceptor = TlsAcceptor::from(self.tls.config());
            let (router, access, watcher) = (router.clone(), access.clone(), connections.watcher());
            tokio::spawn(async move {
                let _slot = slot;
                if let Some((stream, user)) = handshake(acceptor, stream).await {
                    let user = Arc::new(user);
                    let service = service_fn(move |request| {
                        answer(router.clone(), access.clone(), Arc::clone(&user), request)
                    });
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEADER_TIMEOUT)
                        .serve_connection(TokioIo::new(stream), service);
                    if let Err(error) = watcher.watch(connection).await {
                        tracing::debug!(%error, "A connection broke");
                    }
                }
            });
        }
        drop(self.listener);
        tracing::info!("[graceful-termination] secure server has stopped listening");
        if timeout(STOP_TIMEOUT, connections.shutdown()).await.is_err() {
            tracing::warn!("[graceful-termination] requests were cut off");
        }
        tracing::info!("[graceful-termination] secure server is exiting");
    }
}

/// Listens. Of an unspecified address both families are meant, as in Go, if the machine has both.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip().is_unspecified() {
        let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
        match TcpListener::bind(both).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // There is no IPv6 here.
            Err(_) => {}
        }
    }
    TcpListener::bind(address).await
}

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// Agrees on TLS, and reads who the client's certificate says he is. None if that fails.
async fn handshake(acceptor: TlsAcceptor, stream: TcpStream) -> Option<(TlsStream, Option<User>)> {
    let stream = match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake error");
            return None;
        }
        Err(_) => return None,
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let user = certificate.and_then(|certificate| subject::user(certificate));
    Some((stream, user))
}

async fn answer(
    router: Router,
    access: Access,
    certificate: Arc<Option<User>>,
    request: hyper::Request<Incoming>,
) -> Result<Response, std::convert::Infallible> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let authorization = request.headers().get(hyper::header::AUTHORIZATION).cloned();
    let question = Question {
        method: method.as_str(),
        path: &path,
        authorization: authorization.as_ref().and_then(|header| header.to_str().ok()),
        certificate: certificate.as_ref().as_ref(),
    };
    match access.check(&question).await {
        Ok(user) => {
            let mut request = request.map(Body::new);
            // Pages may want to know who reads them; nobody needs the token any more.
            request.headers_mut().remove(hyper::header::AUTHORIZATION);
            request.extensions_mut().insert(user);
            router.oneshot(request).await
        }
        Err(refusal) => {
            tracing::debug!(path, ?refusal, "A request was refused");
            Ok(page::refuse(&refusal, &path))
        }
    }
}
