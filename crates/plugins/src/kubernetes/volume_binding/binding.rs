//! Having volumes bound: what Reserve has planned, and how PreBind carries it out.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_framework::{Actions, Awaited, Change, ClusterEvent, Cycle, Effect, News, Plan, Status, Step};
use supercargo_model::kinds::{CSINode, PersistentVolume, PersistentVolumeClaim};
use supercargo_model::{Kind, LabelLookup, NodeRef, ObjectKey, Objects, Pod, Timestamp};

use super::assumed::{SELECTED_NODE, claim_reference, means};
use super::claims::{MigratedVolume, is_bound};
use super::finding::reaches_migrated;
use crate::kubernetes::storage::not_found;

/// On a volume: the claim was put there by a controller and not by hand, so that it is taken off again when it goes.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// What has to happen to the pod's claims on the node that was chosen for it. Reserve leaves it in the cycle.
#[derive(Clone, Debug, Default)]
pub struct PlannedBindings {
    /// Claims that get a volume which is there.
    pub bindings: Vec<PlannedBinding>,
    /// Claims for which a volume is to be made.
    pub provisions: Vec<Arc<PersistentVolumeClaim>>,
    deadline: Option<Timestamp>,
}

/// A claim and the volume that it gets.
#[derive(Clone, Debug)]
pub struct PlannedBinding {
    /// The claim, as it was when its volume was chosen.
    pub claim: Arc<PersistentVolumeClaim>,
    /// The volume, as it was then.
    pub volume: Arc<PersistentVolume>,
}

impl PlannedBinding {
    pub(super) fn new(claim: Arc<PersistentVolumeClaim>, volume: Arc<PersistentVolume>) -> Self {
        PlannedBinding { claim, volume }
    }

    /// The change that binds the volume to the claim; none if it is bound to it already.
    fn patch(&self) -> Option<Value> {
        let reference = self.volume.spec.claim_ref.as_ref();
        let is_meant = reference.is_some_and(|reference| means(reference, &self.claim));
        let is_exact = reference.is_some_and(|reference| *reference == claim_reference(&self.claim));
        let annotations = &self.volume.metadata.annotations;
        let annotate = !is_meant && annotations.label(BOUND_BY_CONTROLLER).is_none();
        if is_exact && !annotate {
            return None;
        }
        let claim = &self.claim.metadata;
        let mut patch = json!({
            "metadata": {"resourceVersion": self.volume.metadata.resource_version},
            "spec": {"claimRef": {
                "apiVersion": PersistentVolumeClaim::ID.version,
                "kind": PersistentVolumeClaim::ID.kind,
                "namespace": claim.namespace,
                "name": claim.name,
                "uid": claim.uid,
                "resourceVersion": claim.resource_version,
            }},
        });
        if annotate {
            patch["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
        }
        Some(patch)
    }
}

impl PlannedBindings {
    pub(super) fn new(bindings: Vec<PlannedBinding>, provisions: Vec<Arc<PersistentVolumeClaim>>) -> Self {
        PlannedBindings { bindings, provisions, deadline: None }
    }

    /// What will be done, in words.
    pub(super) fn plans(&self) -> Vec<Plan> {
        let plan = |claim: &PersistentVolumeClaim, what: &str| {
            let text = format!("claim {} gets {what}", claim.key());
            Plan { kind: PersistentVolumeClaim::ID, key: claim.metadata.object_key(), text }
        };
        let bindings = self
            .bindings
            .iter()
            .map(|binding| plan(&binding.claim, &format!("volume {}", binding.volume.metadata.name)));
        let provisions = self.provisions.iter().map(|claim| plan(claim, "a new volume"));
        bindings.chain(provisions).collect()
    }

    /// Starts the work.
    pub(super) fn start(
        &mut self,
        objects: &Objects,
        pod: &Pod,
        node: NodeRef<'_>,
        deadline: Timestamp,
    ) -> Step {
        if self.bindings.is_empty() && self.provisions.is_empty() {
            return Step::Done(Status::skip());
        }
        self.deadline = Some(deadline);
        let bind = self.bindings.iter().filter_map(|binding| {
            Some(Effect::Patch {
                kind: PersistentVolume::ID,
                key: binding.volume.metadata.object_key(),
                subresource: None,
                patch: binding.patch()?,
            })
        });
        let provision = self.provisions.iter().filter(|claim| !is_selected(claim, node)).map(|claim| {
            let metadata = &claim.metadata;
            let key = metadata.object_key();
            let patch = json!({"metadata": {
                "resourceVersion": metadata.resource_version,
                "annotations": {SELECTED_NODE: &**node.name()},
            }});
            Effect::Patch { kind: PersistentVolumeClaim::ID, key, subresource: None, patch }
        });
        let effects = bind.chain(provision).collect();
        self.wait(objects, pod, effects)
    }

    /// Looks how far binding has come, after what it waited for.
    pub(super) fn go_on(&self, cycle: &Cycle<'_>, node: NodeRef<'_>, news: &News<'_>) -> Step {
        let failed = |reason: &str| Step::Done(Status::error(format!("binding volumes: {reason}")));
        match news {
            News::Failed { error, .. } => return Step::Done(Status::error((*error).to_owned())),
            News::TimedOut => return failed("context deadline exceeded"),
            News::Changed(Change::Pod { old: Some(gone), new: None }) if gone.uid == cycle.pod.uid => {
                return failed(&format!("pod does not exist any more: pod {:?} not found", gone.name));
            }
            // What was done, or changed, is seen in the objects.
            _ => {}
        }
        match self.are_bound(cycle.cluster().objects(), node) {
            Ok(true) => Step::Done(Status::success()),
            Ok(false) => self.wait(cycle.cluster().objects(), cycle.pod, Vec::new()),
            Err(reason) => failed(&reason),
        }
    }

