//! A cluster, its profiles, and the decisions made on them.

use std::sync::Arc;

use supercargo_framework::{Context, Fixes, Memories, Profile};
use supercargo_model::{Cluster, ClusterError, Pod, Row, Timestamp};

use crate::chance::Seed;
use crate::decision::{Decision, Outcome};
use crate::evaluate::{Evaluation, Rules, Thoroughness, evaluate};

/// Decides for pods, one after the other.
#[derive(Debug)]
pub struct Engine {
    /// The cluster; the driver changes it between decisions.
    pub cluster: Cluster,
    profiles: Vec<Profile>,
    options: EngineOptions,
    memories: Memories,
    attempts: u64,
    start: usize,
}

/// How an [`Engine`] decides.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// As in a live cluster, or as for conformance vectors.
    pub rules: Rules,
    /// Where chance comes from.
    pub seed: Seed,
    /// Which upstream mistakes are not repeated.
    pub fixes: Fixes,
    /// Whether what was worked out for one pod is kept for the next.
    pub indexing: Indexing,
}

/// Whether an [`Engine`] keeps what it worked out. The decisions are the same in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Every decision asks every plugin about every node.
    Off,
    /// Decisions look only at what has changed since the last one of their kind.
    #[default]
    On,
    /// As `On`, and every decision is made both ways. A difference is a bug, and a panic.
    Checked,
}

/// No profile is responsible for the pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pod {pod} asks for scheduler {scheduler_name:?}, which no profile is responsible for")]
pub struct UnknownProfile {
    /// The pod.
    pub pod: String,
    /// Its `spec.schedulerName`.
    pub scheduler_name: String,
}

/// The cluster has changed since a decision was made, so what was said then cannot be said again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decision was made on version {decided} of the cluster, which is at version {current} now")]
pub struct StaleDecision {
    /// The version that the decision was made on.
    pub decided: u64,
    /// The version that the cluster is at.
    pub current: u64,
}

impl Engine {
    /// An engine with an empty cluster.
    pub fn new(profiles: Vec<Profile>, options: EngineOptions) -> Self {
        let mut memories = Memories::default();
        for profile in &profiles {
            profile.declare_memories(&mut memories);
        }
        Engine { cluster: Cluster::default(), profiles, options, memories, attempts: 0, start: 0 }
    }

    /// What plugins remember.
    pub fn memories(&mut self) -> &mut Memories {
        &mut self.memories
    }

    /// Decides for a pod, as things are now.
    pub fn decide(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Result<Decision, UnknownProfile> {
        let (attempt, start) = (self.attempts, self.start);
        let version = self.cluster.snapshot().version();
        if self.cluster.snapshot().node_count() == 0 {
            responsible(&self.profiles, pod)?;
            self.attempts += 1;
            let outcome = Outcome::no_nodes();
            return Ok(Decision { pod: pod.clone(), version, attempt, now, start, outcome });
        }
        let evaluation = self.evaluate(pod, now, attempt, Thoroughness::FirstRejection)?;
        self.attempts += 1;
        let outcome = self.outcome(evaluation);
        Ok(Decision { pod: pod.clone(), version, attempt, now, start, outcome })
    }

    /// Everything that was said when a decision was made.
    pub fn unfold(&mut self, decision: &Decision) -> Result<Evaluation, StaleDecision> {
        let current = self.cluster.snapshot().version();
        if current != decision.version {
            return Err(StaleDecision { decided: decision.version, current });
        }
        let start = std::mem::replace(&mut self.start, decision.start);
        let evaluation = self
            .evaluate(&decision.pod, decision.now, decision.attempt, Thoroughness::EveryWord)
            .expect("the profile that decided is still there");
        self.start = start;
        Ok(evaluation)
    }

    /// Takes a pod to be on a node, before the API server has confirmed it.
    pub fn assume(&mut self, pod: &Arc<Pod>, row: Row) -> Result<(), ClusterError> {
        let node_name = Some(self.cluster.snapshot().node(row).name().clone());
        self.cluster.add_pod(Arc::new(Pod { node_name, ..(**pod).clone() }))
    }

    fn evaluate(
        &mut self,
        pod: &Arc<Pod>,
        now: Timestamp,
        attempt: u64,
        thoroughness: Thoroughness,
    ) -> Result<Evaluation, UnknownProfile> {
        let profile = responsible(&self.profiles, pod)?;
        let context = Context {
            cluster: self.cluster.snapshot(),
            now,
            memories: &self.memories,
            seed: self.options.seed.attempt(attempt),
            fixes: self.options.fixes,
        };
        Ok(evaluate(profile, context, pod, self.options.rules, thoroughness, &mut self.start))
    }

    fn outcome(&mut self, evaluation: Evaluation) -> Outcome {
        let cluster = self.cluster.snapshot();
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
                    feasible: evaluation.feasible.len(),
                    plans: evaluation.plans,
                }
            }
            None => Outcome::Unschedulable {
                victims: evaluation.evicted().cloned().collect(),
                message: evaluation.message,
                plugins: evaluation.diagnosis.unschedulable_plugins,
                nomination: evaluation.nomination,
            },
        }
    }
}

/// The profile that decides for the pod.
fn responsible<'a>(profiles: &'a [Profile], pod: &Pod) -> Result<&'a Profile, UnknownProfile> {
    let scheduler_name = &*pod.spec.scheduler_name;
    let found = profiles.iter().find(|profile| profile.scheduler_name == scheduler_name);
    found.ok_or_else(|| UnknownProfile { pod: pod.key(), scheduler_name: scheduler_name.to_owned() })
}
