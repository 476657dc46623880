mod attachable;
mod hints;

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::{
    Cycle, Extensions, Filter, NoArgs, NodeField, Plugin, PodField, PreFilter, PreFilterResult, Reads,
    Status, Unread,
};
use supercargo_model::kinds::{
    CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment,
};
use supercargo_model::{NodeRef, Objects, Pod, Snapshot};

use super::storage::is_attachable;
use attachable::{AttachedVolumes, Attachments, PodAge, add_volumes_of};

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

/// What does not depend on the node.
#[derive(Clone)]
struct Prepared {
    /// What the pod needs on nodes with a CSINode object, and on those without.
    needed: Arc<[Result<AttachedVolumes, Status>; 2]>,
    attachments: Arc<Attachments>,
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
            .kind::<CSINode>()
            .kind::<VolumeAttachment>()
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
        let prepared = Prepared::new(cycle.cluster().objects(), pod);
        cycle.put(prepared);
        PreFilterResult::AllNodes
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let objects = cycle.cluster().objects();
        match cycle.get::<Prepared>() {
            Some(prepared) => check(objects, prepared, node),
            // Upstream's PreFilter leaves nothing behind, so its Filter works without.
            None => check(objects, &Prepared::new(objects, cycle.pod), node),
        }
    }
}

impl Prepared {
    fn new(objects: &Objects, pod: &Pod) -> Self {
        let needed = |migrates| {
            let mut volumes = AttachedVolumes::new();
            add_volumes_of(objects, pod, PodAge::New, migrates, &mut volumes).map(|()| volumes)
        };
        Prepared {
            needed: Arc::new([needed(true), needed(false)]),
            attachments: Arc::new(Attachments::new(objects)),
        }
    }

    fn needed_on(&self, node: Option<&CSINode>) -> Result<&AttachedVolumes, Status> {
        let [with, without] = &*self.needed;
        if node.is_some() { with } else { without }.as_ref().map_err(Clone::clone)
    }
}

fn check(objects: &Objects, prepared: &Prepared, node: NodeRef<'_>) -> Status {
    let csi_node: Option<&CSINode> = objects.get("", node.name());
    let needed = match prepared.needed_on(csi_node) {
        Err(status) => return status,
        Ok(needed) => needed,
    };
    let limits = csi_node.map(limits).unwrap_or_default();
    if needed.is_empty() || limits.is_empty() {
        return Status::success();
    }
    let mut attached = AttachedVolumes::new();
    for pod in node.pods() {
        if let Err(status) = add_volumes_of(objects, pod, PodAge::Placed, csi_node.is_some(), &mut attached) {
            return status;
        }
    }
    let mut lingering = prepared.attachments.to_node(objects, node.name());
    lingering.retain(|volume, _| !attached.contains_key(volume));
    // As upstream, a volume that is attached but used by no pod counts once more for the pod that wants it.
    let wanted = needed.iter().filter(|(volume, _)| !attached.contains_key(*volume));
    let mut counts: BTreeMap<&str, (i64, bool)> = BTreeMap::new();
    for (_, driver) in attached.iter().chain(&lingering) {
        counts.entry(driver).or_default().0 += 1;
    }
    for (_, driver) in wanted {
        let (count, is_wanted) = counts.entry(driver).or_default();
        (*count, *is_wanted) = (*count + 1, true);
    }
    let exceeds = |(driver, (count, is_wanted)): (&&str, &(i64, bool))| {
        *is_wanted && limits.get(*driver).is_some_and(|limit| *count > i64::from(*limit))
    };
    if counts.iter().any(exceeds) { Status::unschedulable(REASON) } else { Status::success() }
}

/// How many volumes of each driver the node takes; drivers that do not say are not limited.
fn limits(node: &CSINode) -> BTreeMap<&str, i32> {
    let drivers = node.spec.drivers.iter();
    drivers.filter_map(|driver| Some((&*driver.name, driver.allocatable.as_ref()?.count?))).collect()
}
