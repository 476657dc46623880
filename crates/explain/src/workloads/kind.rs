//! The kinds of workloads, and the words people call them by.

use supercargo_model::KindId;

/// A kind of object that makes pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// `apps/v1`, through ReplicaSets
    Deployment,
    /// `apps/v1`
    ReplicaSet,
    /// `apps/v1`
    StatefulSet,
    /// `apps/v1`: a pod on each node that it is meant for
    DaemonSet,
    /// `batch/v1`
    Job,
    /// `batch/v1`, through Jobs
    CronJob,
    /// `v1`
    ReplicationController,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        WorkloadKind::Deployment,
        WorkloadKind::ReplicaSet,
        WorkloadKind::StatefulSet,
        WorkloadKind::DaemonSet,
        WorkloadKind::Job,
        WorkloadKind::CronJob,
        WorkloadKind::ReplicationController,
    ];

    /// Where it lives in the API.
    pub const fn id(self) -> KindId {
        let (group, kind, plural) = match self {
            WorkloadKind::Deployment => ("apps", "Deployment", "deployments"),
            WorkloadKind::ReplicaSet => ("apps", "ReplicaSet", "replicasets"),
            WorkloadKind::StatefulSet => ("apps", "StatefulSet", "statefulsets"),
            WorkloadKind::DaemonSet => ("apps", "DaemonSet", "daemonsets"),
            WorkloadKind::Job => ("batch", "Job", "jobs"),
            WorkloadKind::CronJob => ("batch", "CronJob", "cronjobs"),
            WorkloadKind::ReplicationController => ("", "ReplicationController", "replicationcontrollers"),
        };
        KindId { group, version: "v1", kind, plural }
    }

    /// The kind that lives there.
    pub fn of(id: KindId) -> Option<Self> {
        WorkloadKind::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// The kind that people mean by a word, as kubectl takes it: `deploy`, `deployments`, `deployments.apps`.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        WorkloadKind::ALL.into_iter().find(|kind| {
            let id = kind.id();
            let name = word.strip_suffix(&format!(".{}", id.group)).unwrap_or(&word);
            name == kind.word() || name == id.plural || Some(name) == kind.short_word()
        })
    }

    /// What sentences call it.
    pub const fn word(self) -> &'static str {
        match self {
            WorkloadKind::Deployment => "deployment",
            WorkloadKind::ReplicaSet => "replicaset",
            WorkloadKind::StatefulSet => "statefulset",
            WorkloadKind::DaemonSet => "daemonset",
            WorkloadKind::Job => "job",
            WorkloadKind::CronJob => "cronjob",
            WorkloadKind::ReplicationController => "replicationcontroller",
        }
    }

    const fn short_word(self) -> Option<&'static str> {
        match self {
            WorkloadKind::Deployment => Some("deploy"),
            WorkloadKind::ReplicaSet => Some("rs"),
            WorkloadKind::StatefulSet => Some("sts"),
            WorkloadKind::DaemonSet => Some("ds"),
            WorkloadKind::CronJob => Some("cj"),
            WorkloadKind::ReplicationController => Some("rc"),
            WorkloadKind::Job => None,
        }
    }

    /// The kind of its objects that make the pods for it.
    pub const fn through(self) -> Option<Self> {
        match self {
            WorkloadKind::Deployment => Some(WorkloadKind::ReplicaSet),
            WorkloadKind::CronJob => Some(WorkloadKind::Job),
            _ => None,
        }
    }
}
