//! What the queue asks the plugins: which pod is first, which plugin holds a pod back, which pods an event helps.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use supercargo_framework::{
    ClusterEvent, Context, Enqueue, EventResource, Hearing, Hint, Profile, QueueRank, QueueSort,
};
use supercargo_model::{LabelLookup, ObjectKey, Pod, PodSetId, Timestamp};

use super::happenings::Happening;
use super::heap::{Entry, Slot};
use super::queue::Waiting;

/// The plugins and the cluster that they look at, lent to the queue for one of its operations.
pub(super) struct QueueContext<'a> {
    /// The cluster and the time, as plugins are given them.
    pub(super) context: Context<'a>,
    pub(super) profiles: &'a [Profile],
    /// The pods whose victims are being evicted. They are held back until that is over.
    pub(super) preempting: &'a FxHashSet<Arc<str>>,
}

/// What holds a pod back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// A plugin's PreEnqueue.
    Plugin(&'static str),
    /// The scheduler, while it evicts the pod's victims.
    Preemption,
    /// The scheduler, because the profile that was responsible for the pod has gone.
    NoProfile,
}

/// Whether, and when, a pod is tried again because of something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Retry {
    Skip,
    AfterBackoff,
    Immediately,
}

impl QueueContext<'_> {
    /// The time of what the queue does.
    pub(super) fn now(&self) -> Timestamp {
        self.context.now
    }

    /// Whether a pod is tried before another at the moment of the context. All profiles sort alike; pods that are alike are
    /// tried as they came.
    pub(super) fn less(&self, context: &Context<'_>, a: &Waiting, b: &Waiting) -> bool {
        let Some(sort) = queue_sort(self.profiles) else { return a.arrival < b.arrival };
        if sort.less(context, &a.queued, &b.queued) {
            return true;
        }
        !sort.less(context, &b.queued, &a.queued) && a.arrival < b.arrival
    }

    /// The entry of a pod in a heap that is in the same order, if the plugin that sorts has a rank for the pod.
    pub(super) fn entry(&self, context: &Context<'_>, slot: Slot, waiting: &Waiting) -> Option<Entry> {
        let rank = match queue_sort(self.profiles) {
            Some(sort) => sort.rank(context, &waiting.queued)?,
            None => QueueRank::default(),
        };
        Some(Entry { slot, rank, arrival: waiting.arrival })
    }

    /// The gate that holds the pod back, if one does. The plugin that did so before is asked first.
    pub(super) fn gate(&self, waiting: &Waiting) -> Option<Gate> {
        let pod = &*waiting.queued.pod;
        if self.preempting.contains(&pod.uid) {
            return Some(Gate::Preemption);
        }
        let Some(profile) = self.profile(waiting) else { return Some(Gate::NoProfile) };
        let plugins = &profile.pre_enqueue;
        let (before, others): (Vec<_>, Vec<_>) =
            plugins.iter().partition(|named| waiting.gate == Some(Gate::Plugin(named.name)));
        let mut asked = before.into_iter().chain(others);
        asked
            .find(|named| !named.plugin.pre_enqueue(&self.context, pod).is_success())
            .map(|named| Gate::Plugin(named.name))
    }

    /// Why a plugin holds the pod back.
    pub(super) fn gate_message(&self, waiting: &Waiting, plugin: &str) -> String {
        let named = self
            .profile(waiting)
            .and_then(|profile| profile.pre_enqueue.iter().find(|named| named.name == plugin));
        named
            .map(|named| named.plugin.pre_enqueue(&self.context, &waiting.queued.pod).message())
            .unwrap_or_default()
    }

    /// Whether a pod that is held back there gets an event and a condition.
    pub(super) fn is_told(&self, gate: Gate, waiting: &Waiting) -> bool {
        let Gate::Plugin(name) = gate else { return false };
        let mut plugins = self.profile(waiting).into_iter().flat_map(|profile| &profile.pre_enqueue);
        plugins.any(|named| named.name == name && named.plugin.is_told())
    }

    /// Whether something that happened may help a pod that was rejected.
    pub(super) fn retry(&self, waiting: &Waiting, happening: &Happening) -> Retry {
        if waiting.is_blameless() {
            return Retry::AfterBackoff;
        }
        let Some(profile) = self.profile(waiting) else { return Retry::Skip };
        let pod = &*waiting.queued.pod;
        let change = happening.what.change();
        let mut retry = Retry::Skip;
        for plugin in waiting.rejectors.iter().chain(&waiting.pending) {
            let hint = match enqueue_of(profile, plugin) {
                // It does not say what it waits for, so it waits for everything.
                None => Hint::Queue,
                Some(enqueue) => Hint::on(enqueue, &self.context, pod, happening.event, &change),
            };
            if hint == Hint::Queue {
                let urgent = waiting.pending.contains(plugin);
                retry = retry.max(if urgent { Retry::Immediately } else { Retry::AfterBackoff });
            }
        }
        retry
    }

    /// Whether something that happens may help a pod that waits, or was tried, whatever it happens to.
    pub(super) fn hears(&self, waiting: &Waiting, event: ClusterEvent) -> bool {
        if let Some(gate) = waiting.gate {
            return matches!(gate, Gate::Preemption) || self.opens(gate, waiting, event);
        }
        if waiting.is_blameless() {
            return true;
        }
        let Some(profile) = self.profile(waiting) else { return false };
        waiting.rejectors.iter().chain(&waiting.pending).any(|plugin| {
            let enqueue = enqueue_of(profile, plugin);
            enqueue.is_none_or(|enqueue| Hearing::of(enqueue, event) != Hearing::Deaf)
        })
    }

    /// The pods that a pod waits together with, if it waits because of one plugin that says so.
    pub(super) fn set_of(&self, waiting: &Waiting) -> Option<PodSetId> {
        let pod = &*waiting.queued.pod;
        let label = self.only_rejector(waiting)?.waits_by_label(pod)?;
        let pods = self.context.cluster.pods();
        pods.id_by_label_in(&pod.namespace, label, pod.labels.label(label)?)
    }

    /// Whether no event helps those that wait together with a pod.
    pub(super) fn is_in_vain(&self, waiting: &Waiting) -> bool {
        let pod = &*waiting.queued.pod;
        let together = self.only_rejector(waiting).filter(|plugin| plugin.waits_by_label(pod).is_some());
        together.is_some_and(|plugin| plugin.is_in_vain(&self.context, pod))
    }

    /// The plugin that a pod waits for, if that is one.
    fn only_rejector(&self, waiting: &Waiting) -> Option<&dyn Enqueue> {
        let mut plugins = waiting.rejectors.iter().chain(&waiting.pending);
        let (first, others) = (plugins.next()?, plugins.next());
        if waiting.gate.is_some() || others.is_some() {
            return None;
        }
        enqueue_of(self.profile(waiting)?, first)
    }

    /// The pods that wait together for an object of that name.
    pub(super) fn sets_named(&self, key: &ObjectKey) -> Vec<PodSetId> {
        let pods = self.context.cluster.pods();
        let labels = pods.counted().into_iter().flat_map(|counted| &counted.labels);
        labels.filter_map(|label| pods.id_by_label_in(&key.namespace, label, &key.name)).collect()
    }

    /// Whether something that happens to such a resource may help a pod, whatever it is.
    pub(super) fn may_help(&self, waiting: &Waiting, event: ClusterEvent) -> bool {
        let waits_for = |plugin: &str| {
            let enqueue = self.profile(waiting).and_then(|profile| enqueue_of(profile, plugin));
            let covers = |known: &ClusterEvent| {
                known.resource == EventResource::Any || known.resource == event.resource
            };
            enqueue.is_none_or(|enqueue| enqueue.events().iter().any(covers))
        };
        match waiting.gate {
            Some(Gate::Plugin(name)) => waits_for(name),
            Some(Gate::Preemption | Gate::NoProfile) => false,
            None => {
                let mut plugins = waiting.rejectors.iter().chain(&waiting.pending);
                waiting.is_blameless() || plugins.any(|plugin| waits_for(plugin))
            }
        }
    }

    /// Whether the gate that holds a pod back may open at such an event.
    pub(super) fn opens(&self, gate: Gate, waiting: &Waiting, event: ClusterEvent) -> bool {
        match gate {
            // It opens with another configuration.
            Gate::NoProfile => false,
            Gate::Preemption => !self.preempting.contains(&waiting.queued.pod.uid),
            Gate::Plugin(name) => {
                let enqueue = self.profile(waiting).and_then(|profile| enqueue_of(profile, name));
                enqueue.is_none_or(|enqueue| enqueue.events().iter().any(|known| known.covers(&event)))
            }
        }
    }

    /// Whether a profile is responsible for a pod.
    pub(super) fn has_profile(&self, waiting: &Waiting) -> bool {
        self.profile(waiting).is_some()
    }

    fn profile(&self, waiting: &Waiting) -> Option<&Profile> {
        profile_of(self.profiles, &waiting.queued.pod).map(|number| &self.profiles[number])
    }
}

/// The plugin that puts waiting pods in order.
pub(super) fn queue_sort(profiles: &[Profile]) -> Option<&dyn QueueSort> {
    Some(&*profiles.first()?.queue_sort.first()?.plugin)
}

/// The number of the profile that is responsible for a pod.
pub(super) fn profile_of(profiles: &[Profile], pod: &Pod) -> Option<usize> {
    profiles.iter().position(|profile| profile.scheduler_name == *pod.spec.scheduler_name)
}

fn enqueue_of<'a>(profile: &'a Profile, plugin: &str) -> Option<&'a dyn Enqueue> {
    profile.enqueue.iter().find(|named| named.name == plugin).map(|named| &*named.plugin)
}
