//! VolumeRestrictions: pods that cannot share a disk are kept apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Cycle, Enqueue, Extensions, Filter, Hint, Likeness, NoArgs,
    NodeField, Plugin, PodField, PreFilter, PreFilterResult, Reads, Status, Touched, Unread,
};
use supercargo_model::cluster::ObjectChange;
use supercargo_model::kinds::PersistentVolumeClaim;
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Kind, KindId, NodeRef, Pod, Snapshot};

use super::storage::{find_claim, names_claim};

const REASON_DISK: &str = "node(s) had no available disk";
const REASON_IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
                             already in-use by another pod";
const EXCLUSIVE_CLAIM: &str =
    "a claim that one pod may use at a time is in use, or stands beside a disk that is";
const NO_STATE: &str = r#"cannot read "PreFilterVolumeRestrictions" from cycleState"#;

/// # What
/// Keeps pods apart that cannot share a disk: a claim with the access mode `ReadWriteOncePod` has one pod in the whole
/// cluster, and a GCE disk, an EBS volume, an iSCSI target or an RBD image that is written in the pods themselves has
/// one writer a node.
///
/// # Why
/// Two writers on a file system that expects one destroy it.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// kind: PersistentVolumeClaim
/// spec:
///   accessModes: [ReadWriteOncePod]   # the second pod with this claim waits for the first to go
/// ```
///
/// # Difference from upstream
/// None by default. The fix `exclusiveClaimNamespace` tells claims of the same name in different namespaces apart when
/// preemption tries a node.
#[derive(Debug)]
pub struct VolumeRestrictions;

/// How often the pod's exclusive claims are in use.
#[derive(Clone)]
struct ExclusiveClaims {
    names: Arc<BTreeSet<Box<str>>>,
    uses: i64,
}

impl Plugin for VolumeRestrictions {
    const NAME: &'static str = "VolumeRestrictions";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        VolumeRestrictions
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().enqueue()
    }

    fn reads(&self) -> Reads {
        // A claim is exclusive in the whole cluster: which pods run anywhere matters.
        Reads::nothing()
            .pod(&[PodField::Volumes, PodField::Namespace])
            .node(&[NodeField::Pods])
            .topology()
            .kind::<PersistentVolumeClaim>()
            .resolved()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        !pod.spec.volumes.is_empty()
    }

    fn depends_on(&self, unread: &Unread, pod: &Pod, _: &Snapshot) -> bool {
        // Claims are looked up in the pod's own namespace, and only its pods can have them; other disks may be anybody's.
        let has_disk = exclusive_disks(pod).next().is_some();
        let has_claim = pod.spec.claim_names().next().is_some();
        (has_claim && !unread.knows(&pod.namespace)) || (has_disk && unread.kind == KindId::POD)
    }

    fn subject(&self) -> &'static str {
        "volumes"
    }
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let (pod, cluster) = (cycle.pod, cycle.cluster());
        let mut names = BTreeSet::new();
        for name in pod.spec.claim_names() {
            match find_claim(cluster.objects(), pod, name) {
                Err(reason) => return PreFilterResult::Reject(Status::unresolvable(reason)),
                Ok(claim) => {
                    if claim.spec.access_modes.iter().any(|mode| **mode == *"ReadWriteOncePod") {
                        names.insert(name.into());
                    }
                }
            }
        }
        let uses = uses_in_cluster(cluster, pod, &names);
        if uses == 0 && exclusive_disks(pod).next().is_none() {
            return PreFilterResult::Skip;
        }
        cycle.put(ExclusiveClaims { names: Arc::new(names), uses });
        PreFilterResult::AllNodes
    }

    fn resolve(
        &self,
        cycle: &mut Cycle<'_>,
        likeness: &mut Likeness,
    ) -> Result<PreFilterResult, &'static str> {
        let result = self.pre_filter(cycle);
        if !matches!(result, PreFilterResult::AllNodes) {
            return Ok(result);
        }
        // Pods that come to and go from nodes may use the claims too.
        if cycle.get().is_none_or(|claims: &ExclusiveClaims| !claims.names.is_empty()) {
            return Err(EXCLUSIVE_CLAIM);
        }
        for volume in exclusive_disks(cycle.pod) {
            likeness.add(volume);
        }
        Ok(result)
    }

    fn touched(&self, _: &Snapshot, _: &ObjectChange) -> Touched {
        // Filter reads nothing but pods.
        Touched::NOTHING
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        count(cycle, pod, 1)
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        count(cycle, pod, -1)
    }
}

