//! What is left of a pod's spec when only certain fields are looked at: pods that agree in it are of one class.

use supercargo_framework::{FieldSet, PodField};
use supercargo_model::PodSpec;
use supercargo_model::pod::Container;

/// A spec with the fields that are read; all others have their defaults.
pub(super) fn project(spec: &PodSpec, fields: FieldSet<PodField>) -> PodSpec {
    let reads = |field| fields.contains(field);
    let mut kept = PodSpec { scheduler_name: spec.scheduler_name.clone(), ..PodSpec::default() };
    if reads(PodField::Priority) {
        kept.priority = spec.priority;
    }
    if reads(PodField::PreemptionPolicy) {
        kept.preemption_policy = spec.preemption_policy;
    }
    if reads(PodField::SchedulingGates) {
        kept.scheduling_gates = spec.scheduling_gates.clone();
    }
    if reads(PodField::Tolerations) {
        kept.tolerations = spec.tolerations.clone();
    }
    if reads(PodField::NodeSelector) {
        kept.node_selector = spec.node_selector.clone();
    }
    if reads(PodField::NodeAffinity) {
        kept.node_affinity = spec.node_affinity.clone();
    }
    if reads(PodField::PodAffinity) {
        kept.pod_affinity = spec.pod_affinity.clone();
    }
    if reads(PodField::SpreadConstraints) {
        kept.spread_constraints = spec.spread_constraints.clone();
    }
    if reads(PodField::Requests) {
        kept.requests = spec.requests.clone();
        kept.fit_score_requests = spec.fit_score_requests.clone();
    }
    if reads(PodField::Volumes) {
        kept.volumes = spec.volumes.clone();
    }
    if reads(PodField::ResourceClaims) {
        kept.resource_claims = spec.resource_claims.clone();
    }
    if reads(PodField::Features) {
        (kept.host_network, kept.host_users) = (spec.host_network, spec.host_users);
    }
    kept.containers = project_containers(&spec.containers, fields);
    kept.init_containers = project_containers(&spec.init_containers, fields);
    kept
}

fn project_containers(containers: &[Container], fields: FieldSet<PodField>) -> Box<[Container]> {
    let reads = |field| fields.contains(field);
    let kept = |container: &Container| Container {
        name: Box::default(),
        image: if reads(PodField::Images) { container.image.clone() } else { Box::default() },
        resources: if reads(PodField::Requests) { container.resources.clone() } else { Default::default() },
        is_sidecar: container.is_sidecar,
        host_ports: if reads(PodField::HostPorts) { container.host_ports.clone() } else { Box::default() },
        may_restart_all_containers: container.may_restart_all_containers,
    };
    containers.iter().map(kept).collect()
}
