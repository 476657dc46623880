//! NodeVolumeLimits: a node has no more volumes of a CSI driver than the driver can attach to it.

mod attachable;
mod hints;
mod sharing;

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::{
    Cycle, Extensions, Filter, Likeness, NoArgs, NodeField, Plugin, PodField, PreFilter, PreFilterResult,
    Reads, Status, Touched, Unread,
};
use supercargo_model::cluster::{ObjectChange, VolumeCounts};
use supercargo_model::kinds::{
    CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment,
};
use supercargo_model::{NodeRef, Objects, Pod, Snapshot};

use super::storage::is_attachable;
use attachable::{AttachedVolumes, Migration, PodAge, add_volumes_of, attached_to};

const UNUSABLE_CLAIM: &str = "a claim of the pod is not there, or a volume of it cannot be told";
const REASON: &str = "node(s) exceed max volume count";

/// # What
/// Keeps a pod off nodes where a CSI driver could not attach its volumes any more. Volumes of pods on the node count,
/// bound or not, and so do volumes that are still attached; one that several pods share counts once. Disks of the
/// plugins that were once built in count for the driver that took their place.
///
/// # Why
/// A machine takes only so many disks, and a pod beyond that hangs in `ContainerCreating`.
///
/// # Arguments
/// None: the limits come from the node's CSINode object.
///
/// # Example
/// ```yaml
/// kind: CSINode
/// spec:
///   drivers:
///   - {name: ebs.csi.aws.com, nodeID: i-1, allocatable: {count: 25}}
/// ```
///
/// # Difference from upstream
/// None.
#[derive(Debug)]
pub struct NodeVolumeLimits;

/// What does not depend on the node: what the pod needs on nodes with a CSINode object, and on those without.
#[derive(Clone)]
struct Prepared(Arc<[Result<Needed, Status>; 2]>);

/// The volumes that a pod needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Needed {
    /// These.
    Volumes(AttachedVolumes),
    /// So many of each driver, none of which a pod on a node has: which ones they are makes no difference.
    Counts(BTreeMap<Box<str>, i64>),
}

impl Plugin for NodeVolumeLimits {
    const NAME: &'static str = "NodeVolumeLimits";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        NodeVolumeLimits
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Volumes, PodField::Namespace])
            .node(&[NodeField::Name, NodeField::Pods])
            .kind::<PersistentVolume>()
            .kind::<PersistentVolumeClaim>()
            .kind::<StorageClass>()
            .of_node::<CSINode>()
            .kind::<VolumeAttachment>()
            .resolved()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        !pod.spec.volumes.is_empty()
    }

    fn depends_on(&self, _: &Unread, pod: &Pod, _: &Snapshot) -> bool {
        pod.spec.volumes.iter().any(|volume| is_attachable(pod, volume))
    }

    fn subject(&self) -> &'static str {
        "volumes"
    }
}

impl PreFilter for NodeVolumeLimits {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let pod = cycle.pod;
        if !pod.spec.volumes.iter().any(|volume| is_attachable(pod, volume)) {
            return PreFilterResult::Skip;
        }
        cycle.put(Prepared::new(cycle.cluster().objects(), pod));
        PreFilterResult::AllNodes
    }

    fn resolve(
        &self,
        cycle: &mut Cycle<'_>,
        likeness: &mut Likeness,
    ) -> Result<PreFilterResult, &'static str> {
        let result = self.pre_filter(cycle);
        let Some(Prepared(needed)) = cycle.get() else { return Ok(result) };
        let [Ok(with), Ok(without)] = &**needed else { return Err(UNUSABLE_CLAIM) };
        let mut needed = [with.clone(), without.clone()];
        if sharing::is_shared_with_none(cycle.cluster(), cycle.pod, &needed) {
            needed = needed.map(Needed::without_names);
        }
        likeness.add(&needed);
        cycle.put(Prepared(Arc::new(needed.map(Ok))));
        Ok(result)
    }

    fn touched(&self, cluster: &Snapshot, change: &ObjectChange) -> Touched {
        sharing::touched(cluster, change)
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match cycle.get::<Prepared>() {
            Some(prepared) => check(cycle, prepared, node),
            // Upstream's PreFilter leaves nothing behind, so its Filter works without.
            None => check(cycle, &Prepared::new(cycle.cluster().objects(), cycle.pod), node),
        }
    }
}

impl Prepared {
    fn new(objects: &Objects, pod: &Pod) -> Self {
        let needed = |migration: &mut Migration| {
            let mut volumes = AttachedVolumes::new();
            add_volumes_of(objects, pod, PodAge::New, migration, &mut volumes)
                .map(|()| Needed::Volumes(volumes))
        };
        let mut migration = Migration::new(true);
        let with = needed(&mut migration);
        let without = if migration.matters { needed(&mut Migration::new(false)) } else { with.clone() };
        Prepared(Arc::new([with, without]))
    }

