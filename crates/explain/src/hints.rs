//! What would help a pod that fits nowhere, each tried before it is said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_engine::{Evaluation, FilterWord};
use supercargo_framework::Nomination;
use supercargo_model::names::resource;
use supercargo_model::pod::{PreemptionPolicy, WhenUnsatisfiable};
use supercargo_model::quantity::Format;
use supercargo_model::taints::{Effect, Taint, UNSCHEDULABLE_TAINT, find_forbidding};
use supercargo_model::{NodeRef, Pod, PodSpec, Quantity, Row};

use crate::explanation::Explainer;
use crate::remedy::{Hint, Remedy};
use crate::what_if::{evaluate_with, evaluate_with_priority, taint_text, tolerate};

/// More hints than this help nobody.
const HINTS_MAX: usize = 8;
/// How many nodes a hint names.
const EXAMPLES_MAX: usize = 5;
/// Higher priorities are the system's.
const USER_PRIORITY_MAX: i32 = 1_000_000_000;
/// How far the skew of a constraint is raised to see whether that helps.
const SKEW_STEPS: [i32; 5] = [1, 2, 5, 10, 100];

/// Everything that would help, most nodes opened first.
pub(crate) fn find_hints(
    explainer: &Explainer<'_>,
    pod: &Arc<Pod>,
    thorough: &Evaluation,
    preempts: bool,
) -> Vec<Hint> {
    let search = Search { explainer, pod, thorough };
    let mut hints = Vec::new();
    hints.extend(search.resources());
    hints.extend(search.tolerations());
    hints.extend(search.cordoned());
    hints.extend(search.node_selection());
    hints.extend(search.other_pods());
    hints.extend(search.skews());
    hints.extend(search.host_ports());
    if !preempts {
        hints.extend(search.priority());
    }
    if hints.is_empty() {
        hints.extend(search.several());
    }
    hints.sort_by_key(|hint| std::cmp::Reverse(hint.opens));
    hints.truncate(HINTS_MAX);
    hints
}

/// Amounts of resources by name, in the scheduler's units.
type Amounts = BTreeMap<String, i64>;

struct Search<'a> {
    explainer: &'a Explainer<'a>,
    pod: &'a Arc<Pod>,
    thorough: &'a Evaluation,
}

