//! The page that says what was decided for a pod, and where it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use supercargo_cluster::{Command, Heartbeat, Progress, QueryStatuses};
use supercargo_engine::Located;
use supercargo_engine::{Decision, Observation};
use supercargo_explain::{Journal, PodReport};
use supercargo_operations::leader::Leadership;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Where the page is: a path below it names a pod, so that rules of RBAC can allow those of one namespace, as
/// `/debug/decisions/shop/*`. A pod in the query would be no part of what is allowed.
pub(crate) const DECISIONS_PATH: &str = "/debug/decisions";

/// The journal, which the scheduler's loop writes and the page reads.
#[derive(Clone, Default)]
pub(super) struct SharedJournal {
    journal: Arc<Mutex<Journal>>,
}

/// Answers who asks about a pod.
#[derive(Clone)]
pub(super) struct DecisionsPage {
    pub(super) journal: SharedJournal,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) holds: Holds,
    pub(super) queries: QueryStatuses,
}

/// Says why no pod is scheduled, if none is.
#[derive(Clone)]
pub(super) struct Holds {
    pub(super) progress: Progress,
    /// Who leads; none without an election.
    pub(super) leadership: Option<watch::Receiver<Leadership>>,
    pub(super) heartbeat: Heartbeat,
}

impl Holds {
    /// The reasons; none if pods are scheduled.
    pub(super) fn reasons(&self) -> Vec<String> {
        let others = self.progress.missing().into_iter().chain(self.heartbeat.check().err());
        self.not_leading().into_iter().chain(others).collect()
    }

    /// Why this replica does not lead, if it does not.
    pub(super) fn not_leading(&self) -> Option<String> {
        let leadership = self.leadership.as_ref()?.borrow().clone();
        match leadership {
            Leadership::Following { holder: Some(holder) } => {
                Some(format!("this replica is a standby, {holder} leads"))
            }
            Leadership::Following { holder: None } => {
                Some("this replica does not hold the lease, and does not know who does".to_owned())
            }
            Leadership::Leading { until } if until <= Instant::now() => {
                Some("the lease of this replica has run out".to_owned())
            }
            Leadership::Leading { .. } => None,
            Leadership::Lost => Some("this replica has lost the lease, and ends".to_owned()),
        }
    }
}

impl SharedJournal {
    pub(super) fn decided(&self, decision: &Decision, attempt: u32) {
        self.lock().decided(decision, attempt);
    }

    pub(super) fn observed(&self, observation: &Observation) {
        self.lock().observed(observation);
    }

    /// Nobody holds it for longer than it takes to note or to copy a few decisions.
    fn lock(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DecisionsPage {
    /// What there is to say about a pod; an error if the scheduler has ended.
    pub(super) async fn report(&self, namespace: String, name: String) -> Result<Value, String> {
        let (answer, located) = oneshot::channel();
        let ended = || "the scheduler has ended".to_owned();
        let locate = Command::Locate { namespace: namespace.clone(), name: name.clone(), answer };
        self.commands.send(locate).await.map_err(|_| ended())?;
        let Located { now, leads, whereabouts } = located.await.map_err(|_| ended())?;
        let report = PodReport {
            pod: format!("{namespace}/{name}"),
            time: now,
            leads,
            holds: self.holds.reasons(),
            lacks: self.holds.progress.absences().into_iter().chain(self.queries.unanswered()).collect(),
            waits: whereabouts.map(Into::into),
            decisions: self.journal.lock().recall(&namespace, &name),
        };
        serde_json::to_value(report).map_err(|error| error.to_string())
    }
}
