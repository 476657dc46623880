//! Nodes and all other objects, as they are put and changed.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::templates::{APPS, CLAIMS, CONTROLLERS, HOST, NAMESPACES, OWN_CLAIMS, RACK, ZONE};

/// The last four are bound to one claim each, if that is there.
const VOLUMES: [&str; 8] = ["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"];
const DRIVERS: [&str; 2] = ["one.csi.example.com", "two.csi.example.com"];

/// Changes a node. With `true`, nodes do not agree on how large an image is.
type NodeChange = fn(&mut Chance, &mut Value, bool);

/// What can change about a node.
pub(crate) const NODE_CHANGES: [(&str, NodeChange); 7] = [
    ("node relabelled", relabel),
    ("node relabelled irrelevantly", relabel_irrelevantly),
    ("node retainted", retaint),
    ("node cordoned or uncordoned", cordon),
    ("node resized", resize),
    ("node images changed", change_images),
    ("node features changed", change_features),
];

/// A new node. With `odd`, nodes do not agree on how large an image is.
pub(crate) fn node(chance: &mut Chance, name: &str, odd: bool) -> Value {
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { HOST: name, ZONE: chance.pick(&["a", "b", "c"]) } },
        "spec": {},
        "status": { "allocatable": {} },
    });
    if chance.percent(75) {
        // Two nodes to a rack, so that a cluster has many of them.
        let number: usize = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        node["metadata"]["labels"][RACK] = json!(format!("r{}", number / 2));
    }
    resize(chance, &mut node, odd);
    if chance.percent(50) {
        relabel(chance, &mut node, odd);
    }
    if chance.percent(30) {
        retaint(chance, &mut node, odd);
    }
    if chance.percent(40) {
        change_images(chance, &mut node, odd);
    }
    if chance.percent(20) {
        change_features(chance, &mut node, odd);
    }
    node
}

fn relabel(chance: &mut Chance, node: &mut Value, _: bool) {
    let name = node["metadata"]["name"].clone();
    let labels = &mut node["metadata"]["labels"];
    for _ in 0..chance.between(1, 2) {
        match chance.below(10) {
            0..=3 => set(labels, ZONE, chance.weighted(&[(3, "a"), (3, "b"), (1, "c"), (1, "")])),
            4 | 5 => set(labels, RACK, chance.weighted(&[(2, "r1"), (2, "r2"), (1, "r3"), (1, "-")])),
            6 => set(labels, HOST, chance.weighted(&[(2, "twin"), (1, "n0"), (1, "-"), (1, "")])),
            7 => labels[HOST] = name.clone(),
            8 => set(labels, "disk", chance.weighted(&[(2, "ssd"), (2, "hdd"), (1, "-")])),
            _ => set(labels, "rank", chance.weighted(&[(1, "1"), (1, "2"), (1, "3"), (1, "x")])),
        }
    }
    if chance.percent(8) {
        set(labels, ZONE, "-");
    }
}

/// A dash takes the label away.
fn set(labels: &mut Value, key: &str, value: &str) {
    let labels = labels.as_object_mut().expect("labels are an object");
    if value == "-" {
        labels.remove(key);
    } else {
        labels.insert(key.to_owned(), json!(value));
    }
}

fn relabel_irrelevantly(chance: &mut Chance, node: &mut Value, _: bool) {
    node["metadata"]["labels"]["heartbeat"] = json!(chance.below(1000).to_string());
}

fn retaint(chance: &mut Chance, node: &mut Value, _: bool) {
    let taint = |chance: &mut Chance| {
        json!({
            "key": chance.pick(&["spot", "dedicated"]),
            "value": chance.pick(&["", "x", "y"]),
            "effect": chance.pick(&["NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"]),
        })
    };
    let taints: Vec<Value> = (0..chance.weighted(&[(6, 0), (3, 1), (1, 2)])).map(|_| taint(chance)).collect();
    node["spec"]["taints"] = json!(taints);
}

fn cordon(chance: &mut Chance, node: &mut Value, _: bool) {
    let cordoned = node["spec"]["unschedulable"] == json!(true);
    node["spec"]["unschedulable"] = json!(!cordoned && chance.percent(35));
}

fn resize(chance: &mut Chance, node: &mut Value, _: bool) {
    let mut allocatable = json!({
        "cpu": chance.pick(&["1", "2", "4", "8", "8"]),
        "memory": chance.pick(&["2Gi", "8Gi", "8Gi", "16Gi"]),
        "pods": chance.pick(&["3", "10", "20", "110"]),
    });
    if chance.percent(40) {
        allocatable["example.com/gpu"] = json!(chance.pick(&["0", "1", "4"]));
    }
    if chance.percent(30) {
        allocatable["ephemeral-storage"] = json!("10Gi");
        allocatable["hugepages-2Mi"] = json!("8Mi");
    }
    if chance.percent(3) {
        allocatable["cpu"] = json!("0");
    }
    node["status"]["allocatable"] = allocatable;
}

