//! Whether the cluster has room for a group, all nodes taken together.

use std::collections::BTreeMap;

use supercargo_model::names::resource;
use supercargo_model::resources::amount_of;
use supercargo_model::{NodeRef, Resources, Row, Snapshot, Standing};

use super::pod_group::{Group, PodGroup};

/// What the cluster lacks for a group, by resource: `map[cpu:500m memory:1073741824]`; none if it lacks nothing, or if the group does not
/// say what it needs. As upstream, a node that is overcommitted makes it lack more.
pub(super) fn gap(cluster: &Snapshot, group: &Group<'_>, object: &PodGroup) -> Option<String> {
    let asked = object.spec.min_resources.as_ref()?;
    let mut needed: BTreeMap<&str, i64> =
        asked.iter().map(|(name, quantity)| (&**name, amount_of(name, quantity))).collect();
    needed.insert(resource::PODS, object.spec.min_member);
    let own = requests_by_node(cluster, group);
    for node in cluster.nodes() {
        let own = own.get(&node.row());
        needed.retain(|name, amount| {
            *amount = amount.saturating_sub(free(node, own, name));
            *amount > 0
        });
        if needed.is_empty() {
            return None;
        }
    }
    let lacking: Vec<String> = needed.iter().map(|(name, amount)| words(name, *amount)).collect();
    Some(format!("map[{}]", lacking.join(" ")))
}

fn words(name: &str, amount: i64) -> String {
    if name == resource::CPU { format!("{name}:{amount}m") } else { format!("{name}:{amount}") }
}

/// What members take of the nodes that they are on: it is theirs already.
struct Own {
    requests: Resources,
    pods: i64,
}

fn requests_by_node(cluster: &Snapshot, group: &Group<'_>) -> BTreeMap<Row, Own> {
    let mut by_node: BTreeMap<Row, Own> = BTreeMap::new();
    // Of a group that waits there may be thousands, and each of them is looked at.
    if group.count(Standing::AtPermit) + group.count(Standing::Bound) == 0 {
        return by_node;
    }
    let on_nodes = group.members().filter(|member| member.standing.has_node());
    for (pod, row) in
        on_nodes.filter_map(|member| Some((&member.pod, cluster.row_of(member.node.as_deref()?)?)))
    {
        let own = by_node.entry(row).or_insert_with(|| Own { requests: Resources::default(), pods: 0 });
        own.requests.add(&pod.requests().resources);
        own.pods += 1;
    }
    by_node
}

/// What a node has left of a resource when the group's own pods are left out.
fn free(node: NodeRef<'_>, own: Option<&Own>, name: &str) -> i64 {
    let (has, taken) = (node.allocatable(), node.usage().requested());
    let left = |of: fn(&Resources) -> i64| {
        of(has).wrapping_sub(of(taken)).wrapping_add(own.map_or(0, |own| of(&own.requests)))
    };
    match name {
        resource::CPU => left(|resources| resources.milli_cpu),
        resource::MEMORY => left(|resources| resources.memory),
        resource::EPHEMERAL_STORAGE => left(|resources| resources.ephemeral_storage),
        resource::PODS => {
            let others = node.pods().len() as i64 - own.map_or(0, |own| own.pods);
            node.allowed_pods() - others
        }
        other => match has.scalar(other) {
            None => 0,
            Some(amount) => {
                let own = own.and_then(|own| own.requests.scalar(other)).unwrap_or(0);
                amount.wrapping_sub(taken.scalar(other).unwrap_or(0)).wrapping_add(own)
            }
        },
    }
}
