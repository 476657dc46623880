//! What is known about a version: its fields, and the defaults of the release that read it.

use supercargo_framework::Point;

use super::tables::{Default, Defaults};

/// A version of `KubeSchedulerConfiguration` before v1, or the Policy.
#[derive(Debug)]
pub(crate) struct Release {
    /// Such as `v1beta1`.
    pub(super) version: &'static str,
    /// The release whose defaults count.
    pub(super) kubernetes: &'static str,
    /// The fields of the document.
    pub(super) fields: &'static [&'static str],
    /// The keys below `plugins`, besides those of all versions.
    pub(super) points: &'static [&'static str],
    /// What was enabled by default.
    pub(super) defaults: Defaults,
    /// Whether enabling a default plugin again replaced it; before, it was an error.
    pub(super) replaces_defaults: bool,
    /// Whether PodTopologySpread had no constraints of its own, because another plugin did the spreading.
    pub(super) lists_constraints: bool,
    /// Whether the names of fields below `extenders` could be in any case, and timeouts be numbers.
    pub(super) loose_extenders: bool,
}

/// The fields of all versions.
pub(super) const COMMON: [&str; 9] = [
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "extenders",
];

/// The keys below `plugins` in all versions.
const COMMON_POINTS: [&str; 9] =
    ["queueSort", "preFilter", "filter", "score", "reserve", "permit", "preBind", "bind", "postBind"];

impl Release {
    /// The keys below `plugins`.
    pub(super) fn all_points(&self) -> Vec<&'static str> {
        COMMON_POINTS.iter().chain(self.points).copied().collect()
    }

    pub(super) fn api_version(&self) -> String {
        match self.version {
            "Policy" => "v1 Policy".to_owned(),
            version => format!("{}/{version}", crate::decode::KUBE_GROUP),
        }
    }

    pub(super) fn defaults(&self, point: Point) -> &'static [Default] {
        self.defaults.iter().find(|(known, _)| *known == point).map_or(&[], |(_, list)| list)
    }
}
