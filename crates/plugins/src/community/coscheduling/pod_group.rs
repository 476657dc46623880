//! PodGroup: a custom resource that says which pods go together.

use serde::Deserialize;
use supercargo_framework::Context;
use supercargo_model::pod::PodPhase;
use supercargo_model::wire::null_default;
use supercargo_model::{
    Kind, KindId, LabelLookup, MetadataWords, Pod, PodSet, ResourceList, Standing, StandingPod, Timestamp,
};

/// The label that says which group a pod belongs to, by name, in the namespace of the pod.
pub const POD_GROUP_LABEL: &str = "scheduling.x-k8s.io/pod-group";
/// The same label up to release 0.24 of upstream.
pub const OLD_POD_GROUP_LABEL: &str = "pod-group.scheduling.sigs.k8s.io";
/// Both, the one that counts first.
pub(super) const LABELS: [&str; 2] = [POD_GROUP_LABEL, OLD_POD_GROUP_LABEL];

/// Pods that go to their nodes together, or not at all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodGroup {
    /// `metadata`
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetadataWords,
    /// `spec`
    #[serde(deserialize_with = "null_default")]
    pub spec: PodGroupSpec,
    /// `status`
    #[serde(deserialize_with = "null_default")]
    pub status: PodGroupStatus,
}

/// See [`PodGroup`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodGroupSpec {
    /// So many members go together; none goes before so many can.
    #[serde(deserialize_with = "null_default")]
    pub min_member: i64,
    /// What the cluster must have left, all nodes taken together, before any member is tried.
    pub min_resources: Option<ResourceList>,
    /// How long members wait for each other at Permit.
    pub schedule_timeout_seconds: Option<i64>,
}

/// See [`PodGroup`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// How far the group is.
    #[serde(deserialize_with = "null_default")]
    pub phase: Box<str>,
    /// Who owns its pods, as `namespace/name`.
    #[serde(deserialize_with = "null_default")]
    pub occupied_by: Box<str>,
    /// How many of its pods run.
    #[serde(deserialize_with = "null_default")]
    pub running: i64,
    /// How many of its pods have ended well.
    #[serde(deserialize_with = "null_default")]
    pub succeeded: i64,
    /// How many of its pods have failed.
    #[serde(deserialize_with = "null_default")]
    pub failed: i64,
    /// When it was first scheduled: nobody writes it any more, and whoever has it keeps it.
    pub schedule_start_time: Option<Timestamp>,
}

/// A PodGroup of the API group's old name, which upstream had up to release 0.24.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct OldPodGroup(pub PodGroup);

impl Kind for PodGroup {
    const ID: KindId =
        KindId { group: "scheduling.x-k8s.io", version: "v1alpha1", kind: "PodGroup", plural: "podgroups" };
}

impl Kind for OldPodGroup {
    const ID: KindId = KindId { group: "scheduling.sigs.k8s.io", ..PodGroup::ID };
}

/// The group that a pod, or a PodGroup, names: what is known of it, and its members.
pub(super) struct Group<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Its object, if there is one.
    pub(super) object: Option<&'a PodGroup>,
    /// The kind of its object: the old one, if only that has it.
    pub(super) kind: KindId,
    members: [Option<PodSet<'a>>; LABELS.len()],
    /// Those of the second set that are none of its members, because their first label counts.
    strangers: Vec<&'a StandingPod>,
    /// Whether members that have succeeded count as if they had a node.
    counts_completed: bool,
}

/// The label of a pod's group, and the name of the group; none if it belongs to none.
pub(super) fn label_of(pod: &Pod) -> Option<(&'static str, &str)> {
    let of_label = |label: &'static str| Some((label, pod.labels.label(label)?));
    LABELS.into_iter().find_map(of_label).filter(|(_, name)| !name.is_empty())
}

/// Whether two pods name the same group, or none.
pub(super) fn are_of_one_group(one: &Pod, other: &Pod) -> bool {
    let name = |pod| label_of(pod).map(|(_, name)| name);
    one.namespace == other.namespace && name(one) == name(other)
}

/// `namespace/name` of a pod's group.
pub(super) fn full_name_of(pod: &Pod) -> Option<String> {
    label_of(pod).map(|(_, name)| format!("{}/{name}", pod.namespace))
}

/// The object of a group.
pub(super) fn object_of<'a>(context: &Context<'a>, namespace: &str, name: &str) -> Option<&'a PodGroup> {
    find(context, namespace, name).map(|(_, object)| object)
}

