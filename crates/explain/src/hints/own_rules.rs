//! Rules of the pod's own that could be relaxed.

use std::cmp::Reverse;
use std::hash::Hash;

use rustc_hash::FxHashMap;
use supercargo_framework::PodField;
use supercargo_model::pod::WhenUnsatisfiable;
use supercargo_model::taints::{Effect, Taint, UNSCHEDULABLE_TAINT, find_forbidding};
use supercargo_model::{LabelLookup, Labels, PodSpec, Row};

use super::{HINTS_MAX, Search};
use crate::remedy::{Hint, Remedy};
use crate::text::nodes;
use crate::what_if::{taint_text, tolerate, toleration_of};

/// How far the skew of a constraint is raised to see whether that helps.
const SKEW_STEPS: [i32; 5] = [1, 2, 5, 10, 100];

/// So many tolerations, or entries of a selector, are tried: twice as many as there are hints.
const TRIED_MAX: usize = 2 * HINTS_MAX;

/// What of a selector a node does not match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mismatch<'a> {
    Nothing,
    Only((&'a str, &'a str)),
    Several,
}

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

    /// The first taint of each node that nothing but taints keeps the pod from.
    fn forbidding_taints(&self) -> Vec<&Taint> {
        let rows = self.blocked_only_by(&["TaintToleration"]).into_iter();
        let tolerations = &self.pod.spec.tolerations;
        most_frequent(rows.filter_map(|row| find_forbidding(self.node(row).taints(), tolerations)))
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
        let reach = self.selector_mismatches();
        let alone = reach.iter().filter_map(|(_, mismatch)| match mismatch {
            Mismatch::Only(entry) => Some(*entry),
            Mismatch::Nothing | Mismatch::Several => None,
        });
        // Where the selector is not what stands in the way, any entry may help.
        let any = reach.iter().any(|(_, mismatch)| *mismatch == Mismatch::Nothing);
        let entries = spec.node_selector.iter().filter(|_| any).flat_map(Labels::iter);
        let mut tried = most_frequent(alone.chain(entries));
        tried.sort_unstable();
        for (key, value) in tried {
            let may_open = |mismatch: &Mismatch<'_>| match mismatch {
                Mismatch::Nothing => true,
                Mismatch::Only(entry) => *entry == (key, value),
                Mismatch::Several => false,
            };
            let rows = reach.iter().filter(|(_, mismatch)| may_open(mismatch)).map(|(row, _)| *row);
            let rows = self.feasible_with(&rows.collect::<Vec<Row>>(), |spec| {
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

    /// What of the pod's selector keeps it from the nodes that another selector may open.
    fn selector_mismatches(&self) -> Vec<(Row, Mismatch<'_>)> {
        let Some(selector) = &self.pod.spec.node_selector else { return Vec::new() };
        let is_enforced = self.explainer.profile.filter.iter().any(|named| named.name == "NodeAffinity");
        let mismatch = |row: Row| {
            let node = self.node(row);
            let mut missing = selector.iter().filter(|(key, value)| node.label(key) != Some(*value));
            match (missing.next().filter(|_| is_enforced), missing.next()) {
                (None, _) => Mismatch::Nothing,
                (Some(entry), None) => Mismatch::Only(entry),
                (Some(_), Some(_)) => Mismatch::Several,
            }
        };
        let reach = self.within_reach(&[PodField::NodeSelector]).into_iter();
        reach.map(|row| (row, mismatch(row))).collect()
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

/// Each of the things once, in the order in which they first come; of too many, those that come most often.
fn most_frequent<T: Copy + Eq + Hash>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    let mut places: FxHashMap<T, usize> = FxHashMap::default();
    for thing in things {
        let place = *places.entry(thing).or_insert(counts.len());
        if place == counts.len() {
            counts.push((thing, 0));
        }
        counts[place].1 += 1;
    }
    if counts.len() > TRIED_MAX {
        counts.sort_by_key(|(_, count)| Reverse(*count));
        counts.truncate(TRIED_MAX);
    }
    counts.into_iter().map(|(thing, _)| thing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_most_frequent_are_tried() {
        assert_eq!(most_frequent([3, 1, 3, 2, 1].into_iter()), [3, 1, 2]);
        let frequent = most_frequent((0..100).chain([70, 50, 50]));
        assert_eq!(frequent.len(), TRIED_MAX);
        assert_eq!(frequent[..4], [50, 70, 0, 1]);
    }
}
