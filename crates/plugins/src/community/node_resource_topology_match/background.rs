//! What people should know who ask why a node is rejected: what is left in its zones.

use supercargo_framework::Context;
use supercargo_model::names::resource;
use supercargo_model::{NodeRef, Pod, Quantity};

use super::fitting::{Misfit, align};
use super::odd::ZONES_THAT_COUNT;
use super::{NodeResourceTopologyMatch, View};

/// What no zone of a node has, as `no NUMA zone of n3 has 4 cores left: 3 cores at most`; none if something else is wrong.
pub(super) fn background(
    plugin: &NodeResourceTopologyMatch,
    context: &Context<'_>,
    pod: &Pod,
    node: NodeRef<'_>,
) -> Option<String> {
    let name = node.name();
    let topology = match plugin.view(context, node) {
        View::Known(topology) => topology,
        View::Stale => {
            return Some(format!("the topology of {name} does not have all pods that were given to it yet"));
        }
        View::Unknown => return None,
    };
    let Misfit { wanted, zones, .. } = align(&pod.spec, topology, node.allocatable(), context.fixes).err()?;
    if zones.is_empty() {
        return Some(format!("the NodeResourceTopology {name} has no zone that counts: {ZONES_THAT_COUNT}"));
    }
    let mut together = Vec::new();
    for (resource, quantity) in wanted.iter().filter(|(_, quantity)| !quantity.is_zero()) {
        let Some(most) = zones.iter().filter_map(|zone| zone.available(resource)).max() else { continue };
        let asked = amount(resource, quantity);
        if most < quantity {
            return Some(format!(
                "no NUMA zone of {name} has {asked} left: {} at most",
                amount(resource, most)
            ));
        }
        together.push(asked);
    }
    (together.len() > 1)
        .then(|| format!("no NUMA zone of {name} has {} left together", together.join(" and ")))
}

/// An amount as people say it: `4 cores`, `2Gi memory`.
fn amount(name: &str, quantity: &Quantity) -> String {
    match name {
        resource::CPU if quantity.milli_value() == 1_000 => "1 core".to_owned(),
        resource::CPU if quantity.milli_value() % 1_000 == 0 => format!("{quantity} cores"),
        _ => format!("{quantity} {name}"),
    }
}
