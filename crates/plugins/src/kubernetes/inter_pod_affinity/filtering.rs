//! Terms that reject nodes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{CountedFilter, Cycle, Filter, PreFilter, PreFilterResult, Status};
use supercargo_model::cluster::LabelPair;
use supercargo_model::{Labels, NodeRef, Pod};

use super::InterPodAffinity;
use super::counting::RequiredCounts;
use super::terms::{IncomingTerm, match_all, namespace_labels};

pub(super) const REASON_EXISTING_ANTI_AFFINITY: &str =
    "node(s) didn't satisfy existing pods anti-affinity rules";
pub(super) const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
pub(super) const REASON_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";

/// How many pods count for and against each topology domain.
#[derive(Clone)]
struct Counts {
    incoming: Arc<Incoming>,
    /// Running pods that do not want the pending pod near them.
    existing_anti: DomainCounts,
    /// Running pods that match all affinity terms of the pending pod.
    affinity: DomainCounts,
    /// Running pods that match an anti-affinity term of the pending pod.
    anti: DomainCounts,
}

/// The pending pod, as far as counting goes.
struct Incoming {
    required: Vec<IncomingTerm>,
    required_anti: Vec<IncomingTerm>,
    namespace_labels: Labels,
}

/// Numbers of pods by domain; a domain with none is absent.
#[derive(Clone, Default)]
struct DomainCounts(FxHashMap<LabelPair, i64>);

impl PreFilter for InterPodAffinity {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let (pod, context) = (cycle.pod, &cycle.context);
        let affinity = &pod.spec.pod_affinity;
        if let Some(error) = &affinity.error {
            return PreFilterResult::Reject(Status::unresolvable(format!("parsing pod: {error}")));
        }
        let mut counts = Counts {
            incoming: Arc::new(Incoming {
                required: IncomingTerm::resolve_all(&affinity.required, pod, context),
                required_anti: IncomingTerm::resolve_all(&affinity.required_anti, pod, context),
                namespace_labels: namespace_labels(pod, context),
            }),
            existing_anti: DomainCounts::default(),
            affinity: DomainCounts::default(),
            anti: DomainCounts::default(),
        };
        let has_terms = !affinity.required.is_empty() || !affinity.required_anti.is_empty();
        for node in cycle.cluster().nodes() {
            for existing in node.usage().pods_with_required_anti_affinity() {
                counts.update_existing_anti(pod, existing, node, 1);
            }
            if has_terms {
                for existing in node.pods() {
                    counts.update_incoming(existing, node, 1);
                }
            }
        }
        if counts.existing_anti.0.is_empty() && !has_terms {
            return PreFilterResult::Skip;
        }
        cycle.put(counts);
        PreFilterResult::AllNodes
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        update(cycle, pod, node, 1)
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        update(cycle, pod, node, -1)
    }
}

impl Filter for InterPodAffinity {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(counts) = cycle.get::<Counts>() else { return missing_state() };
        if !counts.satisfy_affinity(cycle.pod, node) {
            return Status::unresolvable(REASON_AFFINITY);
        }
        if !counts.satisfy_anti_affinity(node) {
            return Status::unschedulable(REASON_ANTI_AFFINITY);
        }
        if !counts.satisfy_existing_anti_affinity(node) {
            return Status::unschedulable(REASON_EXISTING_ANTI_AFFINITY);
        }
        Status::success()
    }

    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedFilter>> {
        Some(Arc::new(RequiredCounts::of(cycle)?))
    }
}

impl Counts {
    fn satisfy_affinity(&self, pod: &Pod, node: NodeRef<'_>) -> bool {
        let mut all_present = true;
        for term in &self.incoming.required {
            match node.domain_named(&term.topology_key) {
                None => return false,
                Some(domain) => all_present &= self.affinity.has_pods(domain),
            }
        }
        // The first of a group of pods that want to be near each other has nobody to be near to yet.
        all_present || (self.affinity.0.is_empty() && match_all(&self.incoming.required, pod))
    }

    fn satisfy_anti_affinity(&self, node: NodeRef<'_>) -> bool {
        let domains =
            self.incoming.required_anti.iter().filter_map(|term| node.domain_named(&term.topology_key));
        !{ domains }.any(|domain| self.anti.has_pods(domain))
    }

    fn satisfy_existing_anti_affinity(&self, node: NodeRef<'_>) -> bool {
        self.existing_anti.0.is_empty()
            || !node.label_pairs().iter().any(|domain| self.existing_anti.has_pods(*domain))
    }

    fn update_existing_anti(&mut self, pod: &Pod, existing: &Pod, node: NodeRef<'_>, change: i64) {
        for term in &existing.spec.pod_affinity.required_anti {
            let labels = &self.incoming.namespace_labels;
            if term.matches(&existing.namespace, &pod.namespace, labels, &pod.labels) {
                self.existing_anti.update(node, &term.topology_key, change);
            }
        }
    }

    fn update_incoming(&mut self, existing: &Pod, node: NodeRef<'_>, change: i64) {
        if match_all(&self.incoming.required, existing) {
            for term in &self.incoming.required {
                self.affinity.update(node, &term.topology_key, change);
            }
        }
        for term in self.incoming.required_anti.iter().filter(|term| term.matches(existing)) {
            self.anti.update(node, &term.topology_key, change);
        }
    }
}

impl DomainCounts {
    fn has_pods(&self, domain: LabelPair) -> bool {
        self.0.get(&domain).is_some_and(|count| *count > 0)
    }

    fn update(&mut self, node: NodeRef<'_>, topology_key: &str, change: i64) {
        if let Some(domain) = node.domain_named(topology_key) {
            let count = self.0.entry(domain).or_default();
            *count += change;
            if *count == 0 {
                self.0.remove(&domain);
            }
        }
    }
}

fn update(cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>, change: i64) -> Status {
    let incoming = cycle.pod;
    let Some(counts) = cycle.get_mut::<Counts>() else { return missing_state() };
    counts.update_existing_anti(incoming, pod, node, change);
    counts.update_incoming(pod, node, change);
    Status::success()
}

fn missing_state() -> Status {
    Status::error(r#"error reading "PreFilterInterPodAffinity" from cycleState: not found"#)
}
