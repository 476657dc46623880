//! Health, metrics and pages over HTTPS, for those who may read them.
//!
//! HTTP/1.1 only: kubelets and Prometheus need no more, and HTTP/2 costs memory for each connection. Differences from
//! upstream: a client certificate that its authority did not sign ends the handshake, where upstream goes on and answers 401.
//!
//! Every connection is accepted at once; when there are too many, the least useful one is closed (`connections.rs`). What one connection may cost is
//! limited in `connection.rs`.

mod access;
mod cache;
mod certificate;
mod connection;
mod connections;
mod gate;
mod health;
mod open;
mod page;
mod plain;
mod review;
mod slis;
mod subject;
mod transport;
mod zpages;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

pub use access::{
    ALWAYS_ALLOW_PATHS, Access, Answer, Because, ClientCertificate, Granted, InvalidPath, Question, Refusal,
    Reviewer, TokenAnswer, User, Verdict,
};
pub use certificate::{CertificateSource, ClientAuthority, FollowedAuthority, TlsError, TlsOptions};
pub use health::{Check, Note};
pub use open::{OpenServer, OpenTls};
pub use page::{Content, Routes};
pub use plain::PlainServer;
pub use review::{ApiReviewer, follow_client_authority, look_up_client_authority};
pub use zpages::Component;

use certificate::Tls;
use connection::Serving;
use connections::{Connections, Peer, Slot, Stage};

/// How long requests under way may take when the server stops, as upstream.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait after a connection could not be accepted, as when there are no more file descriptors.
const ACCEPT_RETRY_PERIOD: Duration = Duration::from_millis(100);

/// How many connections the kernel keeps for us until they are accepted, unless the machine's limit (`net.core.somaxconn`, 4096 by default) is lower.
/// What comes when that queue is full is dropped by the kernel, and the client tries again only after a second.
const LISTEN_BACKLOG: u32 = 4_096;

/// So many connections are accepted before those that are open get their turn. A flood of new connections would otherwise close others whose
/// bytes have arrived and only wait to be looked at.
const ACCEPT_BATCH: usize = 16;

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
        let listener = bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address, tls })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; then requests under way get a few seconds to finish.
    pub async fn run(self, routes: Routes, access: Access, stop: impl Future<Output = ()>) {
        let serving = Arc::new(Serving {
            router: routes.into_router(),
            access: Arc::new(access),
            tls: Mutex::new(self.tls),
        });
        accept_until(self.listener, "secure server", stop, |slot, watcher, stream| {
            tokio::spawn(connection::serve(Arc::clone(&serving), slot, watcher, stream))
        })
        .await;
    }
}

/// Accepts connections until `stop` is ready, and has each served by a task; then requests under way get a few seconds to finish.
async fn accept_until(
    listener: TcpListener,
    name: &str,
    stop: impl Future<Output = ()>,
    serve: impl Fn(Slot, Watcher, TcpStream) -> JoinHandle<()>,
) {
    let watched = GracefulShutdown::new();
    let connections = Connections::default();
    let mut stop = pin!(stop);
    let mut accepted_in_a_row = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            // The client went away before it was accepted.
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                tracing::warn!(err = %error, "A connection could not be accepted; another one is closed");
                connections.shed_one();
                sleep(ACCEPT_RETRY_PERIOD).await;
                continue;
            }
        };
        // Answers are short; none is held back to be joined with the next. It only costs time if that fails.
        let _ = stream.set_nodelay(true);
        let peer = Peer::of(address.ip());
        // Where many wait to be accepted, the first bytes of a client that wants something have arrived before that: it is not taken for a
        // silent one until its task gets its turn.
        let stage = match connections.is_pressed(peer) && has_received(&stream) {
            true => Stage::Handshaking,
            false => Stage::Silent,
        };
        let slot = loop {
            match connections.open(peer, stage) {
                Ok(slot) => break slot,
                Err(pause) => sleep(pause).await,
            }
        };
        let number = slot.number();
        let task = serve(slot, watched.watcher(), stream);
        connections.served_by(number, task.abort_handle());
        accepted_in_a_row += 1;
        if accepted_in_a_row % ACCEPT_BATCH == 0 {
            yield_now().await;
        }
    }
    drop(listener);
    tracing::info!("[graceful-termination] {name} has stopped listening");
    if timeout(STOP_TIMEOUT, watched.shutdown()).await.is_err() {
        tracing::warn!("[graceful-termination] requests were cut off");
    }
    tracing::info!("[graceful-termination] {name} is exiting");
}

/// Listens. Of an unspecified address both families are meant, as in Go, if the machine has both.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip().is_unspecified() {
        let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
        match bind_one(both) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // There is no IPv6 here.
            Err(_) => {}
        }
    }
    bind_one(address)
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A replica that is started again takes the port over while connections of the last one linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
}

/// Whether something was received on a connection. The kernel is asked: the runtime knows of a new connection only later.
fn has_received(stream: &TcpStream) -> bool {
    let Ok(same) = stream.as_fd().try_clone_to_owned() else { return false };
    // The clone does not block either.
    std::net::TcpStream::from(same).peek(&mut [0]).is_ok()
}

/// Whether an error of `accept` is about the one connection that was to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
