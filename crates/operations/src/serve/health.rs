//! Health checks, with the words of Kubernetes' `healthz`.
//!
//! Difference from upstream: the page of all checks tells why one has failed to a user whom the API server knows and allows to read the
//! page. Upstream withholds the reason there from everybody, and tells it on the check's own page alone.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;

use super::access::{Access, Granted};
use super::page::text;
use super::slis::HealthRecord;

/// Something that is well or not.
#[derive(Clone)]
pub struct Check {
    name: &'static str,
    run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Check({})", self.name)
    }
}

impl Check {
    /// A check. It must answer at once. The error goes to the log, to users who may read the check's own path, and to users who are known and
    /// may read the path of all checks.
    pub fn new(name: &'static str, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Check { name, run: Arc::new(run) }
    }

    /// Makes the check, for a page of this name.
    fn make(&self, page: &str, record: &HealthRecord) -> Result<(), String> {
        let result = (self.run)();
        record.note(self.name, page, result.is_ok());
        result
    }

    /// A check that is well as long as somebody answers.
    pub fn ping() -> Self {
        Check::new("ping", || Ok(()))
    }
}

/// Something worth a word on the page of all checks, which makes none of them fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// For everybody who reads the page.
    pub summary: String,
    /// What is behind it, for users who are known and may read the page.
    pub reason: Option<String>,
}

/// What is worth a word right now.
pub(super) type Notes = Arc<dyn Fn() -> Vec<Note> + Send + Sync>;

/// The paths of a set of checks: all of them at `path`, each at a path of its own below. Without any there is `ping`.
pub(super) fn router(path: &str, mut checks: Vec<Check>, notes: Notes, record: &HealthRecord) -> Router {
    if checks.is_empty() {
        checks.push(Check::ping());
    }
    let mut router = Router::new();
    let name: Arc<str> = path.trim_start_matches('/').into();
    for check in checks.clone() {
        let below = format!("{path}/{}", check.name);
        let (name, record) = (name.clone(), record.clone());
        router = router.route(&below, get(async move || one(&name, &check, &record)));
    }
    let (checks, record): (Arc<[Check]>, _) = (checks.into(), record.clone());
    router.route(
        path,
        get(async move |request: Request| {
            let reader = request.extensions().get::<Reader>().cloned();
            let query = request.uri().query().unwrap_or_default();
            all(&name, &checks, &notes, &record, query, reader).await
        }),
    )
}

/// Who reads a page, and how to find out what else the user may know. Found among the extensions of a request.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) access: Arc<Access>,
    pub(super) granted: Granted,
    pub(super) method: String,
    pub(super) path: String,
}

impl Reader {
    async fn may_know(&self) -> bool {
        self.access.may_know(&self.method, &self.path, &self.granted).await
    }
}

fn one(name: &str, check: &Check, record: &HealthRecord) -> Response {
    match check.make(name, record) {
        Ok(()) => text(StatusCode::OK, "ok".to_owned()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {error}\n")),
    }
}

async fn all(
    name: &str,
    checks: &[Check],
    notes: &Notes,
    record: &HealthRecord,
    query: &str,
    reader: Option<Reader>,
) -> Response {
    let parameters = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let excluded: Vec<&str> =
        parameters().filter(|(key, _)| *key == "exclude").map(|(_, value)| value).collect();
    // None for a check that was not made.
    let made: Vec<(&Check, Option<Result<(), String>>)> = checks
        .iter()
        .map(|check| {
            let is_excluded = excluded.contains(&check.name);
            (check, (!is_excluded).then(|| check.make(name, record)))
        })
        .collect();
    let has_failed = made.iter().any(|(_, result)| matches!(result, Some(Err(_))));
    let is_verbose = parameters().any(|(key, _)| key == "verbose");
    let notes = if is_verbose || has_failed { notes() } else { Vec::new() };
    let has_reason = has_failed || notes.iter().any(|note| note.reason.is_some());
    let may_know = match reader {
        // The API server is asked only if there is something to know.
        Some(reader) if has_reason => reader.may_know().await,
        _ => false,
    };
    let mut lines = String::new();
    let mut failed = Vec::new();
    for (check, result) in made {
        match result {
            None => lines.push_str(&format!("[+]{} excluded: ok\n", check.name)),
            Some(Ok(())) => lines.push_str(&format!("[+]{} ok\n", check.name)),
            Some(Err(error)) => {
                let reason = if may_know { error.as_str() } else { "reason withheld" };
                lines.push_str(&format!("[-]{} failed: {reason}\n", check.name));
                failed.push(format!("{}: {error}", check.name));
            }
        }
    }
    for Note { summary, reason } in notes {
        match reason.filter(|_| may_know) {
            Some(reason) => lines.push_str(&format!("[i]{summary}: {reason}\n")),
            None => lines.push_str(&format!("[i]{summary}\n")),
        }
    }
    let mut unknown: Vec<String> = excluded
        .iter()
        .filter(|name| !checks.iter().any(|check| check.name == **name))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        unknown.sort();
        let unknown = unknown.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
    }
    if !failed.is_empty() {
        tracing::info!(target: crate::logs::V2, check = name, err = failed.join("; "), "Health check failed");
        return text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{name} check failed\n"));
    }
    if is_verbose {
        return text(StatusCode::OK, format!("{lines}{name} check passed\n"));
    }
    text(StatusCode::OK, "ok".to_owned())
}
