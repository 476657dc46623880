//! What the pods on a node take of it.

use std::sync::Arc;

use crate::pod::{HostPort, Pod, VolumeSource};
use crate::resources::Resources;

/// The pods on a node and what they take together.
#[derive(Clone, Debug, Default)]
// What every pod changes comes first, and is one line of the processor's cache.
#[repr(C)]
pub struct Usage {
    pods: Vec<Arc<Pod>>,
    non_zero_milli_cpu: i64,
    non_zero_memory: i64,
    requested: Resources,
    pods_with_affinity: u32,
    pods_with_required_anti_affinity: u32,
    volumes: VolumeCounts,
    host_ports: Vec<HostPort>,
}

/// How many volumes pods have of which kind; images and volumes that drivers make for one pod at a time are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeCounts {
    /// Claims by name.
    pub claims: u32,
    /// Claims of the pods' own, and disks that are written in the pods.
    pub others: u32,
}

impl VolumeCounts {
    fn of_pod(pod: &Pod) -> Self {
        let mut counts = VolumeCounts::default();
        for volume in &pod.spec.volumes {
            match &volume.source {
                VolumeSource::Claim(name) if !name.is_empty() => counts.claims += 1,
                VolumeSource::Image(_) | VolumeSource::Csi { .. } => {}
                _ => counts.others += 1,
            }
        }
        counts
    }
}

impl Usage {
    /// The pods, in no meaningful order.
    pub fn pods(&self) -> &[Arc<Pod>] {
        &self.pods
    }

    /// The sum of their requests.
    pub fn requested(&self) -> &Resources {
        &self.requested
    }

    /// The sum of their cpu requests in thousandths, with the default for containers that do not say.
    pub fn non_zero_milli_cpu(&self) -> i64 {
        self.non_zero_milli_cpu
    }

    /// The sum of their memory requests in bytes, with the default for containers that do not say.
    pub fn non_zero_memory(&self) -> i64 {
        self.non_zero_memory
    }

    /// The pods that say anything about affinity to other pods.
    pub fn pods_with_affinity(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let any = self.pods_with_affinity > 0;
        self.pods.iter().filter(move |pod| any && pod.spec.pod_affinity.is_declared)
    }

    /// The pods that must not have certain others near them.
    pub fn pods_with_required_anti_affinity(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let any = self.pods_with_required_anti_affinity > 0;
        self.pods.iter().filter(move |pod| any && pod.spec.pod_affinity.declares_required_anti_affinity)
    }

    /// How many volumes the pods have; one that several share counts for each of them.
    pub fn volumes(&self) -> VolumeCounts {
        self.volumes
    }

    /// The ports that pods take on the host, each once.
    ///
    /// As upstream, nobody counts how many pods take a port: where two do, which the scheduler itself never lets
    /// happen, it is free as soon as one of them is gone.
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// Puts a pod on the node.
    pub fn add(&mut self, pod: Arc<Pod>) {
        let requests = pod.requests();
        self.requested.add(&requests.resources);
        self.non_zero_milli_cpu = self.non_zero_milli_cpu.wrapping_add(requests.non_zero_milli_cpu);
        self.non_zero_memory = self.non_zero_memory.wrapping_add(requests.non_zero_memory);
        self.count(&pod, u32::wrapping_add);
        for port in pod.spec.host_ports() {
            if !self.host_ports.contains(port) {
                self.host_ports.push(port.clone());
            }
        }
        self.pods.push(pod);
    }

    /// Takes the pod with this UID off the node.
    pub fn remove(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let index = self.pods.iter().position(|pod| *pod.uid == *uid)?;
        let pod = self.pods.swap_remove(index);
        let requests = pod.requests();
        self.requested.subtract(&requests.resources);
        self.non_zero_milli_cpu = self.non_zero_milli_cpu.wrapping_sub(requests.non_zero_milli_cpu);
        self.non_zero_memory = self.non_zero_memory.wrapping_sub(requests.non_zero_memory);
        self.count(&pod, u32::wrapping_sub);
        for port in pod.spec.host_ports() {
            self.host_ports.retain(|taken| taken != port);
        }
        Some(pod)
    }

    fn count(&mut self, pod: &Pod, operation: fn(u32, u32) -> u32) {
        let affinity = &pod.spec.pod_affinity;
        if affinity.is_declared {
            self.pods_with_affinity = operation(self.pods_with_affinity, 1);
        }
        if affinity.declares_required_anti_affinity {
            self.pods_with_required_anti_affinity = operation(self.pods_with_required_anti_affinity, 1);
        }
        if !pod.spec.volumes.is_empty() {
            let VolumeCounts { claims, others } = VolumeCounts::of_pod(pod);
            self.volumes.claims = operation(self.volumes.claims, claims);
            self.volumes.others = operation(self.volumes.others, others);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::super::NodeRow;
    use super::*;
    use crate::Interner;
    use crate::node::Node;

    #[test]
    fn what_a_decision_needs_of_a_row_is_in_two_lines_of_the_cache() {
        const LINE: usize = 64;
        let end_of_amounts = offset_of!(Resources, ephemeral_storage) + size_of::<i64>();
        assert!(align_of::<NodeRow>() >= LINE && offset_of!(NodeRow, usage).is_multiple_of(LINE));
        assert!(offset_of!(Usage, pods) < offset_of!(Usage, requested));
        assert!(offset_of!(Usage, requested) + end_of_amounts <= LINE);
        assert!(offset_of!(NodeRow, node).is_multiple_of(LINE) && offset_of!(Node, name) == 0);
        assert!(offset_of!(Node, allocatable) + end_of_amounts <= LINE);
    }

    #[test]
    fn counters_go_back_to_zero() {
        // They decide whether a node's pods are looked at; one that only grows is never wrong, only slow.
        let json = r#"{"metadata":{"uid":"u"},"spec":{"affinity":
            {"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z"}]}},
            "volumes":[{"name":"a","persistentVolumeClaim":{"claimName":"c"}},{"name":"b","emptyDir":{}},
                {"name":"c","ephemeral":{}},{"name":"d","image":{}},{"name":"e","csi":{"driver":"d"}},
                {"name":"f","gcePersistentDisk":{"pdName":"p"}}]}}"#;
        let pod = Arc::new(Interner::default().pod(serde_json::from_str(json).expect("a pod")));
        let counters = |usage: &Usage| {
            let VolumeCounts { claims, others } = usage.volumes();
            [usage.pods_with_affinity, usage.pods_with_required_anti_affinity, claims, others]
        };
        let mut usage = Usage::default();
        usage.add(pod);
        assert_eq!(counters(&usage), [1, 1, 1, 2]);
        assert!(usage.remove("other").is_none());
        assert!(usage.remove("u").is_some());
        assert_eq!(counters(&usage), [0; 4]);
    }
}
