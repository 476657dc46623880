//! How many pods are in which part of the queue.

use super::Queue;

/// How many pods wait, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLengths {
    /// Pods to be tried next.
    pub active: usize,
    /// Pods that wait until a backoff has passed.
    pub backoff: usize,
    /// Pods that fit nowhere and wait for an event that may help.
    pub unschedulable: usize,
    /// Pods that a plugin or the scheduler holds back before any attempt.
    pub gated: usize,
}

impl Queue {
    /// How many pods wait, by why.
    pub(in crate::scheduler) fn lengths(&self) -> QueueLengths {
        let (idle, gated) = self.idle.counts();
        QueueLengths {
            active: self.active.len(),
            backoff: self.backoff.len() + self.error_backoff.len(),
            unschedulable: idle - gated,
            gated,
        }
    }
}
