//! Where one pod is between its arrival and its node, for somebody who asks about it.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_model::{Pod, Timestamp};

use super::Scheduler;

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Its `metadata.uid`.
    pub uid: Arc<str>,
    /// How often it was tried, this time included.
    pub attempts: u32,
    /// Where it is.
    pub place: PodPlace,
}

/// A place on the way of a pod to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodPlace {
    /// It is tried as soon as those before it are.
    Active {
        /// When it came into the queue, or was last tried.
        since: Timestamp,
    },
    /// It is tried after a while.
    Backoff {
        /// When it is tried at the latest; earlier if there is nothing else to do.
        until: Timestamp,
    },
    /// It is tried when something has happened that may help it.
    Unschedulable {
        /// When it was last tried.
        since: Timestamp,
        /// The plugins that rejected it.
        plugins: Vec<&'static str>,
        /// From when on it is tried even if nothing happens.
        until: Timestamp,
    },
    /// It is not tried at all.
    Held {
        /// When it came into the queue, or was last tried.
        since: Timestamp,
        /// The plugin that holds it back; none if it is the scheduler itself.
        plugin: Option<&'static str>,
        /// Why it is not tried.
        reason: String,
    },
    /// It is being tried: extenders are asked about it.
    Tried {
        /// When the attempt began.
        since: Timestamp,
    },
    /// It has a node, and waits to be permitted to go there.
    Permit {
        /// The node that it was given.
        node: Arc<str>,
        /// The plugins that have not allowed it yet.
        plugins: Vec<&'static str>,
        /// When it is given up.
        until: Timestamp,
    },
    /// It has a node, and its PreBind plugins prepare what it needs there.
    PreBind {
        /// The node that it was given.
        node: Arc<str>,
        /// When its binding began.
        since: Timestamp,
    },
    /// It is being bound.
    Binding {
        /// The node that it is being bound to.
        node: Arc<str>,
        /// When its binding began.
        since: Timestamp,
    },
    /// It may have been bound, or not: the API server is asked until that is known. Its room stays taken.
    Unresolved {
        /// The node that it may have been bound to.
        node: Arc<str>,
        /// When its binding began.
        since: Timestamp,
    },
}

impl Scheduler {
    /// Where a pod is that has not arrived on a node yet; none if it has, or if it is not known. This looks at every pod
    /// that waits: people ask about a name, and nobody else needs the queue by name.
    pub fn whereabouts(&mut self, namespace: &str, name: &str, now: Timestamp) -> Option<Whereabouts> {
        let is_named = |pod: &Pod| *pod.name == *name && *pod.namespace == *namespace;
        if let Some(binding) = self.bindings.iter().find(|binding| is_named(binding.pod())) {
            let uid = binding.pod().uid.clone();
            return Some(Whereabouts {
                attempts: self.attempts_of(&uid).unwrap_or_default(),
                place: binding.pod_place(),
                uid,
            });
        }
        self.with_queue(now, |queue, context| {
            let waiting = queue.find_named(namespace, name)?;
            Some(Whereabouts {
                uid: waiting.queued.pod.uid.clone(),
                attempts: waiting.queued.attempts,
                place: queue.pod_place(context, waiting),
            })
        })
    }

    /// Every pod that has not arrived on a node yet and where it is, in the order of the places and of arrival, but no more than the
    /// limit; and how many more there are.
    pub fn all_whereabouts(&mut self, limit: usize, now: Timestamp) -> (Vec<(Arc<Pod>, Whereabouts)>, usize) {
        let bound: Vec<(Arc<Pod>, Whereabouts)> = self
            .bindings
            .iter()
            .take(limit)
            .map(|binding| {
                let uid = binding.pod().uid.clone();
                let attempts = self.attempts_of(&uid).unwrap_or_default();
                (binding.pod().clone(), Whereabouts { uid, attempts, place: binding.pod_place() })
            })
            .collect();
        let bound_count = self.bindings.iter().count();
        let are_bound: BTreeSet<Arc<str>> =
            self.bindings.iter().map(|binding| binding.pod().uid.clone()).collect();
        self.with_queue(now, |queue, context| {
            let waiting = queue.in_order();
            let waiting: Vec<_> =
                waiting.into_iter().filter(|waiting| !are_bound.contains(&waiting.queued.pod.uid)).collect();
            let total = waiting.len() + bound_count;
            let waiting = waiting.into_iter().take(limit).map(|waiting| {
                let whereabouts = Whereabouts {
                    uid: waiting.queued.pod.uid.clone(),
                    attempts: waiting.queued.attempts,
                    place: queue.pod_place(context, waiting),
                };
                (waiting.queued.pod.clone(), whereabouts)
            });
            let told: Vec<_> = waiting.chain(bound).take(limit).collect();
            let untold = total - told.len();
            (told, untold)
        })
    }

    /// How often a pod was tried that is in the queue or on its way to a node.
    pub fn attempts_of(&self, uid: &str) -> Option<u32> {
        match self.queue.find(uid) {
            Some(waiting) => Some(waiting.queued.attempts),
            None => self.bindings.get(uid)?.attempts(),
        }
    }
}
