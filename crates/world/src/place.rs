//! Where a pod is, in a line.

use supercargo_engine::PodPlace;

use crate::name::split;
use crate::world::World;

impl World {
    /// Where a pod is on its way:
    ///
    /// | line | what it is |
    /// |---|---|
    /// | `to be tried` | it is in the queue, and [`World::run`] has it tried |
    /// | `backs off for 2s` | it is tried after a while |
    /// | `unschedulable: NodeAffinity, Ssd` | these rejected it, and something has to happen first |
    /// | `held by SchedulingGates: …` | a PreEnqueue plugin does not let it in |
    /// | `at Permit on n1 for 60s: Gangs` | it has a node, and these do not let it go there yet |
    /// | `at PreBind on n1`, `being bound to n1` | something is being done for it |
    /// | `on n1` | it is bound |
    /// | `finished` | it has run its course |
    /// | `nobody's: …` | no profile has its `schedulerName` |
    #[track_caller]
    pub fn place_of(&mut self, pod: &str) -> String {
        let object = self.object(&format!("Pod {pod}"));
        if matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return "finished".to_owned();
        }
        if let Some(node) = self.node_of(pod) {
            return format!("on {node}");
        }
        let scheduler = object["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler").to_owned();
        let (namespace, name) = split(pod);
        match self.scheduler.whereabouts(namespace, name, self.now) {
            Some(whereabouts) => self.place_words(&whereabouts.place),
            None => {
                let names = self.scheduler.profiles().iter().map(|profile| profile.scheduler_name.clone());
                let names: Vec<String> = names.collect();
                format!("nobody's: it asks for {scheduler}, and the profiles are {}", names.join(", "))
            }
        }
    }

    fn place_words(&self, place: &PodPlace) -> String {
        match place {
            PodPlace::Active { .. } => "to be tried".to_owned(),
            PodPlace::Backoff { until } => format!("backs off for {:?}", until.since(self.now)),
            PodPlace::Unschedulable { plugins, .. } => format!("unschedulable: {}", plugins.join(", ")),
            PodPlace::Held { plugin: Some(plugin), reason, .. } => format!("held by {plugin}: {reason}"),
            PodPlace::Held { plugin: None, reason, .. } => format!("held: {reason}"),
            PodPlace::Tried { .. } => "being tried".to_owned(),
            PodPlace::Permit { node, plugins, until } => {
                let time = until.since(self.now);
                format!("at Permit on {node} for {time:?}: {}", plugins.join(", "))
            }
            PodPlace::PreBind { node, .. } => format!("at PreBind on {node}"),
            PodPlace::Binding { node, .. } => format!("being bound to {node}"),
            PodPlace::Unresolved { node, .. } => format!("maybe bound to {node}"),
        }
    }
}
