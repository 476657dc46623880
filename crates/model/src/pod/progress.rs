//! How far a pod is, and what was made for it on the way.

use serde::Deserialize;

/// `status.phase`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodPhase {
    /// Not all of its containers have been started yet.
    #[default]
    Pending,
    /// On a node, and at least one container runs, starts or restarts.
    Running,
    /// All containers have ended well.
    Succeeded,
    /// All containers have ended, not all of them well.
    Failed,
    /// Its node does not answer, or the phase is one that nobody knows.
    Unknown,
}

/// A ResourceClaim that was made for a pod from a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct GeneratedClaim {
    /// The entry of `spec.resourceClaims` that it was made for.
    #[serde(deserialize_with = "crate::wire::null_default")]
    pub name: Box<str>,
    /// The name of the ResourceClaim; none if the pod needs none.
    #[serde(rename = "resourceClaimName")]
    pub claim_name: Option<Box<str>>,
}

impl PodPhase {
    /// A pod whose phase is not written is a new one.
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "" | "Pending" => PodPhase::Pending,
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Unknown,
        }
    }

    /// Whether the pod has run its course, and takes no room any more.
    pub fn is_finished(self) -> bool {
        matches!(self, PodPhase::Succeeded | PodPhase::Failed)
    }
}
