//! Disruption budgets: how many pods of an application may go at a time.

use std::sync::Arc;

use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{LabelSelector, Pod, Snapshot};

/// All budgets that can match a pod.
pub(super) struct Budgets<'a>(Vec<Budget<'a>>);

struct Budget<'a> {
    namespace: &'a str,
    selector: LabelSelector,
    budget: &'a PodDisruptionBudget,
}

impl<'a> Budgets<'a> {
    pub(super) fn read(cluster: &'a Snapshot) -> Self {
        let budgets = cluster.objects().all::<PodDisruptionBudget>().filter_map(|(key, budget)| {
            // A selector that is absent, empty or unreadable matches nothing.
            let selector = LabelSelector::parse(budget.spec.selector.as_ref()).ok()?;
            let usable = !selector.is_everything() && selector != LabelSelector::Nothing;
            usable.then_some(Budget { namespace: &key.namespace, selector, budget })
        });
        Budgets(budgets.collect())
    }

    /// Splits pods, in their order, into those whose eviction would violate a budget and the others.
    pub(super) fn split(&self, pods: &[Arc<Pod>]) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
        let mut allowed: Vec<i32> =
            self.0.iter().map(|entry| entry.budget.status.disruptions_allowed).collect();
        pods.iter().cloned().partition(|pod| {
            let mut violates = false;
            for (entry, allowed) in self.0.iter().zip(&mut allowed) {
                if entry.counts(pod) {
                    // As upstream's, an allowance that cannot become smaller becomes the largest.
                    *allowed = allowed.wrapping_sub(1);
                    violates |= *allowed < 0;
                }
            }
            violates
        })
    }
}

impl Budget<'_> {
    fn counts(&self, pod: &Pod) -> bool {
        *self.namespace == *pod.namespace
            && !pod.labels.is_empty()
            && self.selector.matches(&*pod.labels)
            // The API server has counted these already.
            && !self.budget.status.disrupted_pods.contains_key(&*pod.name)
    }
}
