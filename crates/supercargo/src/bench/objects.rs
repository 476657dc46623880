//! The objects of the workloads that are neither nodes nor pods.

use serde_json::{Value, json};

use super::nodes::ZONE;
use super::pods::{INIT_NAMESPACE, MEASURED_NAMESPACE, SERVICES, TEAM, claim_name};

/// The two namespaces with pods in them, chosen by their label, and others that are not.
pub(super) fn namespaces(_: usize) -> Vec<Value> {
    const OTHERS: usize = 98;
    let namespace = |name: &str, team: &str| {
        let metadata = json!({ "name": name, "labels": { TEAM.0: team } });
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
    };
    let ours = [INIT_NAMESPACE, MEASURED_NAMESPACE].map(|name| namespace(name, TEAM.1));
    let others = (0..OTHERS).map(|number| namespace(&format!("other-{number}"), "others"));
    ours.into_iter().chain(others).collect()
}

/// The services that the measured pods belong to.
pub(super) fn services(_: usize) -> Vec<Value> {
    let service = |number: usize| {
        let name = format!("service-{number}");
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": name, "namespace": MEASURED_NAMESPACE },
            "spec": { "selector": { "app": name } },
        })
    };
    (0..SERVICES).map(service).collect()
}

/// A claim for every measured pod. Every other one is bound to a volume that only one zone reaches; the rest wait for
/// their pods, and get new volumes wherever those go.
pub(super) fn volumes(pods: usize) -> Vec<Value> {
    const CLASS: &str = "local";
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": CLASS },
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    let mut objects = vec![class];
    for number in 0..pods {
        let name = claim_name(number);
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": name, "namespace": MEASURED_NAMESPACE, "uid": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
                "storageClassName": CLASS,
            },
            "status": { "phase": "Pending" },
        });
        if number % 2 == 0 {
            let volume = format!("volume-{number}");
            objects.push(bound_volume(&volume, &name, CLASS, &format!("moon-{}", number % 3 + 1)));
            claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
            claim["spec"]["volumeName"] = volume.into();
            claim["status"] = json!({ "phase": "Bound" });
        }
        objects.push(claim);
    }
    objects
}

fn bound_volume(name: &str, claim: &str, class: &str, zone: &str) -> Value {
    let zones = json!({ "key": ZONE, "operator": "In", "values": [zone] });
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": { "namespace": MEASURED_NAMESPACE, "name": claim, "uid": claim },
            "csi": { "driver": "csi.example.com", "volumeHandle": name },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [zones] }] } },
            "storageClassName": class,
        },
        "status": { "phase": "Bound" },
    })
}
