//! Which volumes the pod would get on a node.

use supercargo_framework::{Code, Cycle, Status};
use supercargo_model::kinds::{CSINode, PersistentVolume};
use supercargo_model::{LabelLookup, NodeRef, SelectableNode};

use super::binding::{PlannedBinding, PlannedBindings};
use super::claims::{BoundVolume, MigratedVolume, PodClaims, Provisioning, WaitingClaim};

const WRONG_NODE: &str = "node(s) didn't match PersistentVolume's node affinity";
const NOTHING_TO_BIND: &str = "node(s) didn't find available persistent volumes to bind";
const NOT_ENOUGH_ROOM: &str = "node(s) did not have enough free storage";
const NO_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// What is to be bound and made if the pod runs on the node, or why it cannot.
pub(super) fn find_volumes(
    claims: &PodClaims,
    cycle: &Cycle<'_>,
    node: NodeRef<'_>,
) -> Result<PlannedBindings, Status> {
    let bound = check_bound(&claims.bound, cycle, node).map_err(Status::error)?;
    let waiting = find_for_waiting(&claims.waiting, node).map_err(Status::error)?;
    // People know this order of reasons.
    let conflicts = [
        (bound == Some(Conflict::WrongNode), WRONG_NODE),
        (matches!(waiting, Err(Conflict::NothingToBind)), NOTHING_TO_BIND),
        (matches!(waiting, Err(Conflict::NotEnoughRoom)), NOT_ENOUGH_ROOM),
        (bound == Some(Conflict::NoVolume), NO_VOLUME),
    ];
    match waiting {
        Ok(planned) if bound.is_none() => Ok(planned),
        _ => {
            let reasons = conflicts.into_iter().filter(|(found, _)| *found).map(|(_, reason)| reason.into());
            Err(Status::new(Code::UnschedulableAndUnresolvable, reasons))
        }
    }
}

/// Whether the node reaches a volume by what the volume itself says.
pub(super) fn reaches(node: NodeRef<'_>, volume: &PersistentVolume) -> bool {
    let affinity = volume.spec.node_affinity.as_ref();
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|nodes| nodes.selector.matches(&Nameless(node)))
}

/// Whether the node reaches a volume, by the words of the CSI driver where the node hands the volume to one.
pub(super) fn reaches_migrated(
    node: NodeRef<'_>,
    csi_node: Option<&CSINode>,
    volume: &PersistentVolume,
    migrated: Option<&MigratedVolume>,
) -> Result<bool, String> {
    match migrated.filter(|migrated| migrated.plugin.is_migrated_on(csi_node)) {
        None => Ok(reaches(node, volume)),
        Some(migrated) => {
            let required = migrated.required.as_ref();
            let required = required.map_err(|error| format!("could not translate pv: {error}"))?;
            Ok(required.as_ref().is_none_or(|required| required.matches(&Nameless(node))))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conflict {
    WrongNode,
    NoVolume,
    NothingToBind,
    NotEnoughRoom,
}

/// A node that does not give its name: upstream asks a volume's node affinity about labels only, so that `matchFields`
/// never exclude a node.
struct Nameless<'a>(NodeRef<'a>);

impl LabelLookup for Nameless<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
}

impl SelectableNode for Nameless<'_> {
    fn name(&self) -> &str {
        ""
    }
}

/// The first thing that is wrong with the volumes of bound claims.
fn check_bound(
    volumes: &[Option<BoundVolume>],
    cycle: &Cycle<'_>,
    node: NodeRef<'_>,
) -> Result<Option<Conflict>, String> {
    if volumes.is_empty() {
        return Ok(None);
    }
    let csi_node: Option<&CSINode> = cycle.object_of(node);
    for volume in volumes {
        let Some(BoundVolume { volume, migrated }) = volume else { return Ok(Some(Conflict::NoVolume)) };
        if !reaches_migrated(node, csi_node, volume, migrated.as_ref())? {
            return Ok(Some(Conflict::WrongNode));
        }
    }
    Ok(None)
}

fn find_for_waiting(
    claims: &[WaitingClaim],
    node: NodeRef<'_>,
) -> Result<Result<PlannedBindings, Conflict>, String> {
    let elsewhere =
        |claim: &WaitingClaim| claim.selected_node.as_deref().is_some_and(|name| name != &**node.name());
    if claims.iter().any(elsewhere) {
        return Ok(Err(Conflict::NothingToBind));
    }
    let (mut to_make, mut to_match): (Vec<_>, Vec<_>) =
        claims.iter().partition(|claim| claim.selected_node.is_some());
    // Small claims first, so that they do not take volumes that only larger ones need.
    to_match.sort_by_cached_key(|claim| claim.claim.request().cloned().unwrap_or_default());
    let mut bindings: Vec<PlannedBinding> = Vec::new();
    for claim in to_match {
        let candidates = claim.candidates.as_ref().map_err(Clone::clone)?;
        let taken = |volume: &PersistentVolume| {
            bindings.iter().any(|binding| binding.volume.metadata.name == volume.metadata.name)
        };
        match candidates.choose(|volume| reaches(node, volume), taken) {
            Some(volume) => bindings.push(PlannedBinding::new(claim.claim.clone(), volume.clone())),
            None => to_make.push(claim),
        }
    }
    if let Some(conflict) = to_make.iter().find_map(|claim| claim.provisioning.conflict_on(node)) {
        return Ok(Err(conflict));
    }
    let provisions = to_make.into_iter().map(|claim| claim.claim.clone()).collect();
    Ok(Ok(PlannedBindings::new(bindings, provisions)))
}

impl Provisioning {
    /// Why no volume can be made for the node, if so.
    fn conflict_on(&self, node: NodeRef<'_>) -> Option<Conflict> {
        let Provisioning::Possible { topologies, capacities } = self else {
            return Some(Conflict::NothingToBind);
        };
        if topologies.as_ref().is_some_and(|terms| !terms.iter().any(|term| term.matches(&node))) {
            return Some(Conflict::NothingToBind);
        }
        let mut accessible = capacities.iter().flatten().map(|capacity| &capacity.node_topology);
        let has_room = accessible.any(|nodes| nodes.as_ref().is_ok_and(|nodes| nodes.matches(&node)));
        (capacities.is_some() && !has_room).then_some(Conflict::NotEnoughRoom)
    }
}
