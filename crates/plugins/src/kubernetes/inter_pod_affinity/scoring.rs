//! Terms that make nodes better or worse.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{CountedScore, Cycle, MAX_NODE_SCORE, NodeScore, PreScore, Score, Status};
use supercargo_model::cluster::LabelPair;
use supercargo_model::pod::{PodAffinityTerm, WeightedPodAffinityTerm};
use supercargo_model::{Labels, NodeRef, Pod, Row};

use super::InterPodAffinity;
use super::counting::PreferredCounts;
use super::terms::{IncomingTerm, namespace_labels};

/// What each topology domain is worth.
#[derive(Clone)]
struct DomainScores(Arc<FxHashMap<LabelPair, i64>>);

impl PreScore for InterPodAffinity {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        let (pod, context) = (cycle.pod, &cycle.context);
        let affinity = &pod.spec.pod_affinity;
        if self.ignore_preferred_terms_of_existing_pods && !affinity.declares_preferred {
            return Status::skip();
        }
        if let Some(error) = &affinity.error {
            return Status::error(format!("failed to parse pod: {error}"));
        }
        let resolve = |terms: &[WeightedPodAffinityTerm], sign: i32| -> Vec<(IncomingTerm, i32)> {
            let resolved =
                terms.iter().map(|term| (IncomingTerm::resolve(&term.term, pod, context), term.weight));
            resolved.map(|(term, weight)| (term, weight.wrapping_mul(sign))).collect()
        };
        let mut preferred = resolve(&affinity.preferred, 1);
        preferred.extend(resolve(&affinity.preferred_anti, -1));

        let mut tally =
            Tally { pod, namespace_labels: namespace_labels(pod, context), scores: FxHashMap::default() };
        for node in cycle.cluster().nodes() {
            // Without preferences of its own, only pods that have some matter to it.
            if affinity.declares_preferred {
                for existing in node.pods() {
                    tally.add_wishes_of_incoming(&preferred, existing, node);
                    self.add_wishes_of_existing(&mut tally, existing, node);
                }
            } else {
                for existing in node.usage().pods_with_affinity() {
                    self.add_wishes_of_existing(&mut tally, existing, node);
                }
            }
        }
        if tally.scores.is_empty() {
            return Status::skip();
        }
        let scores = DomainScores(Arc::new(tally.scores));
        cycle.put(scores);
        Status::success()
    }
}

impl InterPodAffinity {
    fn add_wishes_of_existing(&self, tally: &mut Tally<'_>, existing: &Pod, node: NodeRef<'_>) {
        let affinity = &existing.spec.pod_affinity;
        if self.hard_pod_affinity_weight > 0 {
            for term in &affinity.required {
                tally.add_wish_of_existing(term, self.hard_pod_affinity_weight, existing, node);
            }
        }
        for WeightedPodAffinityTerm { term, weight } in &affinity.preferred {
            tally.add_wish_of_existing(term, *weight, existing, node);
        }
        for WeightedPodAffinityTerm { term, weight } in &affinity.preferred_anti {
            tally.add_wish_of_existing(term, weight.wrapping_neg(), existing, node);
        }
    }
}

/// The scores of domains while they are being added up.
struct Tally<'a> {
    pod: &'a Pod,
    namespace_labels: Labels,
    scores: FxHashMap<LabelPair, i64>,
}

impl Tally<'_> {
    fn add_wishes_of_incoming(&mut self, terms: &[(IncomingTerm, i32)], existing: &Pod, node: NodeRef<'_>) {
        for (term, weight) in terms.iter().filter(|(term, _)| term.matches(existing)) {
            self.add(node, &term.topology_key, *weight);
        }
    }

    fn add_wish_of_existing(
        &mut self,
        term: &PodAffinityTerm,
        weight: i32,
        existing: &Pod,
        node: NodeRef<'_>,
    ) {
        let pod = self.pod;
        if term.matches(&existing.namespace, &pod.namespace, &self.namespace_labels, &pod.labels) {
            self.add(node, &term.topology_key, weight);
        }
    }

    fn add(&mut self, node: NodeRef<'_>, topology_key: &str, weight: i32) {
        if let Some(domain) = node.domain_named(topology_key) {
            *self.scores.entry(domain).or_default() += i64::from(weight);
        }
    }
}

impl Score for InterPodAffinity {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let Some(DomainScores(scores)) = cycle.get() else { return Err(missing_state()) };
        Ok(node.label_pairs().iter().filter_map(|domain| scores.get(domain)).sum())
    }

    fn normalize(&self, cycle: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        if cycle.get::<DomainScores>().is_none() {
            return missing_state();
        }
        let (minimum, maximum) = range(scores.iter().map(|score| score.score));
        for score in scores {
            score.score = normalized(score.score, minimum, maximum);
        }
        Status::success()
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedScore>> {
        Some(Arc::new(PreferredCounts::of(self, cycle)?))
    }
}

/// The lowest and the highest score.
pub(super) fn range(scores: impl Iterator<Item = i64>) -> (i64, i64) {
    scores.fold((i64::MAX, i64::MIN), |(minimum, maximum), score| (minimum.min(score), maximum.max(score)))
}

/// 0 for the lowest score, 100 for the highest.
pub(super) fn normalized(score: i64, minimum: i64, maximum: i64) -> i64 {
    let range = maximum - minimum;
    if range > 0 { (MAX_NODE_SCORE as f64 * ((score - minimum) as f64 / range as f64)) as i64 } else { 0 }
}

fn missing_state() -> Status {
    Status::error(r#"failed to read "PreScoreInterPodAffinity" from cycleState: not found"#)
}
