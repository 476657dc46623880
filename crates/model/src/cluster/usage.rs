//! What the pods on a node take of it.

use std::sync::Arc;

use crate::pod::{HostPort, Pod};
use crate::resources::Resources;

/// The pods on a node and what they take together.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pods: Vec<Arc<Pod>>,
    requested: Resources,
    non_zero_milli_cpu: i64,
    non_zero_memory: i64,
    pods_with_affinity: u32,
    pods_with_required_anti_affinity: u32,
    host_ports: Vec<HostPort>,
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
        let counters = [
            (&mut self.pods_with_affinity, affinity.is_declared),
            (&mut self.pods_with_required_anti_affinity, affinity.declares_required_anti_affinity),
        ];
        for (counter, counts) in counters {
            *counter = operation(*counter, u32::from(counts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn counters_go_back_to_zero() {
        // They decide whether a node's pods are looked at; one that only grows is never wrong, only slow.
        let json = r#"{"metadata":{"uid":"u"},"spec":{"affinity":
            {"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z"}]}}}}"#;
        let pod = Arc::new(Interner::default().pod(serde_json::from_str(json).expect("a pod")));
        let counters = |usage: &Usage| [usage.pods_with_affinity, usage.pods_with_required_anti_affinity];
        let mut usage = Usage::default();
        usage.add(pod);
        assert_eq!(counters(&usage), [1; 2]);
        assert!(usage.remove("other").is_none());
        assert!(usage.remove("u").is_some());
        assert_eq!(counters(&usage), [0; 2]);
    }
}
