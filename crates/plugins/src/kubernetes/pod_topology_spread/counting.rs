//! The constraints as counters that the engine keeps.

use std::sync::Arc;

use supercargo_framework::{CountedFilter, CountedScore, Counter, Counts, Cycle, Groups, Scope, Status};
use supercargo_model::pod::WhenUnsatisfiable;
use supercargo_model::{NodeRef, Pod};

use super::PodTopologySpread;
use super::constraints::{Constraint, has_all_keys};
use super::filtering::{REASON, REASON_MISSING_LABEL};
use super::scoring::{HOSTNAME, normalized, range, weight, weighted};

/// Constraints that reject nodes.
pub(super) struct HardCounts {
    constraints: ConstraintCounts,
    /// Which constraints count the pod itself.
    counts_itself: Vec<bool>,
    rejections: [Status; 2],
}

/// Constraints that lower scores.
pub(super) struct SoftCounts {
    constraints: ConstraintCounts,
    require_all_keys: bool,
}

struct ConstraintCounts {
    pod: Arc<Pod>,
    constraints: Vec<Constraint>,
    counters: Vec<Counter>,
    require_all_keys: bool,
}

const MISSING_LABEL: usize = 0;
const SKEWED: usize = 1;

impl ConstraintCounts {
    fn new(cycle: &Cycle<'_>, constraints: Vec<Constraint>, hard: bool, require_all_keys: bool) -> Self {
        let keys: Vec<Box<str>> = if require_all_keys {
            constraints.iter().map(|constraint| constraint.topology_key.clone()).collect()
        } else {
            Vec::new()
        };
        let counter = |constraint: &Constraint| Counter {
            scope: if !hard && *constraint.topology_key == *HOSTNAME {
                Scope::Node
            } else if constraint.chooses_nodes(cycle.pod) {
                Scope::Chosen
            } else {
                Scope::NodesWithKeys(keys.clone())
            },
            wants_counts: hard,
            wants_domains: !hard,
            ..Counter::new(constraint.matcher(&cycle.pod.namespace), constraint.topology_key.clone())
        };
        let counters = constraints.iter().map(counter).collect();
        ConstraintCounts { pod: cycle.pod.clone(), constraints, counters, require_all_keys }
    }

    fn includes(&self, counter: usize, node: NodeRef<'_>) -> bool {
        (!self.require_all_keys || has_all_keys(node, &self.constraints))
            && self.constraints[counter].includes(&self.pod, node)
    }
}

impl HardCounts {
    /// None if the constraints cannot be read.
    pub(super) fn of(plugin: &PodTopologySpread, cycle: &Cycle<'_>) -> Option<Self> {
        let hard = plugin.constraints(&cycle.context, cycle.pod, WhenUnsatisfiable::DoNotSchedule).ok()?;
        Some(HardCounts {
            counts_itself: hard.iter().map(|constraint| constraint.counts(cycle.pod)).collect(),
            constraints: ConstraintCounts::new(cycle, hard, true, true),
            rejections: [Status::unresolvable(REASON_MISSING_LABEL), Status::unschedulable(REASON)],
        })
    }
}

impl Counts for HardCounts {
    fn counters(&self) -> &[Counter] {
        &self.constraints.counters
    }

    fn includes(&self, counter: usize, node: NodeRef<'_>) -> bool {
        self.constraints.includes(counter, node)
    }
}

impl CountedFilter for HardCounts {
    fn rejections(&self) -> &[Status] {
        &self.rejections
    }

    fn filter(&self, groups: &Groups<'_>, group: usize) -> Result<(), usize> {
        for (counter, constraint) in self.constraints.constraints.iter().enumerate() {
            let (cell, all) = (groups.cell(group, counter), groups.tallies[counter].of_domains);
            if !cell.has_domain() {
                return Err(MISSING_LABEL);
            }
            let minimum = match all.domains {
                domains if (domains as i64) < i64::from(constraint.min_domains) => 0,
                0 => i64::from(i32::MAX),
                _ => i64::from(all.minimum),
            };
            let itself = i64::from(self.counts_itself[counter]);
            if i64::from(cell.pods) + itself - minimum > i64::from(constraint.max_skew) {
                return Err(SKEWED);
            }
        }
        Ok(())
    }
}

impl SoftCounts {
    /// None if the constraints cannot be read, or if a node's domain has no name.
    pub(super) fn of(plugin: &PodTopologySpread, cycle: &Cycle<'_>) -> Option<Self> {
        let soft = plugin.constraints(&cycle.context, cycle.pod, WhenUnsatisfiable::ScheduleAnyway).ok()?;
        let labels = cycle.cluster().labels();
        if soft.iter().any(|constraint| labels.pair(&constraint.topology_key, "").is_some()) {
            return None;
        }
        let require_all_keys = plugin.requires_all_keys(cycle.pod);
        let constraints = ConstraintCounts::new(cycle, soft, false, require_all_keys);
        Some(SoftCounts { constraints, require_all_keys })
    }

    fn ignores(&self, groups: &Groups<'_>, group: usize) -> bool {
        let mut counters = 0..self.constraints.counters.len();
        self.require_all_keys && counters.any(|counter| !groups.cell(group, counter).has_domain())
    }

    /// How many domains have a feasible node that is not ignored.
    fn domains(&self, groups: &Groups<'_>, counter: usize, scratch: &mut Vec<u32>) -> usize {
        let is_scored = |group: usize| !self.ignores(groups, group);
        let mut scored = (0..groups.len()).filter(|group| is_scored(*group));
        if self.constraints.counters[counter].scope == Scope::Node {
            return scored.map(|group| groups.nodes[group] as usize).sum();
        }
        // The nodes without the key, where they are not ignored, are one domain more.
        let lacks_key =
            !self.require_all_keys && scored.any(|group| !groups.cell(group, counter).has_domain());
        groups.domains(counter, is_scored, scratch) + usize::from(lacks_key)
    }
}

impl Counts for SoftCounts {
    fn counters(&self) -> &[Counter] {
        &self.constraints.counters
    }

    fn includes(&self, counter: usize, node: NodeRef<'_>) -> bool {
        self.constraints.includes(counter, node)
    }
}

impl CountedScore for SoftCounts {
    fn score(&self, groups: &Groups<'_>, scratch: &mut Vec<u32>, scores: &mut [i64]) {
        // Sums are rounded at the end, so they are kept as bits of floating point numbers in between.
        scores.fill(0.0_f64.to_bits().cast_signed());
        for (counter, constraint) in self.constraints.constraints.iter().enumerate() {
            let weight = weight(self.domains(groups, counter, scratch));
            for (group, score) in scores.iter_mut().enumerate() {
                let cell = groups.cell(group, counter);
                if cell.has_domain() {
                    let sum = f64::from_bits(score.cast_unsigned())
                        + weighted(i64::from(cell.pods), weight, constraint.max_skew);
                    *score = sum.to_bits().cast_signed();
                }
            }
        }
        for score in scores.iter_mut() {
            *score = f64::from_bits(score.cast_unsigned()).round() as i64;
        }
        let counted = (0..groups.len()).filter(|group| !self.ignores(groups, *group));
        let (minimum, maximum) = range(counted.map(|group| scores[group]));
        for (group, score) in scores.iter_mut().enumerate() {
            *score = if self.ignores(groups, group) { 0 } else { normalized(*score, minimum, maximum) };
        }
    }
}
