//! What is served where, and the answers that are always the same.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, put};
use serde_json::json;

use crate::logs::Verbosity;

use super::access::Refusal;
use super::health::{self, Check};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// What is served where.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    router: Router,
}

impl Routes {
    /// Nothing yet.
    pub fn new() -> Self {
        Routes::default()
    }

    /// Health checks, all at this path and each below it.
    #[must_use]
    pub fn health(self, path: &str, checks: Vec<Check>) -> Self {
        self.merge(health::router(path, checks))
    }

    /// A page that is made anew for each request. Making it must not take long: nothing else is served meanwhile.
    #[must_use]
    pub fn page(
        self,
        path: &str,
        content_type: &'static str,
        make: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(make);
        let handler = get(async move || respond(StatusCode::OK, content_type, make()));
        Routes { router: self.router.route(path, handler) }
    }

    /// A page of JSON.
    #[must_use]
    pub fn json(self, path: &str, make: impl Fn() -> serde_json::Value + Send + Sync + 'static) -> Self {
        self.page(path, JSON, move || make().to_string())
    }

    /// Pages of JSON about objects, at `path/NAMESPACE/NAME` each. An error means that nobody can say.
    #[must_use]
    pub fn object<Made>(
        self,
        path: &str,
        make: impl Fn(String, String) -> Made + Clone + Send + Sync + 'static,
    ) -> Self
    where
        Made: Future<Output = Result<serde_json::Value, String>> + Send + 'static,
    {
        let handler = get(async move |Path((namespace, name)): Path<(String, String)>| {
            match make(namespace, name).await {
                Ok(value) => respond(StatusCode::OK, JSON, format!("{value}\n")),
                Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
            }
        });
        Routes { router: self.router.route(&format!("{path}/{{namespace}}/{{name}}"), handler) }
    }

    /// `/debug/flags/v`: a PUT with a number changes how much is logged, as upstream.
    #[must_use]
    pub fn verbosity(self, verbosity: Verbosity) -> Self {
        let set = async move |body: String| match body.trim().parse() {
            Ok(level) => {
                verbosity.set(level);
                text(StatusCode::OK, format!("successfully set klog.logging.verbosity to {level}"))
            }
            Err(error) => {
                let message = format!("failed set klog.logging.verbosity {}: {error}\n", body.trim());
                text(StatusCode::BAD_REQUEST, message)
            }
        };
        Routes { router: self.router.route("/debug/flags/v", put(set)) }
    }

    /// Anything else, such as pages that read the query.
    #[must_use]
    pub fn merge(self, router: Router) -> Self {
        Routes { router: self.router.merge(router) }
    }

    pub(super) fn into_router(self) -> Router {
        self.router.fallback(async || text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()))
    }
}

/// An answer in plain text.
pub(super) fn text(status: StatusCode, body: String) -> Response {
    respond(status, TEXT, body)
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// What somebody reads who may not. The texts and objects are upstream's.
pub(super) fn refuse(refusal: &Refusal, path: &str) -> Response {
    let status = |code: StatusCode, reason: &str, message: String, details: bool| {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code.as_u16(),
        });
        if details {
            status["details"] = json!({});
        }
        respond(code, JSON, format!("{status}\n"))
    };
    match refusal {
        Refusal::Unauthorized { detail } => {
            let message = match detail {
                Some(detail) => format!("Unauthorized: {detail}"),
                None => "Unauthorized".to_owned(),
            };
            status(StatusCode::UNAUTHORIZED, "Unauthorized", message, false)
        }
        Refusal::Forbidden { message } => status(StatusCode::FORBIDDEN, "Forbidden", message.clone(), true),
        Refusal::Unknown { error } => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Server Error: {path:?}: {error}\n"))
        }
    }
}
