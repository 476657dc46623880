use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems};

const DEFAULT_TIMEOUT_SECONDS: i64 = 600;

/// Arguments of [`super::VolumeBinding`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeBindingArgs {
    /// How long binding volumes may take, in seconds (600).
    pub bind_timeout_seconds: Option<i64>,
    /// How storage capacity is scored; must be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<serde_json::Value>>,
}

impl VolumeBindingArgs {
    pub(super) fn bind_timeout(&self) -> Duration {
        let seconds = self.bind_timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }
}

impl Args for VolumeBindingArgs {
    fn complete(&mut self) {
        self.bind_timeout_seconds.get_or_insert(DEFAULT_TIMEOUT_SECONDS);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        if let Some(seconds) = self.bind_timeout_seconds.filter(|seconds| *seconds < 0) {
            let detail = "invalid BindTimeoutSeconds, should not be a negative value";
            problems.invalid("bindTimeoutSeconds", seconds, detail);
        }
        if let Some(shape) = &self.shape {
            let detail =
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";
            problems.invalid("shape", shape, detail);
        }
    }
}
