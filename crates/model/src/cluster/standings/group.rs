//! The pods of a group, and what is counted of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{StandingCounts, StandingPod};
use crate::pod::{Pod, PodPhase};
use crate::resources::ResourceSum;

/// The pods that have a namespace in common, or in it the value of a label.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) counts: StandingCounts,
    /// How many of them have scheduling gates.
    pub(super) with_gates: usize,
    /// How many of them have run their course, and well.
    pub(super) succeeded: usize,
    /// Kept by namespace only: nobody reads it by label.
    pub(super) placed: Option<PlacedRequests>,
    /// By UID.
    pub(super) pods: BTreeMap<Arc<str>, StandingPod>,
}

/// What those pods of a group that have a node ask for together.
#[derive(Clone, Debug, Default)]
pub(super) struct PlacedRequests {
    pub(super) requests: ResourceSum,
    /// The same, plainly added up.
    pub(super) plain: ResourceSum,
}

impl Group {
    pub(super) fn add(&mut self, known: &StandingPod) {
        self.count(known);
        self.pods.insert(known.pod.uid.clone(), known.clone());
    }

    /// True if no pod is left; then nothing else is, either.
    pub(super) fn remove(&mut self, known: &StandingPod) -> bool {
        if self.pods.remove(&known.pod.uid).is_some() {
            self.discount(known);
        }
        if self.pods.is_empty() {
            *self = Group::default();
        }
        self.pods.is_empty()
    }

    pub(super) fn replace(&mut self, before: &StandingPod, now: &StandingPod) {
        if let Some(pod) = self.pods.get_mut(&now.pod.uid) {
            pod.clone_from(now);
            self.discount(before);
            self.count(now);
        }
    }

    fn count(&mut self, known: &StandingPod) {
        *self.counts.of_mut(known.standing) += 1;
        self.with_gates += usize::from(has_gates(known));
        self.succeeded += usize::from(has_succeeded(known));
        if known.standing.has_node()
            && let Some(placed) = &mut self.placed
        {
            placed.add(&known.pod);
        }
    }

    fn discount(&mut self, known: &StandingPod) {
        *self.counts.of_mut(known.standing) -= 1;
        self.with_gates -= usize::from(has_gates(known));
        self.succeeded -= usize::from(has_succeeded(known));
        if known.standing.has_node()
            && let Some(placed) = &mut self.placed
        {
            placed.subtract(&known.pod);
        }
    }
}

impl PlacedRequests {
    pub(super) fn add(&mut self, pod: &Pod) {
        self.requests.add(&pod.requests().resources);
        self.plain.add(pod.spec.plain_requests());
    }

    pub(super) fn subtract(&mut self, pod: &Pod) {
        self.requests.subtract(&pod.requests().resources);
        self.plain.subtract(pod.spec.plain_requests());
    }

    pub(super) fn add_all(&mut self, other: &PlacedRequests) {
        self.requests.add_sum(&other.requests);
        self.plain.add_sum(&other.plain);
    }

    pub(super) fn subtract_all(&mut self, other: &PlacedRequests) {
        self.requests.subtract_sum(&other.requests);
        self.plain.subtract_sum(&other.plain);
    }
}

/// Whether a pod has gates in its spec, and so is not bound, even if a plugin opens them.
fn has_gates(known: &StandingPod) -> bool {
    !known.pod.spec.scheduling_gates.is_empty()
}

fn has_succeeded(known: &StandingPod) -> bool {
    known.pod.phase() == PodPhase::Succeeded
}
