//! VolumeZone: pods stay in the zones and regions of their volumes.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, Hint, Likeness, NoArgs,
    NodeField, Plugin, PodField, PreFilter, PreFilterResult, Reads, Status, Touched, Unread,
};
use supercargo_model::cluster::ObjectChange;
use supercargo_model::kinds::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use supercargo_model::{Kind, LabelLookup, NodeRef, Object, Objects, Pod, Snapshot};

use super::storage::{claims_of, find_claim, find_class, names_claim, not_found};

const REASON: &str = "node(s) had no available volume zone";

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const TOPOLOGY_LABELS: [&str; 4] = [BETA_ZONE, BETA_REGION, ZONE, REGION];

/// # What
/// Keeps a pod in the zones and regions of its volumes, as the labels of the volumes give them. A label may name several,
/// separated by `__`. Nodes without any such label are not looked at.
///
/// # Why
/// A disk in one zone cannot be attached in another. Volumes of CSI drivers say so by their node affinity
/// ([`super::VolumeBinding`]); older ones have labels only.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// kind: PersistentVolume
/// metadata:
///   labels: {topology.kubernetes.io/zone: europe-west1-b__europe-west1-c}
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct VolumeZone;

/// What the labels of the pod's volumes demand.
#[derive(Clone)]
struct Demands(Arc<[Demand]>);

/// The node's label must have one of the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Demand {
    key: &'static str,
    values: BTreeSet<Box<str>>,
}

impl Plugin for VolumeZone {
    const NAME: &'static str = "VolumeZone";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        VolumeZone
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Volumes, PodField::Namespace])
            .node(&[NodeField::Labels])
            .kind::<PersistentVolume>()
            .kind::<PersistentVolumeClaim>()
            .kind::<StorageClass>()
            .resolved()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        !pod.spec.volumes.is_empty()
    }

    fn depends_on(&self, _: &Unread, pod: &Pod, _: &Snapshot) -> bool {
        claims_of(pod).next().is_some()
    }

    fn subject(&self) -> &'static str {
        "volumes"
    }
}

impl PreFilter for VolumeZone {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        match demands_of_pod(cycle.cluster().objects(), cycle.pod) {
            Err(status) => PreFilterResult::Reject(status),
            Ok(demands) if demands.is_empty() => PreFilterResult::Skip,
            Ok(demands) => {
                cycle.put(Demands(demands.into()));
                PreFilterResult::AllNodes
            }
        }
    }

    fn resolve(
        &self,
        cycle: &mut Cycle<'_>,
        likeness: &mut Likeness,
    ) -> Result<PreFilterResult, &'static str> {
        let result = self.pre_filter(cycle);
        if let Some(Demands(demands)) = cycle.get() {
            likeness.add(demands);
        }
        Ok(result)
    }

    fn touched(&self, _: &Snapshot, _: &ObjectChange) -> Touched {
        // Filter reads nothing but labels.
        Touched::NOTHING
    }
}

impl Filter for VolumeZone {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if let Some(Demands(demands)) = cycle.get() {
            return check(demands, node);
        }
        match demands_of_pod(cycle.cluster().objects(), cycle.pod) {
            Err(status) => status,
            Ok(demands) => check(&demands, node),
        }
    }
}

impl Enqueue for VolumeZone {
    fn events(&self) -> Vec<ClusterEvent> {
        let added_or_changed = Actions::ADD.or(Actions::UPDATE);
        vec![
            ClusterEvent::kind(StorageClass::ID, Actions::ADD),
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_LABEL)),
            ClusterEvent::kind(PersistentVolumeClaim::ID, added_or_changed),
            ClusterEvent::kind(PersistentVolume::ID, added_or_changed),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let Change::Object { old, new: Some(object) } = change else { return Hint::Queue };
        Hint::queue_if(if let Some(class) = object.get::<StorageClass>() {
            class.waits_for_consumer()
        } else if let Some(claim) = object.get() {
            names_claim(pod, claim)
        } else if let Some(volume) = object.get() {
            let before: Option<&PersistentVolume> = old.and_then(Object::get);
            before.is_none_or(|before| demands_of_volume(before).ne(demands_of_volume(volume)))
        } else {
            true
        })
    }
}

fn check(demands: &[Demand], node: NodeRef<'_>) -> Status {
    // A cluster in a single zone need not label its nodes.
    let is_labelled = TOPOLOGY_LABELS.iter().any(|key| node.label(key).is_some());
    if is_labelled && !demands.iter().all(|demand| demand.is_met_by(&node)) {
        return Status::unresolvable(REASON);
    }
    Status::success()
}

