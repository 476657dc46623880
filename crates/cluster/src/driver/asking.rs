//! Whom plugins want to hear from: they are asked by tasks of their own, and what they answer is told to the scheduler.

use std::collections::BTreeMap;

use supercargo_client::{ApiServer, Clock};
use supercargo_engine::{Observer, PodQuestion, QueryAsked, Scheduler, Ticket};
use supercargo_framework::{PodAnswer, Query};
use supercargo_model::Timestamp;
use supercargo_query::{Asked, Failure, Inquirer};
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

/// Those who ask about pods.
#[derive(Debug)]
pub(super) struct Inquirers {
    pub(super) server: ApiServer,
    tasks: Tasks,
    /// One for each question, so that each has connections of its own.
    by_question: BTreeMap<String, Inquirer>,
    /// What they are told. There are no more answers than questions, and the scheduler asks about so many pods at a time.
    pub(super) told: mpsc::UnboundedReceiver<Told>,
    tell: mpsc::UnboundedSender<Told>,
}

/// What was answered about a pod.
pub(super) type Told = (Ticket, Result<PodAnswer, Failure>);

impl Inquirers {
    pub(super) fn new(server: ApiServer, tasks: Tasks) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Inquirers { server, tasks, by_question: BTreeMap::new(), told, tell }
    }

    fn ask(&mut self, asked: PodQuestion, now: Timestamp) {
        let PodQuestion { ticket, question, source, .. } = asked;
        let inquirer = self.by_question.entry(question.name().to_owned());
        let inquirer = inquirer.or_insert_with(|| Inquirer::new(&self.server)).clone();
        let tell = self.tell.clone();
        self.tasks.spawn_finite("question about a pod", async move {
            let answer = inquirer.ask(&question, &source, now).await;
            // It is no error if the driver has stopped and takes no answer.
            let _ = tell.send((ticket, answer));
        });
    }
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

    /// Asks what plugins want to know about pods.
    pub(super) fn give_questions(&mut self) {
        let now = self.clock.now();
        for asked in self.scheduler.take_questions() {
            self.inquirers.ask(asked, now);
        }
    }

    /// Tells the scheduler what was answered about a pod.
    pub(super) fn hear_inquiry(&mut self, (ticket, answer): Told) {
        if let Err(failure) = &answer {
            self.queries.log_failed_question(failure);
        }
        self.scheduler.question_answered(ticket, answer.map_err(|failure| failure.kind.label()));
    }

    /// The plugins are others: asks what they want to know from now on.
    pub(super) fn ask_others(&mut self) {
        self.queries.ask(&asked_by(&self.scheduler));
    }
}
