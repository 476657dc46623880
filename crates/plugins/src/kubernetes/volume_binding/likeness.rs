//! What a pod's claims come to, whatever their names are.

use supercargo_framework::Likeness;

use super::claims::{BoundVolume, MigratedVolume, PodClaims, Provisioning, WaitingClaim};

/// Which of the volumes that are there a claim gets depends on the node, and on what other claims get.
const MAY_BE_MATCHED: &str = "a claim may get a volume that is there";
const BAD_SELECTOR: &str = "the selector of a claim cannot be read";
/// Capacities change all the time, and say by labels of nodes where they are.
const CAPACITY_COUNTS: &str = "the driver of a claim says how much room there is where";

impl PodClaims {
    /// Writes down all that [`super::finding::find_volumes`] looks at, or says why pods with such claims differ from all others.
    pub(super) fn write(&self, likeness: &mut Likeness) -> Result<(), &'static str> {
        likeness.add(&self.bound.len());
        for volume in &self.bound {
            likeness.add(&volume.is_some());
            if let Some(volume) = volume {
                volume.write(likeness);
            }
        }
        likeness.add(&self.waiting.len());
        self.waiting.iter().try_for_each(|claim| claim.write(likeness))
    }
}

impl BoundVolume {
    fn write(&self, likeness: &mut Likeness) {
        let affinity = self.volume.spec.node_affinity.as_ref();
        likeness.add(&affinity.and_then(|affinity| affinity.required.as_ref()).map(|nodes| &nodes.selector));
        let migrated = self.migrated.as_ref();
        likeness.add(&migrated.map(|MigratedVolume { plugin, required }| (plugin.driver(), required)));
    }
}

impl WaitingClaim {
    fn write(&self, likeness: &mut Likeness) -> Result<(), &'static str> {
        // One that has its node gets a new volume there, whatever volumes there are.
        if self.selected_node.is_none() {
            match &self.candidates {
                Err(_) => return Err(BAD_SELECTOR),
                Ok(candidates) if !candidates.is_empty() => return Err(MAY_BE_MATCHED),
                Ok(_) => {}
            }
        }
        likeness.add(&self.selected_node);
        match &self.provisioning {
            Provisioning::Never => likeness.add(&false),
            Provisioning::Possible { topologies, capacities: None } => likeness.add(&(true, topologies)),
            Provisioning::Possible { capacities: Some(_), .. } => return Err(CAPACITY_COUNTS),
        }
        Ok(())
    }
}