impl Filter for VolumeRestrictions {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if node.pods().iter().any(|other| conflict(cycle.pod, other)) {
            return Status::unschedulable(REASON_DISK);
        }
        match cycle.get::<ExclusiveClaims>() {
            None => Status::error(NO_STATE),
            Some(claims) if claims.uses > 0 => Status::unschedulable(REASON_IN_USE),
            Some(_) => Status::success(),
        }
    }
}

impl Enqueue for VolumeRestrictions {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::DELETE),
            ClusterEvent::node(Actions::ADD),
            ClusterEvent::kind(PersistentVolumeClaim::ID, Actions::ADD),
        ]
    }

    fn hint(&self, _: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        Hint::queue_if(match change {
            Change::Pod { old: Some(deleted), new: None } => {
                let shares_claim =
                    || deleted.spec.claim_names().any(|name| pod.spec.claim_names().any(|own| own == name));
                deleted.namespace == pod.namespace && (conflict(pod, deleted) || shares_claim())
            }
            Change::Object { new: Some(object), .. } => {
                object.get().is_none_or(|claim: &PersistentVolumeClaim| names_claim(pod, claim))
            }
            _ => true,
        })
    }
}

/// How many of the pod's exclusive claims some pod on a node uses.
fn uses_in_cluster(cluster: &Snapshot, pod: &Pod, names: &BTreeSet<Box<str>>) -> i64 {
    let is_used = |name: &str| !cluster.claim_users(&pod.namespace, name).named.is_empty();
    names.iter().filter(|name| is_used(name)).count() as i64
}

fn count(cycle: &mut Cycle<'_>, pod: &Pod, sign: i64) -> Status {
    let is_stranger = pod.namespace != cycle.pod.namespace && cycle.context.fixes.exclusive_claim_namespace;
    let Some(claims) = cycle.get_mut::<ExclusiveClaims>() else { return Status::error(NO_STATE) };
    if is_stranger {
        return Status::success();
    }
    let uses = pod.spec.claim_names().filter(|name| claims.names.contains(*name)).count();
    claims.uses += sign * uses as i64;
    Status::success()
}

fn exclusive_disks(pod: &Pod) -> impl Iterator<Item = &VolumeSource> {
    pod.spec.volumes.iter().map(|volume| &volume.source).filter(|source| is_exclusive_disk(source))
}

fn is_exclusive_disk(source: &VolumeSource) -> bool {
    matches!(
        source,
        VolumeSource::GcePersistentDisk { .. }
            | VolumeSource::AwsElasticBlockStore { .. }
            | VolumeSource::Rbd { .. }
            | VolumeSource::Iscsi { .. }
    )
}

/// Whether the pods have disks that cannot be on one node for both.
fn conflict(pod: &Pod, other: &Pod) -> bool {
    exclusive_disks(pod)
        .any(|disk| other.spec.volumes.iter().any(|taken| disks_conflict(disk, &taken.source)))
}

