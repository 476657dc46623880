//! What the API server says.

use std::sync::Arc;

use supercargo_framework::{Actions, ClusterEvent};
use supercargo_model::pod::Unscheduled;
use supercargo_model::{Decoded, Everything, NodeWords, Object, Pod, PodWords, Standing, Timestamp};

use super::delivering::Helped;
use super::happenings::{Happening, What, node_update, pod_update};
use super::nominating::nomination_of;
use super::queue::Waiting;
use super::queue_context::profile_of;
use super::{QueueEvent, Scheduler};
use crate::planted::{Bug, is_planted};

impl Scheduler {
    /// Something came, or changed.
    pub fn put(&mut self, object: Decoded, now: Timestamp) {
        match object {
            Decoded::Pod(words) if words.is_finished() => self.put_finished_pod(*words, now),
            Decoded::Pod(words) => self.put_pod(*words, now),
            Decoded::Node(words) => {
                self.put_node(&words, now);
                self.take_facts_of_node(words.name(), now);
            }
            Decoded::Object(object) => self.put_object(object, now),
            Decoded::Unread { .. } => {}
        }
        self.carry_out_acts(now);
    }

    /// Something went. This is how it was at last.
    pub fn remove(&mut self, object: &Decoded, now: Timestamp) {
        match object {
            Decoded::Pod(words) => {
                self.over.remove(&*words.metadata().uid);
                self.remove_pod(&words.metadata().uid, now);
            }
            Decoded::Node(words) => self.remove_node(words.name(), now),
            Decoded::Object(object) => self.remove_object(object, now),
            Decoded::Unread { .. } => {}
        }
        self.carry_out_acts(now);
    }

    /// What it is to the scheduler that an object is put or, if it went, removed: its name in metrics.
    pub fn event_of(&mut self, object: &Decoded, went: bool) -> Option<QueueEvent> {
        let cluster = &mut self.engine.cluster;
        let is_known = match object {
            Decoded::Pod(words) => {
                let uid = &*words.metadata().uid;
                cluster.bound_pod(uid).is_some() || self.queue.find(uid).is_some()
            }
            Decoded::Node(words) => cluster.snapshot().row_of(words.name()).is_some(),
            Decoded::Object(object) => cluster.snapshot().objects().find(object.kind, &object.key).is_some(),
            Decoded::Unread { .. } => false,
        };
        let actions = match (went, is_known) {
            (true, _) => Actions::DELETE,
            (false, true) => Actions::UPDATE,
            (false, false) => Actions::ADD,
        };
        Some(match object {
            Decoded::Pod(words) if words.node_name().is_some() => {
                QueueEvent::Cluster(ClusterEvent::pod(actions))
            }
            Decoded::Pod(_) => QueueEvent::Waiting(actions),
            Decoded::Node(_) => QueueEvent::Cluster(ClusterEvent::node(actions)),
            Decoded::Object(object) => QueueEvent::Cluster(ClusterEvent::kind(object.kind, actions)),
            Decoded::Unread { .. } => return None,
        })
    }

    /// All of a kind that there is: whatever else was known of it has gone unnoticed.
    pub fn retain(&mut self, everything: &Everything, now: Timestamp) {
        let cluster = &mut self.engine.cluster;
        match everything {
            Everything::Pods(uids) => {
                self.over.retain(|uid| uids.contains(&**uid));
                let others = self.queue.uids().chain(cluster.standing_uids()).chain(cluster.nominated_uids());
                for uid in cluster.unlisted_pods(uids, others) {
                    self.remove_pod(&uid, now);
                }
            }
            Everything::Nodes(names) => {
                for name in cluster.unlisted_nodes(names) {
                    self.remove_node(&name, now);
                }
            }
            Everything::Objects(kind, keys) => {
                for object in cluster.unlisted_objects(*kind, keys) {
                    self.remove_object(&object, now);
                }
            }
        }
        self.carry_out_acts(now);
    }

    /// A pod has run its course: it takes no room any more, and only plugins that asked for such pods hear of it.
    fn put_finished_pod(&mut self, words: PodWords, now: Timestamp) {
        self.remove_pod(&words.metadata().uid, now);
        if self.hears_finished_pods() || self.counts_finished_pods() {
            let has_succeeded = words.has_succeeded();
            let pod = Arc::new(self.engine.cluster.interner().pod(words));
            self.engine.cluster.set_standing(&pod, Standing::Finished);
            self.tell_of_finished(&pod, has_succeeded, now);
        }
    }

