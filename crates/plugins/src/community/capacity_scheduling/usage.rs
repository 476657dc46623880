//! What namespaces with a quota use, as it is and as it would be if pods went or came.

use std::sync::Arc;

use supercargo_framework::{Context, Cycle};
use supercargo_model::{Pod, Resources};

use super::amounts::{Bound, sum};
use super::elastic_quota::{ElasticQuota, quota_of, quotas};

/// What PreFilter leaves in the cycle, and preemption keeps true while it tries pods out.
#[derive(Clone, Debug)]
pub(super) struct QuotaState {
    /// Whether the namespace of the pod has a quota.
    pub(super) has_quota: bool,
    /// What the pod asks for, with those that are nominated before it in its namespace.
    pub(super) in_quota: Arc<Resources>,
    /// The same with those that are nominated in other namespaces, as far as these have it guaranteed.
    pub(super) in_all: Arc<Resources>,
    /// Whether the pod would take more than its namespace is guaranteed.
    pub(super) is_over_min: bool,
    /// What all namespaces with quotas use together.
    pub(super) total_used: Arc<Resources>,
    /// What they are guaranteed together.
    pub(super) total_min: Arc<Bound>,
    /// The other namespaces that use more than they are guaranteed: only their pods may go for one of another namespace.
    pub(super) borrowers: Arc<[Box<str>]>,
    /// What was taken away from namespaces, or given to them, while pods are tried out.
    moved: Vec<(Arc<str>, Resources)>,
    unlisted_is_unbounded: bool,
}

impl QuotaState {
    /// How things are for a pod.
    pub(super) fn of(context: &Context<'_>, pod: &Pod) -> Self {
        let unlisted_is_unbounded = context.fixes.unlisted_quota_resources;
        let request = &pod.requests().resources;
        let own = quota_of(context, &pod.namespace);
        let (mut in_quota, mut in_all) = (request.clone(), request.clone());
        let (mut total_used, mut total_min) = (Resources::default(), Bound::default());
        let (mut is_over_min, mut borrowers) = (false, Vec::new());
        if let Some(own) = own {
            add_nominated(context, pod, &mut in_quota, &mut in_all);
            for quota in quotas(context) {
                let (used, min) = (used_in(context, quota.namespace), &quota.object.min);
                total_used.add(used);
                total_min.add(min);
                if min.is_exceeded_by(used, None, unlisted_is_unbounded) && *quota.namespace != *pod.namespace
                {
                    borrowers.push(quota.namespace.into());
                }
            }
            let used = used_in(context, &pod.namespace);
            is_over_min = own.min.is_exceeded_by(&in_quota, Some(used), unlisted_is_unbounded);
        }
        QuotaState {
            has_quota: own.is_some(),
            in_quota: Arc::new(in_quota),
            in_all: Arc::new(in_all),
            is_over_min,
            total_used: Arc::new(total_used),
            total_min: Arc::new(total_min),
            borrowers: borrowers.into(),
            moved: Vec::new(),
            unlisted_is_unbounded,
        }
    }

    /// What a namespace uses by now.
    pub(super) fn used(&self, context: &Context<'_>, namespace: &str) -> Resources {
        let used = used_in(context, namespace);
        match self.moved.iter().find(|(moved, _)| **moved == *namespace) {
            Some((_, moved)) => sum(used, moved),
            None => used.clone(),
        }
    }

    /// Whether a namespace uses more than it is guaranteed by now.
    pub(super) fn is_over_its_min(
        &self,
        context: &Context<'_>,
        namespace: &str,
        quota: &ElasticQuota,
    ) -> bool {
        let moved = self.moved.iter().find(|(moved, _)| **moved == *namespace).map(|(_, amounts)| amounts);
        quota.min.is_exceeded_by(used_in(context, namespace), moved, self.unlisted_is_unbounded)
    }

    /// Whether so much more is too much for a namespace.
    pub(super) fn exceeds_max(
        &self,
        context: &Context<'_>,
        namespace: &str,
        quota: &ElasticQuota,
        more: &Resources,
    ) -> bool {
        let used = self.used(context, namespace);
        quota.max.is_exceeded_by(more, Some(&used), self.unlisted_is_unbounded)
    }

    /// Whether so much more is too much for all namespaces together.
    pub(super) fn exceeds_total(&self, more: &Resources) -> bool {
        let all = sum(&self.total_used, more);
        self.total_min.is_exceeded_by(&all, None, self.unlisted_is_unbounded)
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
        let (request, total) = (&pod.requests().resources, Arc::make_mut(&mut self.total_used));
        for amount in [&mut self.moved[position].1, total] {
            if comes { amount.add(request) } else { amount.subtract(request) }
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
    context.pods().placed_requests_in(namespace).unwrap_or(&NOTHING)
}

/// Adds what pods ask for that preemption makes room for, where that goes before the pod.
fn add_nominated(context: &Context<'_>, pod: &Pod, in_quota: &mut Resources, in_all: &mut Resources) {
    let on_nodes = context.cluster.nominated().filter(|(node, _)| context.cluster.row_of(node).is_some());
    for other in on_nodes.flat_map(|(_, pods)| pods).filter(|other| other.uid != pod.uid) {
        let Some(quota) = quota_of(context, &other.namespace) else { continue };
        let request = &other.requests().resources;
        if other.namespace == pod.namespace {
            if other.priority() >= pod.priority() {
                in_quota.add(request);
                in_all.add(request);
            }
        } else {
            let used = used_in(context, &other.namespace);
            if !quota.min.is_exceeded_by(used, None, context.fixes.unlisted_quota_resources) {
                in_all.add(request);
            }
        }
    }
}
