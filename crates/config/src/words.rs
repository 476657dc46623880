//! The words of `KubeSchedulerConfiguration`: which field is called what.

use crate::fields::read_object;
use crate::types::{
    ClientConnection, Extender, ExtenderTlsConfig, KubeSchedulerConfiguration, KubeSchedulerProfile,
    LeaderElection, ManagedResource, Plugin, PluginConfig, PluginSet, Plugins,
};

read_object!(KubeSchedulerConfiguration {
    parallelism: "parallelism",
    leader_election: "leaderElection",
    client_connection: "clientConnection",
    enable_profiling: "enableProfiling",
    enable_contention_profiling: "enableContentionProfiling",
    percentage_of_nodes_to_score: "percentageOfNodesToScore",
    pod_initial_backoff_seconds: "podInitialBackoffSeconds",
    pod_max_backoff_seconds: "podMaxBackoffSeconds",
    profiles: "profiles",
    extenders: "extenders",
    delay_cache_until_active: "delayCacheUntilActive",
});

read_object!(LeaderElection {
    leader_elect: "leaderElect",
    lease_duration: "leaseDuration",
    renew_deadline: "renewDeadline",
    retry_period: "retryPeriod",
    resource_lock: "resourceLock",
    resource_name: "resourceName",
    resource_namespace: "resourceNamespace",
});

read_object!(ClientConnection {
    kubeconfig: "kubeconfig",
    accept_content_types: "acceptContentTypes",
    content_type: "contentType",
    qps: "qps",
    burst: "burst",
});

read_object!(KubeSchedulerProfile {
    scheduler_name: "schedulerName",
    percentage_of_nodes_to_score: "percentageOfNodesToScore",
    plugins: "plugins",
    plugin_config: "pluginConfig",
});

read_object!(Plugins {
    pre_enqueue: "preEnqueue",
    queue_sort: "queueSort",
    pre_filter: "preFilter",
    filter: "filter",
    post_filter: "postFilter",
    pre_score: "preScore",
    score: "score",
    reserve: "reserve",
    permit: "permit",
    pre_bind: "preBind",
    bind: "bind",
    post_bind: "postBind",
    multi_point: "multiPoint",
    placement_generate: "placementGenerate",
    placement_score: "placementScore",
});

read_object!(PluginSet { enabled: "enabled", disabled: "disabled" });

read_object!(Plugin { name: "name", weight: "weight" });

read_object!(PluginConfig { name: "name", args: "args" });

read_object!(Extender {
    url_prefix: "urlPrefix",
    filter_verb: "filterVerb",
    preempt_verb: "preemptVerb",
    prioritize_verb: "prioritizeVerb",
    weight: "weight",
    bind_verb: "bindVerb",
    enable_https: "enableHTTPS",
    tls_config: "tlsConfig",
    http_timeout: "httpTimeout",
    node_cache_capable: "nodeCacheCapable",
    managed_resources: "managedResources",
    ignorable: "ignorable",
});

read_object!(ExtenderTlsConfig {
    insecure: "insecure",
    server_name: "serverName",
    cert_file: "certFile",
    key_file: "keyFile",
    ca_file: "caFile",
    cert_data: "certData",
    key_data: "keyData",
    ca_data: "caData",
});

read_object!(ManagedResource { name: "name", ignored_by_scheduler: "ignoredByScheduler" });
