//! What it takes where no one thing helps.

use rustc_hash::FxHashSet;
use supercargo_engine::FilterWord;
use supercargo_model::names::resource;
use supercargo_model::taints::{Taint, untolerated};
use supercargo_model::{Labels, NodeRef, PodSpec};

use super::Search;
use super::own_rules::{cordon, drop_host_ports};
use super::resources::{names, quantities, request_less};
use crate::remedy::{Hint, Remedy};
use crate::text::enumeration;
use crate::what_if::tolerate;

impl Search<'_> {
    /// No one thing helps: what it takes on the node where the fewest plugins stand in the way.
    pub(super) fn several(&self) -> Option<Hint> {
        let places = self.places.iter().min_by_key(|(blockers, places)| (blockers.len(), places.first()));
        let (row, words) = self.evaluation.words.get(*places?.1.first()?)?;
        let node = self.node(*row);
        let mut changed = (*self.pod.spec).clone();
        let mut remedies = Vec::new();
        for word in words.iter().filter(|word| word.stands_in_the_way()) {
            remedies.extend(self.make_way(word, node, &mut changed)?);
        }
        let opened = self.feasible_with(&[*row], |spec| *spec = changed);
        let list: Vec<String> = remedies.iter().map(Remedy::describe).collect();
        let remedy = Remedy::Several { node: node.name().to_string(), remedies };
        self.hint(remedy, &opened, |_| {
            format!("on {}, which is closest: {}", node.name(), enumeration(&list, ", and "))
        })
    }

    /// Changes the spec so that a plugin no longer stands in the way on the node; none if nothing is known to help.
    fn make_way(&self, word: &FilterWord, node: NodeRef<'_>, spec: &mut PodSpec) -> Option<Vec<Remedy>> {
        match word.plugin {
            "NodeResourcesFit" => {
                let missing = self.shortage(node)?;
                if names(&missing).contains(&resource::PODS) {
                    return None;
                }
                request_less(spec, &missing);
                let node = node.name().to_string();
                Some(vec![Remedy::Resources { node, missing: quantities(&missing) }])
            }
            "NodeUnschedulable" => {
                tolerate(spec, [&cordon()]);
                Some(vec![Remedy::Uncordon { node: node.name().to_string() }])
            }
            "TaintToleration" => Some(tolerate_all(spec, node)),
            "NodeAffinity" => Some(admit(spec, node)),
            "InterPodAffinity" => Some(keep_no_company(spec)),
            "NodePorts" => {
                drop_host_ports(spec);
                Some(vec![Remedy::DropHostPorts])
            }
            "VolumeBinding" | "VolumeZone" | "VolumeRestrictions" | "NodeVolumeLimits" => {
                let volumes = std::mem::take(&mut spec.volumes);
                Some(volumes.iter().map(|volume| self.drop_volume(volume)).collect())
            }
            _ => None,
        }
    }
}

fn tolerate_all(spec: &mut PodSpec, node: NodeRef<'_>) -> Vec<Remedy> {
    let mut missing: Vec<&Taint> =
        untolerated(node.taints(), &spec.tolerations).filter(|taint| taint.forbids_scheduling()).collect();
    let mut seen = FxHashSet::default();
    missing.retain(|taint| seen.insert(*taint));
    tolerate(spec, missing.iter().copied());
    missing.into_iter().map(Remedy::toleration).collect()
}

/// Drops what excludes the node from the pod's selector and node affinity, and no more.
fn admit(spec: &mut PodSpec, node: NodeRef<'_>) -> Vec<Remedy> {
    let has = |key: &str, value: &str| node.labels().any(|label| label == (key, value));
    let mut remedies = Vec::new();
    if let Some(selector) = &mut spec.node_selector {
        let excluding = selector.iter().filter(|(key, value)| !has(key, value));
        remedies.extend(
            excluding.map(|(key, value)| Remedy::DropNodeSelector {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
        );
        *selector = selector.iter().filter(|(key, value)| has(key, value)).collect::<Labels>();
    }
    if !spec.admits_node(&node) {
        spec.node_affinity.required = None;
        remedies.push(Remedy::DropNodeAffinity);
    }
    remedies
}

fn keep_no_company(spec: &mut PodSpec) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if !std::mem::take(&mut spec.pod_affinity.required).is_empty() {
        remedies.push(Remedy::DropPodAffinity);
    }
    if !std::mem::take(&mut spec.pod_affinity.required_anti).is_empty() {
        remedies.push(Remedy::DropPodAntiAffinity);
    }
    remedies
}