impl<'a> Search<'a> {
    fn node(&self, row: Row) -> NodeRef<'a> {
        self.explainer.context.cluster.node(row)
    }

    /// The nodes that this plugin alone keeps the pod from.
    fn blocked_only_by(&self, plugin: &str) -> impl Iterator<Item = (Row, &'a FilterWord)> {
        let words = self.thorough.words.iter();
        words.filter_map(move |(row, words)| {
            let mut blockers =
                words.iter().filter(|word| !word.status.is_success() && !word.status.is_skip());
            let first = blockers.next().filter(|word| word.plugin == plugin)?;
            blockers.next().is_none().then_some((*row, first))
        })
    }

    /// Tries a change; a hint if the pod fits then.
    fn try_change(&self, text: String, remedy: Remedy, change: impl FnOnce(&mut PodSpec)) -> Option<Hint> {
        let evaluation = evaluate_with(self.explainer, self.pod, change);
        (!evaluation.feasible.is_empty()).then(|| self.hint(text, remedy, &evaluation.feasible))
    }

    fn hint(&self, text: String, remedy: Remedy, rows: &[Row]) -> Hint {
        let names = rows.iter().take(EXAMPLES_MAX).map(|row| self.node(*row).name().to_string());
        let examples: Vec<String> = names.collect();
        Hint { text, remedy, opens: rows.len(), examples }
    }

    /// Nodes that have everything but enough of some resources, grouped by which.
    fn resources(&self) -> Vec<Hint> {
        let mut groups: BTreeMap<Vec<String>, Vec<(Row, Amounts)>> = BTreeMap::new();
        for (row, _) in self.blocked_only_by("NodeResourcesFit") {
            let Some(missing) = shortage(&self.pod.spec, self.node(row)) else { continue };
            groups.entry(missing.keys().cloned().collect()).or_default().push((row, missing));
        }
        groups.into_values().filter_map(|nodes| self.resource_hint(&nodes)).collect()
    }

    fn resource_hint(&self, nodes: &[(Row, Amounts)]) -> Option<Hint> {
        let needed = |missing: &Amounts| missing.values().copied().collect::<Vec<i64>>();
        let (row, missing) = nodes.iter().min_by_key(|(row, missing)| (needed(missing), *row))?;
        let name = self.node(*row).name().to_string();
        // What pods nominated to the node would take is not part of what is missing.
        if !self.explainer.context.cluster.nominated_to(&name).is_empty() {
            return None;
        }
        if missing.contains_key(resource::PODS) {
            if missing.len() > 1 || !self.explainer.context.cluster.nominated_to(&name).is_empty() {
                return None;
            }
            let text = format!("room for one more pod on {name}");
            return Some(Hint {
                text,
                remedy: Remedy::PodSlot { node: name.clone() },
                opens: 1,
                examples: vec![name],
            });
        }
        let amounts: BTreeMap<String, String> = missing
            .iter()
            .map(|(resource, amount)| (resource.clone(), quantity(resource, *amount)))
            .collect();
        let evaluation = evaluate_with(self.explainer, self.pod, |spec| request_less(spec, missing));
        let feasible: BTreeSet<Row> = evaluation.feasible.into_iter().collect();
        let opened: Vec<Row> =
            nodes.iter().map(|(row, _)| *row).filter(|row| feasible.contains(row)).collect();
        if !opened.contains(row) {
            return None;
        }
        let list: Vec<String> =
            amounts.iter().map(|(resource, amount)| format!("{amount} more {resource}")).collect();
        let place = if opened.len() == 1 { name.clone() } else { format!("any of {} nodes", opened.len()) };
        let more = match nodes.len() - opened.len() {
            0 => String::new(),
            1 => "; 1 other node lacks more of it".to_owned(),
            others => format!("; {others} other nodes lack more of it"),
        };
        let text = format!("{} on {place}{more}", list.join(" and "));
        Some(self.hint(text, Remedy::Resources { node: name, missing: amounts }, &opened))
    }

    fn tolerations(&self) -> Vec<Hint> {
        let mut taints: Vec<&Taint> = Vec::new();
        for (row, _) in self.blocked_only_by("TaintToleration") {
            if let Some(taint) = find_forbidding(self.node(row).taints(), &self.pod.spec.tolerations)
                && !taints.contains(&taint)
            {
                taints.push(taint);
            }
        }
        let hints = taints.into_iter().filter_map(|taint| {
            let remedy = Remedy::toleration(taint);
            let mut hint = self.try_change(String::new(), remedy, |spec| tolerate(spec, taint))?;
            hint.text = format!("a toleration for {} opens {}", taint_text(taint), nodes(hint.opens));
            Some(hint)
        });
        hints.collect()
    }

    fn cordoned(&self) -> Option<Hint> {
        let taint = Taint { key: UNSCHEDULABLE_TAINT.into(), value: "".into(), effect: Effect::NoSchedule };
        let (row, _) = self.blocked_only_by("NodeUnschedulable").next()?;
        let node = self.node(row).name().to_string();
        let remedy = Remedy::Uncordon { node: node.clone() };
        let mut hint = self.try_change(String::new(), remedy, |spec| tolerate(spec, &taint))?;
        hint.text = match hint.opens {
            1 => format!("{node} is cordoned, and would do"),
            opens => format!("{opens} nodes are cordoned, and would do"),
        };
        Some(hint)
    }

    fn node_selection(&self) -> Vec<Hint> {
        let spec = &self.pod.spec;
        let mut hints = Vec::new();
        for (key, value) in spec.node_selector.iter().flat_map(supercargo_model::Labels::iter) {
            let remedy = Remedy::DropNodeSelector { key: key.to_owned(), value: value.to_owned() };
            let hint = self.try_change(String::new(), remedy, |spec| {
                let entries = spec.node_selector.take().unwrap_or_default();
                spec.node_selector = Some(entries.iter().filter(|(other, _)| *other != key).collect());
            });
            hints.extend(hint.map(|mut hint| {
                let opens = nodes(hint.opens);
                hint.text = format!(
                    "without nodeSelector {key}={value}, or with that label on them, {opens} would do"
                );
                hint
            }));
        }
        if spec.node_affinity.required.is_some() {
            let hint = self.try_change(String::new(), Remedy::DropNodeAffinity, |spec| {
                spec.node_affinity.required = None;
            });
            hints.extend(hint.map(|mut hint| {
                hint.text = format!("without its required node affinity {} would do", nodes(hint.opens));
                hint
            }));
        }
        hints
    }

    fn other_pods(&self) -> Vec<Hint> {
        let affinity = &self.pod.spec.pod_affinity;
        let mut hints = Vec::new();
        if !affinity.required.is_empty() {
            let hint = self.try_change(String::new(), Remedy::DropPodAffinity, |spec| {
                spec.pod_affinity.required = Box::default();
            });
            hints.extend(hint.map(|mut hint| {
                hint.text = format!("without its required pod affinity {} would do", nodes(hint.opens));
                hint
            }));
        }
        if !affinity.required_anti.is_empty() {
            let hint = self.try_change(String::new(), Remedy::DropPodAntiAffinity, |spec| {
                spec.pod_affinity.required_anti = Box::default();
            });
            hints.extend(hint.map(|mut hint| {
                hint.text = format!("without its required pod anti-affinity {} would do", nodes(hint.opens));
                hint
            }));
        }
        hints
    }

    fn skews(&self) -> Vec<Hint> {
        let constraints = self.pod.spec.spread_constraints.iter().enumerate();
        let hard = constraints
            .filter(|(_, constraint)| constraint.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule);
        hard.filter_map(|(index, constraint)| {
            SKEW_STEPS.iter().find_map(|step| {
                let to = constraint.max_skew.saturating_add(*step);
                let remedy = Remedy::MaxSkew { constraint: index, to };
                let mut hint = self.try_change(String::new(), remedy, |spec| {
                    spec.spread_constraints[index].max_skew = to;
                })?;
                let (key, opens) = (&constraint.topology_key, nodes(hint.opens));
                hint.text = format!(
                    "with maxSkew {to} for {key} instead of {} {opens} would do",
                    constraint.max_skew
                );
                Some(hint)
            })
        })
        .collect()
    }

    fn host_ports(&self) -> Option<Hint> {
        self.pod.spec.host_ports().next()?;
        let mut hint = self.try_change(String::new(), Remedy::DropHostPorts, |spec| {
            for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
                container.host_ports = Box::default();
            }
        })?;
        hint.text = format!("without its host ports {} would do", nodes(hint.opens));
        Some(hint)
    }

    /// What it could evict if it mattered more.
    fn priority(&self) -> Option<Hint> {
        if self.pod.spec.preemption_policy == PreemptionPolicy::Never {
            return None;
        }
        let cluster = self.explainer.context.cluster;
        let highest = cluster.nodes().flat_map(|node| node.pods()).map(|pod| pod.priority()).max()?;
        let priority = highest.checked_add(1).filter(|priority| *priority > self.pod.priority())?;
        let with_all = evaluate_with_priority(self.explainer, self.pod, priority.min(USER_PRIORITY_MAX));
        let needed = with_all.victims.iter().map(|pod| pod.priority()).max()?.checked_add(1)?;
        let evaluation = evaluate_with_priority(self.explainer, self.pod, needed);
        let Nomination::Node(node) = &evaluation.nomination else { return None };
        let victims: Vec<String> = evaluation.evicted().map(|pod| pod.key()).collect();
        let gain = match victims.len() {
            0 => format!("have the room that pods leaving {node} make"),
            1 => format!("evict 1 pod on {node}"),
            more => format!("evict {more} pods on {node}"),
        };
        let text = format!("with a priority of {needed} or more it could {gain}");
        let row = cluster.row_of(node)?;
        let remedy = Remedy::Priority { at_least: needed, node: node.to_string(), victims };
        Some(self.hint(text, remedy, &[row]))
    }

    /// No one thing helps: what it takes on the node where the fewest plugins stand in the way.
    fn several(&self) -> Option<Hint> {
        let blockers = |words: &[FilterWord]| {
            words.iter().filter(|word| !word.status.is_success() && !word.status.is_skip()).count()
        };
        let (row, words) = self.thorough.words.iter().min_by_key(|(row, words)| (blockers(words), *row))?;
        let node = self.node(*row);
        let missing = shortage(&self.pod.spec, node)?;
        // What pods nominated to the node would take is not part of what is missing.
        let is_awaited = !self.explainer.context.cluster.nominated_to(node.name()).is_empty();
        if missing.contains_key(resource::PODS) || is_awaited {
            return None;
        }
        let mut remedies = Vec::new();
        let mut changed = (*self.pod.spec).clone();
        for word in words.iter().filter(|word| !word.status.is_success() && !word.status.is_skip()) {
            match word.plugin {
                "NodeResourcesFit" => {
                    request_less(&mut changed, &missing);
                    let amounts = missing
                        .iter()
                        .map(|(resource, amount)| (resource.clone(), quantity(resource, *amount)));
                    remedies.push(Remedy::Resources {
                        node: node.name().to_string(),
                        missing: amounts.collect(),
                    });
                }
                "TaintToleration" | "NodeUnschedulable" => {
                    if node.is_unschedulable() && word.plugin == "NodeUnschedulable" {
                        let key = UNSCHEDULABLE_TAINT.into();
                        tolerate(&mut changed, &Taint { key, value: "".into(), effect: Effect::NoSchedule });
                        remedies.push(Remedy::Uncordon { node: node.name().to_string() });
                    }
                    while let Some(taint) = find_forbidding(node.taints(), &changed.tolerations).cloned() {
                        tolerate(&mut changed, &taint);
                        remedies.push(Remedy::toleration(&taint));
                    }
                }
                "NodeAffinity" => {
                    let selector = changed.node_selector.take().unwrap_or_default();
                    remedies.extend(selector.iter().map(|(key, value)| Remedy::DropNodeSelector {
                        key: key.to_owned(),
                        value: value.to_owned(),
                    }));
                    if changed.node_affinity.required.take().is_some() {
                        remedies.push(Remedy::DropNodeAffinity);
                    }
                }
                "InterPodAffinity" => {
                    if !std::mem::take(&mut changed.pod_affinity.required).is_empty() {
                        remedies.push(Remedy::DropPodAffinity);
                    }
                    if !std::mem::take(&mut changed.pod_affinity.required_anti).is_empty() {
                        remedies.push(Remedy::DropPodAntiAffinity);
                    }
                }
                _ => return None,
            }
        }
        let evaluation = evaluate_with(self.explainer, self.pod, |spec| *spec = changed);
        if !evaluation.feasible.contains(row) {
            return None;
        }
        let list: Vec<String> = remedies.iter().map(Remedy::describe).collect();
        let text = format!("on {}, which is closest: {}", node.name(), list.join(", and "));
        Some(self.hint(text, Remedy::Several { node: node.name().to_string(), remedies }, &[*row]))
    }
}

