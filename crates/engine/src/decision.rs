//! What was decided, kept small.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{Nomination, Plan};
use supercargo_model::{Pod, Row, Snapshot, Timestamp};

use crate::evaluate::Evaluation;

/// What was decided for a pod. Small enough to keep for every pod: [`crate::Engine::unfold`] turns it into all that was
/// said, as long as the cluster has not changed since.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The state of the cluster that it was made on.
    pub version: u64,
    /// Which attempt it was.
    pub attempt: u64,
    /// When it was made.
    pub now: Timestamp,
    /// Where the search for nodes began.
    pub start: usize,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt to place a pod.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pod goes to a node.
    Place {
        /// The node's row.
        row: Row,
        /// The node's name.
        node: Arc<str>,
        /// Its total score; 0 if there was no choice.
        score: i64,
        /// How many nodes were looked at.
        evaluated: usize,
        /// How many of them were feasible.
        feasible: usize,
        /// What has to be done there first, such as binding volumes, and by which plugin.
        plans: Vec<(&'static str, Plan)>,
    },
    /// The pod fits nowhere now. That is an answer, not an error.
    Unschedulable {
        /// Why, in words for people.
        message: String,
        /// The plugins that rejected it.
        plugins: BTreeSet<&'static str>,
        /// Those of them that wait for something outside.
        pending: BTreeSet<&'static str>,
        /// What becomes of its nominated node.
        nomination: Nomination,
        /// The pods to evict to make room.
        victims: Vec<Arc<Pod>>,
    },
    /// Something broke.
    Failed {
        /// What.
        error: String,
    },
}

impl Outcome {
    /// What comes of an evaluation on a cluster.
    pub(crate) fn of(evaluation: Evaluation, cluster: &Snapshot) -> Self {
        if let Some(error) = evaluation.error {
            return Outcome::Failed { error };
        }
        match evaluation.chosen {
            Some(row) => {
                let place = evaluation.feasible.iter().position(|feasible| *feasible == row);
                Outcome::Place {
                    row,
                    node: cluster.node(row).name().clone(),
                    score: place.and_then(|place| evaluation.totals.get(place)).copied().unwrap_or(0),
                    evaluated: evaluation.feasible.len() + evaluation.diagnosis.nodes.len(),
                    feasible: evaluation.feasible.len(),
                    plans: evaluation.plans,
                }
            }
            None => Outcome::Unschedulable {
                victims: evaluation.evicted().cloned().collect(),
                message: evaluation.message,
                plugins: evaluation.diagnosis.unschedulable_plugins,
                pending: evaluation.diagnosis.pending_plugins,
                nomination: evaluation.nomination,
            },
        }
    }

    /// What tells this outcome from another one, in words; none if they are the same.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (this, other) = (self.words(), other.words());
        (this != other).then(|| format!("{this}, not {other}"))
    }

    /// All of the outcome, with pods by name.
    fn words(&self) -> String {
        match self {
            Outcome::Place { row, node, score, evaluated, feasible, plans } => {
                format!(
                    "place on {node} (row {}), score {score}, {feasible} of {evaluated} feasible, plans {plans:?}",
                    row.0
                )
            }
            Outcome::Unschedulable { message, plugins, pending, nomination, victims } => {
                let victims: Vec<String> = victims.iter().map(|pod| pod.key()).collect();
                format!(
                    "unschedulable: {message:?}, by {plugins:?}, pending {pending:?}, nomination {nomination:?}, victims {victims:?}"
                )
            }
            Outcome::Failed { error } => format!("failed: {error}"),
        }
    }

    /// There is nothing to look at, so no plugin is asked; as upstream, none is to blame either.
    pub(crate) fn no_nodes() -> Self {
        Outcome::Unschedulable {
            message: "no nodes available to schedule pods".to_owned(),
            plugins: BTreeSet::new(),
            pending: BTreeSet::new(),
            nomination: Nomination::Clear,
            victims: Vec::new(),
        }
    }
}
