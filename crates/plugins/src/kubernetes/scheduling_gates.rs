//! SchedulingGates: pods with gates stay out of the queue.

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Enqueue, Extensions, Hint, NoArgs, Plugin, PodField, PreEnqueue,
    Reads, Status,
};
use supercargo_model::Pod;

/// # What
/// Keeps a pod out of the queue while `spec.schedulingGates` names anything.
///
/// # Why
/// Somebody, such as a quota controller, wants to look at the pod before it is scheduled, without the scheduler
/// trying it in vain.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// spec:
///   schedulingGates:
///   - name: example.com/quota   # waiting for scheduling gates: [example.com/quota]
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct SchedulingGates;

impl Plugin for SchedulingGates {
    const NAME: &'static str = "SchedulingGates";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        SchedulingGates
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::SchedulingGates])
    }
}

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, _: &Context<'_>, pod: &Pod) -> Status {
        if pod.spec.scheduling_gates.is_empty() {
            return Status::success();
        }
        Status::unresolvable(format!(
            "waiting for scheduling gates: [{}]",
            pod.spec.scheduling_gates.join(" ")
        ))
    }
}

impl Enqueue for SchedulingGates {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::UPDATE_POD_GATES_ELIMINATED)]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        match change {
            Change::Pod { new: Some(changed), .. } if changed.uid != pod.uid => Hint::Skip,
            _ => Hint::Queue,
        }
    }
}

#[cfg(test)]
mod tests;
