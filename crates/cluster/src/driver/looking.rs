//! What is known, for somebody who answers another scheduler's questions from it.

use supercargo_engine::Observer;
use supercargo_framework::Memories;
use supercargo_model::{Cluster, Timestamp};

use super::Driver;

/// What comes of [`Command::Look`](super::Command::Look).
#[derive(Debug)]
pub struct KnownCluster {
    /// The cluster.
    pub cluster: Cluster,
    /// What plugins remember.
    pub memories: Memories,
    /// The time at which that was so.
    pub now: Timestamp,
}

impl<O: Observer> Driver<O> {
    /// A copy of what is known; none as long as not everything was listed.
    pub(super) fn look(&mut self) -> Option<KnownCluster> {
        self.progress.is_complete().then(|| KnownCluster {
            cluster: self.scheduler.copy_of_cluster(),
            memories: self.scheduler.memories().clone(),
            now: self.clock.now(),
        })
    }
}
