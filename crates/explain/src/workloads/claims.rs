//! Claims that come with a pod: those of a StatefulSet's templates, and those of generic ephemeral volumes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use supercargo_model::kinds::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use supercargo_model::{Kind, KindId, Snapshot};

use super::admission::{Admission, is_unset};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Provisioners of Kubernetes itself, which are no CSI drivers.
const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// Makes claims.
pub(super) struct Claims<'a> {
    pub(super) cluster: &'a Snapshot,
    pub(super) admission: &'a Admission,
}

impl Claims<'_> {
    /// Adds the claims of a pod that are not there yet, and what becomes of them before the pod is scheduled.
    pub(super) fn make(
        &self,
        pod: &Value,
        templates: &[Value],
        objects: &mut Vec<(KindId, Value)>,
        assumptions: &mut BTreeSet<String>,
    ) {
        let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
        for template in templates {
            let name = format!("{}-{pod_name}", template["metadata"]["name"].as_str().unwrap_or_default());
            self.make_one(pod, &name, template, None, objects, assumptions);
        }
        let volumes = pod["spec"]["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
        for volume in volumes {
            let template = &volume["ephemeral"]["volumeClaimTemplate"];
            if template.is_object() {
                let name = format!("{pod_name}-{}", volume["name"].as_str().unwrap_or_default());
                let owner = json!([{
                    "apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": pod["metadata"]["uid"],
                    "controller": true,
                }]);
                self.make_one(pod, &name, template, Some(owner), objects, assumptions);
            }
        }
    }

    fn make_one(
        &self,
        pod: &Value,
        name: &str,
        template: &Value,
        owners: Option<Value>,
        objects: &mut Vec<(KindId, Value)>,
        assumptions: &mut BTreeSet<String>,
    ) {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let known = self.cluster.objects();
        if known.get::<PersistentVolumeClaim>(namespace, name).is_some() {
            return;
        }
        let mut claim = json!({
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": format!("{namespace}/{name}"),
                "labels": template["metadata"]["labels"],
                "annotations": template["metadata"]["annotations"],
                "ownerReferences": owners.unwrap_or_else(|| json!([])),
            },
            "spec": template["spec"],
            "status": { "phase": "Pending" },
        });
        let class_name = self.class_of(&mut claim);
        let class = class_name.as_deref().and_then(|name| known.get::<StorageClass>("", name));
        if let (None, Some(class_name)) = (class, &class_name) {
            assumptions.insert(format!(
                "its storage class {class_name} is not known here, so its claims stay unbound: add the StorageClass"
            ));
        }
        if let (Some(class), Some(class_name)) = (class, class_name)
            && class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer")
        {
            if *class.provisioner == *NO_PROVISIONER {
                assumptions.insert(format!(
                    "its claims of class {class_name} are bound before it is scheduled, to volumes that are there; here they \
                     are as yet unbound"
                ));
            } else {
                assumptions.insert(format!(
                    "its claims of class {class_name} get their volumes at once; these are taken to be wherever the class \
                     allows"
                ));
                objects.push((PersistentVolume::ID, provision(&mut claim, class, &class_name)));
            }
        }
        objects.push((PersistentVolumeClaim::ID, claim));
    }

    /// The storage class of a claim. One that names none gets the default class.
    fn class_of(&self, claim: &mut Value) -> Option<String> {
        let spec = claim["spec"].as_object_mut()?;
        if is_unset(spec.get("storageClassName")) {
            spec.insert("storageClassName".to_owned(), json!(self.admission.default_storage_class()?));
        }
        let name = spec["storageClassName"].as_str().unwrap_or_default();
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// Binds a claim to a volume that its class has made for it, and returns that volume.
fn provision(claim: &mut Value, class: &StorageClass, class_name: &str) -> Value {
    let uid = claim["metadata"]["uid"].as_str().unwrap_or_default();
    let name = format!("pvc-{uid}");
    let mut spec = json!({
        "accessModes": claim["spec"]["accessModes"],
        "capacity": claim["spec"]["resources"]["requests"],
        "storageClassName": class_name,
        "claimRef": {
            "name": claim["metadata"]["name"], "namespace": claim["metadata"]["namespace"], "uid": uid,
        },
    });
    if !class.provisioner.starts_with(IN_TREE_PREFIX) {
        spec["csi"] = json!({ "driver": class.provisioner, "volumeHandle": name });
    }
    let terms: Vec<Value> = class
        .allowed_topologies
        .iter()
        .map(|term| {
            let requirements = term.match_label_expressions.iter().map(
                |requirement| json!({ "key": requirement.key, "operator": "In", "values": requirement.values }),
            );
            json!({ "matchExpressions": requirements.collect::<Vec<_>>() })
        })
        .collect();
    if !terms.is_empty() {
        spec["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": terms } });
    }
    if !claim["metadata"]["annotations"].is_object() {
        claim["metadata"]["annotations"] = json!({});
    }
    claim["metadata"]["annotations"][BIND_COMPLETED] = json!("yes");
    claim["spec"]["volumeName"] = json!(name);
    claim["status"]["phase"] = json!("Bound");
    json!({ "metadata": { "name": name, "uid": name }, "spec": spec, "status": { "phase": "Bound" } })
}
