//! The nodes that pending pods are nominated to, where the cluster keeps room for them; and who is tried when that ends.

use std::sync::Arc;

use supercargo_framework::{Actions, ClusterEvent};
use supercargo_model::{Pod, Timestamp};

use super::Scheduler;
use super::delivering::Helped;
use super::happenings::{Happening, What};

/// A nomination that has ended: room is kept for the pod on that node no longer.
pub(super) type Ended = (Arc<str>, Arc<Pod>);

impl Scheduler {
    /// Keeps room for a pod on that node, or on none, and on no other any more. What it was kept for until now, if for anything else.
    #[must_use = "others may wait for the room"]
    pub(super) fn nominate(&mut self, pod: &Arc<Pod>, node: Option<&Arc<str>>) -> Option<Ended> {
        let before = self.engine.cluster.clear_nomination(&pod.uid);
        if let Some(node) = node {
            self.engine.cluster.nominate(pod.clone(), node);
        }
        before.filter(|(before, _)| Some(before) != node)
    }

    /// The scheduler itself has ended a nomination. If the pod's status names the node, others are tried when the watch tells that it does not
    /// any more, as upstream; otherwise nobody would tell, so they are tried now.
    pub(super) fn nomination_cleared(&mut self, (node, pod): Ended, now: Timestamp) {
        if nomination_of(&pod) != Some(&node) {
            self.nomination_ended(&pod, &node, now);
        }
    }

    /// The node that a pod is nominated to, if it gets another one: that ends the nomination.
    pub(super) fn nominated_elsewhere(&self, uid: &str, node: Option<&Arc<str>>) -> Option<Arc<str>> {
        self.engine.cluster.nomination(uid).filter(|nominated| Some(*nominated) != node).cloned()
    }

    /// The node that a pod was nominated to is free for others, if they are not more important.
    pub(super) fn nomination_ended(&mut self, pod: &Arc<Pod>, node: &Arc<str>, now: Timestamp) {
        let event = ClusterEvent::pod(Actions::DELETE);
        let what = What::Pod { old: Some(as_nominated(pod, node)), new: None };
        self.happened_to(Happening { event, what }, now, Helped::UpToPriority(pod.priority()));
    }
}

/// The node that a pod waits for, by its status. One that is being deleted never gets it.
pub(super) fn nomination_of(pod: &Pod) -> Option<&Arc<str>> {
    pod.nominated_node_name().filter(|_| !pod.is_terminating())
}

/// A pod as it is, or would be, when the API server has heard of its nomination: plugins look there for the room that it took.
fn as_nominated(pod: &Arc<Pod>, node: &Arc<str>) -> Arc<Pod> {
    if pod.nominated_node_name() == Some(node) {
        return pod.clone();
    }
    let mut status = pod.status.as_deref().cloned().unwrap_or_default();
    status.nominated_node_name = Some(node.clone());
    Arc::new(Pod { status: Some(status.into()), ..(**pod).clone() })
}
