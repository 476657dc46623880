//! Pods that stand in the way of another.

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::Context;
use supercargo_model::cluster::LabelPair;
use supercargo_model::kinds::Namespace;
use supercargo_model::pod::PodAffinityTerm;
use supercargo_model::{Labels, NodeRef, Pod, Row, Snapshot};

/// Who may stand in the way of a pod: a guess that is good if the pod fits without them.
pub(super) struct Opponents<'a> {
    pod: &'a Pod,
    /// By the domain that they or the pod want for themselves.
    by_domain: BTreeMap<LabelPair, Vec<(Row, &'a Arc<Pod>)>>,
}

impl<'a> Opponents<'a> {
    pub(super) fn new(pod: &'a Pod, context: &Context<'a>) -> Self {
        let cluster: &'a Snapshot = context.cluster;
        let labels_of = |namespace: &str| {
            let found = cluster.objects().get::<Namespace>("", namespace);
            found.map(|found| found.metadata.labels.clone()).unwrap_or_default()
        };
        let own_labels: Labels = labels_of(&pod.namespace);
        let mut by_domain: BTreeMap<LabelPair, Vec<(Row, &'a Arc<Pod>)>> = BTreeMap::new();
        let mut note = |node: NodeRef<'a>, other: &'a Arc<Pod>, term: &PodAffinityTerm| {
            if let Some(domain) = node.domain_named(&term.topology_key) {
                let pods = by_domain.entry(domain).or_default();
                if pods.last().is_none_or(|(_, last)| last.uid != other.uid) {
                    pods.push((node.row(), other));
                }
            }
        };
        for node in cluster.nodes() {
            for other in node.usage().pods_with_required_anti_affinity() {
                for term in &other.spec.pod_affinity.required_anti {
                    if term.matches(&other.namespace, &pod.namespace, &own_labels, &pod.labels) {
                        note(node, other, term);
                    }
                }
            }
            for term in &pod.spec.pod_affinity.required_anti {
                for other in node.pods() {
                    let labels = || labels_of(&other.namespace);
                    if term.selector.matches(&*other.labels)
                        && term.matches(&pod.namespace, &other.namespace, &labels(), &other.labels)
                    {
                        note(node, other, term);
                    }
                }
            }
        }
        Opponents { pod, by_domain }
    }

    /// Those that stand in its way on a node, each once, with the rows they are in; none if they are nobody, or too many.
    pub(super) fn on(&self, node: NodeRef<'a>, most: usize) -> Option<Vec<(Row, &'a Arc<Pod>)>> {
        let mut pods: Vec<(Row, &'a Arc<Pod>)> = Vec::new();
        for domain in node.label_pairs() {
            let near = self.by_domain.get(domain).map_or(&[][..], Vec::as_slice);
            // A pod comes twice only where two terms of one pod take turns.
            if near.len() > 2 * most {
                return None;
            }
            pods.extend(near);
        }
        let wants_port_of = |other: &Pod| {
            other
                .spec
                .host_ports()
                .any(|taken| self.pod.spec.host_ports().any(|port| port.conflicts_with(taken)))
        };
        if self.pod.spec.host_ports().next().is_some() {
            let taking = node.pods().iter().filter(|other| wants_port_of(other));
            pods.extend(taking.map(|other| (node.row(), other)));
        }
        pods.sort_by(|(_, a), (_, b)| a.uid.cmp(&b.uid));
        pods.dedup_by(|(_, a), (_, b)| a.uid == b.uid);
        (1..=most).contains(&pods.len()).then_some(pods)
    }
}
