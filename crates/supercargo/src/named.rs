//! What people ask about by name: a pod, or a workload.

use supercargo_explain::WorkloadKind;

/// The words for pods, as kubectl takes them.
const POD_WORDS: [&str; 3] = ["po", "pod", "pods"];

/// Something that was asked about: `NAME`, `NAMESPACE/NAME`, `KIND/NAME` or `NAMESPACE/KIND/NAME`.
///
/// A word for a kind goes before a namespace of that name, as with kubectl; a pod of such a namespace is asked for as
/// `NAMESPACE/pod/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// None for a pod.
    pub(crate) workload: Option<WorkloadKind>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl<'a> Named<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let Some((before, name)) = text.rsplit_once('/') else {
            return Named { workload: None, namespace: None, name: text };
        };
        let (namespace, word) = match before.rsplit_once('/') {
            Some((namespace, word)) => (Some(namespace), word),
            None => (None, before),
        };
        match WorkloadKind::from_word(word) {
            Some(kind) => Named { workload: Some(kind), namespace, name },
            None if POD_WORDS.contains(&word) => Named { workload: None, namespace, name },
            None => Named { workload: None, namespace: Some(before), name },
        }
    }

    /// `namespace/name`
    pub(crate) fn full_name(&self, default_namespace: &str) -> String {
        format!("{}/{}", self.namespace.unwrap_or(default_namespace), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_kubectl_reads_them() {
        use WorkloadKind::{
            CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet,
        };
        for (text, workload, namespace, name) in [
            ("web", None, None, "web"),
            ("shop/web", None, Some("shop"), "web"),
            ("pod/web", None, None, "web"),
            ("po/web", None, None, "web"),
            ("job/pod/web", None, Some("job"), "web"),
            ("deploy/web", Some(Deployment), None, "web"),
            ("deployment/web", Some(Deployment), None, "web"),
            ("deployments.apps/web", Some(Deployment), None, "web"),
            ("Deployment/web", Some(Deployment), None, "web"),
            ("shop/deploy/web", Some(Deployment), Some("shop"), "web"),
            ("sts/db", Some(StatefulSet), None, "db"),
            ("ds/agent", Some(DaemonSet), None, "agent"),
            ("rs/web-1", Some(ReplicaSet), None, "web-1"),
            ("rc/old", Some(ReplicationController), None, "old"),
            ("job/once", Some(Job), None, "once"),
            ("jobs.batch/once", Some(Job), None, "once"),
            ("cj/nightly", Some(CronJob), None, "nightly"),
            ("cronjob/nightly", Some(CronJob), None, "nightly"),
        ] {
            assert_eq!(Named::parse(text), Named { workload, namespace, name }, "{text}");
        }
    }
}
