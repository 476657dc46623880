//! From a template to a pod, as the controllers do it.

use serde_json::{Map, Value, json};

use super::admission::{list_at, object_at};
use super::family::TEMPLATE_HASH;
use super::seats::Seat;
use super::{Workload, WorkloadKind};

/// What stands for a name or a hash that only a controller can make up.
const NEW: &str = "new";
const REVISION_HASH: &str = "controller-revision-hash";
/// What daemons put up with on any node, and on the host's network.
const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const HOST_NETWORK_TOLERATION: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The object that controls the pods: the workload itself, or what it makes for that.
pub(super) struct Owner {
    kind: WorkloadKind,
    name: String,
    uid: String,
    /// Labels that all of its pods get.
    labels: Vec<(&'static str, String)>,
    /// Whether there is no such object yet.
    is_new: bool,
}

impl Owner {
    /// The owner of new pods. `current` is the ReplicaSet of a Deployment that has its template, if there is one.
    pub(super) fn of(workload: &Workload, current: Option<&Workload>) -> Self {
        let metadata = &workload.words.metadata;
        let known = |of: &Workload, labels| Owner {
            kind: of.kind,
            name: of.words.metadata.name.clone(),
            uid: of.words.metadata.uid.clone(),
            labels,
            is_new: false,
        };
        match (workload.kind, current) {
            (WorkloadKind::Deployment, Some(current)) => {
                let labels = &current.words.spec.template["metadata"]["labels"];
                let hash = labels[TEMPLATE_HASH].as_str().unwrap_or(NEW).to_owned();
                known(current, vec![(TEMPLATE_HASH, hash)])
            }
            (WorkloadKind::Deployment | WorkloadKind::CronJob, _) => {
                let is_deployment = workload.kind == WorkloadKind::Deployment;
                Owner {
                    kind: workload.kind.through().unwrap_or(workload.kind),
                    name: format!("{}-{NEW}", metadata.name),
                    uid: String::new(),
                    labels: is_deployment.then(|| (TEMPLATE_HASH, NEW.to_owned())).into_iter().collect(),
                    is_new: true,
                }
            }
            (WorkloadKind::StatefulSet, _) => {
                let revision = match &*workload.words.status.update_revision {
                    "" => format!("{}-{NEW}", metadata.name),
                    revision => revision.to_owned(),
                };
                known(workload, vec![(REVISION_HASH, revision)])
            }
            (WorkloadKind::DaemonSet, _) => known(workload, vec![(REVISION_HASH, NEW.to_owned())]),
            (WorkloadKind::Job, _) => {
                let uid = &metadata.uid;
                let labels = ["controller-uid", "batch.kubernetes.io/controller-uid"];
                let labels = labels.into_iter().filter(|_| !uid.is_empty());
                known(workload, labels.map(|label| (label, uid.clone())).collect())
            }
            _ => known(workload, Vec::new()),
        }
    }

    /// The ReplicaSet that a Deployment would make: spreading by default looks at what it selects.
    pub(super) fn new_replica_set(&self, workload: &Workload) -> Option<Value> {
        if !self.is_new || self.kind != WorkloadKind::ReplicaSet {
            return None;
        }
        let mut selector = workload.words.spec.selector.as_object().cloned().unwrap_or_default();
        object_at(&mut selector, "matchLabels").insert(TEMPLATE_HASH.to_owned(), json!(NEW));
        let metadata = json!({ "name": self.name, "namespace": workload.words.metadata.namespace });
        Some(json!({ "metadata": metadata, "spec": { "selector": selector } }))
    }
}

/// The pod for a seat; none if there is no template.
pub(super) fn pod(workload: &Workload, owner: &Owner, seat: &Seat) -> Option<Value> {
    let mut pod = loose_pod(workload, owner)?;
    let metadata = pod["metadata"].as_object_mut()?;
    metadata.insert("name".to_owned(), json!(seat.name));
    let uid = format!("{}/{}", workload.words.metadata.namespace, seat.name);
    metadata.insert("uid".to_owned(), json!(uid));
    for (key, value) in &seat.labels {
        object_at(metadata, "labels").insert((*key).to_owned(), json!(value));
    }
    for (key, value) in &seat.annotations {
        object_at(metadata, "annotations").insert((*key).to_owned(), json!(value));
    }
    let spec = pod["spec"].as_object_mut()?;
    for claim in &workload.pod_maker().volume_claim_templates {
        mount(spec, claim["metadata"]["name"].as_str().unwrap_or_default(), &seat.name);
    }
    if let Some(node) = &seat.node {
        pin(spec, node);
    }
    Some(pod)
}

/// A pod of the workload before it gets a name, claims and a node of its own; none if there is no template.
pub(super) fn loose_pod(workload: &Workload, owner: &Owner) -> Option<Value> {
    let template = &workload.pod_maker().template;
    let mut spec = template["spec"].as_object()?.clone();
    if workload.kind == WorkloadKind::DaemonSet {
        tolerate_as_daemon(&mut spec);
    }
    let map = |key: &str| template["metadata"][key].as_object().cloned().unwrap_or_default();
    let mut labels: Map<String, Value> = map("labels");
    labels.extend(owner.labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    let words = &workload.words.metadata;
    let name = format!("{}-{NEW}", words.name);
    Some(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": words.namespace,
            "uid": format!("{}/{name}", words.namespace),
            "labels": labels,
            "annotations": map("annotations"),
            "ownerReferences": [{
                "apiVersion": owner.kind.id().api_version(),
                "kind": owner.kind.id().kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": true,
            }],
        },
        "spec": spec,
    }))
}

/// Lets the volume of a claim's name be the pod's own claim.
fn mount(spec: &mut Map<String, Value>, claim: &str, pod: &str) {
    let volumes = list_at(spec, "volumes");
    volumes.retain(|volume| volume["name"] != claim);
    volumes
        .push(json!({ "name": claim, "persistentVolumeClaim": { "claimName": format!("{claim}-{pod}") } }));
}

/// Lets the pod go to one node only. What its template requires of nodes was looked at when the node was chosen, and is
/// replaced.
fn pin(spec: &mut Map<String, Value>, node: &str) {
    let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let required = json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
    let affinity = object_at(object_at(spec, "affinity"), "nodeAffinity");
    affinity.insert(REQUIRED.to_owned(), required);
}

fn tolerate_as_daemon(spec: &mut Map<String, Value>) {
    let on_host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let tolerations = list_at(spec, "tolerations");
    let further = on_host_network.then_some(HOST_NETWORK_TOLERATION);
    for (key, effect) in DAEMON_TOLERATIONS.into_iter().chain(further) {
        let toleration = json!({ "key": key, "operator": "Exists", "effect": effect });
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}
