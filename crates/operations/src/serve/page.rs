//! What is served where, and the answers that are always the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, put};
use serde_json::json;

use crate::logs::Verbosity;

use super::access::Refusal;
use super::gate::RETRY_AFTER_SECONDS;
use super::health::{self, Check, Note};
use super::slis::HealthRecord;
use super::zpages::{self, Component, Form};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// What is served where.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    router: Router,
    /// The pages so far, but for those about single objects.
    paths: Vec<String>,
    health: HealthRecord,
}

impl Routes {
    /// Nothing yet.
    pub fn new() -> Self {
        Routes::default()
    }

    /// Health checks, all at this path and each below it.
    #[must_use]
    pub fn health(self, path: &str, checks: Vec<Check>) -> Self {
        self.health_with_notes(path, checks, Vec::new)
    }

    /// The same; whoever wants to see every check is also shown what is worth a word, and no reason to fail.
    #[must_use]
    pub fn health_with_notes(
        self,
        path: &str,
        checks: Vec<Check>,
        notes: impl Fn() -> Vec<Note> + Send + Sync + 'static,
    ) -> Self {
        let router = health::router(path, checks, Arc::new(notes), &self.health);
        self.listed(path).merge(router)
    }

    /// `/metrics/slis`: how often health checks were made, and how they went.
    #[must_use]
    pub fn slis(self) -> Self {
        let health = self.health.clone();
        self.page("/metrics/slis", crate::metrics::CONTENT_TYPE, move || health.text())
    }

    /// `/flagz`: the flags, with their values, and `/statusz`: what runs, with the pages that there are so far.
    #[must_use]
    pub fn zpages(self, component: Component, flags: BTreeMap<String, String>) -> Self {
        let mut routes = self.listed("/flagz");
        routes.paths.sort();
        let (paths, component) = (routes.paths.clone(), Arc::new(component));
        let shown = Arc::clone(&component);
        routes.formed("/flagz", "Flagz", move |form| zpages::flagz(&shown, &flags, form)).formed(
            "/statusz",
            "Statusz",
            move |form| zpages::statusz(&component, &paths, form),
        )
    }

    /// A page of one kind, as text or as an object, whichever is asked for.
    fn formed(
        self,
        path: &str,
        kind: &'static str,
        make: impl Fn(&Form) -> String + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(make);
        let handler = get(async move |headers: HeaderMap| {
            let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
            match Form::of(accept, kind) {
                Some(form) => respond(StatusCode::OK, &form.content_type(), make(&form)),
                None => not_acceptable(),
            }
        });
        Routes { router: self.router.route(path, handler), ..self }
    }

    fn listed(mut self, path: &str) -> Self {
        self.paths.push(path.to_owned());
        self
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
        let routes = self.listed(path);
        Routes { router: routes.router.route(path, handler), ..routes }
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
        Routes { router: self.router.route(&format!("{path}/{{namespace}}/{{name}}"), handler), ..self }
    }

    /// Pages at a path and everywhere below it, each made from what follows the path, and from the query.
    #[must_use]
    pub fn tree<Made>(
        self,
        path: &str,
        make: impl Fn(String, String) -> Made + Clone + Send + Sync + 'static,
    ) -> Self
    where
        Made: Future<Output = Content> + Send + 'static,
    {
        let (prefix, own) = (format!("{path}/"), if path.is_empty() { "/" } else { path });
        let handler = get(async move |uri: Uri| {
            let below = uri.path().strip_prefix(&prefix).unwrap_or_default();
            make(below.to_owned(), uri.query().unwrap_or_default().to_owned()).await.respond()
        });
        let router = self.router.route(own, handler.clone()).route(&format!("{path}/{{*below}}"), handler);
        Routes { router, ..self }.listed(own)
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
        Routes { router: self.router.route("/debug/flags/v", put(set)), ..self }
    }

    /// Anything else, such as pages that read the query.
    #[must_use]
    pub fn merge(self, router: Router) -> Self {
        Routes { router: self.router.merge(router), ..self }
    }

    pub(super) fn into_router(self) -> Router {
        self.router.fallback(async || not_found())
    }
}

/// What a page has to say, or why it has nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The page.
    Page {
        /// What it is.
        content_type: Cow<'static, str>,
        /// What it says.
        body: String,
    },
    /// There is no such page.
    NotFound,
    /// The page cannot be made; the text says why.
    Failed(String),
}

impl Content {
    fn respond(self) -> Response {
        match self {
            Content::Page { content_type, body } => respond(StatusCode::OK, &content_type, body),
            Content::NotFound => not_found(),
            Content::Failed(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }
}

fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())
}

/// An answer in plain text.
pub(super) fn text(status: StatusCode, body: String) -> Response {
    respond(status, TEXT, body)
}

fn respond(status: StatusCode, content_type: &str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // All that are used here can be a header's value.
    headers.extend(HeaderValue::from_str(content_type).ok().map(|value| (CONTENT_TYPE, value)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Nobody can give what is asked for. The text is upstream's.
fn not_acceptable() -> Response {
    let message =
        "only the following media types are accepted: application/json, application/yaml, text/plain";
    failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message, false)
}

/// An object that says what went wrong.
fn failure(code: StatusCode, reason: &str, message: &str, has_details: bool) -> Response {
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    if has_details {
        status["details"] = json!({});
    }
    respond(code, JSON, format!("{status}\n"))
}

/// What somebody reads who may not. The texts and objects are upstream's.
pub(super) fn refuse(refusal: &Refusal, path: &str) -> Response {
    match refusal {
        Refusal::Unauthorized { detail } => {
            let message = match detail {
                Some(detail) => format!("Unauthorized: {detail}"),
                None => "Unauthorized".to_owned(),
            };
            failure(StatusCode::UNAUTHORIZED, "Unauthorized", &message, false)
        }
        Refusal::Forbidden { message } => failure(StatusCode::FORBIDDEN, "Forbidden", message, true),
        Refusal::Busy { message } => {
            let code = StatusCode::TOO_MANY_REQUESTS;
            let mut response = failure(code, "TooManyRequests", message, false);
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
            response
        }
        Refusal::Unknown { error } => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Server Error: {path:?}: {error}\n"))
        }
    }
}
