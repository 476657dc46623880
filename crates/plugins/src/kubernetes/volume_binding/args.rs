//! The arguments of VolumeBinding.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems};

use crate::kubernetes::node_resources::UtilizationShapePoint;

const DEFAULT_TIMEOUT_SECONDS: i64 = 600;

/// Arguments of [`super::VolumeBinding`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeBindingArgs {
    /// How long binding volumes may take, in seconds (600).
    pub bind_timeout_seconds: Option<i64>,
    /// How storage capacity is scored; must be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<UtilizationShapePoint>>,
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supercargo_testkit::{args_of, problems_of};

    use crate::kubernetes::VolumeBinding;

    #[test]
    fn arguments() {
        assert_eq!(
            args_of::<VolumeBinding>(json!({ "bindTimeoutSeconds": null, "shape": null })),
            json!({ "bindTimeoutSeconds": 600 })
        );
        for (args, problem) in [
            (json!({ "bindTimeoutSeconds": -1 }), "bindTimeoutSeconds: Invalid value: -1: "),
            (json!({ "shape": [] }), "shape: Invalid value: []: unexpected field `shape`"),
            (json!({ "shape": [null] }), "shape: Invalid value: [{\"utilization\":0,\"score\":0}]: "),
            (json!({ "shape": [{ "x": null }] }), "shape[0].x: unknown field `x`"),
            (json!({ "shape": {} }), "shape: invalid type: map"),
        ] {
            let problems = problems_of::<VolumeBinding>(args);
            assert!(problems.len() == 1 && problems[0].starts_with(problem), "{problems:?}");
        }
    }
}
