//! One connection, from its first byte to its last answer, and what it may cost.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, CONNECTION};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use super::access::{Access, Because, ClientCertificate, Question, Refusal, User};
use super::certificate::Tls;
use super::connections::{Slot, Stage};
use super::health::Reader;
use super::transport::Transport;
use super::{page, subject};

/// How long a client may take to send its first byte, and then to agree on TLS.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request; this is also how long a connection may be idle between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the head of a request may be. Tokens are a few thousand bytes long.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// How many requests are answered on one connection; the last answer closes it.
pub(super) const REQUESTS_PER_CONNECTION_MAX: u32 = 1_000;

/// What all connections share.
pub(super) struct Serving {
    pub(super) router: Router,
    pub(super) access: Arc<Access>,
    pub(super) tls: Mutex<Tls>,
}

/// Serves a connection until it ends. Its slot is given back then.
pub(super) async fn serve(serving: Arc<Serving>, slot: Slot, watcher: Watcher, stream: TcpStream) {
    // Until something is received a connection costs no more than its socket and this task.
    match timeout(HANDSHAKE_TIMEOUT, stream.readable()).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => return,
    }
    slot.enter(Stage::Handshaking);
    Box::pin(speak(serving, slot, watcher, stream)).await;
}

async fn speak(serving: Arc<Serving>, slot: Slot, watcher: Watcher, stream: TcpStream) {
    let config = serving.tls.lock().unwrap_or_else(PoisonError::into_inner).config();
    let acceptor = TlsAcceptor::from(config);
    let stream = match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(Transport::new(stream))).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(err = %error, "TLS handshake error");
            return;
        }
        Err(_) => return,
    };
    slot.enter(Stage::Fresh);
    let client = Arc::new(Client::new(serving, slot, &stream));
    let service = service_fn(move |request| {
        let client = Arc::clone(&client);
        async move { Ok::<_, Infallible>(client.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(err = %error, "A connection broke");
    }
}

/// The client at the other end of a connection.
struct Client {
    serving: Arc<Serving>,
    slot: Slot,
    /// The client's certificate and its chain, and whom it names. It was good when the connection was made.
    certificate: Option<(Vec<CertificateDer<'static>>, User)>,
    requests: AtomicU32,
}

impl Client {
    fn new<Stream>(serving: Arc<Serving>, slot: Slot, stream: &TlsStream<Stream>) -> Self {
        let chain = stream.get_ref().1.peer_certificates();
        let certificate = chain.and_then(|chain| {
            let user = subject::user(chain.first()?)?;
            Some((chain.iter().map(|certificate| certificate.clone().into_owned()).collect(), user))
        });
        Client { serving, slot, certificate, requests: AtomicU32::new(0) }
    }

    async fn answer(&self, request: hyper::Request<Incoming>) -> Response {
        self.slot.enter(Stage::Answering);
        let mut response = self.respond(request).await;
        // What was answered is not lost if the connection is closed while the client takes its time to read it.
        self.slot.enter(Stage::Idle);
        let requests = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if requests >= REQUESTS_PER_CONNECTION_MAX {
            close_after(&mut response);
        }
        response
    }

    async fn respond(&self, request: hyper::Request<Incoming>) -> Response {
        let path = request.uri().path().to_owned();
        let method = request.method().as_str().to_owned();
        let authorization = request.headers().get(AUTHORIZATION).cloned();
        let refused = self.reverify();
        let certificate = match (&self.certificate, &refused) {
            (None, _) => ClientCertificate::None,
            (Some((_, user)), Ok(())) => ClientCertificate::Names(user),
            (Some(_), Err(reason)) => ClientCertificate::Refused(reason),
        };
        let question = Question {
            method: &method,
            path: &path,
            authorization: authorization.as_ref().and_then(|header| header.to_str().ok()),
            certificate,
        };
        let access = &self.serving.access;
        match access.check(&question).await {
            Ok(granted) => {
                if granted.because == Because::User && !granted.user.is_anonymous() {
                    self.slot.trust();
                }
                let mut request = request.map(Body::new);
                // Pages may want to know who reads them; nobody needs the token any more.
                request.headers_mut().remove(AUTHORIZATION);
                request.extensions_mut().insert(Reader { access: Arc::clone(access), granted, method, path });
                match self.serving.router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                }
            }
            Err(refusal) => {
                tracing::debug!(path, ?refusal, "A request was refused");
                let mut response = page::refuse(&refusal, &path);
                if matches!(refusal, Refusal::Unauthorized { .. }) {
                    // A client that tries token after token has to connect for each of them.
                    close_after(&mut response);
                }
                response
            }
        }
    }

    /// Whether the client's certificate is still good, if there is one.
    fn reverify(&self) -> Result<(), String> {
        match &self.certificate {
            None => Ok(()),
            Some((chain, _)) => self.serving.tls.lock().unwrap_or_else(PoisonError::into_inner).verify(chain),
        }
    }
}

/// Closes the connection after this answer.
fn close_after(response: &mut Response) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}
