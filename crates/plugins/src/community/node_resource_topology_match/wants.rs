//! What pods ask for, as far as NUMA zones go.

use std::borrow::Cow;
use std::sync::Arc;

use supercargo_framework::Fixes;
use supercargo_model::names::resource;
use supercargo_model::pod::{Container, QosClass};
use supercargo_model::{PodSpec, Quantity, ResourceList};

use super::topology::NodeResourceTopology;
use crate::community::plain_requests;

/// What names contain of resources that Kubernetes counts itself.
const NATIVE_DOMAIN: &str = "kubernetes.io/";

/// Whether Kubernetes counts a resource itself, and no device plugin.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE_DOMAIN)
}

/// Whether a resource is promised to guaranteed pods only: others take of it what they find, in any zone.
pub(super) fn is_affine(name: &str) -> bool {
    matches!(name, resource::CPU | resource::MEMORY) || resource::is_huge_pages(name)
}

/// Whether a resource may well be no matter of zones.
pub(super) fn is_host_level(name: &str) -> bool {
    matches!(name, resource::EPHEMERAL_STORAGE | "storage") || !is_native(name)
}

/// Whether all is promised to a pod that it may use.
pub(super) fn is_guaranteed(spec: &PodSpec) -> bool {
    spec.qos_class == QosClass::Guaranteed
}

/// Whether zones can matter to a pod at all: it asks for something that is promised to it, or for a device.
pub(super) fn asks_for_zones(spec: &PodSpec) -> bool {
    let is_device = |(name, _): (&Arc<str>, &Quantity)| !is_native(name);
    spec.qos_class != QosClass::BestEffort
        || all_containers(spec).any(|container| container.resources.requests.iter().any(is_device))
}

/// The init containers, and then the others.
pub(super) fn all_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().chain(&spec.containers)
}

/// What a pod asks for as a whole: the sum of its containers, raised to each init container, and the overhead. As upstream, sidecars count as
/// init containers that end.
pub(super) fn pod_requests(spec: &PodSpec, fixes: Fixes) -> ResourceList {
    if !fixes.numa_sidecars {
        return plain_requests(spec);
    }
    // Each init container runs beside the sidecars before it, and the others beside all of them.
    let (mut sidecars, mut most) = (ResourceList::default(), ResourceList::default());
    for container in &spec.init_containers {
        let requests = &container.resources.requests;
        if container.is_sidecar {
            sidecars.add(requests);
            most.raise_to(&sidecars);
        } else {
            let mut together = sidecars.clone();
            together.add(requests);
            most.raise_to(&together);
        }
    }
    spec.containers.iter().for_each(|container| sidecars.add(&container.resources.requests));
    most.raise_to(&sidecars);
    most.add(&spec.overhead);
    most
}

/// Whether a container holds a resource for itself alone, so that it comes from a zone that is known.
pub(super) fn is_exclusive(
    is_guaranteed: bool,
    name: &str,
    quantity: &Quantity,
    topology: &NodeResourceTopology,
) -> bool {
    if !is_native(name) {
        return topology.lists(name);
    }
    let is_some = !quantity.is_zero() && !quantity.is_negative();
    let is_whole = name != resource::CPU || quantity.milli_value() % 1_000 == 0;
    is_guaranteed && is_affine(name) && is_some && is_whole
}

/// Whether a container holds anything for itself alone.
pub(super) fn is_pinned(is_guaranteed: bool, container: &Container, topology: &NodeResourceTopology) -> bool {
    let mut requests = container.resources.requests.iter();
    requests.any(|(name, quantity)| is_exclusive(is_guaranteed, name, quantity, topology))
}

/// The containers of a pod that go on running: its own, and sidecars.
pub(super) fn lasting_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.containers.iter().chain(spec.init_containers.iter().filter(|container| container.is_sidecar))
}

/// Whether a pod holds anything for itself alone.
pub(super) fn holds_exclusively(spec: &PodSpec, topology: &NodeResourceTopology) -> bool {
    let is_guaranteed = is_guaranteed(spec);
    lasting_containers(spec).any(|container| is_pinned(is_guaranteed, container, topology))
}

/// What zones are asked for: all of it, or, if that is fixed, without what no zone reports.
pub(super) fn of_zones<'a>(
    requests: &'a ResourceList,
    topology: &NodeResourceTopology,
    fixes: Fixes,
) -> Cow<'a, ResourceList> {
    if !fixes.unreported_numa_resources || requests.iter().all(|(name, _)| topology.lists(name)) {
        return Cow::Borrowed(requests);
    }
    let reported = requests.iter().filter(|(name, _)| topology.lists(name));
    Cow::Owned(reported.map(|(name, quantity)| (name.clone(), quantity.clone())).collect())
}
