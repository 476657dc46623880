//! What the controllers of ElasticQuotas, PodGroups, AppGroups and NetworkTopologies have in common.

use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{Effect, Notice, Subject};
use supercargo_model::{KindId, ObjectKey};

/// How long after a change a status is written: many pods change at once, and one write tells of all of them.
pub(super) const STATUS_PAUSE: Duration = Duration::from_secs(1);
/// How long after a write that failed it is tried again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// The reason of the event on an object of an API group's old name.
pub(super) const OLD_API_GROUP: &str = "OldApiGroup";

/// What the event on an object of an API group's old name says, by the object's kind and the one of the new name.
pub(super) fn old_api_group(old: KindId, new: KindId, noun: &str) -> String {
    format!("{} is the old name of {}: write the {noun} anew with that", old.group, new.group)
}

/// An event on a custom resource that a controller looks after.
pub(super) fn notice(
    reporter: &str,
    kind: KindId,
    key: &ObjectKey,
    uid: &str,
    is_warning: bool,
    reason: &'static str,
    note: String,
) -> Effect {
    Effect::Record(Notice {
        about: Subject::Object { kind, key: key.clone(), uid: Arc::from(uid) },
        reporter: Arc::from(reporter),
        is_warning,
        reason: reason.into(),
        action: "Reconciling".into(),
        note,
        related: None,
    })
}
