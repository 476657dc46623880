//! The owners of pods that say how many pods they want: Jobs and ReplicaSets.

use serde::Deserialize;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, Object, Snapshot};

use super::books::OwnerId;

/// A Job, by how many of its pods run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Job {
    #[serde(deserialize_with = "null_default")]
    spec: JobSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct JobSpec {
    parallelism: Option<i64>,
}

/// A ReplicaSet, by how many pods it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    #[serde(deserialize_with = "null_default")]
    spec: ReplicaSetSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ReplicaSetSpec {
    replicas: Option<i64>,
}

impl Kind for Job {
    const ID: KindId = KindId { group: "batch", version: "v1", kind: "Job", plural: "jobs" };
}

impl Kind for ReplicaSet {
    const ID: KindId = KindId { group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets" };
}

/// How many pods an owner wants; none if its kind does not say, or it is not there.
pub(super) fn wanted(cluster: &Snapshot, owner: &OwnerId) -> Option<u32> {
    let (objects, namespace, name) = (cluster.objects(), &*owner.namespace, &*owner.name);
    match &*owner.kind {
        "Job" => objects.get::<Job>(namespace, name).map(Job::wanted),
        "ReplicaSet" => objects.get::<ReplicaSet>(namespace, name).map(ReplicaSet::wanted),
        _ => None,
    }
}

/// Which owner an object is, and how many pods it wants.
pub(super) fn owner_of(object: &Object) -> Option<(OwnerId, u32)> {
    let wanted = object
        .get::<Job>()
        .map(Job::wanted)
        .or_else(|| object.get::<ReplicaSet>().map(ReplicaSet::wanted))?;
    let (namespace, name) = ((*object.key.namespace).into(), (*object.key.name).into());
    Some((OwnerId { namespace, kind: object.kind.kind.into(), name }, wanted))
}

impl Job {
    fn wanted(&self) -> u32 {
        count(self.spec.parallelism)
    }
}

impl ReplicaSet {
    fn wanted(&self) -> u32 {
        count(self.spec.replicas)
    }
}

/// One if nobody says, as the API has it.
fn count(number: Option<i64>) -> u32 {
    u32::try_from(number.unwrap_or(1).max(0)).unwrap_or(u32::MAX)
}
