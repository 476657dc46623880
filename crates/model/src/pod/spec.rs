//! What the scheduler reads of a pod's spec, parsed once for all pods that share it.

use super::affinity::PodAffinity;
use super::qos::QosClass;
use super::requests::PodRequests;
use super::words::{
    ClaimWords, ContainerWords, DiskWords, NodeAffinityWords, SecurityWords, SpecWords,
    SpreadConstraintWords, VolumeWords,
};
use crate::labels::{LabelSelector, Labels, SelectorError};
use crate::node_selector::{NodeSelector, PreferredTerm, SelectableNode};
use crate::resources::{ResourceList, ResourceRequirements, Resources};
use crate::taints::Toleration;

/// The parts of a pod's spec that scheduling depends on; equal for all pods of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpec {
    /// `schedulerName`: the profile that is responsible.
    pub scheduler_name: Box<str>,
    /// `priority`, 0 if unset.
    pub priority: i32,
    /// `priorityClassName`, empty if unset.
    pub priority_class_name: Box<str>,
    /// `preemptionPolicy`
    pub preemption_policy: PreemptionPolicy,
    /// `schedulingGates`, by name.
    pub scheduling_gates: Box<[Box<str>]>,
    /// `tolerations`
    pub tolerations: Box<[Toleration]>,
    /// `nodeSelector`; an empty one differs from none.
    pub node_selector: Option<Labels>,
    /// `affinity.nodeAffinity`
    pub node_affinity: NodeAffinity,
    /// `affinity.podAffinity` and `affinity.podAntiAffinity`
    pub pod_affinity: PodAffinity,
    /// `topologySpreadConstraints`
    pub spread_constraints: Box<[SpreadConstraint]>,
    /// What all containers together ask for.
    pub requests: PodRequests,
    /// What [`PodSpec::plain_requests`] says, where that is something else.
    pub differing_plain_requests: Option<Box<Resources>>,
    /// `resources`: what the pod asks for as a whole, of what a pod can; none if that is nothing.
    pub whole_resources: Option<Box<ResourceRequirements>>,
    /// `overhead`: what the pod takes besides its containers; it is part of `requests`.
    pub overhead: ResourceList,
    /// The quality of service that follows from this.
    pub qos_class: QosClass,
    /// What NodeResourcesFit scores the pod by.
    pub fit_score_requests: ResourceList,
    /// `containers`
    pub containers: Box<[Container]>,
    /// `initContainers`
    pub init_containers: Box<[Container]>,
    /// The volumes that matter for placement.
    pub volumes: Box<[Volume]>,
    /// `resourceClaims`
    pub resource_claims: Box<[PodResourceClaim]>,
    /// `securityContext.seccompProfile`: holds for containers that have none of their own.
    pub seccomp_profile: Option<Box<SeccompProfile>>,
    /// `hostNetwork`
    pub host_network: bool,
    /// `hostUsers`, true if unset.
    pub host_users: bool,
}

/// Which nodes the pod must or should run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeAffinity {
    /// Which nodes it must run on.
    pub required: Option<NodeSelector>,
    /// Which nodes it should run on; an empty list differs from none.
    pub preferred: Option<Result<Box<[PreferredTerm]>, SelectorError>>,
}

/// A container, as far as its placement goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Container {
    /// `name`
    pub name: Box<str>,
    /// `image`, with the tag `latest` where it has none.
    pub image: Box<str>,
    /// `resources`
    pub resources: ResourceRequirements,
    /// Whether an init container goes on running beside the others.
    pub is_sidecar: bool,
    /// The ports it takes on the host.
    pub host_ports: Box<[HostPort]>,
    /// Whether a restart rule may restart the whole pod.
    pub may_restart_all_containers: bool,
    /// `securityContext.seccompProfile`
    pub seccomp_profile: Option<Box<SeccompProfile>>,
}

/// Which system calls a container may make.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SeccompProfile {
    /// The container runtime's own.
    RuntimeDefault,
    /// All.
    Unconfined,
    /// A profile on the node, by its path below the kubelet's folder of profiles.
    Localhost(Box<str>),
    /// A type that nobody knows.
    Other(Box<str>),
}

/// A ResourceClaim that a pod needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodResourceClaim {
    /// What containers know it by.
    pub name: Box<str>,
    /// Where it comes from.
    pub source: ClaimSource,
}