fn change_images(chance: &mut Chance, node: &mut Value, odd: bool) {
    let mut images = Vec::new();
    for (names, size) in
        [(json!(["big:1", "big:latest"]), 900_000_000_u64), (json!(["small:1"]), 150_000_000)]
    {
        if chance.percent(50) {
            let size = if odd && chance.percent(30) { size / 2 } else { size };
            images.push(json!({ "names": names, "sizeBytes": size }));
        }
    }
    node["status"]["images"] = json!(images);
}

fn change_features(chance: &mut Chance, node: &mut Value, _: bool) {
    let all = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"];
    let some: Vec<&str> = all.into_iter().filter(|_| chance.percent(60)).collect();
    node["status"]["declaredFeatures"] = json!(some);
}

/// An object of another kind, and what putting it is called.
pub(crate) fn object(chance: &mut Chance, version: usize, node_names: &[&str]) -> (&'static str, Value) {
    let namespace = chance.weighted(&[(3, NAMESPACES[0]), (1, NAMESPACES[1]), (1, NAMESPACES[2])]);
    let (what, mut object) = match chance.below(24) {
        0..=3 => {
            let labels = match chance.below(4) {
                0 => json!({}),
                _ => json!({ "team": chance.pick(&["red", "blue"]) }),
            };
            let metadata = json!({ "name": namespace, "labels": labels });
            ("namespace put", json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }))
        }
        4 | 5 => {
            let selector = match chance.below(4) {
                0 => json!({ "app": chance.pick(&APPS), "tier": "front" }),
                _ => json!({ "app": chance.pick(&APPS) }),
            };
            let metadata = json!({ "name": chance.pick(&["s1", "s2"]), "namespace": namespace });
            (
                "service put",
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "selector": selector } }),
            )
        }
        6 | 7 => ("controller put", controller(chance, namespace)),
        8 | 9 => {
            let spec = json!({ "selector": { "matchLabels": { "app": chance.pick(&APPS) } } });
            let status = json!({ "disruptionsAllowed": chance.below(3) });
            let metadata = json!({ "name": chance.pick(&["b1", "b2"]), "namespace": namespace });
            (
                "budget put",
                json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": status }),
            )
        }
        10 => ("storage class put", storage_class(chance)),
        11..=13 => {
            let (namespace, name) = (chance.weighted(&[(5, "default"), (1, "team-a")]), any_claim(chance));
            ("claim put", claim(chance, namespace, name))
        }
        14 | 15 => ("volume put", volume(chance)),
        16 if !node_names.is_empty() => ("CSI node put", csi_node(chance, node_names)),
        17 if !node_names.is_empty() => ("attachment put", attachment(chance, node_names)),
        18 => ("storage capacity put", capacity(chance)),
        19..=22 if !node_names.is_empty() => ("node load put", node_load(chance, node_names)),
        _ => {
            let spec = match chance.below(3) {
                0 => json!({ "extendedResourceName": "example.com/gpu" }),
                _ => json!({}),
            };
            (
                "device class put",
                json!({ "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "gpu" }, "spec": spec }),
            )
        }
    };
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    (what, object)
}

/// The storage that most histories begin with.
pub(crate) fn storage(chance: &mut Chance, version: usize) -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&'static str, Value)> = Vec::new();
    for name in ["static", "made", "now"] {
        all.push(("storage class put", class(name, None)));
    }
    for name in CLAIMS.iter().chain(&OWN_CLAIMS) {
        all.push(("claim put", claim(chance, "default", name)));
    }
    for _ in 0..10 {
        all.push(("volume put", volume(chance)));
    }
    for name in ["n0", "n1", "n2", "n3"] {
        all.push(("CSI node put", csi_node(chance, &[name])));
    }
    for name in &NAMESPACES[..3] {
        let metadata = json!({ "name": name, "labels": { "team": chance.pick(&["red", "blue"]) } });
        all.push(("namespace put", json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })));
    }
    for (_, object) in &mut all {
        object["metadata"]["resourceVersion"] = json!(version.to_string());
    }
    all
}

fn controller(chance: &mut Chance, namespace: &str) -> Value {
    let (version, kind) = *chance.pick(&CONTROLLERS);
    let metadata = json!({ "name": chance.pick(&APPS[..2]), "namespace": namespace });
    let labels = json!({ "app": chance.pick(&APPS) });
    let selector = if version == "v1" { labels } else { json!({ "matchLabels": labels }) };
    json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": { "selector": selector } })
}

fn class(name: &str, topologies: Option<&Value>) -> Value {
    let (provisioner, mode) = match name {
        "static" => ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        "made" => (DRIVERS[0], "WaitForFirstConsumer"),
        _ => (DRIVERS[1], "Immediate"),
    };
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": name },
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    });
    if let Some(topologies) = topologies {
        class["allowedTopologies"] = topologies.clone();
    }
    class
}

fn storage_class(chance: &mut Chance) -> Value {
    let name = *chance.pick(&["static", "made", "now"]);
    let term = json!([{ "matchLabelExpressions": [{ "key": ZONE, "values": ["a"] }] }]);
    let mut class = class(name, chance.percent(40).then_some(&term));
    if chance.percent(5) {
        class.as_object_mut().expect("a class").remove("volumeBindingMode");
    }
    class
}

