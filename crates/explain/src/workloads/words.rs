//! Workloads as they are written: one set of fields for all kinds, each of which has some of them.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use supercargo_model::MetadataWords;
use supercargo_model::wire::null_default;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkloadWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) metadata: MetadataWords,
    #[serde(deserialize_with = "null_default")]
    pub(super) spec: WorkloadSpecWords,
    #[serde(deserialize_with = "null_default")]
    pub(super) status: WorkloadStatusWords,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WorkloadSpecWords {
    pub(super) replicas: Option<i64>,
    /// A pod, as far as it is the same for all of them.
    pub(super) template: Value,
    pub(super) selector: Value,
    #[serde(deserialize_with = "null_default")]
    pub(super) paused: bool,
    #[serde(deserialize_with = "null_default")]
    pub(super) suspend: bool,
    #[serde(deserialize_with = "null_default")]
    pub(super) ordinals: OrdinalsWords,
    #[serde(deserialize_with = "null_default")]
    pub(super) pod_management_policy: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) volume_claim_templates: Vec<Value>,
    pub(super) parallelism: Option<i64>,
    pub(super) completions: Option<i64>,
    #[serde(deserialize_with = "null_default")]
    pub(super) completion_mode: String,
    pub(super) pod_replacement_policy: Option<String>,
    pub(super) pod_failure_policy: Option<IgnoredAny>,
    #[serde(deserialize_with = "null_default")]
    pub(super) job_template: JobTemplateWords,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OrdinalsWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) start: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JobTemplateWords {
    pub(super) spec: Option<Box<WorkloadSpecWords>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WorkloadStatusWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) replicas: i64,
    #[serde(deserialize_with = "null_default")]
    pub(super) current_number_scheduled: i64,
    #[serde(deserialize_with = "null_default")]
    pub(super) active: ActiveWords,
    #[serde(deserialize_with = "null_default")]
    pub(super) succeeded: i64,
    #[serde(deserialize_with = "null_default")]
    pub(super) completed_indexes: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) failed_indexes: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) update_revision: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) conditions: Vec<ConditionWords>,
}

/// What is active: a Job counts its pods, a CronJob lists its Jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ActiveWords {
    Pods(i64),
    Jobs(IgnoredAny),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ConditionWords {
    #[serde(rename = "type", deserialize_with = "null_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) status: String,
}

impl Default for ActiveWords {
    fn default() -> Self {
        ActiveWords::Pods(0)
    }
}

impl WorkloadStatusWords {
    /// Whether a Job has come to its end, well or not.
    pub(super) fn is_finished(&self) -> bool {
        let ends = |condition: &ConditionWords| {
            matches!(&*condition.kind, "Complete" | "Failed") && condition.status == "True"
        };
        self.conditions.iter().any(ends)
    }
}
