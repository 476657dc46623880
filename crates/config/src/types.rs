//! `KubeSchedulerConfiguration`, as `kubescheduler.config.k8s.io/v1` has it.
//!
//! What stands here is what the user wrote, with scalar defaults filled in. Plugins are kept as written, so that a
//! problem can be reported where the user sees it; [`crate::merged_plugins`] adds the default ones.

use serde::Serialize;
use serde_json::Value;
use supercargo_framework::Point;

use crate::bytes::Bytes;
use supercargo_model::GoDuration;

/// The configuration of a scheduler. Its `Default` is what a document with nothing but its kind means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeSchedulerConfiguration {
    /// How many workers a cycle may use.
    pub parallelism: i32,
    /// How replicas agree on which of them schedules.
    pub leader_election: LeaderElection,
    /// How to reach the API server.
    pub client_connection: ClientConnection,
    /// Whether profiles of the process are served.
    pub enable_profiling: bool,
    /// Whether waiting for locks is profiled; follows `enableProfiling` if not given.
    pub enable_contention_profiling: bool,
    /// How many of the nodes to look at, in percent. Absent and 0 mean all, which is our difference from upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage_of_nodes_to_score: Option<i32>,
    /// How long a pod waits after its first failure.
    pub pod_initial_backoff_seconds: i64,
    /// How long a pod waits at most.
    pub pod_max_backoff_seconds: i64,
    /// One for each `schedulerName`.
    pub profiles: Vec<KubeSchedulerProfile>,
    /// Schedulers' helpers behind HTTP, shared by all profiles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extenders: Vec<Extender>,
    /// Whether a replica that does not lead leaves its cache empty.
    pub delay_cache_until_active: bool,
}

/// How replicas agree on which of them schedules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct LeaderElection {
    pub leader_elect: bool,
    pub lease_duration: GoDuration,
    pub renew_deadline: GoDuration,
    pub retry_period: GoDuration,
    pub resource_lock: String,
    pub resource_name: String,
    pub resource_namespace: String,
}

/// How to reach the API server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct ClientConnection {
    pub kubeconfig: String,
    pub accept_content_types: String,
    pub content_type: String,
    #[serde(serialize_with = "plain_number")]
    pub qps: f32,
    pub burst: i32,
}

/// How the pods of one `schedulerName` are scheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeSchedulerProfile {
    /// The pods that are meant. Empty, which only the validator minds, if several profiles leave it out.
    pub scheduler_name: String,
    /// Goes before the configuration's own, even if it is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage_of_nodes_to_score: Option<i32>,
    /// What the user enables and disables.
    pub plugins: Plugins,
    /// Arguments of plugins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_config: Vec<PluginConfig>,
}

/// What is enabled and disabled at each extension point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct Plugins {
    pub pre_enqueue: PluginSet,
    pub queue_sort: PluginSet,
    pub pre_filter: PluginSet,
    pub filter: PluginSet,
    pub post_filter: PluginSet,
    pub pre_score: PluginSet,
    pub score: PluginSet,
    pub reserve: PluginSet,
    pub permit: PluginSet,
    pub pre_bind: PluginSet,
    pub bind: PluginSet,
    pub post_bind: PluginSet,
    pub multi_point: PluginSet,
    pub placement_generate: PluginSet,
    pub placement_score: PluginSet,
}

/// What is enabled and disabled at one extension point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct PluginSet {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enabled: Vec<Plugin>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<Plugin>,
}

/// A plugin at an extension point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plugin {
    /// The plugin's name; `*` in a `disabled` list means all.
    pub name: String,
    /// What its scores are multiplied by; absent and 0 mean 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// The arguments of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PluginConfig {
    /// The plugin's name.
    pub name: String,
    /// The arguments as written; null if there are none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub args: Value,
}

/// A scheduler's helper behind HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct Extender {
    pub url_prefix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_verb: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preempt_verb: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prioritize_verb: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bind_verb: String,
    #[serde(rename = "enableHTTPS", skip_serializing_if = "is_false")]
    pub enable_https: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<ExtenderTlsConfig>,
    /// Zero means 5 seconds.
    pub http_timeout: GoDuration,
    #[serde(skip_serializing_if = "is_false")]
    pub node_cache_capable: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_resources: Vec<ManagedResource>,
    #[serde(skip_serializing_if = "is_false")]
    pub ignorable: bool,
}

