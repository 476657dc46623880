//! What the victims on a node depend on besides the node: how far quotas are from where pods may not go, or may not stay.
//!
//! While pods of a node are tried out, what a namespace uses changes by no more than what they ask for. So if a quota is further than
//! that from its bound, it does not matter how far; and as long as nothing else changes, what was found out for one pod holds for the
//! next.

use supercargo_framework::{Context, Cycle};
use supercargo_model::{Kind, NodeRef, Resources};

use super::amounts::{Bound, Unbounded};
use super::elastic_quota::{ElasticQuota, OldElasticQuota, quota_of};
use super::usage::{QuotaState, request_of, state_of, used_in};

/// What the victims on all nodes depend on; none if PreFilter has not run.
pub(super) fn everywhere(cycle: &Cycle<'_>) -> Option<Vec<u64>> {
    let state = state_of(cycle)?;
    let objects = cycle.cluster().objects();
    let flags = u64::from(state.has_quota) | u64::from(state.is_over_min) << 1;
    let mut numbers = vec![objects.version(ElasticQuota::ID), objects.version(OldElasticQuota::ID), flags];
    let namespace = cycle.pod.namespace.as_bytes();
    numbers.push(namespace.len() as u64);
    numbers.extend(namespace.chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    }));
    Some(numbers)
}

/// What the victims on one node depend on.
pub(super) fn on_node(cycle: &Cycle<'_>, node: NodeRef<'_>) -> Vec<u64> {
    let (context, pod) = (&cycle.context, cycle.pod);
    let own = state_of(cycle).filter(|state| state.has_quota).zip(quota_of(context, &pod.namespace));
    // Without a quota only priorities count, and who has one.
    let Some((state, own)) = own else { return Vec::new() };
    let mut distances = Distances::of(context, state, node);
    let (request, used) = (request_of(context, pod), used_in(context, &pod.namespace));
    for (in_quota, in_all) in [(request, request), (&state.in_quota, &state.in_all)] {
        distances.note(&own.max, state.unbounded, &[in_quota], &[used]);
        distances.note(&state.total_min, state.unbounded, &[&state.total_used, in_all], &[]);
    }
    if !state.is_over_min {
        note_borrowers(context, &pod.namespace, node, &mut distances);
    }
    distances.numbers
}

/// Pods of other namespaces may go as long as these have borrowed.
fn note_borrowers(context: &Context<'_>, own: &str, node: NodeRef<'_>, distances: &mut Distances<'_>) {
    let mut noted: Vec<&str> = vec![own];
    for pod in node.pods() {
        if noted.iter().any(|noted| **noted == *pod.namespace) {
            continue;
        }
        noted.push(&pod.namespace);
        if let Some(quota) = quota_of(context, &pod.namespace) {
            let unbounded = distances.state.unbounded_mins;
            distances.note(&quota.min, unbounded, &[used_in(context, &pod.namespace)], &[]);
        }
    }
}

/// How far amounts are from bounds, as far as it matters on one node.
struct Distances<'a> {
    state: &'a QuotaState,
    /// What the pods of the node ask for together: nothing is moved by more.
    reach: Resources,
    numbers: Vec<u64>,
}

impl<'a> Distances<'a> {
    fn of(context: &Context<'_>, state: &'a QuotaState, node: NodeRef<'_>) -> Self {
        let mut reach = Resources::default();
        for pod in node.pods() {
            reach.add_magnitude(request_of(context, pod));
        }
        Distances { state, reach, numbers: Vec::new() }
    }

    fn note(&mut self, bound: &Bound, unbounded: Unbounded, named: &[&Resources], besides: &[&Resources]) {
        for (counted, left) in bound.left(named, besides, unbounded) {
            let reach = counted.of(&self.reach);
            // Where even 64 bits do not hold it, any distance may matter.
            let beyond = if reach == i64::MAX { i128::MAX } else { i128::from(reach) + 1 };
            let distance = left.clamp(-beyond, beyond).cast_unsigned();
            self.numbers.extend([distance as u64, (distance >> u64::BITS) as u64]);
        }
    }
}