    fn needed_on(&self, node: Option<&CSINode>) -> Result<&Needed, Status> {
        let [with, without] = &*self.0;
        if node.is_some() { with } else { without }.as_ref().map_err(Clone::clone)
    }
}

impl Needed {
    /// The same, where no pod on a node has any of the volumes.
    fn without_names(self) -> Self {
        match self {
            Needed::Counts(_) => self,
            Needed::Volumes(_) => Needed::Counts(self.beside(&AttachedVolumes::new())),
        }
    }

    /// How many volumes of each driver come to those that pods on the node have already.
    fn beside(&self, attached: &AttachedVolumes) -> BTreeMap<Box<str>, i64> {
        let volumes = match self {
            Needed::Counts(counts) => return counts.clone(),
            Needed::Volumes(volumes) => volumes,
        };
        let mut counts = BTreeMap::new();
        for (_, driver) in volumes.iter().filter(|(volume, _)| !attached.contains_key(*volume)) {
            *counts.entry(driver.clone()).or_default() += 1;
        }
        counts
    }

    fn is_empty(&self) -> bool {
        match self {
            Needed::Volumes(volumes) => volumes.is_empty(),
            Needed::Counts(counts) => counts.is_empty(),
        }
    }

    /// The volumes, if it matters which they are.
    fn volumes(&self) -> Option<&AttachedVolumes> {
        match self {
            Needed::Volumes(volumes) => Some(volumes),
            Needed::Counts(_) => None,
        }
    }

    /// The drivers of the volumes, some perhaps several times.
    fn drivers(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Needed::Volumes(volumes) => Box::new(volumes.values().map(|driver| &**driver)),
            Needed::Counts(counts) => Box::new(counts.keys().map(|driver| &**driver)),
        }
    }

    /// How many volumes they are.
    fn len(&self) -> i64 {
        match self {
            Needed::Volumes(volumes) => volumes.len() as i64,
            Needed::Counts(counts) => counts.values().sum(),
        }
    }
}

fn check(cycle: &Cycle<'_>, prepared: &Prepared, node: NodeRef<'_>) -> Status {
    let csi_node: Option<&CSINode> = cycle.object_of(node);
    let needed = match prepared.needed_on(csi_node) {
        Err(status) => return status,
        Ok(needed) => needed,
    };
    let Some(csi_node) = csi_node.filter(|csi_node| limits(csi_node).next().is_some()) else {
        return Status::success();
    };
    let objects = cycle.cluster().objects();
    if needed.is_empty() || has_room_for_all(objects, csi_node, needed, node) {
        return Status::success();
    }
    let mut attached = AttachedVolumes::new();
    for pod in node.pods() {
        if let Err(status) =
            add_volumes_of(objects, pod, PodAge::Placed, &mut Migration::new(true), &mut attached)
        {
            return status;
        }
    }
    // As upstream, a volume that is attached but used by no pod counts once more for the pod that wants it.
    let wanted = needed.beside(&attached);
    let lingering = attached_to(objects, node.name());
    let lingering = lingering.iter().filter(|(volume, _)| !attached.contains_key(*volume));
    let mut counts = wanted;
    for (_, driver) in attached.iter().chain(lingering) {
        counts.entry(driver.clone()).and_modify(|count| *count += 1);
    }
    let exceeds =
        |driver: &str, count: i64| limit_of(csi_node, driver).is_some_and(|limit| count > i64::from(limit));
    if counts.iter().any(|(driver, count)| exceeds(driver, *count)) {
        Status::unschedulable(REASON)
    } else {
        Status::success()
    }
}

/// Whether the node would take all volumes of its pods, all that are attached to it and those that are needed, even if they were
/// all different ones of one driver. Then nobody has to find out what they are.
fn has_room_for_all(objects: &Objects, csi_node: &CSINode, needed: &Needed, node: NodeRef<'_>) -> bool {
    let VolumeCounts { claims, others } = node.usage().volumes();
    // Those may be errors.
    if others > 0 {
        return false;
    }
    let limits = needed.drivers().filter_map(|driver| limit_of(csi_node, driver));
    let Some(lowest) = limits.min() else { return true };
    let room = i64::from(lowest) - i64::from(claims) - needed.len();
    let attachments = || {
        let shelf = VolumeAttachment::shelf_of_node(node.name());
        objects.count_on_shelf::<VolumeAttachment>(&shelf) as i64
    };
    room >= 0 && (!objects.has_any::<VolumeAttachment>() || room >= attachments())
}

/// How many volumes of a driver the node takes; none if it does not say. Where it says so twice, the last counts.
fn limit_of(node: &CSINode, driver: &str) -> Option<i32> {
    limits(node).filter(|(name, _)| *name == driver).last().map(|(_, limit)| limit)
}

/// How many volumes of each driver the node takes; drivers that do not say are not limited.
fn limits(node: &CSINode) -> impl Iterator<Item = (&str, i32)> {
    let drivers = node.spec.drivers.iter();
    drivers.filter_map(|driver| Some((&*driver.name, driver.allocatable.as_ref()?.count?)))
}