/// Where a ResourceClaim of a pod comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimSource {
    /// It is there, by this name.
    Claim(Box<str>),
    /// One is made for the pod from the template of this name; see [`super::Pod::claim_name`].
    Template(Box<str>),
    /// The pod does not say. The API server admits no such pod.
    Unknown,
}

/// A port that is taken on the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// `protocol`, TCP if unset.
    pub protocol: Box<str>,
    /// `hostIP`, 0.0.0.0 if unset.
    pub ip: Box<str>,
    /// `hostPort`
    pub port: i32,
}

/// How evenly pods must be spread over the domains of a topology.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpreadConstraint {
    /// How far a domain may be ahead of the emptiest.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub topology_key: Box<str>,
    /// Whether the constraint is a rule or a wish.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// Which pods are counted.
    pub selector: Result<LabelSelector, SelectorError>,
    /// Labels whose values on the incoming pod must be equal on counted ones.
    pub match_label_keys: Box<[Box<str>]>,
    /// With fewer domains than this the emptiest counts as empty.
    pub min_domains: i32,
    /// Whether nodes that the pod's node affinity excludes count.
    pub node_affinity_policy: InclusionPolicy,
    /// Whether nodes whose taints the pod does not tolerate count.
    pub node_taints_policy: InclusionPolicy,
}

/// What a spread constraint does where it cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhenUnsatisfiable {
    /// The node is rejected.
    DoNotSchedule,
    /// The node is scored lower.
    ScheduleAnyway,
    /// Nothing: the API server admits no other value.
    Unknown,
}

/// Whether a rule decides which nodes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InclusionPolicy {
    /// Nodes that the rule excludes do not count.
    Honor,
    /// The rule plays no part.
    Ignore,
}

/// Whether the pod may push others aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreemptionPolicy {
    /// It may evict pods of lower priority.
    #[default]
    PreemptLowerPriority,
    /// It waits its turn.
    Never,
}

/// A volume that matters for placement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Volume {
    /// `name`
    pub name: Box<str>,
    /// Where the data is.
    pub source: VolumeSource,
}

/// Where a volume's data is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub enum VolumeSource {
    /// A claim, by name.
    Claim(Box<str>),
    /// A claim of the pod's own, made from a template.
    Ephemeral,
    /// An image.
    Image(Box<str>),
    /// A CSI volume written in the pod.
    Csi {
        driver: Box<str>,
    },
    GcePersistentDisk {
        name: Box<str>,
        read_only: bool,
    },
    AwsElasticBlockStore {
        volume_id: Box<str>,
    },
    AzureDisk {
        uri: Box<str>,
        /// `Managed`, or something that CSI knows no counterpart of.
        kind: Option<Box<str>>,
    },
    AzureFile,
    VsphereVolume,
    Cinder {
        volume_id: Box<str>,
    },
    Portworx {
        volume_id: Box<str>,
    },
    Iscsi {
        iqn: Box<str>,
        read_only: bool,
    },
    Rbd {
        monitors: Box<[Box<str>]>,
        pool: Box<str>,
        image: Box<str>,
        read_only: bool,
    },
}

