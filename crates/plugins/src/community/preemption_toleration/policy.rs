//! Who is spared: what the annotations of a PriorityClass say about its pods.

use serde::Deserialize;
use supercargo_framework::{Cycle, Status};
use supercargo_model::pod::PreemptionPolicy;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, LabelLookup, MetadataWords, Pod};

/// The lowest priority for which pods of the class are evicted whatever else holds.
const MINIMUM: &str = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority";
/// For how many seconds from when they were scheduled pods of the class are spared; for ever if it is negative.
const SECONDS: &str = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds";
const NANOSECONDS: i128 = 1_000_000_000;

/// What is read of a PriorityClass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PriorityClass {
    #[serde(deserialize_with = "null_default")]
    metadata: MetadataWords,
    #[serde(deserialize_with = "null_default")]
    value: i32,
}

impl Kind for PriorityClass {
    const ID: KindId = KindId {
        group: "scheduling.k8s.io",
        version: "v1",
        kind: "PriorityClass",
        plural: "priorityclasses",
    };
}

/// What a PriorityClass asks for its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Toleration {
    minimum_priority: i64,
    seconds: i64,
}

impl PriorityClass {
    /// None if an annotation cannot be read: then nobody is spared.
    fn toleration(&self) -> Option<Toleration> {
        let annotation = |name| self.metadata.annotations.label(name);
        let minimum_priority = match annotation(MINIMUM) {
            Some(text) => text.parse::<i32>().ok()?.into(),
            None => i64::from(self.value) + 1,
        };
        let seconds = annotation(SECONDS).map_or(Some(0), |text| text.parse().ok())?;
        Some(Toleration { minimum_priority, seconds })
    }

    fn speaks_of_tolerations(&self) -> bool {
        [MINIMUM, SECONDS].iter().any(|name| self.metadata.annotations.label(name).is_some())
    }
}

/// Whether a pod of lower priority is not to be evicted for the pod of the cycle.
pub(super) fn is_spared(cycle: &Cycle<'_>, victim: &Pod) -> Result<bool, Status> {
    let name = &*victim.spec.priority_class_name;
    if name.is_empty() {
        return Ok(false);
    }
    let Some(class) = cycle.cluster().objects().get::<PriorityClass>("", name) else {
        if cycle.context.fixes.gone_priority_class {
            return Ok(false);
        }
        return Err(Status::error(format!("priorityclass.scheduling.k8s.io {name:?} not found")));
    };
    if cycle.pod.spec.preemption_policy == PreemptionPolicy::Never {
        return Ok(true);
    }
    let Some(toleration) = class.toleration() else { return Ok(false) };
    if i64::from(cycle.pod.priority()) >= toleration.minimum_priority {
        return Ok(false);
    }
    if toleration.seconds < 0 {
        return Ok(true);
    }
    let Some(scheduled) = victim.scheduled_at() else { return Ok(true) };
    let end = i128::from(scheduled.nanoseconds()) + i128::from(toleration.seconds) * NANOSECONDS;
    Ok(end > i128::from(cycle.context.now.nanoseconds()))
}

/// What the victims on a node depend on, as long as no class spares its pods for a time.
pub(super) fn findings_depend_on(cycle: &Cycle<'_>) -> Option<Vec<u64>> {
    let objects = cycle.cluster().objects();
    let is_timed = objects.all::<PriorityClass>().any(|(_, class)| class.speaks_of_tolerations());
    (!is_timed).then(|| vec![objects.version(PriorityClass::ID)])
}
