//! How it goes with each query, for people.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use supercargo_engine::AnswerTaken;
use supercargo_framework::{LeftOut, Query};
use tokio::time::Instant;

use super::Outcome;

/// How it goes with each query. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct QueryStatuses(Arc<Mutex<BTreeMap<String, QueryStatus>>>);

/// How it goes with a query.
#[derive(Clone, Debug)]
pub(super) struct QueryStatus {
    /// Since when it is asked.
    began: Instant,
    /// When there was an answer at last.
    answered: Option<Instant>,
    /// Why there was none since.
    pub(super) failure: Option<String>,
    /// How often there was none since.
    pub(super) failures: u32,
    /// How many facts there are.
    facts: usize,
    /// What of the last answer does not count.
    pub(super) left_out: LeftOut,
}

/// A query, in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLine {
    /// How it goes, for everybody.
    pub summary: String,
    /// Why there is no answer, for those who may know: there may be an address in it.
    pub reason: Option<String>,
}

impl QueryStatuses {
    /// A line for each query, by name.
    pub fn lines(&self) -> Vec<QueryLine> {
        self.lock().iter().map(|(name, status)| status.line(name)).collect()
    }

    /// How it goes with the queries of which nothing is known now.
    pub fn unanswered(&self) -> Vec<String> {
        let statuses = self.lock();
        let unanswered = statuses.iter().filter(|(_, status)| status.facts == 0);
        unanswered.map(|(name, status)| status.line(name).summary).collect()
    }

    /// How many facts there are of each query.
    pub(crate) fn note_facts(&self, facts: &BTreeMap<String, usize>) {
        for (name, status) in self.lock().iter_mut() {
            status.facts = facts.get(name).copied().unwrap_or(0);
        }
    }

    /// A query is asked from now on.
    pub(super) fn expect(&self, query: &Query) {
        self.lock().entry(query.name().to_owned()).or_insert_with(QueryStatus::new);
    }

    /// A query is not asked any more.
    pub(super) fn forget(&self, query: &str) {
        self.lock().remove(query);
    }

    /// A query was asked. How it went before.
    pub(super) fn note(&self, query: &str, outcome: &Outcome, taken: Option<&AnswerTaken>) -> QueryStatus {
        let mut statuses = self.lock();
        let status = statuses.entry(query.to_owned()).or_insert_with(QueryStatus::new);
        let before = status.clone();
        match outcome {
            Ok(_) => {
                (status.answered, status.failure, status.failures) = (Some(Instant::now()), None, 0);
                if let Some(taken) = taken {
                    (status.facts, status.left_out) = (taken.facts, taken.left_out.clone());
                }
            }
            Err(failure) => {
                status.failure = Some(failure.reason.clone());
                status.failures = status.failures.saturating_add(1);
            }
        }
        before
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, QueryStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueryStatus {
    fn new() -> Self {
        QueryStatus {
            began: Instant::now(),
            answered: None,
            failure: None,
            failures: 0,
            facts: 0,
            left_out: LeftOut::default(),
        }
    }

    fn line(&self, name: &str) -> QueryLine {
        let mut summary = match self.answered {
            Some(answered) => {
                format!("query {name}: {} facts, answered {} s ago", self.facts, answered.elapsed().as_secs())
            }
            None => format!("query {name}: no answer in {} s", self.began.elapsed().as_secs()),
        };
        if self.failures > 0 {
            summary.push_str(&format!(", failed {} times since", self.failures));
        }
        if !self.left_out.is_empty() {
            summary.push_str(&format!(", without {}", self.left_out));
        }
        QueryLine { summary, reason: self.failure.clone() }
    }
}
