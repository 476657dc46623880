//! What is left of a pod's spec when only certain fields are looked at: pods that agree in it are of one class.

use supercargo_framework::{FieldSet, PodField};
use supercargo_model::PodSpec;
use supercargo_model::pod::{Container, Volume, VolumeSource};

/// A spec with the fields that are read; all others have their defaults. Every field is named, so that a new one cannot be
/// forgotten: pods that differ in it would be of one class.
pub(super) fn project(spec: &PodSpec, fields: FieldSet<PodField>) -> PodSpec {
    let PodSpec {
        scheduler_name,
        priority,
        priority_class_name,
        preemption_policy,
        scheduling_gates,
        tolerations,
        node_selector,
        node_affinity,
        pod_affinity,
        spread_constraints,
        requests,
        differing_plain_requests,
        whole_resources,
        overhead,
        qos_class,
        fit_score_requests,
        containers,
        init_containers,
        volumes,
        resource_claims,
        seccomp_profile,
        host_network,
        host_users,
    } = spec;
    PodSpec {
        scheduler_name: scheduler_name.clone(),
        priority: kept(fields, PodField::Priority, priority),
        priority_class_name: kept(fields, PodField::PriorityClass, priority_class_name),
        preemption_policy: kept(fields, PodField::PreemptionPolicy, preemption_policy),
        scheduling_gates: kept(fields, PodField::SchedulingGates, scheduling_gates),
        tolerations: kept(fields, PodField::Tolerations, tolerations),
        node_selector: kept(fields, PodField::NodeSelector, node_selector),
        node_affinity: kept(fields, PodField::NodeAffinity, node_affinity),
        pod_affinity: kept(fields, PodField::PodAffinity, pod_affinity),
        spread_constraints: kept(fields, PodField::SpreadConstraints, spread_constraints),
        requests: kept(fields, PodField::Requests, requests),
        differing_plain_requests: kept(fields, PodField::Requests, differing_plain_requests),
        whole_resources: kept(fields, PodField::Requests, whole_resources),
        overhead: kept(fields, PodField::Requests, overhead),
        qos_class: kept(fields, PodField::Requests, qos_class),
        fit_score_requests: kept(fields, PodField::Requests, fit_score_requests),
        containers: project_containers(containers, fields),
        init_containers: project_containers(init_containers, fields),
        volumes: project_volumes(volumes, fields),
        resource_claims: kept(fields, PodField::ResourceClaims, resource_claims),
        seccomp_profile: kept(fields, PodField::SeccompProfiles, seccomp_profile),
        host_network: kept(fields, PodField::Features, host_network),
        host_users: kept(fields, PodField::Features, host_users),
    }
}

/// A part of a spec if its field is read, or else its default.
fn kept<T: Clone + Default>(fields: FieldSet<PodField>, field: PodField, value: &T) -> T {
    if fields.contains(field) { value.clone() } else { T::default() }
}

/// Images that are mounted as volumes count among the images.
fn project_volumes(volumes: &[Volume], fields: FieldSet<PodField>) -> Box<[Volume]> {
    let is_image = |volume: &Volume| matches!(volume.source, VolumeSource::Image(_));
    let is_kept = |volume: &&Volume| {
        fields.contains(PodField::Volumes) || fields.contains(PodField::Images) && is_image(volume)
    };
    volumes.iter().filter(is_kept).cloned().collect()
}

fn project_containers(containers: &[Container], fields: FieldSet<PodField>) -> Box<[Container]> {
    let project = |container: &Container| {
        let Container {
            name: _,
            image,
            resources,
            is_sidecar,
            host_ports,
            may_restart_all_containers,
            seccomp_profile,
        } = container;
        Container {
            // No plugin reads the name of a container.
            name: Box::default(),
            image: kept(fields, PodField::Images, image),
            resources: kept(fields, PodField::Requests, resources),
            is_sidecar: *is_sidecar,
            host_ports: kept(fields, PodField::HostPorts, host_ports),
            may_restart_all_containers: *may_restart_all_containers,
            seccomp_profile: kept(fields, PodField::SeccompProfiles, seccomp_profile),
        }
    };
    containers.iter().map(project).collect()
}
