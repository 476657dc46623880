//! ElasticQuota: a custom resource that says what a namespace is guaranteed, and what it may borrow.

use serde::Deserialize;
use supercargo_framework::Context;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, MetadataWords, ResourceList};

use super::amounts::Bound;

/// What the pods of a namespace are guaranteed, and what they may take at most.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "ElasticQuotaWords")]
pub struct ElasticQuota {
    /// `metadata`
    pub metadata: MetadataWords,
    /// `spec`
    pub spec: ElasticQuotaSpec,
    /// `status`
    pub status: ElasticQuotaStatus,
    /// `spec.min` in the scheduler's units.
    pub(super) min: Bound,
    /// `spec.max` in the scheduler's units.
    pub(super) max: Bound,
}

/// See [`ElasticQuota`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ElasticQuotaSpec {
    /// What is guaranteed.
    pub min: Option<ResourceList>,
    /// What is never exceeded.
    pub max: Option<ResourceList>,
}

/// See [`ElasticQuota`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ElasticQuotaStatus {
    /// What the running pods of the namespace ask for.
    #[serde(deserialize_with = "null_default")]
    pub used: ResourceList,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ElasticQuotaWords {
    #[serde(deserialize_with = "null_default")]
    metadata: MetadataWords,
    #[serde(deserialize_with = "null_default")]
    spec: ElasticQuotaSpec,
    #[serde(deserialize_with = "null_default")]
    status: ElasticQuotaStatus,
}

impl From<ElasticQuotaWords> for ElasticQuota {
    fn from(ElasticQuotaWords { metadata, spec, status }: ElasticQuotaWords) -> Self {
        let (min, max) = (Bound::least(spec.min.as_ref()), Bound::most(spec.max.as_ref()));
        ElasticQuota { metadata, spec, status, min, max }
    }
}

/// An ElasticQuota of the API group's old name, which upstream had up to release 0.24.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct OldElasticQuota(pub ElasticQuota);

impl Kind for ElasticQuota {
    const ID: KindId = KindId {
        group: "scheduling.x-k8s.io",
        version: "v1alpha1",
        kind: "ElasticQuota",
        plural: "elasticquotas",
    };
}

impl Kind for OldElasticQuota {
    const ID: KindId = KindId { group: "scheduling.sigs.k8s.io", ..ElasticQuota::ID };
}

/// Both kinds: namespaces that have an object of either have a quota.
pub(super) const QUOTA_KINDS: [KindId; 2] = [ElasticQuota::ID, OldElasticQuota::ID];

/// A quota that counts, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Quota<'a> {
    pub(super) namespace: &'a str,
    pub(super) object: &'a ElasticQuota,
}

/// The quotas that count: of each namespace the one whose name comes first, and one of the old API group only where there is no other.
pub(super) fn quotas<'a>(context: &Context<'a>) -> impl Iterator<Item = Quota<'a>> {
    let objects = context.cluster.objects();
    let new = objects.all::<ElasticQuota>().map(|(key, object)| Quota { namespace: &key.namespace, object });
    let old = objects
        .all::<OldElasticQuota>()
        .map(|(key, object)| Quota { namespace: &key.namespace, object: &object.0 });
    let old = old.filter(|old| objects.in_namespace::<ElasticQuota>(old.namespace).next().is_none());
    new.filter(first_of_namespace()).chain(old.filter(first_of_namespace()))
}

/// Whether a quota is the first of its namespace. All of one kind are in the order of namespaces, so several of one stand side by side.
fn first_of_namespace<'a>() -> impl FnMut(&Quota<'a>) -> bool {
    let mut last: Option<&'a str> = None;
    move |quota| last.replace(quota.namespace) != Some(quota.namespace)
}

/// The quota of a namespace.
pub(super) fn quota_of<'a>(context: &Context<'a>, namespace: &str) -> Option<&'a ElasticQuota> {
    counting_in(context, namespace).map(|(_, _, object)| object)
}

/// The quota of a namespace that counts: its kind, its name, and what it says.
pub(super) fn counting_in<'a>(
    context: &Context<'a>,
    namespace: &str,
) -> Option<(KindId, &'a str, &'a ElasticQuota)> {
    let objects = context.cluster.objects();
    let new = objects.in_namespace::<ElasticQuota>(namespace).next();
    let new = new.map(|(name, object)| (ElasticQuota::ID, name, object));
    new.or_else(|| {
        let (name, old) = objects.in_namespace::<OldElasticQuota>(namespace).next()?;
        Some((OldElasticQuota::ID, name, &old.0))
    })
}
