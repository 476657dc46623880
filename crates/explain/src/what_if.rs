//! Pods as they are not: with another spec, to see whether they would fit then.

use std::sync::Arc;

use supercargo_engine::{Evaluation, Thoroughness};
use supercargo_model::taints::{Effect, Taint, Toleration, TolerationOperator};
use supercargo_model::{Interned, Pod, PodSpec};

use crate::explanation::Explainer;

/// The pod with its spec changed.
pub(crate) fn with_spec(pod: &Pod, change: impl FnOnce(&mut PodSpec)) -> Arc<Pod> {
    let mut spec = (*pod.spec).clone();
    change(&mut spec);
    Arc::new(Pod { spec: Interned::from(spec), ..pod.clone() })
}

/// What would become of the pod with another priority, preemption included.
pub(crate) fn evaluate_with_priority(explainer: &Explainer<'_>, pod: &Pod, priority: i32) -> Evaluation {
    let pod = with_spec(pod, |spec| spec.priority = priority);
    explainer.evaluate(&pod, Thoroughness::FirstRejection)
}

/// Lets the pod tolerate a taint.
pub(crate) fn tolerate(spec: &mut PodSpec, taint: &Taint) {
    let mut tolerations = std::mem::take(&mut spec.tolerations).into_vec();
    tolerations.push(Toleration {
        key: taint.key.clone(),
        operator: TolerationOperator::Equal,
        value: taint.value.clone(),
        effect: taint.effect.clone(),
    });
    spec.tolerations = tolerations.into();
}

/// A taint as people write it: `key=value:Effect`.
pub(crate) fn taint_text(taint: &Taint) -> String {
    let effect = match &taint.effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::NoExecute => "NoExecute",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::Unspecified => "",
        Effect::Other(other) => other,
    };
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{effect}", taint.key)
}
