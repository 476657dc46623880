//! The controller of ElasticQuotas: what the running pods of each namespace use, written into the status of its quota.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Conclusion, Context, Effect, Memory, Observe,
};
use supercargo_model::pod::PodPhase;
use supercargo_model::{
    Kind, KindId, Object, ObjectKey, Pod, Quantity, ResourceList, StandingPod, Timestamp,
};

use super::CapacityScheduling;
use super::elastic_quota::{ElasticQuota, OldElasticQuota, counting_in, quotas};
use super::guaranteed::Guaranteed;
use crate::community::controllers::{OLD_API_GROUP, RETRY_PAUSE, STATUS_PAUSE, notice, old_api_group};
use crate::community::plain_requests;
use crate::community::turns::Turns;

/// So many statuses are worked out at a time.
const STATUSES_PER_WAKE_MAX: usize = 1000;
/// The `reportingController` of events on ElasticQuotas, as upstream's.
const REPORTER: &str = "ElasticQuotaController";

/// What is remembered of quotas.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct QuotaMemory {
    /// The namespaces whose quotas may say something that is not true any more.
    stale: Turns,
    /// It is worked out anew where it is not known.
    #[serde(skip)]
    pub(super) guaranteed: Guaranteed,
    /// When the plugin is woken next.
    wakes_at: Option<Timestamp>,
}

impl Memory for QuotaMemory {
    const NAME: &'static str = "CapacityScheduling/Quotas";

    fn clock_was_set(&mut self, seconds: i64) {
        self.wakes_at = self.wakes_at.map(|wakes_at| wakes_at.moved(seconds));
    }
}

impl Observe for CapacityScheduling {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::ALL),
            ClusterEvent::kind(ElasticQuota::ID, Actions::ALL),
            ClusterEvent::kind(OldElasticQuota::ID, Actions::ALL),
        ]
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        acts.memory::<QuotaMemory>().guaranteed = Guaranteed::of(context);
        let objects = context.cluster.objects();
        for (key, quota) in objects.all::<ElasticQuota>() {
            warn(context, ElasticQuota::ID, key, quota, acts);
        }
        for (key, quota) in objects.all::<OldElasticQuota>() {
            warn(context, OldElasticQuota::ID, key, &quota.0, acts);
        }
        let namespaces: Vec<&str> = quotas(context).map(|quota| quota.namespace).collect();
        namespaces.into_iter().for_each(|namespace| mark_stale(context, namespace, acts));
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        if let Change::Object { old, new } = change
            && let Some(object) = new.or(*old)
        {
            acts.memory::<QuotaMemory>().guaranteed.follow(context, &object.key.namespace);
        }
        match change {
            Change::Pod { old, new } => {
                let counts = |pod: &&Pod| counts(context, pod, pod.node_name.is_some());
                if let Some(pod) = old.filter(counts).or(new.filter(counts)) {
                    mark_stale(context, &pod.namespace, acts);
                }
            }
            Change::Object { old, new: Some(new) } => {
                let Some(quota) = quota_in(new) else { return };
                if old.and_then(quota_in).is_none_or(|old| old.spec != quota.spec) {
                    warn(context, new.kind, &new.key, quota, acts);
                }
                if old.is_none() {
                    warn_others(context, new.kind, &new.key, acts);
                }
                mark_stale(context, &new.key.namespace, acts);
            }
            Change::Object { old: Some(gone), new: None } => mark_stale(context, &gone.key.namespace, acts),
            _ => {}
        }
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let memory = acts.memory::<QuotaMemory>();
        memory.wakes_at = None;
        let stale = memory.stale.take(STATUSES_PER_WAKE_MAX);
        if !memory.stale.is_empty() {
            plan_wake(context.now.after(STATUS_PAUSE), acts);
        }
        for namespace in &stale {
            write_status(context, namespace, acts);
        }
    }

    fn answered(&self, context: &Context<'_>, order: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        let Effect::Patch { kind, key, .. } = order else { return };
        if conclusion.is_done() {
            if let Some(quota) = quota_named(context, *kind, key) {
                let note = format!("Elastic Quota {}/{} synced successfully", key.namespace, key.name);
                tell(*kind, key, quota, false, "Synced", note, acts);
            }
        } else if !matches!(conclusion, Conclusion::Gone { .. }) {
            acts.memory::<QuotaMemory>().stale.insert((*key.namespace).to_owned());
            plan_wake(context.now.after(RETRY_PAUSE), acts);
        }
    }
}

fn quota_in(object: &Object) -> Option<&ElasticQuota> {
    object.get::<ElasticQuota>().or_else(|| object.get::<OldElasticQuota>().map(|old| &old.0))
}

fn quota_named<'a>(context: &Context<'a>, kind: KindId, key: &ObjectKey) -> Option<&'a ElasticQuota> {
    let objects = context.cluster.objects();
    if kind == OldElasticQuota::ID {
        objects.get::<OldElasticQuota>(&key.namespace, &key.name).map(|old| &old.0)
    } else {
        objects.get::<ElasticQuota>(&key.namespace, &key.name)
    }
}

/// Has the status of a namespace's quota looked at soon.
fn mark_stale(context: &Context<'_>, namespace: &str, acts: &mut Acts<'_>) {
    if acts.recall::<QuotaMemory>().is_none_or(|memory| !memory.stale.contains(namespace)) {
        acts.memory::<QuotaMemory>().stale.insert(namespace.to_owned());
        plan_wake(context.now.after(STATUS_PAUSE), acts);
    }
}

