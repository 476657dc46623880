//! Observe, tried out.

use serde_json::Value;
use supercargo_framework::{Conclusion, Effect};

use crate::acting::act;
use crate::cluster::TestCluster;
use crate::trial::{Happening, Trial, listed};

/// What the plugin asks for comes back as lines, as from an [`Attempt`](crate::Attempt); what it remembers stays in the cluster.
impl Trial {
    /// What Observe asks for when it begins.
    pub fn started(&self, cluster: &mut TestCluster) -> Vec<String> {
        let plugin = &listed(&self.profile, &self.profile.observe, ".observe()").plugin;
        act(&self.profile, cluster, |context, acts| plugin.started(&context, acts)).1
    }

    /// What Observe asks for when something happens; `not told` if it did not ask to be told of such events. The cluster is to be as it
    /// is afterwards.
    pub fn observed(&self, cluster: &mut TestCluster, happening: &Happening) -> Vec<String> {
        let plugin = &listed(&self.profile, &self.profile.observe, ".observe()").plugin;
        happening.tell(cluster, |cluster, event, change| {
            if !plugin.events().iter().any(|known| known.covers(&event)) {
                return vec!["not told".to_owned()];
            }
            act(&self.profile, cluster, |context, acts| plugin.observed(&context, change, acts)).1
        })
    }

    /// What Observe asks for when a pod has run its course; `not told` if the plugin does not read such pods.
    pub fn finished(
        &self,
        cluster: &mut TestCluster,
        pod: impl Into<Value>,
        has_succeeded: bool,
    ) -> Vec<String> {
        let plugin = &listed(&self.profile, &self.profile.observe, ".observe()").plugin;
        let pod = cluster.pod(pod);
        if !self.profile.plugins().iter().any(|plugin| plugin.reads.pods.finished) {
            return vec!["not told".to_owned()];
        }
        act(&self.profile, cluster, |context, acts| plugin.finished(&context, &pod, has_succeeded, acts)).1
    }

    /// What Observe asks for when it is woken.
    pub fn woken(&self, cluster: &mut TestCluster) -> Vec<String> {
        let plugin = &listed(&self.profile, &self.profile.observe, ".observe()").plugin;
        act(&self.profile, cluster, |context, acts| plugin.woken(&context, acts)).1
    }

    /// What Observe asks for when one of its orders has ended.
    pub fn answered(
        &self,
        cluster: &mut TestCluster,
        order: &Effect,
        conclusion: &Conclusion,
    ) -> Vec<String> {
        let plugin = &listed(&self.profile, &self.profile.observe, ".observe()").plugin;
        act(&self.profile, cluster, |context, acts| plugin.answered(&context, order, conclusion, acts)).1
    }
}
