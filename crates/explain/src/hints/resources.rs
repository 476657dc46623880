//! What nodes lack for the pod.

use std::borrow::Cow;
use std::collections::BTreeMap;

use supercargo_engine::feasible_among;
use supercargo_framework::Context;
use supercargo_model::cluster::Usage;
use supercargo_model::names::resource;
use supercargo_model::quantity::Format;
use supercargo_model::{NodeRef, PodSpec, Quantity, Row};

use super::Search;
use crate::explanation::Explainer;
use crate::remedy::{Hint, Remedy, resource_list};

/// Amounts of resources, in the scheduler's units, by name and in the order of the names.
pub(super) type Amounts<'a> = Vec<(&'a str, i64)>;

impl Search<'_> {
    /// Nodes that have everything but enough of some resources, grouped by which.
    pub(super) fn resources(&self) -> Vec<Hint> {
        let mut groups: BTreeMap<Vec<&str>, Vec<(Row, Amounts<'_>)>> = BTreeMap::new();
        for row in self.blocked_only_by(&["NodeResourcesFit"]) {
            let Some(missing) = self.shortage(self.node(row)) else { continue };
            groups.entry(names(&missing)).or_default().push((row, missing));
        }
        groups.into_values().filter_map(|nodes| self.resource_hint(&nodes)).collect()
    }

    /// The nodes lack the same resources, each its own amounts.
    fn resource_hint(&self, nodes: &[(Row, Amounts<'_>)]) -> Option<Hint> {
        let (row, missing) = nodes.iter().min_by(|(a_row, a), (b_row, b)| (a, a_row).cmp(&(b, b_row)))?;
        let name = self.node(*row).name().to_string();
        match missing[..] {
            [(resource::PODS, lacking)] => return self.pod_slot(*row, lacking),
            _ if names(missing).contains(&resource::PODS) => return None,
            _ => {}
        }
        let no_more =
            |other: &Amounts<'_>| other.iter().zip(missing).all(|(other, least)| other.1 <= least.1);
        let within = nodes.iter().filter(|(_, other)| no_more(other)).map(|(row, _)| *row);
        let opened = self.feasible_with(&within.collect::<Vec<Row>>(), |spec| request_less(spec, missing));
        if !opened.contains(row) {
            return None;
        }
        let missing = quantities(missing);
        let list = resource_list(&missing);
        let others = nodes.len() - opened.len();
        self.hint(Remedy::Resources { node: name.clone(), missing }, &opened, |opens| {
            let place = if opens == 1 { name } else { format!("any of {opens} nodes") };
            let more = match others {
                0 => String::new(),
                1 => "; 1 other node lacks more of it".to_owned(),
                others => format!("; {others} other nodes lack more of it"),
            };
            format!("{list} on {place}{more}")
        })
    }

    /// A node that takes no more pods, if it takes so many more.
    fn pod_slot(&self, row: Row, lacking: i64) -> Option<Hint> {
        let Explainer { profile, context, .. } = self.explainer;
        let cluster = &context.cluster.with_node_changed(row, |node| {
            node.allowed_pods = node.allowed_pods.saturating_add(lacking);
        });
        let context = Context { cluster, ..context.clone() };
        let opened = feasible_among(profile, context, self.pod, &[row]);
        let node = self.node(row).name().to_string();
        let text = match lacking {
            1 => format!("room for one more pod on {node}"),
            lacking => format!("room for {lacking} more pods on {node}, which has more than it takes"),
        };
        self.hint(Remedy::PodSlot { node, lacking }, &opened, |_| text)
    }

    /// What a node lacks for the pod, in the scheduler's units; none where amounts are too large to add up.
    pub(super) fn shortage(&self, node: NodeRef<'_>) -> Option<Amounts<'_>> {
        let usage = self.usage_awaited(node);
        let (request, has, taken) =
            (&self.pod.spec.requests.resources, node.allocatable(), usage.requested());
        let scalars = request.scalars().map(|(name, amount)| {
            (name, amount, has.scalar(name).unwrap_or(0), taken.scalar(name).unwrap_or(0))
        });
        let storage = (request.ephemeral_storage, has.ephemeral_storage, taken.ephemeral_storage);
        let named = [
            (resource::CPU, request.milli_cpu, has.milli_cpu, taken.milli_cpu),
            (resource::MEMORY, request.memory, has.memory, taken.memory),
            (resource::EPHEMERAL_STORAGE, storage.0, storage.1, storage.2),
            (resource::PODS, 1, node.allowed_pods(), usage.pods().len() as i64),
        ];
        let mut missing = Vec::new();
        let wanted = named.into_iter().chain(scalars).filter(|(_, amount, ..)| *amount > 0);
        for (name, amount, has, taken) in wanted {
            let lacking = amount.checked_sub(has.checked_sub(taken)?)?;
            if lacking > 0 {
                has.checked_add(lacking)?;
                missing.push((name, lacking));
            }
        }
        missing.sort_unstable();
        Some(missing)
    }

    /// The pods on a node, and those that have been promised room on it, as far as the pod has to respect that.
    fn usage_awaited<'n>(&self, node: NodeRef<'n>) -> Cow<'n, Usage> {
        let Context { cluster, .. } = &self.explainer.context;
        let mut usage = Cow::Borrowed(node.usage());
        for other in cluster.nominated_to(node.name()) {
            if other.priority() >= self.pod.priority() && other.uid != self.pod.uid {
                usage.to_mut().add(other.clone());
            }
        }
        usage
    }
}

/// Lowers what the pod requests by what is missing.
pub(super) fn request_less(spec: &mut PodSpec, missing: &Amounts<'_>) {
    for (name, missing) in missing {
        let amount = spec.requests.list.amount(name).saturating_sub(*missing);
        let quantity = if *name == resource::CPU { Quantity::milli(amount) } else { Quantity::from(amount) };
        spec.requests.list.set(&(*name).into(), quantity);
    }
}

pub(super) fn names<'a>(amounts: &Amounts<'a>) -> Vec<&'a str> {
    amounts.iter().map(|(name, _)| *name).collect()
}

/// Amounts as people write them.
pub(super) fn quantities(amounts: &Amounts<'_>) -> BTreeMap<String, String> {
    amounts.iter().map(|(name, amount)| ((*name).to_owned(), quantity(name, *amount))).collect()
}

fn quantity(name: &str, amount: i64) -> String {
    match name {
        resource::CPU => Quantity::milli(amount).to_string(),
        resource::MEMORY | resource::EPHEMERAL_STORAGE => Quantity::new(amount, Format::BinarySi).to_string(),
        name if resource::is_huge_pages(name) => Quantity::new(amount, Format::BinarySi).to_string(),
        _ => amount.to_string(),
    }
}
