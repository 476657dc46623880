//! Who goes so that a namespace gets what it is guaranteed.

use std::sync::Arc;

use supercargo_framework::preemption::{self, PreemptionRules, preempt};
use supercargo_framework::{
    Cycle, NodeRehearsal, PostFilter, PostFilterResult, Rehearsal, Rejections, Status,
};
use supercargo_model::pod::PreemptionPolicy;
use supercargo_model::{NodeRef, Pod};

use super::elastic_quota::{Quota, quota_of, quotas};
use super::usage::{request_of, state_of};
use super::{CapacityScheduling, findings};
use crate::community::preempting;

/// So many nodes are enough to pick one of them.
const CANDIDATES_MAX: usize = 100;

impl PostFilter for CapacityScheduling {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        preempt(self, cycle, rejections, rehearsal)
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }
}

impl PreemptionRules for CapacityScheduling {
    fn may_preempt(&self, cycle: &Cycle<'_>, rejections: &dyn Rejections) -> Status {
        if cycle.pod.spec.preemption_policy != PreemptionPolicy::Never && state_of(cycle).is_none() {
            return Status::unschedulable("not eligible due to failed to read from cycleState");
        }
        preemption::may_preempt(self, cycle, rejections)
    }

    fn waits_for(&self, cycle: &Cycle<'_>, leaving: &Pod) -> bool {
        self.may_evict(cycle, leaving).is_ok_and(|may| may)
            || state_of(cycle).is_some_and(|state| {
                // Of its own namespace it waits for less important pods, whatever evicted them.
                state.has_quota
                    && leaving.namespace == cycle.pod.namespace
                    && leaving.priority() < cycle.pod.priority()
            })
    }

    /// A pod that would take more than its namespace is guaranteed makes room among less important ones of that namespace; one that would
    /// not, among those of namespaces that have borrowed, as long as they have. Pods without a quota are among themselves.
    fn may_evict(&self, cycle: &Cycle<'_>, pod: &Pod) -> Result<bool, Status> {
        let Some(state) = state_of(cycle) else { return Ok(false) };
        let is_lower = pod.priority() < cycle.pod.priority();
        let is_own = pod.namespace == cycle.pod.namespace;
        if state.has_quota && (state.is_over_min || is_own) {
            return Ok(state.is_over_min && is_own && is_lower);
        }
        let (context, namespace) = (&cycle.context, &*pod.namespace);
        if !state.has_quota {
            return Ok(is_lower && quota_of(context, namespace).is_none());
        }
        let quota = quota_of(context, namespace);
        Ok(quota.is_some_and(|quota| state.has_borrowed(context, namespace, quota)))
    }

    fn asks_in_order(&self) -> bool {
        true
    }

    fn fits(&self, node: &dyn NodeRehearsal, reprieved: Option<&Arc<Pod>>) -> Status {
        let cycle = node.cycle();
        let (context, pod) = (&cycle.context, cycle.pod);
        let Some((state, quota)) = state_of(cycle).zip(quota_of(context, &pod.namespace)) else {
            return Status::success();
        };
        // As upstream, when all have gone, only the pod itself counts, and not those that are nominated.
        let request = request_of(context, pod);
        let (in_quota, in_all) = match reprieved {
            None => (request, request),
            Some(_) => (&state.in_quota, &state.in_all),
        };
        if state.exceeds_max(context, &pod.namespace, quota, in_quota) || state.exceeds_total(in_all) {
            return Status::unschedulable("global quota max exceeded");
        }
        Status::success()
    }

    /// Upstream asks once more, and takes the pod off a second time, which fails. Only pods that are nominated can exceed the quota here.
    fn taken_off(&self, node: &dyn NodeRehearsal, pod: &Arc<Pod>) -> Status {
        if node.cycle().context.fixes.quota_evictions || self.fits(node, Some(pod)).is_success() {
            return Status::success();
        }
        let message = format!("no corresponding pod {} in pods of node {}", pod.name, node.as_node().name());
        Status::unschedulable(message)
    }

    fn no_victims(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        preempting::no_victims(cycle, node)
    }

    /// Where nobody else has borrowed, nobody goes for a pod that has not got its share.
    fn nobody_may_go(&self, cycle: &Cycle<'_>) -> Option<Status> {
        let status = preempting::no_victims_anywhere(cycle)?;
        let state = state_of(cycle).filter(|state| state.has_quota && !state.is_over_min)?;
        let context = &cycle.context;
        let others = quotas(context).filter(|quota| *quota.namespace != *cycle.pod.namespace);
        let has_borrowed = |quota: Quota<'_>| state.has_borrowed(context, quota.namespace, quota.object);
        (!{ others }.any(has_borrowed)).then_some(status)
    }

    fn findings_depend_on(&self, cycle: &Cycle<'_>) -> Option<Vec<u64>> {
        findings::everywhere(cycle)
    }

    fn findings_on_node_depend_on(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Vec<u64> {
        findings::on_node(cycle, node)
    }

    fn first_node(&self, _: &Cycle<'_>, _: usize) -> usize {
        0
    }

    fn candidates_wanted(&self, nodes: usize) -> usize {
        nodes.min(CANDIDATES_MAX)
    }

    fn counts_violations_of_rules(&self, cycle: &Cycle<'_>) -> bool {
        cycle.context.fixes.quota_budget_violations
    }

    fn message_prefix(&self) -> &'static str {
        ""
    }
}
