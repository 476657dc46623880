//! Pods and nodes that read like sentences.

#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use serde_json::{Value, json};

/// A pod that is being written.
#[derive(Clone, Debug)]
#[must_use]
pub struct PodBuilder(Value);

/// A node that is being written.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeBuilder(Value);

/// A pending pod in the namespace `default`, with one container that requests nothing; its UID is its name.
pub fn pod(name: &str) -> PodBuilder {
    PodBuilder(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "schedulerName": "default-scheduler", "containers": [{ "name": "main" }] },
    }))
}

/// A node with 4 cores, 8 GiB, room for 110 pods, and its name as its `kubernetes.io/hostname`.
pub fn node(name: &str) -> NodeBuilder {
    NodeBuilder(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" } },
    }))
}

macro_rules! common {
    ($($builder:ident)*) => {$(
        impl $builder {
            /// Has this label.
            pub fn label(self, key: &str, value: &str) -> Self {
                self.with(json!({ "metadata": { "labels": { key: value } } }))
            }

            /// Has this annotation.
            pub fn annotation(self, key: &str, value: &str) -> Self {
                self.with(json!({ "metadata": { "annotations": { key: value } } }))
            }

            /// Is changed by a JSON merge patch: the way to everything that has no method of its own.
            pub fn with(mut self, patch: Value) -> Self {
                merge(&mut self.0, &patch);
                self
            }

            fn push(mut self, list: &str, entry: Value) -> Self {
                let list = &mut self.0.pointer_mut("/spec").expect("there is a spec")[list];
                match list {
                    Value::Array(entries) => entries.push(entry),
                    other => *other = json!([entry]),
                }
                self
            }
        }

        impl From<$builder> for Value {
            fn from(builder: $builder) -> Value {
                builder.0
            }
        }
    )*};
}

common! { PodBuilder NodeBuilder }

impl PodBuilder {
    /// Is in this namespace; a UID that is the pod's name becomes `NAMESPACE/NAME`, so that there can be two of one name.
    pub fn namespace(self, namespace: &str) -> Self {
        let metadata = &self.0["metadata"];
        let own = metadata["uid"] == metadata["name"] && namespace != "default";
        let uid = if own {
            json!(format!("{namespace}/{}", metadata["name"].as_str().unwrap_or_default()))
        } else {
            metadata["uid"].clone()
        };
        self.with(json!({ "metadata": { "namespace": namespace, "uid": uid } }))
    }

    /// Is scheduled by the profile of this name.
    pub fn scheduler(self, name: &str) -> Self {
        self.with(json!({ "spec": { "schedulerName": name } }))
    }

    /// Has this UID instead of its name.
    pub fn uid(self, uid: &str) -> Self {
        self.with(json!({ "metadata": { "uid": uid } }))
    }

    /// Is controlled by this owner.
    pub fn controller(self, api_version: &str, kind: &str, name: &str) -> Self {
        let owner = json!({ "apiVersion": api_version, "kind": kind, "name": name, "controller": true });
        self.with(json!({ "metadata": { "ownerReferences": [owner] } }))
    }

    /// Requests so much cpu in its container.
    pub fn cpu(self, amount: &str) -> Self {
        self.request("cpu", amount)
    }

    /// Requests so much memory in its container.
    pub fn memory(self, amount: &str) -> Self {
        self.request("memory", amount)
    }

    /// Requests so much of any resource in its container.
    pub fn request(self, resource: &str, amount: &str) -> Self {
        self.container(json!({ "resources": { "requests": { resource: amount } } }))
    }

    /// Runs this image in its container.
    pub fn image(self, image: &str) -> Self {
        self.container(json!({ "image": image }))
    }

    /// Takes this port of its host.
    pub fn host_port(self, port: u16) -> Self {
        self.container(json!({ "ports": [{ "hostPort": port }] }))
    }

