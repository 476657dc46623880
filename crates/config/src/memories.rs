//! Where what plugins remember is saved, as a configuration has it.

use crate::types::KubeSchedulerConfiguration;

/// What the name of the ConfigMap ends with in which plugins save what they remember.
pub const MEMORIES_SUFFIX: &str = "-memories";

/// The namespace and the name of the ConfigMap in which the plugins of a scheduler save what they remember: in the namespace of its lease, and
/// named after it. A scheduler without a lease gives it the name of its first profile: leases of one name are one scheduler's, but
/// the name of a lease that nobody holds is everybody's.
pub fn memories_object(kube: &KubeSchedulerConfiguration) -> (String, String) {
    let election = &kube.leader_election;
    let name = match kube.profiles.first() {
        Some(profile) if !election.leader_elect => &profile.scheduler_name,
        _ => &election.resource_name,
    };
    (election.resource_namespace.clone(), format!("{name}{MEMORIES_SUFFIX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn the_object_is_named_after_the_lease_or_the_first_profile() {
        let table = [
            ("", "kube-system/kube-scheduler-memories"),
            ("leaderElection: {resourceNamespace: a, resourceName: b}\n", "a/b-memories"),
            (
                "leaderElection: {leaderElect: false}\nprofiles: [{schedulerName: c}, {schedulerName: d}]\n",
                "kube-system/c-memories",
            ),
        ];
        for (text, expected) in table {
            let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
            let (namespace, name) = memories_object(&read(&format!("{head}{text}")).loaded.kube);
            assert_eq!(format!("{namespace}/{name}"), expected);
        }
    }
}