fn disks_conflict(disk: &VolumeSource, taken: &VolumeSource) -> bool {
    use VolumeSource::{AwsElasticBlockStore, GcePersistentDisk, Iscsi, Rbd};
    match (disk, taken) {
        (
            GcePersistentDisk { name: a, read_only: a_reads },
            GcePersistentDisk { name: b, read_only: b_reads },
        )
        | (Iscsi { iqn: a, read_only: a_reads }, Iscsi { iqn: b, read_only: b_reads }) => {
            a == b && !(*a_reads && *b_reads)
        }
        (AwsElasticBlockStore { volume_id: a }, AwsElasticBlockStore { volume_id: b }) => a == b,
        (
            Rbd { monitors: a_monitors, pool: a_pool, image: a_image, read_only: a_reads },
            Rbd { monitors: b_monitors, pool: b_pool, image: b_image, read_only: b_reads },
        ) => {
            a_monitors.iter().any(|monitor| b_monitors.contains(monitor))
                && (a_pool, a_image) == (b_pool, b_image)
                && !(*a_reads && *b_reads)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supercargo_engine::{Rules, Thoroughness, evaluate};
    use supercargo_framework::{Fixes, Hint, Nomination, Point};
    use supercargo_testkit::{cluster, node, trial};

    use super::*;
    use crate::kubernetes::DefaultPreemption;
    use crate::kubernetes::storage::scene::{hint_added, hint_pod_deleted, object, pod, pod_with_claims};

    #[test]
    fn claims_of_other_namespaces_are_counted_when_a_pod_is_taken_away_unless_fixed() {
        let claim = |namespace: &str| {
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "name": "data", "namespace": namespace },
                "spec": { "accessModes": ["ReadWriteOncePod"] },
            })
        };
        let volumes = json!({ "spec": { "volumes": [
            { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
        ] } });
        let user = |name: &str, namespace: &str, priority: i32| {
            supercargo_testkit::pod(name).namespace(namespace).priority(priority).with(volumes.clone())
        };
        let mut profile = trial::<VolumeRestrictions>().profile;
        let preemption = trial::<DefaultPreemption>().profile;
        assert!(profile.add(&preemption.plugins()[0], Point::PostFilter, 1));
        for (fixed, nomination) in [(false, Nomination::Node("b".into())), (true, Nomination::Clear)] {
            let mut cluster = cluster()
                .reading::<PersistentVolumeClaim>()
                .with(node("a"))
                .with(node("b"))
                .with(claim("shop"))
                .with(claim("other"))
                .with(user("holder", "shop", 9).on("a"))
                .with(user("stranger", "other", 0).on("b"));
            cluster.fixes = Fixes { exclusive_claim_namespace: fixed, ..Fixes::default() };
            let pod = cluster.pod(user("next", "shop", 9));
            let evaluation = evaluate(
                &profile,
                cluster.context(),
                &pod,
                Rules::CONFORMANCE,
                Thoroughness::FirstRejection,
                &mut 0,
            );
            assert_eq!(evaluation.nomination, nomination, "fixed: {fixed}");
        }
    }

    #[test]
    fn pods_that_leave_a_claim_or_a_disk_wake_the_next() {
        let disk = |name: &str| pod(name, &json!([{"name": "d", "gcePersistentDisk": {"pdName": "one"}}]));
        let (claims, waiting) = (pod_with_claims("a", &["data", "logs"]), pod_with_claims("b", &["logs"]));
        let stranger = Pod { namespace: "other".into(), ..(*claims).clone() };
        for (pod, deleted, expected) in [
            (&waiting, &*claims, Hint::Queue),
            (&waiting, &stranger, Hint::Skip),
            (&waiting, &*pod_with_claims("c", &["data"]), Hint::Skip),
            (&disk("d"), &*disk("e"), Hint::Queue),
            (&disk("d"), &*claims, Hint::Skip),
        ] {
            assert_eq!(hint_pod_deleted(&VolumeRestrictions, pod, deleted), expected, "{}", deleted.key());
        }
    }

    #[test]
    fn only_claims_in_the_spec_count() {
        let claim = |namespace: &str, name: &str| {
            object::<PersistentVolumeClaim>(json!({"metadata": {"name": name, "namespace": namespace}}))
        };
        let pod = pod(
            "web",
            &json!([{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "ephemeral": {}}]),
        );
        for (namespace, name, expected) in [
            ("default", "data", Hint::Queue),
            ("other", "data", Hint::Skip),
            ("default", "web-b", Hint::Skip),
        ] {
            let claim = claim(namespace, name);
            assert_eq!(hint_added(&VolumeRestrictions, &pod, &claim), expected, "{namespace}/{name}");
        }
    }
}
