//! A pod as the API writes it, as far as the scheduler reads it.

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::spec::Volume;
use super::{ControllerReference, GeneratedClaim, Pod, PodPhase, PodRequests, PodSpec, PodStatus, QosClass};
use crate::decode::{FieldPath, FieldStep};
use crate::intern::{Interned, Interner};
use crate::labels::{LabelSelectorWords, Labels};
use crate::node_selector::{NodeSelectorWords, PreferredTermWords};
use crate::object::MetadataWords;
use crate::quantity::Quantity;
use crate::raw::RawObject;
use crate::resources::{ResourceList, ResourceRequirements};
use crate::taints::Toleration;
use crate::time::Timestamp;
use crate::wire::null_default;

/// A pod as it is written; [`crate::Interner::pod`] makes a [`super::Pod`] of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodWords {
    #[serde(deserialize_with = "null_default")]
    pub(crate) metadata: MetadataWords,
    #[serde(deserialize_with = "null_default")]
    pub(crate) spec: SpecWords,
    #[serde(deserialize_with = "null_default")]
    pub(crate) status: StatusWords,
    /// The object as it came, if it is to be kept.
    #[serde(skip)]
    pub raw: Option<Arc<RawObject>>,
    /// Whether the pod is to know its phase, and when it was scheduled.
    #[serde(skip)]
    pub(crate) keeps_progress: bool,
}

/// What a pod says about why it was not scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unscheduled {
    /// A word in CamelCase.
    pub reason: Box<str>,
    /// The same in words for people.
    pub message: Box<str>,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl PodWords {
    /// Whether the pod has run its course and takes no room any more. kube-scheduler does not watch such pods.
    pub fn is_finished(&self) -> bool {
        self.phase().is_finished()
    }

    /// `status.phase`
    pub fn phase(&self) -> PodPhase {
        PodPhase::parse(&self.status.phase)
    }

    /// Whether the pod has run its course as it should.
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    /// Fills in what the API server would, where a manifest written by hand leaves it out: the namespace, the scheduler,
    /// and something to know the pod by.
    pub fn complete(&mut self) {
        if self.metadata.namespace.is_empty() {
            self.metadata.namespace = "default".to_owned();
        }
        if self.spec.scheduler_name.is_empty() {
            self.spec.scheduler_name = "default-scheduler".into();
        }
        if self.metadata.uid.is_empty() {
            self.metadata.uid = format!("{}/{}", self.metadata.namespace, self.metadata.name);
        }
    }

    /// Where less than nothing is asked for. The API server takes no such pod, and the scheduler's arithmetic is not made
    /// for one.
    pub fn negative_amount(&self) -> Option<FieldPath> {
        let field = |name: &str| FieldStep::Field(name.to_owned());
        let of_list = |list: &ResourceList| {
            let is_negative = |(_, quantity): &(&Arc<str>, &Quantity)| quantity.is_negative();
            list.iter().find(is_negative).map(|(resource, _)| field(resource))
        };
        let of_resources = |resources: &ResourceRequirements| {
            let requests = of_list(&resources.requests).map(|resource| [field("requests"), resource]);
            requests.or_else(|| of_list(&resources.limits).map(|resource| [field("limits"), resource]))
        };
        let of_containers = |name: &str, containers: &[ContainerWords]| {
            containers.iter().enumerate().find_map(|(number, container)| {
                let steps = of_resources(&container.resources)?;
                Some(
                    [field("spec"), field(name), FieldStep::Element(number), field("resources")]
                        .into_iter()
                        .chain(steps)
                        .collect(),
                )
            })
        };
        let spec = &self.spec;
        of_containers("containers", &spec.containers)
            .or_else(|| of_containers("initContainers", &spec.init_containers))
            .or_else(|| {
                let steps = of_resources(spec.resources.as_ref()?)?;
                Some([field("spec"), field("resources")].into_iter().chain(steps).collect())
            })
            .or_else(|| {
                Some([field("spec"), field("overhead"), of_list(&spec.overhead)?].into_iter().collect())
            })
    }

    /// The node that it is bound to.
    pub fn node_name(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// `metadata`
    pub fn metadata(&self) -> &MetadataWords {
        &self.metadata
    }

    /// Why the pod was not scheduled when a scheduler last tried: its condition `PodScheduled`, if that is `False`.
    pub fn unscheduled(&self) -> Option<Unscheduled> {
        let is_meant =
            |condition: &&ConditionWords| condition.kind == "PodScheduled" && condition.status == "False";
        let condition = self.status.conditions.iter().find(is_meant)?;
        Some(Unscheduled {
            reason: condition.reason.as_str().into(),
            message: condition.message.as_str().into(),
            since: condition.last_transition_time,
        })
    }

    /// `metadata`, for whoever has to fill in more.
    pub fn metadata_mut(&mut self) -> &mut MetadataWords {
        &mut self.metadata
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SpecWords {
    pub(super) affinity: Option<Box<AffinityWords>>,
    #[serde(deserialize_with = "null_default")]
    pub(super) containers: Vec<ContainerWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) host_network: bool,
    pub(super) host_users: Option<bool>,
    #[serde(deserialize_with = "null_default")]
    pub(super) init_containers: Vec<ContainerWords>,
    pub(crate) node_name: Option<Arc<str>>,
    pub(super) node_selector: Option<Labels>,
    #[serde(deserialize_with = "null_default")]
    pub(super) overhead: ResourceList,
    pub(super) preemption_policy: Option<String>,
    pub(super) priority: Option<i32>,
    #[serde(deserialize_with = "null_default")]
    pub(super) priority_class_name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) resource_claims: Vec<ClaimWords>,
    pub(super) resources: Option<ResourceRequirements>,
    #[serde(deserialize_with = "null_default")]
    pub(super) scheduler_name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) scheduling_gates: Vec<NameWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) security_context: SecurityWords,
    #[serde(deserialize_with = "null_default")]
    pub(super) tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "null_default")]
    pub(super) topology_spread_constraints: Vec<SpreadConstraintWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) volumes: Vec<VolumeWords>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(super) struct NameWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) name: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaimWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) name: Box<str>,
    pub(super) resource_claim_name: Option<Box<str>>,
    pub(super) resource_claim_template_name: Option<Box<str>>,
}

