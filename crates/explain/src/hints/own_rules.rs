//! Rules of the pod's own that could be relaxed.

use rustc_hash::FxHashMap;
use supercargo_framework::PodField;
use supercargo_model::pod::WhenUnsatisfiable;
use supercargo_model::taints::{Effect, Taint, UNSCHEDULABLE_TAINT, find_forbidding};
use supercargo_model::{Labels, PodSpec, Row};

use super::Search;
use crate::remedy::{Hint, Remedy};
use crate::text::nodes;
use crate::what_if::{taint_text, tolerate, toleration_of};

/// How far the skew of a constraint is raised to see whether that helps.
const SKEW_STEPS: [i32; 5] = [1, 2, 5, 10, 100];

/// So many tolerations are tried: twice as many as there are hints.
const TAINTS_TRIED_MAX: usize = 16;

/// What cordoned nodes are taken to be tainted with.
pub(super) fn cordon() -> Taint {
    Taint { key: UNSCHEDULABLE_TAINT.into(), value: "".into(), effect: Effect::NoSchedule }
}

pub(super) fn drop_host_ports(spec: &mut PodSpec) {
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        container.host_ports = Box::default();
    }
}

impl Search<'_> {
    pub(super) fn tolerations(&self) -> Vec<Hint> {
        let taints = self.forbidding_taints();
        if taints.is_empty() {
            return Vec::new();
        }
        let tolerations = &self.pod.spec.tolerations;
        let reach = self.within_reach(&[PodField::Tolerations]).into_iter();
        let reach: Vec<(Row, Option<&Taint>)> =
            reach.map(|row| (row, find_forbidding(self.node(row).taints(), tolerations))).collect();
        let hints = taints.into_iter().filter_map(|taint| {
            // Nodes that another taint closes stay closed.
            let toleration = toleration_of(taint);
            let may_open = |first: &Option<&Taint>| first.is_none_or(|first| toleration.tolerates(first));
            let rows = reach.iter().filter(|(_, first)| may_open(first)).map(|(row, _)| *row);
            let rows = self.feasible_with(&rows.collect::<Vec<Row>>(), |spec| tolerate(spec, [taint]));
            self.hint(Remedy::toleration(taint), &rows, |opens| {
                format!("a toleration for {} opens {}", taint_text(taint), nodes(opens))
            })
        });
        hints.collect()
    }

    /// The first taint of each node that nothing but taints keeps the pod from; of too many, those of most nodes.
    fn forbidding_taints(&self) -> Vec<&Taint> {
        let mut counts: Vec<(&Taint, usize)> = Vec::new();
        let mut places: FxHashMap<&Taint, usize> = FxHashMap::default();
        for row in self.blocked_only_by(&["TaintToleration"]) {
            if let Some(taint) = find_forbidding(self.node(row).taints(), &self.pod.spec.tolerations) {
                let place = *places.entry(taint).or_insert(counts.len());
                if place == counts.len() {
                    counts.push((taint, 0));
                }
                counts[place].1 += 1;
            }
        }
        if counts.len() > TAINTS_TRIED_MAX {
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            counts.truncate(TAINTS_TRIED_MAX);
        }
        counts.into_iter().map(|(taint, _)| taint).collect()
    }

    /// Nodes that are fine but for being cordoned, which most often shows as a taint too.
    pub(super) fn cordoned(&self) -> Option<Hint> {
        let mut rows = self.blocked_only_by(&["NodeUnschedulable", "TaintToleration"]);
        rows.retain(|row| self.node(*row).is_unschedulable());
        if rows.is_empty() {
            return None;
        }
        let rows = self.feasible_with(&rows, |spec| tolerate(spec, [&cordon()]));
        let node = self.node(*rows.first()?).name();
        self.hint(Remedy::Uncordon { node: node.to_string() }, &rows, |opens| match opens {
            1 => format!("{node} is cordoned, and would do"),
            opens => format!("{opens} nodes are cordoned, and would do"),
        })
    }

    pub(super) fn node_selection(&self) -> Vec<Hint> {
        let spec = &self.pod.spec;
        let mut hints = Vec::new();
        for (key, value) in spec.node_selector.iter().flat_map(Labels::iter) {
            let rows = self.opened(&[PodField::NodeSelector], |spec| {
                let entries = spec.node_selector.take().unwrap_or_default();
                spec.node_selector = Some(entries.iter().filter(|(other, _)| *other != key).collect());
            });
            let remedy = Remedy::DropNodeSelector { key: key.to_owned(), value: value.to_owned() };
            hints.extend(self.hint(remedy, &rows, |opens| {
                let opens = nodes(opens);
                format!("without nodeSelector {key}={value}, or with that label on them, {opens} would do")
            }));
        }
        if spec.node_affinity.required.is_some() {
            let rows = self.opened(&[PodField::NodeAffinity], |spec| spec.node_affinity.required = None);
            hints.extend(self.hint(Remedy::DropNodeAffinity, &rows, |opens| {
                format!("without its required node affinity {} would do", nodes(opens))
            }));
        }
        hints
    }

    pub(super) fn other_pods(&self) -> Vec<Hint> {
        let affinity = &self.pod.spec.pod_affinity;
        let mut hints = Vec::new();
        if !affinity.required.is_empty() {
            let rows = self.opened(&[PodField::PodAffinity], |spec| {
                spec.pod_affinity.required = Box::default();
            });
            hints.extend(self.hint(Remedy::DropPodAffinity, &rows, |opens| {
                format!("without its required pod affinity {} would do", nodes(opens))
            }));
        }
        if !affinity.required_anti.is_empty() {
            let rows = self.opened(&[PodField::PodAffinity], |spec| {
                spec.pod_affinity.required_anti = Box::default();
            });
            hints.extend(self.hint(Remedy::DropPodAntiAffinity, &rows, |opens| {
                format!("without its required pod anti-affinity {} would do", nodes(opens))
            }));
        }
        hints
    }

    pub(super) fn skews(&self) -> Vec<Hint> {
        let constraints = self.pod.spec.spread_constraints.iter().enumerate();
        let hard = constraints
            .filter(|(_, constraint)| constraint.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule);
        hard.filter_map(|(index, constraint)| {
            SKEW_STEPS.iter().find_map(|step| {
                let to = constraint.max_skew.saturating_add(*step);
                let rows = self.opened(&[PodField::SpreadConstraints], |spec| {
                    spec.spread_constraints[index].max_skew = to;
                });
                self.hint(Remedy::MaxSkew { constraint: index, to }, &rows, |opens| {
                    let (key, old, opens) = (&constraint.topology_key, constraint.max_skew, nodes(opens));
                    format!("with maxSkew {to} for {key} instead of {old} {opens} would do")
                })
            })
        })
        .collect()
    }

    pub(super) fn host_ports(&self) -> Option<Hint> {
        self.pod.spec.host_ports().next()?;
        let rows = self.opened(&[PodField::HostPorts], drop_host_ports);
        self.hint(Remedy::DropHostPorts, &rows, |opens| {
            format!("without its host ports {} would do", nodes(opens))
        })
    }
}