impl Demand {
    fn is_met_by(&self, node: &impl LabelLookup) -> bool {
        // Nodes have no beta labels any more, volumes still do.
        let value = node.label(self.key).or_else(|| match self.key {
            BETA_ZONE => node.label(ZONE),
            BETA_REGION => node.label(REGION),
            _ => None,
        });
        value.is_some_and(|value| self.values.contains(value))
    }
}

/// What the volumes that the pod's claims are bound to demand, or why the pod cannot be placed at all.
fn demands_of_pod(objects: &Objects, pod: &Pod) -> Result<Vec<Demand>, Status> {
    let mut demands = Vec::new();
    for name in pod.spec.claim_names() {
        if name.is_empty() {
            return Err(Status::unresolvable("PersistentVolumeClaim had no name"));
        }
        let claim = find_claim(objects, pod, name).map_err(Status::unresolvable)?;
        let volume_name = &*claim.spec.volume_name;
        if volume_name.is_empty() {
            check_unbound(objects, &claim)?;
        } else {
            let volume: Option<&PersistentVolume> = objects.get("", volume_name);
            let volume =
                volume.ok_or_else(|| Status::unresolvable(not_found::<PersistentVolume>(volume_name)))?;
            demands.extend(demands_of_volume(volume));
        }
    }
    Ok(demands)
}

/// A claim that is not bound has no zone yet; it must be one that is bound when its pod is placed.
fn check_unbound(objects: &Objects, claim: &PersistentVolumeClaim) -> Result<(), Status> {
    let class_name = claim.class();
    if class_name.is_empty() {
        return Err(Status::unresolvable("PersistentVolumeClaim had no pv name and storageClass name"));
    }
    let class = find_class(objects, class_name).map_err(Status::unresolvable)?;
    if class.volume_binding_mode.is_none() {
        let reason = format!("VolumeBindingMode not set for StorageClass {class_name:?}");
        return Err(Status::unresolvable(reason));
    }
    if class.waits_for_consumer() {
        Ok(())
    } else {
        Err(Status::unresolvable("PersistentVolume had no name"))
    }
}

/// What the labels of a volume demand; a label that names an empty zone is ignored.
fn demands_of_volume(volume: &PersistentVolume) -> impl Iterator<Item = Demand> {
    TOPOLOGY_LABELS.into_iter().filter_map(|key| {
        let zones = volume.metadata.labels.label(key)?.split("__").map(str::trim);
        let values = zones.map(|zone| (!zone.is_empty()).then(|| zone.into())).collect::<Option<_>>()?;
        Some(Demand { key, values })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kubernetes::storage::scene::{hint_added, hint_updated, object, pod_with_claims};

    #[test]
    fn changes_wake_pods_only_where_they_can_help() {
        let pod = pod_with_claims("web", &["data"]);
        let class = |mode: Value| {
            object::<StorageClass>(json!({"metadata": {"name": "c"}, "volumeBindingMode": mode}))
        };
        for (mode, expected) in [
            ("WaitForFirstConsumer".into(), Hint::Queue),
            ("Immediate".into(), Hint::Skip),
            (Value::Null, Hint::Skip),
        ] {
            assert_eq!(hint_added(&VolumeZone, &pod, &class(mode)), expected);
        }
        let volume =
            |labels: Value| object::<PersistentVolume>(json!({"metadata": {"name": "v", "labels": labels}}));
        for (old, new, expected) in [
            (json!({ZONE: "a"}), json!({ZONE: "b"}), Hint::Queue),
            (json!({ZONE: "a__b"}), json!({ZONE: "b__a"}), Hint::Skip),
            (json!({ZONE: "a"}), json!({ZONE: "a", "other": "x"}), Hint::Skip),
            (json!({}), json!({BETA_REGION: "r"}), Hint::Queue),
        ] {
            assert_eq!(
                hint_updated(&VolumeZone, &pod, &volume(old), &volume(new.clone())),
                expected,
                "{new}"
            );
        }
        assert_eq!(hint_added(&VolumeZone, &pod, &volume(json!({}))), Hint::Queue);
        let claim = |name: &str| {
            object::<PersistentVolumeClaim>(json!({"metadata": {"name": name, "namespace": "default"}}))
        };
        assert_eq!(hint_added(&VolumeZone, &pod, &claim("data")), Hint::Queue);
        assert_eq!(hint_added(&VolumeZone, &pod, &claim("other")), Hint::Skip);
    }
}