/// A security context, of a pod or a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SecurityWords {
    pub(super) seccomp_profile: Option<Box<SeccompWords>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SeccompWords {
    #[serde(rename = "type", deserialize_with = "null_default")]
    pub(super) kind: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) localhost_profile: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AffinityWords {
    pub(super) node_affinity: Option<NodeAffinityWords>,
    pub(super) pod_affinity: Option<PodAffinityWords>,
    pub(super) pod_anti_affinity: Option<PodAffinityWords>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(super) struct NodeAffinityWords {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(super) required: Option<NodeSelectorWords>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub(super) preferred: Option<Vec<PreferredTermWords>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(super) struct PodAffinityWords {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "null_default")]
    pub(super) required: Vec<AffinityTermWords>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "null_default")]
    pub(super) preferred: Vec<WeightedAffinityTermWords>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AffinityTermWords {
    pub(super) label_selector: Option<LabelSelectorWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) namespaces: Vec<Box<str>>,
    pub(super) namespace_selector: Option<LabelSelectorWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) topology_key: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WeightedAffinityTermWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) weight: i32,
    #[serde(deserialize_with = "null_default")]
    pub(super) pod_affinity_term: AffinityTermWords,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpreadConstraintWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) max_skew: i32,
    #[serde(deserialize_with = "null_default")]
    pub(super) topology_key: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) when_unsatisfiable: String,
    pub(super) label_selector: Option<LabelSelectorWords>,
    pub(super) min_domains: Option<i32>,
    pub(super) node_affinity_policy: Option<String>,
    pub(super) node_taints_policy: Option<String>,
    #[serde(deserialize_with = "null_default")]
    pub(super) match_label_keys: Vec<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) image: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) resources: ResourceRequirements,
    #[serde(deserialize_with = "null_default")]
    pub(super) ports: Vec<PortWords>,
    pub(super) restart_policy: Option<String>,
    #[serde(deserialize_with = "null_default")]
    pub(super) restart_policy_rules: Vec<RestartRuleWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) security_context: SecurityWords,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(super) struct RestartRuleWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) action: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PortWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) host_port: i32,
    #[serde(rename = "hostIP", deserialize_with = "null_default")]
    pub(super) host_ip: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) protocol: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct VolumeWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) name: Box<str>,
    pub(super) persistent_volume_claim: Option<Box<DiskWords>>,
    pub(super) ephemeral: Option<Present>,
    pub(super) image: Option<Box<DiskWords>>,
    pub(super) csi: Option<Box<DiskWords>>,
    pub(super) gce_persistent_disk: Option<Box<DiskWords>>,
    pub(super) aws_elastic_block_store: Option<Box<DiskWords>>,
    pub(super) azure_disk: Option<Box<DiskWords>>,
    pub(super) azure_file: Option<Present>,
    pub(super) cinder: Option<Box<DiskWords>>,
    pub(super) portworx_volume: Option<Box<DiskWords>>,
    pub(super) vsphere_volume: Option<Present>,
    pub(super) iscsi: Option<Box<DiskWords>>,
    pub(super) rbd: Option<Box<DiskWords>>,
}

/// Something is there, whatever it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Present;

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Present)
    }
}

