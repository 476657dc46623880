//! One query, asked.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use supercargo_client::{ApiServer, MissingRights};
use supercargo_framework::{Facts, HttpSource, PodAnswer, Query, QuerySource, Question};
use supercargo_model::Timestamp;
use tokio::time::{Instant, timeout};

use crate::failure::{Failure, FailureKind};
use crate::http::HttpClient;
use crate::{line, metrics_api, prometheus};

/// Asks what a query asks.
#[derive(Debug)]
pub struct Asker {
    query: Query,
    server: ApiServer,
    http: HttpClient,
}

/// What came of asking once.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What was answered, read; or why there is no answer.
    pub answer: Result<Facts, Failure>,
    /// How long it took, reading included.
    pub took: Duration,
    /// How long the answer is, in bytes; 0 if there is none.
    pub bytes: usize,
}

impl Asker {
    /// Gets ready to ask. The API server is asked for what the metrics API says, and for nothing else.
    pub fn new(query: Query, server: &ApiServer) -> Self {
        // A scheduler that is not allowed to read metrics does its work: it is no missing right of its own.
        let server = server.clone().with_missing_rights(MissingRights::default());
        Asker { query, server, http: HttpClient::default() }
    }

    /// The query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Asks once. Samples are as old as they are when the answer has come, by `now`. The answer is read on a thread for work that takes
    /// long, so that a large one delays no other task; whatever the plugin's own function does, it ends here.
    pub async fn ask(&self, now: impl Fn() -> Timestamp) -> Asked {
        let began = Instant::now();
        let limits = Limits { deadline: self.query.deadline(), bytes_max: self.query.bytes_max() };
        let body = fetch(self.query.source(), limits, &self.http, &self.server, now()).await;
        let (answer, bytes) = match body {
            Err(failure) => (Err(failure), 0),
            Ok(body) => {
                let bytes = body.len();
                (read(self.query.clone(), body, now()).await, bytes)
            }
        };
        Asked { answer, took: began.elapsed(), bytes }
    }
}

/// Asks about pods. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Inquirer {
    server: ApiServer,
    http: HttpClient,
}

impl Inquirer {
    /// Gets ready to ask what one question asks, about any pod.
    pub fn new(server: &ApiServer) -> Self {
        let server = server.clone().with_missing_rights(MissingRights::default());
        Inquirer { server, http: HttpClient::default() }
    }

    /// Asks a question about a pod, whose source that is, within its deadline. It is read where it was asked: answers about one pod are
    /// small, and there are many of them.
    pub async fn ask(
        &self,
        question: &Question,
        source: &QuerySource,
        now: Timestamp,
    ) -> Result<PodAnswer, Failure> {
        let limits = Limits { deadline: question.deadline(), bytes_max: question.bytes_max() };
        let body = fetch(source, limits, &self.http, &self.server, now).await?;
        let read = AssertUnwindSafe(|| question.read(source, &body, now));
        let answer = catch_unwind(read).unwrap_or_else(|panic| Err(panicked(&*panic)));
        answer.map_err(|reason| Failure::new(FailureKind::Unreadable, reason))
    }
}

/// How long an answer may take, and how long it may be.
#[derive(Clone, Copy)]
struct Limits {
    deadline: Duration,
    bytes_max: usize,
}

/// What a source answers, as it comes. As a box, so that tasks that ask are small.
fn fetch<'a>(
    source: &'a QuerySource,
    limits: Limits,
    http: &'a HttpClient,
    server: &'a ApiServer,
    now: Timestamp,
) -> Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send + 'a>> {
    Box::pin(async move {
        let Limits { deadline, bytes_max } = limits;
        let fetching = async {
            match source {
                QuerySource::Prometheus(source) => {
                    let request = prometheus::request(source, deadline, now);
                    http.ask(&request, &source.endpoint, bytes_max).await
                }
                QuerySource::Http(source) => {
                    http.ask(&crate::http::request(source), &source.endpoint, bytes_max).await
                }
                QuerySource::NodeMetrics => metrics_api::ask(server, bytes_max).await,
                QuerySource::Line(source) => line::ask(source, bytes_max).await,
            }
        };
        within(deadline, fetching, source).await
    })
}

/// A page that is no query's: what is answered, if it comes in time and is no longer than that.
pub async fn fetch_page(source: &HttpSource, deadline: Duration, bytes_max: usize) -> Result<Bytes, Failure> {
    let http = HttpClient::default();
    let request = crate::http::request(source);
    let fetching = http.ask(&request, &source.endpoint, bytes_max);
    within(deadline, fetching, &source.endpoint.url).await
}

/// What comes of asking somebody, unless it takes too long.
async fn within<T>(
    deadline: Duration,
    fetching: impl Future<Output = Result<T, Failure>>,
    source: &impl fmt::Display,
) -> Result<T, Failure> {
    timeout(deadline, fetching).await.unwrap_or_else(|_| {
        let reason = format!("{source} gave no whole answer within {deadline:?}");
        Err(Failure::new(FailureKind::TimedOut, reason))
    })
}

async fn read(query: Query, body: Bytes, now: Timestamp) -> Result<Facts, Failure> {
    let reading = tokio::task::spawn_blocking(move || query.read(&body, now)).await;
    let reason = match reading {
        Ok(Ok(facts)) => return Ok(facts),
        Ok(Err(reason)) => reason,
        Err(ended) if ended.is_panic() => panicked(&*ended.into_panic()),
        Err(_) => "the process stops".to_owned(),
    };
    Err(Failure::new(FailureKind::Unreadable, reason))
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("the plugin panicked when it read the answer: {text}")
}
