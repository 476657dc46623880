//! Pages over HTTP, for everybody who can reach the address: what a configuration asks for by name.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use super::connection::HEAD_BYTES_MAX;
use super::page::Routes;
use super::{ACCEPT_RETRY_PERIOD, ServeError, bind, is_of_one_connection};

/// How many connections are served at once; others wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 32;

/// How long a connection lives: it serves one request, which nobody should take longer to send and to read.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// A server of pages that listens, and does not answer yet.
#[derive(Debug)]
pub struct PlainServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl PlainServer {
    /// Begins to listen.
    pub fn listen(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |error| ServeError::Listen { address, error };
        let listener = bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(PlainServer { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for as long as the process runs.
    pub async fn run(self, routes: Routes) {
        let router = routes.into_router();
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            // The semaphore is never closed.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let router = router.clone();
                    tokio::spawn(async move {
                        // A client that goes away, or takes too long, has only itself to blame.
                        let _ = timeout(CONNECTION_TIMEOUT, answer(router, stream)).await;
                        drop(slot);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(err = %error, "A connection could not be accepted");
                    sleep(ACCEPT_RETRY_PERIOD).await;
                }
            }
        }
    }
}

async fn answer(router: Router, stream: tokio::net::TcpStream) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let router = router.clone();
        async move {
            let response = router.oneshot(request).await;
            Ok::<_, Infallible>(response.unwrap_or_else(|never| match never {}))
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await
}