/// The fields that tell one volume from another; each kind of volume has a few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DiskWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) claim_name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) reference: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) driver: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) pd_name: Box<str>,
    #[serde(rename = "volumeID", deserialize_with = "null_default")]
    pub(super) volume_id: Box<str>,
    pub(super) kind: Option<Box<str>>,
    #[serde(rename = "diskURI", deserialize_with = "null_default")]
    pub(super) disk_uri: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) iqn: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) monitors: Vec<Box<str>>,
    #[serde(deserialize_with = "null_default")]
    pub(super) pool: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) image: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub(super) read_only: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) phase: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) qos_class: String,
    pub(super) nominated_node_name: Option<Arc<str>>,
    pub(super) start_time: Option<Timestamp>,
    #[serde(deserialize_with = "null_default")]
    pub(super) conditions: Vec<ConditionWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) container_statuses: Vec<ContainerStatusWords>,
    #[serde(deserialize_with = "null_default")]
    pub(super) init_container_statuses: Vec<ContainerStatusWords>,
    pub(super) resources: Option<ResourceRequirements>,
    #[serde(deserialize_with = "null_default")]
    pub(super) allocated_resources: ResourceList,
    #[serde(deserialize_with = "null_default")]
    pub(super) resource_claim_statuses: Box<[GeneratedClaim]>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ConditionWords {
    #[serde(rename = "type", deserialize_with = "null_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) status: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) reason: String,
    #[serde(deserialize_with = "null_default")]
    pub(super) message: String,
    pub(super) last_transition_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatusWords {
    #[serde(deserialize_with = "null_default")]
    pub(super) name: Box<str>,
    pub(super) resources: Option<ResourceRequirements>,
    #[serde(deserialize_with = "null_default")]
    pub(super) allocated_resources: ResourceList,
}

/// The specs of so many distinct words are found again without being made anew. All of them are forgotten then: a cluster with
/// more kinds of pods than that gains little.
const RECENT_SPECS_MAX: usize = 256;

impl Interner {
    /// Makes a pod of its words, sharing what it has in common with others.
    pub fn pod(&mut self, words: PodWords) -> Pod {
        let phase = words.phase();
        let PodWords { metadata, mut spec, status, raw, keeps_progress } = words;
        let some_name = |name: Option<Arc<str>>, interner: &mut Self| {
            name.filter(|name| !name.is_empty()).map(|name| interner.name(&name))
        };
        let controller = metadata.owner_references.into_iter().find(|owner| owner.controller);
        let node_name = spec.node_name.take();
        let known = self.spec_of(&mut spec);
        let shared_spec = known.clone().unwrap_or_else(|| self.specs.intern(PodSpec::parse(&spec)));
        let rare = PodStatus {
            nominated_node_name: some_name(status.nominated_node_name.clone(), self),
            resized: PodRequests::of_status(&spec, &status, &shared_spec.requests),
            preempted_by_scheduler: status.conditions.iter().any(|condition| {
                condition.kind == "DisruptionTarget"
                    && condition.status == "True"
                    && condition.reason == "PreemptionByScheduler"
            }),
            phase: keeps_progress.then_some(phase),
            scheduled_at: scheduled_at(&status.conditions).filter(|_| keeps_progress),
            qos_class: QosClass::parse(&status.qos_class).filter(|class| *class != shared_spec.qos_class),
            generated_claims: status.resource_claim_statuses,
        };
        if known.is_none() {
            self.remember_spec(spec, &shared_spec);
        }
        Pod {
            name: metadata.name.into(),
            namespace: self.name(&metadata.namespace),
            uid: metadata.uid.into(),
            labels: self.labels.intern(metadata.labels),
            annotations: self.labels.intern(metadata.annotations),
            spec: shared_spec,
            node_name: some_name(node_name, self),
            status: (rare != PodStatus::default()).then(|| Box::new(rare)),
            controller: controller.map(|owner| {
                self.controllers.intern(ControllerReference {
                    api_version: owner.api_version,
                    kind: owner.kind,
                    name: owner.name,
                    uid: owner.uid,
                })
            }),
            created_at: metadata.creation_timestamp,
            started_at: status.start_time,
            deleted_at: metadata.deletion_timestamp,
            raw,
        }
    }

    /// The spec that these words say, if it was made of the same words lately: a set of pods is often read in a row.
    fn spec_of(&mut self, words: &mut SpecWords) -> Option<Interned<PodSpec>> {
        // The volume of a pod's credentials has a name of its own in every pod, and no scheduler cares.
        words.volumes.retain(|volume| Volume::parse(volume).is_some());
        self.recent_specs.get(words).cloned()
    }

    fn remember_spec(&mut self, words: SpecWords, spec: &Interned<PodSpec>) {
        if self.recent_specs.len() >= RECENT_SPECS_MAX {
            self.recent_specs.clear();
        }
        self.recent_specs.insert(words, spec.clone());
    }
}

/// Since when the pod is scheduled.
fn scheduled_at(conditions: &[ConditionWords]) -> Option<Timestamp> {
    let is_meant =
        |condition: &&ConditionWords| condition.kind == "PodScheduled" && condition.status == "True";
    conditions.iter().find(is_meant)?.last_transition_time
}
