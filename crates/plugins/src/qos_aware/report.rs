//! What the tables show and what they leave out, as JSON for programs.

use serde_json::{Value, json};
use supercargo_model::Timestamp;

use super::QosAware;
use super::books::{Books, Controller, ControllerId, SavedBooks};
use super::log::EndedLog;
use super::metric::{Measured, Reference, seconds};
use super::table::{phase, sorted};

impl QosAware {
    /// Everything about every controller.
    pub(super) fn report(&self, books: &Books, now: Timestamp) -> Value {
        let controllers: Vec<Value> = sorted(books)
            .into_iter()
            .map(|(_, id, controller)| self.controller_report(books, id, controller, now))
            .collect();
        let (forgotten, times) = &books.forgotten;
        let (unsaved_controllers, unsaved_pods) = SavedBooks::of(books).left_out;
        json!({
            "now": now,
            "controllers": controllers,
            "forgotten": {
                "controllers": forgotten,
                "incarnations": times.incarnations(),
                "runningSeconds": seconds(times.running(now)),
                "waitingSeconds": seconds(times.waiting(now)),
                "bindingSeconds": seconds(times.binding()),
            },
            "unsaved": { "controllers": unsaved_controllers, "pods": unsaved_pods },
        })
    }

    fn controller_report(
        &self,
        books: &Books,
        id: &ControllerId,
        controller: &Controller,
        now: Timestamp,
    ) -> Value {
        let measured = Measured::of(controller, None, now);
        let replica = |(number, slot): (&u32, &super::books::Slot)| {
            let pod = books.now().pods.get(slot.current.as_ref()?)?;
            let measured = Measured::of(controller, Some(Reference::of(pod, controller, now)), now);
            Some(json!({
                "slot": number,
                "pod": pod.name,
                "phase": phase(pod.phase),
                "slo": pod.slo,
                "qos": measured.qos(),
                "metricSeconds": finite(measured.metric(pod.slo)),
                "preemptionOverhead": measured.preemption_overhead(),
                "acceptablePreemptionOverhead": self.acceptable_overhead(pod.slo, pod.acceptable_overhead),
            }))
        };
        json!({
            "namespace": id.namespace,
            "controller": id.name,
            "approach": controller.approach,
            "slo": controller.slo,
            "qos": measured.qos(),
            "timeToViolationSeconds": finite(measured.time_to_violation(controller.slo)),
            "metricSeconds": finite(measured.metric(controller.slo)),
            "effectiveSeconds": seconds(measured.effective),
            "discardedSeconds": seconds(measured.discarded),
            "waitingSeconds": seconds(measured.waiting),
            "bindingSeconds": seconds(measured.binding),
            "wantedReplicas": measured.replicas(),
            "runningPods": controller.running,
            "pendingPods": controller.pending,
            "succeededPods": controller.succeeded,
            "incarnations": controller.times.incarnations(),
            "replicas": controller.slots.iter().filter_map(replica).collect::<Vec<_>>(),
        })
    }

    /// The lines of the log after one, and the number of the last one.
    pub(super) fn log_report(log: &EndedLog, after: u64) -> Value {
        // One who knows of more lines than there are means those of a process before this one.
        let after = if after > log.count { 0 } else { after };
        json!({ "last": log.count, "lines": log.after(after).collect::<Vec<_>>() })
    }
}

/// JSON has no infinity: what never comes has no number of seconds.
fn finite(seconds: f64) -> Option<f64> {
    seconds.is_finite().then_some(seconds)
}
