//! What would be left in zones if pods went: preemption tries it out.

use std::sync::Arc;

use supercargo_framework::{Cycle, Status};
use supercargo_model::{NodeRef, Pod};

use super::NodeResourceTopologyMatch;
use super::placement::Placement;
use super::topology::NodeResourceTopology;
use super::wants::{is_exclusive, is_guaranteed, is_native, lasting_containers};

const IMPOSSIBLE: &str = "eviction simulation in NRT is not possible:";
const TOO_MUCH: &str = "resource release request exceeds NUMA allocatable";
const NOTHING: &str = "no resources to add, cannot process eviction simulation";

/// The pods that have gone, as far as preemption has tried it out in a cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Victims(Vec<Arc<Pod>>);

impl Victims {
    pub(super) fn insert(&mut self, pod: &Arc<Pod>) {
        self.remove(pod);
        self.0.push(pod.clone());
    }

    pub(super) fn remove(&mut self, pod: &Pod) {
        self.0.retain(|victim| victim.uid != pod.uid);
    }
}

impl NodeResourceTopologyMatch {
    /// The topology of a node without the pods that have gone; none if it stays as it is, because none has, or because nobody knows in which
    /// zones they were.
    pub(super) fn without_victims(
        &self,
        cycle: &Cycle<'_>,
        node: NodeRef<'_>,
        topology: &NodeResourceTopology,
    ) -> Result<Option<NodeResourceTopology>, Status> {
        let Some(Victims(victims)) = cycle.get::<Victims>() else { return Ok(None) };
        if victims.is_empty() || !topology.has_single_numa_attribute {
            return Ok(None);
        }
        // Nobody knows yet where those will be that have not started: none of them frees anything.
        let victims = || victims.iter().map(|victim| &**victim).filter(|victim| self.counts(victim));
        if victims().next().is_none() {
            return Ok(None);
        }
        let is_left = |pod: &&Pod| !victims().any(|victim| victim.uid == pod.uid);
        let others = self.counted_pods(node).into_iter().filter(is_left);
        let placement = Placement::of(topology, others.chain(victims()));
        let Some(placement) = placement.filter(|placement| !placement.is_empty()) else { return Ok(None) };
        let mut simulated = topology.clone();
        let mut frees_any = false;
        let with_sidecars = cycle.context.fixes.numa_sidecars;
        for victim in victims() {
            let is_guaranteed = is_guaranteed(&victim.spec);
            let mut containers: Vec<_> = victim.spec.containers.iter().collect();
            if with_sidecars {
                containers = lasting_containers(&victim.spec).collect();
            }
            for container in containers {
                let Some(number) = placement.zone_of(victim, container) else { continue };
                let Some(zone) = simulated.zones.iter_mut().find(|zone| zone.number == number) else {
                    continue;
                };
                for (name, quantity) in container.resources.requests.iter() {
                    let counts = is_guaranteed || !is_native(name);
                    if !counts || !is_exclusive(is_guaranteed, name, quantity, topology) {
                        continue;
                    }
                    let Some(available) = zone.available_mut(name) else { continue };
                    *available += quantity;
                    frees_any = true;
                    if zone.has_too_much_of(name) {
                        return Err(Status::unschedulable(format!("{IMPOSSIBLE}{TOO_MUCH}")));
                    }
                }
            }
        }
        if !frees_any {
            return Err(Status::unschedulable(format!("{IMPOSSIBLE}{NOTHING}")));
        }
        Ok(Some(simulated))
    }
}