/// A resource that an extender looks after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResource {
    /// The resource's name.
    pub name: String,
    /// Whether NodeResourcesFit leaves the resource to the extender.
    #[serde(skip_serializing_if = "is_false")]
    pub ignored_by_scheduler: bool,
}

/// How to speak TLS with an extender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct ExtenderTlsConfig {
    #[serde(skip_serializing_if = "is_false")]
    pub insecure: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cert_file: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key_file: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ca_file: String,
    #[serde(skip_serializing_if = "Bytes::is_empty")]
    pub cert_data: Bytes,
    #[serde(skip_serializing_if = "Bytes::is_empty")]
    pub key_data: Bytes,
    #[serde(skip_serializing_if = "Bytes::is_empty")]
    pub ca_data: Bytes,
}

/// A key below `plugins`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// One extension point.
    Point(Point),
    /// All extension points that a plugin implements.
    MultiPoint,
    /// For groups of pods; alpha upstream, and not run here.
    PlacementGenerate,
    /// For groups of pods; alpha upstream, and not run here.
    PlacementScore,
}

impl Slot {
    /// The points in the order in which upstream's framework fills them, which decides which error comes first.
    pub(crate) const FILLED: [Slot; 14] = [
        Slot::Point(Point::PreFilter),
        Slot::Point(Point::Filter),
        Slot::Point(Point::PostFilter),
        Slot::Point(Point::Reserve),
        Slot::Point(Point::PreScore),
        Slot::Point(Point::Score),
        Slot::Point(Point::PreBind),
        Slot::Point(Point::Bind),
        Slot::Point(Point::PostBind),
        Slot::Point(Point::Permit),
        Slot::Point(Point::PreEnqueue),
        Slot::Point(Point::QueueSort),
        Slot::PlacementGenerate,
        Slot::PlacementScore,
    ];

    /// All keys.
    pub fn all() -> impl Iterator<Item = Slot> {
        Slot::FILLED.into_iter().chain([Slot::MultiPoint])
    }

    /// The key, such as `preScore`.
    pub fn config_name(self) -> &'static str {
        match self {
            Slot::Point(point) => point.config_name(),
            Slot::MultiPoint => "multiPoint",
            Slot::PlacementGenerate => "placementGenerate",
            Slot::PlacementScore => "placementScore",
        }
    }

    /// The name of its plugins' interface, such as `ScorePlugin`.
    pub(crate) fn interface_name(self) -> String {
        match self {
            Slot::Point(point) => point.interface_name(),
            Slot::MultiPoint => "MultiPointPlugin".to_owned(),
            Slot::PlacementGenerate => "PlacementGeneratePlugin".to_owned(),
            Slot::PlacementScore => "PlacementScorePlugin".to_owned(),
        }
    }
}

impl Plugins {
    /// What stands at a key.
    pub fn get(&self, slot: Slot) -> &PluginSet {
        match slot {
            Slot::Point(Point::PreEnqueue) => &self.pre_enqueue,
            Slot::Point(Point::QueueSort) => &self.queue_sort,
            Slot::Point(Point::PreFilter) => &self.pre_filter,
            Slot::Point(Point::Filter) => &self.filter,
            Slot::Point(Point::PostFilter) => &self.post_filter,
            Slot::Point(Point::PreScore) => &self.pre_score,
            Slot::Point(Point::Score) => &self.score,
            Slot::Point(Point::Reserve) => &self.reserve,
            Slot::Point(Point::Permit) => &self.permit,
            Slot::Point(Point::PreBind) => &self.pre_bind,
            Slot::Point(Point::Bind) => &self.bind,
            Slot::Point(Point::PostBind) => &self.post_bind,
            Slot::MultiPoint => &self.multi_point,
            Slot::PlacementGenerate => &self.placement_generate,
            Slot::PlacementScore => &self.placement_score,
        }
    }

    /// Whether some key enables the plugin.
    pub fn enables(&self, name: &str) -> bool {
        Slot::all().any(|slot| self.get(slot).enables(name))
    }
}

impl PluginSet {
    /// Whether the plugin is enabled.
    pub fn enables(&self, name: &str) -> bool {
        self.enabled.iter().any(|plugin| plugin.name == name)
    }

    /// Whether the plugin is disabled by its name or, where `*` counts, together with all others.
    pub fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|plugin| plugin.name == name)
    }
}

// Upstream prints `qps: 50`, not `50.0`.
fn plain_number<S: serde::Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f32(*number)
    }
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}
