//! The terms as counters that the engine keeps.

use supercargo_framework::{
    CountedFilter, CountedScore, Counter, Counts, Cycle, Groups, PodMatcher, Status, TermRole,
};
use supercargo_model::pod::WeightedPodAffinityTerm;

use super::InterPodAffinity;
use super::filtering::{REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING_ANTI_AFFINITY};
use super::scoring::{normalized, range};
use super::terms::{IncomingTerm, match_all};

/// The required terms: first the affinity's, then the anti-affinity's.
pub(super) struct RequiredCounts {
    counters: Vec<Counter>,
    affinity_terms: usize,
    /// Whether the pod itself is one that it wants to be near to.
    matches_itself: bool,
    rejections: [Status; 3],
}

/// The preferred terms with their weights, and what running pods prefer.
pub(super) struct PreferredCounts {
    counters: Vec<Counter>,
    weights: Vec<i32>,
    roles: Vec<TermRole>,
    hard_pod_affinity_weight: i32,
}

const AFFINITY: usize = 0;
const ANTI_AFFINITY: usize = 1;
const EXISTING_ANTI_AFFINITY: usize = 2;

impl RequiredCounts {
    /// None if the terms cannot be read.
    pub(super) fn of(cycle: &Cycle<'_>) -> Option<Self> {
        let affinity = &cycle.pod.spec.pod_affinity;
        if affinity.error.is_some() {
            return None;
        }
        let required = IncomingTerm::resolve_all(&affinity.required, cycle.pod, &cycle.context);
        let required_anti = IncomingTerm::resolve_all(&affinity.required_anti, cycle.pod, &cycle.context);
        // A pod counts only if all affinity terms mean it, under the key of each.
        let all: Vec<_> = required.iter().map(IncomingTerm::matcher_term).collect();
        let counters = (required.iter().map(|term| counter(term, all.clone())))
            .chain(required_anti.iter().map(|term| counter(term, vec![term.matcher_term()])))
            .collect();
        Some(RequiredCounts {
            counters,
            affinity_terms: required.len(),
            matches_itself: match_all(&required, cycle.pod),
            rejections: [
                Status::unresolvable(REASON_AFFINITY),
                Status::unschedulable(REASON_ANTI_AFFINITY),
                Status::unschedulable(REASON_EXISTING_ANTI_AFFINITY),
            ],
        })
    }
}

impl Counts for RequiredCounts {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }

    fn roles(&self) -> &[TermRole] {
        &[TermRole::RequiredAnti]
    }
}

impl CountedFilter for RequiredCounts {
    fn rejections(&self) -> &[Status] {
        &self.rejections
    }

    fn filter(&self, groups: &Groups<'_>, group: usize) -> Result<(), usize> {
        let mut all_present = true;
        let mut none_anywhere = true;
        for counter in 0..self.affinity_terms {
            let cell = groups.cell(group, counter);
            if !cell.has_domain() {
                return Err(AFFINITY);
            }
            all_present &= cell.pods > 0;
            none_anywhere &= groups.tallies[counter].total == 0;
        }
        // The first of a group of pods that want to be near each other has nobody to be near to yet.
        let is_first = none_anywhere && self.matches_itself;
        if !(all_present || is_first) {
            return Err(AFFINITY);
        }
        if (self.affinity_terms..self.counters.len()).any(|counter| groups.cell(group, counter).pods > 0) {
            return Err(ANTI_AFFINITY);
        }
        if groups.terms(group, TermRole::RequiredAnti) != 0 {
            return Err(EXISTING_ANTI_AFFINITY);
        }
        Ok(())
    }
}

impl PreferredCounts {
    /// None if the terms cannot be read.
    pub(super) fn of(plugin: &InterPodAffinity, cycle: &Cycle<'_>) -> Option<Self> {
        let affinity = &cycle.pod.spec.pod_affinity;
        if affinity.error.is_some() {
            return None;
        }
        let mut counts = PreferredCounts {
            counters: Vec::new(),
            weights: Vec::new(),
            roles: Vec::new(),
            hard_pod_affinity_weight: plugin.hard_pod_affinity_weight,
        };
        if plugin.ignore_preferred_terms_of_existing_pods && !affinity.declares_preferred {
            return Some(counts);
        }
        counts.roles = vec![TermRole::Preferred, TermRole::PreferredAnti];
        if plugin.hard_pod_affinity_weight > 0 {
            counts.roles.push(TermRole::Required);
        }
        for (terms, sign) in [(&affinity.preferred, 1), (&affinity.preferred_anti, -1)] {
            for WeightedPodAffinityTerm { term, weight } in terms {
                let term = IncomingTerm::resolve(term, cycle.pod, &cycle.context);
                counts.counters.push(counter(&term, vec![term.matcher_term()]));
                counts.weights.push(weight.wrapping_mul(sign));
            }
        }
        Some(counts)
    }

    fn raw_score(&self, groups: &Groups<'_>, group: usize) -> i64 {
        let own = self.weights.iter().enumerate().map(|(counter, weight)| {
            let cell = groups.cell(group, counter);
            if cell.has_domain() { i64::from(cell.pods) * i64::from(*weight) } else { 0 }
        });
        let required = groups.terms(group, TermRole::Required) * i64::from(self.hard_pod_affinity_weight);
        let preferred =
            groups.terms(group, TermRole::Preferred) + groups.terms(group, TermRole::PreferredAnti);
        own.sum::<i64>() + required + preferred
    }
}

impl Counts for PreferredCounts {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }

    fn roles(&self) -> &[TermRole] {
        &self.roles
    }
}

impl CountedScore for PreferredCounts {
    fn score(&self, groups: &Groups<'_>, _: &mut Vec<u32>, scores: &mut [i64]) {
        for (group, score) in scores.iter_mut().enumerate() {
            *score = self.raw_score(groups, group);
        }
        let (minimum, maximum) = range(scores.iter().copied());
        for score in scores {
            *score = normalized(*score, minimum, maximum);
        }
    }
}

fn counter(term: &IncomingTerm, terms: Vec<supercargo_framework::MatcherTerm>) -> Counter {
    Counter::new(PodMatcher { terms, counts_terminating: true }, term.topology_key.clone())
}
