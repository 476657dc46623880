//! One query, asked.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use supercargo_client::{ApiServer, MissingRights};
use supercargo_framework::{Facts, Query, QuerySource};
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
    pub async fn ask(&mut self, now: impl Fn() -> Timestamp) -> Asked {
        let began = Instant::now();
        let deadline = self.query.deadline();
        let body = match timeout(deadline, self.fetching(now())).await {
            Ok(body) => body,
            Err(_) => {
                let reason = format!("{} gave no whole answer within {deadline:?}", self.query.source());
                Err(Failure::new(FailureKind::TimedOut, reason))
            }
        };
        let (answer, bytes) = match body {
            Err(failure) => (Err(failure), 0),
            Ok(body) => {
                let bytes = body.len();
                (read(self.query.clone(), body, now()).await, bytes)
            }
        };
        Asked { answer, took: began.elapsed(), bytes }
    }

    /// As a box, so that tasks that ask are small.
    fn fetching(
        &mut self,
        now: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send + '_>> {
        Box::pin(self.fetch(now))
    }

    async fn fetch(&mut self, now: Timestamp) -> Result<Bytes, Failure> {
        let bytes_max = self.query.bytes_max();
        match self.query.source() {
            QuerySource::Prometheus(source) => {
                let request = prometheus::request(source, self.query.deadline(), now);
                self.http.ask(&request, &source.endpoint, bytes_max).await
            }
            QuerySource::Http(source) => {
                self.http.ask(&crate::http::request(source), &source.endpoint, bytes_max).await
            }
            QuerySource::NodeMetrics => metrics_api::ask(&self.server, bytes_max).await,
            QuerySource::Line(source) => line::ask(source, bytes_max).await,
        }
    }
}

async fn read(query: Query, body: Bytes, now: Timestamp) -> Result<Facts, Failure> {
    let reading = tokio::task::spawn_blocking(move || query.read(&body, now)).await;
    let reason = match reading {
        Ok(Ok(facts)) => return Ok(facts),
        Ok(Err(reason)) => reason,
        Err(ended) if ended.is_panic() => {
            let panic = ended.into_panic();
            let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            format!("the plugin panicked when it read the answer: {text}")
        }
        Err(_) => "the process stops".to_owned(),
    };
    Err(Failure::new(FailureKind::Unreadable, reason))
}