    /// Waits for what [`Self::are_bound`] looks at, and for the end of the pod.
    fn wait(&self, objects: &Objects, pod: &Pod, effects: Vec<Effect>) -> Step {
        let of_volume = |name: &str| {
            let key = ObjectKey { namespace: Box::default(), name: name.into() };
            ClusterEvent::kind(PersistentVolume::ID, Actions::ALL).of(key)
        };
        let of_claim = |claim: &PersistentVolumeClaim| {
            ClusterEvent::kind(PersistentVolumeClaim::ID, Actions::ALL).of(claim.metadata.object_key())
        };
        let own = ObjectKey { namespace: (*pod.namespace).into(), name: (*pod.name).into() };
        let mut events: Vec<Awaited> = vec![ClusterEvent::pod(Actions::DELETE).of(own)];
        for binding in &self.bindings {
            events.extend([of_claim(&binding.claim), of_volume(&binding.volume.metadata.name)]);
        }
        for planned in &self.provisions {
            events.push(of_claim(planned));
            // A claim may name its volume before that is there.
            let named = current_claim(objects, planned).map(|claim| &*claim.spec.volume_name);
            events.extend(named.filter(|name| !name.is_empty()).map(of_volume));
        }
        Step::Wait { effects, events, deadline: self.deadline }
    }

    /// Whether all is bound. An error means that it will not be: the pod is to be tried again.
    fn are_bound(&self, objects: &Objects, node: NodeRef<'_>) -> Result<bool, String> {
        for binding in &self.bindings {
            if !is_binding_done(binding, objects, node)? {
                return Ok(false);
            }
        }
        for claim in &self.provisions {
            if !is_provisioning_done(claim, objects, node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_binding_done(binding: &PlannedBinding, objects: &Objects, node: NodeRef<'_>) -> Result<bool, String> {
    let name = &binding.volume.metadata.name;
    let volume: Option<&PersistentVolume> = objects.get("", name);
    let volume =
        volume.ok_or_else(|| format!("failed to check binding: {}", gone::<PersistentVolume>(name)))?;
    let claim = current_claim(objects, &binding.claim).ok_or_else(|| {
        format!("failed to check binding: {}", gone::<PersistentVolumeClaim>(&binding.claim.key()))
    })?;
    if binding.patch().is_some()
        && volume.metadata.resource_version == binding.volume.metadata.resource_version
    {
        return Ok(false); // our own change has not come back yet
    }
    check_reaches(objects, node, volume)?;
    if volume.spec.claim_ref.as_ref().is_none_or(|reference| reference.uid.is_empty()) {
        return Err(format!("ClaimRef got reset for pv {name:?}"));
    }
    Ok(is_bound(claim))
}

fn is_provisioning_done(
    planned: &PersistentVolumeClaim,
    objects: &Objects,
    node: NodeRef<'_>,
) -> Result<bool, String> {
    let claim = current_claim(objects, planned).ok_or_else(|| {
        format!("failed to check provisioning pvc: {}", gone::<PersistentVolumeClaim>(&planned.key()))
    })?;
    if !is_selected(planned, node) && claim.metadata.resource_version == planned.metadata.resource_version {
        return Ok(false); // our own change has not come back yet
    }
    let name = &claim.metadata.name;
    if claim.metadata.annotations.is_empty() {
        return Err(format!("selectedNode annotation reset for PVC {name:?}"));
    }
    if !is_selected(claim, node) {
        return Err(format!("provisioning failed for PVC {name:?}"));
    }
    if !claim.spec.volume_name.is_empty() {
        let volume: Option<&PersistentVolume> = objects.get("", &claim.spec.volume_name);
        // A volume that is not there may still come.
        let Some(volume) = volume else { return Ok(false) };
        check_reaches(objects, node, volume)?;
    }
    Ok(is_bound(claim))
}

fn check_reaches(objects: &Objects, node: NodeRef<'_>, volume: &PersistentVolume) -> Result<(), String> {
    let csi_node: Option<&CSINode> = objects.get("", node.name());
    if reaches_migrated(node, csi_node, volume, MigratedVolume::of(volume).as_ref())? {
        return Ok(());
    }
    let (volume, node) = (&volume.metadata.name, node.name());
    Err(format!("pv {volume:?} node affinity doesn't match node {node:?}: no matching NodeSelectorTerms"))
}

fn current_claim<'a>(
    objects: &'a Objects,
    claim: &PersistentVolumeClaim,
) -> Option<&'a PersistentVolumeClaim> {
    objects.get(&claim.metadata.namespace, &claim.metadata.name)
}

fn is_selected(claim: &PersistentVolumeClaim, node: NodeRef<'_>) -> bool {
    claim.metadata.annotations.label(SELECTED_NODE) == Some(&**node.name())
}

/// What upstream's assume caches say of an object that is gone: its resource, not its kind.
fn gone<K: Kind>(name: &str) -> String {
    not_found::<K>(name).replacen(' ', "s ", 1)
}