/// A claim, bound to one of the volumes or to none.
fn claim(chance: &mut Chance, namespace: &str, name: &str) -> Value {
    let mode = match name {
        _ if name.starts_with("alone") => "ReadWriteOncePod",
        "shared" => "ReadWriteMany",
        _ => "ReadWriteOnce",
    };
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}") },
        "spec": {
            "accessModes": [mode],
            "storageClassName": chance.weighted(&[(4, "static"), (6, "made"), (1, "now"), (1, "absent")]),
            "resources": { "requests": { "storage": chance.pick(&["1Gi", "5Gi"]) } },
        },
        "status": { "phase": "Pending" },
    });
    if chance.percent(40) {
        claim["spec"]["volumeName"] = json!(chance.pick(&VOLUMES));
        claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
        claim["status"]["phase"] = json!("Bound");
    }
    claim
}

fn volume(chance: &mut Chance) -> Value {
    let name = *chance.pick(&VOLUMES);
    // Two volumes may be one to their driver.
    let handle = if chance.percent(20) { "v0" } else { name };
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name, "uid": name, "labels": {} },
        "spec": {
            "capacity": { "storage": chance.pick(&["2Gi", "10Gi"]) },
            "accessModes": ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"],
            "storageClassName": "static",
            "csi": { "driver": chance.pick(&DRIVERS), "volumeHandle": handle },
        },
        "status": { "phase": "Available" },
    });
    if chance.percent(40) {
        let key = *chance.pick(&[ZONE, HOST]);
        let value = if key == ZONE { *chance.pick(&["a", "b"]) } else { *chance.pick(&["n0", "n1"]) };
        let term = json!({ "matchExpressions": [{ "key": key, "operator": "In", "values": [value] }] });
        volume["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [term] } });
    }
    if chance.percent(35) {
        volume["metadata"]["labels"] = json!({ ZONE: chance.pick(&["a", "b", "a__c"]) });
    }
    if chance.percent(25) {
        volume["spec"]["claimRef"] = json!({ "namespace": "default", "name": any_claim(chance), "uid": "" });
    }
    volume
}

/// Makes a claim one for the ephemeral volume of a pod.
pub(crate) fn give_to(claim: &mut Value, pod: &str, uid: &str) {
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": true });
    claim["metadata"]["name"] = json!(format!("{pod}-own"));
    claim["metadata"]["ownerReferences"] = json!([owner]);
}

/// The name of a claim, of one that many pods have or of another.
fn any_claim(chance: &mut Chance) -> &'static str {
    let names = if chance.percent(40) { &CLAIMS[..] } else { &OWN_CLAIMS };
    chance.pick::<&'static str>(names)
}

/// A volume that is attached to a node, or to one that is not there.
fn attachment(chance: &mut Chance, node_names: &[&str]) -> Value {
    let node = if chance.percent(5) { "gone" } else { *chance.pick(node_names) };
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": { "name": chance.pick(&["a0", "a1", "a2"]) },
        "spec": {
            "attacher": chance.pick(&DRIVERS),
            "nodeName": node,
            "source": { "persistentVolumeName": chance.pick(&VOLUMES) },
        },
    })
}

fn csi_node(chance: &mut Chance, node_names: &[&str]) -> Value {
    csi_node_with(chance, node_names, &[0, 1, 2, 3, 5])
}

/// What one of these nodes says of its drivers: each takes one of these numbers of volumes.
pub(crate) fn csi_node_with(chance: &mut Chance, node_names: &[&str], counts: &[i32]) -> Value {
    let driver =
        |name: &&str| json!({ "name": name, "nodeID": "n", "allocatable": { "count": chance.pick(counts) } });
    let drivers: Vec<Value> = DRIVERS.iter().map(driver).collect();
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": { "name": chance.pick(node_names) },
        "spec": { "drivers": drivers },
    })
}

/// What somebody outside says about a node, or about one that is not there.
fn node_load(chance: &mut Chance, node_names: &[&str]) -> Value {
    let name = if chance.percent(5) { "gone" } else { *chance.pick(node_names) };
    let any = chance.between(0, 1_000_000);
    let traffic = chance.weighted(&[(3, any), (1, 0), (1, 1_000_000)]);
    json!({
        "apiVersion": "samples.supercargo.dev/v1",
        "kind": "NodeLoad",
        "metadata": { "name": name },
        "load": chance.between(0, 101),
        "traffic": traffic,
    })
}

/// A driver that tells its capacity, or what it tells.
fn capacity(chance: &mut Chance) -> Value {
    if chance.percent(30) {
        return json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": { "name": DRIVERS[0] },
            "spec": { "storageCapacity": chance.percent(70) },
        });
    }
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": { "name": chance.pick(&["c1", "c2"]), "namespace": "default" },
        "storageClassName": "made",
        "nodeTopology": { "matchLabels": { ZONE: chance.pick(&["a", "b"]) } },
        "capacity": chance.pick(&["1Gi", "100Gi"]),
    })
}
