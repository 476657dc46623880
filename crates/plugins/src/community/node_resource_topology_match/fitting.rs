//! Whether what a pod asks for can come from one NUMA zone.

use std::borrow::Cow;

use supercargo_framework::Fixes;
use supercargo_model::names::resource;
use supercargo_model::pod::Container;
use supercargo_model::{PodSpec, ResourceList, Resources};

use super::topology::{NodeResourceTopology, Policy, Scope, Zone};
use super::wants::{is_affine, is_guaranteed, is_host_level, of_zones, pod_requests};

/// What people read where a pod, or one of its containers, would be spread over zones.
pub(super) const CANNOT_ALIGN_POD: &str = "cannot align pod";
pub(super) const CANNOT_ALIGN_CONTAINER: &str = "cannot align container";
pub(super) const CANNOT_ALIGN_INIT_CONTAINER: &str = "cannot align init container";
pub(super) const CANNOT_ALIGN_SIDECAR: &str = "cannot align sidecar container";

/// What does not fit, and where.
pub(super) struct Misfit<'a> {
    /// What people read.
    pub(super) reason: &'static str,
    /// What was asked for.
    pub(super) wanted: Cow<'a, ResourceList>,
    /// The zones, without what other containers of the pod have taken.
    pub(super) zones: Cow<'a, [Zone]>,
}

/// Whether the kubelet of a node would take a pod, by the node's topology.
pub(super) fn align<'a>(
    spec: &'a PodSpec,
    topology: &'a NodeResourceTopology,
    allocatable: &'a Resources,
    fixes: Fixes,
) -> Result<(), Misfit<'a>> {
    // The kubelet takes a pod under any other policy, or upstream does not know.
    if topology.manager.policy != Policy::SingleNumaNode {
        return Ok(());
    }
    let mut search = Search {
        topology,
        zones: Cow::Borrowed(&topology.zones),
        allocatable,
        is_guaranteed: is_guaranteed(spec),
        fixes,
    };
    match topology.manager.scope {
        Scope::Pod => {
            let requests = pod_requests(spec, fixes);
            match search.find(&requests) {
                Some(_) => Ok(()),
                None => Err(search.misfit(CANNOT_ALIGN_POD, Cow::Owned(requests))),
            }
        }
        Scope::Container => search.containers(spec),
    }
}

/// The zone that a request was given, by its index; none if it is no matter of zones.
type ZoneIndex = Option<usize>;

struct Search<'a> {
    topology: &'a NodeResourceTopology,
    /// The zones, without what containers have taken so far.
    zones: Cow<'a, [Zone]>,
    allocatable: &'a Resources,
    is_guaranteed: bool,
    fixes: Fixes,
}

impl<'a> Search<'a> {
    fn containers(&mut self, spec: &'a PodSpec) -> Result<(), Misfit<'a>> {
        for container in &spec.init_containers {
            let problem =
                if container.is_sidecar { CANNOT_ALIGN_SIDECAR } else { CANNOT_ALIGN_INIT_CONTAINER };
            let place = self.find_for(container, problem)?;
            // As upstream, a sidecar leaves what it takes to the containers beside it.
            if container.is_sidecar && self.fixes.numa_sidecars {
                self.take(container, place);
            }
        }
        for (index, container) in spec.containers.iter().enumerate() {
            let place = self.find_for(container, CANNOT_ALIGN_CONTAINER)?;
            if index + 1 < spec.containers.len() {
                self.take(container, place);
            }
        }
        Ok(())
    }

    fn find_for(&mut self, container: &'a Container, problem: &'static str) -> Result<ZoneIndex, Misfit<'a>> {
        let requests = &container.resources.requests;
        self.find(requests).ok_or_else(|| self.misfit(problem, Cow::Borrowed(requests)))
    }

    fn misfit(&self, reason: &'static str, wanted: Cow<'a, ResourceList>) -> Misfit<'a> {
        Misfit { reason, wanted, zones: self.zones.clone() }
    }

    /// The first zone that has everything; none if there is no such zone.
    fn find(&self, requests: &ResourceList) -> Option<ZoneIndex> {
        let requests = of_zones(requests, self.topology, self.fixes);
        let mut is_constrained = false;
        for (name, _) in requests.iter().filter(|(_, quantity)| !quantity.is_zero()) {
            if !self.is_on_node(name) {
                return None;
            }
            let is_listed = self.topology.lists(name);
            if !is_listed && !is_host_level(name) {
                return None;
            }
            is_constrained |= is_listed;
        }
        if !is_constrained {
            return Some(None);
        }
        self.zones.iter().position(|zone| self.fits(&requests, zone)).map(Some)
    }

    fn fits(&self, requests: &ResourceList, zone: &Zone) -> bool {
        let wanted =
            requests.iter().filter(|(name, quantity)| !quantity.is_zero() && self.topology.lists(name));
        wanted.into_iter().all(|(name, quantity)| {
            let is_free = !self.is_guaranteed && is_affine(name);
            zone.available(name).is_some_and(|available| is_free || *available >= *quantity)
        })
    }

    /// Takes what a container asks for out of its zone.
    fn take(&mut self, container: &Container, place: ZoneIndex) {
        let Some(place) = place else { return };
        let is_guaranteed = self.is_guaranteed;
        let zone = &mut self.zones.to_mut()[place];
        for (name, quantity) in container.resources.requests.iter() {
            if is_guaranteed || !is_affine(name) {
                zone.take(name, quantity);
            }
        }
    }

    /// Whether the node has a resource; it always has those that every node has.
    fn is_on_node(&self, name: &str) -> bool {
        matches!(name, resource::CPU | resource::MEMORY | resource::PODS | resource::EPHEMERAL_STORAGE)
            || self.allocatable.scalar(name).is_some()
    }
}

#[cfg(test)]
mod tests;
