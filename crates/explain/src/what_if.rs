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

/// Lets the pod tolerate taints.
pub(crate) fn tolerate<'a>(spec: &mut PodSpec, taints: impl IntoIterator<Item = &'a Taint>) {
    let mut tolerations = std::mem::take(&mut spec.tolerations).into_vec();
    tolerations.extend(taints.into_iter().map(toleration_of));
    spec.tolerations = tolerations.into();
}

/// The toleration for a taint, and for no other if the taint has a key.
pub(crate) fn toleration_of(taint: &Taint) -> Toleration {
    Toleration {
        key: taint.key.clone(),
        operator: TolerationOperator::Equal,
        value: taint.value.clone(),
        effect: taint.effect.clone(),
    }
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
