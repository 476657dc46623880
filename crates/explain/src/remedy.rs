//! What can be changed so that a pod fits.

use std::collections::BTreeMap;

use serde::Serialize;
use supercargo_model::taints::Taint;

use crate::explanation::is_false;
use crate::text::enumeration;
use crate::what_if::taint_text;

/// Something that would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hint {
    /// What, in words for people.
    pub text: String,
    /// What, for programs.
    pub remedy: Remedy,
    /// How many nodes would be feasible then.
    pub opens: usize,
    /// Some of them.
    pub examples: Vec<String>,
    /// Whether it may be wrong, because something that counts could not be read.
    #[serde(rename = "uncertain", skip_serializing_if = "is_false")]
    pub is_uncertain: bool,
}

/// What to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "change", rename_all_fields = "camelCase")]
pub enum Remedy {
    /// More of some resources on a node: free it, or add it.
    Resources {
        /// The node that lacks least.
        node: String,
        /// What it lacks, as quantities.
        missing: BTreeMap<String, String>,
    },
    /// More pods on a node.
    PodSlot {
        /// The node.
        node: String,
        /// How many more it would have to take.
        lacking: i64,
    },
    /// A toleration for a taint.
    Toleration {
        /// The taint's key.
        key: String,
        /// Its value.
        value: String,
        /// Its effect.
        effect: String,
    },
    /// A node that is cordoned.
    Uncordon {
        /// The node.
        node: String,
    },
    /// No such entry in the pod's `nodeSelector`.
    DropNodeSelector {
        /// The entry's key.
        key: String,
        /// Its value.
        value: String,
    },
    /// No required node affinity.
    DropNodeAffinity,
    /// No required affinity to other pods.
    DropPodAffinity,
    /// No required anti-affinity to other pods.
    DropPodAntiAffinity,
    /// A larger `maxSkew`.
    MaxSkew {
        /// Which of the pod's constraints.
        constraint: usize,
        /// The smallest skew that was found to help.
        to: i32,
    },
    /// No host ports.
    DropHostPorts,
    /// No such volume, or another in its place.
    DropVolume {
        /// Its name in the pod.
        volume: String,
        /// The claim it stands for.
        #[serde(skip_serializing_if = "Option::is_none")]
        claim: Option<String>,
        /// What that is bound to.
        #[serde(skip_serializing_if = "Option::is_none")]
        persistent_volume: Option<String>,
    },
    /// Other pods that go.
    RemovePods {
        /// Which, as `namespace/name`.
        pods: Vec<String>,
    },
    /// No required node affinity that the profile adds to all pods.
    DropAddedAffinity {
        /// The profile's `schedulerName`.
        profile: String,
    },
    /// A higher priority, so that it may evict others.
    Priority {
        /// The priority it needs.
        at_least: i32,
        /// Where it would go.
        node: String,
        /// Which pods would be evicted.
        victims: Vec<String>,
    },
    /// Several of these at once, on one node.
    Several {
        /// The node.
        node: String,
        /// What it takes.
        remedies: Vec<Remedy>,
    },
}

impl Remedy {
    /// A toleration for this taint.
    pub(crate) fn toleration(taint: &Taint) -> Self {
        let text = taint_text(taint);
        let effect = text.rsplit_once(':').map_or("", |(_, effect)| effect);
        Remedy::Toleration {
            key: taint.key.to_string(),
            value: taint.value.to_string(),
            effect: effect.to_owned(),
        }
    }

    /// Whether it is about pods that the scheduler would evict.
    pub(crate) fn evicts(&self) -> bool {
        matches!(self, Remedy::Priority { .. })
    }

    /// What to change, in words for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Remedy::Resources { missing, .. } => resource_list(missing),
            Remedy::Toleration { key, value, effect } if value.is_empty() => {
                format!("a toleration for {key}:{effect}")
            }
            Remedy::Toleration { key, value, effect } => format!("a toleration for {key}={value}:{effect}"),
            Remedy::Uncordon { .. } => "uncordon it".to_owned(),
            Remedy::DropNodeSelector { key, value } => format!("no nodeSelector {key}={value}"),
            Remedy::DropNodeAffinity => "no required node affinity".to_owned(),
            Remedy::DropPodAffinity => "no required pod affinity".to_owned(),
            Remedy::DropPodAntiAffinity => "no required pod anti-affinity".to_owned(),
            Remedy::DropHostPorts => "no host ports".to_owned(),
            Remedy::DropVolume { volume, claim: None, .. } => format!("no volume {volume}"),
            Remedy::DropVolume { volume, claim: Some(claim), persistent_volume: None } => {
                format!("no volume {volume} (claim {claim})")
            }
            Remedy::DropVolume { volume, claim: Some(claim), persistent_volume: Some(bound) } => {
                format!("no volume {volume} (claim {claim}, bound to {bound})")
            }
            other => format!("{other:?}"),
        }
    }
}

/// What is missing, in words for people.
pub(crate) fn resource_list(missing: &BTreeMap<String, String>) -> String {
    let list: Vec<String> = missing.iter().map(|(name, amount)| format!("{amount} more {name}")).collect();
    enumeration(&list, " and ")
}
