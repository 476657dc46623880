//! Where pods stand, told to the cluster, which counts them for plugins that read it.

use supercargo_model::{PodWords, Standing};

use super::Scheduler;

impl Scheduler {
    /// Says of every pod that is not bound where it stands: plugins read something else now.
    pub(super) fn tell_all_standings(&mut self) {
        self.queue.tell_standings(self.engine.cluster.counts_pods());
        for (pod, standing) in self.queue.all_standings() {
            self.engine.cluster.set_standing(&pod, standing);
        }
        for pod in self.bindings.iter().filter_map(|binding| binding.pod_at_permit()) {
            self.engine.cluster.set_standing(pod, Standing::AtPermit);
        }
    }

    /// A pod has run its course, and takes no room any more.
    pub(super) fn finish_pod(&mut self, words: PodWords) {
        let counted = self.engine.cluster.snapshot().pods().counted();
        if counted.is_some_and(|counted| counted.finished) {
            let pod = self.engine.cluster.interner().pod(words).into();
            self.engine.cluster.set_standing(&pod, Standing::Finished);
        }
    }
}
