//! Which volumes of CSI drivers a pod has attached to its node.

use std::collections::BTreeMap;

use supercargo_framework::Status;
use supercargo_model::kinds::{PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment};
use supercargo_model::pod::Volume;
use supercargo_model::{Objects, Pod};

use crate::kubernetes::storage::{InTreePlugin, check_owner, claim_of, find_claim, is_in_tree_plugin};

/// Volumes by `driver/handle`, with their drivers.
pub(super) type AttachedVolumes = BTreeMap<String, Box<str>>;

/// Whether the pod is the one to be placed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PodAge {
    New,
    Placed,
}

/// Whether disks of plugins that were once built in are handed to CSI drivers.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    happens: bool,
    /// Whether there was such a disk.
    pub(super) matters: bool,
}

impl Migration {
    pub(super) fn new(happens: bool) -> Self {
        Migration { happens, matters: false }
    }

    fn of(&mut self, plugin: Option<InTreePlugin>) -> Option<InTreePlugin> {
        self.matters |= plugin.is_some();
        plugin.filter(|_| self.happens)
    }
}

/// Stands before the name of a claim that is not bound, in the place of the handle its volume will have. Upstream draws
/// it at random, to the same end: no driver gives such a handle.
const UNBOUND: &str = "unbound\0";

/// Adds the volumes of a pod. Disks of plugins that were once built in count only if they are migrated.
pub(super) fn add_volumes_of(
    objects: &Objects,
    pod: &Pod,
    age: PodAge,
    migration: &mut Migration,
    volumes: &mut AttachedVolumes,
) -> Result<(), Status> {
    for volume in &pod.spec.volumes {
        let Some(named) = claim_of(pod, volume) else {
            add_inline(volume, migration, volumes).map_err(Status::error)?;
            continue;
        };
        if named.name.is_empty() {
            return Err(Status::error("PersistentVolumeClaim had no name"));
        }
        let claim = match find_claim(objects, pod, &named.name) {
            Ok(claim) => claim,
            // A pod that runs without its claim is no reason to stop others.
            Err(_) if age == PodAge::Placed => continue,
            Err(reason) => {
                let (namespace, name) = (&pod.namespace, &named.name);
                return Err(Status::unresolvable(format!("looking up PVC {namespace}/{name}: {reason}")));
            }
        };
        if named.is_ephemeral {
            check_owner(pod, &claim).map_err(Status::error)?;
        }
        if let Some((driver, handle)) = volume_of(objects, &claim, migration)
            && !driver.is_empty()
            && !handle.is_empty()
        {
            volumes.insert(unique_name(&driver, &handle), driver);
        }
    }
    Ok(())
}

/// The volumes that are attached to a node, whether a pod uses them or not.
pub(super) fn attached_to(objects: &Objects, node: &str) -> AttachedVolumes {
    let attached = |attachment: &VolumeAttachment| {
        let spec = &attachment.spec;
        let name = spec.source.persistent_volume_name.as_deref()?;
        let volume: &PersistentVolume = objects.get("", name)?;
        let handle = &volume.spec.csi.as_ref()?.volume_handle;
        let attacher = Some(&spec.attacher).filter(|attacher| !attacher.is_empty())?;
        Some((unique_name(attacher, handle), attacher.clone()))
    };
    let attachments = objects.on_shelf(&VolumeAttachment::shelf_of_node(node));
    attachments.filter_map(|(_, attachment)| attached(&attachment)).collect()
}

fn add_inline(
    volume: &Volume,
    migration: &mut Migration,
    volumes: &mut AttachedVolumes,
) -> Result<(), String> {
    let Some(plugin) = migration.of(InTreePlugin::of_inline(&volume.source)) else { return Ok(()) };
    let handle = InTreePlugin::inline_handle(&volume.source)
        .map_err(|error| format!("converting volume({}) from inline to csi: {error}", volume.name))?;
    volumes.insert(unique_name(plugin.driver(), &handle), plugin.driver().into());
    Ok(())
}

/// The driver and the handle of the volume that the claim is bound to, or of the one it will get.
fn volume_of(
    objects: &Objects,
    claim: &PersistentVolumeClaim,
    migration: &mut Migration,
) -> Option<(Box<str>, String)> {
    let name = &*claim.spec.volume_name;
    let volume: Option<&PersistentVolume> = if name.is_empty() { None } else { objects.get("", name) };
    let Some(volume) = volume else { return future_volume_of(objects, claim, migration) };
    if let Some(csi) = &volume.spec.csi {
        return Some((csi.driver.clone(), csi.volume_handle.to_string()));
    }
    let plugin = migration.of(InTreePlugin::of_volume(volume))?;
    Some((plugin.driver().into(), plugin.handle(volume).ok()?))
}

/// The driver that will make a volume for the claim, and a handle that stands for it until then.
fn future_volume_of(
    objects: &Objects,
    claim: &PersistentVolumeClaim,
    migration: &mut Migration,
) -> Option<(Box<str>, String)> {
    // A claim without a class is bound before its pod is placed, or never.
    let class: &StorageClass = objects.get("", Some(claim.class()).filter(|name| !name.is_empty())?)?;
    let handle = format!("{UNBOUND}{}", claim.key());
    if is_in_tree_plugin(&class.provisioner) {
        let plugin = migration.of(InTreePlugin::named(&class.provisioner))?;
        return Some((plugin.driver().into(), handle));
    }
    Some((class.provisioner.clone(), handle))
}

fn unique_name(driver: &str, handle: &str) -> String {
    let mut name = String::with_capacity(driver.len() + handle.len() + 1);
    name.push_str(driver);
    name.push('/');
    name.push_str(handle);
    name
}
