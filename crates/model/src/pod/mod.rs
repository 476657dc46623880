//! Pods: what the scheduler reads of them, with equal parts shared.
//!
//! A cluster holds a million pods of a few thousand specs, so everything that pods of one controller have in
//! common ([`PodSpec`], labels, annotations) is parsed once and shared; a [`Pod`] itself is small.

mod affinity;
mod progress;
mod protobuf;
mod qos;
mod requests;
mod spec;
mod words;

use std::cmp::Ordering;
use std::sync::Arc;

pub use affinity::{PodAffinity, PodAffinityTerm, TermNamespaces, WeightedPodAffinityTerm};
pub use progress::{GeneratedClaim, PodPhase};
pub use qos::QosClass;
pub use requests::PodRequests;
pub use spec::{
    ClaimSource, Container, HostPort, InclusionPolicy, NodeAffinity, PodResourceClaim, PodSpec,
    PreemptionPolicy, SeccompProfile, SpreadConstraint, Volume, VolumeSource, WhenUnsatisfiable,
};
pub(crate) use words::SpecWords;
pub use words::{PodWords, Unscheduled};

use crate::intern::Interned;
use crate::labels::Labels;
use crate::raw::RawObject;
use crate::time::Timestamp;

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// `metadata.name`
    pub name: Box<str>,
    /// `metadata.namespace`
    pub namespace: Arc<str>,
    /// `metadata.uid`
    pub uid: Arc<str>,
    /// `metadata.labels`
    pub labels: Interned<Labels>,
    /// `metadata.annotations`
    pub annotations: Interned<Labels>,
    /// Everything below `spec` that does not differ between the pods of one controller.
    pub spec: Interned<PodSpec>,
    /// `spec.nodeName`: set once the pod is bound.
    pub node_name: Option<Arc<str>>,
    /// What differs from pod to pod and is mostly absent, boxed to keep pods small.
    pub status: Option<Box<PodStatus>>,
    /// The controller among `metadata.ownerReferences`.
    pub controller: Option<Interned<ControllerReference>>,
    /// `metadata.creationTimestamp`
    pub created_at: Option<Timestamp>,
    /// `status.startTime`
    pub started_at: Option<Timestamp>,
    /// `metadata.deletionTimestamp`: set while the pod is terminating.
    pub deleted_at: Option<Timestamp>,
    /// The object as it came, if somebody asked for it to be kept.
    pub raw: Option<Arc<RawObject>>,
}

/// The rare parts of a pod's status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodStatus {
    /// `status.nominatedNodeName`: where preemption is making room for the pod.
    pub nominated_node_name: Option<Arc<str>>,
    /// What the pod takes on its node, where a resize makes that differ from its spec.
    pub resized: Option<PodRequests>,
    /// The scheduler evicted the pod: condition `DisruptionTarget` with reason `PreemptionByScheduler`.
    pub preempted_by_scheduler: bool,
    /// `status.phase`, if somebody reads it ([`crate::Decoder::keeping_progress`]); see [`Pod::phase`].
    pub phase: Option<PodPhase>,
    /// When condition `PodScheduled` became `True`, if somebody reads it.
    pub scheduled_at: Option<Timestamp>,
    /// `status.qosClass`, where it is another than what follows from the spec.
    pub qos_class: Option<QosClass>,
    /// `status.resourceClaimStatuses`: the claims that were made for the pod.
    pub generated_claims: Box<[GeneratedClaim]>,
}

/// The owner that controls a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerReference {
    /// `apiVersion`
    pub api_version: Box<str>,
    /// `kind`
    pub kind: Box<str>,
    /// `name`, in the pod's namespace
    pub name: Box<str>,
    /// `uid`: what tells it from an earlier owner of the same name; empty in manifests written by hand
    pub uid: Box<str>,
}

impl Pod {
    /// `spec.priority`, 0 if unset.
    pub fn priority(&self) -> i32 {
        self.spec.priority
    }

    /// `status.nominatedNodeName`
    pub fn nominated_node_name(&self) -> Option<&Arc<str>> {
        self.status.as_ref()?.nominated_node_name.as_ref()
    }

    /// `status.phase`. Where it is not kept, what it is nearly always: `Running` on a node, `Pending` without one.
    pub fn phase(&self) -> PodPhase {
        let usual = if self.node_name.is_some() { PodPhase::Running } else { PodPhase::Pending };
        self.status.as_ref().and_then(|status| status.phase).unwrap_or(usual)
    }

    /// `status.qosClass`, or what follows from the spec.
    pub fn qos_class(&self) -> QosClass {
        self.status.as_ref().and_then(|status| status.qos_class).unwrap_or(self.spec.qos_class)
    }

    /// When the pod was scheduled: since when its condition `PodScheduled` is `True`. Known only if somebody reads it.
    pub fn scheduled_at(&self) -> Option<Timestamp> {
        self.status.as_ref()?.scheduled_at
    }

    /// The ResourceClaim that an entry of `spec.resourceClaims` stands for, by name; none if it has not been made yet, or
    /// none is needed.
    pub fn claim_name<'a>(&'a self, claim: &'a PodResourceClaim) -> Option<&'a str> {
        match &claim.source {
            ClaimSource::Claim(name) => Some(name),
            ClaimSource::Template(_) => {
                let mut generated = self.status.iter().flat_map(|status| &status.generated_claims);
                generated.find(|generated| generated.name == claim.name)?.claim_name.as_deref()
            }
            ClaimSource::Unknown => None,
        }
    }

    /// Whether the pod is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// What the pod takes on the node it is bound to: its requests, or what a resize in progress holds.
    pub fn requests(&self) -> &PodRequests {
        self.status.as_ref().and_then(|status| status.resized.as_ref()).unwrap_or(&self.spec.requests)
    }

    /// `namespace/name`, as people write it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// As the keys of the two compare, without making them where the namespace is the same; most pods of one share its text. Two
    /// namespaces cannot be compared by themselves, as `/` sorts after `-`: `a-b/pod` comes before `a/pod`.
    pub fn compare_keys(&self, other: &Pod) -> Ordering {
        let is_same = Arc::ptr_eq(&self.namespace, &other.namespace) || self.namespace == other.namespace;
        if is_same { self.name.cmp(&other.name) } else { self.key().cmp(&other.key()) }
    }
}

#[cfg(test)]
mod tests;