/// What a node lacks for the pod, in the scheduler's units; none where amounts are too large to add up.
fn shortage(spec: &PodSpec, node: NodeRef<'_>) -> Option<Amounts> {
    let (request, has, taken) = (&spec.requests.resources, node.allocatable(), node.usage().requested());
    let scalars = request
        .scalars()
        .map(|(name, amount)| (name, amount, has.scalar(name).unwrap_or(0), taken.scalar(name).unwrap_or(0)));
    let named = [
        (resource::CPU, request.milli_cpu, has.milli_cpu, taken.milli_cpu),
        (resource::MEMORY, request.memory, has.memory, taken.memory),
        (
            resource::EPHEMERAL_STORAGE,
            request.ephemeral_storage,
            has.ephemeral_storage,
            taken.ephemeral_storage,
        ),
        (resource::PODS, 1, node.allowed_pods(), node.pods().len() as i64),
    ];
    let mut missing = BTreeMap::new();
    for (name, amount, has, taken) in named.into_iter().chain(scalars).filter(|(_, amount, ..)| *amount > 0) {
        let lacking = amount.checked_sub(has.checked_sub(taken)?)?;
        if lacking > 0 {
            has.checked_add(lacking)?;
            missing.insert(name.to_owned(), lacking);
        }
    }
    Some(missing)
}

/// Lowers what the pod requests by what is missing.
fn request_less(spec: &mut PodSpec, missing: &Amounts) {
    for (name, missing) in missing {
        let amount = spec.requests.list.amount(name).saturating_sub(*missing);
        let quantity = if name == resource::CPU { Quantity::milli(amount) } else { Quantity::from(amount) };
        spec.requests.list.set(&name.as_str().into(), quantity);
    }
}

/// An amount as people write it.
fn quantity(name: &str, amount: i64) -> String {
    match name {
        resource::CPU => Quantity::milli(amount).to_string(),
        resource::MEMORY | resource::EPHEMERAL_STORAGE => Quantity::new(amount, Format::BinarySi).to_string(),
        name if resource::is_huge_pages(name) => Quantity::new(amount, Format::BinarySi).to_string(),
        _ => amount.to_string(),
    }
}

fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}
