//! Looks on while another scheduler works, and says what it would have done.
//!
//! An [`Onlooker`] is told what an API server tells of a cluster, in order. When a pod that it has seen waiting turns up on a
//! node, it decides for that pod on the cluster without it, and [`compare`]s. It orders nothing.

mod comparison;
mod render;
mod settling;
mod summary;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::{Context, Fixes, Memories, Profile};
use supercargo_model::{Cluster, Decoded, Everything, Object, Pod, PodWords, Timestamp};

pub use comparison::{Comparison, Difference, Judgement, compare};
pub use render::{render_comparison, render_summary};
use settling::{Binding, Settling, WaitingPods};
pub use summary::{PluginDifference, PluginRejections, Summary, Tally};

/// Follows a cluster that another scheduler runs.
#[derive(Debug)]
pub struct Onlooker {
    cluster: Cluster,
    profiles: Vec<Profile>,
    /// Which of the profiles decides for pods of which scheduler.
    responsible: BTreeMap<String, usize>,
    /// The pods of these schedulers that wait for a node.
    waiting: WaitingPods,
    /// The pods that have left it lately, and are not on their nodes yet.
    settling: Settling,
    /// How many things were told so far.
    events: u64,
    memories: Memories,
    fixes: Fixes,
    attempts: u64,
    start: usize,
    is_watching: bool,
    missed: u64,
}

/// No profile can stand in for a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no profile is called {name:?}, and it is not clear which to take instead: the configuration has {profiles}"
)]
pub struct UnclearProfile {
    /// The scheduler.
    pub name: String,
    /// The profiles there are.
    pub profiles: String,
}

impl Onlooker {
    /// Looks on with these profiles at pods of the schedulers that are named, or else of those that the profiles are
    /// named after. A profile decides for the scheduler of its name; the only profile there is, for any scheduler.
    pub fn new(profiles: Vec<Profile>, fixes: Fixes, schedulers: &[String]) -> Result<Self, UnclearProfile> {
        let names: Vec<&str> = profiles.iter().map(|profile| &*profile.scheduler_name).collect();
        let profile_of = |name: &str| match names.iter().position(|known| *known == name) {
            None if names.len() == 1 => Ok(0),
            None => Err(UnclearProfile { name: name.to_owned(), profiles: names.join(", ") }),
            Some(found) => Ok(found),
        };
        let responsible: BTreeMap<String, usize> = if schedulers.is_empty() {
            names.iter().enumerate().map(|(number, name)| ((*name).to_owned(), number)).collect()
        } else {
            schedulers.iter().map(|name| Ok((name.clone(), profile_of(name)?))).collect::<Result<_, _>>()?
        };
        let mut memories = Memories::default();
        for profile in &profiles {
            profile.declare_memories(&mut memories);
        }
        Ok(Onlooker {
            cluster: Cluster::default(),
            profiles,
            responsible,
            waiting: WaitingPods::default(),
            settling: Settling::default(),
            events: 0,
            memories,
            fixes,
            attempts: 0,
            start: 0,
            is_watching: false,
            missed: 0,
        })
    }

    /// From now on what is told is what happens, one after the other.
    pub fn watch(&mut self) {
        self.is_watching = true;
    }

    /// From now on what is told is what there is, in no meaningful order, so nothing can be compared. What is held is
    /// compared at once.
    pub fn pause(&mut self, now: Timestamp) -> Vec<Comparison> {
        self.is_watching = false;
        self.settle_all(now)
    }

    /// How many pods were bound while nothing could be compared.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// How many nodes there are, and how many pods are waiting.
    pub fn counts(&mut self) -> (usize, usize) {
        (self.cluster.snapshot().node_count(), self.waiting.len())
    }

    /// How many bindings are held.
    pub fn held(&self) -> usize {
        self.settling.len()
    }

    /// Something came, or changed.
    pub fn put(&mut self, object: Decoded, now: Timestamp) -> Vec<Comparison> {
        self.events += 1;
        match object {
            Decoded::Pod(words) if words.is_finished() => {
                return self.remove_settled(&words.metadata().uid.clone(), now);
            }
            Decoded::Pod(words) => self.put_pod(*words, now),
            Decoded::Node(words) => _ = self.cluster.put_node(&words),
            Decoded::Object(object) => self.cluster.put_object(object),
            Decoded::Unread { .. } => {}
        }
        Vec::new()
    }