/// Has the plugin woken then, unless it is woken before that anyway.
fn plan_wake(at: Timestamp, acts: &mut Acts<'_>) {
    let memory = acts.memory::<QuotaMemory>();
    if memory.wakes_at.is_none_or(|planned| at < planned) {
        memory.wakes_at = Some(at);
        acts.wake_at(at);
    }
}

/// Whether a pod counts as one that uses its quota: it runs or, with the fix `quotaStatusPlaced`, has a node.
fn counts(context: &Context<'_>, pod: &Pod, has_node: bool) -> bool {
    pod.phase() == PodPhase::Running || (context.fixes.quota_status_placed && has_node)
}

/// What the running pods of a namespace ask for. What the quota names is there even if nobody asks for it.
fn used(context: &Context<'_>, namespace: &str, quota: &ElasticQuota) -> ResourceList {
    let named = quota.spec.min.iter().chain(&quota.spec.max).flat_map(ResourceList::iter);
    let mut used: ResourceList = named.map(|(name, _)| (name.clone(), Quantity::default())).collect();
    let pods = context.pods().by_namespace(namespace);
    let counts = |known: &&StandingPod| counts(context, &known.pod, known.standing.has_node());
    for known in pods.iter().filter(counts) {
        // As upstream, a sidecar is an init container here, too.
        if context.fixes.quota_sidecars {
            used.add(&known.pod.requests().list);
        } else {
            used.add(&plain_requests(&known.pod.spec));
        }
    }
    used
}

fn write_status(context: &Context<'_>, namespace: &str, acts: &mut Acts<'_>) {
    let Some((kind, name, quota)) = counting_in(context, namespace) else { return };
    let used = used(context, namespace, quota);
    let known = &quota.status.used;
    if used == *known {
        return;
    }
    let mut patch: Map<String, Value> =
        used.iter().map(|(name, quantity)| (name.to_string(), json!(quantity.to_string()))).collect();
    // A merge patch leaves what it does not name.
    for (name, _) in known.iter().filter(|(name, _)| used.get(name).is_none()) {
        patch.insert(name.to_string(), Value::Null);
    }
    let key = ObjectKey { namespace: namespace.into(), name: name.into() };
    acts.order(Effect::Patch {
        kind,
        key,
        subresource: Some("status"),
        patch: json!({ "status": { "used": patch } }),
    });
}

/// Tells of what is wrong with a quota, on the quota itself.
fn warn(context: &Context<'_>, kind: KindId, key: &ObjectKey, quota: &ElasticQuota, acts: &mut Acts<'_>) {
    let mut notes = Vec::new();
    let spec = &quota.spec;
    for (name, min) in spec.min.iter().flat_map(ResourceList::iter) {
        if let Some(max) = spec.max.as_ref().and_then(|max| max.get(name)).filter(|max| min > *max) {
            notes.push(("InvalidElasticQuota", format!(
                "spec.min.{name} is {min}, which is more than spec.max.{name}, {max}: what is above the max is never used"
            )));
        }
    }
    notes.extend(duplicate(context, kind, key));
    if kind == OldElasticQuota::ID {
        notes.push((OLD_API_GROUP, old_api_group(kind, ElasticQuota::ID, "quota")));
    }
    for (reason, note) in notes {
        tell(kind, key, quota, true, reason, note, acts);
    }
}

/// Why a quota does not count, if another one of its namespace does.
fn duplicate(context: &Context<'_>, kind: KindId, key: &ObjectKey) -> Option<(&'static str, String)> {
    let (counting_kind, counting, _) = counting_in(context, &key.namespace)?;
    let is_other = *counting != *key.name || counting_kind != kind;
    is_other.then(|| {
        let note = format!(
            "the namespace {} has another ElasticQuota, {}, which counts instead of this one; delete one of them",
            key.namespace, counting
        );
        ("DuplicateElasticQuota", note)
    })
}

/// Tells of a quota that counted until this one came, on that quota.
fn warn_others(context: &Context<'_>, kind: KindId, came: &ObjectKey, acts: &mut Acts<'_>) {
    let objects = context.cluster.objects();
    let new = objects.in_namespace::<ElasticQuota>(&came.namespace);
    let new = new.map(|(name, quota)| (ElasticQuota::ID, name, quota));
    let old = objects.in_namespace::<OldElasticQuota>(&came.namespace);
    let old = old.map(|(name, quota)| (OldElasticQuota::ID, name, &quota.0));
    let others = new.chain(old).filter(|(other, name, _)| *other != kind || *name != &*came.name);
    for (other, name, quota) in others {
        let key = ObjectKey { namespace: came.namespace.clone(), name: name.into() };
        if let Some((reason, note)) = duplicate(context, other, &key) {
            tell(other, &key, quota, true, reason, note, acts);
        }
    }
}

fn tell(
    kind: KindId,
    key: &ObjectKey,
    quota: &ElasticQuota,
    is_warning: bool,
    reason: &'static str,
    note: String,
    acts: &mut Acts<'_>,
) {
    acts.order(notice(REPORTER, kind, key, &quota.metadata.uid, is_warning, reason, note));
}
