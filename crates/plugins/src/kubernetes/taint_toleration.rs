//! TaintToleration: pods keep off nodes whose taints they do not tolerate.

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, Hint, NoArgs, NodeField,
    NodeScore, Normalization, Plugin, PodField, PreScore, Reads, Score, Status,
};
use supercargo_model::taints::{Effect, Toleration, find_forbidding, untolerated};
use supercargo_model::{NodeRef, Pod, Row};

use super::normalize;

const REASON: &str = "node(s) had untolerated taint(s)";

/// # What
/// Keeps pods off nodes with `NoSchedule` and `NoExecute` taints that they do not tolerate, and prefers nodes with
/// fewer `PreferNoSchedule` taints that they do not tolerate.
///
/// # Why
/// Some nodes are for certain pods only: those with GPUs, those that may go at any moment, those in trouble.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// spec:
///   tolerations:
///   - {key: dedicated, operator: Equal, value: batch, effect: NoSchedule}
/// ```
///
/// # Difference from upstream
/// None. Tolerations with `Lt` and `Gt` match nothing: their feature gate is off by default.
#[derive(Debug)]
pub struct TaintToleration;

/// The tolerations that can matter for `PreferNoSchedule` taints.
#[derive(Clone)]
struct PreferNoScheduleTolerations(Vec<Toleration>);

impl Plugin for TaintToleration {
    const NAME: &'static str = "TaintToleration";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        TaintToleration
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().pre_score().score().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Tolerations]).node(&[NodeField::Taints]).feasible_set()
    }
}

impl Filter for TaintToleration {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match find_forbidding(node.taints(), &cycle.pod.spec.tolerations) {
            None => Status::success(),
            Some(_) => Status::unresolvable(REASON),
        }
    }
}

impl PreScore for TaintToleration {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        let tolerations = cycle.pod.spec.tolerations.iter();
        let relevant = tolerations
            .filter(|toleration| matches!(toleration.effect, Effect::Unspecified | Effect::PreferNoSchedule));
        cycle.put(PreferNoScheduleTolerations(relevant.cloned().collect()));
        Status::success()
    }
}

impl Score for TaintToleration {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let Some(PreferNoScheduleTolerations(tolerations)) = cycle.get() else {
            return Err(Status::error(
                r#"failed to read "PreScoreTaintToleration" from cycleState: not found"#,
            ));
        };
        let untolerated = untolerated(node.taints(), tolerations);
        Ok(untolerated.filter(|taint| taint.effect == Effect::PreferNoSchedule).count() as i64)
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        normalize::by_maximum_reversed(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByValues
    }
}

impl Enqueue for TaintToleration {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_TAINT)),
            ClusterEvent::pod(Actions::UPDATE_POD_TOLERATION),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let admits = |node: &NodeRef<'_>| find_forbidding(node.taints(), &pod.spec.tolerations).is_none();
        let helps = match change {
            Change::Node { old, new: Some(new) } => admits(new) && !old.as_ref().is_some_and(admits),
            Change::Pod { new: Some(new), .. } => new.uid == pod.uid,
            _ => true,
        };
        Hint::queue_if(helps)
    }
}

#[cfg(test)]
mod tests;
