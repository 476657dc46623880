//! The controller of ElasticQuotas: what the running pods of each namespace use, written into the status of its quota.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Conclusion, Context, Effect, Memory, Observe, SharedMap,
};
use supercargo_model::pod::PodPhase;
use supercargo_model::{
    Kind, KindId, Object, ObjectKey, Pod, Quantity, ResourceList, StandingPod, Timestamp,
};

use super::CapacityScheduling;
use super::elastic_quota::{ElasticQuota, OldElasticQuota, Quota, quotas};
use crate::community::controllers::{OLD_API_GROUP, RETRY_PAUSE, STATUS_PAUSE, notice, old_api_group};

/// The `reportingController` of events on ElasticQuotas, as upstream's.
const REPORTER: &str = "ElasticQuotaController";

/// The namespaces whose quotas may say something that is not true any more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct QuotaMemory {
    stale: SharedMap<String, ()>,
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
        let stale = std::mem::take(&mut memory.stale);
        memory.wakes_at = None;
        for quota in quotas(context).filter(|quota| stale.contains_key(&quota.namespace.to_owned())) {
            write_status(context, quota, acts);
        }
    }

    fn answered(&self, context: &Context<'_>, order: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        let Effect::Patch { key, .. } = order else { return };
        if !conclusion.is_done() && !matches!(conclusion, Conclusion::Gone { .. }) {
            acts.memory::<QuotaMemory>().stale.insert((*key.namespace).to_owned(), ());
            plan_wake(context.now.after(RETRY_PAUSE), acts);
        }
    }
}

fn quota_in(object: &Object) -> Option<&ElasticQuota> {
    object.get::<ElasticQuota>().or_else(|| object.get::<OldElasticQuota>().map(|old| &old.0))
}

/// Has the status of a namespace's quota looked at soon.
fn mark_stale(context: &Context<'_>, namespace: &str, acts: &mut Acts<'_>) {
    let namespace = namespace.to_owned();
    if acts.recall::<QuotaMemory>().is_none_or(|memory| !memory.stale.contains_key(&namespace)) {
        acts.memory::<QuotaMemory>().stale.insert(namespace, ());
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
fn used(context: &Context<'_>, quota: &Quota<'_>) -> ResourceList {
    let spec = &quota.object.spec;
    let named = spec.min.iter().chain(&spec.max).flat_map(ResourceList::iter);
    let mut used: ResourceList = named.map(|(name, _)| (name.clone(), Quantity::default())).collect();
    let pods = context.pods().by_namespace(quota.namespace);
    let counts = |known: &&StandingPod| counts(context, &known.pod, known.standing.has_node());
    for known in pods.iter().filter(counts) {
        used.add(&known.pod.requests().list);
    }
    used
}

fn write_status(context: &Context<'_>, quota: Quota<'_>, acts: &mut Acts<'_>) {
    let Quota { kind, namespace, name, object } = quota;
    let used = used(context, &quota);
    let known = &object.status.used;
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
        key: key.clone(),
        subresource: Some("status"),
        patch: json!({ "status": { "used": patch } }),
    });
    let note = format!("Elastic Quota {namespace}/{name} synced successfully");
    tell(kind, &key, object, false, "Synced", note, acts);
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
    let counting = quotas(context).find(|counting| *counting.namespace == *key.namespace)?;
    let is_other = counting.name != &*key.name || counting.kind != kind;
    is_other.then(|| {
        let note = format!(
            "the namespace {} has another ElasticQuota, {}, which counts instead of this one; delete one of them",
            key.namespace, counting.name
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
