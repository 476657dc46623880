//! The queries of a scheduler: a task each, which asks again and again, and what is known of how that goes.

mod status;

use std::collections::BTreeMap;
use std::time::Duration;

use supercargo_client::{ApiServer, Clock};
use supercargo_engine::AnswerTaken;
use supercargo_framework::Query;
use supercargo_query::{Asked, Asker, Failure};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

pub use status::{QueryLine, QueryStatuses};

use crate::backoff::{Backoff, BackoffLimits, Chance};
use crate::tasks::{Task, Tasks};
use supercargo_client::LimitedLog;

/// So many answers may wait to be looked at. Who asks waits, too, if there are more.
const HEARD_WAITING_MAX: usize = 16;
/// The first question is asked after no longer than this, by chance: replicas that start together do not ask together.
const FIRST_WAIT_MAX: Duration = Duration::from_secs(1);
/// After failures in a row a query is asked after so many intervals at most, or after so long if its interval is short.
const FAILED_INTERVALS_MAX: u32 = 4;
const FAILED_WAIT_MAX: Duration = Duration::from_secs(60);
/// What each wait after a failure is longer by than the one before, and what chance adds to it at most.
const FAILED_FACTOR: f64 = 1.5;
const FAILED_JITTER: f64 = 0.1;

/// The queries that are asked. They end with this.
#[derive(Debug)]
pub(crate) struct Queries {
    server: ApiServer,
    clock: Clock,
    seed: u64,
    tasks: Tasks,
    sender: mpsc::Sender<QueryHeard>,
    running: BTreeMap<String, Running>,
    statuses: QueryStatuses,
    /// The number of the last task.
    last_number: u64,
    log: LimitedLog,
}

#[derive(Debug)]
struct Running {
    query: Query,
    task: Task,
    number: u64,
}

/// What came of asking a query once.
#[derive(Debug)]
pub(crate) struct QueryHeard {
    pub(crate) query: String,
    pub(crate) asked: Asked,
    /// The task that asked: another one may ask by that name by now.
    number: u64,
}

/// The warnings that came with an answer, or why there is none.
pub(crate) type Outcome = Result<Vec<String>, Failure>;

impl Queries {
    /// Asks nothing yet. What is answered comes out of the receiver.
    pub(crate) fn new(
        server: ApiServer,
        clock: Clock,
        seed: u64,
        tasks: Tasks,
    ) -> (Self, mpsc::Receiver<QueryHeard>) {
        let (sender, heard) = mpsc::channel(HEARD_WAITING_MAX);
        let queries = Queries {
            server,
            clock,
            seed,
            tasks,
            sender,
            running: BTreeMap::new(),
            statuses: QueryStatuses::default(),
            last_number: 0,
            log: LimitedLog::default(),
        };
        (queries, heard)
    }

    /// How it goes.
    pub(crate) fn statuses(&self) -> QueryStatuses {
        self.statuses.clone()
    }

    /// Asks these from now on, and no others. Those that are asked already go on.
    pub(crate) fn ask(&mut self, queries: &[Query]) {
        let is_wanted = |running: &Running| queries.contains(&running.query);
        for (name, ended) in self.running.extract_if(.., |_, running| !is_wanted(running)) {
            // What it may still tell has a number that counts for nothing.
            ended.task.abort();
            let is_asked_anew = queries.iter().any(|query| query.asks_the_same(&ended.query));
            if !is_asked_anew {
                self.statuses.forget(&name);
            }
        }
        for query in queries {
            if !self.running.contains_key(query.name()) {
                self.spawn(query.clone());
            }
        }
    }

    fn spawn(&mut self, query: Query) {
        self.last_number += 1;
        let (name, number) = (query.name().to_owned(), self.last_number);
        self.statuses.expect(&query);
        let asking = Asking {
            asker: Asker::new(query.clone(), &self.server),
            clock: self.clock.clone(),
            chance: Chance::named(self.seed, &name),
            sender: self.sender.clone(),
            number,
        };
        // It returns only if the driver is gone.
        let task = self.tasks.spawn_finite(format!("query {name}"), asking.go_on());
        self.running.insert(name, Running { query, task, number });
    }

    /// Whether an answer is one of a query that is asked.
    pub(crate) fn is_current(&self, heard: &QueryHeard) -> bool {
        self.running.get(&heard.query).is_some_and(|running| running.number == heard.number)
    }

    /// Takes note of what came of asking, and of what became of the answer.
    pub(crate) fn note(&mut self, query: &str, outcome: &Outcome, taken: Option<&AnswerTaken>) {
        let before = self.statuses.note(query, outcome, taken);
        match outcome {
            Err(failure) => {
                let is_new = before.failure.as_ref() != Some(&failure.reason);
                if is_new && self.log.admits("query") {
                    let err = &failure.reason;
                    warn!(err, query, "A query has no answer; its facts stay until they are too old");
                }
            }
            Ok(warnings) => {
                let failures = before.failures;
                if failures > 0 && self.log.admits("query-answered") {
                    info!(query, failures, "A query is answered again");
                }
                for warning in warnings {
                    if self.log.admits("query-warning") {
                        warn!(err = warning, query, "The answer to a query comes with a warning");
                    }
                }
                let left_out = taken.map(|taken| &taken.left_out).filter(|left_out| !left_out.is_empty());
                if let Some(left_out) = left_out.filter(|left_out| **left_out != before.left_out)
                    && self.log.admits("query-left-out")
                {
                    info!(query, leftOut = %left_out, "Not everything counts that a query is answered");
                }
            }
        }
    }

    /// Says why a question about a pod has no answer.
    pub(crate) fn log_failed_question(&self, failure: &Failure) {
        if self.log.admits("question") {
            warn!(
                err = failure.reason,
                "A question about a pod has no answer; the pod is decided without it"
            );
        }
    }

    /// Says what was left out of the log. To be called about once a second.
    pub(crate) fn write_suppressed(&self) {
        self.log.write_suppressed();
    }

    pub(crate) fn abort_all(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        self.abort_all();
    }
}

/// A task that asks.
struct Asking {
    asker: Asker,
    clock: Clock,
    chance: Chance,
    sender: mpsc::Sender<QueryHeard>,
    number: u64,
}

impl Asking {
    /// Asks again and again, until the driver drops the receiver.
    async fn go_on(mut self) {
        let query = self.asker.query().clone();
        let interval = query.interval();
        sleep(interval.min(FIRST_WAIT_MAX).mul_f64(self.chance.fraction())).await;
        let limits = BackoffLimits {
            first: interval,
            factor: FAILED_FACTOR,
            longest: interval.max(FAILED_WAIT_MAX.min(interval.saturating_mul(FAILED_INTERVALS_MAX))),
            jitter: FAILED_JITTER,
        };
        let mut backoff = Backoff::new(limits, self.chance.fork());
        loop {
            let began = Instant::now();
            let clock = self.clock.clone();
            let asked = self.asker.ask(move || clock.now()).await;
            let wait = match &asked.answer {
                Ok(_) => {
                    backoff.reset();
                    interval
                }
                Err(_) => backoff.next(Duration::MAX),
            };
            let heard = QueryHeard { query: query.name().to_owned(), asked, number: self.number };
            if self.sender.send(heard).await.is_err() {
                return;
            }
            sleep_until(began + wait).await;
        }
    }
}

#[cfg(test)]
mod tests;
