//! The objects of the workloads that are neither nodes nor pods.

use serde_json::{Value, json};

use super::nodes::{ZONE, node_name};
use super::pods::{INIT_NAMESPACE, MEASURED_NAMESPACE, SERVICES, TEAM, claim_name};
use super::workloads::Sizes;

/// The two namespaces with pods in them, chosen by their label, and others that are not.
pub(super) fn namespaces(_: Sizes) -> Vec<Value> {
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
pub(super) fn services(_: Sizes) -> Vec<Value> {
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

/// A quota of a namespace, in cores; all of them have memory enough.
pub(super) fn quota(namespace: &str, min_cores: usize, max_cores: usize) -> Value {
    let amount = |cores: usize| json!({ "cpu": cores.to_string(), "memory": "1Pi" });
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": { "name": "quota", "namespace": namespace },
        "spec": { "min": amount(min_cores), "max": amount(max_cores) },
    })
}

/// Quotas of ten namespaces, large enough for all pods of two of them.
pub(super) fn quotas(sizes: Sizes) -> Vec<Value> {
    const OTHERS: usize = 8;
    let cores = sizes.nodes * 4;
    let ours = [INIT_NAMESPACE, MEASURED_NAMESPACE].map(|name| quota(name, cores, cores));
    let others = (0..OTHERS).map(|number| quota(&format!("other-{number}"), 1, cores));
    ours.into_iter().chain(others).collect()
}

/// One namespace has all that there is, and another one has borrowed it.
pub(super) fn lent_quota(sizes: Sizes) -> Vec<Value> {
    let cores = sizes.nodes * 4;
    vec![quota(INIT_NAMESPACE, 0, cores), quota(MEASURED_NAMESPACE, cores, cores)]
}

/// The driver of all volumes, which took the place of a plugin that was built in, as in kube-scheduler's `SchedulingCSIPVs`.
const DRIVER: &str = "ebs.csi.aws.com";
/// How many volumes a node takes, as there.
const VOLUMES_A_NODE: usize = 39;

/// A claim for every pod. Every other one is bound to a volume that only one zone reaches; the rest wait for their pods, and get
/// new volumes wherever those go.
pub(super) fn volumes(sizes: Sizes) -> Vec<Value> {
    const CLASS: &str = "waiting";
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": CLASS },
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    let mut objects = vec![class];
    objects.extend((0..sizes.nodes).map(csi_node));
    for (namespace, pods) in [(INIT_NAMESPACE, sizes.init), (MEASURED_NAMESPACE, sizes.pods)] {
        for number in 0..pods {
            let mut claim = waiting_claim(namespace, &claim_name(number), CLASS);
            if number % 2 == 0 {
                let volume = format!("{namespace}-volume-{number}");
                let zone = format!("moon-{}", number % 3 + 1);
                objects.push(bound_volume(&volume, &claim["metadata"], CLASS, &zone));
                claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
                claim["spec"]["volumeName"] = volume.into();
                claim["status"] = json!({ "phase": "Bound" });
            }
            objects.push(claim);
        }
    }
    objects
}

fn csi_node(number: usize) -> Value {
    let name = node_name(number);
    let driver = json!({ "name": DRIVER, "nodeID": name, "allocatable": { "count": VOLUMES_A_NODE } });
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": { "name": name },
        "spec": { "drivers": [driver] },
    })
}

fn waiting_claim(namespace: &str, name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}") },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": class,
        },
        "status": { "phase": "Pending" },
    })
}

/// A volume that is bound to the claim with this metadata.
fn bound_volume(name: &str, claim: &Value, class: &str, zone: &str) -> Value {
    let zones = json!({ "key": ZONE, "operator": "In", "values": [zone] });
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": { "namespace": claim["namespace"], "name": claim["name"], "uid": claim["uid"] },
            "csi": { "driver": DRIVER, "volumeHandle": name },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [zones] }] } },
            "storageClassName": class,
        },
        "status": { "phase": "Bound" },
    })
}
