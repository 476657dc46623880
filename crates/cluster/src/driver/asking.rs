//! Whom plugins want to hear from: they are asked by tasks of their own, and what they answer is told to the scheduler.

use supercargo_client::{ApiServer, Clock};
use supercargo_engine::{Observer, QueryAsked, Scheduler};
use supercargo_framework::Query;
use supercargo_query::Asked;
use tokio::sync::mpsc;
use tracing::warn;

use super::Driver;
use crate::queries::{Queries, QueryHeard};
use crate::tasks::Tasks;

/// Begins to ask what the plugins of a scheduler want to know.
pub(super) fn begin_to_ask(
    scheduler: &Scheduler,
    server: &ApiServer,
    clock: &Clock,
    seed: u64,
    tasks: Tasks,
) -> (Queries, mpsc::Receiver<QueryHeard>) {
    // They may run on another runtime than the driver, which the driver's connections belong to.
    let server = server.with_own_connections().unwrap_or_else(|error| {
        warn!(err = %error, "The metrics API is asked over the connections of the scheduler");
        server.clone()
    });
    let (mut queries, heard) = Queries::new(server, clock.clone(), seed, tasks);
    queries.ask(&asked_by(scheduler));
    (queries, heard)
}

fn asked_by(scheduler: &Scheduler) -> Vec<Query> {
    scheduler.queries().cloned().collect()
}

impl<O: Observer> Driver<O> {
    /// Tells the scheduler what a query was answered, if it is still asked.
    pub(super) fn hear_query(&mut self, heard: QueryHeard) {
        if !self.queries.is_current(&heard) {
            return;
        }
        let QueryHeard { query, asked: Asked { answer, took, bytes }, .. } = heard;
        let outcome = answer.as_ref().map(|facts| facts.warnings().to_vec()).map_err(Clone::clone);
        let result = outcome.as_ref().map_or_else(|failure| failure.kind.label(), |_| "success");
        let now = self.clock.now();
        let taken = self.scheduler.answered(&query, answer.map_err(|failure| failure.reason), now);
        self.queries.note(&query, &outcome, taken.as_ref());
        self.observer.queried(QueryAsked { query: &query, result, took, bytes, taken: taken.as_ref(), now });
        self.pace.note_news();
    }

    /// The plugins are others: asks what they want to know from now on.
    pub(super) fn ask_others(&mut self) {
        self.queries.ask(&asked_by(&self.scheduler));
    }
}
