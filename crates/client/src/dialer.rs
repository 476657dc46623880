//! What makes connections that notice a dead peer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};
use tracing::warn;

use crate::environment::Environment;
use crate::material::Material;
use crate::target::Target;
use crate::{proxy, tls};

/// How long it may take until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// After so much silence the kernel asks whether the other side is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
/// How often it asks again.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// After so many questions without an answer the connection is given up.
const KEEPALIVE_RETRIES: u32 = 3;
/// After so much time without an acknowledgement of what was sent the kernel gives a connection up.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(45);

/// What makes connections that notice a dead peer, through a proxy if there is one, and secures them.
pub(crate) fn connector(target: &Target, material: &Material) -> Result<HttpsConnector<Dialer>, String> {
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
pub(crate) enum Dialer {
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
