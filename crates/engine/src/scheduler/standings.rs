//! Where pods stand, told to the cluster, which counts them for plugins that read it.

use supercargo_model::Standing;

use super::Scheduler;
use super::binding::Binding;

impl Scheduler {
    /// Says of every pod that is not bound where it stands: plugins read something else now.
    pub(super) fn tell_all_standings(&mut self) {
        self.queue.tell_standings(self.engine.cluster.counts_pods());
        for (pod, standing) in self.queue.all_standings() {
            self.engine.cluster.set_standing(&pod, standing);
        }
        let at_permit = self.bindings.iter().filter(|binding| binding.waits_at_permit());
        for pod in at_permit.map(Binding::pod) {
            self.engine.cluster.set_standing(pod, Standing::AtPermit);
        }
    }

    /// Whether a plugin counts pods that have run their course.
    pub(super) fn counts_finished_pods(&mut self) -> bool {
        self.engine.cluster.snapshot().pods().counted().is_some_and(|counted| counted.finished)
    }
}
