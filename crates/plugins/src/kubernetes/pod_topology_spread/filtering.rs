//! Constraints that reject nodes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{CountedFilter, Cycle, Filter, PreFilter, PreFilterResult, Status};
use supercargo_model::cluster::ValueId;
use supercargo_model::pod::WhenUnsatisfiable;
use supercargo_model::{NodeRef, Pod};

use super::PodTopologySpread;
use super::constraints::{Constraint, has_all_keys, namespace};
use super::counting::HardCounts;

pub(super) const REASON: &str = "node(s) didn't match pod topology spread constraints";
pub(super) const REASON_MISSING_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

/// How many pods each constraint counts in each domain.
#[derive(Clone)]
struct Counts {
    constraints: Arc<[Constraint]>,
    domains: Vec<Domains>,
}

#[derive(Clone)]
struct Domains {
    counts: FxHashMap<ValueId, i64>,
    /// The smallest count; as upstream, the largest 32-bit number if there is no domain.
    minimum: i64,
}

impl PreFilter for PodTopologySpread {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let constraints = match self.constraints(&cycle.context, cycle.pod, WhenUnsatisfiable::DoNotSchedule)
        {
            Ok(constraints) => constraints,
            Err(error) => {
                return PreFilterResult::Reject(Status::error(format!(
                    "get constraints from pod: obtaining pod's hard topology spread constraints: {}",
                    error.message()
                )));
            }
        };
        if constraints.is_empty() {
            return PreFilterResult::Skip;
        }
        cycle.put(Counts::new(cycle, constraints));
        PreFilterResult::AllNodes
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        update(cycle, pod, node, 1)
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        update(cycle, pod, node, -1)
    }
}

impl Filter for PodTopologySpread {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(Counts { constraints, domains }) = cycle.get() else {
            return missing_state();
        };
        for (constraint, domains) in constraints.iter().zip(domains) {
            let Some(domain) = node.domain_named(&constraint.topology_key) else {
                return Status::unresolvable(REASON_MISSING_LABEL);
            };
            let enough_domains = domains.counts.len() as i64 >= i64::from(constraint.min_domains);
            let minimum = if enough_domains { domains.minimum } else { 0 };
            let itself = i64::from(constraint.counts(cycle.pod));
            let count = domains.counts.get(&domain.value).copied().unwrap_or(0);
            if count + itself - minimum > i64::from(constraint.max_skew) {
                return Status::unschedulable(REASON);
            }
        }
        Status::success()
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedFilter>> {
        Some(Arc::new(HardCounts::of(self, cycle)?))
    }
}

impl Counts {
    fn new(cycle: &Cycle<'_>, constraints: Vec<Constraint>) -> Self {
        let mut domains: Vec<Domains> = constraints.iter().map(|_| Domains::default()).collect();
        for node in cycle.cluster().nodes().filter(|node| has_all_keys(*node, &constraints)) {
            for (constraint, domains) in constraints.iter().zip(&mut domains) {
                if let Some(domain) = node.domain_named(&constraint.topology_key)
                    && constraint.includes(cycle.pod, node)
                {
                    *domains.counts.entry(domain.value).or_default() +=
                        constraint.count_on(node, namespace(cycle));
                }
            }
        }
        for domains in &mut domains {
            domains.find_minimum();
        }
        Counts { constraints: constraints.into(), domains }
    }
}

impl Default for Domains {
    fn default() -> Self {
        Domains { counts: FxHashMap::default(), minimum: i64::from(i32::MAX) }
    }
}

impl Domains {
    fn find_minimum(&mut self) {
        self.minimum = self.counts.values().copied().min().unwrap_or(i64::from(i32::MAX));
    }
}

/// Counts a pod that comes to a node or leaves it. Here, as upstream, a terminating pod counts as well.
fn update(cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>, change: i64) -> Status {
    let incoming = cycle.pod;
    let Some(Counts { constraints, domains }) = cycle.get_mut() else {
        return missing_state();
    };
    if pod.namespace != incoming.namespace || !has_all_keys(node, constraints) {
        return Status::success();
    }
    for (constraint, domains) in constraints.iter().zip(domains) {
        if let Some(domain) = node.domain_named(&constraint.topology_key)
            && constraint.counts(pod)
            && constraint.includes(incoming, node)
        {
            *domains.counts.entry(domain.value).or_default() += change;
            domains.find_minimum();
        }
    }
    Status::success()
}

fn missing_state() -> Status {
    Status::error(r#"reading "PreFilterPodTopologySpread" from cycleState: not found"#)
}