    fn put_pod(&mut self, words: PodWords, now: Timestamp) {
        let (generation, unscheduled) = (words.metadata().generation, words.unscheduled());
        let pod = Arc::new(self.engine.cluster.interner().pod(words));
        if pod.node_name.is_some() {
            self.put_bound_pod(&pod, now);
        } else if self.is_assumed(&pod.uid) {
            // The watch does not know yet that the pod is bound. Only its end matters: the API server binds no pod that is being
            // deleted, so this one is not bound, and never will be.
            let told = self.told_pod(&pod.uid);
            if pod.is_terminating() {
                self.abandon(&pod.uid, now);
                self.tell_of_pod(told, None, now);
            } else {
                self.refresh_binding(&pod);
                self.tell_of_pod(told, Some(pod), now);
            }
        } else if self.engine.cluster.bound_pod(&pod.uid).is_some() || self.over.contains(&pod.uid) {
            // An old state of a pod that is known to be bound, or never to be bound any more.
        } else if profile_of(self.engine.profiles(), &pod).is_some() || self.queue.find(&pod.uid).is_some() {
            self.put_pending_pod(&pod, generation, unscheduled, now);
        }
    }

    /// Whether a pod counts as bound though the watch has not told that it is.
    fn is_assumed(&self, uid: &str) -> bool {
        self.unconfirmed.contains(uid) || self.bindings.contains(uid)
    }

    /// A pod is bound: the API server says so. From here on nothing takes that back but the API server: the pod has no
    /// binding, is not in the queue, and gets no victims.
    pub(super) fn put_bound_pod(&mut self, pod: &Arc<Pod>, now: Timestamp) {
        if pod.is_terminating() {
            self.victim_leaves(&pod.uid, now);
        }
        let told = self.told_pod(&pod.uid);
        let had_binding = self.bindings.contains(&pod.uid);
        let old = self.engine.cluster.bound_pod(&pod.uid).cloned();
        if had_binding && !is_planted(Bug::BindingsOutliveConfirmation) {
            self.end_binding_of_bound(pod, now);
        }
        self.over.remove(&pod.uid);
        let is_confirmed = self.unconfirmed.remove(&pod.uid) || had_binding;
        self.with_queue(now, |queue, context| queue.remove(context, &pod.uid));
        if !is_planted(Bug::EvictsForBoundPods) {
            self.forget_eviction(&pod.uid, now);
        }
        if !is_confirmed && old.as_ref() == Some(pod) {
            // It was only listed again.
            return;
        }
        let nominated = self.nominated_elsewhere(&pod.uid, pod.node_name.as_ref());
        let updated = self.engine.cluster.update_pod(pod.clone());
        debug_assert!(updated.is_ok(), "a pod with a node can be added: {updated:?}");
        self.tell_of_pod(told, Some(pod.clone()), now);
        if !self.anybody_listens() {
            return;
        }
        if let Some(nominated) = nominated {
            self.nomination_ended(pod, &nominated, now);
        }
        if let Some(old) = &old
            && old.node_name != pod.node_name
        {
            // The room that was set aside for it is on another node.
            self.room_freed(old.clone(), now, Helped::All);
        }
        let events = match &old {
            Some(old) if !is_confirmed => pod_update(old, pod),
            _ => vec![ClusterEvent::pod(Actions::ADD)],
        };
        let old = old.filter(|_| !is_confirmed);
        for event in events {
            let what = What::Pod { old: old.clone(), new: Some(pod.clone()) };
            self.happened(Happening { event, what }, now);
        }
    }

    fn put_pending_pod(
        &mut self,
        pod: &Arc<Pod>,
        generation: i64,
        unscheduled: Option<Unscheduled>,
        now: Timestamp,
    ) {
        let told = self.told_pod(&pod.uid);
        let old = self.queue.find(&pod.uid).map(|waiting| waiting.queued.pod.clone());
        // It counts from now on, so that its own PreEnqueue plugins see it among the others.
        let standing = self.queue.find(&pod.uid).map_or(Standing::Waiting, Waiting::standing);
        self.engine.cluster.set_standing(pod, standing);
        self.with_queue(now, |queue, context| queue.update(context, pod, generation, unscheduled));
        let (before, after) = (old.as_deref().and_then(nomination_of), nomination_of(pod));
        // A nomination that the API server has not heard of yet stays.
        let ended = if after.is_some() || before.is_some() || pod.is_terminating() {
            self.nominate(pod, after)
        } else {
            None
        };
        if let (Some(old), Some(node)) = (&old, before.filter(|before| Some(*before) != after)) {
            self.nomination_ended(old, node, now);
        } else if let Some(ended) = ended {
            self.nomination_cleared(ended, now);
        }
        self.tell_of_pod(told, Some(pod.clone()), now);
    }

