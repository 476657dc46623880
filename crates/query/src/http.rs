//! Servers that speak HTTP/1.1.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use supercargo_client::with_causes;
use supercargo_framework::{Endpoint, HttpMethod, HttpSource};
use supercargo_model::printable;

use crate::failure::{Failure, FailureKind};
use crate::tls::{Material, connector};

/// How long an idle connection is kept.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How many idle connections are kept: a query asks once at a time, a question about several pods.
const POOL_IDLE_MAX: usize = 8;
/// How much is read of an answer that says what went wrong, and how many characters of it are shown.
const ERROR_BYTES_MAX: usize = 8 << 10;
const ERROR_CHARACTERS_MAX: usize = 200;
/// How long that may take: what went wrong is known already.
const ERROR_PATIENCE: Duration = Duration::from_millis(100);

const SUPERCARGO: HeaderValue = HeaderValue::from_static(concat!("supercargo/", env!("CARGO_PKG_VERSION")));

/// What is sent where.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) url: String,
    /// What is posted; none for a GET.
    pub(crate) content: Option<Content>,
}

/// What is posted.
#[derive(Debug, PartialEq)]
pub(crate) struct Content {
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// Makes requests to one server, over connections that are made anew when the files change that secure them.
/// Clones share them.
#[derive(Clone, Default)]
pub(crate) struct HttpClient {
    ready: Arc<Mutex<Option<(Material, Connections)>>>,
}

type Connections = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HttpClient")
    }
}

/// The request of a source.
pub(crate) fn request(source: &HttpSource) -> Request {
    let content = match &source.method {
        HttpMethod::Get => None,
        HttpMethod::Post { content_type, body } => {
            Some(Content { content_type: content_type.clone(), body: Bytes::from(body.clone()) })
        }
    };
    Request { url: source.endpoint.url.clone(), content }
}

impl HttpClient {
    /// Asks, and returns the whole body of an answer that is good and no longer than that.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        bytes_max: usize,
    ) -> Result<Bytes, Failure> {
        let material = Material::read(endpoint).await?;
        let request = built(request, endpoint, material.token.as_deref())?;
        let connections = self.connections(endpoint, material)?;
        let response = connections.request(request).await.map_err(|error| {
            let kind = if error.is_connect() { FailureKind::Unreachable } else { FailureKind::Cut };
            Failure::new(kind, format!("{}: {}", endpoint.url, with_causes(&error)))
        })?;
        if response.status() != StatusCode::OK {
            return Err(refused(endpoint, response).await);
        }
        if let Some(encoding) = response.headers().get(CONTENT_ENCODING)
            && encoding != "identity"
        {
            let reason =
                format!("{} answers compressed ({}), which nobody asked for", endpoint.url, shown(encoding));
            return Err(Failure::new(FailureKind::Unreadable, reason));
        }
        whole(&endpoint.url, response.into_body(), bytes_max).await
    }

    fn connections(&self, endpoint: &Endpoint, material: Material) -> Result<Connections, Failure> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, connections)) = &*ready
            && known.secures_as(&material)
        {
            return Ok(connections.clone());
        }
        let connector = connector(endpoint, &material).map_err(|reason| {
            Failure::new(FailureKind::Credentials, format!("{}: {reason}", endpoint.url))
        })?;
        let connections = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .build(connector);
        *ready = Some((material, connections.clone()));
        Ok(connections)
    }
}

/// Reads a body, and no more of it than allowed.
async fn whole<B>(from: &str, body: B, bytes_max: usize) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_long =
        || Failure::new(FailureKind::TooLong, format!("{from} answers with more than {bytes_max} bytes"));
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_long());
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_long()),
        Err(error) => Err(Failure::new(
            FailureKind::Cut,
            format!("{from} broke off its answer: {}", with_causes(&*error)),
        )),
    }
}

fn built(
    request: &Request,
    endpoint: &Endpoint,
    token: Option<&str>,
) -> Result<http::Request<Full<Bytes>>, Failure> {
    let unusable =
        |kind: FailureKind, reason: String| Failure::new(kind, format!("{}: {reason}", endpoint.url));
    let uri: Uri = request.url.parse().map_err(|error: http::uri::InvalidUri| {
        unusable(FailureKind::Unreachable, format!("no address can be made of it: {error}"))
    })?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(USER_AGENT, SUPERCARGO);
    for (name, value) in &endpoint.headers {
        let pair = (name.parse::<HeaderName>().ok(), HeaderValue::from_str(value).ok());
        let (Some(name), Some(value)) = pair else {
            return Err(unusable(FailureKind::Credentials, format!("the header {name} cannot be sent")));
        };
        headers.insert(name, value);
    }
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            unusable(FailureKind::Credentials, "the token has characters that no header can have".to_owned())
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut made = http::Request::new(Full::default());
    *made.uri_mut() = uri;
    if let Some(Content { content_type, body }) = &request.content {
        let content_type = HeaderValue::from_str(content_type).map_err(|_| {
            unusable(
                FailureKind::Credentials,
                "the content type has characters that no header can have".to_owned(),
            )
        })?;
        headers.insert(CONTENT_TYPE, content_type);
        *made.method_mut() = Method::POST;
        *made.body_mut() = Full::new(body.clone());
    }
    *made.headers_mut() = headers;
    Ok(made)
}

/// What an answer means that is not good.
async fn refused<B>(endpoint: &Endpoint, response: Response<B>) -> Failure
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (status, url) = (response.status(), &endpoint.url);
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).map_or_else(|| "elsewhere".to_owned(), shown);
        let reason = format!(
            "{url} answers {status} and points to {location}, which is not followed: name that address"
        );
        return Failure::new(FailureKind::Redirected, reason);
    }
    let body = Limited::new(response.into_body(), ERROR_BYTES_MAX).collect();
    let text = match tokio::time::timeout(ERROR_PATIENCE, body).await {
        Ok(Ok(body)) => excerpt(&body.to_bytes()),
        _ => String::new(),
    };
    let separator = if text.is_empty() { "" } else { ": " };
    Failure::new(FailureKind::Refused, format!("{url} answers {status}{separator}{text}"))
}

fn shown(value: &HeaderValue) -> String {
    excerpt(value.as_bytes())
}

fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let part: String = text.trim().chars().take(ERROR_CHARACTERS_MAX).collect();
    printable(&part).into_owned()
}