    /// Something went.
    pub fn remove(&mut self, object: &Decoded, now: Timestamp) -> Vec<Comparison> {
        self.events += 1;
        match object {
            Decoded::Pod(words) => return self.remove_settled(&words.metadata().uid, now),
            Decoded::Node(words) => _ = self.cluster.remove_node(words.name()),
            Decoded::Object(Object { kind, key, .. }) => _ = self.cluster.remove_object(*kind, key),
            Decoded::Unread { .. } => {}
        }
        Vec::new()
    }

    /// When there is something to [`Onlooker::settle`].
    pub fn deadline(&self) -> Option<Timestamp> {
        self.settling.deadline(&self.waiting)
    }

    /// Compares what has been held long enough.
    pub fn settle(&mut self, now: Timestamp) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        while let Some(binding) = self.settling.due(&self.waiting, now) {
            comparisons.push(self.take(binding, now));
        }
        comparisons
    }

    /// Compares everything that is held.
    pub fn settle_all(&mut self, now: Timestamp) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        while let Some(binding) = self.settling.next() {
            comparisons.push(self.take(binding, now));
        }
        comparisons
    }

    /// All of a kind that there is: whatever else was known of it has gone unnoticed.
    pub fn retain(&mut self, everything: &Everything) {
        match everything {
            Everything::Pods(uids) => {
                for uid in self.cluster.unlisted_pods(uids, self.waiting.uids()) {
                    self.remove_pod(&uid);
                }
            }
            Everything::Nodes(names) => {
                for name in self.cluster.unlisted_nodes(names) {
                    self.cluster.remove_node(&name);
                }
            }
            Everything::Objects(kind, keys) => {
                for object in self.cluster.unlisted_objects(*kind, keys) {
                    self.cluster.remove_object(*kind, &object.key);
                }
            }
        }
    }

    fn put_pod(&mut self, words: PodWords, now: Timestamp) {
        let was_tried = words.unscheduled().is_some();
        let pod = Arc::new(self.cluster.interner().pod(words));
        if let Some(binding) = self.settling.find(&pod.uid) {
            if pod.node_name.is_some() {
                binding.bound = pod;
            }
            return;
        }
        if pod.node_name.is_none() {
            self.put_waiting_pod(pod, was_tried);
            return;
        }
        match self.waiting.remove(&pod.uid) {
            Some(waiting) if self.is_watching => {
                self.settling.hold(Binding { waiting, bound: pod, number: self.events, seen_at: now });
            }
            waiting => {
                self.missed += u64::from(waiting.is_some());
                self.put_bound_pod(pod);
            }
        }
    }

    fn put_bound_pod(&mut self, pod: Arc<Pod>) {
        let updated = self.cluster.update_pod(pod);
        debug_assert!(updated.is_ok(), "a pod with a node can be added: {updated:?}");
    }

    fn put_waiting_pod(&mut self, pod: Arc<Pod>, was_tried: bool) {
        if self.cluster.bound_pod(&pod.uid).is_some() {
            // An old state of a pod that is known to be bound.
            return;
        }
        match pod.nominated_node_name().cloned() {
            Some(node) => self.cluster.nominate(pod.clone(), &node),
            None => _ = self.cluster.clear_nomination(&pod.uid),
        }
        if self.responsible.contains_key(&*pod.spec.scheduler_name) {
            self.waiting.put(pod, was_tried, self.events);
        }
    }

    /// Removes a pod; if its binding is held, after that and all that come before it.
    fn remove_settled(&mut self, uid: &str, now: Timestamp) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        while self.settling.find(uid).is_some()
            && let Some(binding) = self.settling.next()
        {
            comparisons.push(self.take(binding, now));
        }
        self.remove_pod(uid);
        comparisons
    }

    fn remove_pod(&mut self, uid: &str) {
        self.waiting.remove(uid);
        self.cluster.clear_nomination(uid);
        self.cluster.remove_pod(uid);
    }

    /// Compares a binding, and puts the pod on its node then.
    fn take(&mut self, binding: Binding, now: Timestamp) -> Comparison {
        let Binding { waiting, bound, seen_at, .. } = binding;
        let theirs = bound.node_name.clone().unwrap_or_default();
        let comparison = Comparison { held: now.since(seen_at), ..self.compare(&waiting.pod, &theirs, now) };
        self.put_bound_pod(bound);
        comparison
    }

    fn compare(&mut self, pod: &Arc<Pod>, theirs: &str, now: Timestamp) -> Comparison {
        let profile = &self.profiles[self.responsible[&*pod.spec.scheduler_name]];
        let seed = comparison::seed(self.attempts);
        self.attempts += 1;
        let (cluster, memories) = (self.cluster.snapshot(), &self.memories);
        let context = Context { cluster, now, memories, seed, fixes: self.fixes };
        compare(profile, &context, pod, theirs, &mut self.start)
    }
}