    /// Has its container changed by a merge patch.
    pub fn container(mut self, patch: Value) -> Self {
        merge(&mut self.0["spec"]["containers"][0], &patch);
        self
    }

    /// Has this priority.
    pub fn priority(self, priority: i32) -> Self {
        self.with(json!({ "spec": { "priority": priority } }))
    }

    /// Runs on this node.
    pub fn on(self, node: &str) -> Self {
        self.with(json!({ "spec": { "nodeName": node } }))
    }

    /// Has room made for it on this node.
    pub fn nominated(self, node: &str) -> Self {
        self.with(json!({ "status": { "nominatedNodeName": node } }))
    }

    /// Started so many seconds after the epoch.
    pub fn started(self, seconds: u32) -> Self {
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        self.with(json!({ "status": { "startTime": format!("1970-01-01T00:{minutes:02}:{seconds:02}Z") } }))
    }

    /// Is being deleted.
    pub fn terminating(self) -> Self {
        self.with(json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:01Z" } }))
    }

    /// Tolerates such a taint.
    pub fn toleration(self, key: &str, value: &str, effect: &str) -> Self {
        self.push("tolerations", json!({ "key": key, "value": value, "effect": effect }))
    }

    /// Runs only on nodes with this label.
    pub fn node_selector(self, key: &str, value: &str) -> Self {
        self.with(json!({ "spec": { "nodeSelector": { key: value } } }))
    }

    /// Has this affinity, as it stands in `spec.affinity`.
    pub fn affinity(self, affinity: Value) -> Self {
        self.with(json!({ "spec": { "affinity": affinity } }))
    }

    /// Must run near pods with this label, or far from them if `anti`; near is the same value of the topology key.
    pub fn near(self, anti: bool, (key, value): (&str, &str), topology_key: &str) -> Self {
        let list = if anti { "podAntiAffinity" } else { "podAffinity" };
        let term = json!({ "labelSelector": { "matchLabels": { key: value } }, "topologyKey": topology_key });
        self.affinity(json!({ list: { "requiredDuringSchedulingIgnoredDuringExecution": [term] } }))
    }

    /// Has this spread constraint as well.
    pub fn spread(self, constraint: Value) -> Self {
        self.push("topologySpreadConstraints", constraint)
    }
}

impl NodeBuilder {
    /// Has so much cpu.
    pub fn cpu(self, amount: &str) -> Self {
        self.allocatable("cpu", amount)
    }

    /// Has so much memory.
    pub fn memory(self, amount: &str) -> Self {
        self.allocatable("memory", amount)
    }

    /// Takes so many pods.
    pub fn pods(self, count: u32) -> Self {
        self.allocatable("pods", &count.to_string())
    }

    /// Has so much of any resource.
    pub fn allocatable(self, resource: &str, amount: &str) -> Self {
        self.with(json!({ "status": { "allocatable": { resource: amount } } }))
    }

    /// Is in this zone.
    pub fn zone(self, zone: &str) -> Self {
        self.label("topology.kubernetes.io/zone", zone)
    }

    /// Has this taint.
    pub fn taint(self, key: &str, value: &str, effect: &str) -> Self {
        self.with(json!({ "spec": {} }))
            .push("taints", json!({ "key": key, "value": value, "effect": effect }))
    }

    /// Is cordoned.
    pub fn unschedulable(self) -> Self {
        self.with(json!({ "spec": { "unschedulable": true } }))
    }

    /// Has this image, of so many bytes.
    pub fn image(mut self, name: &str, size: i64) -> Self {
        let image = json!({ "names": [name], "sizeBytes": size });
        match &mut self.0["status"]["images"] {
            Value::Array(images) => images.push(image),
            other => *other = json!([image]),
        }
        self
    }

    /// Declares these features.
    pub fn features(self, features: &[&str]) -> Self {
        self.with(json!({ "status": { "declaredFeatures": features } }))
    }
}

/// A JSON merge patch: objects are merged, null removes, everything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().expect("it was just made one");
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}
