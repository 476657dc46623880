//! What namespaces with a quota use, as it is and as it would be if pods went or came.

use std::sync::Arc;

use supercargo_framework::{Context, Cycle};
use supercargo_model::{Pod, Resources};

use super::amounts::{Bound, Unbounded};
use super::elastic_quota::{ElasticQuota, QUOTA_KINDS, quota_of};
use super::guaranteed::guaranteed;

/// What PreFilter leaves in the cycle, and preemption keeps true while it tries pods out.
#[derive(Clone, Debug)]
pub(super) struct QuotaState {
    /// Whether the namespace of the pod has a quota.
    pub(super) has_quota: bool,
    /// What the pod asks for, with those that are nominated before it in its namespace.
    pub(super) in_quota: Resources,
    /// The same with those that are nominated in other namespaces, as far as these have it guaranteed.
    pub(super) in_all: Resources,
    /// Whether the pod would take more than its namespace is guaranteed.
    pub(super) is_over_min: bool,
    /// What all namespaces with quotas use together.
    pub(super) total_used: Resources,
    /// What they are guaranteed together.
    pub(super) total_min: Bound,
    /// What was taken away from namespaces, or given to them, while pods are tried out.
    moved: Vec<(Arc<str>, Resources)>,
    /// The sum of that.
    moved_in_all: Resources,
    /// What a max that does not name it does not bound, nor the sum of all mins.
    pub(super) unbounded: Unbounded,
    /// What the min of a namespace that does not name it does not bound.
    pub(super) unbounded_mins: Unbounded,
}

impl QuotaState {
    /// How things are for a pod.
    pub(super) fn of(context: &Context<'_>, pod: &Pod) -> Self {
        let request = request_of(context, pod);
        let own = quota_of(context, &pod.namespace);
        let mut state = QuotaState {
            has_quota: own.is_some(),
            in_quota: request.clone(),
            in_all: request.clone(),
            is_over_min: false,
            total_used: Resources::default(),
            total_min: Bound::default(),
            moved: Vec::new(),
            moved_in_all: Resources::default(),
            unbounded: Unbounded::all(context.fixes.unlisted_quota_resources),
            unbounded_mins: Unbounded::default(),
        };
        if let Some(own) = own {
            state.total_used = used_in_all(context).clone();
            state.total_min = guaranteed(context);
            state.unbounded_mins = state.unbounded.unless_listed_by(&state.total_min);
            add_nominated(context, pod, &mut state);
            let used = used_in(context, &pod.namespace);
            state.is_over_min = own.min.is_exceeded_by(&[&state.in_quota], &[used], state.unbounded_mins);
        }
        state
    }

    /// What was given to a namespace, or taken from it if that is below 0.
    fn moved(&self, namespace: &str) -> Option<&Resources> {
        self.moved.iter().find(|(moved, _)| **moved == *namespace).map(|(_, amounts)| amounts)
    }

    /// Whether a namespace had borrowed before pods were tried out, and has by now.
    pub(super) fn has_borrowed(&self, context: &Context<'_>, namespace: &str, quota: &ElasticQuota) -> bool {
        let used = used_in(context, namespace);
        let exceeds = |moved: &[&Resources]| quota.min.is_exceeded_by(&[used], moved, self.unbounded_mins);
        exceeds(&[]) && self.moved(namespace).is_none_or(|moved| exceeds(&[moved]))
    }

    /// Whether so much more is too much for a namespace.
    pub(super) fn exceeds_max(
        &self,
        context: &Context<'_>,
        namespace: &str,
        quota: &ElasticQuota,
        more: &Resources,
    ) -> bool {
        let used = used_in(context, namespace);
        match self.moved(namespace) {
            None => quota.max.is_exceeded_by(&[more], &[used], self.unbounded),
            Some(moved) => quota.max.is_exceeded_by(&[more], &[used, moved], self.unbounded),
        }
    }

    /// Whether so much more is too much for all namespaces together.
    pub(super) fn exceeds_total(&self, more: &Resources) -> bool {
        let all = [&self.total_used, &self.moved_in_all, more];
        self.total_min.is_exceeded_by(&all, &[], self.unbounded)
    }

    /// A pod comes, or goes.
    pub(super) fn count(&mut self, context: &Context<'_>, pod: &Pod, comes: bool) {
        if quota_of(context, &pod.namespace).is_none() {
            return;
        }
        let position = self.moved.iter().position(|(namespace, _)| *namespace == pod.namespace);
        let position = position.unwrap_or_else(|| {
            self.moved.push((pod.namespace.clone(), Resources::default()));
            self.moved.len() - 1
        });
        let request = request_of(context, pod);
        for moved in [&mut self.moved[position].1, &mut self.moved_in_all] {
            if comes { moved.add(request) } else { moved.subtract(request) }
        }
    }
}

/// The state of a cycle, if PreFilter has run.
pub(super) fn state_of<'a>(cycle: &'a Cycle<'_>) -> Option<&'a QuotaState> {
    cycle.get::<QuotaState>()
}

/// What the pods of a namespace take that have a node.
pub(super) fn used_in<'a>(context: &Context<'a>, namespace: &str) -> &'a Resources {
    static NOTHING: std::sync::LazyLock<Resources> = std::sync::LazyLock::new(Resources::default);
    let pods = context.pods();
    let used = if context.fixes.quota_sidecars {
        pods.placed_requests_in(namespace)
    } else {
        pods.placed_plain_requests_in(namespace)
    };
    used.unwrap_or(&NOTHING)
}

/// The same of all namespaces with quotas together.
pub(super) fn used_in_all<'a>(context: &Context<'a>) -> &'a Resources {
    let pods = context.pods();
    if context.fixes.quota_sidecars {
        pods.placed_requests_with(&QUOTA_KINDS)
    } else {
        pods.placed_plain_requests_with(&QUOTA_KINDS)
    }
}

/// What a pod takes of its quota.
pub(super) fn request_of<'a>(context: &Context<'_>, pod: &'a Pod) -> &'a Resources {
    if context.fixes.quota_sidecars { &pod.requests().resources } else { pod.spec.plain_requests() }
}

/// Adds what pods ask for that preemption makes room for, where that goes before the pod.
fn add_nominated(context: &Context<'_>, pod: &Pod, state: &mut QuotaState) {
    let on_nodes = context.cluster.nominated().filter(|(node, _)| context.cluster.row_of(node).is_some());
    for other in on_nodes.flat_map(|(_, pods)| pods).filter(|other| other.uid != pod.uid) {
        let Some(quota) = quota_of(context, &other.namespace) else { continue };
        let request = request_of(context, other);
        if other.namespace == pod.namespace {
            if other.priority() >= pod.priority() {
                state.in_quota.add_saturating(request);
                state.in_all.add_saturating(request);
            }
        } else {
            let used = used_in(context, &other.namespace);
            if !quota.min.is_exceeded_by(&[used], &[], state.unbounded_mins) {
                state.in_all.add_saturating(request);
            }
        }
    }
}
