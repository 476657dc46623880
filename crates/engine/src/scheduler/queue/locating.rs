//! Where one pod is in the queue.

use supercargo_model::Timestamp;

use super::{Place, Queue, Slot, Waiting};
use crate::scheduler::queue_context::{Gate, QueueContext};
use crate::scheduler::replacing::no_profile;
use crate::scheduler::whereabouts::PodPlace;

impl Queue {
    /// A pod that is in the queue, or being tried.
    pub(in crate::scheduler) fn find(&self, uid: &str) -> Option<&Waiting> {
        self.by_uid.get(uid).map(|slot| self.get(*slot))
    }

    /// Whether a pod is being tried.
    pub(in crate::scheduler) fn is_in_flight(&self, uid: &str, slot: Slot) -> bool {
        self.by_uid.get(uid) == Some(&slot) && self.get(slot).place == Place::InFlight
    }

    /// The slot of a pod that is being tried.
    pub(in crate::scheduler) fn in_flight_slot(&self, uid: &str) -> Option<Slot> {
        self.by_uid.get(uid).copied().filter(|slot| self.get(*slot).place == Place::InFlight)
    }

    /// The pod of that name, if it is in the queue or being tried.
    pub(in crate::scheduler) fn find_named(&self, namespace: &str, name: &str) -> Option<&Waiting> {
        let mut waiting = self.pods.iter().flatten().map(|waiting| &**waiting);
        waiting.find(|waiting| {
            let pod = &waiting.queued.pod;
            *pod.name == *name && *pod.namespace == *namespace
        })
    }

    /// The pods in the queue and those that are being tried: by place, then as they arrived.
    pub(in crate::scheduler) fn in_order(&self) -> Vec<&Waiting> {
        let mut waiting: Vec<&Waiting> = self.pods.iter().flatten().map(|waiting| &**waiting).collect();
        waiting.sort_by_key(|waiting| {
            let place = match waiting.place {
                Place::Active => 0,
                Place::Backoff | Place::ErrorBackoff => 1,
                Place::Unschedulable if waiting.gate.is_none() => 2,
                Place::Unschedulable => 3,
                Place::InFlight => 4,
            };
            (place, waiting.arrival)
        });
        waiting
    }

    /// Where it is.
    pub(in crate::scheduler) fn pod_place(&self, context: &QueueContext<'_>, waiting: &Waiting) -> PodPlace {
        let since = waiting.queued.queued_at;
        match waiting.place {
            Place::Active => PodPlace::Active { since },
            Place::InFlight => PodPlace::Tried { since: waiting.tried_at.unwrap_or(since) },
            Place::Backoff | Place::ErrorBackoff => {
                // It is tried in the second after the one in which its backoff ends.
                let end = waiting.backoff_end(&self.patience);
                PodPlace::Backoff { until: end.map_or(since, |end| Timestamp::from_seconds(end + 1)) }
            }
            Place::Unschedulable => match waiting.gate {
                Some(gate) => held(context, waiting, gate),
                // Whatever happens, it would be stopped at that gate.
                None if context.preempting.contains(&waiting.queued.pod.uid) => {
                    held(context, waiting, Gate::Preemption)
                }
                None => PodPlace::Unschedulable {
                    since,
                    plugins: waiting.rejectors.union(&waiting.pending).copied().collect(),
                    until: since.after(self.patience.max_unschedulable),
                },
            },
        }
    }
}

fn held(context: &QueueContext<'_>, waiting: &Waiting, gate: Gate) -> PodPlace {
    let (since, pod) = (waiting.queued.queued_at, &waiting.queued.pod);
    let (plugin, reason) = match gate {
        Gate::Plugin(name) => (Some(name), context.gate_message(waiting, name)),
        Gate::Preemption => (None, "the pods that make room for it are being evicted".to_owned()),
        Gate::NoProfile => (None, no_profile(pod)),
    };
    PodPlace::Held { since, plugin, reason }
}
