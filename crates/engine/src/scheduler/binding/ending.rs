//! How a binding ends: the pod is bound, goes back into the queue, or is gone.

use std::sync::Arc;

use supercargo_framework::{Actions, ClusterEvent, Notice, Point, Subject};
use supercargo_model::{Pod, Timestamp};

use super::steps::not_leading;
use super::{Binding, QueueEntry};
use crate::planted::{Bug, is_planted};
use crate::scheduler::Scheduler;
use crate::scheduler::attempts::Failure;
use crate::scheduler::delivering::Helped;
use crate::scheduler::happenings::{Happening, What};
use crate::scheduler::observations::Observation;

impl Scheduler {
    /// A pod was bound to its node, by what its binder or the watch says. It is assumed until the watch confirms it.
    pub(super) fn bound(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(mut binding) = self.bindings.remove(uid) else { return };
        self.unconfirmed.insert(uid.clone());
        self.observe_bound(&binding, now);
        let (pod, node) = (binding.pod, binding.node);
        self.record(Notice {
            reporter: Arc::from(&*pod.spec.scheduler_name),
            is_warning: false,
            reason: "Scheduled".into(),
            action: "Binding".into(),
            note: format!("Successfully assigned {} to {node}", pod.key()),
            related: None,
            about: Subject::Pod(pod.clone()),
        });
        let Some(row) = self.engine.cluster.snapshot().row_of(&node) else { return };
        let (profile, began) = (binding.profile.as_deref(), self.stopwatch.read());
        // The pod is bound, whoever panics now.
        let _ = self.caught_acting(&pod, |scheduler| {
            let state = &mut binding.state;
            scheduler.engine.with_cycle_of(profile, &pod, state, now, |profile, cycle, acting| {
                let node = cycle.cluster().node(row);
                for named in profile.post_bind.iter().filter(|named| profile.concerns(named, &pod)) {
                    named.run(|plugin| plugin.post_bind(cycle, &mut acting.of(named.name), node));
                }
            });
        });
        self.observe_point(Point::PostBind, &pod, "Success", self.stopwatch.since(began));
    }

    /// The API server says that a pod with a binding is bound. If it went where its binding sends it, that was the binding;
    /// otherwise another writer was faster.
    pub(in crate::scheduler) fn end_binding_of_bound(&mut self, pod: &Arc<Pod>, now: Timestamp) {
        let Some(binding) = self.bindings.get(&pod.uid) else { return };
        let is_ours = pod.node_name.as_ref() == Some(&binding.node) && !binding.can_be_stopped();
        if is_ours {
            return self.bound(&pod.uid, now);
        }
        if let Some(Binding { pod: own, node, mut state, profile, .. }) = self.bindings.remove(&pod.uid) {
            // Plugins that take back what is theirs see the pod where it is: it has a node, though not the one that they know.
            let updated = self.engine.cluster.update_pod(pod.clone());
            debug_assert!(updated.is_ok(), "a pod with a node can be added: {updated:?}");
            self.unreserve(profile.as_deref(), &own, &node, &mut state, now);
            let bound_to = pod.node_name.clone().unwrap_or_default();
            self.observe(Observation::BoundByOther { pod: own, node, bound_to });
        }
    }

    /// Takes back everything that was done for a pod which will not go to its node after all, and puts it back into the
    /// queue. The pod is known not to be bound.
    pub(in crate::scheduler) fn fail_binding(&mut self, uid: &str, failure: Failure, now: Timestamp) {
        self.observe_failed(uid, &failure, now);
        let Some((pod, node, entry)) = self.take_back(uid, now) else { return };
        let slot = match entry {
            QueueEntry::InFlight => self.queue.in_flight_slot(uid),
            QueueEntry::Held(waiting) => Some(self.queue.restore(waiting)),
        };
        let Some(slot) = slot else { return self.room_freed(pod, now, Helped::All) };
        // Room became free. As upstream, a pod that was rejected is not to be woken by its own leaving.
        if failure.is_rejected {
            self.fail_placed(slot, &node, failure, now);
            let own = pod.uid.clone();
            self.room_freed(pod, now, Helped::Others(own));
        } else {
            self.room_freed(pod, now, Helped::All);
            self.fail_placed(slot, &node, failure, now);
        }
    }

    /// Ends the binding of a pod that is gone, or is on its way out without a node. The pod leaves the queue as well.
    pub(in crate::scheduler) fn abandon(&mut self, uid: &str, now: Timestamp) {
        self.unconfirmed.remove(uid);
        let taken = self.take_back(uid, now).map(|(pod, ..)| pod);
        self.with_queue(now, |queue, context| queue.remove(context, uid));
        self.engine.cluster.clear_standing(uid);
        if let Some(pod) = taken.or_else(|| self.engine.cluster.remove_pod(uid)) {
            self.room_freed(pod, now, Helped::All);
        }
    }

    /// Ends all bindings that can still be stopped, because this replica does not lead any more.
    pub(in crate::scheduler) fn stop_bindings(&mut self, now: Timestamp) {
        let stoppable = self.bindings.iter().filter(|binding| binding.can_be_stopped());
        let uids: Vec<Arc<str>> = stoppable.map(|binding| binding.pod.uid.clone()).collect();
        for uid in uids {
            // The room of one pod may take another further.
            if self.bindings.get(&uid).is_some_and(Binding::can_be_stopped) {
                self.fail_binding(&uid, not_leading(), now);
            }
        }
    }

    /// Removes a binding and the room of its pod, and lets plugins take back what they reserved.
    fn take_back(&mut self, uid: &str, now: Timestamp) -> Option<(Arc<Pod>, Arc<str>, QueueEntry)> {
        let Binding { pod, node, mut state, entry, profile, .. } = self.bindings.remove(uid)?;
        let assumed = if is_planted(Bug::RoomStaysTaken) {
            pod.clone()
        } else {
            self.engine.cluster.remove_pod(uid).unwrap_or_else(|| pod.clone())
        };
        self.unreserve(profile.as_deref(), &pod, &node, &mut state, now);
        Some((assumed, node, entry))
    }

    pub(in crate::scheduler) fn room_freed(&mut self, pod: Arc<Pod>, now: Timestamp, helped: Helped) {
        let event = ClusterEvent::pod(Actions::DELETE);
        let what = What::Pod { old: Some(pod), new: None };
        self.happened_to(Happening { event, what }, now, helped);
    }
}
