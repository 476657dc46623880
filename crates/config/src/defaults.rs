//! What is meant where nothing is written.

use crate::types::{
    ClientConnection, KubeSchedulerConfiguration, KubeSchedulerProfile, LeaderElection, Plugin, PluginSet,
    Plugins,
};
use supercargo_model::GoDuration;

const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

/// The plugins that are on by default, with their weights, as kube-scheduler 1.36 has them with its default feature
/// gates. All are enabled at every point that they implement.
const DEFAULT_PLUGINS: [(&str, Option<i32>); 20] = [
    ("SchedulingGates", None),
    ("PrioritySort", None),
    ("NodeUnschedulable", None),
    ("NodeName", None),
    ("TaintToleration", Some(3)),
    ("NodeAffinity", Some(2)),
    ("NodePorts", None),
    ("NodeResourcesFit", Some(1)),
    ("VolumeRestrictions", None),
    ("NodeVolumeLimits", None),
    ("VolumeBinding", None),
    ("VolumeZone", None),
    ("PodTopologySpread", Some(2)),
    ("InterPodAffinity", Some(2)),
    // Before DefaultPreemption: giving back an idle claim hurts less than evicting a pod.
    ("DynamicResources", Some(2)),
    ("DefaultPreemption", None),
    ("NodeResourcesBalancedAllocation", Some(1)),
    ("ImageLocality", Some(1)),
    ("DefaultBinder", None),
    ("NodeDeclaredFeatures", None),
];

/// The plugins of a profile that says nothing about plugins.
pub(crate) fn default_plugins() -> Plugins {
    let enabled = DEFAULT_PLUGINS.map(|(name, weight)| Plugin { name: name.to_owned(), weight });
    Plugins { multi_point: PluginSet { enabled: enabled.into(), disabled: Vec::new() }, ..Plugins::default() }
}

/// Whether a plugin is one of the default profile.
pub(crate) fn is_default_plugin(name: &str) -> bool {
    DEFAULT_PLUGINS.iter().any(|(known, _)| *known == name)
}

/// The weight that a plugin has by default; none if it is not on by default or has no scores.
pub(crate) fn default_weight(name: &str) -> Option<i32> {
    DEFAULT_PLUGINS.iter().find(|(known, _)| *known == name).and_then(|(_, weight)| *weight)
}

/// Fills in what depends on other fields, and what zero stands for.
pub(crate) fn complete(
    config: &mut KubeSchedulerConfiguration,
    contention_profiling_given: bool,
    first_scheduler_name_given: bool,
) {
    fn replace_zero<T: Default + PartialEq>(value: &mut T, default: T) {
        if *value == T::default() {
            *value = default;
        }
    }
    let LeaderElection { lease_duration, renew_deadline, retry_period, .. } = LeaderElection::default();
    let LeaderElection { resource_lock, resource_name, resource_namespace, .. } = LeaderElection::default();
    let election = &mut config.leader_election;
    replace_zero(&mut election.lease_duration, lease_duration);
    replace_zero(&mut election.renew_deadline, renew_deadline);
    replace_zero(&mut election.retry_period, retry_period);
    replace_zero(&mut election.resource_lock, resource_lock);
    replace_zero(&mut election.resource_name, resource_name);
    replace_zero(&mut election.resource_namespace, resource_namespace);

    let ClientConnection { content_type, qps, burst, .. } = ClientConnection::default();
    replace_zero(&mut config.client_connection.content_type, content_type);
    replace_zero(&mut config.client_connection.qps, qps);
    replace_zero(&mut config.client_connection.burst, burst);

    if !contention_profiling_given {
        config.enable_contention_profiling = config.enable_profiling;
    }
    if config.profiles.is_empty() {
        config.profiles.push(KubeSchedulerProfile::default());
    }
    // Several profiles need names of their own, which validation sees to.
    if let [profile] = config.profiles.as_mut_slice()
        && !first_scheduler_name_given
    {
        profile.scheduler_name = DEFAULT_SCHEDULER_NAME.to_owned();
    }
}

impl Default for KubeSchedulerConfiguration {
    fn default() -> Self {
        KubeSchedulerConfiguration {
            parallelism: 16,
            leader_election: LeaderElection::default(),
            client_connection: ClientConnection::default(),
            enable_profiling: true,
            enable_contention_profiling: true,
            percentage_of_nodes_to_score: None,
            pod_initial_backoff_seconds: 1,
            pod_max_backoff_seconds: 10,
            profiles: vec![KubeSchedulerProfile {
                scheduler_name: DEFAULT_SCHEDULER_NAME.to_owned(),
                ..KubeSchedulerProfile::default()
            }],
            extenders: Vec::new(),
            delay_cache_until_active: false,
        }
    }
}

impl Default for LeaderElection {
    fn default() -> Self {
        LeaderElection {
            leader_elect: true,
            lease_duration: GoDuration::from_seconds(15),
            renew_deadline: GoDuration::from_seconds(10),
            retry_period: GoDuration::from_seconds(2),
            resource_lock: "leases".to_owned(),
            resource_name: "kube-scheduler".to_owned(),
            resource_namespace: "kube-system".to_owned(),
        }
    }
}

impl Default for ClientConnection {
    fn default() -> Self {
        ClientConnection {
            kubeconfig: String::new(),
            accept_content_types: String::new(),
            content_type: "application/vnd.kubernetes.protobuf".to_owned(),
            qps: 50.0,
            burst: 100,
        }
    }
}