impl PodSpec {
    pub(super) fn parse(words: &SpecWords) -> Self {
        let affinity = words.affinity.as_deref();
        let requests = PodRequests::of_spec(words);
        let differing_plain_requests = requests.differing_plain(words);
        PodSpec {
            scheduler_name: words.scheduler_name.clone(),
            priority: words.priority.unwrap_or(0),
            priority_class_name: words.priority_class_name.clone(),
            preemption_policy: match words.preemption_policy.as_deref() {
                Some("Never") => PreemptionPolicy::Never,
                _ => PreemptionPolicy::PreemptLowerPriority,
            },
            scheduling_gates: words.scheduling_gates.iter().map(|gate| gate.name.clone()).collect(),
            tolerations: words.tolerations.clone().into(),
            node_selector: words.node_selector.clone(),
            node_affinity: NodeAffinity::parse(affinity.and_then(|affinity| affinity.node_affinity.as_ref())),
            pod_affinity: PodAffinity::parse(
                affinity.and_then(|affinity| affinity.pod_affinity.as_ref()),
                affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()),
            ),
            spread_constraints: words
                .topology_spread_constraints
                .iter()
                .map(SpreadConstraint::parse)
                .collect(),
            requests,
            differing_plain_requests,
            whole_resources: words.whole_resources().map(|whole| Box::new(whole.clone())),
            overhead: words.overhead.clone(),
            qos_class: QosClass::of_spec(words),
            fit_score_requests: PodRequests::for_fit_score(words),
            containers: words.containers.iter().map(Container::parse).collect(),
            init_containers: words.init_containers.iter().map(Container::parse).collect(),
            volumes: words.volumes.iter().filter_map(Volume::parse).collect(),
            resource_claims: words.resource_claims.iter().map(PodResourceClaim::parse).collect(),
            seccomp_profile: SeccompProfile::parse(&words.security_context),
            host_network: words.host_network,
            host_users: words.host_users.unwrap_or(true),
        }
    }

    /// What the containers ask for together, or the largest init container if that is more, and the overhead: who adds up like that knows
    /// neither sidecars nor requests at pod level.
    pub fn plain_requests(&self) -> &Resources {
        self.differing_plain_requests.as_deref().unwrap_or(&self.requests.resources)
    }

    /// Whether the node satisfies `nodeSelector`.
    pub fn selects_node(&self, node: &impl SelectableNode) -> bool {
        let selector = self.node_selector.iter().flat_map(Labels::iter);
        { selector }.all(|(key, value)| node.label(key) == Some(value))
    }

    /// Whether the node satisfies `nodeSelector` and the required node affinity.
    pub fn admits_node(&self, node: &impl SelectableNode) -> bool {
        self.selects_node(node)
            && self.node_affinity.required.as_ref().is_none_or(|required| required.matches(node))
    }

    /// The ports that the pod takes on its host: those of its containers and of its sidecars.
    pub fn host_ports(&self) -> impl Iterator<Item = &HostPort> {
        let sidecars = self.init_containers.iter().filter(|container| container.is_sidecar);
        sidecars.chain(&self.containers).flat_map(|container| &container.host_ports)
    }

    /// The seccomp profile that holds for a container of the pod: its own, or the pod's.
    pub fn seccomp_profile_of<'a>(&'a self, container: &'a Container) -> Option<&'a SeccompProfile> {
        container.seccomp_profile.as_deref().or(self.seccomp_profile.as_deref())
    }

    /// The names of the claims that the pod mounts (ephemeral ones not included).
    pub fn claim_names(&self) -> impl Iterator<Item = &str> {
        self.volumes.iter().filter_map(|volume| match &volume.source {
            VolumeSource::Claim(name) => Some(&**name),
            _ => None,
        })
    }
}

impl NodeAffinity {
    fn parse(words: Option<&NodeAffinityWords>) -> Self {
        NodeAffinity {
            required: words.and_then(|words| words.required.as_ref()).map(NodeSelector::parse),
            preferred: words.and_then(|words| words.preferred.as_deref()).map(PreferredTerm::parse_all),
        }
    }
}

impl SpreadConstraint {
    fn parse(words: &SpreadConstraintWords) -> Self {
        let policy = |text: Option<&str>, default| match text {
            None => default,
            Some("Honor") => InclusionPolicy::Honor,
            Some(_) => InclusionPolicy::Ignore,
        };
        SpreadConstraint {
            max_skew: words.max_skew,
            topology_key: words.topology_key.clone(),
            when_unsatisfiable: match words.when_unsatisfiable.as_str() {
                "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
                "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
                _ => WhenUnsatisfiable::Unknown,
            },
            selector: LabelSelector::parse(words.label_selector.as_ref()),
            match_label_keys: words.match_label_keys.clone().into(),
            min_domains: words.min_domains.unwrap_or(1),
            node_affinity_policy: policy(words.node_affinity_policy.as_deref(), InclusionPolicy::Honor),
            node_taints_policy: policy(words.node_taints_policy.as_deref(), InclusionPolicy::Ignore),
        }
    }
}