    /// A pod is gone, or has run its course.
    pub(super) fn remove_pod(&mut self, uid: &str, now: Timestamp) {
        let told = self.told_pod(uid);
        if self.bindings.contains(uid) {
            self.abandon(uid, now);
        }
        self.unconfirmed.remove(uid);
        let waiting = self.with_queue(now, |queue, context| queue.remove(context, uid));
        self.forget_eviction(uid, now);
        self.victim_leaves(uid, now);
        self.engine.cluster.clear_standing(uid);
        let ended = self.engine.cluster.clear_nomination(uid).or_else(|| {
            // It was taken back, and the watch has not told so yet.
            let pod = waiting?.queued.pod;
            Some((nomination_of(&pod)?.clone(), pod))
        });
        if let Some(pod) = self.engine.cluster.remove_pod(uid) {
            self.room_freed(pod, now, Helped::All);
        } else if let Some((node, pod)) = ended {
            self.nomination_ended(&pod, &node, now);
        }
        self.tell_of_pod(told, None, now);
    }

    fn put_node(&mut self, words: &NodeWords, now: Timestamp) {
        let old = match self.engine.cluster.row_of(words.name()) {
            Some(row) if self.anybody_hears_of_nodes() => Some((self.engine.cluster.snapshot().clone(), row)),
            Some(_) => {
                self.engine.cluster.put_node(words);
                return;
            }
            None => None,
        };
        let row = self.engine.cluster.put_node(words);
        if !self.anybody_hears_of_nodes() {
            return;
        }
        let new = self.engine.cluster.snapshot().clone();
        let events = match &old {
            None => vec![ClusterEvent::node(Actions::ADD)],
            Some((before, old_row)) => node_update(before.node(*old_row), new.node(row)),
        };
        let what = What::Node { old, new: Some((new, row)) };
        for event in &events {
            self.happened(Happening { event: *event, what: what.clone() }, now);
        }
        self.tell_observers(&events, &what, now);
    }

    /// Whether anybody waits for what happens to nodes, or wants to know.
    fn anybody_hears_of_nodes(&self) -> bool {
        self.anybody_listens() || self.observers.hear_nodes()
    }

    fn remove_node(&mut self, name: &str, now: Timestamp) {
        let snapshot = self.engine.cluster.snapshot();
        let Some(row) = snapshot.row_of(name) else { return };
        let event = ClusterEvent::node(Actions::DELETE);
        let what = self
            .anybody_hears_of_nodes()
            .then(|| What::Node { old: Some((self.engine.cluster.snapshot().clone(), row)), new: None });
        // As upstream, plugins that pods wait for hear of it while the node is still there.
        if let Some(what) = &what {
            self.happened(Happening { event, what: what.clone() }, now);
        }
        self.engine.cluster.remove_node(name);
        self.drop_facts_of_node(name, now);
        if let Some(what) = &what {
            self.tell_observers(&[event], what, now);
        }
    }

    fn put_object(&mut self, object: Object, now: Timestamp) {
        let old = self.engine.cluster.snapshot().objects().find(object.kind, &object.key);
        self.engine.cluster.put_object(object.clone());
        let actions = if old.is_some() { Actions::UPDATE } else { Actions::ADD };
        let event = ClusterEvent::kind(object.kind, actions);
        let what = What::Object { old, new: Some(object) };
        let told = self.observers.are_told().then(|| what.clone());
        self.happened(Happening { event, what }, now);
        if let Some(what) = told {
            self.tell_observers(&[event], &what, now);
        }
    }

    fn remove_object(&mut self, object: &Object, now: Timestamp) {
        // One that cannot be read as it was at last is as it was known.
        let old = if object.is_read() {
            Some(object.clone())
        } else {
            self.engine.cluster.snapshot().objects().find(object.kind, &object.key)
        };
        if self.engine.cluster.remove_object(object.kind, &object.key) {
            let event = ClusterEvent::kind(object.kind, Actions::DELETE);
            let what = What::Object { old, new: None };
            self.happened(Happening { event, what: what.clone() }, now);
            self.tell_observers(&[event], &what, now);
        }
    }
}
