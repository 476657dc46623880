//! Constraints that lower scores.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use supercargo_framework::{CountedScore, Cycle, MAX_NODE_SCORE, NodeScore, PreScore, Score, Status};
use supercargo_model::cluster::ValueId;
use supercargo_model::pod::WhenUnsatisfiable;
use supercargo_model::{LabelLookup, NodeRef, Pod, Row};

use super::PodTopologySpread;
use super::constraints::{Constraint, has_all_keys, namespace};
use super::counting::SoftCounts;
use super::logarithm::ln;

/// Under this key every node is its own domain, counted when the node is scored.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

#[derive(Clone)]
struct Soft(Arc<SoftState>);

struct SoftState {
    constraints: Vec<SoftConstraint>,
    /// Feasible nodes that lack a topology key: they score 0.
    ignored: FxHashSet<Row>,
}

struct SoftConstraint {
    constraint: Constraint,
    /// Pods in each domain that has a feasible node; the nodes without the key, where they count, are one domain.
    counts: FxHashMap<Option<ValueId>, i64>,
    weight: f64,
}

impl PreScore for PodTopologySpread {
    fn pre_score(&self, cycle: &mut Cycle<'_>, feasible: &[Row]) -> Status {
        if cycle.cluster().node_count() == 0 {
            return Status::skip();
        }
        let constraints = match self.constraints(&cycle.context, cycle.pod, WhenUnsatisfiable::ScheduleAnyway)
        {
            Ok(constraints) if constraints.is_empty() => return Status::skip(),
            Ok(constraints) => constraints,
            Err(error) => {
                return Status::error(format!(
                    "calculating preScoreState: obtaining pod's soft topology spread constraints: {}",
                    error.message()
                ));
            }
        };
        let require_all_keys = self.requires_all_keys(cycle.pod);
        cycle.put(Soft(Arc::new(SoftState::new(cycle, &constraints, feasible, require_all_keys))));
        Status::success()
    }
}

impl PodTopologySpread {
    /// Whether nodes that lack a topology key are left out: the system defaults spread over nodes even where there are
    /// no zones.
    pub(super) fn requires_all_keys(&self, pod: &Pod) -> bool {
        !pod.spec.spread_constraints.is_empty() || !self.system_defaulted
    }
}

impl Score for PodTopologySpread {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let Some(Soft(state)) = cycle.get() else { return Err(missing_state()) };
        if state.ignored.contains(&node.row()) {
            return Ok(0);
        }
        let mut score = 0.0;
        for SoftConstraint { constraint, counts, weight } in &state.constraints {
            if node.domain_named(&constraint.topology_key).is_none() {
                continue;
            }
            let count = if *constraint.topology_key == *HOSTNAME {
                constraint.count_on(node, namespace(cycle))
            } else {
                counts.get(&domain_value(node, constraint)).copied().unwrap_or(0)
            };
            score += weighted(count, *weight, constraint.max_skew);
        }
        Ok(score.round() as i64)
    }

    fn normalize(&self, cycle: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        let Some(Soft(state)) = cycle.get() else { return missing_state() };
        let counted =
            scores.iter().filter(|score| !state.ignored.contains(&score.row)).map(|score| score.score);
        let (minimum, maximum) = range(counted);
        for score in scores {
            let ignored = state.ignored.contains(&score.row);
            score.score = if ignored { 0 } else { normalized(score.score, minimum, maximum) };
        }
        Status::success()
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedScore>> {
        Some(Arc::new(SoftCounts::of(self, cycle)?))
    }
}

impl SoftState {
    fn new(cycle: &Cycle<'_>, constraints: &[Constraint], feasible: &[Row], require_all_keys: bool) -> Self {
        let cluster = cycle.cluster();
        let takes_part = |node: NodeRef<'_>, constraints: &[Constraint]| {
            !require_all_keys || has_all_keys(node, constraints)
        };
        let (scored, ignored): (Vec<Row>, Vec<Row>) =
            feasible.iter().partition(|row| takes_part(cluster.node(**row), constraints));

        let mut soft: Vec<SoftConstraint> = Vec::with_capacity(constraints.len());
        for constraint in constraints {
            let is_hostname = *constraint.topology_key == *HOSTNAME;
            let mut counts = FxHashMap::default();
            if !is_hostname {
                for row in &scored {
                    counts.entry(domain_value(cluster.node(*row), constraint)).or_insert(0);
                }
            }
            let size = if is_hostname { scored.len() } else { counts.len() };
            let weight = weight(size);
            soft.push(SoftConstraint { constraint: constraint.clone(), counts, weight });
        }
        for node in cluster.nodes().filter(|node| takes_part(*node, constraints)) {
            for SoftConstraint { constraint, counts, .. } in &mut soft {
                if let Some(count) = counts.get_mut(&domain_value(node, constraint))
                    && constraint.includes(cycle.pod, node)
                {
                    *count += constraint.count_on(node, namespace(cycle));
                }
            }
        }
        SoftState { constraints: soft, ignored: ignored.into_iter().collect() }
    }
}

/// The node's domain. A node without the key is in one domain with those whose value is empty.
fn domain_value(node: NodeRef<'_>, constraint: &Constraint) -> Option<ValueId> {
    let domain = node.domain_named(&constraint.topology_key)?;
    (node.label(&constraint.topology_key) != Some("")).then_some(domain.value)
}

/// Larger topologies weigh more, so that their smaller counts are not drowned.
pub(super) fn weight(domains: usize) -> f64 {
    ln((domains + 2) as f64)
}

/// What a count adds to a node's score. Two roundings, as upstream: a fused multiply-add would differ in the last bit.
pub(super) fn weighted(count: i64, weight: f64, max_skew: i32) -> f64 {
    count as f64 * weight + f64::from(max_skew.wrapping_sub(1))
}

/// The lowest and the highest score, the latter not below 0.
pub(super) fn range(scores: impl Iterator<Item = i64>) -> (i64, i64) {
    scores.fold((i64::MAX, 0), |(minimum, maximum), score| (minimum.min(score), maximum.max(score)))
}

/// 100 for the lowest score, less for higher ones.
pub(super) fn normalized(score: i64, minimum: i64, maximum: i64) -> i64 {
    // Upstream marks ignored nodes by a score of -1, so a node that comes to -1 by itself is taken for one.
    if score == -1 {
        0
    } else if maximum == 0 {
        MAX_NODE_SCORE
    } else {
        MAX_NODE_SCORE * (maximum + minimum - score) / maximum
    }
}

fn missing_state() -> Status {
    Status::error(r#"error reading "PreScorePodTopologySpread" from cycleState: not found"#)
}