fn find<'a>(context: &Context<'a>, namespace: &str, name: &str) -> Option<(KindId, &'a PodGroup)> {
    let objects = context.cluster.objects();
    let new = objects.get::<PodGroup>(namespace, name).map(|object| (PodGroup::ID, object));
    new.or_else(|| objects.get::<OldPodGroup>(namespace, name).map(|old| (OldPodGroup::ID, &old.0)))
}

impl<'a> Group<'a> {
    /// The group of a pod; none if it belongs to none.
    pub(super) fn of_pod(context: &Context<'a>, pod: &'a Pod) -> Option<Self> {
        let (label, name) = label_of(pod)?;
        // The members of a group all have the same one of the labels, so one look is enough.
        let of_label =
            |known| (known == label).then(|| context.pods().by_label_in(&pod.namespace, known, name));
        Some(Self::new(context, &pod.namespace, name, LABELS.map(of_label)))
    }

    /// The group of that name, whether or not it has an object or members.
    pub(super) fn named(context: &Context<'a>, namespace: &'a str, name: &'a str) -> Self {
        let of_label = |label| Some(context.pods().by_label_in(namespace, label, name));
        let mut group = Self::new(context, namespace, name, LABELS.map(of_label));
        let second = group.members[1].iter().flat_map(PodSet::iter);
        group.strangers =
            second.filter(|member| member.pod.labels.label(POD_GROUP_LABEL).is_some()).collect();
        group
    }

    fn new(
        context: &Context<'a>,
        namespace: &'a str,
        name: &'a str,
        members: [Option<PodSet<'a>>; LABELS.len()],
    ) -> Self {
        let found = find(context, namespace, name);
        Group {
            namespace,
            name,
            object: found.map(|(_, object)| object),
            kind: found.map_or(PodGroup::ID, |(kind, _)| kind),
            members,
            strangers: Vec::new(),
            counts_completed: context.fixes.completed_members,
        }
    }

    /// `namespace/name`, by which things are remembered of it. Most decisions need it not.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The members that wait at Permit. Where none does, nobody is looked at.
    pub(super) fn at_permit(&self) -> impl Iterator<Item = &'a StandingPod> {
        let members = (self.count(Standing::AtPermit) > 0).then(|| self.members());
        members.into_iter().flatten().filter(|member| member.standing == Standing::AtPermit)
    }

    /// Its members, wherever they stand.
    pub(super) fn members(&self) -> impl Iterator<Item = &'a StandingPod> {
        let [first, second] = &self.members;
        let is_member = move |member: &&StandingPod| {
            self.strangers.is_empty() || member.pod.labels.label(POD_GROUP_LABEL).is_none()
        };
        let second = second.iter().flat_map(PodSet::iter).filter(is_member);
        first.iter().flat_map(PodSet::iter).chain(second)
    }

    /// How many members stand there.
    pub(super) fn count(&self, standing: Standing) -> i64 {
        self.sum(|members| members.count(standing), |stranger| stranger.standing == standing)
    }

    /// How many members have scheduling gates.
    pub(super) fn with_gates(&self) -> i64 {
        self.sum(PodSet::count_with_gates, |stranger| !stranger.pod.spec.scheduling_gates.is_empty())
    }

    /// What both sets count, without the strangers that it is true of.
    fn sum(&self, count: impl Fn(&PodSet<'a>) -> usize, counts: impl Fn(&StandingPod) -> bool) -> i64 {
        let counted: usize = self.members.iter().flatten().map(count).sum();
        counted as i64 - self.strangers.iter().filter(|stranger| counts(stranger)).count() as i64
    }

    /// How many members there are that have not run their course.
    pub(super) fn size(&self) -> i64 {
        let standings = [Standing::Waiting, Standing::Gated, Standing::AtPermit, Standing::Bound];
        standings.into_iter().map(|standing| self.count(standing)).sum::<i64>() + self.completed()
    }

    /// How many members have a node.
    pub(super) fn placed(&self) -> i64 {
        self.count(Standing::AtPermit) + self.count(Standing::Bound) + self.completed()
    }

    fn completed(&self) -> i64 {
        if !self.counts_completed {
            return 0;
        }
        self.sum(PodSet::count_succeeded, |stranger| stranger.pod.phase() == PodPhase::Succeeded)
    }
}