impl Container {
    fn parse(words: &ContainerWords) -> Self {
        Container {
            name: words.name.clone(),
            image: normalized_image(&words.image),
            resources: words.resources.clone(),
            is_sidecar: words.is_sidecar(),
            host_ports: (words.ports.iter().filter(|port| port.host_port > 0))
                .map(|port| HostPort {
                    protocol: if port.protocol.is_empty() { "TCP".into() } else { port.protocol.clone() },
                    ip: if port.host_ip.is_empty() { HostPort::ANY_IP.into() } else { port.host_ip.clone() },
                    port: port.host_port,
                })
                .collect(),
            may_restart_all_containers: (words.restart_policy_rules.iter())
                .any(|rule| rule.action == "RestartAllContainers"),
            seccomp_profile: SeccompProfile::parse(&words.security_context),
        }
    }
}

impl PodResourceClaim {
    fn parse(words: &ClaimWords) -> Self {
        let source = match (&words.resource_claim_name, &words.resource_claim_template_name) {
            (Some(name), _) => ClaimSource::Claim(name.clone()),
            (None, Some(template)) => ClaimSource::Template(template.clone()),
            (None, None) => ClaimSource::Unknown,
        };
        PodResourceClaim { name: words.name.clone(), source }
    }
}

impl SeccompProfile {
    fn parse(words: &SecurityWords) -> Option<Box<Self>> {
        let words = words.seccomp_profile.as_deref()?;
        Some(Box::new(match &*words.kind {
            "RuntimeDefault" => SeccompProfile::RuntimeDefault,
            "Unconfined" => SeccompProfile::Unconfined,
            "Localhost" => SeccompProfile::Localhost(words.localhost_profile.clone()),
            _ => SeccompProfile::Other(words.kind.clone()),
        }))
    }
}

impl HostPort {
    /// The address that stands for all addresses of the host.
    pub const ANY_IP: &str = "0.0.0.0";

    /// Whether both cannot be had on one host.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || *self.ip == *Self::ANY_IP || *other.ip == *Self::ANY_IP)
    }
}

impl Volume {
    pub(super) fn parse(words: &VolumeWords) -> Option<Self> {
        Some(Volume { name: words.name.clone(), source: VolumeSource::parse(words)? })
    }
}

impl VolumeSource {
    fn parse(words: &VolumeWords) -> Option<Self> {
        use VolumeSource as Source;
        let disk = |field: &Option<Box<DiskWords>>, make: fn(DiskWords) -> Source| {
            field.as_deref().cloned().map(make)
        };
        disk(&words.persistent_volume_claim, |claim| Source::Claim(claim.claim_name))
            .or_else(|| words.ephemeral.map(|_| Source::Ephemeral))
            .or_else(|| disk(&words.image, |image| Source::Image(normalized_image(&image.reference))))
            .or_else(|| disk(&words.csi, |csi| Source::Csi { driver: csi.driver }))
            .or_else(|| {
                disk(&words.gce_persistent_disk, |gce| Source::GcePersistentDisk {
                    name: gce.pd_name,
                    read_only: gce.read_only,
                })
            })
            .or_else(|| {
                disk(&words.aws_elastic_block_store, |ebs| Source::AwsElasticBlockStore {
                    volume_id: ebs.volume_id,
                })
            })
            .or_else(|| {
                disk(&words.azure_disk, |azure| Source::AzureDisk { uri: azure.disk_uri, kind: azure.kind })
            })
            .or_else(|| words.azure_file.map(|_| Source::AzureFile))
            .or_else(|| words.vsphere_volume.map(|_| Source::VsphereVolume))
            .or_else(|| disk(&words.cinder, |cinder| Source::Cinder { volume_id: cinder.volume_id }))
            .or_else(|| disk(&words.portworx_volume, |disk| Source::Portworx { volume_id: disk.volume_id }))
            .or_else(|| {
                disk(&words.iscsi, |iscsi| Source::Iscsi { iqn: iscsi.iqn, read_only: iscsi.read_only })
            })
            .or_else(|| {
                disk(&words.rbd, |rbd| Source::Rbd {
                    monitors: rbd.monitors.into(),
                    pool: rbd.pool,
                    image: rbd.image,
                    read_only: rbd.read_only,
                })
            })
    }
}

/// The image name as nodes report it: with the tag `latest` where the name has neither tag nor digest.
fn normalized_image(name: &str) -> Box<str> {
    // A colon before the last slash belongs to the registry's port.
    if name.rfind(':') <= name.rfind('/') { format!("{name}:latest").into() } else { name.into() }
}
